package shared_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/mpi"
	"evenkeel/mpi/mpitest"
	"evenkeel/pgas/shared"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Run(m, 1, 2, 4)) }

// world starts a world for a test, and ends it.
func world(t *testing.T) *shared.World {
	t.Helper()
	w, err := shared.Start(mpi.World, shared.Options{Heap: 4 << 20})
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() { // the others wait where this thread stopped; mpirun ends them
			require.NoError(t, w.End())
		}
	})
	return w
}

// giveWay lets another rank have the processor.
func giveWay() { unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

func barrier(t *testing.T, w *shared.World) {
	t.Helper()
	require.NoError(t, w.Barrier(0))
}
