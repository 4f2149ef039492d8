package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// truth is what truth.c measured itself; see truth_write.c.
type truth struct {
	Pattern                 string
	Elapsed                 float64
	LoadBalance             float64 `json:"load_balance"`
	CommunicationEfficiency float64 `json:"communication_efficiency"`
	ParallelEfficiency      float64 `json:"parallel_efficiency"`
	Operations              int64
	Ranks                   []struct {
		Elapsed, Useful, MPI, Late, Caused float64
		Last, First                        int64
	}
	WaitsFor [][]float64 `json:"waits_for"`
}

// yield has ranks that wait leave their core to others, where there are more of
// these than cores, or a great many waits.
var yield = []string{"--mca", "mpi_yield_when_idle", "1"}

// runTruth runs truth.c and returns what it says and what evenkeel says.
func runTruth(t *testing.T, r Run, pattern string, seed, cycles, microseconds int) (truth, *profile.Profile) {
	t.Helper()
	return runTruthOf(t, r, Program("truth"), pattern, seed, cycles, microseconds)
}

func runTruthOf(t *testing.T, r Run, program, pattern string, seed, cycles, microseconds int) (truth, *profile.Profile) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "truth.json")
	result := Mpirun(t, r, program, pattern, fmt.Sprint(seed), fmt.Sprint(cycles), path, fmt.Sprint(microseconds))
	require.Equal(t, 0, result.Status, result)
	return readTruth(t, path), result.Profile(t)
}

func readTruth(t *testing.T, path string) truth {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var said truth
	require.NoError(t, json.Unmarshal(text, &said))
	return said
}

// accuracy is what the figures are held to: 2 % of the truth. Where that is
// little in comparison, a part of the run: the program and evenkeel read the
// clock one after the other, and the machine may take a core away between the
// two, or before the program's first reading and after its last; and between the
// two the call must come back into the caches after a millisecond of computing,
// which takes some microseconds. That is more where ranks share cores. In the balanced pattern it decides who is last, too.
const (
	accuracy    = 0.02
	ownCore     = 0.0025
	sharedCores = 0.02
	ties        = 0.1
	sigmas      = 3 // standard errors that are stated with a figure
)

// differences collects what is not as it should be.
type differences []string

func (d *differences) Errorf(format string, args ...any) {
	*d = append(*d, fmt.Sprintf(format, args...))
}

// assertTrue holds the figures of a run against the truth. A machine that has
// other work to do may take a core away just between two readings of the
// clock; what is wrong in evenkeel is so in each of five runs.
func assertTrue(t *testing.T, noise float64, run func() (truth, *profile.Profile)) {
	t.Helper()
	for try := 1; ; try++ {
		var d differences
		said, p := run()
		compare(&d, said, p, noise)
		if len(d) == 0 {
			return
		}
		if try == 5 {
			require.Fail(t, "figures are not true", "%s", strings.Join(d, "\n"))
		}
		t.Logf("run %d differs from the truth:\n%s", try, strings.Join(d, "\n"))
	}
}

// compare notes the figures of a profile that are not true. noise is the part
// of the run that a figure may be off in any case.
func compare(t *differences, said truth, p *profile.Profile, noise float64) {
	seconds := func(what string, truth, reported, margin float64) {
		assert.InDelta(t, truth, reported, math.Max(accuracy*truth, noise*said.Elapsed)+margin, what)
	}
	share := func(what string, truth float64, reported *float64) {
		if assert.NotNil(t, reported, what) {
			assert.InDelta(t, truth, *reported, math.Max(accuracy*truth, noise), what)
		}
	}
	count := func(what string, truth, reported int64) {
		margin := accuracy
		if said.Pattern == "balanced" {
			margin = ties
		}
		assert.InDelta(t, truth, reported, math.Ceil(margin*float64(said.Operations)), what)
	}
	seconds("elapsed", said.Elapsed, p.Total.Elapsed, 0)
	share("load balance", said.LoadBalance, p.Total.Efficiencies.LoadBalance)
	share("communication efficiency", said.CommunicationEfficiency, p.Total.Efficiencies.Communication)
	share("parallel efficiency", said.ParallelEfficiency, p.Total.Efficiencies.Parallel)
	if !assert.Len(t, p.Ranks, len(said.Ranks)) {
		return
	}
	for i, truth := range said.Ranks {
		r := p.Ranks[i]
		rank := fmt.Sprintf("rank %d: ", i)
		seconds(rank+"elapsed", truth.Elapsed, r.Elapsed, 0)
		seconds(rank+"useful", truth.Useful, r.Useful, sigmas*r.Error)
		seconds(rank+"MPI", truth.MPI, r.MPI, sigmas*r.Error)
		seconds(rank+"late", truth.Late, r.Late, sigmas*r.LateError)
		seconds(rank+"caused", truth.Caused, r.Caused, sigmas*p.Total.LateError)
		assert.InDelta(t, r.MPI, r.Late+r.Transfer+r.Own+r.Unsplit, 1e-6, rank+"the parts of MPI add up")
	}
	if p.Quality.SampleLevel == 0 {
		for i, truth := range said.Ranks {
			count(fmt.Sprintf("rank %d: last", i), truth.Last, p.Ranks[i].Last)
			count(fmt.Sprintf("rank %d: first", i), truth.First, p.Ranks[i].First)
		}
		count("operations", said.Operations, p.Quality.Operations)
	}
	costs := map[[2]int]float64{}
	for _, pair := range p.WaitsFor {
		costs[[2]int{pair.Waiter, pair.Culprit}] += pair.Cost
	}
	for waiter, row := range said.WaitsFor {
		for culprit, truth := range row {
			seconds(fmt.Sprintf("rank %d waits for rank %d", waiter, culprit), truth, costs[[2]int{waiter, culprit}], sigmas*p.Ranks[waiter].LateError)
		}
	}
}

func TestFiguresAreTrue(t *testing.T) {
	for seed, pattern := range []string{"balanced", "constant", "drift", "random", "p2p", "rooted"} {
		t.Run(pattern, func(t *testing.T) {
			assertTrue(t, ownCore, func() (truth, *profile.Profile) {
				return runTruth(t, Run{}, pattern, seed, 400, 2000)
			})
		})
	}
}

// The same of barriers of shared worlds, whole and split, of which a split one's arrivals
// are those of notify; how many operations there were, the program does not know, since
// starting and ending such a world are some.
func TestFiguresOfSharedBarriersAreTrue(t *testing.T) {
	for seed, pattern := range []string{"constant", "random"} {
		t.Run(pattern, func(t *testing.T) {
			assertTrue(t, ownCore, func() (truth, *profile.Profile) {
				said, p := runTruthOf(t, Run{Preload: linked}, Program("truth_shared"), pattern, seed, 400, 2000)
				for _, name := range []string{"ek_upc_barrier", "ek_upc_notify", "ek_upc_wait"} {
					require.Contains(t, Calls(p), name)
				}
				return said, p
			})
		})
	}
}

// With more ranks than cores the ranks take each other's time; the program
// knows it and so must we.
func TestFiguresAreTrueOnSharedCores(t *testing.T) {
	for seed, pattern := range []string{"constant", "random", "p2p", "rooted"} {
		t.Run(pattern, func(t *testing.T) {
			assertTrue(t, sharedCores, func() (truth, *profile.Profile) {
				return runTruth(t, Run{Ranks: 4, Mpirun: yield}, pattern, seed, 100, 4000)
			})
		})
	}
}
