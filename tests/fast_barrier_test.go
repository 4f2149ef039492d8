package tests

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/tests/hosts"
)

const withoutFast = "EVENKEEL_FAST=none"

// orderFile is where ranks, also those of other hosts, tell each other which
// barrier they have come to.
func orderFile(t testing.TB) string { return filepath.Join(t.TempDir(), "order") }

// assertBarriers checks that a program went well and that its barriers are all
// in the profile, as calls and by the way they went.
func assertBarriers(t *testing.T, r Result) profile.Fast {
	t.Helper()
	require.Equal(t, 0, r.Status, r)
	p := r.Profile(t)
	assert.Equal(t, printedNumber(t, r.Stdout, "barriers"), Calls(p)["MPI_Barrier"])
	assert.Equal(t, Calls(p)["MPI_Barrier"], p.Fast.Barriers+p.Fast.BarriersPlain)
	return p.Fast
}

// Nobody leaves a barrier before all have come, on communicators that overlap,
// come and go, and of which there are more than there are places.
func TestBarriersHoldOnManyCommunicators(t *testing.T) {
	for _, c := range []struct {
		name        string
		ranks, live int
		all         bool // there are places for all of them
	}{
		{"2 ranks", 2, 40, true},
		{"3 ranks", 3, 40, true},
		{"5 ranks", 5, 60, true},
		{"8 ranks", 8, 60, true},
		{"more communicators than places", 4, 200, false},
		{"with leaders", 20, 20, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := 8000 / c.ranks
			fast := assertBarriers(t, Mpirun(t, Run{Ranks: c.ranks}, Program("barrier_comms"), orderFile(t),
				strconv.Itoa(steps), strconv.Itoa(c.live), strconv.Itoa(c.ranks)))
			assert.Positive(t, fast.Barriers)
			if c.all {
				assert.Zero(t, fast.BarriersPlain)
			} else {
				assert.Positive(t, fast.BarriersPlain)
			}
		})
	}
}

// barriersOnHosts runs a rank on each slot of the hosts.
func barriersOnHosts(t *testing.T, spec hosts.Spec, env []string, command ...string) Result {
	t.Helper()
	c := hosts.New(t, spec)
	dir := filepath.Join(t.TempDir(), "profile")
	env = append([]string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + dir}, env...)
	r := start(t, dir, c.Mpirun(t.Context(), spec.Count*spec.Slots, env, command...)).Wait(t)
	assertNothingLeftOnHosts(t, c)
	return r
}

// One, two and three steps of the leaders' exchange, of which the last takes part
// of what there is, or all.
func TestBarriersHoldOnHosts(t *testing.T) {
	for _, c := range []struct{ hosts, slots int }{{2, 1}, {3, 1}, {3, 2}, {3, 3}, {5, 1}} {
		t.Run(fmt.Sprintf("%d hosts of %d", c.hosts, c.slots), func(t *testing.T) {
			fast := assertBarriers(t, barriersOnHosts(t, hosts.Spec{Count: c.hosts, Slots: c.slots}, nil,
				Program("barrier_comms"), orderFile(t), "600", "30"))
			assert.Zero(t, fast.BarriersPlain)
		})
	}
}

// What MPI says of the leaders' exchange is what the barrier says, by the
// communicator's own error handler.
func TestBarriersThatFailBetweenHosts(t *testing.T) {
	preload := "LD_PRELOAD=" + Library + ":" + Program("libloss.so")
	r := barriersOnHosts(t, hosts.Spec{Count: 2, Slots: 1}, []string{preload}, Program("barrier_loss"))
	require.Equal(t, 0, r.Status, r)
	const other = 16 // MPI_ERR_OTHER
	assert.Equal(t, fmt.Sprintf("returned 0\nhandler of copy: %d\nreturned %d\nreturned 0\n", other, other), r.Stdout)
}

// Without room for the history there is none, and the barriers are as they were.
func TestBarriersBetweenHostsWithoutRoom(t *testing.T) {
	small := `mount -o remount,size=48m /dev/shm && exec "$0"`
	r := barriersOnHosts(t, hosts.Spec{Count: 2, Slots: 1}, nil, "sh", "-c", small, Program("barrier_room"))
	fast := assertBarriers(t, r)
	assert.Zero(t, fast.BarriersPlain)
	assert.Zero(t, printedNumber(t, r.Stdout, "known"))
}

// A communicator without a place tries again at its 2nd, 4th, 8th... barrier.
func TestBarriersFindAPlaceLater(t *testing.T) {
	r := Mpirun(t, Run{}, Program("barrier_places"))
	fast := assertBarriers(t, r)
	assert.Equal(t, printedNumber(t, r.Stdout, "plain"), fast.BarriersPlain)
}

