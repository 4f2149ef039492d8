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

// of is what each range of a partition costs.
func (w *weights) of(p Partition) []float64 {
	cost := make([]float64, p.Ranks())
	c := cursor{weights: w}
	before := 0.0
	for r := range cost {
		end := c.before(p[r+1])
		cost[r], before = end-before, end
	}
	return cost
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
	cell []cell
}

// cell is what some items cost together. unsure is by which share that is likely to be
// wrong, used when the bound before it was last that of a partition.
type cell struct {
	cost, unsure float64
	used         int32
}

func newTerrain(items int64) *terrain {
	return &terrain{at: []int64{0, items}, cell: []cell{{cost: 1, unsure: guessed}}}
}

const (
	// cellsPerRank bounds the cells: so many for each rank, and some more.
	cellsPerRank = 3
	someCells    = 256
	// guessed is how unsure the cost of a part of a cell is, as nothing tells how it
	// lies in the cell; known that of a cell that was measured by itself.
	guessed = 0.5
	known   = 0.05
	// leastLeft is what is left at least of a cell's cost when it is less than it was
	// taken to be, before all cells of a range get less.
	leastLeft = 0.125
)

// fit makes the cells within each rank's range cost together what the range took.
func (t *terrain) fit(p Partition, took []float64, now int32) {
	t.forget(p.Ranks())
	t.scale(took)
	room := len(t.cell) + p.Ranks()
	next := terrain{at: make([]int64, 0, room+1), cell: make([]cell, 0, room)}
	from := 0
	for r := range p.Ranks() {
		begin, cut := len(next.cell), false
		for at := p[r]; at < p[r+1]; {
			for t.at[from+1] <= at {
				from++
			}
			end := min(p[r+1], t.at[from+1])
			piece, whole := t.cell[from], t.at[from+1]-t.at[from]
			if end-at < whole {
				piece.cost = float64(piece.cost * (float64(end-at) / float64(whole)))
				piece.unsure, cut = guessed, true
			}
			if at == p[r] {
				piece.used = now
			}
			next.at, next.cell = append(next.at, at), append(next.cell, piece)
			at = end
		}
		next.adjust(begin, p[r+1], took[r], cut)
	}
	next.at = append(next.at, p.Items())
	*t = next
}

// scale makes all cells cost together what all ranks took.
func (t *terrain) scale(took []float64) {
	sum := 0.0
	for _, c := range t.cell {
		sum += c.cost
	}
	if sum < nothing {
		return // a factor would be beyond all numbers
	}
	factor := meanOf(took) * float64(len(took)) / sum
	for i := range t.cell {
		t.cell[i].cost *= factor
	}
}

// adjust makes the cells of a range, the one that begins with the cell and ends with
// the last, cost what it took. By how much they were too dear or too cheap is divided
// among them as if each were off by a normal error of its own: by the squares of these.
// If they are others than before, they are the surer for it.
func (t *terrain) adjust(begin int, end int64, took float64, cut bool) {
	cells, sum, squares := t.cell[begin:], 0.0, 0.0
	for _, c := range cells {
		error := c.cost * c.unsure
		sum, squares = sum+c.cost, squares+float64(error*error)
	}
	if squares < nothing {
		for i := range cells {
			last := end
			if begin+i+1 < len(t.at) {
				last = t.at[begin+i+1]
			}
			cells[i].cost = float64(took * (float64(last-t.at[begin+i]) / float64(end-t.at[begin])))
		}
		return
	}
	rest := 0.0
	for i := range cells {
		c := &cells[i]
		error := c.cost * c.unsure
		part := float64(error*error) / squares
		c.cost = max(float64(c.cost*leastLeft), c.cost+float64((took-sum)*part))
		if cut {
			c.unsure = max(known, float64(c.unsure*math.Sqrt(max(0, 1-part))))
		}
		rest += c.cost
	}
	for i := range cells {
		cells[i].cost *= took / rest
	}
}

// forget joins cells whose bound was not used for longest, until few enough are
// left for one more partition.
func (t *terrain) forget(ranks int) {
	limit := cellsPerRank*ranks + someCells - ranks
	for oldest := int32(0); len(t.cell) > limit; {
		oldest = t.cell[len(t.cell)-1].used
		for _, c := range t.cell[1:] {
			oldest = min(oldest, c.used)
		}
		kept := 1
		for i := 1; i < len(t.cell); i++ {
			if t.cell[i].used == oldest && len(t.cell)-(i-kept) > limit {
				t.cell[kept-1].cost += t.cell[i].cost
				continue
			}
			t.at[kept], t.cell[kept] = t.at[i], t.cell[i]
			kept++
		}
		t.at[kept] = t.at[len(t.at)-1]
		t.at, t.cell = t.at[:kept+1], t.cell[:kept]
	}
}

// weights are the terrain's.
func (t *terrain) weights() *weights {
	costs := make([]float64, len(t.cell))
	for i, c := range t.cell {
		costs[i] = c.cost
	}
	return weigh(t.at, costs)
}
