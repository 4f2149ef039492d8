package balancer

import (
	"cmp"
	"slices"
)

// The description's rule: the slowest rank gives items to the fastest, so many
// that both take the same time if the time of each is linear in its items. Since
// ranges are contiguous, this adds an offset to the ending address of every rank
// from one to the other; the ranks between shift, and keep their sizes.

// measured is a point on the line of each rank: the range, what it took, and what
// it cost as parts of the mean, if the program said so.
type measured struct {
	partition Partition
	took      []float64
	cost      []float64
}

// pairs finds whom the slowest rank gives to.
type pairs struct {
	limits
	now Partition
	// took is what each rank is expected to take, and earlier what it took with
	// another range, from which the slope of its line is known.
	took    []float64
	earlier measured
	slowest int
}

func newPairs(now Partition, took []float64, earlier measured, l limits) pairs {
	p := pairs{limits: l, now: now, took: took, earlier: earlier}
	for r, t := range took {
		if t > took[p.slowest] {
			p.slowest = r
		}
	}
	return p
}

const (
	tellingChange = 0.05 // a rank's items must have changed by this share to tell its slope
	steepest      = 4    // a slope is believed if it is within this factor of the mean cost of an item
)

// slope is what one item more or less makes on a rank, in seconds: by the two
// last ranges that it had, if they differ enough, else the mean of its items. A
// rank without items is taken for as fast as the mean of all.
func (p *pairs) slope(rank int) float64 {
	items := p.now.Size(rank)
	overall := meanOf(p.took) / (float64(p.now.Items()) / float64(p.now.Ranks()))
	if items == 0 {
		return overall
	}
	mean := max(p.took[rank]/float64(items), leastShare*overall)
	if p.earlier.partition == nil {
		return mean
	}
	change := items - p.earlier.partition.Size(rank)
	if max(change, -change) < int64(tellingChange*float64(items))+1 {
		return mean
	}
	slope := (p.took[rank] - p.earlier.took[rank]) / float64(change)
	if !(slope >= mean/steepest && slope <= mean*steepest) {
		return mean
	}
	return slope
}

// fastest are the k ranks that are expected to take the least time, of those
// that have room and are faster than the slowest; the fastest first.
func (p *pairs) fastest(k int) []int {
	var ranks []int
	mean := meanOf(p.took)
	for r, t := range p.took {
		if r == p.slowest || t >= p.took[p.slowest] || p.room(r) == 0 || k == 0 && t >= mean {
			continue
		}
		ranks = append(ranks, r)
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(p.took[a], p.took[b]) })
	if k > 0 && len(ranks) > k {
		ranks = ranks[:k]
	}
	return ranks
}

func (p *pairs) room(rank int) int64 { return p.mostOf(rank, p.now.Items()) - p.now.Size(rank) }

// one is the partition after a pairwise step.
func (p *pairs) one() Partition { return p.even(1) }

// even gives as many items to each of the k fastest: so many that the slowest
// then takes as long as the first of them to be as slow.
func (p *pairs) even(k int) Partition {
	takers := p.fastest(k)
	if len(takers) == 0 {
		return p.now
	}
	own := p.slope(p.slowest)
	each := -1.0
	for _, r := range takers {
		if x := (p.took[p.slowest] - p.took[r]) / (float64(own*float64(len(takers))) + p.slope(r)); each < 0 || x < each {
			each = x
		}
	}
	gifts := make([]float64, len(takers))
	for i := range gifts {
		gifts[i] = each
	}
	return p.give(takers, gifts)
}

// weighted gives to the k fastest so that all of them and the slowest finish at
// the same time; those that take longer than that get nothing.
func (p *pairs) weighted(k int) Partition {
	takers := p.fastest(k)
	own := p.slope(p.slowest)
	speed, work := 1/own, p.took[p.slowest]/own
	together := p.took[p.slowest]
	for i, r := range takers {
		if p.took[r] >= together {
			takers = takers[:i]
			break
		}
		speed += 1 / p.slope(r)
		work += p.took[r] / p.slope(r)
		together = work / speed
	}
	gifts := make([]float64, len(takers))
	for i, r := range takers {
		gifts[i] = (together - p.took[r]) / p.slope(r)
	}
	return p.give(takers, gifts)
}

// give moves items, rounded down, from the slowest to the takers, within the
// limits.
func (p *pairs) give(takers []int, gifts []float64) Partition {
	sizes := make([]int64, p.now.Ranks())
	for r := range sizes {
		sizes[r] = p.now.Size(r)
	}
	for i, r := range takers {
		gift := min(int64(max(0, gifts[i])+almostItem), p.room(r), sizes[p.slowest]-p.least)
		sizes[r] += gift
		sizes[p.slowest] -= gift
	}
	next := make(Partition, len(p.now))
	for r, size := range sizes {
		next[r+1] = next[r] + size
	}
	return next
}

// longest is what the slowest of those takes after a step whose sizes it changes.
// Where several ranks are slow, it takes several steps before the job gains
// anything, and the first must not be left undone for that.
func (p *pairs) longest(next Partition) float64 {
	longest := 0.0
	for r, t := range p.took {
		if change := next.Size(r) - p.now.Size(r); change != 0 {
			longest = max(longest, t+float64(p.slope(r)*float64(change)))
		}
	}
	return longest
}

// almostItem makes 199.9999999 items, which is 200 with the errors of floating
// point, 200.
const almostItem = 1e-6
