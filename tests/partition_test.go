package tests

import (
	"fmt"
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
			"no room: 2 rank 0: " + strconv.Itoa(ranks) + " ranks with at most 10 items each have no room for 100 items",
			"a policy that does not exist: 2 rank 0: there is no policy number 77",
			"a negative threshold: 2 rank 0: thresholds of -1 and 0 s",
			"another policy on rank 1: 2 the ranks ask for different things",
			"another measure on rank 1: 2 the ranks ask for different things",
			"another fastest on rank 1: 2 the ranks ask for different things",
			"another weighted on rank 1: 2 the ranks ask for different things",
			"another threshold on rank 1: 2 the ranks ask for different things",
			"another threshold_seconds on rank 1: 2 the ranks ask for different things",
			"another minimum on rank 1: 2 the ranks ask for different things",
			"another maximum on rank 1: 2 the ranks ask for different things",
			"another cycles on rank 1: 2 the ranks ask for different things",
			"a minimum that can just be kept: 0",
			"just room: 0",
			fmt.Sprintf("an item too many: 2 rank 0: %d ranks with at most %d items each have no room for 101 items", ranks, 101/ranks),
			"a negative halo: 2 rank 0: ",
			"other sizes: 2 the ranks ask for different things",
			"hooks without functions: 2 rank 0: hooks need the functions",
			"a null communicator: 2 ",
			"items of no bytes on rank 1: 2 rank 1: ",
			"other bounds on rank 1: 2 the ranks ask for different things",
			"bounds out of order: 2 ",
			"bounds that go back by one item: 2 rank 0: rank " + strconv.Itoa(ranks-1) + " would end at item 100, before it begins at 101",
			"bounds past the end: 2 ",
			"good bounds: 0",
			"hooks on rank 0 alone: 2 rank 1: hooks need the functions",
			"an array on rank 0, hooks on the others: 2 the ranks ask for different things",
			"hooks on rank 0, a halo on the others: 2 the ranks ask for different things",
			"a halo that names nothing, on rank 1: 2 rank 1: ",
			"a negative time on rank 1: 2 rank 1: getting ready takes -1 s",
			"a negative length: 0",
			"a gather of items of any length: 2 rank 0: ",
			"a negative cost on rank 1: 2 region ",
			"a step without costs: 0",
			"a step before the move: 2 other ranges have been decided on",
			"a call of the program's own before the move: 2 other ranges have been decided on",
			"step: 0",
		} {
			assert.Contains(t, r.Stdout, line)
		}
	}
}

