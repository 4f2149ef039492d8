package balancer

import "math"

// model predicts what a range takes on a rank: the cost of its items, times what
// the rank needs for a unit of cost.
type model struct {
	weights  *weights
	slowness []float64 // by rank; nil: 1
}

func (m *model) of(rank int) float64 {
	if m.slowness == nil {
		return 1
	}
	return m.slowness[rank]
}

// predict fills times with what each rank takes in a cycle under p, and returns
// the longest.
func (m *model) predict(p Partition, times []float64) float64 {
	c := cursor{weights: m.weights}
	longest, before := 0.0, 0.0
	for r := range p.Ranks() {
		end := c.before(p[r+1])
		t := m.of(r) * (end - before)
		if times != nil {
			times[r] = t
		}
		longest, before = max(longest, t), end
	}
	return longest
}

// ideal is the least time in which the ranks could do all the work, if items
// could be cut: no partition is faster.
func (m *model) ideal(ranks int) float64 {
	speed := 0.0
	for r := range ranks {
		speed += 1 / m.of(r)
	}
	return m.weights.total() / speed
}

// close enough to the ideal is a partition whose longest time is above it by
// this share at most.
const closeEnough = 1e-3

// limits are the numbers of items that ranks may have.
type limits struct {
	least int64
	most  []int64 // nil: no limit
}

func (l limits) mostOf(rank int, items int64) int64 {
	if l.most == nil {
		return items
	}
	return min(items, l.most[rank])
}

// divide returns the partition whose slowest rank is as fast as can be, to
// within closeEnough, among those that keep the limits.
//
// If items could be cut, each bound would lie where the cost before it is the
// share of the ranks before it, a rank's share being as its speed. These targets
// are rounded to whole items. Where this is not good enough, since items are few
// or limits bind, the time of the slowest rank is bisected: that one can be met
// is found by giving each rank, from the last to the first, as much as it can do
// in it (the chains-on-chains problem; Pinar and Aykanat, "Fast optimal load
// balancing algorithms for 1D partitioning", 2004). Among the partitions that
// meet it the one nearest to the targets is taken.
func divide(m *model, items int64, ranks int, l limits) Partition {
	d := division{model: m, items: items, limits: l, targets: m.targets(items, ranks), low: make(Partition, ranks+1)}
	d.possible(math.Inf(1))
	best := d.within(math.Inf(1))
	longest, ideal := m.predict(best, nil), m.ideal(ranks)
	if longest <= float64(ideal*(1+closeEnough)) {
		return best
	}
	lower, upper := ideal, longest
	for upper-lower > float64(closeEnough/2*lower) {
		middle := lower + float64((upper-lower)/2)
		if middle == lower || middle == upper {
			break
		}
		if d.possible(middle) {
			upper = middle
		} else {
			lower = middle
		}
	}
	d.possible(upper)
	if nearest := d.within(upper); m.predict(nearest, nil) < longest {
		return nearest
	}
	return best
}

// targets are where the bounds would lie if items could be cut.
func (m *model) targets(items int64, ranks int) []int64 {
	speed := 0.0
	for r := range ranks {
		speed += 1 / m.of(r)
	}
	targets := make([]int64, ranks+1)
	c := cursor{weights: m.weights}
	before := 0.0
	for r := range ranks {
		before += 1 / m.of(r)
		targets[r+1] = min(items, int64(math.Round(c.place(m.weights.total()*(before/speed)))))
	}
	targets[ranks] = items
	return targets
}

// division is a partition in the making.
type division struct {
	*model
	items int64
	limits
	targets []int64
	// low[r] is the least bound from which the ranks from r on can do the rest in
	// the time that was last found possible or not.
	low Partition
}

// possible says whether the ranks can do everything in this time.
func (d *division) possible(time float64) bool {
	ranks := len(d.targets) - 1
	c := cursor{weights: d.weights, part: len(d.weights.at) - 2}
	d.low[ranks] = d.items
	for r := ranks - 1; r >= 0; r-- {
		end := d.low[r+1]
		first := max(c.first(end, time/d.of(r)), end-d.mostOf(r, d.items))
		d.low[r] = max(0, min(first, end-d.least))
	}
	return d.low[0] == 0
}

// within is the partition nearest to the targets in which no rank takes longer
// than a time that was just found possible, unless the limits leave no choice.
func (d *division) within(time float64) Partition {
	ranks := len(d.targets) - 1
	p := make(Partition, ranks+1)
	c := cursor{weights: d.weights}
	for r := range ranks {
		low := max(d.low[r+1], p[r]+d.least)
		high := min(max(c.last(p[r], time/d.of(r)), low), p[r]+d.mostOf(r, d.items), d.items-int64(ranks-r-1)*d.least)
		p[r+1] = min(high, max(low, d.targets[r+1]))
	}
	p[ranks] = d.items
	return p
}
