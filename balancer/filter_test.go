package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
