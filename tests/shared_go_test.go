package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// As those of C's shared worlds.
func TestFiguresOfGosSharedBarriersAreTrue(t *testing.T) {
	assertTrue(t, ownCore, func() (truth, *profile.Profile) {
		said, p := runTruthOf(t, Run{}, Program("shared_go"), "random", 1, 150, 5000)
		for _, name := range []string{"shared.World.Barrier", "shared.World.Notify", "shared.World.Wait"} {
			require.Contains(t, Calls(p), name)
		}
		return said, p
	})
}

// Whatever of Go's waits is named, at the program's line, and counted once, on one node and between
// nodes. A goroutine that waits while the rank's main thread computes is no loss of useful time.
func TestCallSitesOfGosSharedWaits(t *testing.T) {
	const threads, rounds = 3, 5
	asking := []string{"shared.Open", "shared.Resize", "shared.Free", "shared.Reclaim"}
	for apart, env := range [][]string{nil, {"EVENKEEL_GSM_APART=1"}} {
		result := Mpirun(t, Run{Ranks: threads, Env: env}, Program("shared_go"), "calls")
		require.Zero(t, result.Status, result)
		p := result.Profile(t)
		calls := Calls(p)
		for name, n := range map[string]int64{
			"shared.World.Barrier": rounds + 5, "shared.World.Notify": rounds, "shared.World.Wait": rounds, "shared.Broadcast": rounds,
			"shared.GatherAll": rounds, "shared.Reduce": rounds, "shared.AllAlloc": 4, "shared.World.AllLockAlloc": 1,
			"shared.Array.AllResize": 1, "shared.Array.AllFree": 1, "shared.Lock.AllFree": 1,
			"shared.Resize": 2, "shared.Free": 1 + 20,
		} {
			assert.Equal(t, n*threads, calls[name], name)
		}
		assert.Zero(t, calls["MPI_Iallreduce"], "it is a part of the barrier")
		assert.GreaterOrEqual(t, calls["shared.Open"], int64(threads), "once more if the news of a change are still under way")
		assert.Positive(t, calls["shared.Reclaim"], "memory that was freed is wanted again at once")
		late, asked := 0.0, map[string]float64{}
		for _, s := range p.CallSites {
			assert.Equal(t, "shared_go/main.go", filepath.Join(filepath.Base(filepath.Dir(s.File)), filepath.Base(s.File)), "%s in %s (%s:%d)", s.Call, s.Function, s.File, s.Line)
			if s.Call == "shared.Lock.Lock" {
				late += s.Late
			}
			if slices.Contains(asking, s.Call) {
				asked[s.Call] += s.Transfer
				assert.Zero(t, s.Late, "%s: nobody's program has to do anything", s.Call)
			}
		}
		for _, name := range asking {
			assert.Positive(t, asked[name], "the way there and back of %s", name)
		}
		waited := 0.0
		for line := range strings.Lines(result.Stdout) {
			var thread int
			var w float64
			_, err := fmt.Sscanf(line, "thread %d waited %f", &thread, &w)
			require.NoError(t, err, line)
			waited += w
			assert.Greater(t, p.Ranks[thread].Useful, 0.2, "it computed for so long")
		}
		assert.LessOrEqual(t, late, waited, "it is counted once")
		assert.Greater(t, late, waited/2, "but for what passes until the goroutine has the processor again: %s", result)
		assert.EqualValues(t, threads-1, calls["shared.Lock.Lock"])
		for _, name := range []string{"gsm.Window.Put", "gsm.Window.Get", "gsm.Window.Update"} {
			assert.Equal(t, apart == 1, calls[name] > 0, "%s: %v", name, calls)
		}
	}
}

func TestStatusOfGosSharedWaits(t *testing.T) {
	j := Start(t, Run{Ranks: 3}, Program("shared_go"), "hang")
	j.Until(t, "met")
	s := j.status(t, inMPI(0, 2))
	for i, call := range map[int]string{0: "shared.Lock.Lock", 2: "shared.World.Barrier"} {
		assert.Equal(t, call, s.Ranks[i].Call)
		assert.Equal(t, "main.hang", s.Ranks[i].Function)
	}
	require.Len(t, s.WaitedFor, 1)
	assert.Equal(t, 1, s.WaitedFor[0].Rank)
	assert.Equal(t, []int{0, 2}, ranksOf(s.WaitedFor[0].Waiting))
}
