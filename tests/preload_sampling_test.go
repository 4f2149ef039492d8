package tests

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// thickRun is what a run of thick.c printed, over all ranks.
type thickRun struct {
	calls         int64
	seconds, busy float64
}

func runThick(t testing.TB, r Run, way string, calls int) (thickRun, Result) {
	t.Helper()
	result := Mpirun(t, r, Program("thick"), way, strconv.Itoa(calls))
	require.Zero(t, result.Status, result)
	var sum thickRun
	lines := bufio.NewScanner(strings.NewReader(result.Stdout))
	for lines.Scan() {
		var one thickRun
		var rank int
		_, err := fmt.Sscanf(lines.Text(), "rank %d calls %d seconds %f busy %f", &rank, &one.calls, &one.seconds, &one.busy)
		require.NoError(t, err, "%q", lines.Text())
		sum.calls += one.calls
		sum.seconds += one.seconds
		sum.busy += one.busy
	}
	require.Positive(t, sum.calls)
	return sum, result
}

// overhead bounds what lies between the time of a call as the program sees it
// and as evenkeel does: the wrapper itself, the loop around it, and where the
// program looks at its clock around each call, that. As much as four readings of the
// clock take here, 60 ns at least.
var overhead = sync.OnceValue(func() float64 {
	const readings = 10000 // of two clocks each
	shortest := time.Duration(math.MaxInt64)
	for range 100 {
		begin := time.Now()
		for range readings {
			time.Now()
		}
		shortest = min(shortest, time.Since(begin))
	}
	return max(60e-9, 2*shortest.Seconds()/readings)
})

// assertWithin compares the time in MPI with the program's own, by the stated
// error. A rank that loses its core does so in few calls, and for long: hardly
// one of these is in the sample, and so they may be missing in the estimate.
func assertWithin(t assert.TestingT, p *profile.Profile, printed thickRun) {
	assert.Less(t, p.Total.MPI, printed.seconds+5*p.Total.Error)
	assert.Greater(t, p.Total.MPI, printed.busy-5*p.Total.Error-overhead()*float64(printed.calls))
}

// requireWithin asks that of one of three runs: what took a core away from the whole
// machine, and so from each rank, busy leaves in. What is wrong in evenkeel is so in all.
func requireWithin(t *testing.T, run func() (*profile.Profile, thickRun)) {
	t.Helper()
	for try := 1; ; try++ {
		var d differences
		p, printed := run()
		assertWithin(&d, p, printed)
		t.Logf("%d of %d calls timed: %.4f s ± %.4f s, in the program %.4f s (busy %.4f s)",
			p.Quality.TimedCalls, p.Quality.Calls, p.Total.MPI, p.Total.Error, printed.seconds, printed.busy)
		if len(d) == 0 {
			return
		}
		require.Less(t, try, 3, "%s", strings.Join(d, "\n"))
	}
}

// Of calls that come thick and fast, all are counted and a few are timed; the
// time of all is estimated within the error that is stated. So are their bytes,
// which are the same in each call, however long that took: of copy, where some one
// in eight calls are timed, 5 % are several standard errors.
func TestSampledTimesAreWithinTheirError(t *testing.T) {
	for _, c := range []struct {
		way   string
		calls int
		share float64 // of calls that are timed, at most
		bytes int64   // of each call, where they are compared
	}{
		{"iprobe", 10000000, 0.01, 0},
		{"self", 10000000, 0.01, 0},
		{"copy", 100000, 0.9, 1 << 16},
		{"pingpong", 200000, 0.9, 0}, // slow where ranks have no core of their own
		{"mixed", 100000, 1, 0},
	} {
		t.Run(c.way, func(t *testing.T) {
			requireWithin(t, func() (*profile.Profile, thickRun) {
				printed, result := runThick(t, Run{}, c.way, c.calls)
				p := result.Profile(t)
				var counted, timed, bytes int64
				for _, s := range p.CallSites {
					counted += s.Calls
					timed += s.Timed
					bytes += s.Bytes
				}
				assert.Equal(t, printed.calls, counted)
				assert.LessOrEqual(t, timed, int64(c.share*float64(counted)))
				assert.GreaterOrEqual(t, timed, int64(1000))
				if c.bytes > 0 {
					assert.InEpsilon(t, c.bytes*counted, bytes, 0.05)
					// The error is larger than if all calls were equally long.
					calls, one := float64(counted), printed.busy/float64(counted)
					assert.Greater(t, p.Total.Error, 0.5*one*math.Sqrt(calls*(calls/float64(timed)-1)))
				}
				return p, printed
			})
		})
	}
}

func TestAllCallsAreTimedOnDemand(t *testing.T) {
	requireWithin(t, func() (*profile.Profile, thickRun) {
		printed, result := runThick(t, Run{Env: []string{"EVENKEEL_TIME=all"}}, "mixed", 20000)
		p := result.Profile(t)
		assert.Equal(t, printed.calls, p.Quality.Calls)
		assert.Equal(t, printed.calls, p.Quality.TimedCalls)
		assert.Zero(t, p.Total.Error)
		return p, printed
	})
}

func TestNoCallIsTimedOnDemand(t *testing.T) {
	printed, result := runThick(t, Run{Env: []string{"EVENKEEL_TIME=none"}}, "mixed", 20000)
	p := result.Profile(t)
	assert.Equal(t, printed.calls, p.Quality.Calls)
	assert.Zero(t, p.Quality.TimedCalls)
	assert.Zero(t, p.Quality.EventsSeen)
	assert.Zero(t, p.Total.MPI)

	rare := Mpirun(t, Run{Env: []string{"EVENKEEL_TIME=none"}}, Program("rare"), "barrier", "1000")
	require.Zero(t, rare.Status, rare)
	assert.Zero(t, rare.Profile(t).Quality.TimedCalls, "nor one that lasts, which the drainer notices")
}