// A communicator that met in barriers takes what it had with it.
func TestBarriersOfFreedCommunicatorsLeaveNothing(t *testing.T) {
	const least = 300 * 16 // bytes that 300 communicators would leave
	r := Mpirun(t, Run{}, Program("barrier_freed"))
	require.Equal(t, 0, r.Status, r)
	assert.Less(t, printedNumber(t, r.Stdout, "met"), printedNumber(t, r.Stdout, "alone")+least)
}

// Threads that set up communicators at once may find no place at first, but do
// later.
func TestBarriersHoldInThreads(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		fast := assertBarriers(t, Mpirun(t, Run{Ranks: ranks}, Program("barrier_threads"), orderFile(t), "4", "60"))
		assert.Positive(t, fast.Barriers)
	}
}

// What others have begun with a rank completes while it is in a barrier: over
// shared memory with and without single copies, and over TCP; with one-sided
// communication that the target takes part in, and that it does not.
func TestBarriersLetOthersGetOn(t *testing.T) {
	transports := map[string][]string{
		"shared memory":               nil,
		"shared memory, fragments":    {"--mca", "btl_vader_single_copy_mechanism", "none"},
		"TCP":                         {"--mca", "btl", "self,tcp"},
		"two-sided one-sided":         {"--mca", "osc", "pt2pt"},
		"two-sided one-sided by TCP":  {"--mca", "osc", "pt2pt", "--mca", "btl", "self,tcp"},
		"without idle ranks yielding": {"--mca", "mpi_yield_when_idle", "0"},
	}
	for name, options := range transports {
		for ranks, what := range map[int][]string{
			2: {"isend", "issend", "irecv", "lock", "put", "get", "accumulate", "last"},
			3: {"iallreduce", "loop"},
		} {
			t.Run(fmt.Sprintf("%s, %d ranks", name, ranks), func(t *testing.T) {
				r := barrierProgress(t, Run{Ranks: ranks, Mpirun: options, Timeout: time.Minute}, what)
				assertCompleted(t, r, what)
				fast := r.Profile(t).Fast
				assert.Positive(t, fast.Barriers)
				assert.Zero(t, fast.BarriersPlain)
			})
		}
	}
}

// So many ranks of a node have a leader, which may come last to all barriers and never
// wait.
func TestALeaderLetsOthersGetOn(t *testing.T) {
	for name, options := range map[string][]string{
		"shared memory":            nil,
		"shared memory, fragments": {"--mca", "btl_vader_single_copy_mechanism", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			what := []string{"last"}
			r := barrierProgress(t, Run{Ranks: 18, Mpirun: options, Timeout: time.Minute}, what)
			assertCompleted(t, r, what)
			assert.Zero(t, r.Profile(t).Fast.BarriersPlain)
		})
	}
}

func barrierProgress(t *testing.T, r Run, what []string) Result {
	t.Helper()
	return Mpirun(t, r, Program("barrier_progress"), append([]string{filepath.Join(t.TempDir(), "come")}, what...)...)
}

func assertCompleted(t *testing.T, r Result, what []string) {
	t.Helper()
	require.Equal(t, 0, r.Status, r)
	assert.Equal(t, strings.Join(what, " completed\n")+" completed\n", r.Stdout)
}

func TestRanksHoldTheSameHistoryOfBarriers(t *testing.T) {
	for _, ranks := range []int{2, 5, 20} {
		r := Mpirun(t, Run{Ranks: ranks}, Program("barrier_history"), "30")
		require.Equal(t, 0, r.Status, r)
		assert.Positive(t, printedNumber(t, r.Stdout, "compared"))
	}
}

func TestHostsHoldTheSameHistoryOfBarriers(t *testing.T) {
	offset := map[int]time.Duration{1: 5*time.Second + 12345*time.Nanosecond, 2: -time.Second}
	for _, count := range []int{3, 5} {
		spec := hosts.Spec{Count: count, Slots: 2, ClockOffset: offset}
		r := barriersOnHosts(t, spec, nil, Program("barrier_history"), "30")
		require.Equal(t, 0, r.Status, r)
		assert.Positive(t, printedNumber(t, r.Stdout, "compared"))
	}
}

// Errors, error handlers and what is no intracommunicator are as without us.
func TestWrongBarriersAreMPIs(t *testing.T) {
	r := Mpirun(t, Run{Ranks: 4}, Program("barrier_errors"))
	without := Mpirun(t, Run{Ranks: 4, Preload: "none"}, Program("barrier_errors"))
	assert.Equal(t, without.Stdout, r.Stdout)
	assert.Equal(t, without.Status, r.Status)
	fast := r.Profile(t).Fast
	assert.Equal(t, int64(4*(3+3+20+20+1)), fast.Barriers)
	assert.Equal(t, int64(4*(3+3+3+20+1)), fast.BarriersPlain)
}

