package shared_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"evenkeel/mpi"
	"evenkeel/mpi/mpitest"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Run(m, 1, 2, 4)) }

// eachWorld runs a test in a world whose threads share a node's memory, and in one whose threads reach
// each other over the network, as if each were on a node of its own.
func eachWorld(t *testing.T, test func(*testing.T, *shared.World)) {
	for _, apart := range []bool{false, true} {
		name := map[bool]string{false: "together", true: "apart"}[apart]
		t.Run(name, func(t *testing.T) {
			w, err := shared.Start(mpi.World, shared.Options{Heap: 4 << 20, Job: gsm.Options{Apart: apart}})
			require.NoError(t, err)
			test(t, w)
			require.NoError(t, w.End())
		})
	}
}

// times is how often to do something: less often where each time waits for other processes to be scheduled, as where some
// ranks are on other hosts.
func times(t *testing.T, n int) int {
	if strings.HasSuffix(t.Name(), "/apart") || os.Getenv("OMPI_COMM_WORLD_LOCAL_SIZE") != os.Getenv("OMPI_COMM_WORLD_SIZE") {
		return max(1, n/60)
	}
	return n
}

// giveWay lets another rank have the processor; and the goroutine that serves others, where the rank has one processor alone.
func giveWay() {
	runtime.Gosched()
	unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

func barrier(t *testing.T, w *shared.World) {
	t.Helper()
	require.NoError(t, w.Barrier(0))
}
