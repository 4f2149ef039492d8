package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// number finds the line "name number" in a program's output.
func number(t *testing.T, output, name string) int64 {
	t.Helper()
	for line := range strings.Lines(output) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), name+" "); found {
			n, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no line "+name, output)
	return 0
}

func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	require.NoError(t, filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		total += info.Size()
		return err
	}))
	return total
}

// A rank fills its event ring and its history, and that is all.
func TestMemoryStaysFlatOverAMillionBarriers(t *testing.T) {
	const barriers = 1_000_000
	for name, c := range map[string]struct {
		env    []string
		growth int64 // KiB
	}{
		"as it is": {nil, (65536+8192)*64/1024 + 2048},
		"small":    {[]string{"EVENKEEL_HISTORY=1024", "EVENKEEL_RING=256"}, 2048},
		"all":      {[]string{"EVENKEEL_HISTORY=1024", "EVENKEEL_RING=1024", "EVENKEEL_TIME=all"}, 2048},
	} {
		t.Run(name, func(t *testing.T) {
			r := Mpirun(t, Run{Env: c.env}, Program("millions"), fmt.Sprint(barriers))
			require.Equal(t, 0, r.Status, r)
			assert.Less(t, number(t, r.Stdout, "peak_kib_at_end")-number(t, r.Stdout, "peak_kib_at_tenth"), c.growth)
			assert.Less(t, sizeOf(t, r.Dir), int64(10<<20))
			p := r.Profile(t)
			assert.Equal(t, int64(2*barriers), Calls(p)["MPI_Barrier"])
			assert.InDelta(t, p.Total.Useful+p.Total.MPI, p.Ranks[0].Elapsed+p.Ranks[1].Elapsed, 1e-6)
		})
	}
}

// The segment has its size from the start, whatever the job does.
func TestSegmentDoesNotGrow(t *testing.T) {
	var sizes []int64
	for _, way := range []string{"hang", "deadlock"} {
		j := Start(t, Run{Env: []string{"EVENKEEL_SUMMARY=0"}}, Program("ends"), way)
		j.Until(t, "met")
		paths := Segments(t, j.Dir)
		require.Len(t, paths, 1)
		info, err := os.Stat(paths[0])
		require.NoError(t, err)
		sizes = append(sizes, info.Size())
	}
	assert.Equal(t, sizes[0], sizes[1])
}

// In a long run a rank keeps a part of what it saw, and says so; what it
// concludes from that part is true within the errors that it states.
func TestFiguresOfAThinnedHistoryAreTrue(t *testing.T) {
	for seed, pattern := range []string{"constant", "random", "rooted"} {
		t.Run(pattern, func(t *testing.T) {
			assertTrue(t, sharedCores, func() (truth, *profile.Profile) {
				said, p := runTruth(t, Run{Env: []string{"EVENKEEL_HISTORY=1024"}, Mpirun: yield}, pattern, seed, 3000, 250)
				assert.Positive(t, p.Quality.SampleLevel)
				assert.LessOrEqual(t, p.Quality.Events, int64(2*1024))
				return said, p
			})
		})
	}
}
