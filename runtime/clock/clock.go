// Package clock turns the ticks that ranks record into nanoseconds that
// compare across the nodes of a job. Pure functions of what was measured;
// c/clock.c measures.
package clock

import "math"

// Anchor is a reading of a node's ticks and of its CLOCK_MONOTONIC (ns) at the
// same moment.
type Anchor struct{ Ticks, Monotonic uint64 }

// Sync is a measurement of a node's CLOCK_MONOTONIC against node 0's: At on
// this node's clock, Offset = this − node 0, true within ±Error; ns.
// A zero At is no measurement.
type Sync struct {
	At     uint64
	Offset int64
	Error  uint64
}

// Clock converts one node's ticks to node 0's CLOCK_MONOTONIC.
type Clock struct {
	first       Anchor
	nsPerTick   float64
	first0      Sync
	driftPerNs  float64
	offsetKnown bool
}

// fewest is the shortest time between two readings that gives a rate: 100 µs,
// of which a reading's 50 ns are 5 in 10,000. MPI_Init alone takes longer.
const fewest = 100_000

// New makes the clock of a node. Without two anchors that far apart, ticks are
// taken to be nanoseconds. Between the two measurements of the offset, and
// beyond, it is a straight line.
func New(anchors [2]Anchor, syncs [2]Sync) Clock {
	c := Clock{first: anchors[0], nsPerTick: 1, first0: syncs[0], offsetKnown: syncs[0].At != 0}
	if anchors[1].Monotonic > anchors[0].Monotonic+fewest && anchors[1].Ticks > anchors[0].Ticks {
		c.nsPerTick = float64(anchors[1].Monotonic-anchors[0].Monotonic) / float64(anchors[1].Ticks-anchors[0].Ticks)
	}
	if c.offsetKnown && syncs[1].At > syncs[0].At+fewest {
		c.driftPerNs = float64(syncs[1].Offset-syncs[0].Offset) / float64(syncs[1].At-syncs[0].At)
	}
	return c
}

// Nanoseconds is a length of time in ns.
func (c Clock) Nanoseconds(ticks uint64) int64 {
	return int64(math.Round(float64(ticks) * c.nsPerTick))
}

// Time is when the ticks were read, in ns on node 0's CLOCK_MONOTONIC.
func (c Clock) Time(ticks uint64) int64 {
	local := int64(c.first.Monotonic) + int64(math.Round(float64(int64(ticks-c.first.Ticks))*c.nsPerTick))
	if !c.offsetKnown {
		return local
	}
	return local - c.first0.Offset - int64(math.Round(float64(local-int64(c.first0.At))*c.driftPerNs))
}

// Ticks is what the node's ticks are when its CLOCK_MONOTONIC reads that.
func (c Clock) Ticks(monotonic uint64) uint64 {
	return c.first.Ticks + uint64(int64(math.Round(float64(int64(monotonic-c.first.Monotonic))/c.nsPerTick)))
}

// crystal bounds how fast two nodes' clocks drift apart where that was not
// measured: 50 parts in a million, what a plain quartz keeps.
const crystal = 50e-6

// Uncertainty is half the width of the range in which the aligned time of any
// moment between start and end (ticks) lies around the truth, in ns.
func Uncertainty(syncs [2]Sync, length int64) int64 {
	switch {
	case syncs[0].At == 0:
		return 0
	case syncs[1].At == 0:
		return int64(syncs[0].Error) + int64(float64(length)*crystal)
	}
	return int64(max(syncs[0].Error, syncs[1].Error))
}
