package balancer

import "math"

// weights is how much of the cost lies before each item: sum[i] before item
// at[i], and straight lines between. at begins with 0, ends with the number of
// items and rises; so does sum.
type weights struct {
	at  []int64
	sum []float64
}

// total is the cost of all items.
func (w *weights) total() float64 { return w.sum[len(w.sum)-1] }

// uniform are weights of 1 for each item.
func uniform(items int64) *weights {
	return &weights{at: []int64{0, items}, sum: []float64{0, float64(items)}}
}

// leastShare is the least that a part of the items is taken to cost, as a share
// of what it would cost if all items cost the same: with nothing, there would be
// no way to tell where in it a bound lies.
const leastShare = 1e-6

// nothing is a total cost, in whatever unit, that is none: near the smallest
// numbers, parts of it could not be told from each other.
const nothing = 1e-200

// weigh makes weights of the cost of each part of the items: part i is [at[i],
// at[i+1]).
func weigh(at []int64, costs []float64) *weights {
	total := 0.0
	for _, cost := range costs {
		total += cost
	}
	if total < nothing {
		total = 1
	}
	least := leastShare * total / float64(at[len(at)-1])
	w := &weights{at: at, sum: make([]float64, len(at))}
	for i, cost := range costs {
		w.sum[i+1] = w.sum[i] + max(cost, float64(least*float64(at[i+1]-at[i])))
	}
	return w
}

// cursor looks weights up at places that do not jump far, in a time that does
// not grow with the number of parts.
type cursor struct {
	*weights
	part int
}

// before is the cost of the items before this one.
func (c *cursor) before(item int64) float64 {
	for c.at[c.part] > item {
		c.part--
	}
	for c.part < len(c.at)-2 && c.at[c.part+1] <= item {
		c.part++
	}
	inside := float64(item-c.at[c.part]) / float64(c.at[c.part+1]-c.at[c.part])
	return c.sum[c.part] + float64(inside*(c.sum[c.part+1]-c.sum[c.part]))
}

// place is where in the items so much of the cost has come together: the
// reverse of before, between items too.
func (c *cursor) place(sum float64) float64 {
	for c.part > 0 && c.sum[c.part] > sum {
		c.part--
	}
	for c.part < len(c.at)-2 && c.sum[c.part+1] <= sum {
		c.part++
	}
	inside := (sum - c.sum[c.part]) / (c.sum[c.part+1] - c.sum[c.part])
	inside = min(1, max(0, inside))
	return float64(c.at[c.part]) + float64(inside*float64(c.at[c.part+1]-c.at[c.part]))
}

// first is the first item for which limit, or less, lies between it and end.
func (c *cursor) first(end int64, limit float64) int64 {
	if math.IsInf(limit, 1) {
		return 0
	}
	return min(end, max(0, int64(math.Ceil(c.place(c.before(end)-limit)))))
}

// last is the last bound so that limit, or less, lies between start and it.
func (c *cursor) last(start int64, limit float64) int64 {
	items := c.at[len(c.at)-1]
	if math.IsInf(limit, 1) {
		return items
	}
	return max(start, min(items, int64(math.Floor(c.place(c.before(start)+limit)))))
}

// terrain is what the items cost, learnt from what ranges of them took: cut into
// cells, each of which is taken to cost the same throughout. Every partition that
// was measured leaves its bounds, so the cells become finer where bounds are
// moved, which is where it matters.
type terrain struct {
	at   []int64 // bounds of the cells
	cost []float64
	used []int32 // when the bound before a cell was last that of a partition
	// doubt is the share by which cells are made alike within the next range that
	// is fitted: what was learnt of a load that changes becomes wrong.
	doubt float64
}

func newTerrain(items int64) *terrain {
	return &terrain{at: []int64{0, items}, cost: []float64{1}, used: []int32{0}}
}

// cellsPerRank bounds the cells: so many for each rank, and some more.
const (
	cellsPerRank = 3
	someCells    = 256
)

// fit makes the cells within each rank's range cost together what the range
// took. Within a range they keep their proportions.
func (t *terrain) fit(p Partition, took []float64, now int32) {
	t.forget(p.Ranks())
	cells := len(t.cost) + p.Ranks()
	next := terrain{at: make([]int64, 0, cells+1), cost: make([]float64, 0, cells), used: make([]int32, 0, cells)}
	cell := 0
	for r := range p.Ranks() {
		begin, sum := len(next.cost), 0.0
		for at := p[r]; at < p[r+1]; {
			for t.at[cell+1] <= at {
				cell++
			}
			end := min(p[r+1], t.at[cell+1])
			cost := float64(t.cost[cell] * (float64(end-at) / float64(t.at[cell+1]-t.at[cell])))
			used := t.used[cell]
			if at == p[r] {
				used = now
			} else if at != t.at[cell] {
				used = 0
			}
			next.at, next.cost, next.used = append(next.at, at), append(next.cost, cost), append(next.used, used)
			sum += cost
			at = end
		}
		for i := begin; i < len(next.cost); i++ {
			end := p[r+1]
			if i+1 < len(next.at) {
				end = next.at[i+1]
			}
			alike := float64(took[r] * (float64(end-next.at[i]) / float64(p.Size(r))))
			if sum > 0 {
				own := float64(took[r] * (next.cost[i] / sum))
				next.cost[i] = own + float64(t.doubt*(alike-own))
			} else {
				next.cost[i] = alike
			}
		}
	}
	next.at = append(next.at, p.Items())
	*t = next
}

// forget joins cells whose bound was not used for longest, until few enough are
// left for one more partition.
func (t *terrain) forget(ranks int) {
	limit := cellsPerRank*ranks + someCells - ranks
	for oldest := int32(0); len(t.cost) > limit; {
		oldest = t.used[len(t.used)-1]
		for _, used := range t.used[1:] {
			oldest = min(oldest, used)
		}
		kept := 1
		for i := 1; i < len(t.cost); i++ {
			if t.used[i] == oldest && len(t.cost)-(i-kept) > limit {
				t.cost[kept-1] += t.cost[i]
				continue
			}
			t.at[kept], t.cost[kept], t.used[kept] = t.at[i], t.cost[i], t.used[i]
			kept++
		}
		t.at[kept] = t.at[len(t.at)-1]
		t.at, t.cost, t.used = t.at[:kept+1], t.cost[:kept], t.used[:kept]
	}
}

// weights are the terrain's.
func (t *terrain) weights() *weights { return weigh(t.at, t.cost) }
