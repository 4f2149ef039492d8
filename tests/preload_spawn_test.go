package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/profile"
)

// Ranks that the program itself starts are in the report, as a world of their
// own. Two worlds have much that looks alike: a rank 0, an MPI_COMM_WORLD.
func TestSpawnedRanksAreRecorded(t *testing.T) {
	for _, how := range []string{"one", "multiple"} {
		t.Run(how, func(t *testing.T) {
			run := Run{Env: []string{"EVENKEEL_SUMARY=0"}, Mpirun: []string{"--host", "localhost:16", "--mca", "mpi_yield_when_idle", "1"}}
			result := Mpirun(t, run, Program("spawn"), how)
			assertCounted(t, result)
			assert.Len(t, ours(result.Stderr), 1, "the mistaken setting is told once, and not in each world")
			p := result.Profile(t)
			assert.True(t, p.Complete, p.Notes)

			type task struct{ world, rank int }
			var tasks []task
			for _, r := range p.Ranks {
				tasks = append(tasks, task{r.World, r.Rank})
				assert.Equal(t, "finalized", r.State)
			}
			assert.Equal(t, []task{{1, 0}, {1, 1}, {2, 0}, {2, 1}}, tasks)

			// 50 barriers in each world, and the spawn in the first one.
			worlds := communicators(p, "MPI_COMM_WORLD")
			require.Len(t, worlds, 2)
			var operations []int64
			for _, c := range worlds {
				assert.Equal(t, 2, c.Size)
				operations = append(operations, c.Operations)
			}
			assert.ElementsMatch(t, []int64{51, 50}, operations)
			assert.GreaterOrEqual(t, p.Total.Ranks, 4)
		})
	}
}

// communicators are those of a name.
func communicators(p *profile.Profile, name string) []profile.Communicator {
	var found []profile.Communicator
	for _, c := range p.Communicators {
		if c.Name == name {
			found = append(found, c)
		}
	}
	return found
}
