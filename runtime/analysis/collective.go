package analysis

import (
	"math"
	"slices"

	"evenkeel/runtime/history"
)

// What the arrivals of an operation say about the wait of one of them: the
// index of the arrival that it waited for, or one of these.
const (
	waitsForNone = -1 // it was the last that it needed
	waitsUnknown = -2 // who it needs is not known
)

// prompt is how long after a call's end, in nanoseconds, an arrival may seem
// to lie and still have ended it: the ranks read their clocks just outside MPI.
const prompt = 1000

// matcher goes through the collective operations of a job and writes into
// each call whom it waited for.
type matcher struct {
	*job
	op      *history.Operation
	needs   []int   // by arrival: which arrival it needs
	byRank  []int   // by rank: its arrival in the operation, if `seen` says so
	seen    []int64 // by rank: turn
	turn    int64
	byPlace []int
	spans   clockSpans

	oneClock bool // the times of its arrivals can be compared
	rootAt   int  // of a rooted operation: the arrival of its root, or none

	insideOf    int // what lastInside was asked for last, and its answer
	insideUntil int64
}

// matchCollectives finds for every collective call the rank that it waited
// for, and takes the operations' figures.
func (j *job) matchCollectives() {
	m := &matcher{job: j, byRank: make([]int, len(j.ranks)), seen: make([]int64, len(j.ranks))}
	j.operations = newOperations(j)
	for op := range history.Operations(j.run) {
		m.op = op
		m.turn++
		for i, a := range op.Arrivals {
			m.byRank[a.Rank], m.seen[a.Rank] = i, m.turn
		}
		switch {
		case op.Complete && op.Size < 2:
			m.markAlone(op.Arrivals)
			m.markAlone(op.Completions)
		case op.Complete:
			m.oneClock = m.sameClock()
			m.match()
			if m.oneClock {
				j.operations.add(m)
			}
		case !m.matchPending():
			m.matchThinned()
		}
	}
}

func (m *matcher) callOf(a history.Arrival) *call { return &m.ranks[a.Rank].calls[a.Event] }

func (m *matcher) event(a history.Arrival) *history.Event {
	return &m.run.Ranks[a.Rank].Events[a.Event]
}

func (m *matcher) markAlone(arrivals []history.Arrival) {
	for _, a := range arrivals {
		c := m.callOf(a)
		c.verdict, c.weight = alone, float32(m.event(a).Weight)
	}
}

func (m *matcher) sameClock() bool {
	for _, a := range m.op.Arrivals[1:] {
		if !m.comparable(m.op.Arrivals[0].Rank, a.Rank) {
			return false
		}
	}
	return true
}

// match judges the calls of a complete operation.
func (m *matcher) match() {
	arrivals := m.op.Arrivals
	m.needs = slices.Grow(m.needs[:0], len(arrivals))[:len(arrivals)]
	m.spans.read(m)
	m.insideOf = none
	m.findNeeds()
	timed, level := int64(1), 0
	for _, a := range arrivals {
		timed = max(timed, m.event(a).Weight)
		level = max(level, m.run.Ranks[a.Rank].Level)
	}
	weight := operationWeight(timed, level)
	nonblocking := m.op.Function.Class == history.Begin
	if nonblocking {
		m.markAlone(arrivals)
		for _, c := range m.op.Completions {
			if m.seen[c.Rank] == m.turn {
				m.judge(c, m.byRank[c.Rank], weight*float32(m.event(c).Weight))
			}
		}
		return
	}
	widest, widestAt := int64(0), none
	for i, a := range arrivals {
		m.judge(a, i, weight)
		c := m.callOf(a)
		c.widest = false
		if c.until-c.enter > widest {
			widest, widestAt = c.until-c.enter, i
		}
	}
	if widestAt >= 0 {
		m.callOf(arrivals[widestAt]).widest = true
	}
}

// judge writes what is known into the call of `a`, which stands for arrival i
// of the operation.
func (m *matcher) judge(a history.Arrival, i int, weight float32) {
	c := m.callOf(a)
	c.weight = weight
	need := m.needs[i]
	if need == waitsUnknown {
		c.verdict = vague
		return
	}
	c.verdict = collective
	c.clock = float32(min(m.spans.error(m, a), c.leave-c.enter))
	if need == waitsForNone {
		return
	}
	late := m.op.Arrivals[need]
	if c.until = min(max(late.Enter, c.enter), c.leave); c.until > c.enter {
		c.cause, c.by = int32(late.Rank), int32(late.Event)
		c.direct = m.level == 0 && m.lastInside(need) <= c.enter
	}
}

