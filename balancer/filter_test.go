package balancer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUncertainty: noise is what is typical of many cycles, or less if the last two were quiet;
// of few cycles it is taken to be more.
func TestUncertainty(t *testing.T) {
	f := newFilter(11)
	for _, one := range []struct {
		noise    []float64 // the newest first
		expected float64
	}{
		{[]float64{0.04, 0.04}, 0.04 * (1 + 5.0/20)},
		{[]float64{0.04, 0.04, 0.04, 0.04, 0.04}, 0.04 * (1 + 5.0/50)},
		{[]float64{0.04, 0.01, 0.04, 0.04, 0.04}, 0.04 * (1 + 5.0/50)},
		{[]float64{0.01, 0.008, 0.04, 0.04, 0.04}, 0.01 * (1 + 5.0/20)},
	} {
		f.noise = one.noise
		assert.InDelta(t, deviation*one.expected, f.uncertainty(), 1e-12, "%v", one.noise)
	}
}

// TestBeyondTheThreshold: the part that is believed of a difference grows with it up to twice the
// threshold; where noise is taken for much more than it seems, it is all of it at once.
func TestBeyondTheThreshold(t *testing.T) {
	for _, one := range []struct {
		ranks, known      int
		below, just, well float64
	}{
		{2, 1, 0, 1, 1},
		{2, remembered - 1, 0, 1, 1},
		{2, remembered, 0, 0.2, 1},
		{22, 1, 0, 0.2, 1},
	} {
		f := newFilter(one.ranks)
		f.noise = make([]float64, one.known)
		for ratio, expected := range map[float64]float64{1: one.below, 0.9: one.just, 0.5: one.well} {
			assert.InDelta(t, expected, f.firm(ratio), 1e-12, "%d ranks, noise of %d cycles, %v of the difference", one.ranks, one.known, ratio)
		}
	}
}

// TestDoubtFades: what a change makes of a time may be wrong by a quarter of it, and is the
// less in doubt the more cycles it has been seen.
func TestDoubtFades(t *testing.T) {
	p, err := Even(20, 2)
	assert.NoError(t, err)
	f := newFilter(2)
	same := func(past measured, into []float64) { copy(into, past.took) }
	f.add(measured{partition: p, took: []float64{1, 3}}, same)
	f.changed([]float64{1, 3}, []float64{2, 2})
	for _, expected := range []float64{0.125 * 0.7, 0.125 * 0.49} {
		f.add(measured{partition: p, took: []float64{2, 2}}, same)
		assert.InDelta(t, expected, f.doubt[0], 1e-12)
		assert.InDelta(t, expected, f.doubt[1], 1e-12)
	}
}

// TestDoubtExplainsOnlyWhatItCan: of a difference after a change that part is believed which is
// the mean of what it can be, and no more than twice what the change may be wrong by.
func TestDoubtExplainsOnlyWhatItCan(t *testing.T) {
	f := newFilter(2)
	f.doubt[0] = 0.01
	assert.InDelta(t, 0.5, f.wrongly(0, 0.01, 0.001), 1e-12, "as much noise as doubt")
	assert.InDelta(t, 0.04, f.wrongly(0, 0, 0.5), 1e-12, "much more than the doubt")
	assert.Zero(t, f.wrongly(1, 0, 0.5), "nothing was changed")
}

// TestShown: of a difference that all of the last cycles show, the smallest is believed, if noise
// rarely makes as much; the more cycles show it, the less that is.
func TestShown(t *testing.T) {
	shares := func(first ...float64) *filter {
		f := newFilter(2)
		for _, share := range first {
			f.projected = append(f.projected, []float64{share, 2 - share})
		}
		return f
	}
	for _, one := range []struct {
		first    []float64 // what rank 0 took, as shares of the mean, the newest first
		beyond   float64
		expected float64
	}{
		{nil, 0, 0},
		{[]float64{1.5}, 0, 0},
		{[]float64{1.5, 1.25}, 0.25, 0.25},
		{[]float64{1.25, 1.5}, 0.25, 0.25},
		{[]float64{1.5, 1.25}, 0.26, 0},
		{[]float64{1.25, 1.5}, 0.26, 0},
		{[]float64{1.5, 0.5}, 0.1, 0},
		{[]float64{1.5, 1.75, 1.125, 1.5, 1.5}, 0.1, 0.125},
	} {
		f := shares(one.first...)
		assert.InDelta(t, one.expected, f.shown(0, one.beyond), 1e-12, "%+v", one)
		assert.InDelta(t, one.expected, f.shown(1, one.beyond), 1e-12, "the other rank, %+v", one)
	}

	f := shares(1.5, 1.5)
	assert.InDelta(t, 0.05*math.Sqrt(twiceLn2*(9.0/2-1)), f.persistent(4), 1e-12, "nothing is known of noise")
	f.noise = []float64{0.01, 0.01, 0.01, 0.01}
	assert.InDelta(t, 0.05*math.Sqrt(twiceLn2*(9.0/2-1)), f.persistent(4), 1e-12, "little is known of noise")
	f.noise = []float64{0.2, 0.2, 0.2, 0.2}
	assert.InDelta(t, deviation*0.2*math.Sqrt(twiceLn2*(9.0/2-1)), f.persistent(4), 1e-12, "little is known, but there is much")
	f = shares(1.5, 1.5, 1.5, 1.5, 1.5)
	f.noise = []float64{0.01, 0.01, 0.01, 0.01, 0.01}
	assert.InDelta(t, deviation*0.01*math.Sqrt(twiceLn2*(9.0/5-1)), f.persistent(4), 1e-12, "five cycles")
	assert.InDelta(t, deviation*0.01*math.Sqrt(twiceLn2*0.5), f.persistent(0), 1e-12, "five cycles, and changes that all did good")
}

