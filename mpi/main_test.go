package mpi_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/mpi/mpitest"
)

func TestMain(m *testing.M) {
	if program, ok := programs[os.Getenv(programVariable)]; ok {
		os.Exit(program())
	}
	os.Exit(mpitest.Run(m, 1, 2, 4))
}

// eachComm runs a test on every kind of communicator. Ranks may be alone in some.
func eachComm(t *testing.T, test func(t *testing.T, c *mpi.Comm)) {
	world := mpi.World
	backwards := make([]int, world.Size())
	for i := range backwards {
		backwards[i] = world.Size() - 1 - i
	}
	kinds := []struct {
		name string
		make func() (*mpi.Comm, error)
	}{
		{"world", func() (*mpi.Comm, error) { return mpi.World, nil }},
		{"self", func() (*mpi.Comm, error) { return mpi.Self, nil }},
		{"dup", world.Dup},
		{"split", func() (*mpi.Comm, error) { return world.Split(world.Rank()%2, -world.Rank()) }},
		{"shared", func() (*mpi.Comm, error) { return world.SplitType(mpi.Shared, 0) }},
		{"create", func() (*mpi.Comm, error) { return world.Create(backwards...) }},
		{"cart", func() (*mpi.Comm, error) {
			grid, err := world.Cart([]int{world.Size()}, []bool{true}, false)
			if err != nil {
				return nil, err
			}
			return grid.Comm, nil
		}},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			c, err := kind.make()
			require.NoError(t, err)
			require.NotNil(t, c)
			test(t, c)
			if c != mpi.World && c != mpi.Self {
				require.NoError(t, c.Free())
			}
		})
	}
}

// eachDatatype runs a test with the elements of every datatype.
func eachDatatype(t *testing.T, test func(t *testing.T, e elements)) {
	for _, e := range datatypes {
		t.Run(e.name(), func(t *testing.T) { test(t, e) })
	}
}

// eachKind runs a test with every datatype on every kind of communicator.
func eachKind(t *testing.T, test func(e elements, t *testing.T, c *mpi.Comm)) {
	eachComm(t, func(t *testing.T, c *mpi.Comm) {
		eachDatatype(t, func(t *testing.T, e elements) { test(e, t, c) })
	})
}

// neighbours returns the ranks before and after the calling one on a ring.
func neighbours(c *mpi.Comm) (left, right int) {
	return (c.Rank() + c.Size() - 1) % c.Size(), (c.Rank() + 1) % c.Size()
}

// assertSame compares elements, and takes nil for empty. Only what differs goes through reflection,
// which the race detector makes slow.
func assertSame[T comparable](t *testing.T, want, got []T) {
	t.Helper()
	if !slices.Equal(want, got) {
		assert.Equal(t, want, got)
	}
}
