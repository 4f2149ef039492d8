package tests

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

func waiting(how string, more ...string) Run {
	return Run{Env: append([]string{"EVENKEEL_WAIT=" + how}, more...), Timeout: time.Minute}
}

// The rules of the ladder hold for waits of any length, noise and latency.
func TestLadderOfWaiting(t *testing.T) {
	for seed := 1; seed <= 3; seed++ {
		r := Command(t, Run{}, Program("wait_ladder"), fmt.Sprint(seed), "2000")
		require.Equal(t, 0, r.Status, "seed %d: %s", seed, r)
	}
}

// Waits sleep when the ladder says so, on what can end them, and begin anew when something happens.
func TestRoundsOfWaits(t *testing.T) {
	r := Command(t, Run{}, Program("wait_rounds"))
	assert.Equal(t, "ok\n", r.Stdout)
	assert.Zero(t, r.Status)
}

const waits, waitMs = 8, 40

// A blocking call of any kind uses little of the processor while it waits, which
// spinning uses all of.
func TestWaitingUsesLittleOfTheProcessor(t *testing.T) {
	for i, how := range []string{"receive", "wait", "waitall", "waitany", "probe", "ssend", "allreduce", "bcast", "barrier", "fence"} {
		way := []string{"adaptive", "sleep"}[i%2]
		t.Run(how+", "+way, func(t *testing.T) {
			assertSleeps(t, Mpirun(t, waiting(way), Program("wait_cpu"), how, fmt.Sprint(waitMs), fmt.Sprint(waits)))
		})
	}
	t.Run("MPI's own barrier", func(t *testing.T) {
		assertSleeps(t, Mpirun(t, waiting("adaptive", withoutFast), Program("wait_cpu"), "barrier", fmt.Sprint(waitMs), fmt.Sprint(waits)))
	})
	t.Run("TCP", func(t *testing.T) {
		run := waiting("adaptive")
		run.Mpirun = []string{"--mca", "btl", "self,tcp"}
		assertSleeps(t, Mpirun(t, run, Program("wait_cpu"), "receive", fmt.Sprint(waitMs), fmt.Sprint(waits)))
	})
	t.Run("more ranks than cores", func(t *testing.T) {
		run := waiting("adaptive")
		run.Ranks = 6
		assertSleeps(t, Mpirun(t, run, Program("wait_cpu"), "allreduce", fmt.Sprint(waitMs), fmt.Sprint(waits)))
	})
}

// The first waits at a place are of unknown length, so they cost more. A rank that
// leaves the first barrier late waits that much less.
func assertSleeps(t *testing.T, r Result) {
	t.Helper()
	require.Equal(t, 0, r.Status, r)
	assert.Less(t, printedNumber(t, r.Stdout, "used"), int64(waits*waitMs/3), r)
	assert.Greater(t, printedNumber(t, r.Stdout, "took"), int64(waits*waitMs*9/10), r)
	idle := r.Profile(t).Idle
	assert.Positive(t, idle.Sleeps)
	assert.Greater(t, idle.Slept, waits*waitMs/1e3/2)
}

// Of threads that wait one has MPI get on for all. It sleeps, too, but what the others
// wait for comes.
func TestWaitsOfThreadsSleep(t *testing.T) {
	for _, way := range []string{"adaptive", "sleep"} {
		for _, over := range [][]string{nil, {"--mca", "btl", "self,tcp"}} {
			run := waiting(way)
			run.Mpirun = over
			r := Mpirun(t, run, Program("wait_threads"), "200", "4")
			require.Equal(t, 0, r.Status, r)
			assert.Equal(t, int64(4*20+1), printedNumber(t, r.Stdout, "got"))
			assert.Greater(t, r.Profile(t).Idle.Slept, 0.2, "of 0.8 s")
		}
	}
}

func TestSpinningLeavesWaitsToMPI(t *testing.T) {
	r := Mpirun(t, waiting("spin"), Program("wait_cpu"), "receive", fmt.Sprint(waitMs), fmt.Sprint(waits))
	require.Equal(t, 0, r.Status, r)
	assert.Zero(t, r.Profile(t).Idle)
}

// What others have begun with a rank completes while it sleeps in a barrier.
func TestSleepersLetOthersGetOn(t *testing.T) {
	twoSided := []string{"isend", "issend", "irecv"}
	for name, c := range map[string]struct{ options, what []string }{
		"shared memory":            {nil, twoSided},
		"shared memory, fragments": {[]string{"--mca", "btl_vader_single_copy_mechanism", "none"}, twoSided},
		"TCP":                      {[]string{"--mca", "osc", "pt2pt", "--mca", "btl", "self,tcp"}, append(twoSided, "lock", "put", "get", "accumulate")},
	} {
		for _, way := range []string{"adaptive", "sleep"} {
			for ranks, what := range map[int][]string{2: c.what, 3: {"iallreduce"}} {
				t.Run(fmt.Sprintf("%s, %s, %d ranks", name, way, ranks), func(t *testing.T) {
					run := waiting(way)
					run.Mpirun, run.Ranks = c.options, ranks
					assertCompleted(t, barrierProgress(t, run, what), what)
				})
			}
		}
	}
}

func TestSleepersOnTwoHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, command := range [][]string{
		{Program("wait_cpu"), "receive", fmt.Sprint(waitMs), fmt.Sprint(waits)},
		{Program("wait_cpu"), "barrier", fmt.Sprint(waitMs), fmt.Sprint(waits)},
	} {
		dir := filepath.Join(t.TempDir(), "profile")
		env := []string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + dir, "EVENKEEL_WAIT=adaptive"}
		assertSleeps(t, start(t, dir, c.Mpirun(t.Context(), 4, env, command...)).Wait(t))
	}
}

// Programs do under each way of waiting what they do without us, threads among them.
func TestWaitingLeavesProgramsAsTheyAre(t *testing.T) {
	for _, way := range []string{"adaptive", "sleep"} {
		for _, c := range [][]string{{"calls"}, {"fortran_f08"}, {"thread_multiple", "4", "20", "20"}, {"peers"}} {
			t.Run(c[0]+", "+way, func(t *testing.T) {
				run := waiting(way)
				run.Ranks = 3
				if c[0] != "peers" {
					run.Ranks = 2
				}
				r := Mpirun(t, run, Program(c[0]), c[1:]...)
				require.Equal(t, 0, r.Status, r)
			})
		}
	}
}

// Where MPI's waits don't come by us, they stay as they are, with one line.
func TestUnknownWaitsAreLeftToMPI(t *testing.T) {
	run := waiting("adaptive")
	run.Preload = Program("libwait_tool.so") + ":" + Library
	r := Mpirun(t, run, Program("wait_cpu"), "receive", "5", "2")
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stderr, "EVENKEEL_WAIT=adaptive is not done")
	assert.Zero(t, r.Profile(t).Idle)
}
