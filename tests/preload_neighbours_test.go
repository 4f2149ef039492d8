package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/job"
)

// neighboursOf are the neighbours that each rank of neighbours.c has on each communicator with a name of its own.
func neighboursOf(t *testing.T, r Result) map[string][][]int {
	t.Helper()
	run, nodes, err := job.Load(r.Dir)
	require.NoError(t, err)
	defer job.CloseAll(nodes)
	found := map[string][][]int{}
	for _, rank := range run.Ranks {
		for _, c := range rank.Comms {
			found[c.Name] = append(found[c.Name], c.Neighbours)
		}
	}
	return found
}

func TestNeighboursOfEachTopology(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 4}, Program("neighbours"), "kinds")
	require.Zero(t, result.Status, result)
	found := neighboursOf(t, result)
	line := [][]int{{1}, {0, 2}, {1, 3}, {2}}
	ring := [][]int{{1}, {2}, {3}, {0}}
	assert.Equal(t, line, found["line"])
	assert.Equal(t, line, found["copy"])
	assert.Equal(t, line, found["late copy"])
	assert.Equal(t, ring, found["ring"])
	assert.Equal(t, [][]int{{1, 2, 3}, {0}, {0}, {0}}, found["star"])
	assert.Equal(t, [][]int{{1}, {2, 0}, {3, 1}, {2}}, found["backwards"], "ranks of the world")
	assert.Equal(t, [][]int{nil, nil, nil, nil}, found["no topology"])
	assert.Equal(t, ring, found["same again"])
	assert.Equal(t, [][]int{nil, nil, nil, nil}, found["others"], "events do not tell whose they are")
}

// Whoever has the late rank for a neighbour waits for it, and nobody else.
func TestWaitsOfNeighbourhoodCollectives(t *testing.T) {
	for _, topology := range []string{"line", "graph"} {
		t.Run(topology, func(t *testing.T) {
			result := Mpirun(t, Run{Ranks: 4, Mpirun: yield}, Program("neighbours"), topology)
			require.Zero(t, result.Status, result)
			p := result.Profile(t)
			require.NotEmpty(t, p.WaitsFor)
			all := 0.0
			for _, pair := range p.WaitsFor {
				all += pair.Cost
			}
			most := p.WaitsFor[0]
			assert.Equal(t, []int{2, 3}, []int{most.Waiter, most.Culprit})
			assert.Greater(t, most.Cost, 0.7*all)
			assert.Greater(t, most.Cost, 0.3, "the rank is 0.4 s late")
			assert.Less(t, p.Total.Unsplit, 0.1*all)
		})
	}
}
