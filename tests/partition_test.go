package tests

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/tests/hosts"
)

// What the programs of these tests are linked to is beside them, so they need no
// preload.
const linked = "none"

// found is the number that a program printed after a word.
func found(t *testing.T, r Result, word string) int {
	t.Helper()
	require.Equal(t, 0, r.Status, r)
	match := regexp.MustCompile(word + ` (\d+)`).FindStringSubmatch(r.Stdout)
	require.NotNil(t, match, "%q in %v", word, r)
	n, err := strconv.Atoi(match[1])
	require.NoError(t, err)
	return n
}

// Whatever the ranges become, also when the program's own hooks fail on a rank now
// and then, every item is there once and unchanged.
func TestItemsSurviveRandomRanges(t *testing.T) {
	for _, c := range []struct {
		ranks int
		items string
		env   string
	}{
		{1, "50", ""},
		{2, "1000", ""},
		{4, "1000", ""},
		{4, "5", ""},
		{2, "30000", ""},
		{3, "300", withoutFast},
		{3, "300", "EVENKEEL_RUNTIME=/none"},
		{3, "300", "EVENKEEL_ENABLE=0"},
	} {
		t.Run(strings.Join([]string{strconv.Itoa(c.ranks), c.items, c.env}, " "), func(t *testing.T) {
			run := Run{Ranks: c.ranks, Preload: linked}
			if c.env != "" {
				run.Env = []string{c.env}
			}
			r := Mpirun(t, run, Program("partition_random"), "7", "120", c.items)
			assert.Equal(t, 121, found(t, r, "checked"))
			if c.ranks > 1 {
				assert.Positive(t, found(t, r, "undone"))
			}
			if c.ranks > 1 && c.items == "1000" {
				assert.Positive(t, found(t, r, "used"), "of the receives that were begun early")
			}
		})
	}
}

// Copies of any items of others are there once and up to date, whoever has these items
// at the moment; a function that fails on one rank is an error on all of them.
func TestHalosFollowRandomRanges(t *testing.T) {
	for _, c := range []struct {
		ranks int
		items string
	}{{1, "50"}, {2, "300"}, {4, "300"}, {4, "5"}} {
		t.Run(strconv.Itoa(c.ranks)+" "+c.items, func(t *testing.T) {
			r := Mpirun(t, Run{Ranks: c.ranks, Preload: linked}, Program("halo_random"), "3", "80", c.items)
			copies := found(t, r, "checked")
			assert.Positive(t, found(t, r, "failed"))
			if c.ranks > 1 {
				assert.Positive(t, copies)
			}
		})
	}
}

func TestWrongPartitionsAreErrorsOnEveryRank(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: linked}, Program("partition_errors"))
		require.Equal(t, 0, r.Status, r)
		for _, line := range []string{
			"before MPI_Init: 1 ",
			"negative items: 2 rank 0: a partition of -5 items: there must be at least one",
			"no items on rank 1: 2 rank 1: a partition of 0 items: there must be at least one",
			"other items on rank 1: 2 the ranks ask for different things",
			"a minimum that can't be kept: 2 rank 0: " + strconv.Itoa(ranks) + " ranks with at least 60 items each",
			"a null communicator: 2 ",
			"items of no bytes on rank 1: 2 rank 1: ",
			"other bounds on rank 1: 2 the ranks ask for different things",
			"bounds out of order: 2 ",
			"bounds past the end: 2 ",
			"good bounds: 0",
			"hooks on rank 0 alone: 2 rank 1: hooks need the functions",
			"a halo that names nothing, on rank 1: 2 rank 1: ",
			"a negative time on rank 1: 2 rank 1: getting ready takes -1 s",
			"a negative length: 0",
			"a gather of items of any length: 2 rank 0: ",
			"a negative cost on rank 1: 2 region ",
			"a step without costs: 0",
			"a step before the move: 2 other ranges have been decided on",
			"step: 0",
		} {
			assert.Contains(t, r.Stdout, line)
		}
	}
}

