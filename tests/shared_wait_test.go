package tests

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who waits for a lock, and whom that is charged to: to within 2 % of what the threads
// measured, or the millisecond by which one of them may be late on its core in a round.
func TestWaitsForLocks(t *testing.T) {
	const threads, rounds = 3, 9
	result := Mpirun(t, Run{Ranks: threads, Preload: linked}, Program("shared_wait"), "lock", fmt.Sprint(rounds))
	require.Zero(t, result.Status, result)
	p := result.Profile(t)
	waited, cost := map[int]float64{}, map[int]float64{}
	for line := range strings.Lines(result.Stdout) {
		var thread int
		var w, c float64
		_, err := fmt.Sscanf(line, "thread %d %f %f", &thread, &w, &c)
		require.NoError(t, err, line)
		waited[thread], cost[thread] = w, c
	}
	require.Len(t, waited, threads)
	said, calls := 0.0, int64(0)
	for _, w := range waited {
		said += w
	}
	late, mpi := 0.0, 0.0
	for _, s := range p.CallSites {
		if s.Call == "ek_upc_lock" {
			assert.Equal(t, "shared_wait.c", filepath.Base(s.File))
			calls += s.Calls
			late += s.Late
			mpi += s.MPI
		}
	}
	assert.EqualValues(t, (threads-1)*rounds, calls, "who gets a lock that is free does not wait")
	assert.InDelta(t, said, late, math.Max(0.02*said, 0.001*rounds))
	assert.InDelta(t, mpi, late, 1e-6, "all of it is waiting for a rank")
	for _, r := range p.Ranks {
		assert.GreaterOrEqual(t, r.Caused, 0.98*cost[r.Rank]-0.001*rounds, "rank %d", r.Rank)
	}
}

// Whatever waits is named, at the program's line, on one node and between nodes.
func TestCallSitesOfSharedWaits(t *testing.T) {
	const threads, rounds = 3, 20
	everywhere := map[string]int64{
		"ek_upc_barrier": rounds, "ek_upc_notify": rounds, "ek_upc_wait": rounds, "ek_upc_all_broadcast": rounds,
		"ek_upc_all_gather_all": rounds, "ek_upc_all_reduce": rounds, "ek_upc_all_alloc": 4, "ek_upc_all_lock_alloc": 1,
		"ek_upc_all_resize": 1, "ek_upc_all_lock_free": 1, "ek_upc_all_free": 1, "ek_upc_end": 1,
	}
	for apart, env := range [][]string{nil, {"EVENKEEL_GSM_APART=1"}} {
		result := Mpirun(t, Run{Ranks: threads, Preload: linked, Env: env}, Program("shared_wait"), "calls")
		require.Zero(t, result.Status, result)
		p := result.Profile(t)
		calls := Calls(p)
		for name, n := range everywhere {
			assert.Equal(t, n*threads, calls[name], name)
		}
		asked := map[string]bool{}
		for _, s := range p.CallSites {
			assert.Equal(t, "shared_wait.c", filepath.Base(s.File), "%s in %s (%s:%d)", s.Call, s.Function, s.File, s.Line)
			if s.Function == "ask_homes" {
				asked[s.Call] = true
				assert.True(t, !strings.HasPrefix(s.Call, "ek_gsm_") || s.Late == 0, "%s: nobody's program has to do anything", s.Call)
			}
		}
		assert.Equal(t, apart == 1, asked["ek_gsm_get"] && asked["ek_gsm_update"], "a way to an object's home and back: %v", asked)
		assert.Equal(t, apart == 1, calls["ek_gsm_get"] > 0, "%v", calls)
		assert.Equal(t, apart == 1, calls["ek_gsm_update"] > 0, "%v", calls)
	}
}

func TestStatusOfSharedWaits(t *testing.T) {
	for where, call := range map[string]string{"lock": "ek_upc_lock", "barrier": "ek_upc_barrier", "wait": "ek_upc_wait", "broadcast": "ek_upc_all_broadcast"} {
		j := Start(t, Run{Ranks: 3, Preload: linked}, Program("shared_wait"), "hang", where)
		j.Until(t, "met")
		s := j.status(t, inMPI(0, 2))
		for _, i := range []int{0, 2} {
			r := s.Ranks[i]
			assert.Equal(t, call, r.Call)
			assert.Equal(t, "hang", r.Function)
			assert.Equal(t, "shared_wait.c", filepath.Base(r.File))
		}
		require.Len(t, s.WaitedFor, 1, where)
		assert.Equal(t, 1, s.WaitedFor[0].Rank, where)
		assert.Equal(t, []int{0, 2}, ranksOf(s.WaitedFor[0].Waiting), where)
	}
}
