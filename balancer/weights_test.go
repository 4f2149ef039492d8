package balancer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTerrainRemembers: within a range whose time is new, what was measured by itself
// keeps its cost, and what is left lies where nothing was known.
func TestTerrainRemembers(t *testing.T) {
	ground := newTerrain(100)
	ground.fit(Partition{0, 50, 100}, []float64{30, 10}, 1)
	ground.fit(Partition{0, 20, 100}, []float64{25, 15}, 2) // items 20 to 50 cost 5, not 18
	w := ground.weights()
	c := cursor{weights: w}
	assert.InDelta(t, 40, w.total(), 1e-9)
	assert.InDelta(t, 25, c.before(20), 1e-9)
	assert.InDelta(t, 30, c.before(50), 0.5)
	ground.fit(Partition{0, 20, 100}, []float64{25, 15}, 3)
	assert.Equal(t, w.sum, ground.weights().sum, "nothing is learnt from the same again")
}

// TestTerrainKnowsWhatItKnows: when a bound was last used, and how unsure a cell's cost is: a part of
// one is guessed, and the surer the more of what was wrong lay in it; from the same partition nothing is learnt.
func TestTerrainKnowsWhatItKnows(t *testing.T) {
	ground := newTerrain(100)
	ground.fit(Partition{0, 50, 100}, []float64{30, 10}, 1)
	for now := int32(2); now < 4; now++ {
		ground.fit(Partition{0, 75, 100}, []float64{35, 5}, now)
		var used []int32
		var unsure []float64
		for _, c := range ground.cell {
			used, unsure = append(used, c.used), append(unsure, c.unsure)
		}
		assert.Equal(t, []int64{0, 50, 75, 100}, ground.at)
		assert.Equal(t, []int32{now, 1, now}, used)
		first, second := 30*known, 5*guessed // the likely errors of the first range's cells
		assert.InDeltaSlice(t, []float64{known, guessed * first / math.Hypot(first, second), known}, unsure, 1e-12)
	}
}

// TestTerrainOfNoCost: what cost nothing until now is taken to cost the same throughout.
func TestTerrainOfNoCost(t *testing.T) {
	ground := newTerrain(100)
	ground.fit(Partition{0, 50, 100}, []float64{0, 0}, 1)
	ground.fit(Partition{0, 20, 100}, []float64{4, 8}, 2)
	var costs []float64
	for _, c := range ground.cell {
		costs = append(costs, c.cost)
	}
	assert.InDeltaSlice(t, []float64{4, 3, 5}, costs, 1e-12)
}

// TestWeigh: also what costs nothing has a place.
func TestWeigh(t *testing.T) {
	assert.Equal(t, []float64{0, 0.5, 1e6 + 0.5}, weigh([]int64{0, 10, 20}, []float64{0, 1e6}).sum)
	assert.InDeltaSlice(t, []float64{0, 1e-6 / 4, 1e-6}, weigh([]int64{0, 5, 20}, []float64{0, 0}).sum, 1e-18)
}

// TestTerrainForgets: the cells stay few, and their bounds a partition of the items.
func TestTerrainForgets(t *testing.T) {
	const items, ranks = 100_000, 50
	random := rand.New(rand.NewPCG(1, 1))
	ground := newTerrain(items)
	for now := range int32(60) {
		p, took := make(Partition, ranks+1), make([]float64, ranks)
		for r := range ranks {
			p[r+1] = min(items, p[r]+random.Int64N(2*items/ranks))
			took[r] = random.Float64()
		}
		p[ranks] = items
		ground.fit(p, took, now)
		require.LessOrEqual(t, len(ground.cell), cellsPerRank*ranks+someCells)
		require.NoError(t, Partition(ground.at).Check())
		require.Len(t, ground.at, len(ground.cell)+1)
		c, before := cursor{weights: ground.weights()}, 0.0
		for r := range ranks {
			end := c.before(p[r+1])
			if p.Size(r) > 0 {
				require.InDelta(t, took[r], end-before, 1e-3)
			}
			before = end
		}
	}
}

// TestCursor: place and before are each other's reverse, wherever the cursor was.
func TestCursor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := weigh([]int64{0, 3, 10, 11, 50}, []float64{1, 0, 7, 3})
	c := cursor{weights: w}
	for range 1000 {
		item := random.Int64N(51)
		before := c.before(item)
		require.InDelta(t, float64(item), c.place(before), 1e-6)
		limit := 12 * random.Float64()
		last, first := c.last(item, limit), c.first(item, limit)
		require.LessOrEqual(t, c.before(last)-before, limit+1e-9)
		require.LessOrEqual(t, before-c.before(first), limit+1e-9)
		if last < 50 {
			require.Greater(t, c.before(last+1)-before, limit-1e-9)
		}
		if first > 0 {
			require.Greater(t, before-c.before(first-1), limit-1e-9)
		}
	}
}
