package tests

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/c/tables"
)

// printedCounts reads the lines "MPI_Xxx n" that the programs print, and adds
// up those of one name. Functions whose wrappers are written by hand (MPI_Init,
// MPI_Finalize, MPI_Pcontrol) begin, end and mark the recording: they are no
// call sites.
func printedCounts(t testing.TB, stdout string) map[string]int64 {
	t.Helper()
	functions, _, err := tables.MPI()
	require.NoError(t, err)
	byHand := map[string]bool{}
	for _, f := range functions {
		byHand[f.Name] = f.Class == "hand"
	}
	counts := map[string]int64{}
	lines := bufio.NewScanner(strings.NewReader(stdout))
	for lines.Scan() {
		name, number, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, "MPI_") || byHand[name] {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		require.NoError(t, err, "%q", lines.Text())
		counts[name] += n
	}
	require.NotEmpty(t, counts, "the program printed no counts:\n%s", stdout)
	return counts
}

// assertCounted compares what a program says it called with what was recorded.
func assertCounted(t testing.TB, result Result) {
	t.Helper()
	require.Zero(t, result.Status, result)
	assert.Equal(t, printedCounts(t, result.Stdout), Calls(result.Profile(t)))
}

const python = "/usr/bin/python3"

// callers are the programs that call MPI from each language, with the command
// that runs them.
var callers = []struct {
	language string
	command  []string
}{
	{"C", []string{Program("calls")}},
	{"C++", []string{Program("calls_cc")}},
	{"Fortran with mpif.h", []string{Program("fortran_mpifh")}},
	{"Fortran with use mpi", []string{Program("fortran_usempi")}},
	{"Fortran with use mpi_f08", []string{Program("fortran_f08")}},
	{"Python", []string{python, Source("calls.py")}},
}

func TestCallsAreCountedExactly(t *testing.T) {
	for _, caller := range callers {
		for ranks := 2; ranks <= 4; ranks++ {
			t.Run(fmt.Sprintf("%s/%d ranks", caller.language, ranks), func(t *testing.T) {
				assertCounted(t, Mpirun(t, Run{Ranks: ranks}, caller.command[0], caller.command[1:]...))
			})
		}
	}
}

func TestCallsAreCountedAtEveryThreadLevel(t *testing.T) {
	for _, level := range []string{"none", "single", "funneled", "serialized", "multiple"} {
		t.Run(level, func(t *testing.T) {
			assertCounted(t, Mpirun(t, Run{}, Program("inits"), level))
		})
	}
}

// Threads that may not call MPI are told of, and counted all the same.
func TestThreadsThatCallMPIWithoutLeave(t *testing.T) {
	for level, told := range map[string]bool{"none": true, "single": true, "funneled": true, "serialized": false, "multiple": false} {
		result := Mpirun(t, Run{}, Program("inits"), level, "thread")
		assertCounted(t, result)
		p := result.Profile(t)
		notes := strings.Join(p.Notes, "\n")
		assert.True(t, p.Complete)
		if told {
			assert.Contains(t, notes, "2 threads of rank 0 and others of 1 more called MPI, where only the main thread may", level)
		} else {
			assert.Empty(t, notes, level)
		}
	}
}

// More threads than there is room for come one after the other: their places
// are taken up again.
func TestThreadsThatComeAndGoAreCounted(t *testing.T) {
	run := Run{Env: []string{"EVENKEEL_THREADS=8"}}
	result := Mpirun(t, run, Program("thread_multiple"), "4", "10", "50")
	assertCounted(t, result)
	assert.Zero(t, result.Profile(t).Quality.Unrecorded)
}

func TestThreadsWithoutRoomAreToldApart(t *testing.T) {
	run := Run{Env: []string{"EVENKEEL_THREADS=3"}}
	result := Mpirun(t, run, Program("thread_multiple"), "6", "3", "50")
	require.Zero(t, result.Status, result)
	p := result.Profile(t)
	made, recorded := int64(0), int64(0)
	for _, n := range printedCounts(t, result.Stdout) {
		made += n
	}
	for _, n := range Calls(p) {
		recorded += n
	}
	assert.Positive(t, p.Quality.Unrecorded)
	assert.Equal(t, made, recorded+p.Quality.Unrecorded)
	assert.False(t, p.Complete)
	assert.Contains(t, strings.Join(p.Notes, "\n"), "EVENKEEL_THREADS")
}