// A merged communicator of two worlds is left to MPI.
func TestBarriersOfSpawnedRanks(t *testing.T) {
	r := Mpirun(t, Run{Mpirun: []string{"--host", "localhost:16"}}, Program("spawn"))
	require.Equal(t, 0, r.Status, r)
	fast := r.Profile(t).Fast
	assert.Equal(t, int64(4*50), fast.Barriers)
	assert.Equal(t, int64(4*50), fast.BarriersPlain)
}

// Barriers from all languages go the same way.
func TestBarriersOfAllLanguages(t *testing.T) {
	for _, program := range []string{"calls", "calls_cc", "fortran_mpifh", "fortran_usempi", "fortran_f08"} {
		t.Run(program, func(t *testing.T) {
			r := Mpirun(t, Run{}, Program(program))
			require.Equal(t, 0, r.Status, r)
			p := r.Profile(t)
			assert.Positive(t, p.Fast.Barriers)
			assert.Equal(t, Calls(p)["MPI_Barrier"], p.Fast.Barriers+p.Fast.BarriersPlain)
		})
	}
	t.Run("mpi4py", func(t *testing.T) {
		script := "from mpi4py import MPI\nw = MPI.COMM_WORLD\nfor i in range(100): w.Barrier()\nif w.rank == 0: print('barriers', 200)"
		fast := assertBarriers(t, Mpirun(t, Run{}, "/usr/bin/python3", "-c", script))
		assert.Equal(t, int64(200), fast.Barriers)
	})
}

// Another tool that is preloaded behind us sees all barriers, so they are MPI's.
func TestBarriersAreLeftToAToolBehind(t *testing.T) {
	r := Mpirun(t, Run{Preload: Library + ":" + Program("libtool_chain.so")}, Program("calls"))
	require.Equal(t, 0, r.Status, r)
	p := r.Profile(t)
	assert.Zero(t, p.Fast.Barriers+p.Fast.BarriersPlain)
	assert.Equal(t, Calls(p)["MPI_Barrier"], toolCounts(t, r.Stdout)["MPI_Barrier"])
}

// If one rank is against it, it is not done.
func TestFastBarriersNeedAllRanks(t *testing.T) {
	script := `[ "$OMPI_COMM_WORLD_RANK" = 1 ] && export ` + withoutFast + `; exec "$@"`
	r := Mpirun(t, Run{}, "/bin/sh", "-c", script, "sh", Program("barrier_comms"), orderFile(t), "200", "20")
	require.Equal(t, 0, r.Status, r)
	p := r.Profile(t)
	assert.Equal(t, printedNumber(t, r.Stdout, "barriers"), Calls(p)["MPI_Barrier"])
	assert.Zero(t, p.Fast.Barriers+p.Fast.BarriersPlain)
}

func TestFastBarriersCanBeSwitchedOff(t *testing.T) {
	r := Mpirun(t, Run{Env: []string{withoutFast}}, Program("barrier_comms"), orderFile(t), "200", "20")
	require.Equal(t, 0, r.Status, r)
	p := r.Profile(t)
	assert.Equal(t, printedNumber(t, r.Stdout, "barriers"), Calls(p)["MPI_Barrier"])
	assert.Zero(t, p.Fast.Barriers+p.Fast.BarriersPlain)
	r = Mpirun(t, Run{Env: []string{withoutFast}}, Program("barrier_history"), "none")
	require.Equal(t, 0, r.Status, r)
}

// A rank that dies inside a barrier ends the job, as it does without us.
func TestDeathInsideABarrier(t *testing.T) {
	for way, ranks := range map[string]int{"kill": 2, "segv": 4, "exit": 4, "_exit": 2} {
		t.Run(fmt.Sprintf("%s of %d", way, ranks), func(t *testing.T) {
			r := Mpirun(t, Run{Ranks: ranks, Timeout: 30 * time.Second}, Program("barrier_death"), way)
			without := Mpirun(t, Run{Ranks: ranks, Preload: "none", Timeout: 30 * time.Second}, Program("barrier_death"), way)
			assert.Equal(t, without.Status, r.Status, r)
			assert.NotContains(t, r.Stdout, "passed")
			AssertNothingLeft(t, r.Dir)
		})
	}
}

// One that leads its host's ranks, and one that does not.
func TestDeathInsideABarrierOnAnotherHost(t *testing.T) {
	for _, slots := range []int{1, 2} {
		t.Run(fmt.Sprintf("of %d ranks there", slots), func(t *testing.T) {
			spec := hosts.Spec{Count: 2, Slots: slots}
			r := barriersOnHosts(t, spec, nil, Program("barrier_death"), "kill")
			without := barriersOnHosts(t, spec, []string{"LD_PRELOAD="}, Program("barrier_death"), "kill")
			assert.NotZero(t, r.Status, r)
			assert.Equal(t, without.Status, r.Status, r)
			assert.NotContains(t, r.Stdout, "passed")
			assert.Contains(t, r.Stderr, "── evenkeel ──")
			assert.NotContains(t, without.Stderr, "── evenkeel ──")
		})
	}
}
