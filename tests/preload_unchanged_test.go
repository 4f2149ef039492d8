package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/segment"
)

// varying are the parts of programs' output that differ from run to run: how
// often a program asks until something has come, and what it takes of memory
// and time.
var varying = regexp.MustCompile(`(?m)^MPI_(Test|Testall|Testany|Testsome|Waitsome|Iprobe|Improbe|Request_get_status|Win_test) \d+$` +
	`|^peak_kib_.*$|seconds [0-9.]+$`)

// steady is what does not vary, its lines sorted, since ranks and worlds print
// in any order.
func steady(output string) []string {
	lines := strings.Split(varying.ReplaceAllString(output, "…"), "\n")
	slices.Sort(lines)
	return lines
}

// What a program prints and returns is the same with evenkeel and without.
func TestOutputAndStatusAreUnchanged(t *testing.T) {
	type program struct {
		ranks   int
		mpirun  []string
		command []string
		status  int
	}
	programs := map[string]program{
		"thread_multiple":  {2, nil, []string{Program("thread_multiple"), "4", "3", "20"}, 0},
		"comms":            {2, nil, []string{Program("comms"), "100"}, 0},
		"deep":             {2, nil, []string{Program("deep")}, 0},
		"grid":             {4, nil, []string{Program("grid")}, 0},
		"regions":          {2, nil, []string{Program("regions"), "named"}, 0},
		"errors":           {3, nil, []string{Program("errors"), "return"}, 0},
		"errors that jump": {2, nil, []string{Program("errors"), "jump"}, 0},
		"spawn":            {2, []string{"--host", "localhost:16"}, []string{Program("spawn")}, 0},
		"ends by exit":     {2, nil, []string{Program("ends"), "exit", "3"}, 3},
		"ends by abort":    {2, nil, []string{Program("ends"), "abort", "5"}, 5},
		"ends as another":  {2, nil, []string{Program("ends"), "exec"}, 1},
	}
	for _, caller := range callers {
		programs[caller.language] = program{2, nil, caller.command, 0}
	}
	for _, level := range []string{"none", "single", "multiple"} {
		programs["inits "+level] = program{2, nil, []string{Program("inits"), level}, 0}
	}
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			run := Run{Ranks: p.ranks, Mpirun: p.mpirun}
			with := Mpirun(t, run, p.command[0], p.command[1:]...)
			run.Preload = "none"
			without := Mpirun(t, run, p.command[0], p.command[1:]...)
			assert.Equal(t, p.status, without.Status, without)
			assert.Equal(t, p.status, with.Status, with)
			assert.Equal(t, steady(without.Stdout), steady(with.Stdout))
			assert.NotEmpty(t, without.Stdout)
			assert.DirExists(t, with.Dir, "this run was not recorded, so the comparison says nothing")
		})
	}
}

// Without an error handler of its own a program ends with the status that Open
// MPI makes of the error, or goes on where it did.
func TestFatalErrorsAreUnchanged(t *testing.T) {
	for _, c := range []string{"send_bad_rank", "isend_null_type", "allreduce_null_type", "barrier_null_comm", "free_world",
		"file_close_null_pointer", "gather_in_place", "scatter_elsewhere"} {
		t.Run(c, func(t *testing.T) {
			with := Mpirun(t, Run{}, Program("errors"), "fatal", c)
			without := Mpirun(t, Run{Preload: "none"}, Program("errors"), "fatal", c)
			assert.Equal(t, without.Status, with.Status, with)
		})
	}
}

func TestErrnoComesThroughUnchanged(t *testing.T) {
	preload := Library + ":" + Program("libmpi_errno.so")
	for _, env := range [][]string{nil, {"EVENKEEL_ENABLE=0"}, {"EVENKEEL_THREADS=1"}} {
		t.Run(fmt.Sprint(env), func(t *testing.T) {
			result := Mpirun(t, Run{Preload: preload, Env: env}, Program("errnos"))
			assert.Zero(t, result.Status, result)
			assert.Empty(t, result.Stdout)
		})
	}
}

