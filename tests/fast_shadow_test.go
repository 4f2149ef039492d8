package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/c/tables"
	"evenkeel/runtime/profile"
	"evenkeel/tests/hosts"
)

// room has MPI_Init ask for shadow buffers however many cores there are.
const room = "EVENKEEL_SHADOW_ROOM=1"

// shadow is how a test of shadow buffers runs two ranks.
func shadow(settings ...string) Run {
	env := append([]string{"EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0"}, settings...)
	if !slices.Contains(settings, "EVENKEEL_SHADOW_ROOM=0") {
		env = append(env, room) // also of more ranks than there are cores
	}
	return Run{Env: env}
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

// stuck is what a burst says in which one side waits for the other for ever.
func stuck(t *testing.T, r Run, args ...string) string {
	t.Helper()
	r.Env = append(slices.Clone(r.Env), "PATIENCE_MS=1000")
	said, fast := burst(t, r, args...)
	assert.Zero(t, fast)
	return said
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
				r := Run{Env: []string{"EVENKEEL_FAST=" + ways, "EVENKEEL_SUMMARY=0", room}}
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

// What goes to the receiver by a fragment that MPI has made goes past a full ring
// too, and the ring serves again when its receiver has taken what was in it. Only
// messages that MPI_Send does not wait for are counted.
func TestTheRingIsUsedAgain(t *testing.T) {
	said, fast := burst(t, shadow(), "both", "100", "300", "5", "alone")
	assert.Equal(t, "done", said)
	assert.GreaterOrEqual(t, fast.Sends, int64(300-127))
	assert.Less(t, fast.Sends, int64(300))
}

// A ring with 10 messages in it has places, wherever in it they lie.
func TestNothingGoesPastARingWithPlaces(t *testing.T) {
	for _, bytes := range []string{"8", "200"} {
		said, fast := burst(t, shadow(), "answered", bytes, "300", "5")
		assert.Equal(t, "done", said)
		assert.Zero(t, fast.Sends, "%s bytes", bytes)
	}
}

// The length of rings is the user's.
func TestRingsOfAnotherLength(t *testing.T) {
	r := shadow()
	r.Mpirun = []string{"--mca", "btl_vader_fbox_size", "16384"}
	said, fast := burst(t, r, "send", "8", "1000", "5", "alone")
	assert.Equal(t, "done", said)
	assert.GreaterOrEqual(t, fast.Sends, int64(1000-511))
	assert.Less(t, fast.Sends, int64(1000-127))
}

// roomParameters are Open MPI's parameters that evenkeel may ask for, openMPIs
// and asked their values without and with all of it.
var (
	roomParameters = []string{"btl_vader_flags", "btl_vader_eager_limit", "btl_vader_rndv_eager_limit",
		"btl_vader_max_inline_send", "btl_vader_free_list_max", "btl_vader_segment_size", "pml_ob1_send_pipeline_depth"}
	openMPIs = []int64{0, 4096, 32768, 256, 512, 4 << 20, 3}
	asked    = []int64{-8, 32768 + 128, 4096, 4096, 1024, 24 << 20, 16}
)

// parameters runs a rank for each setting and returns what its MPI_Init has made
// of the parameters: of the flags how far they are from Open MPI's own.
func parameters(t *testing.T, before []string, settings ...string) [][]int64 {
	t.Helper()
	return parametersOf(t, Run{}, before, settings...)
}

// parametersOf does so with what r has of mpirun, and with a command before each rank: $BEFORE.
func parametersOf(t *testing.T, r Run, before []string, settings ...string) [][]int64 {
	t.Helper()
	script := `shift $OMPI_COMM_WORLD_RANK; export "$1"; exec $BEFORE ` + Program("shadow_room") + " " + strings.Join(roomParameters, " ")
	r.Ranks, r.Env = len(settings), append(slices.Clone(r.Env), "EVENKEEL_SUMMARY=0", room)
	command := append([]string{"mpirun"}, r.mpirun(filepath.Join(t.TempDir(), "profile"), "sh", append([]string{"-c", script, "sh"}, settings...))...)
	command = append(before, command...)
	result := Command(t, r, command[0], command[1:]...)
	require.Zero(t, result.Status, result)
	all := make([][]int64, len(settings))
	for _, line := range strings.Split(strings.TrimSpace(result.Stdout), "\n") {
		var rank, in int
		values := make([]int64, len(roomParameters))
		_, err := fmt.Sscanf(line, "%d: %d %d %d %d %d %d %d %d", &rank, &values[0], &values[1], &values[2], &values[3],
			&values[4], &values[5], &values[6], &in)
		require.NoError(t, err, line)
		ours := 0
		if strings.HasPrefix(settings[rank], "OMPI_MCA_") {
			ours = 1
		}
		assert.Equal(t, ours, in, "%s: what is in the environment after MPI_Init", settings[rank])
		all[rank] = values
	}
	flags := all[0][0]
	for _, values := range all {
		values[0] -= flags
	}
	return all
}

// changed are values of which one is another one.
func changed(values []int64, at int, value int64) []int64 {
	values = slices.Clone(values)
	values[at] = value
	return values
}

func TestWhatOpenMPIIsAskedFor(t *testing.T) {
	const eager, fragments, depth = 1, 4, 6
	only := func(at int) []int64 { return changed(openMPIs, at, asked[at]) }
	cases := []struct {
		setting string
		want    []int64
	}{
		{"EVENKEEL_FAST=none", openMPIs},
		{"EVENKEEL_FAST=all", asked},
		{"EVENKEEL_FAST=datatype", only(depth)},
		{"EVENKEEL_FAST=shadow", changed(asked, depth, 3)},
		{"EVENKEEL_ENABLE=0", openMPIs},
		{"EVENKEEL_SHADOW_ROOM=0", only(depth)},
		{"EVENKEEL_SHADOW_SLOTS=0", only(depth)},
		{"EVENKEEL_SHADOW_SLOTS=3", changed(asked, fragments, 64)},
		{"EVENKEEL_SHADOW_LIMIT=4095", only(depth)},
		{"EVENKEEL_SHADOW_LIMIT=200000", changed(asked, eager, 65536+128)},
	}
	var settings []string
	for _, c := range cases {
		settings = append(settings, c.setting)
	}
	got := parameters(t, nil, settings...)
	for i, c := range cases {
		assert.Equal(t, c.want, got[i], c.setting)
	}
}

// Where ranks share cores a send is to wait as it does under Open MPI alone, unless the
// user wants it otherwise: what counts is all cores of the node's ranks, whatever one of
// them is bound to.
func TestACrowdIsNotAskedForShadowBuffers(t *testing.T) {
	const auto = "EVENKEEL_SHADOW_ROOM=auto"
	depth := changed(openMPIs, 6, 16)
	got := parameters(t, []string{"taskset", "-c", allowed(t)[0]}, "EVENKEEL_FAST=none", auto, room)
	assert.Equal(t, [][]int64{openMPIs, depth, asked}, got)
	if len(allowed(t)) < 2 {
		t.Skip("the rest takes two cores")
	}
	got = parameters(t, []string{"taskset", "-c", allowed(t)[0] + "," + allowed(t)[1]}, "EVENKEEL_FAST=none", auto, auto)
	assert.Equal(t, [][]int64{openMPIs, depth, depth}, got, "three ranks on two cores")
	for what, r := range map[string]Run{
		"free":          {Mpirun: []string{"--bind-to", "none"}},
		"bound by MPI":  {Mpirun: []string{"--bind-to", "core"}},
		"bound by hand": {Mpirun: []string{"--bind-to", "none"}, Env: []string{"BEFORE=taskset -c " + allowed(t)[0]}},
	} {
		got = parametersOf(t, r, nil, "EVENKEEL_FAST=none", auto)
		assert.Equal(t, [][]int64{openMPIs, asked}, got, what)
	}
	got = parametersOf(t, Run{Mpirun: []string{"--bind-to", "core:overload-allowed"}}, nil,
		append(slices.Repeat([]string{auto}, runtime.NumCPU()), "EVENKEEL_FAST=none")...)
	assert.Equal(t, depth[1:], got[0][1:], "more bound ranks than cores")
}

// allowed are the numbers of the cores that this process may use.
func allowed(t *testing.T) []string {
	t.Helper()
	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set))
	var cores []string
	for core := 0; len(cores) < set.Count(); core++ {
		if set.IsSet(core) {
			cores = append(cores, strconv.Itoa(core))
		}
	}
	return cores
}