// lastInside is when the rank of arrival i was last inside MPI before it
// arrived.
func (m *matcher) lastInside(i int) int64 {
	if m.insideOf != i {
		m.insideOf, m.insideUntil = i, math.MinInt64
		a := m.op.Arrivals[i]
		if prev := m.callOf(a).prev; prev != none {
			m.insideUntil = m.ranks[a.Rank].calls[prev].leave
		}
	}
	return m.insideUntil
}

// findNeeds fills needs: for each arrival, the one that it cannot do without
// and that came last.
func (m *matcher) findNeeds() {
	class := m.op.Function.Needs()
	switch {
	case !m.oneClock:
		class = history.Local
	case m.op.Inter && class != history.AllToAll && class != history.Create:
		class = history.Local // which group gives and which takes is not known
	}
	switch class {
	case history.AllToAll, history.Create, history.Sync:
		for i := range m.needs {
			m.needs[i] = m.lastBefore(i)
		}
	case history.FromRoot, history.ToRoot:
		m.needRoot(class)
	case history.Prefix:
		m.needLower()
	case history.Neighbour:
		m.needNeighbours()
	default:
		m.fill(waitsUnknown)
	}
}

func (m *matcher) fill(need int) {
	for i := range m.needs {
		m.needs[i] = need
	}
}

// lastBefore is the last arrival that may have ended the call of arrival i:
// what comes after its end was not needed.
func (m *matcher) lastBefore(i int) int {
	a := m.op.Arrivals[i]
	for k := len(m.op.Arrivals) - 1; k > i; k-- {
		if m.inTime(a, m.op.Arrivals[k]) {
			return k
		}
	}
	return waitsForNone
}

// inTime says whether `late` arrived before the end of the call of `a`.
func (m *matcher) inTime(a, late history.Arrival) bool {
	if m.op.Function.Class == history.Begin {
		return true // ends only in the call that waits for it
	}
	return late.Enter <= a.Leave+prompt+m.clockError(a.Rank, late.Rank)
}

func (m *matcher) needRoot(class history.Class) {
	root := m.root()
	m.rootAt = root
	if root == none {
		m.fill(waitsUnknown)
		return
	}
	for i := range m.needs {
		switch {
		case i == root && class == history.ToRoot:
			m.needs[i] = m.lastBefore(i)
		case i != root && (class == history.FromRoot || m.inTime(m.op.Arrivals[i], m.op.Arrivals[root])):
			m.needs[i] = root
		default:
			m.needs[i] = waitsForNone
		}
	}
}

// root is the arrival of the operation's root, which its callers name as their
// peer.
func (m *matcher) root() int {
	for _, a := range m.op.Arrivals {
		for _, peer := range m.event(a).Peers {
			if r := m.find(a.Rank, peer); r != none && m.seen[r] == m.turn {
				return m.byRank[r]
			}
		}
	}
	return none
}

// needLower lets each arrival need those of lower places.
func (m *matcher) needLower() {
	m.byPlace = m.byPlace[:0]
	for i := range m.op.Arrivals {
		m.byPlace = append(m.byPlace, i)
	}
	slices.SortFunc(m.byPlace, func(a, b int) int { return m.op.Arrivals[a].Place - m.op.Arrivals[b].Place })
	latest := waitsForNone
	for _, i := range m.byPlace {
		m.needs[i] = latest
		latest = max(latest, i) // arrivals are in order
		if m.needs[i] < i {
			m.needs[i] = waitsForNone
		}
	}
}

// needNeighbours lets each arrival need those of its rank's neighbours.
func (m *matcher) needNeighbours() {
	for i, a := range m.op.Arrivals {
		neighbours := m.run.Ranks[a.Rank].Comms[m.event(a).Comm].Neighbours
		m.needs[i] = waitsForNone
		if neighbours == nil {
			m.needs[i] = waitsUnknown
		}
		for _, neighbour := range neighbours {
			r := m.find(a.Rank, history.Peer(neighbour))
			if r == none || m.seen[r] != m.turn {
				m.needs[i] = waitsUnknown
				break
			}
			if k := m.byRank[r]; k > i {
				m.needs[i] = max(m.needs[i], k)
			}
		}
	}
}

// matchPending judges an operation to which a member never came, as in a job
// that hangs or was killed: who needs that member and was still in it when the
// recording ended waited for it all the time. False if it is no such operation.
func (m *matcher) matchPending() bool {
	in := m.op.Arrivals
	if m.op.Function.Class == history.Begin {
		m.markAlone(in)
		in = m.op.Completions
	}
	var waiting []history.Arrival
	for _, a := range in {
		if m.open(a.Rank, m.callOf(a)) {
			waiting = append(waiting, a)
		}
	}
	if len(waiting) == 0 {
		return false
	}
	missing := m.notCome()
	if len(missing) == 0 {
		return false
	}
	var charged []int
	for _, a := range waiting {
		culprit := m.neverCame(a, missing)
		if culprit == none || !m.comparable(a.Rank, culprit) {
			continue
		}
		c := m.callOf(a)
		c.verdict, c.weight = collective, float32(m.event(a).Weight)
		c.until, c.cause, c.by = c.leave, int32(culprit), none
		if c.widest = !slices.Contains(charged, culprit); c.widest {
			charged = append(charged, culprit)
		}
	}
	return true
}

