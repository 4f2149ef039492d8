package idle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var costs = Costs{Yield: 2e-6, Wake: 60e-6}

func TestNext(t *testing.T) {
	for _, one := range []struct {
		waits []float64
		want  Plan
	}{
		{nil, Plan{Spin: 60e-6, Sleep: math.Inf(1)}},
		{[]float64{1e-6, 2e-6}, Plan{Expected: 2e-6, Least: 1e-6}},
		{[]float64{50e-6}, Plan{Expected: 50e-6, Least: 50e-6, Yield: 48e-6}},
		{[]float64{3e-3, 1e-3, 2e-3}, Plan{Expected: 2e-3, Least: 1e-3, Sleep: 940e-6}},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1, 0}, Plan{Expected: 1, Least: 1, Sleep: 1 - 60e-6}},
	} {
		got, err := Next(one.waits, costs)
		require.NoError(t, err)
		assert.InDeltaSlice(t, []float64{one.want.Expected, one.want.Least, one.want.Yield}, []float64{got.Expected, got.Least, got.Yield}, 1e-12)
		assert.Equal(t, one.want.Spin, got.Spin)
		if !math.IsInf(one.want.Sleep, 1) {
			assert.InDelta(t, one.want.Sleep, got.Sleep, 1e-12)
		} else {
			assert.Equal(t, one.want.Sleep, got.Sleep)
		}
	}
	p, err := Next([]float64{1e-3, 2e-3}, costs)
	require.NoError(t, err)
	assert.True(t, p.Fits(1e-3))
	assert.False(t, p.Fits(1.1e-3))
}

// TestNobodyIsDelayed: a wait like the shortest that is remembered ends after the
// rank has begun to spin again.
func TestNobodyIsDelayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waits := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "waits")
		c := Costs{rapid.Float64Range(0, 1e-3).Draw(t, "yield"), rapid.Float64Range(0, 1e-2).Draw(t, "wake")}
		p, err := Next(waits, c)
		require.NoError(t, err)
		late := 0.0
		if p.Yield > 0 {
			late = c.Yield
		}
		if p.Sleep > 0 {
			late = c.Wake
		}
		for _, wait := range waits[:min(len(waits), Remembered)] {
			require.LessOrEqual(t, p.Spin+p.Yield+p.Sleep+late, wait+1e-12)
		}
		require.LessOrEqual(t, p.Least, p.Expected)
	})
}

func TestNextRefuses(t *testing.T) {
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := Next([]float64{1, bad}, costs)
		assert.Error(t, err)
		_, err = Next(nil, Costs{Wake: bad})
		assert.Error(t, err)
	}
	_, err := Next(nil, Costs{Yield: -1})
	assert.EqualError(t, err, "a time of -1 seconds: it must be a number and not negative")
}

func TestWaits(t *testing.T) {
	assert.Equal(t, []float64{2, 0, 1}, Waits([]float64{1, 3, 2}))
	assert.Empty(t, Waits(nil))
}
