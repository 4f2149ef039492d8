package tests

import (
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
	"evenkeel/tests/hosts"
)

// shadow is how a test of shadow buffers runs two ranks.
func shadow(settings ...string) Run {
	return Run{Env: append([]string{"EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0"}, settings...)}
}

// burst runs shadow_burst and returns what it printed and what was counted.
func burst(t *testing.T, r Run, args ...string) (string, profile.Fast) {
	t.Helper()
	result := Mpirun(t, r, Program("shadow_burst"), append([]string{filepath.Join(t.TempDir(), "flags")}, args...)...)
	if result.Status != 0 {
		return strings.SplitN(strings.TrimSpace(result.Stdout), "\n", 2)[0], profile.Fast{}
	}
	return strings.TrimSpace(result.Stdout), result.Profile(t).Fast
}

// The receiver of these bursts calls MPI only after the sender has come out of
// its last call, and the sender only after the receiver has them all.
func TestNeitherSideOfABurstWaits(t *testing.T) {
	for _, b := range []struct {
		call             string
		bytes, messages  int
		shadowed, copied int64
	}{
		{"send", 8, 1000, 0, 0}, // left to MPI, which has room for them
		{"send", 256, 1000, 0, 0},
		{"send", 257, 1, 1, 257},
		{"send", 1024, 1000, 1000, 1024 * 1000},
		{"send", 4000, 500, 500, 4000 * 500},
		{"send", 32768, 64, 64, 32768 * 64},
		{"isend", 1024, 1000, 1000, 1024 * 1000},
		{"isend", 32768, 64, 64, 32768 * 64},
	} {
		t.Run(b.call+" "+strconv.Itoa(b.bytes)+" bytes", func(t *testing.T) {
			said, fast := burst(t, shadow(), b.call, strconv.Itoa(b.bytes), strconv.Itoa(b.messages), "5", "alone")
			assert.Equal(t, "done", said)
			assert.Equal(t, b.shadowed, fast.Sends)
			assert.Equal(t, b.copied, fast.SentBytes)
			assert.Zero(t, fast.SendsFull)
		})
	}
}

// Without shadow buffers Open MPI waits: otherwise the test above shows nothing.
func TestPlainSendsWait(t *testing.T) {
	said, fast := burst(t, Run{Env: []string{"EVENKEEL_FAST=none"}}, "send", "1024", "1", "5", "together")
	assert.Equal(t, "sender waits", said)
	assert.Zero(t, fast)
}

func TestNothingIsShadowedUnlessWanted(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_FAST=none"}}, Program("shadow_traffic"), "1", "300")
	require.Zero(t, result.Status, result)
	assert.Zero(t, result.Profile(t).Fast)
}

// What a rank is sent is the same with and without shadow buffers, for random
// traffic of all kinds of send; a seed that fails can be run again by hand.
func TestRandomTrafficIsTheSame(t *testing.T) {
	received := func(r Run, seed string, args ...string) (Result, []string) {
		r.Ranks = 3
		result := Mpirun(t, r, Program("shadow_traffic"), append([]string{seed, "400"}, args...)...)
		require.Zero(t, result.Status, "seed %s: %s", seed, result)
		lines := strings.Split(strings.TrimSpace(result.Stdout), "\n")
		sort.Strings(lines)
		return result, lines
	}
	for seed := 1; seed <= 4; seed++ {
		text := strconv.Itoa(seed)
		_, want := received(Run{Preload: "none"}, text)
		for _, settings := range [][]string{
			nil,
			{"EVENKEEL_SHADOW_SLOTS=3", "EVENKEEL_SHADOW_LARGE=1"},
			{"EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_LIMIT=40000"},
			{"EVENKEEL_SHADOW_ROUTE=control", "EVENKEEL_SHADOW_CONTROL=tag=1-2"},
			{"EVENKEEL_SHADOW_ROOM=0"},
		} {
			result, got := received(shadow(settings...), text)
			assert.Equal(t, want, got, "seed %d, %v", seed, settings)
			assert.Positive(t, result.Profile(t).Fast.Sends, "seed %d, %v", seed, settings)
		}
		tcp := shadow("EVENKEEL_SHADOW_ROUTE=all")
		tcp.Mpirun = []string{"--mca", "btl", "tcp,self"}
		result, got := received(tcp, text)
		assert.Equal(t, want, got, "seed %d over TCP", seed)
		assert.Positive(t, result.Profile(t).Fast.Sends)
	}
	_, want := received(Run{Preload: "none"}, "9", "4")
	result, got := received(shadow(), "9", "4")
	assert.Equal(t, want, got, "four threads")
	assert.Positive(t, result.Profile(t).Fast.Sends)
}