// What the user has set is left, and nothing is asked for that goes with it.
func TestUsersParametersAreLeft(t *testing.T) {
	settings := []string{"EVENKEEL_FAST=none"}
	for i, value := range []string{"send", "5000", "5000", "300", "700", "5000000", "5"} {
		settings = append(settings, "OMPI_MCA_"+roomParameters[i]+"="+value)
	}
	got := parameters(t, nil, settings...)
	for i, value := range []int64{0, 5000, 5000, 300, 700, 5000000} {
		want := changed(changed(openMPIs, 6, 16), i, value)
		want[0], got[i+1][0] = 0, 0
		assert.Equal(t, want, got[i+1], settings[i+1])
	}
	assert.Equal(t, changed(asked, 6, 5), got[7])
}

// The ranks of a node together ask for half of the shared memory that is free.
func TestLittleSharedMemory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small /dev/shm")
	}
	const least, segment = 4 << 20, 5
	on := func(mib int) []int64 {
		mount := fmt.Sprintf(`mount -t tmpfs -o size=%dm none /dev/shm && exec "$@"`, mib)
		return parameters(t, []string{"unshare", "-m", "sh", "-c", mount, "sh"}, "EVENKEEL_FAST=none", "EVENKEEL_FAST=shadow")[1]
	}
	assert.Equal(t, openMPIs, on(14))
	got := on(40)
	assert.LessOrEqual(t, got[segment], int64(10<<20))
	assert.Greater(t, got[segment], int64(least))
	assert.Equal(t, changed(asked, 6, 3), changed(got, segment, 24<<20))
}

