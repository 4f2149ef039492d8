package analysis

import (
	"math/rand/v2"
	"slices"

	"evenkeel/runtime/history"
)

// world is a simulated job: an SPMD program of which every moment is known,
// and a recorder that sees it as the real one does, with clocks that err,
// calls that are sampled, and events that are thinned out.
type world struct {
	*builder
	rng     *rand.Rand
	options options
	begin   int64
	now     []int64 // true time, by rank
	thread  int
	region  int
	since   []int64      // by rank: when its region began to last
	offset  []int64      // by node: by how much its aligned clock is wrong
	spans   [][][2]int64 // by rank: when its main thread was in MPI
	made    []uint64     // by rank: calls
	groups  []group
	truth   truth
}

// group is a communicator of the simulated job.
type group struct {
	id       uint64
	members  []int
	index    map[int]int // by rank: its number among the rank's communicators
	sequence uint64
}

// options say what the machine and the recorder do.
type options struct {
	ranks, nodes int
	clockError   int64 // ns, of each node but the first
	transfer     int64 // ns that an operation takes once all are there
	// One call in 2^timed is timed; of the timed ones all longer than longEvent
	// leave an event, and of the others those that are one in 2^events.
	timed, events int
	level         int
}

const longEvent = 20_000 // ns

// truth is what happened, in nanoseconds: of main threads alone.
type truth struct {
	useful, mpi, late []float64 // by rank
	caused            []float64 // by rank, by being last at a collective
	last              []int64   // operations to which it came last
	elapsed           float64
}

func newWorld(seed uint64, o options) *world {
	w := &world{builder: newBuilder(o.ranks, 0, 0), rng: rand.New(rand.NewPCG(seed, 1)), options: o}
	w.offset = []int64{0}
	for n := 1; n < o.nodes; n++ {
		w.run.Nodes = append(w.run.Nodes, history.Node{World: 1, Number: n, Host: "n", ClockKnown: true, ClockError: o.clockError})
		w.offset = append(w.offset, w.rng.Int64N(2*o.clockError+1)-o.clockError)
	}
	// Anywhere on the clock, so that slices of time are drawn anew.
	w.begin = w.rng.Int64N(1000 * second)
	w.now, w.since = make([]int64, o.ranks), make([]int64, o.ranks)
	w.spans, w.made = make([][][2]int64, o.ranks), make([]uint64, o.ranks)
	for _, list := range []*[]float64{&w.truth.useful, &w.truth.mpi, &w.truth.late, &w.truth.caused} {
		*list = make([]float64, o.ranks)
	}
	w.truth.last = make([]int64, o.ranks)
	for r := range w.now {
		w.run.Ranks[r].Node = r * o.nodes / o.ranks
		w.run.Ranks[r].Level = o.level
		w.run.Ranks[r].Regions[0].Time = 0
		w.now[r], w.since[r] = w.begin, w.begin
	}
	w.group("MPI_COMM_WORLD", w.everybody()...)
	return w
}

func (w *world) everybody() []int {
	all := make([]int, len(w.run.Ranks))
	for r := range all {
		all[r] = r
	}
	return all
}

// group makes a communicator and returns its number.
func (w *world) group(name string, members ...int) int {
	g := group{id: w.rng.Uint64(), members: members, index: map[int]int{}}
	for _, r := range members {
		g.index[r] = len(w.run.Ranks[r].Comms)
	}
	w.comm(g.id, name, members...)
	w.groups = append(w.groups, g)
	return len(w.groups) - 1
}

func (w *world) compute(r int, ns int64) {
	w.now[r] += ns
	if w.thread == 0 {
		w.truth.useful[r] += float64(ns)
	}
}

// mark lets all that follows be in a region of that name, or in none.
func (w *world) mark(name string) {
	w.settle()
	w.region = 0
	if name == "" {
		return
	}
	regions := w.run.Ranks[0].Regions
	w.region = slices.IndexFunc(regions, func(g history.Region) bool { return g.Name == name })
	for r := range w.now {
		if rank := &w.run.Ranks[r]; w.region < 0 {
			rank.Regions = append(rank.Regions, history.Region{Name: name})
		}
	}
	if w.region < 0 {
		w.region = len(regions)
	}
}

func (w *world) settle() {
	for r := range w.now {
		g := &w.run.Ranks[r].Regions[w.region]
		g.Time += w.now[r] - w.since[r]
		g.Entries++
		w.since[r] = w.now[r]
	}
}

// aside runs another thread of all ranks, beside what the main thread has done
// since the beginning.
func (w *world) aside(thread int, program func()) {
	now, region := slices.Clone(w.now), w.region
	for r := range w.now {
		w.now[r] = w.begin
	}
	w.thread, w.region = thread, 0
	program()
	w.thread, w.region = 0, region
	copy(w.now, now)
}

