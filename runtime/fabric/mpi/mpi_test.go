package mpi

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/mpi/mpitest"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

func TestMain(m *testing.M) { os.Exit(mpitest.Run(m, 3)) }

func TestConformance(t *testing.T) {
	f, err := Join(mpi.World, 20*time.Microsecond)
	require.NoError(t, err)
	fabrictest.Run(t, fabrictest.End{Fabric: f, Meeting: Meet(mpi.World), Priority: true, Bounded: false, Allocates: true})
}

// The other fabrics between processes rather than goroutines.
func TestOthersBetweenRanks(t *testing.T) {
	m := Meet(mpi.World)
	s, err := shm.Join(m, shm.Options{Spin: 20 * time.Microsecond})
	require.NoError(t, err)
	fabrictest.Run(t, fabrictest.End{Fabric: s, Meeting: m, Priority: true, Bounded: true, Allocates: true})
	u, err := udp.Join(m, udp.Options{Spin: 20 * time.Microsecond})
	require.NoError(t, err)
	fabrictest.Run(t, fabrictest.End{Fabric: u, Meeting: m, Allocates: true})
}

func TestMeeting(t *testing.T) {
	m := Meet(mpi.World)
	for _, each := range []string{"", "ranks of different lengths"} {
		said, err := m.Exchange([]byte(each[:len(each)/(int(m.Self())+1)]))
		require.NoError(t, err)
		require.Len(t, said, m.Tasks())
		for task, s := range said {
			assert.Equal(t, each[:len(each)/(task+1)], string(s))
		}
	}
}
