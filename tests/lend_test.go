package tests

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func lending(more ...string) Run {
	run := waiting("adaptive", append(more, "EVENKEEL_LEND=1", "OMP_NUM_THREADS=1")...)
	run.Mpirun = []string{"--bind-to", "core"}
	run.Preload = Library + ":" + filepath.Join(Build, "lib", "libevenkeel-openmp.so")
	return run
}

// A rank that computes while the other one waits has its cores too, for its
// threads and its parallel regions, and has them no longer when the wait is over.
func TestWaitingRanksLendTheirCores(t *testing.T) {
	r := Mpirun(t, lending(), Program("idle_lend"))
	require.Equal(t, 0, r.Status, r)
	assert.Equal(t, "widest 2\nlent 1\nlargest 2\nplaces 2\nleft 1\nleft lent 0\nastray 0\n", r.Stdout)
	idle := r.Profile(t).Idle
	assert.GreaterOrEqual(t, idle.Loans, int64(5))
	assert.Greater(t, idle.Lent, 0.1)
}

// Without its library OpenMP's teams stay as they are; without EVENKEEL_LEND all does.
func TestCoresAreLentOnlyWhereAskedFor(t *testing.T) {
	run := lending()
	run.Preload = Library
	r := Mpirun(t, run, Program("idle_lend"))
	require.Equal(t, 0, r.Status, r)
	assert.Equal(t, "widest 2\nlent 1\nlargest 1\nplaces 1\nleft 1\nleft lent 0\nastray 0\n", r.Stdout)

	run = lending()
	run.Env = []string{"EVENKEEL_WAIT=adaptive", "OMP_NUM_THREADS=1"}
	r = Mpirun(t, run, Program("idle_lend"))
	require.Equal(t, 0, r.Status, r)
	assert.Equal(t, "widest 1\nlent 0\nlargest 1\nplaces 1\nleft 1\nleft lent 0\nastray 0\n", r.Stdout)
	assert.Zero(t, r.Profile(t).Idle.Loans)
}

// Ranks that share their cores have nothing to lend.
func TestSharedCoresAreNotLent(t *testing.T) {
	run := lending()
	run.Mpirun = []string{"--bind-to", "none"}
	r := Mpirun(t, run, Program("idle_lend"))
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stdout, "lent 0\nlargest 1\nplaces 1\n")
}

// Of ranks that compute, the one that has been lent the least gets more; one that comes to a
// wait of its own gets nothing, and what it had goes to others.
func TestSlowRanksAreLentInTurn(t *testing.T) {
	twoCores(t)
	run := lending()
	run.Ranks, run.Mpirun = 4, []string{"--bind-to", "none"}
	r := Mpirun(t, run, "sh", "-c", "exec taskset -c $((OMPI_COMM_WORLD_RANK / 2)) "+Program("idle_lend_four"))
	assert.Equal(t, 1, found(t, r, "rank 3"), "while rank 2 has been lent one, too")
	assert.Equal(t, 2, found(t, r, "rank 2"), "when rank 3 waits")
}

// The result of a program does not depend on what it was lent.
func TestLendingLeavesResultsAsTheyAre(t *testing.T) {
	args := []string{"8", "300", "200"}
	lent := Mpirun(t, lending(), Example("hybrid"), args...)
	without := Mpirun(t, Run{Preload: "none"}, Example("hybrid"), args...)
	require.Equal(t, 0, lent.Status, lent)
	assert.Equal(t, printedNumber(t, without.Stdout, "sum"), printedNumber(t, lent.Stdout, "sum"))
	assert.Positive(t, lent.Profile(t).Idle.Loans)
}

// `evenkeel run` brings OpenMP's library where cores are lent.
func TestRunBringsTheLibraryOfLending(t *testing.T) {
	run := Run{Preload: "none", Mpirun: []string{"--bind-to", "core"}, Env: []string{"OMP_NUM_THREADS=1"}}
	r := Mpirun(t, run, Evenkeel, "run", "--out", filepath.Join(t.TempDir(), "out"), "--wait", "adaptive", "--lend", "1", Program("idle_lend"))
	require.Equal(t, 0, r.Status, r)
	assert.Contains(t, r.Stdout, "largest 2\n")
}
