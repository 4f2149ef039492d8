package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

const (
	// worthwhile is the share of elapsed time that better balance must be able
	// to save before anything is advised.
	worthwhile = 0.02
	// enoughCycles is how many cycles must have been seen before anything is
	// said about steadiness.
	enoughCycles = 8
	// mostParts is into how many parts of equal time a job is cut that does
	// not wait in collective operations; into fewer where its ranks have not
	// waitsPerPart calls in each that can wait, for a part should hold several
	// cycles.
	mostParts    = 32
	waitsPerPart = 4
	// mostSlowest is how many ranks Balance.Slowest lists.
	mostSlowest = 8
)

// balance says how the load is spread, how steadily, and what would help.
func (j *job) balance(p *profile.Profile, all []waits) profile.Balance {
	b := profile.Balance{Kind: "unknown", Advice: "nothing", Slowest: j.slowest(p.Ranks)}
	e := p.Total.Efficiencies
	if e.LoadBalance == nil || *e.LoadBalance <= 0 {
		b.Why = "Too little was seen to say how the load is spread."
		return b
	}
	b.Imbalance = 1 / *e.LoadBalance - 1
	core := p.Total.Useful + p.Total.MPI
	waiting := 0.0
	if core > 0 {
		waiting = min(p.Total.Late/core, 1)
	}
	b.Gain = max(waiting, *e.Communication-*e.Parallel)
	c, cycles := j.steadiness(all, waiting)
	if sum := c.sum(); sum > 0 {
		b.Constant, b.Drifting, b.Random = c.constant/sum, c.drifting/sum, c.random/sum
	}
	advise(&b, cycles, c.sum() > 0, p)
	return b
}

// advise fills Kind, Advice and Why.
func advise(b *profile.Balance, cycles float64, varies bool, p *profile.Profile) {
	gain := percent(b.Gain)
	switch {
	case b.Gain < worthwhile:
		b.Kind = "balanced"
		b.Why = fmt.Sprintf("Perfect balance would save %s of the elapsed time at most.", gain)
	case cycles < enoughCycles || !varies:
		b.Why = fmt.Sprintf("Perfect balance would save up to %s of the elapsed time, but too few cycles were seen to say how steady the imbalance is.", gain)
	case b.Random > 0.5:
		b.Kind, b.Advice = "random", "split"
		b.Why = fmt.Sprintf("Who is slow changes from one cycle to the next (%s of the variance), so no fixed partition fits; tasks that are smaller and more than the ranks would save up to %s of the elapsed time.", percent(b.Random), gain)
	case b.Constant >= b.Drifting:
		b.Kind, b.Advice = "constant", "repartition"
		b.Why = fmt.Sprintf("The same ranks are slow throughout (%s of the variance)%s; moving work from them to the others would save up to %s of the elapsed time.", percent(b.Constant), slowestOf(b, p), gain)
	default:
		b.Kind, b.Advice = "drifting", "repartition"
		b.Why = fmt.Sprintf("Who is slow changes slowly (%s of the variance); moving work again from time to time would save up to %s of the elapsed time.", percent(b.Drifting), gain)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// slowestOf names the rank with the most useful time where it stands out.
func slowestOf(b *profile.Balance, p *profile.Profile) string {
	if len(b.Slowest) == 0 || b.Imbalance < worthwhile {
		return ""
	}
	return fmt.Sprintf(", above all rank %d, and the slowest computes %.2f times the mean", b.Slowest[0], 1+b.Imbalance)
}

// slowest are the ranks of the first world with the most useful time.
func (j *job) slowest(ranks []profile.Rank) []int {
	var order []int
	for r := range ranks {
		if j.ranks[r].world == 0 {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranks[b].Useful, ranks[a].Useful) })
	out := []int{}
	for _, r := range order[:min(len(order), mostSlowest)] {
		out = append(out, ranks[r].Rank)
	}
	return out
}

// steadiness divides the variance of useful time between ranks and cycles, and
// says how many cycles it saw. A cycle ends with an operation in which all
// wait for all; where most of the waiting is not in such operations, it is a
// part of the run. waiting is the share of core time that ranks waited for
// late ones.
func (j *job) steadiness(all []waits, waiting float64) (components, float64) {
	if c, cycles := j.atOperations(); cycles >= enoughCycles && j.mostlyCollective(all) {
		return c, cycles
	}
	c, cycles, seen := j.overTime()
	// What is waited for beyond the differences over these parts comes from
	// differences that change faster.
	if seen < waiting {
		c = c.explain(seen / waiting)
	}
	return c, cycles
}

// mostlyCollective says whether at least half of the waiting for late ranks
// is in operations in which all wait for all.
func (j *job) mostlyCollective(all []waits) bool {
	collective, rest := 0.0, 0.0
	for r := range all {
		for a, f := range all[r].accounts {
			if class := j.run.Ranks[r].Accounts[a].Function.Class; class == history.AllToAll || class == history.Create {
				collective += f.late
			} else {
				rest += f.late
			}
		}
	}
	return collective >= rest
}

// atOperations sums the components over the places with such operations, each
// with as many operations as there were.
func (j *job) atOperations() (components, float64) {
	keys := make([]seriesKey, 0, len(j.operations.series))
	for key := range j.operations.series {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b seriesKey) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.site, b.site))
	})
	var sum components
	cycles := 0.0
	for _, key := range keys {
		s := j.operations.series[key]
		sum.add(s.components(), s.weight)
		cycles = max(cycles, s.seen)
	}
	return sum, cycles
}

// overTime takes parts of the run as cycles. The third figure is the share of
// the elapsed time that perfect balance in each part would save.
func (j *job) overTime() (c components, cycles, gain float64) {
	rows := j.wholeRows()
	parts := min(mostParts, j.grid.bins, j.waitsPerRank()/waitsPerPart)
	if len(rows) < 2 || parts < enoughCycles {
		return components{}, 0, 0
	}
	s := series{rows: len(rows)}
	lost, running := 0.0, 0.0
	for k := range parts {
		useful := make([]float64, len(rows))
		for i, row := range rows {
			for b := k * j.grid.bins / parts; b < (k+1)*j.grid.bins/parts; b++ {
				useful[i] += row.running[b] - row.mpi[b]
				running += row.running[b]
			}
		}
		center(useful)
		lost += slices.Max(useful) * float64(len(rows))
		s.cycles = append(s.cycles, cycle{block: k * blocks / parts, differences: useful})
	}
	if running > 0 {
		gain = lost / running
	}
	return s.components(), float64(parts), gain
}

// waitsPerRank is how many calls that can wait a rank's main thread made.
func (j *job) waitsPerRank() int {
	calls := int64(0)
	for r := range j.run.Ranks {
		for i := range j.run.Ranks[r].Accounts {
			a := &j.run.Ranks[r].Accounts[i]
			if class := a.Function.Class; a.Thread == 0 && class != history.Local && class != history.Begin {
				calls += a.Calls
			}
		}
	}
	return int(calls / int64(len(j.run.Ranks)))
}

// wholeRows are the rows of the first world's ranks.
func (j *job) wholeRows() []gridRow {
	var rows []gridRow
	for r := range j.grid.rows {
		if j.ranks[r].world == 0 {
			rows = append(rows, j.grid.rows[r])
		}
	}
	return rows
}
