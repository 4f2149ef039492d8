package balancer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// works draws how much each item costs and how slow each rank is.
func works(t *rapid.T, items, ranks int) *model {
	costs, at := make([]float64, items), make([]int64, items+1)
	for i := range costs {
		costs[i] = rapid.SampledFrom([]float64{0, 0.1, 1, 1, 2, 30}).Draw(t, "cost")
		at[i+1] = int64(i) + 1
	}
	m := &model{weights: weigh(at, costs), slowness: make([]float64, ranks)}
	for r := range m.slowness {
		m.slowness[r] = rapid.Float64Range(0.1, 10).Draw(t, "slowness")
	}
	return m
}

// optimum is the least longest time over all partitions that keep the limits, by
// dynamic programming over all of them.
func optimum(m *model, items, ranks int, l limits) float64 {
	best := make([]float64, items+1)
	for i := range best {
		best[i] = math.Inf(1)
	}
	best[0] = 0
	for r := range ranks {
		next := make([]float64, items+1)
		for end := range next {
			next[end] = math.Inf(1)
			for start := 0; start <= end; start++ {
				size := int64(end - start)
				if size < l.least || size > l.mostOf(r, int64(items)) {
					continue
				}
				next[end] = min(next[end], max(best[start], m.of(r)*(m.weights.sum[end]-m.weights.sum[start])))
			}
		}
		best = next
	}
	return best[items]
}

func TestDivideFindsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, ranks := rapid.IntRange(1, 24).Draw(t, "items"), rapid.IntRange(1, 6).Draw(t, "ranks")
		m := works(t, items, ranks)
		p := divide(m, int64(items), ranks, limits{})
		require.NoError(t, p.Check())
		require.LessOrEqual(t, m.predict(p, nil), optimum(m, items, ranks, limits{})*(1+2*closeEnough))
	})
}

func TestDivideKeepsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, ranks := rapid.IntRange(1, 24).Draw(t, "items"), rapid.IntRange(1, 6).Draw(t, "ranks")
		o := DefaultOptions(int64(items), ranks)
		o.MinItems = rapid.Int64Range(0, int64(items/ranks)).Draw(t, "least")
		o.MaxItems = make([]int64, ranks)
		for r := range o.MaxItems {
			o.MaxItems[r] = rapid.Int64Range(o.MinItems, int64(items)).Draw(t, "most")
		}
		if checkLimits(int64(items), ranks, &o) != nil {
			t.Skip("there is no such partition")
		}
		m, l := works(t, items, ranks), limits{o.MinItems, o.MaxItems}
		p := divide(m, int64(items), ranks, l)
		require.NoError(t, p.Check())
		for r := range ranks {
			require.GreaterOrEqual(t, p.Size(r), o.MinItems)
			require.LessOrEqual(t, p.Size(r), o.MaxItems[r])
		}
		if o.MinItems == 0 {
			require.LessOrEqual(t, m.predict(p, nil), optimum(m, items, ranks, l)*(1+2*closeEnough))
		}
	})
}

// TestDivideIsMonotone: a rank that becomes faster gets no fewer items, but for
// rounding.
func TestDivideIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(2, 50).Draw(t, "ranks")
		items := rapid.Int64Range(int64(ranks), 1e6).Draw(t, "items")
		m := model{weights: uniform(items), slowness: make([]float64, ranks)}
		for r := range m.slowness {
			m.slowness[r] = rapid.Float64Range(0.1, 10).Draw(t, "slowness")
		}
		before := divide(&m, items, ranks, limits{})
		r := rapid.IntRange(0, ranks-1).Draw(t, "rank")
		m.slowness[r] *= rapid.Float64Range(0.1, 1).Draw(t, "faster by")
		after := divide(&m, items, ranks, limits{})
		least := float64(before.Size(r))*(1-2*closeEnough) - 2
		require.GreaterOrEqual(t, float64(after.Size(r)), least)
	})
}

func TestDivideIsFairToManyRanks(t *testing.T) {
	const ranks, items = 1000, 1_000_000
	m := model{weights: uniform(items), slowness: make([]float64, ranks)}
	for r := range m.slowness {
		m.slowness[r] = 1 + float64(r%7)
	}
	p := divide(&m, items, ranks, limits{})
	times := make([]float64, ranks)
	longest := m.predict(p, times)
	for r, took := range times {
		require.Greater(t, took, 0.97*longest, "rank %d has %d items and idles", r, p.Size(r))
	}
}
