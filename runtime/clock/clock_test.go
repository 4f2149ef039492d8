package clock

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// node is one whose clocks are known: its CLOCK_MONOTONIC is node 0's times
// rate plus offset, and it ticks at hz.
type node struct {
	rate   float64
	offset int64
	hz     float64
}

func (n node) monotonic(at int64) uint64 {
	return uint64(at + n.offset + int64(float64(at)*(n.rate-1)))
}

func (n node) ticks(at int64) uint64 {
	return uint64(float64(n.monotonic(at)) * n.hz / 1e9)
}

func (n node) anchor(at int64) Anchor { return Anchor{n.ticks(at), n.monotonic(at)} }

// sync is a measurement that misses the truth by a part of its error.
func (n node) sync(at int64, miss float64, bound uint64) Sync {
	truth := int64(n.monotonic(at)) - at
	return Sync{At: n.monotonic(at), Offset: truth + int64(miss*float64(bound)), Error: bound}
}

func draw(t *rapid.T) (n node, start, length int64) {
	n = node{
		rate:   1 + rapid.Float64Range(-50e-6, 50e-6).Draw(t, "drift"),
		offset: rapid.Int64Range(-1e12, 5e14).Draw(t, "offset"),
		hz:     rapid.Float64Range(1e9, 5e9).Draw(t, "hz"),
	}
	start = rapid.Int64Range(2e12, 5e14).Draw(t, "start")
	length = rapid.Int64Range(1e6, 1e14).Draw(t, "length")
	return n, start, length
}

// rounding is what floats of seconds of uptime lose, and what a reading of the
// counter in whole ticks does, in ns.
const rounding = 300

func TestAlignedTimeIsTrueWithinItsUncertainty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, start, length := draw(t)
		miss, bound := rapid.Float64Range(-1, 1), rapid.Uint64Range(100, 1e6)
		syncs := [2]Sync{
			n.sync(start, miss.Draw(t, "first miss"), bound.Draw(t, "first error")),
			n.sync(start+length, miss.Draw(t, "second miss"), bound.Draw(t, "second error")),
		}
		c := New([2]Anchor{n.anchor(start), n.anchor(start + length)}, syncs)
		at := start + rapid.Int64Range(0, length).Draw(t, "at")
		assert.InDelta(t, 0, c.Time(n.ticks(at))-at, float64(Uncertainty(syncs, length))+rounding)
	})
}

func TestOneMeasurementHoldsAsWellAsCrystalsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, start, length := draw(t)
		syncs := [2]Sync{n.sync(start, rapid.Float64Range(-1, 1).Draw(t, "miss"), 1000), {}}
		c := New([2]Anchor{n.anchor(start), n.anchor(start + length)}, syncs)
		at := start + rapid.Int64Range(0, length).Draw(t, "at")
		assert.InDelta(t, 0, c.Time(n.ticks(at))-at, float64(Uncertainty(syncs, length))+rounding)
	})
}

func TestTimesOfOneNodeKeepTheirOrderAndTheirLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, start, length := draw(t)
		c := New([2]Anchor{n.anchor(start), n.anchor(start + length)}, [2]Sync{})
		a := n.ticks(start + rapid.Int64Range(0, length).Draw(t, "a"))
		b := a + rapid.Uint64Range(0, 1e12).Draw(t, "later")
		require.LessOrEqual(t, c.Time(a), c.Time(b))
		assert.InDelta(t, c.Nanoseconds(b-a), c.Time(b)-c.Time(a), 2)
	})
}

func TestTicksTurnsTimeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, start, length := draw(t)
		c := New([2]Anchor{n.anchor(start), n.anchor(start + length)}, [2]Sync{})
		at := start + rapid.Int64Range(-1e9, 2e9).Draw(t, "at")
		assert.InDelta(t, 0, float64(int64(c.Ticks(n.monotonic(at))-n.ticks(at))), 1e-4*math.Abs(float64(at-start))*n.hz/1e9+rounding)
	})
}

func TestWithoutASecondReadingTicksAreNanoseconds(t *testing.T) {
	c := New([2]Anchor{{Ticks: 500, Monotonic: 700}, {Ticks: 500, Monotonic: 700}}, [2]Sync{})
	assert.Equal(t, int64(1200), c.Time(1000))
	assert.Equal(t, int64(600), c.Time(400))
	assert.Equal(t, uint64(400), c.Ticks(600))
	assert.Equal(t, int64(42), c.Nanoseconds(42))
}

func TestNothingMeasuredIsNothingKnown(t *testing.T) {
	assert.Zero(t, Uncertainty([2]Sync{}, 1e9))
}