func runShadowRequests(t *testing.T, r Run, what string) Result {
	t.Helper()
	return Mpirun(t, r, Program("shadow_requests"), filepath.Join(t.TempDir(), "flags"), what)
}

func TestRequestsOfShadowedSends(t *testing.T) {
	result := runShadowRequests(t, shadow(), "requests")
	require.Zero(t, result.Status, result)
	assert.Equal(t, int64(10), result.Profile(t).Fast.Sends)
}

func TestDisconnectWithMessagesUnderWay(t *testing.T) {
	result := runShadowRequests(t, shadow(), "disconnect")
	require.Zero(t, result.Status, result)
	assert.Equal(t, int64(3), result.Profile(t).Fast.Sends)
}

// Where ranks answer each other within microseconds, a copy would only cost time.
func TestQuickExchangesAreMPIs(t *testing.T) {
	result := runShadowRequests(t, shadow(), "exchange")
	require.Zero(t, result.Status, result)
	assert.Positive(t, result.Profile(t).Fast.Sends)
	assert.Less(t, result.Profile(t).Fast.Sends, int64(20000))
}

func TestMessagesArriveThatAreUnderWayAtFinalize(t *testing.T) {
	result := runShadowRequests(t, shadow(), "finalize")
	require.Zero(t, result.Status, result)
	assert.Equal(t, int64(209), result.Profile(t).Fast.Sends)
	assert.Empty(t, result.Stderr)
}

func TestWithoutAFreeSlotMPISends(t *testing.T) {
	result := runShadowRequests(t, shadow("EVENKEEL_SHADOW_SLOTS=4"), "full")
	require.Zero(t, result.Status, result)
	fast := result.Profile(t).Fast
	assert.GreaterOrEqual(t, fast.Sends, int64(4))
	assert.Positive(t, fast.SendsFull)
	assert.Equal(t, int64(40), fast.Sends+fast.SendsFull)
}

func TestWrongSendsGiveMPIsErrors(t *testing.T) {
	want := runShadowRequests(t, Run{Preload: "none"}, "errors")
	require.Zero(t, want.Status, want)
	require.Equal(t, 22, strings.Count(want.Stdout, "\n"))
	for _, route := range []string{"auto", "all"} {
		got := runShadowRequests(t, shadow("EVENKEEL_SHADOW_ROUTE="+route), "errors")
		assert.Equal(t, want.Stdout, got.Stdout)
		assert.Zero(t, got.Profile(t).Fast.Sends)
	}
}

// Control traffic goes through slots whatever its size, and nothing else does.
func TestControlTraffic(t *testing.T) {
	only := func(named string) Run {
		return shadow("EVENKEEL_SHADOW_ROUTE=control", "EVENKEEL_SHADOW_CONTROL="+named)
	}
	for named, shadowed := range map[string]int64{
		"tag=5": 10, "tag=4": 0, "tag=1,tag=3-9": 10, "comm=MPI_COMM_WORLD": 10, "comm=MPI_COMM": 0, "tag=x": 0, "": 0,
	} {
		said, fast := burst(t, only(named), "send", "64", "10", "5")
		assert.Equal(t, "done", said)
		assert.Equal(t, shadowed, fast.Sends, named)
	}
}