// Without shadow buffers Open MPI waits: otherwise the test above shows nothing.
func TestPlainSendsWait(t *testing.T) {
	assert.Equal(t, "sender waits", stuck(t, Run{Env: []string{"EVENKEEL_FAST=none"}}, "send", "1024", "1", "5", "together"))
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
	for seed := 1; seed <= 2; seed++ {
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
		tcp := shadow("EVENKEEL_SHADOW_CONTROL=tag=0-9")
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

// In Open MPI's fragments, in slots of our own, and in slots whose messages MPI copies
// into its fragments within the call: these are counted once too.
func TestRequestsOfShadowedSends(t *testing.T) {
	const control = "EVENKEEL_SHADOW_CONTROL=comm=MPI_COMM_WORLD"
	for name, r := range map[string]Run{
		"fragments":           shadow(),
		"slots":               shadow("EVENKEEL_SHADOW_ROOM=0", control),
		"slots and fragments": shadow(control),
	} {
		t.Run(name, func(t *testing.T) {
			result := runShadowRequests(t, r, "requests")
			require.Zero(t, result.Status, result)
			fast := result.Profile(t).Fast
			assert.Equal(t, int64(10), fast.Sends)
			assert.Equal(t, int64(10*1000), fast.SentBytes)
		})
	}
}

func TestDisconnectWithMessagesUnderWay(t *testing.T) {
	result := runShadowRequests(t, shadow(), "disconnect")
	require.Zero(t, result.Status, result)
	assert.Equal(t, int64(3), result.Profile(t).Fast.Sends)
}

// In Open MPI's fragments, and in slots of our own.
func TestMessagesArriveThatAreUnderWayAtFinalize(t *testing.T) {
	for _, r := range []Run{shadow(), shadow("EVENKEEL_SHADOW_ROOM=0", "EVENKEEL_SHADOW_CONTROL=comm=MPI_COMM_WORLD")} {
		result := runShadowRequests(t, r, "finalize")
		require.Zero(t, result.Status, result)
		assert.Equal(t, int64(209), result.Profile(t).Fast.Sends)
		assert.Empty(t, result.Stderr)
	}
}

// Slots of our own come free when MPI has sent: where the receiver takes nothing
// and MPI copies nothing, that is later.
func TestWithoutAFreeSlotMPISends(t *testing.T) {
	r := shadow("EVENKEEL_SHADOW_SLOTS=4", "EVENKEEL_SHADOW_CONTROL=comm=MPI_COMM_WORLD", "EVENKEEL_SHADOW_ROOM=0")
	result := runShadowRequests(t, r, "full")
	require.Zero(t, result.Status, result)
	fast := result.Profile(t).Fast
	assert.GreaterOrEqual(t, fast.Sends, int64(4))
	assert.Positive(t, fast.SendsFull)
	assert.Equal(t, int64(40), fast.Sends+fast.SendsFull)
}

// A slot that comes free is used again, in whatever order the messages leave, and
// none before its message has left. Types with gaps have none, and derived ones.
func TestSlotsAreUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		args     []string
		settings []string
		sends    int64
	}{
		"until they are received": {[]string{"1000", "5"}, []string{"EVENKEEL_SHADOW_SLOTS=5", "EVENKEEL_SHADOW_ROOM=0"}, 250},
		"large, until received":   {[]string{"8000", "5"}, []string{"EVENKEEL_SHADOW_LARGE=5", "EVENKEEL_SHADOW_ROOM=0"}, 250},
		"sent at once":            {[]string{"200", "4", "gaps"}, []string{"EVENKEEL_SHADOW_SLOTS=4"}, 90},
		"large, sent at once":     {[]string{"8000", "4", "gaps"}, []string{"EVENKEEL_SHADOW_LARGE=4"}, 90},
	} {
		t.Run(name, func(t *testing.T) {
			r := shadow(append(c.settings, "EVENKEEL_SHADOW_CONTROL=tag=0")...)
			r.Ranks = 3
			result := Mpirun(t, r, Program("shadow_slots"), append([]string{filepath.Join(t.TempDir(), "flags")}, c.args...)...)
			require.Zero(t, result.Status, result)
			fast := result.Profile(t).Fast
			assert.Greater(t, fast.Sends, c.sends)
			assert.Zero(t, fast.SendsFull)
		})
	}
}

