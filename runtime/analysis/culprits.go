package analysis

import (
	"cmp"
	"slices"

	"evenkeel/runtime/profile"
)

// mostPairs is the most pairs that a profile lists.
const mostPairs = 1024

// pair is how long one rank waited for another, in nanoseconds.
type pair struct {
	waiter, culprit int
	cost            float64
	times           int64
}

// pairs are who waited for whom, over all calls of all threads, the costliest
// first.
func pairs(all []waits) []pair {
	var list []pair
	for waiter := range all {
		byCulprit := map[int32]*pair{}
		for i := range all[waiter].caused {
			c := &all[waiter].caused[i]
			p := byCulprit[c.rank]
			if p == nil {
				p = &pair{waiter: waiter, culprit: int(c.rank)}
				byCulprit[c.rank] = p
			}
			p.cost += c.total
			p.times += c.times
		}
		for _, p := range byCulprit {
			if p.cost > 0 {
				list = append(list, *p)
			}
		}
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.waiter, b.waiter), cmp.Compare(a.culprit, b.culprit))
	})
	return list
}

// blame fills the culprits, the pairs, and what each rank caused.
func (j *job) blame(p *profile.Profile, all []waits, times []int64) {
	late := 0.0
	for r := range all {
		for _, f := range all[r].accounts {
			late += f.late
		}
	}
	costs := make([]float64, len(all))
	victims := make([]int, len(all))
	for i := range victims {
		victims[i] = none
	}
	p.WaitsFor = []profile.Pair{}
	for _, pair := range pairs(all) {
		costs[pair.culprit] += pair.cost
		if victims[pair.culprit] == none { // the costliest comes first
			victims[pair.culprit] = pair.waiter
		}
		if len(p.WaitsFor) < mostPairs && p.Ranks[pair.waiter].World == p.Ranks[pair.culprit].World {
			p.WaitsFor = append(p.WaitsFor, profile.Pair{
				World: p.Ranks[pair.waiter].World, Waiter: p.Ranks[pair.waiter].Rank, Culprit: p.Ranks[pair.culprit].Rank,
				Cost: seconds(pair.cost), Times: pair.times,
			})
		}
	}
	p.Culprits = []profile.Culprit{}
	for r, cost := range costs {
		p.Ranks[r].Caused = seconds(cost)
		if cost <= 0 {
			continue
		}
		p.Culprits = append(p.Culprits, profile.Culprit{
			World: p.Ranks[r].World, Rank: p.Ranks[r].Rank, Cost: seconds(cost), Share: min(cost/late, 1),
			Times: times[r], Victim: p.Ranks[victims[r]].Rank,
		})
	}
	slices.SortFunc(p.Culprits, func(a, b profile.Culprit) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank))
	})
}
