package tests

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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
// its last call, and the sender only after the receiver has them all. Up to 256
// bytes MPI does not wait while its ring has a place: only the others count.
func TestNeitherSideOfABurstWaits(t *testing.T) {
	for _, b := range []struct {
		call            string
		bytes, messages int
		ring            int64 // the messages that may lie in the ring, itself or by a reference of 32 bytes
	}{
		{"send", 8, 1000, 127},
		{"send", 256, 1000, 127},
		{"send", 257, 1, 0},
		{"send", 1024, 1000, 0},
		{"send", 4000, 500, 0},
		{"send", 32768, 64, 0},
		{"isend", 1024, 1000, 0},
		{"isend", 32768, 64, 0},
		{"vector", 1024, 1000, 0},
		{"vector", 32768, 64, 0},
	} {
		for _, ways := range []string{"shadow", "shadow,datatype"} {
			t.Run(fmt.Sprintf("%s %d bytes, %s", b.call, b.bytes, ways), func(t *testing.T) {
				r := Run{Env: []string{"EVENKEEL_FAST=" + ways, "EVENKEEL_SUMMARY=0"}}
				said, fast := burst(t, r, b.call, strconv.Itoa(b.bytes), strconv.Itoa(b.messages), "5", "alone")
				assert.Equal(t, "done", said)
				assert.GreaterOrEqual(t, fast.Sends, int64(b.messages)-b.ring)
				assert.LessOrEqual(t, fast.Sends, int64(b.messages))
				assert.Equal(t, fast.Sends*int64(b.bytes), fast.SentBytes)
				assert.Zero(t, fast.SendsFull)
				if b.ring > 0 {
					assert.Less(t, fast.Sends, int64(b.messages))
				}
			})
		}
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
			assert.Equal(t, !slices.Contains(settings, "EVENKEEL_SHADOW_ROOM=0"), result.Profile(t).Fast.Sends > 0,
				"seed %d, %v", seed, settings)
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

func TestMessagesArriveThatAreUnderWayAtFinalize(t *testing.T) {
	result := runShadowRequests(t, shadow(), "finalize")
	require.Zero(t, result.Status, result)
	assert.Equal(t, int64(209), result.Profile(t).Fast.Sends)
	assert.Empty(t, result.Stderr)
}

// Slots of our own come free when MPI has sent: where the receiver takes nothing
// and MPI copies nothing, that is later.
func TestWithoutAFreeSlotMPISends(t *testing.T) {
	r := shadow("EVENKEEL_SHADOW_SLOTS=4", "EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_ROOM=0")
	result := runShadowRequests(t, r, "full")
	require.Zero(t, result.Status, result)
	fast := result.Profile(t).Fast
	assert.GreaterOrEqual(t, fast.Sends, int64(4))
	assert.Positive(t, fast.SendsFull)
	assert.Equal(t, int64(40), fast.Sends+fast.SendsFull)
}

// Memory is bounded: MPI has as many buffers as was asked for, then it waits.
func TestWithoutAFreeFragmentMPIWaits(t *testing.T) {
	said, fast := burst(t, shadow("EVENKEEL_SHADOW_SLOTS=64"), "send", "1024", "60", "5", "alone")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(60), fast.Sends)
	said, _ = burst(t, shadow("EVENKEEL_SHADOW_SLOTS=64"), "send", "1024", "70", "5", "alone")
	assert.Equal(t, "sender waits", said)
}

// What MPI can't send after the call has returned, the next call that sends to
// that rank says, by its own error handler, and the calls after it are MPI's.
func TestALostMessageIsTold(t *testing.T) {
	r := shadow("EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_ROOM=0")
	r.Preload = Library + ":" + Program("libshadow_loss.so")
	result := runShadowRequests(t, r, "lost")
	require.Zero(t, result.Status, result)
	assert.Equal(t, 1, strings.Count(result.Stderr, "a message from rank 0 to rank 1 was lost after its MPI_Send or MPI_Isend had returned"), result.Stderr)
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
	r := shadow("EVENKEEL_SHADOW_SLOTS=8", "EVENKEEL_SHADOW_RESERVE=8", "EVENKEEL_SHADOW_CONTROL=tag=5",
		"EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_ROOM=0")
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

// They are copied by both sides, so nothing depends on how the receiver could
// fetch them otherwise.
func TestShadowBuffersNeedNoSingleCopy(t *testing.T) {
	for _, mechanism := range []string{"none", "emulated"} {
		r := shadow()
		r.Mpirun = []string{"--mca", "btl_vader_single_copy_mechanism", mechanism}
		said, fast := burst(t, r, "send", "32768", "10", "5", "alone")
		assert.Equal(t, "done", said)
		assert.Equal(t, int64(10), fast.Sends)
		result := Mpirun(t, r, Program("shadow_traffic"), "11", "300")
		require.Zero(t, result.Status, result)
		assert.Equal(t, 2, strings.Count(result.Stdout, "in order"))
	}
}

// MPI is as it is where it was not asked for anything else, or the user has.
func TestWithoutRoomMPIWaits(t *testing.T) {
	said, _ := burst(t, shadow("EVENKEEL_SHADOW_ROOM=0"), "send", "1024", "1", "5", "alone")
	assert.Equal(t, "sender waits", said)
	r := shadow()
	r.Mpirun = []string{"--mca", "btl_vader_eager_limit", "4096"}
	said, _ = burst(t, r, "send", "1024", "1", "5", "alone")
	assert.Equal(t, "sender waits", said)
}

// It concerns the sender alone: some ranks may have it and others not.
func TestRanksWithAndWithoutShadowBuffers(t *testing.T) {
	script := `EVENKEEL_FAST=$([ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ] && echo shadow || echo none) exec "$@"`
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_SUMMARY=0"}}, "sh", "-c", script, "sh", Program("shadow_traffic"), "3", "400")
	require.Zero(t, result.Status, result)
	assert.Equal(t, 3, strings.Count(result.Stdout, "in order"))
	assert.Positive(t, result.Profile(t).Fast.Sends)
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