// neverCame is which of the missing members the call of `a` waits for, or none
// if it needs none of them. One that is outside MPI is what the others wait for
// in the end.
func (m *matcher) neverCame(a history.Arrival, missing []absentee) int {
	culprit := none
	for _, member := range missing {
		if !m.needsMember(a, member) {
			continue
		}
		if last := m.ranks[member.rank].last; last == none || !m.open(member.rank, &m.ranks[member.rank].calls[last]) {
			return member.rank
		}
		if culprit == none {
			culprit = member.rank
		}
	}
	return culprit
}

// needsMember says whether the call of `a` cannot end before a missing member
// comes.
func (m *matcher) needsMember(a history.Arrival, member absentee) bool {
	switch class := m.op.Function.Needs(); class {
	case history.AllToAll, history.Create:
		return true
	case history.Prefix:
		return member.place < a.Place
	case history.Neighbour:
		return slices.ContainsFunc(m.run.Ranks[a.Rank].Comms[m.event(a).Comm].Neighbours, func(neighbour int) bool {
			return m.find(a.Rank, history.Peer(neighbour)) == member.rank
		})
	case history.FromRoot, history.ToRoot:
		if m.seen[a.Rank] != m.turn {
			return false
		}
		// The root is named by the call that came to the operation.
		return slices.ContainsFunc(m.event(m.op.Arrivals[m.byRank[a.Rank]]).Peers, func(peer history.Peer) bool {
			r := m.find(a.Rank, peer)
			return r == member.rank || class == history.ToRoot && r == a.Rank
		})
	}
	return false
}

// matchThinned judges the long calls of an operation of which not all arrivals
// were kept. Those that were not kept are of short calls, so these members
// came shortly before the end.
func (m *matcher) matchThinned() {
	if m.level == 0 || m.op.Function.Class == history.Begin {
		return
	}
	missing := m.missing()
	if len(missing) == 0 {
		return
	}
	end, uncertain := m.op.First().Leave, int64(0)
	for _, a := range m.op.Arrivals {
		end = min(end, a.Leave)
	}
	for _, r := range missing {
		if m.run.Ranks[r].Level == 0 {
			return // it would have been kept
		}
		uncertain = max(uncertain, shortestKept(m.run.Ranks[r].Level))
	}
	for _, a := range m.op.Arrivals {
		c := m.callOf(a)
		if !alwaysKept(c.enter, c.leave, m.run.Ranks[a.Rank].Level) || !m.comparable(a.Rank, missing[0]) {
			continue
		}
		c.verdict, c.weight = collective, float32(m.event(a).Weight)
		c.until = min(max(end, c.enter), c.leave)
		c.clock = float32(min(uncertain, c.leave-c.enter))
		if len(missing) == 1 {
			c.cause, c.direct = int32(missing[0]), true
		}
	}
}

// missing are the members of the operation's communicator that are not among
// its arrivals, where all need all.
func (m *matcher) missing() []int {
	if class := m.op.Function.Needs(); class != history.AllToAll && class != history.Create {
		return nil
	}
	var missing []int
	for _, member := range m.absent() {
		missing = append(missing, member.rank)
	}
	return missing
}

// absentee is a member of the operation's communicator that is not among its
// arrivals: its rank, and its place in the communicator.
type absentee struct{ rank, place int }

func (m *matcher) absent() []absentee {
	if m.op.Inter {
		return nil
	}
	first := m.op.First()
	comm := &m.run.Ranks[first.Rank].Comms[m.event(first).Comm]
	var absent []absentee
	for place, member := range comm.Members {
		if r := m.find(first.Rank, history.Peer(member)); r != none && m.seen[r] != m.turn {
			absent = append(absent, absentee{r, place})
		}
	}
	return absent
}

// notCome are the absent that have not even begun the operation: of the others
// only the event was not kept.
func (m *matcher) notCome() []absentee {
	return slices.DeleteFunc(m.absent(), func(member absentee) bool {
		return slices.ContainsFunc(m.run.Ranks[member.rank].Comms, func(comm history.Comm) bool {
			return comm.ID == m.op.CommID && comm.Next>>32 == m.op.Sequence>>32 && comm.Next > m.op.Sequence
		})
	})
}