// However a cycle ends, and however it is known how long the ranks computed, the
// slow rank gets fewer items.
func TestStepsGiveTheSlowRankFewerItems(t *testing.T) {
	for _, how := range []string{"step", "barrier", "allreduce", "inside", "halo", "sparse", "pairwise", "profiled"} {
		t.Run(how, func(t *testing.T) {
			r := Mpirun(t, Run{Preload: linked}, Program("partition_steps"), how, "60")
			assert.Less(t, found(t, r, "rank 0 had"), 200, "on average, of 400, of which 80 would be ideal; how near it comes, benchmarks tell")
			assert.Positive(t, found(t, r, "changes"))
		})
	}
	t.Run("without the barrier's history", func(t *testing.T) {
		r := Mpirun(t, Run{Preload: linked, Env: []string{withoutFast}}, Program("partition_steps"), "step", "24")
		assert.Less(t, found(t, r, "rank 0 had"), 200)
	})
	for name, run := range map[string]Run{
		"static":              {Preload: linked},
		"without a runtime":   {Preload: linked, Env: []string{"EVENKEEL_RUNTIME=/none"}},
		"without any of ours": {Preload: linked, Env: []string{"EVENKEEL_ENABLE=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			how := "step"
			if name == "static" {
				how = "static"
			}
			r := Mpirun(t, run, Program("partition_steps"), how, "5")
			assert.Equal(t, 200, found(t, r, "rank 0 had"))
			assert.Zero(t, found(t, r, "changes"))
		})
	}
}

// A decision takes longer than a short cycle, and of even cycles few need one; what is
// decided of uneven ones rests on all that went before.
func TestEvenAndShortCyclesShareDecisions(t *testing.T) {
	r := Mpirun(t, Run{Preload: linked}, Program("partition_decisions"))
	assert.Less(t, found(t, r, "short"), 50, "of 100 cycles")
	assert.Positive(t, found(t, r, "short"))
	assert.Greater(t, found(t, r, "uneven"), 9, "of 12 cycles, of which each needs one")
	assert.Equal(t, 1, found(t, r, "changing"))
	assert.Positive(t, found(t, r, "young"), "new ranges are the likeliest to be changed again")
	assert.Less(t, found(t, r, " even"), 20, "of 42 cycles, of which a few are young still, and of the rest one in eight is decided")
	assert.Greater(t, found(t, r, " even"), 3)
}

// A rank that gives items away has their memory no longer, however often they come and go.
func TestMemoryOfItemsThatWentIsGivenBack(t *testing.T) {
	for _, kind := range []string{"fixed", "variable"} {
		t.Run(kind, func(t *testing.T) {
			r := Mpirun(t, Run{Preload: linked}, Program("partition_memory"), kind)
			assert.Greater(t, found(t, r, "gave back"), 24, "MiB of 32; half as much as it has left may stay on either side")
			assert.Less(t, found(t, r, "memory"), 8)
			assert.Less(t, found(t, r, "addresses"), 256, "MiB; an array has 8 times its size on either side")
		})
	}
}

// Ranks that are early get ready for what they expect while others compute, and the
// report says so. A function of the program's that fails in this is an error on all
// ranks at the next move; one that takes too long is given up.
func TestEarlyRanksGetReady(t *testing.T) {
	r := Mpirun(t, Run{Preload: linked}, Program("partition_steps"), "overlap", "24")
	assert.Less(t, found(t, r, "rank 0 had"), 200)
	assert.Positive(t, found(t, r, "got ready"))
	assert.Positive(t, found(t, r, "called"))
	assert.Positive(t, found(t, r, "used"), "items came by receives that were begun in a wait")
	assert.GreaterOrEqual(t, found(t, r, "posted"), found(t, r, "used"))
	fast := r.Profile(t).Fast
	assert.Positive(t, fast.Hidden)
	assert.Equal(t, int64(found(t, r, "used")), fast.Early)
	assert.Equal(t, int64(2*found(t, r, "changes")), fast.Moves)

	r = Mpirun(t, Run{Preload: linked}, Program("partition_steps"), "fails", "24")
	assert.Equal(t, 1, found(t, r, "failures"))
	assert.Less(t, found(t, r, "rank 0 had"), 200)

	r = Mpirun(t, Run{Preload: linked}, Program("partition_steps"), "overruns", "24")
	assert.Positive(t, found(t, r, "called"))
	assert.Equal(t, found(t, r, "called"), found(t, r, "given up"))
}

// Of items of any length, and of such that the program packs, it is guessed how much comes.
func TestItemsOfUnknownLengthAreReceivedEarly(t *testing.T) {
	for _, kind := range []string{"variable", "packed"} {
		t.Run(kind, func(t *testing.T) {
			r := Mpirun(t, Run{Preload: linked}, Program("partition_early"), kind)
			used := found(t, r, "used")
			assert.Greater(t, used, 5, "of 10 moves, of which the first tells how long packed items are")
			assert.GreaterOrEqual(t, found(t, r, "posted"), used)
			assert.Equal(t, int64(used), r.Profile(t).Fast.Early)
		})
	}
}

