package analysis

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// steadyProgram computes for what load says, and then meets the others.
func steadyProgram(seed uint64, o options, cycles int, meet func(w *world, cycle int), load func(w *world, r, cycle int) int64) *history.Run {
	w := newWorld(seed, o)
	for cycle := range cycles {
		for r := range w.now {
			w.compute(r, load(w, r, cycle))
		}
		meet(w, cycle)
	}
	return w.finish()
}

func atBarrier(w *world, _ int) { w.all(barrier, 0, 0) }

func atHalo(w *world, cycle int) {
	if cycle%100 == 99 {
		w.all(allreduce, 0, 0)
		return
	}
	w.halo()
}

// What each kind of imbalance looks like, with a tenth of noise.
var kinds = map[string]struct {
	advice string
	load   func(w *world, r, cycle int) int64
}{
	"balanced": {"nothing", func(w *world, _, _ int) int64 { return 1_000_000 + w.rng.Int64N(10_000) }},
	"constant": {"repartition", func(w *world, r, _ int) int64 { return 1_000_000 + 100_000*int64(r) + w.rng.Int64N(100_000) }},
	"drifting": {"repartition", func(w *world, r, cycle int) int64 {
		// The heavy part moves from the first rank to the last.
		ranks := int64(len(w.now))
		at := int64(cycle) * ranks / 400
		away := max(at-int64(r), int64(r)-at)
		return 1_000_000 + 600_000*(ranks-away)/ranks + w.rng.Int64N(50_000)
	}},
	"random": {"split", func(w *world, _, _ int) int64 { return 500_000 + w.rng.Int64N(1_000_000) }},
}

// Each kind is recognised, whether the ranks meet in barriers or in messages
// to neighbours, and whether all is kept or a sample.
func TestKindsOfImbalance(t *testing.T) {
	recorders := map[string]options{
		"all":     {ranks: 8, nodes: 1, transfer: 2000},
		"sampled": {ranks: 8, nodes: 1, transfer: 2000, timed: 3, events: 3},
		"thinned": {ranks: 8, nodes: 1, transfer: 2000, level: 2},
	}
	meetings := map[string]func(w *world, cycle int){"barriers": atBarrier, "neighbours": atHalo}
	for kind, k := range kinds {
		for recorded, o := range recorders {
			for met, meet := range meetings {
				t.Run(kind+"/"+recorded+"/"+met, func(t *testing.T) {
					for seed := range uint64(seeds(t, 40)) {
						b := Analyse(steadyProgram(seed, o, 400, meet, k.load)).Balance
						if !assert.Equal(t, kind, b.Kind, "seed %d: %+v", seed, b) {
							return
						}
						assert.Equal(t, k.advice, b.Advice)
						assert.NotEmpty(t, b.Why)
					}
				})
			}
		}
	}
}

// The shares are those of the variances that the loads have.
func TestVarianceComponents(t *testing.T) {
	b := profile.Balance{}
	const runs = 200
	for seed := range uint64(runs) {
		// Constant: 0 or 200 µs, variance 10,000 µs². Random: up to 400 µs,
		// variance 13,333 µs².
		one := Analyse(steadyProgram(seed, options{ranks: 16, nodes: 1}, 24, atBarrier, func(w *world, r, _ int) int64 {
			return 1_000_000 + 200_000*int64(r%2) + w.rng.Int64N(400_000)
		})).Balance
		b.Constant += one.Constant / runs
		b.Drifting += one.Drifting / runs
		b.Random += one.Random / runs
	}
	assert.InDelta(t, 16.0/15*10_000/(16.0/15*10_000+13_333), b.Constant, 0.006)
	assert.InDelta(t, 0, b.Drifting, 0.02)
}

// disturbed adds what a busy machine does to a load: now and then a rank is off
// its core for ten times as long as it computes.
func disturbed(load func(w *world, r, cycle int) int64) func(w *world, r, cycle int) int64 {
	return func(w *world, r, cycle int) int64 {
		extra := int64(0)
		if w.rng.IntN(150) == 0 {
			extra = 10_000_000
		}
		return load(w, r, cycle) + extra
	}
}

