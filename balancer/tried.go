package balancer

import "slices"

// tried is what was measured of partitions while the load was the same, the last one first.
// Of few items a model can be wrong about the same ranges again and again, as a single item is
// a large part of what a rank takes: what they were seen to take twice is the better estimate.
type tried []attempt

// attempt is one partition: what the ranks took with it, as parts of their mean, in the mean of
// so many cycles. Before it was come back to, it may be the load that was another one.
type attempt struct {
	partition Partition
	took      []float64
	cycles    float64
	again     bool
}

// fewItems are so few for each rank that one of them may be more than the threshold. Of more, no
// model is wrong for that, and ranges are hardly ever the same twice.
const fewItems = 64

// mostTried is how many partitions are kept.
const mostTried = 16

// note takes what was measured in a cycle. If it is other than the same partition took before,
// by more than noise, the load has changed, and nothing is known of other partitions any more.
func (t *tried) note(p Partition, took []float64, noise float64) {
	mean := meanOf(took)
	if mean == 0 {
		return
	}
	k := slices.IndexFunc(*t, func(a attempt) bool { return a.partition.Equal(p) })
	if k >= 0 && apart((*t)[k].took, took) > hardlyApart+float64(surprising*noise) {
		*t, k = (*t)[:0], -1
	}
	now := attempt{partition: p, took: make([]float64, len(took))}
	if k >= 0 {
		now = (*t)[k]
		now.again = now.again || k > 0
		*t = slices.Delete(*t, k, k+1)
	} else if len(*t) == mostTried {
		*t = (*t)[:mostTried-1]
	}
	now.cycles++
	for r, seconds := range took {
		now.took[r] += float64((seconds/mean - now.took[r]) / now.cycles)
	}
	*t = slices.Insert(*t, 0, now)
}

// longest is what the slowest rank was seen to take with a partition, as a part of the mean; 0: it
// is not known.
func (t tried) longest(p Partition) float64 {
	for _, a := range t {
		if a.again && a.partition.Equal(p) {
			return slices.Max(a.took)
		}
	}
	return 0
}

// best is the partition that was seen to be the fastest, and its longest; nil: none is known.
func (t tried) best() (best Partition, longest float64) {
	for _, a := range t {
		if seen := slices.Max(a.took); a.again && (best == nil || seen < longest) {
			best, longest = a.partition, seen
		}
	}
	return best, longest
}