func TestWrongJobsAreErrorsOnEveryRank(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: linked}, Program("split_errors"))
		require.Equal(t, 0, r.Status, r)
		for _, line := range []string{
			"before MPI_Init: 1 ",
			"a null communicator: 2 a job needs an intracommunicator",
			"threads below 0 on rank 1: 2 rank 1: -1 threads",
			"parts below 0: 2 rank 0: tasks in -1 parts",
			"a negative slope: 2 rank 0: ",
			"a table without points: 2 rank 0: ",
			"other parts on rank 1: 2 the ranks ask for different things",
			"a cut on rank 1 alone: 2 the ranks ask for different things",
			"no units: 2 rank 0: a job of 0 units",
			"units below 0 on rank 1: 2 rank 1: a job of -40 units",
			"more units on rank 1: 2 the ranks ask for different things",
			"results of no bytes: 2 rank 0: ",
			"a cut that fails on rank 1: 4 rank 1: the program's function that cuts tasks failed (22)",
			"a cut before the task on rank 1: 4 rank 1: the program's function cuts the units",
			"a cut that leaves units out on rank 1: 4 rank 1: the program's function cuts the units",
			"all is well: 0",
		} {
			assert.Contains(t, r.Stdout, line)
		}
		assert.Regexp(t, `a task that fails on some rank: 4 rank \d: the program's function that runs tasks failed \(21\)`, r.Stdout)
	}
}

// Results are those of one rank that computes everything, bit for bit, however a job
// was split.
func TestSplitJobsGiveTheSameResults(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		t.Run(strconv.Itoa(ranks), func(t *testing.T) {
			r := Mpirun(t, Run{Ranks: ranks, Preload: linked}, Program("split_random"), "5", "12")
			assert.Positive(t, found(t, r, "checked"))
			assert.Positive(t, found(t, r, "failed"))
			if ranks > 1 {
				assert.Positive(t, found(t, r, "claimed"), "ranks that were ready helped others")
			}
		})
	}
	t.Run("without a runtime", func(t *testing.T) {
		r := Mpirun(t, Run{Ranks: 3, Preload: linked, Env: []string{"EVENKEEL_RUNTIME=/none"}}, Program("split_random"), "5", "6")
		assert.Positive(t, found(t, r, "checked"))
	})
}

func TestPartitionsAndJobsInFortran(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		r := Mpirun(t, Run{Ranks: ranks, Preload: linked}, Program("partition_fortran"))
		assert.Positive(t, found(t, r, "checked"))
	}
	for _, flavour := range []string{"mpi", "f08"} {
		t.Run("where libevenkeel.so defines all that the program calls, "+flavour, func(t *testing.T) {
			r := Mpirun(t, Run{Ranks: 2, Preload: linked}, Program("needed_fortran_"+flavour))
			assert.Equal(t, 45, found(t, r, "items"))
		})
	}
}

// The same over a network.
func TestPartitionsAndJobsAcrossHosts(t *testing.T) {
	c := hosts.New(t, hosts.Spec{Count: 2, Slots: 2})
	for _, command := range [][]string{
		{Program("partition_random"), "3", "60", "200"},
		{Program("halo_random"), "3", "30", "200"},
		{Program("partition_steps"), "step", "24"},
		{Program("split_random"), "4", "8"},
	} {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "profile")
			env := []string{"EVENKEEL_OUT=" + dir}
			r := start(t, dir, c.Mpirun(t.Context(), 4, env, command...)).Wait(t)
			require.Equal(t, 0, r.Status, r)
			if strings.HasSuffix(command[0], "steps") {
				assert.Less(t, found(t, r, "rank 0 had"), 70, "on average, of 400, of which 31 would be ideal")
			} else {
				assert.Positive(t, found(t, r, "checked"))
			}
		})
	}
	assertNothingLeftOnHosts(t, c)
}

// Examples compute the same with partitions that resize as with even ones, on any
// number of ranks.
func TestBalancedExamplesComputeTheSame(t *testing.T) {
	for _, example := range []string{"galaxy", "spmv", "plate"} {
		t.Run(example, func(t *testing.T) {
			sums := map[string]bool{}
			for _, ranks := range []int{1, 2, 3} {
				for _, way := range []string{"even", "balanced"} {
					r := Mpirun(t, Run{Ranks: ranks, Preload: linked}, Example(example), "8", way)
					require.Equal(t, 0, r.Status, r)
					sum := regexp.MustCompile(`checksum +(\S+)`).FindStringSubmatch(r.Stdout)
					require.NotNil(t, sum, r)
					sums[sum[1]] = true
				}
			}
			assert.Len(t, sums, 1)
		})
	}
}
