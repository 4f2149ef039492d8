package analysis

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

const (
	mostWorst    = 64 // operations in Profile.Worst
	mostArrivals = 64 // in each, the first and the last
)

// operations is what the complete operations of a job come to.
type operations struct {
	job     *job
	matched int64
	comms   map[uint64]*commOperations
	worst   worst
	series  map[seriesKey]*series
}

// commOperations is what those on one communicator come to.
type commOperations struct {
	spreads []float64 // s
	last    map[int]int64
}

func newOperations(j *job) operations {
	return operations{job: j, comms: map[uint64]*commOperations{}, series: map[seriesKey]*series{}}
}

// add takes in the operation that m has just matched.
func (o *operations) add(m *matcher) {
	op := m.op
	o.matched++
	for _, a := range op.Arrivals {
		o.job.ranks[a.Rank].tookPart++
	}
	o.job.ranks[op.First().Rank].first++
	o.job.ranks[op.Last().Rank].lastIn++
	own := o.job.run.Ranks[op.First().Rank].Comms[m.event(op.First()).Comm].Own()
	comm := o.comms[own]
	if comm == nil {
		comm = &commOperations{last: map[int]int64{}}
		o.comms[own] = comm
	}
	comm.spreads = append(comm.spreads, seconds(float64(op.Spread())))
	comm.last[op.Last().Rank]++
	if o.worst.wants(op) {
		o.worst.add(o.job.describe(m))
	}
	o.addSeries(m)
}

// worst is a heap of the operations with the widest spread, the least wide on
// top.
type worst []profile.Operation

func (w worst) Len() int           { return len(w) }
func (w worst) Less(a, b int) bool { return compareWorst(&w[a], &w[b]) > 0 }
func (w worst) Swap(a, b int)      { w[a], w[b] = w[b], w[a] }
func (w *worst) Push(x any)        { *w = append(*w, x.(profile.Operation)) }
func (w *worst) Pop() any {
	x := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return x
}

// compareWorst puts the widest first.
func compareWorst(a, b *profile.Operation) int {
	return cmp.Or(cmp.Compare(b.Spread, a.Spread), cmp.Compare(a.Begin, b.Begin),
		cmp.Compare(a.Communicator, b.Communicator), cmp.Compare(a.Sequence, b.Sequence))
}

func (w worst) wants(op *history.Operation) bool {
	return op.Spread() > 0 && (len(w) < mostWorst || seconds(float64(op.Spread())) > w[0].Spread)
}

func (w *worst) add(op profile.Operation) {
	heap.Push(w, op)
	if len(*w) > mostWorst {
		heap.Pop(w)
	}
}

// ordered is the operations, the widest first.
func (w worst) ordered() []profile.Operation {
	sorted := append([]profile.Operation{}, w...)
	slices.SortFunc(sorted, func(a, b profile.Operation) int { return compareWorst(&a, &b) })
	return sorted
}

// describe is an operation as the profile has it.
func (j *job) describe(m *matcher) profile.Operation {
	op := m.op
	first, last := op.First(), op.Last()
	comm := &j.run.Ranks[first.Rank].Comms[m.event(first).Comm]
	out := profile.Operation{
		Call: op.Function.Name, Communicator: commName(comm), Sequence: history.Number(op.Sequence),
		Begin: seconds(float64(first.Enter - j.start)), Spread: seconds(float64(op.Spread())),
		First: j.run.Ranks[first.Rank].Task.Rank, Last: j.run.Ranks[last.Rank].Task.Rank,
		Error: seconds(float64(j.clockError(first.Rank, last.Rank))),
	}
	for _, a := range slices.Concat(op.Arrivals, op.Completions) {
		c := m.callOf(a)
		out.Cost += seconds(float64(c.until - c.enter))
	}
	for i, a := range op.Arrivals {
		if i < mostArrivals/2 || i >= len(op.Arrivals)-mostArrivals/2 {
			out.Arrivals = append(out.Arrivals, profile.Arrival{
				Rank: j.run.Ranks[a.Rank].Task.Rank, At: seconds(float64(a.Enter - first.Enter)),
			})
		}
	}
	return out
}

func commName(c *history.Comm) string {
	if c.Name != "" {
		return c.Name
	}
	return commID(c.Own())
}

func commID(id uint64) string { return strconv.FormatUint(id, 16) }
