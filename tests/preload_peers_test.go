package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
)

// describedEvents is what was recorded of a rank, call by call, in the words of
// peers.c.
func describedEvents(t testing.TB, r Result, rank int) []string {
	t.Helper()
	run, nodes, err := job.Load(r.Dir)
	require.NoError(t, err)
	defer job.CloseAll(nodes)
	recorded := run.Ranks[rank]
	require.Equal(t, rank, recorded.Task.Rank)
	var lines []string
	for _, e := range recorded.Events {
		var peers []string
		for _, p := range e.Peers {
			if p == history.AnyPeer {
				peers = append(peers, "any")
			} else {
				peers = append(peers, fmt.Sprint(int(p)))
			}
		}
		line := fmt.Sprintf("%s peers %s bytes %d", recorded.Accounts[e.Account].Function.Name, strings.Join(peers, " "), e.Bytes)
		if e.Collective {
			line += " in " + recorded.Comms[e.Comm].Name
		} else if a := recorded.Accounts[e.Account]; a.Function.Class == history.Wait && len(e.Peers) > 0 && recorded.Comms[a.Comm].Name != "MPI_COMM_WORLD" {
			line += " of " + recorded.Comms[a.Comm].Name
		}
		lines = append(lines, line)
	}
	return lines
}

// Each call knows whom it waits for, by rank of the world, what it moves, and
// which operation it belongs to.
func TestPeersOfEachCall(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_TIME=all"}}, Program("peers"))
	require.Zero(t, result.Status, result)
	assert.Equal(t, strings.Split(strings.TrimSuffix(result.Stdout, "\n"), "\n"), describedEvents(t, result, 0))
}

func TestFortranSentinelsAreNotRead(t *testing.T) {
	result := Mpirun(t, Run{Ranks: 3, Env: []string{"EVENKEEL_TIME=all"}}, Program("fortran_sentinels"))
	require.Zero(t, result.Status, result)
	const from = "MPI_Irecv peers any bytes 0"
	assert.Equal(t, []string{
		"MPI_Recv peers 2 bytes 0", "MPI_Recv peers 2 bytes 0", // through mpi_f08
		from, "MPI_Waitall peers any bytes 0", from, "MPI_Waitall peers 2 bytes 0", from, "MPI_Wait peers 2 bytes 0",
		"MPI_Recv peers 2 bytes 0", "MPI_Recv peers 2 bytes 0", // through mpi
		from, from, "MPI_Waitall peers any bytes 0", from, from, "MPI_Waitall peers 2 bytes 0", from, "MPI_Wait peers 2 bytes 0",
		"MPI_Gather peers 0 bytes 0 in MPI_COMM_WORLD",
	}, describedEvents(t, result, 0))
}