// An error handler that does not return leaves a call open for ever: the next
// ones are counted all the same.
func TestCallsAfterAnErrorThatJumpsAreCounted(t *testing.T) {
	assertCounted(t, Mpirun(t, Run{}, Program("errors"), "jump"))
}

// What MPI, or a function that it calls, calls of MPI is a part of the call that is open: whose time
// would be counted twice.
func TestCallsInsideOfCallsAreNotCounted(t *testing.T) {
	assertCounted(t, Mpirun(t, Run{}, Program("errors"), "nested"))
}

func TestSwitchedOffItLeavesNothing(t *testing.T) {
	result := Mpirun(t, Run{Env: []string{"EVENKEEL_ENABLE=0"}}, Program("calls_cc"))
	assert.Zero(t, result.Status, result)
	assert.Empty(t, result.Stderr)
	assert.NoDirExists(t, result.Dir)
}

// A mistake in a setting is told once a job, and does nothing else.
func TestMistakenSettingsAreToldOnce(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_SUMARY=0", "EVENKEEL_DRAIN=5s", "EVENKEEL_RING=1000"}}, Program("ends"), "finalize")
	assert.Zero(t, result.Status, result)
	assert.Equal(t, "met\n", result.Stdout)
	assert.ElementsMatch(t, []string{
		"evenkeel: EVENKEEL_SUMARY is not a setting and has no effect; the nearest is EVENKEEL_SUMMARY",
		"evenkeel: EVENKEEL_RING=1000: this is not a power of two from 256 to 1048576 (events); the default, 8192, is used",
		"evenkeel: EVENKEEL_DRAIN=5s: this is not a whole number from 1 to 10000 (ms); the default, 50, is used",
	}, ours(result.Stderr))
	assert.Contains(t, result.Stderr, "parallel efficiency")
	image, err := os.Open(filepath.Join(result.Dir, "world-1.node-0.image"))
	require.NoError(t, err)
	defer image.Close()
	header, err := segment.DecodeHeader(image)
	require.NoError(t, err)
	assert.Equal(t, uint32(8192), header.RingEvents, "C takes the default too")
}

// In Go, where MPI_Init reads no settings, it is told when global shared memory does; and not again where the
// program brings the runtime, which reads them in MPI_Init.
func TestMistakenSettingsAreToldOnceInGo(t *testing.T) {
	mistakes := []string{"EVENKEEL_GSM_RESERV=1", "EVENKEEL_FABRIC=upd"}
	want := []string{
		"evenkeel: EVENKEEL_GSM_RESERV is not a setting and has no effect; the nearest is EVENKEEL_GSM_RESERVE",
		"evenkeel: EVENKEEL_FABRIC=upd: this is not auto, udp or mpi (the nearest is udp); the default, auto, is used",
	}
	for name, run := range map[string]Run{"not recorded": {Preload: "none"}, "recorded without the runtime": {}} {
		run.Ranks, run.Env = 3, mistakes
		r := Mpirun(t, run, goSieve(t), "-limit", "1000", "-block", "10")
		assert.Zero(t, r.Status, "%s: %v", name, r)
		assert.ElementsMatch(t, want, ours(r.Stderr), name)
	}
	j := Start(t, Run{Ranks: 3, Env: mistakes}, Program("gsm_hold_go"))
	j.Until(t, "held")
	j.Signal(syscall.SIGTERM)
	said := slices.DeleteFunc(ours(j.Wait(t).Stderr), func(line string) bool { return !strings.HasPrefix(line, "evenkeel: EVENKEEL_") })
	assert.ElementsMatch(t, want, said, "recorded with the runtime")
}

// A Python module may bring the Fortran side of MPI long after MPI_Init.
func TestFortranMayComeLate(t *testing.T) {
	assertCounted(t, Mpirun(t, Run{}, Program("late_fortran")))
}