// Memory is bounded: MPI has as many buffers as was asked for, then it waits.
func TestWithoutAFreeFragmentMPIWaits(t *testing.T) {
	said, fast := burst(t, shadow("EVENKEEL_SHADOW_SLOTS=64"), "send", "1024", "60", "5", "alone")
	assert.Equal(t, "done", said)
	assert.Equal(t, int64(60), fast.Sends)
	assert.Equal(t, "sender waits", stuck(t, shadow("EVENKEEL_SHADOW_SLOTS=64"), "send", "1024", "70", "5", "alone"))
}

// What MPI can't send after the call has returned, the next call that sends to
// that rank says, by its own error handler, and the calls after it are MPI's.
func TestALostMessageIsTold(t *testing.T) {
	r := shadow("EVENKEEL_SHADOW_CONTROL=comm=MPI_COMM_WORLD", "EVENKEEL_SHADOW_ROOM=0", "EVENKEEL_SHADOW_SLOTS=2")
	r.Ranks = 3
	r.Preload = Library + ":" + Program("libloss.so")
	result := runShadowRequests(t, r, "lost")
	require.Zero(t, result.Status, result)
	for _, to := range []string{"1", "2"} {
		said := "a message from rank 0 to rank " + to + " was lost after its MPI_Send or MPI_Isend had returned"
		assert.Equal(t, 1, strings.Count(result.Stderr, said), result.Stderr)
	}
}

func TestWrongSendsGiveMPIsErrors(t *testing.T) {
	want := runShadowRequests(t, Run{Preload: "none"}, "errors")
	require.Zero(t, want.Status, want)
	require.Equal(t, 23+19, strings.Count(want.Stdout, "\n"), "lines of calls and of their error handlers: %s", want)
	for _, named := range []string{"", "comm=MPI_COMM_WORLD"} {
		got := runShadowRequests(t, shadow("EVENKEEL_SHADOW_CONTROL="+named), "errors")
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
		"tag=5-": 0, "tag=5,tga=1": 0, "tag=5,": 0, "tag=5x": 0, "tag=6-5": 0, "tag=5,comm=": 0, "tag=5-5": 10,
		strings.Repeat("tag=5,", tables.MostTraffic) + "tag=5": 0, strings.Repeat("tag=4,", tables.MostTraffic-1) + "tag=5": 10,
	} {
		said, fast := burst(t, only(named), "send", "64", "10", "5")
		assert.Equal(t, "done", said)
		assert.Equal(t, shadowed, fast.Sends, named)
	}
}

// What is kept for control traffic, other messages do not get.
func TestSlotsAreKeptForControlTraffic(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 1})
	for _, b := range []struct {
		tag, reserve string
		sends, full  int64
	}{{"5", "8", 8, 0}, {"6", "8", 0, 8}, {"6", "7", 8, 0}} {
		dir := t.TempDir()
		env := []string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + dir, "EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0",
			"EVENKEEL_SHADOW_SLOTS=8", "EVENKEEL_SHADOW_RESERVE=" + b.reserve, "EVENKEEL_SHADOW_CONTROL=tag=5", "EVENKEEL_SHADOW_ROUTE=all"}
		r := start(t, dir, c.Mpirun(t.Context(), c.Count(), env,
			Program("shadow_burst"), filepath.Join(t.TempDir(), "flags"), "send", "1024", "8", b.tag)).Wait(t)
		require.Zero(t, r.Status, r)
		fast := r.Profile(t).Fast
		assert.Equal(t, b.sends, fast.Sends, b)
		assert.Equal(t, b.full, fast.SendsFull, b)
	}
}

