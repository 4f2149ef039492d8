package job

import (
	"cmp"
	"slices"

	"evenkeel/c/tables"
	"evenkeel/runtime/drain"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
	"evenkeel/runtime/symbols"
)

// Status is where the ranks of a job are at this moment, on this host.
type Status struct {
	Job   string       `json:"job"`
	Ranks []RankStatus `json:"ranks"` // by world and rank
	// WaitedFor are the ranks that others wait for and that wait for nobody
	// themselves: the ones to look at. Each with the ranks that wait, directly
	// or through others, for it.
	WaitedFor []Blocker `json:"waited_for"`
	// Cycles are groups of ranks that wait for each other in a circle: a
	// deadlock, if it lasts.
	Cycles [][]history.Task `json:"cycles"`
	// Absent is how many ranks of these worlds are on other hosts.
	Absent int `json:"absent"`
}

// State is where a rank is.
type State string

// The states of a rank.
const (
	Computing State = "computing" // in no MPI call
	InMPI     State = "in MPI"    // in the call that RankStatus names
	Done      State = "finalized" // in MPI_Finalize, or past it
	Gone      State = "gone"      // its process is no more, or has called MPI_Abort or exit
)

// RankStatus is one rank.
type RankStatus struct {
	history.Task
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	State State  `json:"state"`
	// MPI is how long it has been in MPI until now, in seconds: of its first thread, estimated where calls are
	// sampled, with the call that it is in as far as it is known since when.
	MPI float64 `json:"mpi"`
	// CallStatus is of the first thread that is in MPI.
	CallStatus
	Others []CallStatus `json:"other_threads"` // that are in MPI besides
	// Windows are those of global shared memory, with what went out through each until its last fence.
	Windows []WindowStatus `json:"windows"`
}

// CallStatus is the call that a thread is in.
type CallStatus struct {
	Thread   int     `json:"thread"`       // 0 is the first that called MPI
	Call     string  `json:"call"`         // MPI_Recv
	Comm     string  `json:"communicator"` // its name, may be empty
	Sequence *uint64 `json:"sequence"`     // of a collective: its number on the communicator
	For      float64 `json:"for"`          // how long it has been in it, seconds
	AtLeast  bool    `json:"at_least"`     // the call is not timed: it may have begun earlier than For tells
	Module   string  `json:"module"`       // from where it was called
	Offset   uint64  `json:"offset"`
	Function string  `json:"function"` // as far as symbols tell: see Locate
	File     string  `json:"file"`
	Line     int     `json:"line"`
	// WaitsFor are the ranks without which the call can't end.
	WaitsFor []history.Task `json:"waits_for"`
	AnyRank  bool           `json:"any_rank"` // waits for a message from any rank
}

// Calls are those of all its threads that are in MPI.
func (r *RankStatus) Calls() []*CallStatus {
	if r.State != InMPI {
		return nil
	}
	calls := []*CallStatus{&r.CallStatus}
	for i := range r.Others {
		calls = append(calls, &r.Others[i])
	}
	return calls
}

// WindowStatus is a window of global shared memory.
type WindowStatus struct {
	Job      int   `json:"job"`    // of the process: from 1; 0: of several
	Number   int   `json:"number"` // 0: of several windows
	Puts     int64 `json:"puts"`
	PutBytes int64 `json:"put_bytes"`
	Gets     int64 `json:"gets"`
	GetBytes int64 `json:"get_bytes"`
	Atomics  int64 `json:"atomics"`
	Refused  int64 `json:"refused"`
	Fences   int64 `json:"fences"`
}

// Blocker is a rank that others wait for.
type Blocker struct {
	history.Task
	Waiting []history.Task `json:"waiting"`
}

// Locate fills in the function and line of each call.
func (s *Status) Locate(resolver *symbols.Resolver) {
	for i := range s.Ranks {
		for _, c := range s.Ranks[i].Calls() {
			frame := resolver.Resolve(c.Module, c.Offset)
			c.Function, c.File, c.Line = frame.Function, frame.File, frame.Line
		}
	}
}

