package tests

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rank's children record nothing: neither those that it forks, nor the
// programs that it starts.
func TestChildrenOfARankRecordNothing(t *testing.T) {
	for _, way := range []string{"finalize", "system", "fork-exit", "fork-leave", "fork-run"} {
		t.Run(way, func(t *testing.T) {
			result := Mpirun(t, Run{}, Program("ends"), way)
			require.Zero(t, result.Status, result)
			assert.Equal(t, "met\n", result.Stdout)
			p := result.Profile(t)
			meetings := int64(2)
			if way == "finalize" {
				meetings = 1
			}
			assert.Equal(t, map[string]int64{"MPI_Barrier": meetings * 100 * 2}, Calls(p))
			assert.Len(t, p.Regions, 1)
			assert.Len(t, p.Ranks, 2)
			assert.True(t, p.Complete, p.Notes)
			for _, rank := range p.Ranks {
				assert.Equal(t, "finalized", rank.State)
			}
			assert.Equal(t, 1, strings.Count(result.Stderr, "── evenkeel ──"), "summaries:\n%s", result.Stderr)
			left, err := filepath.Glob("/dev/shm/evenkeel.*." + p.Job + ".*")
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}