// However a cycle ends, and however it is known how long the ranks computed, the
// slow rank gets fewer items.
func TestStepsGiveTheSlowRankFewerItems(t *testing.T) {
	for _, how := range []string{"step", "barrier", "allreduce", "both", "last", "inside", "halo", "sparse", "pairwise", "profiled"} {
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
	assert.Positive(t, found(t, r, "old"), "of 200 short cycles of ranges that are old")
	assert.Zero(t, found(t, r, "hasty"), "that needn't be decided so soon")
}

// What programs ask for reaches the balancer, and what it decides reaches them.
func TestDecisionsByTheTableOfTheRuntime(t *testing.T) {
	r := Command(t, Run{}, Program("balancer_table"), filepath.Join(Build, "lib", "libevenkeel-runtime.so"))
	require.Equal(t, 0, r.Status, r)
	assert.Equal(t, `pairwise: 171 100 100 29
two fastest: 136 136 100 28
two fastest, weighted: 150 125 100 25
all that are faster: 136 136 100 28
proportional: 172 143 57 28
proportional, ten cycles added up: 172 143 57 28
profiled: 275 89 8 28
static: 100 100 100 100 as they were
a minimum: 171 143 46 40
a maximum: 150 150 67 33
a threshold above: 100 100 100 100 as they were
a threshold below: 172 143 57 28
seconds above: 100 100 100 100 as they were
seconds below: 172 143 57 28
seconds above, ten cycles added up: 100 100 100 100 as they were
the last cycle is over: 100 100 100 100 as they were
one is left: 172 143 57 28
a minimum that can't be: 4 ranks can't have at least 101 items each: there are 400
a move that took long: 171 100 100 29 as they were
a move that took no time: 194 100 100 6
a line: 3 tasks, 2 of rank 0, which end at 200; at once 2 and 1
a steeper one: 6 tasks, 4 of rank 0, which end at 200; at once 2 and 1
no more than that: 4 tasks, 3 of rank 0, which end at 200; at once 2 and 1
a table: 2 tasks, 1 of rank 0, which end at 200; at once 1 and 1
a table out of order: point 1 of the table has the spread 1, which must be above the 2 before it
fewer cores: 1, times 1 and 0.5, rank 1 has 1 cores instead of 2
a limit: 1, times 1 and 0.25, the control group of rank 1 allows 0.5 cores instead of all cores
others: 1, times 1 and 0.5, rank 1 shares its cores with 1 threads of others instead of 0
a lower priority beside others: 1, times 1 and 0.0284, rank 1 has the niceness 19 instead of 0
others that were not seen: 0, times 1 and 1, 
a limit that was not seen: 0, times 1 and 1, 
cores that were not seen: 0, times 1 and 1, 
a priority that was not seen: 0, times 1 and 1, 
no core at all: -1, times nan and nan, rank 1: 0 cores in the affinity mask: at least one is needed
`, r.Stdout)
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

	r = Mpirun(t, Run{Preload: linked}, Program("partition_steps"), "limited", "24")
	assert.LessOrEqual(t, found(t, r, "ready for at most"), 220, "what a rank may have")
	assert.LessOrEqual(t, found(t, r, "called"), 6, "not again for ranges that a rank has, or that were decided against")

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
			"as many threads as there may be: 0",
			"a thread too many: 2 rank 0: 257 threads",
			"as many parts as there may be: 0",
			"a part too many: 2 rank 0: tasks in 65537 parts",
			"parts below 0: 2 rank 0: tasks in -1 parts",
			"a negative slope: 2 rank 0: ",
			"a table without points: 2 rank 0: ",
			"other parts on rank 1: 2 the ranks ask for different things, rank 1 for others than rank 0: make the same calls",
			"another slope on rank 1: 2 the ranks ask for different things",
			"another most on rank 1: 2 the ranks ask for different things",
			"another table on rank 1: 2 the ranks ask for different things",
			"no table on rank 1: 2 the ranks ask for different things",
			"a cut on rank 1 alone: 2 the ranks ask for different things",
			"no units: 2 rank 0: a job of 0 units",
			"more units than can be gathered: 2 rank 0: a job of 2200000000 units: 2^31 - 1 at most",
			"units below 0 on rank 1: 2 rank 1: a job of -40 units",
			"more units on rank 1: 2 the ranks ask for different things",
			"results of no bytes: 2 rank 0: ",
			"smaller results on rank 1: 2 the ranks ask for different things",
			"a cut that fails on rank 1: 4 rank 1: the program's function that cuts tasks failed (22)",
			"a cut before the task on rank 1: 4 rank 1: the program's function cuts the units",
			"a cut that leaves units out on rank 1: 4 rank 1: the program's function cuts the units",
			"a cut elsewhere on rank 1: 2 the program's function cuts tasks otherwise on rank 1 than on rank 0: its ends may",
			"all is well: 0",
			"the rest of a job that failed: 4 rank 0: the program's function that runs tasks failed (23)",
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

// A rank does not begin what others will have done, with all the rest, before it has, unless
// they don't; and jobs have the tasks, parts and threads that they ask for.
func TestSlowRanksLeaveTheLastPartsToOthers(t *testing.T) {
	r := Mpirun(t, Run{Preload: linked}, Program("split_last"))
	assert.Positive(t, found(t, r, "first"), "nothing was known yet")
	assert.Zero(t, found(t, r, "second"))
	assert.Positive(t, found(t, r, "third"))
	assert.Greater(t, found(t, r, "second tasks"), 2, "as the ranks' speeds differ")
	assert.Equal(t, 6, found(t, r, "by table"))
	assert.Equal(t, 3, found(t, r, "at once"), "threads of rank 0")
	assert.Contains(t, r.Stdout, "6 tasks for 2 ranks, in 24 parts")
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
