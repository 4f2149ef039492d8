package epoch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"evenkeel/runtime/fabric/chaos"
)

func TestEverythingArrivesOverAGoodNetwork(t *testing.T) {
	w := newWorld(t, plan{
		Seed: 1, Tasks: 3, Operations: 3000, UnderWay: 20, Longest: 2000, MTU: 256, Faults: chaos.Faults{Delay: 5 * time.Microsecond},
	})
	w.run()
	c := w.total()
	t.Logf("%v of virtual time, %+v", w.took, c)
	assert.Empty(t, w.failed)
	assert.Zero(t, c.Resent+c.Raised, "nothing was lost")
}

// anyFaults draws networks from good to barely usable.
func anyFaults(t *rapid.T) chaos.Faults {
	some := func(most float64) *rapid.Generator[float64] {
		return rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, most))
	}
	return chaos.Faults{
		Loss: some(0.5).Draw(t, "loss"), Repeat: some(0.5).Draw(t, "repeat"),
		Corrupt: some(0.2).Draw(t, "corrupt"), Truncate: some(0.2).Draw(t, "truncate"),
		Delay:  time.Duration(rapid.IntRange(0, 100_000).Draw(t, "delay")),
		Jitter: time.Duration(rapid.IntRange(0, 200_000).Draw(t, "jitter")),
		Late:   some(0.1).Draw(t, "late"), LateBy: time.Duration(rapid.IntRange(0, 100_000_000).Draw(t, "late by")),
	}
}

// Whatever the network does: every memory image is right, every atomic and message runs exactly once, every operation
// has one notification, nothing is lost, and no state outgrows its windows.
func TestEveryOperationIsDoneOnceWhateverTheNetworkDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		faults := anyFaults(t)
		longest, repairs := rapid.IntRange(1, 500).Draw(t, "longest"), rapid.IntRange(0, 8).Draw(t, "repairs")
		if arrive := (1 - faults.Loss) * (1 - faults.Corrupt) * (1 - faults.Truncate); arrive < 0.9 && repairs < 6 {
			// An epoch without repair only ends well when all that an operation sends and gets back arrives.
			longest = 1 + longest%20
		}
		operations, packets := 1<<rapid.IntRange(0, 6).Draw(t, "window of operations"), 1<<rapid.IntRange(5, 8).Draw(t, "window of packets")
		queue, first := rapid.IntRange(0, 20).Draw(t, "queue"), rapid.SampledFrom([]uint64{1, 1 << 40}).Draw(t, "first epoch")
		w := newWorld(t, plan{
			Seed:  rapid.Uint64().Draw(t, "seed"),
			Tasks: rapid.IntRange(2, 5).Draw(t, "tasks"), Operations: rapid.IntRange(1, 400).Draw(t, "operations"),
			UnderWay: rapid.IntRange(1, 40).Draw(t, "under way"), Longest: 8 * longest,
			MTU: rapid.IntRange(180, 1500).Draw(t, "MTU"), Faults: faults,
			Config: func(c *Config) {
				c.Operations, c.Packets, c.LeastWindow, c.Queue = operations, packets, 4, queue
				c.Repairs, c.First = repairs, first
			},
		})
		w.run()
		assert.Empty(t, w.failed)
	})
}

// The network holds packets up for longer than epochs last, and epochs are raised at the first timeout: what comes late
// belongs to an epoch that is over, and numbers start again meanwhile.
func TestLatePacketsOfOldEpochsDoNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, plan{
			Seed: rapid.Uint64().Draw(t, "seed"), Tasks: 2, Operations: 300, UnderWay: rapid.IntRange(2, 12).Draw(t, "under way"),
			Longest: 300, MTU: 180,
			Faults: chaos.Faults{
				Loss: rapid.Float64Range(0, 0.05).Draw(t, "loss"), Repeat: 0.5, Delay: 10 * time.Microsecond, Jitter: 50 * time.Microsecond,
				Late: rapid.Float64Range(0, 0.3).Draw(t, "late"), LateBy: 5 * time.Millisecond,
			},
			Config: func(c *Config) {
				c.Operations, c.Packets, c.LeastWindow = 16, 32, 8
				c.FirstTimeout = 200 * time.Microsecond
				c.Repairs = 0
			},
		})
		w.run()
		assert.Empty(t, w.failed)
	})
}
