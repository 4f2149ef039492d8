package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestRanksOfSplit(t *testing.T) {
	world := mpi.World
	c, err := world.Split(world.Rank()%2, -world.Rank())
	require.NoError(t, err)
	members := (world.Size() + 1 - world.Rank()%2) / 2
	assert.Equal(t, members, c.Size())
	assert.Equal(t, members-1-world.Rank()/2, c.Rank(), "a falling key turns the order round")
	require.NoError(t, c.Free())
}

func TestRanksThatStayOutside(t *testing.T) {
	world := mpi.World
	color, kind := 0, mpi.Shared
	if world.Rank() != 0 {
		color, kind = mpi.Undefined, mpi.None
	}
	outside := world.Rank() != 0

	split, err := world.Split(color, 0)
	require.NoError(t, err)
	assert.Equal(t, outside, split == nil)
	shared, err := world.SplitType(kind, 0)
	require.NoError(t, err)
	assert.Equal(t, outside, shared == nil)
	created, err := world.Create(0)
	require.NoError(t, err)
	assert.Equal(t, outside, created == nil)
	grid, err := world.Cart([]int{1}, []bool{false}, false)
	require.NoError(t, err)
	assert.Equal(t, outside, grid == nil)

	for _, c := range []*mpi.Comm{split, shared, created} {
		if c == nil {
			assert.Equal(t, mpi.Undefined, c.Rank())
			assert.Equal(t, mpi.Undefined, c.Size())
			assert.ErrorIs(t, c.Barrier(), mpi.ErrComm)
			continue
		}
		assert.Equal(t, 1, c.Size())
		require.NoError(t, c.Free())
	}
	_, err = grid.Coords(0)
	if outside {
		assert.ErrorIs(t, err, mpi.ErrComm)
	} else {
		assert.NoError(t, err)
		require.NoError(t, grid.Free())
	}
}

func TestCompare(t *testing.T) {
	world := mpi.World
	dup, err := world.Dup()
	require.NoError(t, err)
	turned, err := world.Split(0, -world.Rank())
	require.NoError(t, err)
	alone := world.Size() == 1

	for _, test := range []struct {
		name         string
		other        *mpi.Comm
		want, ifSolo mpi.Comparison
	}{
		{"itself", world, mpi.Ident, mpi.Ident},
		{"duplicate", dup, mpi.Congruent, mpi.Congruent},
		{"other order", turned, mpi.Similar, mpi.Congruent},
		{"self", mpi.Self, mpi.Unequal, mpi.Congruent},
	} {
		got, err := mpi.Compare(world, test.other)
		require.NoError(t, err, test.name)
		want := test.want
		if alone {
			want = test.ifSolo
		}
		assert.Equal(t, want, got, test.name)
	}
	_, err = mpi.Compare(world, nil)
	assert.ErrorIs(t, err, mpi.ErrComm)
	require.NoError(t, dup.Free())
	require.NoError(t, turned.Free())
}

func TestNames(t *testing.T) {
	name, err := mpi.World.Name()
	require.NoError(t, err)
	assert.Equal(t, "MPI_COMM_WORLD", name)
	c, err := mpi.World.Dup()
	require.NoError(t, err)
	require.NoError(t, c.SetName("the halo's own"))
	name, err = c.Name()
	require.NoError(t, err)
	assert.Equal(t, "the halo's own", name)
	require.NoError(t, c.Free())
}

func TestMessagesStayInTheirCommunicator(t *testing.T) {
	dup, err := mpi.World.Dup()
	require.NoError(t, err)
	left, right := neighbours(mpi.World)
	r1, err := mpi.Isend(mpi.World, []int32{1}, right, 0)
	require.NoError(t, err)
	r2, err := mpi.Isend(dup, []int32{2}, right, 0)
	require.NoError(t, err)
	got := []int32{0}
	_, err = mpi.Recv(dup, got, left, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 2, got[0])
	_, err = mpi.Recv(mpi.World, got, left, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 1, got[0])
	_, err = mpi.WaitAll(r1, r2)
	require.NoError(t, err)
	require.NoError(t, dup.Free())
}
