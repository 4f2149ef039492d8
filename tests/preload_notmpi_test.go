package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// preloaded runs a command with the library preloaded, without mpirun.
func preloaded(t testing.TB, command ...string) Result {
	t.Helper()
	return Command(t, Run{}, "env", append([]string{"LD_PRELOAD=" + Library, "EVENKEEL_OUT=" + t.TempDir() + "/profile"}, command...)...)
}

// The commands look at themselves: the libraries that it has mapped, its threads, its children.
const lookAtShell = `while read line; do echo "$line"; done </proc/self/maps; echo threads: /proc/self/task/*`

const lookAtPython = `
import os
print(open("/proc/self/maps").read())
print("threads:", *os.listdir("/proc/self/task"))`

// A process that does not call MPI sees a library that does nothing.
func TestProcessWithoutMPIIsLeftAlone(t *testing.T) {
	for _, command := range [][]string{{"/bin/sh", "-c", lookAtShell}, {python, "-c", lookAtPython}} {
		t.Run(command[0], func(t *testing.T) {
			result := preloaded(t, command...)
			require.Zero(t, result.Status, result)
			assert.Empty(t, result.Stderr)
			assert.Contains(t, result.Stdout, "libevenkeel.so", "it is not preloaded")
			assert.NotContains(t, result.Stdout, "libmpi")
			assert.NotContains(t, result.Stdout, "libevenkeel-runtime")
			assert.NotContains(t, result.Stdout, "/dev/shm")
			_, threads, _ := strings.Cut(result.Stdout, "threads: ")
			assert.Len(t, strings.Fields(threads), 1)
		})
	}
}

func TestStatusWithoutMPIIsUnchanged(t *testing.T) {
	for _, c := range []struct {
		status  int
		command []string
	}{
		{0, []string{"/bin/true"}},
		{1, []string{"/bin/false"}},
		{7, []string{"/bin/sh", "-c", "exit 7"}},
		{9, []string{python, "-c", "raise SystemExit(9)"}},
		{3, []string{"/bin/sh", "-c", "(exit 3)"}}, // a child that is forked, and is no new program
	} {
		result := preloaded(t, c.command...)
		assert.Equal(t, c.status, result.Status, c.command)
		assert.Empty(t, result.Stdout+result.Stderr, c.command)
	}
}

// With mpirun itself preloaded, the launcher is left alone, and its ranks,
// which inherit the preload, are recorded as ever.
func TestMpirunItselfPreloaded(t *testing.T) {
	assert.Zero(t, preloaded(t, "mpirun", "-np", "2", "/bin/true").Status)
	assert.Equal(t, 5, preloaded(t, "mpirun", "-np", "1", "/bin/sh", "-c", "exit 5").Status)

	out := t.TempDir() + "/profile"
	result := Command(t, Run{}, "env", "LD_PRELOAD="+Library, "mpirun", "-np", "2", "-x", "EVENKEEL_OUT="+out, Program("calls_cc"))
	result.Dir = out
	assertCounted(t, result)
}

// Python loads libmpi by dlopen, into a name space of its own.
func TestPythonThatLoadsMPIIsRecorded(t *testing.T) {
	const program = `
import sys
maps = open("/proc/self/maps").read()
assert "libevenkeel.so" in maps and "libmpi" not in maps
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
`
	result := Mpirun(t, Run{}, python, "-c", program)
	require.Zero(t, result.Status, result)
	assert.Equal(t, map[string]int64{"MPI_Barrier": 2}, Calls(result.Profile(t)))
}

// A program that never comes to MPI_Init leaves nothing either.
func TestProgramThatOnlyAsksMPIIsLeftAlone(t *testing.T) {
	const program = `
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
import os
os.write(1, ("%s %s\n" % (MPI.Is_initialized(), MPI.Get_version())).encode()) # in one piece
`
	result := Mpirun(t, Run{}, python, "-c", program)
	assert.Zero(t, result.Status, result)
	assert.Equal(t, strings.Repeat("False (3, 1)\n", 2), result.Stdout)
	assert.Empty(t, result.Stderr)
	assert.NoDirExists(t, result.Dir)
}
