package analysis

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// seeds is how many simulated jobs a test looks at.
func seeds(t *testing.T, n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// loads gives each rank a random speed, constant for the run, and each of its
// cycles a random part.
func loads(w *world) func(r int) int64 {
	speed := make([]int64, len(w.now))
	for r := range speed {
		speed[r] = 200_000 + w.rng.Int64N(400_000)
	}
	return func(r int) int64 { return speed[r] + w.rng.Int64N(200_000) }
}

// computeAll lets every rank compute once.
func computeAll(w *world, work func(r int) int64) {
	for r := range w.now {
		w.compute(r, work(r))
	}
}

// collectives is a program of collective operations on several communicators.
func collectives(w *world, cycles int) {
	work := loads(w)
	var even, odd []int
	for r := range w.now {
		if r%2 == 0 {
			even = append(even, r)
		} else {
			odd = append(odd, r)
		}
	}
	evens, odds := w.group("even", even...), w.group("odd", odd...)
	functions := []history.Function{barrier, allreduce, bcast, reduce, scan}
	for range cycles {
		computeAll(w, work)
		w.all(functions[w.rng.IntN(len(functions))], 0, w.rng.IntN(len(w.now)))
		computeAll(w, work)
		w.all(allreduce, evens, 0)
		w.all(allreduce, odds, 0)
		computeAll(w, work)
		w.all(barrier, 0, 0)
	}
}

// exact checks a profile against the truth, to within a share of each rank's
// time.
func exact(t *testing.T, w *world, p *profile.Profile, within float64) {
	t.Helper()
	for r, rank := range p.Ranks {
		elapsed := rank.Elapsed * within
		assert.InDelta(t, w.truth.useful[r]/1e9, rank.Useful, elapsed, "useful of rank %d", r)
		assert.InDelta(t, w.truth.mpi[r]/1e9, rank.MPI, elapsed, "MPI of rank %d", r)
		assert.InDelta(t, w.truth.late[r]/1e9, rank.Late, elapsed, "late of rank %d", r)
		assert.InDelta(t, (w.truth.mpi[r]-w.truth.late[r])/1e9, rank.Transfer+rank.Own, elapsed, "transfer of rank %d", r)
		assert.InDelta(t, 0, rank.Unsplit, elapsed, "unsplit of rank %d", r)
	}
	assert.InDelta(t, w.truth.elapsed/1e9, p.Total.Elapsed, p.Total.Elapsed*within)
	sum, most := 0.0, 0.0
	for _, useful := range w.truth.useful {
		sum += useful
		most = max(most, useful)
	}
	mean := sum / float64(len(p.Ranks))
	assert.InDelta(t, mean/most, *p.Total.Efficiencies.LoadBalance, within)
	assert.InDelta(t, most/w.truth.elapsed, *p.Total.Efficiencies.Communication, within)
	assert.InDelta(t, mean/w.truth.elapsed, *p.Total.Efficiencies.Parallel, within)
}

// With everything timed and kept, all figures are what happened.
func TestExactWithoutSampling(t *testing.T) {
	for seed := range seeds(t, 300) {
		w := newWorld(uint64(seed), options{ranks: 2 + seed%7, nodes: 1, transfer: 3000})
		collectives(w, 20)
		p := Analyse(w.finish())
		exact(t, w, p, 0.01)
		for r, rank := range p.Ranks {
			assert.Equal(t, w.truth.last[r], rank.Last, "times last, rank %d", r)
		}
		if t.Failed() {
			require.FailNow(t, "wrong", "seed %d", seed)
		}
	}
}

// What each rank caused is right too where every wait is for the last to come,
// and that one came from computing.
func TestExactCauses(t *testing.T) {
	for seed := range seeds(t, 300) {
		w := newWorld(uint64(seed), options{ranks: 2 + seed%7, nodes: 1, transfer: 3000})
		work := loads(w)
		for range 30 {
			computeAll(w, work)
			w.all(barrier, 0, 0)
		}
		p := Analyse(w.finish())
		for r, rank := range p.Ranks {
			assert.InDelta(t, w.truth.caused[r]/1e9, rank.Caused, 1e-9, "rank %d, seed %d", r, seed)
		}
		if t.Failed() {
			require.FailNow(t, "wrong", "seed %d", seed)
		}
	}
}

// A ring of neighbours, nonblocking operations, regions and a second thread.
func TestExactPointToPoint(t *testing.T) {
	for seed := range seeds(t, 300) {
		w := newWorld(uint64(seed), options{ranks: 3 + seed%6, nodes: 1, transfer: 1000})
		work := loads(w)
		for cycle := range 40 {
			w.mark([]string{"", "solve", "update"}[cycle%3])
			computeAll(w, work)
			w.halo()
			if cycle%5 == 0 {
				w.background(work)
			}
			if cycle%10 == 9 {
				w.all(allreduce, 0, 0)
			}
		}
		w.mark("")
		side := w.group("side", w.everybody()...)
		w.aside(1, func() {
			for range 20 {
				computeAll(w, work)
				w.all(barrier, side, 0)
			}
		})
		p := Analyse(w.finish())
		exact(t, w, p, 0.01)
		require.Len(t, p.Regions, 3)
		useful, mpi := 0.0, 0.0
		for _, g := range p.Regions {
			useful += g.Useful
			mpi += g.MPI
		}
		assert.InDelta(t, p.Total.Useful, useful, 1e-9)
		assert.InDelta(t, p.Total.MPI, mpi, 1e-9)
		if t.Failed() {
			require.FailNow(t, "wrong", "seed %d", seed)
		}
	}
}

// coverage counts how often figures lie within their stated errors.
type coverage struct {
	figures, one, two, four int
	worst                   float64
}

// add compares a figure with the truth; floor is an error that is not
// sampling's, in the same unit.
func (c *coverage) add(truth, figure, stated, floor float64) {
	errors := math.Abs(truth - figure)
	if errors <= floor {
		errors = 0
	}
	c.figures++
	if errors <= stated {
		c.one++
	}
	if errors <= 2*stated {
		c.two++
	}
	if errors <= 4*stated {
		c.four++
	}
	if errors > 0 {
		c.worst = max(c.worst, errors/stated)
	}
}

func (c *coverage) check(t *testing.T, name string) {
	t.Helper()
	n := float64(c.figures)
	t.Logf("%s: %d figures, %.3f within one stated error, %.3f within two, %.4f within four, the worst %.1f", name,
		c.figures, float64(c.one)/n, float64(c.two)/n, float64(c.four)/n, c.worst)
	// Of independent chances, 0.68 and 0.95 are to be expected.
	assert.Greater(t, float64(c.one)/n, 0.65, "%s within one stated error", name)
	assert.Greater(t, float64(c.two)/n, 0.93, "%s within two", name)
	assert.Greater(t, float64(c.four)/n, 0.99, "%s within four", name)
}

// coverages simulates jobs and checks that the figures of ranks and of the
// whole lie within the stated errors. Waiting is allowed floor of the elapsed
// time more, where chains of waits end in calls that were not kept.
func coverages(t *testing.T, n int, o func(seed int) options, program func(w *world, seed int), floor float64) {
	var mpi, late, totalMPI, totalLate coverage
	for seed := range seeds(t, n) {
		w := newWorld(uint64(seed), o(seed))
		program(w, seed)
		p := Analyse(w.finish())
		sumMPI, sumLate := 0.0, 0.0
		for r, rank := range p.Ranks {
			sumMPI += w.truth.mpi[r] / 1e9
			sumLate += w.truth.late[r] / 1e9
			mpi.add(w.truth.mpi[r]/1e9, rank.MPI, rank.Error, 1e-9)
			// What could not be split may all be late.
			late.add(w.truth.late[r]/1e9, rank.Late, rank.LateError+rank.Unsplit, 1e-9+floor*rank.Elapsed)
		}
		totalMPI.add(sumMPI, p.Total.MPI, p.Total.Error, 1e-9)
		totalLate.add(sumLate, p.Total.Late, p.Total.LateError+p.Total.Unsplit, 1e-9+floor*p.Total.Useful)
	}
	mpi.check(t, "MPI of ranks")
	late.check(t, "late of ranks")
	totalMPI.check(t, "MPI in total")
	totalLate.check(t, "late in total")
}

// Several hosts with clocks that err: late times are off by no more than said.
func TestClockErrorsAreStated(t *testing.T) {
	coverages(t, 1000, func(seed int) options {
		return options{ranks: 4 + seed%5, nodes: 2 + seed%2, clockError: 50_000, transfer: 3000}
	}, func(w *world, _ int) { collectives(w, 20) }, 0)
}

// One call in eight is timed, and one in sixteen of the short ones leaves an
// event.
func TestSamplingErrorsAreStated(t *testing.T) {
	coverages(t, 1000, func(seed int) options {
		return options{ranks: 4 + seed%5, nodes: 1, transfer: 2000, timed: seed % 4, events: seed % 5}
	}, func(w *world, _ int) {
		work := loads(w)
		for range 400 {
			w.options.transfer = w.rng.Int64N(30_000)
			computeAll(w, func(r int) int64 { return work(r) / 20 })
			w.all(allreduce, 0, 0)
		}
	}, 0)
}

// Events are thinned out at several levels, in collectives and between
// neighbours.
func TestThinningErrorsAreStated(t *testing.T) {
	coverages(t, 600, func(seed int) options {
		return options{ranks: 4 + seed%3, nodes: 1, transfer: 2000, level: 1 + seed%4}
	}, func(w *world, seed int) {
		work := loads(w)
		for cycle := range 600 {
			computeAll(w, func(r int) int64 { return 4 * work(r) })
			w.options.transfer = w.rng.Int64N(3_000_000)
			if seed%2 == 0 || cycle%50 == 0 {
				w.all(allreduce, 0, 0)
			} else {
				w.halo()
			}
		}
	}, 0.01)
}