// What is kept for control traffic, other messages do not get.
func TestSlotsAreKeptForControlTraffic(t *testing.T) {
	r := shadow("EVENKEEL_SHADOW_SLOTS=8", "EVENKEEL_SHADOW_RESERVE=8", "EVENKEEL_SHADOW_CONTROL=tag=5")
	said, fast := burst(t, r, "send", "1024", "8", "5", "alone")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(8), fast.Sends)
	said, _ = burst(t, r, "send", "1024", "8", "6", "alone")
	assert.Equal(t, "sender waits", said)
}

func TestLimits(t *testing.T) {
	_, fast := burst(t, shadow("EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_LIMIT=2000"), "send", "2000", "3", "5")
	assert.Equal(t, int64(3), fast.Sends)
	said, fast := burst(t, shadow("EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_LIMIT=2000"), "send", "200", "3", "5")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(3), fast.Sends)
	result := Mpirun(t, shadow("EVENKEEL_SHADOW_LIMIT=256"), Program("shadow_traffic"), "5", "200")
	require.Zero(t, result.Status, result)
	assert.Zero(t, result.Profile(t).Fast.Sends)
}

// Messages are fetched without the sender's help, or not shadowed: where the
// receiver may not copy by itself, large ones are left to MPI.
func TestLargeMessagesNeedSingleCopy(t *testing.T) {
	r := shadow()
	r.Mpirun = []string{"--mca", "btl_vader_single_copy_mechanism", "none"}
	said, fast := burst(t, r, "isend", "1024", "10", "5", "alone")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(10), fast.Sends)
	result := Mpirun(t, r, Program("shadow_burst"), filepath.Join(t.TempDir(), "flags"), "send", "32768", "1", "5")
	assert.NotZero(t, result.Status)
	assert.Contains(t, result.Stdout, "sender waits")
}

// A ring of Open MPI's usual length takes so many messages and no more: those
// beyond wait in MPI_Send, and none waits for its sender's next call.
func TestWithoutMoreRoomFewerMessagesAreShadowed(t *testing.T) {
	said, fast := burst(t, shadow("EVENKEEL_SHADOW_ROOM=0"), "send", "1024", "90", "5", "alone")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(90), fast.Sends)
	said, _ = burst(t, shadow("EVENKEEL_SHADOW_ROOM=0"), "send", "1024", "110", "5", "alone")
	assert.Equal(t, "sender waits", said)
}

// Ranks that do not all want more room get none, since both ends of a ring must
// know its length.
func TestRanksWithAndWithoutShadowBuffers(t *testing.T) {
	script := `EVENKEEL_FAST=$([ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ] && echo shadow || echo none) exec "$@"`
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_SUMMARY=0"}}, "sh", "-c", script, "sh", Program("shadow_traffic"), "3", "400")
	require.Zero(t, result.Status, result)
	assert.Equal(t, 3, strings.Count(result.Stdout, "in order"))
	assert.Positive(t, result.Profile(t).Fast.Sends)
	left, err := filepath.Glob("/dev/shm/evenkeel.room.*")
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestShadowBuffersFromOtherLanguages(t *testing.T) {
	for name, command := range map[string][]string{
		"mpif.h":  {Program("shadow_fortran_mpifh")},
		"mpi_f08": {Program("shadow_fortran_f08")},
		"mpi4py":  {python, Source("shadow_python.py")},
	} {
		t.Run(name, func(t *testing.T) {
			result := Mpirun(t, shadow(), command[0], command[1:]...)
			require.Zero(t, result.Status, result)
			assert.Equal(t, []string{"done", "done"}, regexp.MustCompile(`\w{4}`).FindAllString(result.Stdout, -1))
			assert.GreaterOrEqual(t, result.Profile(t).Fast.Sends, int64(100))
		})
	}
}

// Between hosts MPI has no room that the receiver reaches alone: its own way,
// unless the user wants all.
func TestShadowBuffersBetweenHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, route := range []string{"auto", "all"} {
		r := onHosts(t, c, "env", "EVENKEEL_FAST=shadow", "EVENKEEL_SHADOW_ROUTE="+route, Program("shadow_traffic"), "7", "300")
		require.Zero(t, r.Status, r)
		assert.Equal(t, 4, strings.Count(r.Stdout, "in order"), r)
		assert.Positive(t, r.Profile(t).Fast.Sends)
	}
}
