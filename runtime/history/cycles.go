package history

import (
	"cmp"
	"slices"
)

// Cycle is what the ranks did between two operations that all of them took part
// in, at one place in the program: a computation cycle.
type Cycle struct {
	Useful []int64 // ns that each rank was outside MPI, by index into Run.Ranks
	Length int64   // ns from the last rank's leaving one operation to its leaving the next
}

// place is where in the program, and on which communicator, an operation was
// called.
type place struct {
	comm   uint64
	module string
	offset uint64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.comm, q.comm), cmp.Compare(p.module, q.module), cmp.Compare(p.offset, q.offset))
}

// Cycles are the computation cycles of a run, in their order. They end where the
// ranks' arrivals are the furthest apart, of all places in which all ranks take
// part. Only cycles are among them between whose ends no operation of that place
// is missing: of a long run, a part. There are none where no place was seen twice.
func Cycles(run *Run) []Cycle {
	spreads := map[place]int64{}
	for op := range Operations(run) {
		if p, all := placeOf(run, op); all {
			spreads[p] += op.Spread() + 1
		}
	}
	ends, found := place{}, false
	for p, spread := range spreads {
		if !found || spread > spreads[ends] || spread == spreads[ends] && p.compare(ends) < 0 {
			ends, found = p, true
		}
	}
	if !found {
		return nil
	}
	return cyclesBetween(run, operationsAt(run, ends))
}

// placeOf is where an operation was called, by its first member; and whether all
// ranks of the run took part.
func placeOf(run *Run, op *Operation) (p place, all bool) {
	if !op.Complete || op.Inter || op.Size != len(run.Ranks) || len(op.Completions) > 0 {
		return place{}, false
	}
	first := slices.MinFunc(op.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.Place, b.Place) })
	rank := &run.Ranks[first.Rank]
	account := &rank.Accounts[rank.Events[first.Event].Account]
	return place{op.CommID, account.Module, account.Offset}, true
}

// passage is how the ranks went through an operation.
type passage struct {
	number       uint64
	enter, leave []int64 // by rank
}

func operationsAt(run *Run, at place) []passage {
	var passages []passage
	for op := range Operations(run) {
		if p, all := placeOf(run, op); !all || p != at {
			continue
		}
		ranks := len(run.Ranks)
		p := passage{op.Sequence, make([]int64, ranks), make([]int64, ranks)}
		for _, a := range op.Arrivals {
			p.enter[a.Rank], p.leave[a.Rank] = a.Enter, a.Leave
		}
		passages = append(passages, p)
	}
	slices.SortFunc(passages, func(a, b passage) int { return cmp.Compare(a.number, b.number) })
	return passages
}

// cyclesBetween makes cycles of neighbouring passages. The least distance of their
// numbers is that of a cycle; where it is more, passages are missing.
func cyclesBetween(run *Run, passages []passage) []Cycle {
	least := uint64(0)
	for k := 1; k < len(passages); k++ {
		if step := passages[k].number - passages[k-1].number; least == 0 || step < least {
			least = step
		}
	}
	inside := make([]inMPI, len(run.Ranks))
	for r := range inside {
		inside[r] = inMPI{events: run.Ranks[r].Events}
	}
	var cycles []Cycle
	for k := 1; k < len(passages); k++ {
		from, to := &passages[k-1], &passages[k]
		if to.number-from.number != least {
			continue
		}
		c := Cycle{Useful: make([]int64, len(run.Ranks)), Length: slices.Max(to.leave) - slices.Max(from.leave)}
		for r := range c.Useful {
			c.Useful[r] = max(0, to.enter[r]-from.leave[r]-inside[r].between(from.leave[r], to.enter[r]))
		}
		cycles = append(cycles, c)
	}
	return cycles
}

// inMPI sums a rank's time in MPI, over spans that are asked for in order.
type inMPI struct {
	events []Event
	next   int
}

// between is the time of the main thread's calls that begin in a span, those
// included that they stand for.
func (m *inMPI) between(from, to int64) (sum int64) {
	for ; m.next < len(m.events) && m.events[m.next].Enter < to; m.next++ {
		if e := &m.events[m.next]; e.Enter >= from && e.Thread == 0 {
			sum += (e.Leave - e.Enter) * max(1, e.Weight)
		}
	}
	return sum
}
