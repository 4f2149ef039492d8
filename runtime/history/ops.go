package history

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// Operation is one collective operation as the ranks that recorded it saw it:
// the calls with the same number on the same communicator.
type Operation struct {
	Function Function // of the first to arrive
	CommID   uint64
	Sequence uint64
	Size     int  // members of the communicator, both groups of an intercommunicator
	Inter    bool // the communicator is an intercommunicator
	// Complete says that the arrival of every member is among Arrivals, and
	// that they agree on what they called.
	Complete bool
	// Arrivals are the calls that took part, in order of arrival. That of a
	// nonblocking operation is the call that started it.
	Arrivals []Arrival
	// Completions are the calls that waited for the end of a nonblocking
	// operation, in the order of the ranks.
	Completions []Arrival
}

// Arrival is one rank's coming to an operation.
type Arrival struct {
	Rank  int // index into Run.Ranks
	Place int // its number in the communicator, or in its group of an intercommunicator
	Event int // index into the rank's Events
	Enter int64
	Leave int64
}

// First returns the arrival that came first.
func (o *Operation) First() Arrival { return o.Arrivals[0] }

// Last returns the arrival that came last.
func (o *Operation) Last() Arrival { return o.Arrivals[len(o.Arrivals)-1] }

// Spread is the time from the first arrival to the last, in nanoseconds.
func (o *Operation) Spread() int64 { return o.Last().Enter - o.First().Enter }

// begun are the nonblocking collectives in which not every rank needs every
// other one.
var begun = map[string]Class{
	"MPI_Ibcast":    FromRoot,
	"MPI_Iscatter":  FromRoot,
	"MPI_Iscatterv": FromRoot,
	"MPI_Ireduce":   ToRoot,
	"MPI_Igather":   ToRoot,
	"MPI_Igatherv":  ToRoot,
	"MPI_Iscan":     Prefix,
	"MPI_Iexscan":   Prefix,
}

// Needs is the class of the operation that a collective function is part of:
// its own, and for one that starts a nonblocking operation that of its
// blocking counterpart.
func (f Function) Needs() Class {
	if f.Class != Begin {
		return f.Class
	}
	if strings.HasPrefix(f.Name, "MPI_Ineighbor_") {
		return Neighbour
	}
	if class, ok := begun[f.Name]; ok {
		return class
	}
	return AllToAll
}