// Look reads the segments of one job. The ranks are not asked and do not
// notice.
func Look(live []Live) (*Status, error) {
	functions, _, err := tables.MPI()
	if err != nil {
		return nil, err
	}
	l := look{functions: functions}
	status := &Status{WaitedFor: []Blocker{}, Cycles: [][]history.Task{}}
	sizes := map[uint32]int{}
	for _, s := range live {
		status.Job = s.Job()
		sizes[s.Header.World] = int(s.Header.WorldSize)
		for i, alive := range living(s.Path, s.Segment) {
			l.rank(s, s.Area(i), alive)
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
	waitedFor, cycles := blockers(status.Ranks)
	status.WaitedFor, status.Cycles = append(status.WaitedFor, waitedFor...), append(status.Cycles, cycles...)
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
	calls    []callLook           // of its threads
	sequence map[operation]uint64 // next operation, by communicator (sequence: its birth)
}

type callLook struct {
	CallStatus
	class        string
	synchronises bool // it can't end before others have begun the operation op
	op           operation
	members      []int
	neighbours   []int // of its communicator's topology
	peers        []history.Peer
}

func (l *look) rank(s Live, area segment.Area, alive bool) {
	h := s.Header
	r := rankLook{sequence: map[operation]uint64{}}
	r.WaitsFor, r.Others, r.Windows = []history.Task{}, []CallStatus{}, []WindowStatus{} // empty lists in JSON, not null
	r.Task = history.Task{World: int(h.World), Rank: int(area.Rank.Rank)}
	r.Host, r.PID = segment.Text(h.Host[:]), int(area.Rank.Pid)
	for _, w := range WindowsOf(area) {
		r.Windows = append(r.Windows, WindowStatus(w))
	}
	for i := range area.Comms {
		next := segment.Load(&area.Comms[i].Sequence)
		r.sequence[operation{area.Comms[i].Id, next >> 32}] = next
	}
	switch segment.Load(&area.Rank.State) {
	case segment.RankEmpty:
		return
	case segment.RankFinalizing, segment.RankFinalized:
		r.State = Done
	case segment.RankRunning:
		r.State = Computing
		if !alive {
			r.State = Gone
		}
	default:
		r.State = Gone
	}
	for t := 0; t < len(area.Threads) && r.State == Computing; t++ {
		if call, ok := OpenCallOf(area, t); ok {
			l.open(&r, s, area, t, call)
		}
	}
	if len(r.calls) > 0 {
		r.State = InMPI
	}
	if len(area.Threads) > 0 {
		r.MPI += seconds(h, segment.Load(&area.Threads[0].Thread.MpiTicks))
	}
	l.ranks = append(l.ranks, r)
}

func seconds(h *segment.Header, ticks uint64) float64 {
	return float64(drain.ClockOf(h).Nanoseconds(ticks)) / 1e9
}

// open adds the call that the t-th thread is in.
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
	o := callLook{class: l.functions[function].Class, peers: call.Peers, op: operation{area.Comms[comm].Id, call.Sequence}}
	o.Thread, o.Call, o.Comm = t, l.functions[function].Name, segment.Text(area.Comms[comm].Name[:])
	o.WaitsFor = []history.Task{}
	if o.synchronises = call.Joined || collective(classes[o.class]) && o.class != "begin"; o.synchronises {
		number := history.Number(o.op.sequence)
		o.Sequence = &number
	}
	c := &area.Comms[comm]
	if c.Flags&segment.CommForeign == 0 {
		o.members = ranksOf(area, c.Members, c.MemberCount)
	}
	if c.Flags&segment.CommTopology != 0 {
		o.neighbours = ranksOf(area, c.Neighbours, c.NeighbourCount)
	}
	if now := Now(s.Header); call.Since != 0 && call.Since < now {
		o.For = seconds(s.Header, now-call.Since)
	}
	if t == 0 {
		r.MPI = o.For
	}
	o.AtLeast = !call.Exact
	o.Offset = account.Offset
	if account.Module < uint64(len(area.Modules)) {
		o.Module = segment.Text(area.Modules[account.Module].Path[:])
	}
	r.calls = append(r.calls, o)
}

// needs are the ranks without which the operation can't end on that rank.
func (c *callLook) needs(rank int) []int {
	switch c.class {
	case "fromroot", "toroot":
		if len(c.peers) == 1 && int(c.peers[0]) != rank {
			return []int{int(c.peers[0])} // all but the root itself wait for the root alone
		}
	case "prefix":
		return c.members[:max(slices.Index(c.members, rank), 0)] // those below it
	case "neighbour":
		return c.neighbours
	}
	return c.members
}

// resolve says for each open call which ranks it waits for.
func (l *look) resolve() {
	byTask := map[history.Task]*rankLook{}
	for i := range l.ranks {
		byTask[l.ranks[i].Task] = &l.ranks[i]
	}
	for i := range l.ranks {
		r := &l.ranks[i]
		for k := range r.calls {
			c := &r.calls[k]
			c.resolve(r.Task, byTask)
			if k == 0 {
				r.CallStatus = c.CallStatus
			} else {
				r.Others = append(r.Others, c.CallStatus)
			}
		}
	}
}

// resolve says which ranks the call, one of that task's, waits for.
func (c *callLook) resolve(of history.Task, byTask map[history.Task]*rankLook) {
	wait := func(rank int) {
		task := history.Task{World: of.World, Rank: rank}
		if task != of && !slices.Contains(c.WaitsFor, task) {
			c.WaitsFor = append(c.WaitsFor, task)
		}
	}
	if c.synchronises {
		for _, m := range c.needs(of.Rank) {
			other := byTask[history.Task{World: of.World, Rank: m}]
			// Who has begun this operation, or a later one, is not waited for.
			if other != nil && other.sequence[operation{c.op.comm, c.op.sequence >> 32}] <= c.op.sequence {
				wait(m)
			}
		}
		return
	}
	for _, p := range c.peers {
		switch {
		case p >= 0:
			wait(int(p))
		case p == history.AnyPeer:
			c.AnyRank = true
		}
	}
}

// blockers follows who waits for whom, in any thread, to the ranks at the ends of
// the chains, and to the circles.
func blockers(ranks []RankStatus) ([]Blocker, [][]history.Task) {
	waits := map[history.Task][]history.Task{}
	for i := range ranks {
		r := &ranks[i]
		waits[r.Task] = nil
		for _, c := range r.Calls() {
			waits[r.Task] = append(waits[r.Task], c.WaitsFor...)
		}
	}
	reaches := map[history.Task]map[history.Task]bool{}
	for task := range waits {
		seen := map[history.Task]bool{}
		stack := slices.Clone(waits[task])
		for len(stack) > 0 {
			next := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !seen[next] {
				seen[next] = true
				stack = append(stack, waits[next]...)
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
		if len(waits[r.Task]) > 0 {
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