// call keeps a rank in MPI until `leave`, of which `late` is waiting for a rank
// that is late.
func (w *world) call(r int, m made, leave, late int64) {
	o := &w.options
	enter := w.now[r]
	w.now[r] = leave
	if w.thread == 0 {
		w.truth.mpi[r] += float64(leave - enter)
		w.truth.late[r] += float64(late)
		w.spans[r] = append(w.spans[r], [2]int64{enter, leave})
	}
	w.made[r]++
	drawn := history.Chance(w.made[r], history.Mix(uint64(r)+uint64(w.begin)))
	operation := uint32(0)
	if m.collective {
		g := &w.groups[m.comm]
		operation = history.Chance(m.sequence, g.id)
		m.comm = g.index[r]
		if m.function.Class != history.Wait {
			drawn = operation
		}
	}
	offset := w.offset[w.run.Ranks[r].Node]
	m.enter, m.leave = enter+offset, leave+offset
	m.thread, m.region = w.thread, w.region
	m.weight = 1 << o.timed
	m.untimed = !history.Kept(drawn, o.timed)
	if leave-enter <= longEvent && o.events > o.timed {
		m.eventWeight = 1 << o.events
		m.noEvent = !history.Kept(drawn, o.events)
	}
	if !m.untimed && !m.noEvent && !history.KeepEvent(m.collective, operation, m.enter, m.leave, o.level) {
		m.noEvent = true
		w.run.Ranks[r].Offered++
	}
	w.builder.call(r, m)
}

// all lets the members of a group do a collective operation.
func (w *world) all(f history.Function, comm int, root int) {
	g := &w.groups[comm]
	g.sequence++
	last := slices.MaxFunc(g.members, func(a, b int) int { return int(w.now[a] - w.now[b]) })
	lastAt, rootAt := w.now[last], w.now[g.members[root]]
	if len(g.members) > 1 {
		w.truth.last[last]++
	}
	prefix := int64(0)
	for i, r := range g.members {
		enter := w.now[r]
		prefix = max(prefix, enter)
		until, culprit := enter, r
		switch f.Class {
		case history.FromRoot:
			until, culprit = max(enter, rootAt), g.members[root]
		case history.ToRoot:
			if i == root {
				until, culprit = lastAt, last
			}
		case history.Prefix:
			until = prefix
		default:
			until, culprit = lastAt, last
		}
		if w.thread == 0 {
			w.truth.caused[culprit] += float64(until - enter)
		}
		m := made{function: f, comm: comm, collective: true, sequence: g.sequence, offset: 1}
		if f.Class == history.FromRoot || f.Class == history.ToRoot {
			m.peers = peers(g.members[root])
		}
		w.call(r, m, until+w.options.transfer, until-enter)
	}
}

// background lets all begin a nonblocking barrier, compute, and wait for it.
func (w *world) background(work func(r int) int64) {
	g := &w.groups[0]
	g.sequence++
	lastAt := int64(0)
	for _, r := range g.members {
		lastAt = max(lastAt, w.now[r])
	}
	for _, r := range g.members {
		m := made{function: ibarrier, collective: true, sequence: g.sequence, offset: 2}
		w.call(r, m, w.now[r]+200, 0)
		w.compute(r, work(r))
		late := max(lastAt-w.now[r], 0)
		m.function, m.offset = waitall, 3
		w.call(r, m, w.now[r]+late+w.options.transfer, late)
	}
}

// halo lets every rank exchange messages with its neighbours in a ring.
func (w *world) halo() {
	n := len(w.now)
	for r := range w.now {
		for _, to := range []int{(r + 1) % n, (r + n - 1) % n} {
			w.call(r, made{function: isend, peers: peers(to), offset: 4}, w.now[r]+200, 0)
		}
	}
	sent := slices.Clone(w.now)
	for r := range w.now {
		left, right := (r+n-1)%n, (r+1)%n
		until := max(sent[r], sent[left], sent[right])
		m := made{function: waitall, peers: peers(left, right), offset: 5}
		w.call(r, m, until+w.options.transfer, until-sent[r])
	}
}

// finish ends the run and returns what was recorded of it.
func (w *world) finish() *history.Run {
	w.settle()
	end := slices.Max(w.now)
	w.truth.elapsed = float64(end - w.begin)
	for r := range w.run.Ranks {
		rank := &w.run.Ranks[r]
		offset := w.offset[rank.Node]
		rank.Start, rank.End = w.begin+offset, w.now[r]+offset
		rank.BinWidth = max((end-w.begin)/200, 1)
		rank.Bins = make([]int64, 201)
		for _, span := range w.spans[r] {
			addBins(rank, span[0]+offset, span[1]+offset)
		}
	}
	return w.done()
}