// A few disturbances do not hide that the same ranks are slow throughout,
// though their variance is the larger one.
func TestDisturbancesDoNotHideAPattern(t *testing.T) {
	for seed := range uint64(20) {
		b := Analyse(steadyProgram(seed, options{ranks: 4, nodes: 1}, 600, atBarrier, disturbed(func(w *world, r, _ int) int64 {
			return 1_000_000 + 300_000*int64(r) + w.rng.Int64N(100_000)
		}))).Balance
		assert.Equal(t, "constant", b.Kind, "seed %d: %+v", seed, b)
		assert.Greater(t, b.Random, 0.02)
	}
}

// Where there is nothing but disturbances, the waiting is random, however
// steady the little is that is left.
func TestDisturbancesAlone(t *testing.T) {
	for seed := range uint64(20) {
		b := Analyse(steadyProgram(seed, options{ranks: 4, nodes: 1}, 600, atBarrier, disturbed(func(w *world, r, _ int) int64 {
			return 1_000_000 + 5_000*int64(r)
		}))).Balance
		assert.Equal(t, "random", b.Kind, "seed %d: %+v", seed, b)
	}
}

// A series of any length keeps a sample of its cycles from all of the run.
func TestSeriesIsBounded(t *testing.T) {
	const rows = 64
	s := series{rows: rows}
	for i := range uint64(20_000) {
		if c := (cycle{chance: history.Chance(i, 5), block: int(i * blocks / 20_000)}); s.want(c.chance) {
			c.differences = make([]float64, rows)
			s.add(c)
		}
	}
	assert.LessOrEqual(t, len(s.cycles)*rows, mostDifferences)
	assert.Greater(t, len(s.cycles)*rows, mostDifferences/4)
	perBlock := map[int]int{}
	for _, c := range s.cycles {
		perBlock[c.block]++
	}
	expected := float64(len(s.cycles)) / blocks
	for block := range blocks { // four standard deviations
		assert.InDelta(t, expected, perBlock[block], 4*math.Sqrt(expected))
	}
}

// Between neighbours, most of the waiting comes from differences that change
// too fast for the parts of the run that are compared; these show constant ones
// alone.
func TestFastImbalanceBetweenNeighbours(t *testing.T) {
	for seed := range uint64(10) {
		b := Analyse(steadyProgram(seed, options{ranks: 8, nodes: 1}, 1600, atHalo, func(w *world, r, _ int) int64 {
			return 500_000 + 30_000*int64(r) + w.rng.Int64N(1_000_000)
		})).Balance
		assert.Equal(t, "random", b.Kind, "seed %d: %+v", seed, b)
	}
}

// Few cycles of pure chance are not taken for a pattern.
func TestFewCyclesOfChance(t *testing.T) {
	wrong := 0
	for seed := range uint64(200) {
		b := Analyse(steadyProgram(seed, options{ranks: 8, nodes: 1}, 12, atBarrier, kinds["random"].load)).Balance
		if b.Kind != "random" {
			wrong++
		}
	}
	assert.Less(t, wrong, 10, "of 200")
}

func TestTooFewCyclesToSay(t *testing.T) {
	run := steadyProgram(1, options{ranks: 4, nodes: 1}, 3, atBarrier, kinds["constant"].load)
	b := Analyse(run).Balance
	assert.Equal(t, "unknown", b.Kind)
	assert.Equal(t, "nothing", b.Advice)
	assert.Greater(t, b.Imbalance, 0.05)
	assert.Equal(t, []int{3, 2, 1, 0}, b.Slowest)
}

// Clocks of two hosts that differ by as much as they may do not look like
// ranks that are always late.
func TestClockErrorIsNoImbalance(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(seed, options{ranks: 8, nodes: 2, clockError: 500_000, transfer: 2000})
		w.offset[1] = 500_000
		for range 400 {
			computeAll(w, func(int) int64 { return 1_000_000 + w.rng.Int64N(200_000) })
			w.all(barrier, 0, 0)
		}
		b := Analyse(w.finish()).Balance
		assert.Less(t, b.Constant, 0.05, "seed %d", seed)
	}
}