// Once an MPI_Send to another node had to wait, messages to that rank go through slots of our
// own, until a thousand have gone that did not.
func TestRouteFromTheHistoryOfMessages(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 1})
	run := func(route string, settings ...string) Result {
		dir := t.TempDir()
		env := append([]string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + dir, "EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0",
			"EVENKEEL_SHADOW_ROUTE=" + route, "OMPI_MCA_btl_tcp_sndbuf=65536", "OMPI_MCA_btl_tcp_rcvbuf=65536"}, settings...)
		return start(t, dir, c.Mpirun(t.Context(), c.Count(), env,
			Program("shadow_burst"), filepath.Join(t.TempDir(), "flags"), "learned", "8000", "60", "5")).Wait(t)
	}
	assert.Contains(t, run("auto", "PATIENCE_MS=1000").Stdout, "sender waits")

	// Some of the first burst, all of the second, and a thousand of the 4000 after it; the other
	// rank's never have to wait.
	r := run("history")
	require.Equal(t, "done\n", r.Stdout, r)
	fast := r.Profile(t).Fast
	assert.Greater(t, fast.Sends, int64(60+900))
	assert.Less(t, fast.Sends, int64(60+60+1500))
	assert.Zero(t, fast.SendsFull)
}

// What has been sent comes while its sender computes, wherever Open MPI alone would
// have it come: with few fragments too, and past a full ring.
func TestNoMessageWaitsForItsSendersNextCall(t *testing.T) {
	for _, c := range []struct {
		sends    string
		mpirun   []string
		settings []string
	}{
		{"send 1024 200 1", []string{"--mca", "btl_vader_free_list_max", "64"}, []string{"EVENKEEL_SHADOW_ROUTE=all"}},
		{"send 1024 600 1", nil, []string{"EVENKEEL_SHADOW_ROUTE=all", "EVENKEEL_SHADOW_SLOTS=64"}},
		{"send 200 300 3", nil, nil},
		{"isend 1024 300 1", nil, nil},
		{"isend 8000 300 1", nil, nil},
	} {
		r := shadow(c.settings...)
		r.Mpirun = c.mpirun
		args := append([]string{filepath.Join(t.TempDir(), "flags")}, strings.Fields(c.sends)...)
		result := Mpirun(t, r, Program("shadow_late"), args...)
		assert.Equal(t, "done\n", result.Stdout, "%v", c)
	}
}

func TestLimits(t *testing.T) {
	_, fast := burst(t, shadow("EVENKEEL_SHADOW_CONTROL=tag=5", "EVENKEEL_SHADOW_LIMIT=2000"), "send", "2000", "3", "5")
	assert.Equal(t, int64(3), fast.Sends)
	said, fast := burst(t, shadow("EVENKEEL_SHADOW_CONTROL=tag=5", "EVENKEEL_SHADOW_LIMIT=2000"), "send", "200", "3", "5")
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
	assert.Equal(t, "sender waits", stuck(t, shadow("EVENKEEL_SHADOW_ROOM=0"), "send", "1024", "1", "5", "alone"))
	r := shadow()
	r.Mpirun = []string{"--mca", "btl_vader_eager_limit", "4096"}
	assert.Equal(t, "sender waits", stuck(t, r, "send", "1024", "1", "5", "alone"))
}

// It concerns the sender alone: some ranks may have it and others not.
func TestRanksWithAndWithoutShadowBuffers(t *testing.T) {
	script := `EVENKEEL_FAST=$([ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ] && echo shadow || echo none) exec "$@"`
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_SUMMARY=0", room}}, "sh", "-c", script, "sh", Program("shadow_traffic"), "3", "400")
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
	for _, route := range []string{"auto", "history", "all"} {
		r := onHosts(t, c, "env", "EVENKEEL_FAST=shadow", "EVENKEEL_SHADOW_ROUTE="+route, Program("shadow_traffic"), "7", "300")
		require.Zero(t, r.Status, r)
		assert.Equal(t, 4, strings.Count(r.Stdout, "in order"), r)
		assert.Positive(t, r.Profile(t).Fast.Sends)
	}
}