// TestStartUpHidesNothing: a program whose first cycles are disturbed more than later ones gets
// what it needs nonetheless: the first two show which rank is slow, and what is left over is seen
// although the noise of the start is remembered.
func TestStartUpHidesNothing(t *testing.T) {
	const start, left, soon = 4, 6, 10 // cycles
	atOnce, found := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		even, err := Even(4000, 2)
		require.NoError(t, err)
		c, err := NewController(even, DefaultOptions(4000, 2))
		require.NoError(t, err)
		slowness := []float64{1, 4}
		for k := range left + soon + 1 {
			took := make([]float64, 2)
			for r := range took {
				noise := 0.025
				if k < start {
					noise = 0.15
				}
				took[r] = 1e-6 * slowness[r] * float64(c.Partition().Size(r)) * math.Exp(noise*random.NormFloat64())
			}
			if k == left { // a little is left over
				slowness[1] *= 1.1
			}
			d, err := c.Step(Cycle{Useful: took})
			require.NoError(t, err)
			if k == 1 && d.Changed {
				atOnce++
			}
			costs := [2]float64{float64(c.Partition().Size(0)) * slowness[0], float64(c.Partition().Size(1)) * slowness[1]}
			if k >= left && math.Abs(costs[1]/costs[0]-1) < 0.06 {
				found++
				break
			}
		}
	}
	assert.GreaterOrEqual(t, atOnce, 150, "runs whose second cycle changed ranges")
	assert.GreaterOrEqual(t, found, 135, "runs that found what was left over")
}

// TestPredictors: a rank's next time by the median, by the last and by the trend; of two cycles there
// is no trend yet, of all that are remembered it is the straight line, and no time is negative.
func TestPredictors(t *testing.T) {
	for _, one := range []struct {
		newest              []float64 // a rank's times, the newest first
		median, last, trend float64
	}{
		{[]float64{4}, 4, 4, 4},
		{[]float64{4, 2}, 3, 4, 4},
		{[]float64{4, 3, 2}, 3, 4, 5},
		{[]float64{4, 9, 9, 2}, 6.5, 4, 1.5},
		{[]float64{1, 9, 9, 2}, 5.5, 1, 0},
		{[]float64{5, 4, 3, 2, 1}, 3, 5, 6},
		{[]float64{3, 1, 2, 1, 2}, 2, 3, 2.4},
		{[]float64{0, 1, 3, 5, 9}, 3, 0, 0},
	} {
		f := newFilter(1)
		f.past = make([]measured, len(one.newest))
		for _, took := range one.newest {
			f.projected = append(f.projected, []float64{took})
		}
		assert.InDelta(t, one.median, f.predict(byMedian, 0), 1e-12, "%v", one)
		assert.InDelta(t, one.last, f.predict(byLast, 0), 1e-12, "%v", one)
		assert.InDelta(t, one.trend, f.predict(byTrend, 0), 1e-12, "%v", one)
	}
}

// TestTypicalNoise: of one or two cycles the larger; of three the exceptional one is left out.
func TestTypicalNoise(t *testing.T) {
	f := newFilter(1)
	for _, one := range []struct {
		noise []float64
		want  float64
	}{{nil, math.Inf(1)}, {[]float64{0.2}, 0.2}, {[]float64{0.1, 0.3}, 0.3}, {[]float64{0.1, 0.1, 0.3}, 0.1}} {
		f.noise = one.noise
		assert.Equal(t, one.want, f.typicalNoise(), "%v", one.noise)
	}
}
