package shared_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

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
	t.Cleanup(func() { require.NoError(t, w.End()) })
	return w
}

func barrier(t *testing.T, w *shared.World) {
	t.Helper()
	require.NoError(t, w.Barrier(0))
}