// Operations puts the ranks' collective events together, by communicator and
// then by number. An operation belongs to the loop's body until its next turn:
// the same memory is used for all. Beyond the run it takes four bytes for each
// collective event.
//
// Communicators that stand for several (Other) are left out.
func Operations(run *Run) iter.Seq[*Operation] {
	return func(yield func(*Operation) bool) {
		groups := membersByComm(run)
		ids := make([]uint64, 0, len(groups))
		for id := range groups {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		m := matcher{run: run, seen: make([]uint64, len(run.Ranks))}
		for _, id := range ids {
			if !m.merge(id, groups[id], yield) {
				return
			}
		}
	}
}

// member is one rank's view of a communicator: its events there in the order
// of their sequence, and how far they have been taken.
type member struct {
	rank   int
	comm   *Comm
	events []int32
	next   int
	head   uint64 // sequence of events[next]
}

func membersByComm(run *Run) map[uint64][]member {
	groups := map[uint64][]member{}
	for r := range run.Ranks {
		rank := &run.Ranks[r]
		for c, events := range collectivesByComm(rank) {
			if len(events) == 0 {
				continue
			}
			comm := &rank.Comms[c]
			m := member{rank: r, comm: comm, events: events, head: rank.Events[events[0]].Sequence}
			groups[comm.ID] = append(groups[comm.ID], m)
		}
	}
	return groups
}

// collectivesByComm gives, for each communicator of a rank, its collective
// events by sequence.
func collectivesByComm(rank *Rank) [][]int32 {
	counts := make([]int, len(rank.Comms))
	total := 0
	for i := range rank.Events {
		if rank.takesPart(&rank.Events[i]) {
			counts[rank.Events[i].Comm]++
			total++
		}
	}
	all := make([]int32, total)
	lists := make([][]int32, len(rank.Comms))
	for c, n := range counts {
		lists[c], all = all[:0:n], all[n:]
	}
	for i := range rank.Events {
		if e := &rank.Events[i]; rank.takesPart(e) {
			lists[e.Comm] = append(lists[e.Comm], int32(i))
		}
	}
	bySequence := func(a, b int32) int {
		return cmp.Compare(rank.Events[a].Sequence, rank.Events[b].Sequence)
	}
	for _, list := range lists {
		if !slices.IsSortedFunc(list, bySequence) {
			slices.SortStableFunc(list, bySequence)
		}
	}
	return lists
}

// takesPart says whether an event belongs to a collective operation that can
// be matched.
func (r *Rank) takesPart(e *Event) bool {
	if !e.Collective || e.Comm < 0 || e.Comm >= len(r.Comms) || r.Comms[e.Comm].Other ||
		e.Account < 0 || e.Account >= len(r.Accounts) || e.Leave < e.Enter {
		return false
	}
	switch r.Accounts[e.Account].Function.Class {
	case AllToAll, FromRoot, ToRoot, Prefix, Neighbour, Create, Sync, Begin, Wait:
		return true
	default:
		return false
	}
}

// matcher merges the members' events into operations.
type matcher struct {
	run   *Run
	op    Operation
	seen  []uint64 // by rank: turn in which it was seen
	turn  uint64
	alike bool // all arrivals so far agree on function and size

	moments []moment  // room for sort
	sorted  []Arrival // likewise
}

func (m *matcher) merge(id uint64, members []member, yield func(*Operation) bool) bool {
	for {
		lowest, left := uint64(math.MaxUint64), false
		for i := range members {
			if members[i].next < len(members[i].events) {
				left = true
				lowest = min(lowest, members[i].head)
			}
		}
		if !left {
			return true
		}
		m.begin(id, lowest)
		for i := range members {
			m.take(&members[i])
		}
		if m.finish() && !yield(&m.op) {
			return false
		}
	}
}

func (m *matcher) begin(id, sequence uint64) {
	m.op = Operation{
		CommID:      id,
		Sequence:    sequence,
		Arrivals:    m.op.Arrivals[:0],
		Completions: m.op.Completions[:0],
	}
	m.alike = true
}

// take adds a member's events of the current operation.
func (m *matcher) take(from *member) {
	rank := &m.run.Ranks[from.rank]
	for from.next < len(from.events) && from.head == m.op.Sequence {
		index := int(from.events[from.next])
		event := &rank.Events[index]
		arrival := Arrival{from.rank, from.comm.Rank, index, event.Enter, event.Leave}
		function := &rank.Accounts[event.Account].Function
		if function.Class == Wait {
			m.op.Completions = append(m.op.Completions, arrival)
		} else {
			if len(m.op.Arrivals) == 0 {
				m.op.Function, m.op.Size, m.op.Inter = *function, from.comm.Size, from.comm.Inter
			}
			m.alike = m.alike && *function == m.op.Function && from.comm.Size == m.op.Size
			m.op.Arrivals = append(m.op.Arrivals, arrival)
		}
		if from.next++; from.next < len(from.events) {
			from.head = rank.Events[from.events[from.next]].Sequence
		}
	}
}

// finish orders the arrivals; false if nobody's arrival was recorded.
func (m *matcher) finish() bool {
	if len(m.op.Arrivals) == 0 {
		return false
	}
	m.op.Complete = m.alike && len(m.op.Arrivals) == m.op.Size && m.distinct()
	m.sort()
	first := m.op.First()
	rank := &m.run.Ranks[first.Rank]
	m.op.Function = rank.Accounts[rank.Events[first.Event].Account].Function
	return true
}

// moment is when the arrival of that index came. Sorting these is faster than
// sorting the arrivals themselves.
type moment struct {
	enter   int64
	arrival int32
}

// sort puts the arrivals in order, those at the same time by rank.
func (m *matcher) sort() {
	m.moments = m.moments[:0]
	for i, a := range m.op.Arrivals {
		m.moments = append(m.moments, moment{a.Enter, int32(i)})
	}
	slices.SortFunc(m.moments, func(a, b moment) int {
		switch {
		case a.enter < b.enter || a.enter == b.enter && a.arrival < b.arrival:
			return -1
		case a.enter > b.enter || a.arrival > b.arrival:
			return 1
		default:
			return 0
		}
	})
	m.sorted = m.sorted[:0]
	for _, at := range m.moments {
		m.sorted = append(m.sorted, m.op.Arrivals[at.arrival])
	}
	m.op.Arrivals, m.sorted = m.sorted, m.op.Arrivals
}

// distinct says whether no rank arrived twice.
func (m *matcher) distinct() bool {
	m.turn++
	for _, a := range m.op.Arrivals {
		if m.seen[a.Rank] == m.turn {
			return false
		}
		m.seen[a.Rank] = m.turn
	}
	return true
}
