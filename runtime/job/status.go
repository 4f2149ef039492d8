package job

import (
	"cmp"
	"slices"
	"time"

	"evenkeel/c/tables"
	"evenkeel/runtime/drain"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// Status is where the ranks of a job are at this moment, on this host.
type Status struct {
	Job   string
	Ranks []RankStatus // by world and rank
	// WaitedFor are the ranks that others wait for and that wait for nobody
	// themselves: the ones to look at. Each with the ranks that wait, directly
	// or through others, for it.
	WaitedFor []Blocker
	// Cycles are groups of ranks that wait for each other in a circle: a
	// deadlock, if it lasts.
	Cycles [][]history.Task
	// Absent is how many ranks of these worlds are on other hosts.
	Absent int
}

// RankStatus is one rank.
type RankStatus struct {
	Task    history.Task
	Host    string
	PID     int
	Outside bool // in no MPI call: it computes
	Done    bool // in MPI_Finalize or past it
	// Of the call that it is in:
	Call     string // MPI_Recv
	Comm     string // name of the communicator, may be empty
	Sequence uint64 // of a collective: its number on the communicator
	For      time.Duration
	AtLeast  bool   // the call is not timed: it may have begun earlier than For tells
	Module   string // from where it was called
	Offset   uint64
	WaitsFor []history.Task
	AnyRank  bool // waits for a message from any rank
}

// Blocker is a rank that others wait for.
type Blocker struct {
	Task    history.Task
	Waiting []history.Task
}

// Look reads the segments of one job. The ranks are not asked and do not
// notice.
func Look(live []Live) (*Status, error) {
	functions, _, err := tables.MPI()
	if err != nil {
		return nil, err
	}
	l := look{functions: functions}
	status := &Status{}
	sizes := map[uint32]int{}
	for _, s := range live {
		status.Job = s.Job()
		sizes[s.Header.World] = int(s.Header.WorldSize)
		for i := range int(s.Header.LocalRanks) {
			l.rank(s, s.Area(i))
		}
	}
	for _, size := range sizes {
		status.Absent += size
	}
	status.Absent -= len(l.ranks)
	slices.SortFunc(l.ranks, func(a, b rankLook) int {
		return cmp.Or(cmp.Compare(a.Task.World, b.Task.World), cmp.Compare(a.Task.Rank, b.Task.Rank))
	})
	l.resolve()
	for i := range l.ranks {
		status.Ranks = append(status.Ranks, l.ranks[i].RankStatus)
	}
	status.WaitedFor, status.Cycles = blockers(status.Ranks)
	return status, nil
}

// look collects what all ranks are in before it can be said who waits for whom.
type look struct {
	functions []tables.Function
	ranks     []rankLook
}

type operation struct {
	comm     uint64
	sequence uint64
}

type rankLook struct {
	RankStatus
	class    string
	op       operation
	members  []int
	peers    []history.Peer
	sequence map[uint64]uint64 // operations begun, by communicator id
}

func (l *look) rank(s Live, area segment.Area) {
	h := s.Header
	r := rankLook{sequence: map[uint64]uint64{}}
	r.Task = history.Task{World: int(h.World), Rank: int(area.Rank.Rank)}
	r.Host, r.PID = segment.Text(h.Host[:]), int(area.Rank.Pid)
	r.Outside = true
	switch segment.Load(&area.Rank.State) {
	case segment.RankEmpty:
		return
	case segment.RankRunning:
	default:
		r.Done = true
	}
	for i := range area.Comms {
		r.sequence[area.Comms[i].Id] = segment.Load(&area.Comms[i].Sequence)
	}
	for t := range area.Threads {
		if call, ok := OpenCallOf(area, t); ok {
			l.open(&r, s, area, t, call)
			break // the first thread that is in MPI speaks for the rank
		}
	}
	l.ranks = append(l.ranks, r)
}

func (l *look) open(r *rankLook, s Live, area segment.Area, t int, call OpenCall) {
	accounts := area.Threads[t].Accounts
	if int(call.Account) >= len(accounts) {
		return
	}
	account := &accounts[call.Account]
	function, comm := int(uint16(account.Key)), int(uint16(account.Key>>16))
	if function >= len(l.functions) || comm >= len(area.Comms) {
		return
	}
	r.Outside = false
	r.Call, r.class = l.functions[function].Name, l.functions[function].Class
	r.Comm = segment.Text(area.Comms[comm].Name[:])
	r.Sequence, r.peers = call.Sequence, call.Peers
	r.op = operation{area.Comms[comm].Id, call.Sequence}
	c := &area.Comms[comm]
	if end := uint64(c.Members) + uint64(c.Count); c.Flags&segment.CommForeign == 0 && end <= uint64(len(area.Members)) {
		for _, m := range area.Members[c.Members:end] {
			r.members = append(r.members, int(m))
		}
	}
	if now := Now(s.Header); call.Since != 0 && call.Since < now {
		r.For = time.Duration(drain.ClockOf(s.Header).Nanoseconds(now - call.Since))
	}
	r.AtLeast = !call.Exact
	r.Offset = account.Offset
	if account.Module < uint64(len(area.Modules)) {
		r.Module = segment.Text(area.Modules[account.Module].Path[:])
	}
}

// resolve says for each open call which ranks it waits for.
func (l *look) resolve() {
	byTask := map[history.Task]*rankLook{}
	for i := range l.ranks {
		byTask[l.ranks[i].Task] = &l.ranks[i]
	}
	for i := range l.ranks {
		r := &l.ranks[i]
		if r.Outside || r.Done {
			continue
		}
		wait := func(rank int) {
			task := history.Task{World: r.Task.World, Rank: rank}
			if task != r.Task && !slices.Contains(r.WaitsFor, task) {
				r.WaitsFor = append(r.WaitsFor, task)
			}
		}
		if collective(classes[r.class]) && r.class != "begin" {
			members := r.members
			if (r.class == "fromroot" || r.class == "toroot") && len(r.peers) == 1 && int(r.peers[0]) != r.Task.Rank {
				members = []int{int(r.peers[0])} // all but the root itself wait for the root alone
			}
			for _, m := range members {
				other := byTask[history.Task{World: r.Task.World, Rank: m}]
				// Who has begun this operation, or a later one, is not waited for.
				if other != nil && other.sequence[r.op.comm] <= r.op.sequence {
					wait(m)
				}
			}
			continue
		}
		for _, p := range r.peers {
			switch {
			case p >= 0:
				wait(int(p))
			case p == history.AnyPeer:
				r.AnyRank = true
			}
		}
	}
}

// blockers follows who waits for whom to the ranks at the ends of the chains,
// and to the circles.
func blockers(ranks []RankStatus) ([]Blocker, [][]history.Task) {
	waits := map[history.Task][]history.Task{}
	for _, r := range ranks {
		waits[r.Task] = r.WaitsFor
	}
	reaches := map[history.Task]map[history.Task]bool{}
	for task := range waits {
		seen := map[history.Task]bool{}
		todo := slices.Clone(waits[task])
		for len(todo) > 0 {
			next := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !seen[next] {
				seen[next] = true
				todo = append(todo, waits[next]...)
			}
		}
		reaches[task] = seen
	}
	var found []Blocker
	var cycles [][]history.Task
	inCycle := map[history.Task]bool{}
	for _, r := range ranks {
		if reaches[r.Task][r.Task] && !inCycle[r.Task] {
			cycle := []history.Task{}
			for _, other := range ranks {
				if reaches[r.Task][other.Task] && reaches[other.Task][r.Task] {
					cycle = append(cycle, other.Task)
					inCycle[other.Task] = true
				}
			}
			cycles = append(cycles, cycle)
		}
		if len(r.WaitsFor) > 0 {
			continue
		}
		b := Blocker{Task: r.Task}
		for _, other := range ranks {
			if reaches[other.Task][r.Task] {
				b.Waiting = append(b.Waiting, other.Task)
			}
		}
		if len(b.Waiting) > 0 {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b Blocker) int { return cmp.Compare(len(b.Waiting), len(a.Waiting)) })
	return found, cycles
}
