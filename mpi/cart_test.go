package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

// plane lays all ranks out in two dimensions, the second of which wraps around.
func plane(t *testing.T) *mpi.Cart {
	dims, err := mpi.Dims(mpi.World.Size(), 0, 0)
	require.NoError(t, err)
	grid, err := mpi.World.Cart(dims, []bool{false, true}, true)
	require.NoError(t, err)
	assert.Equal(t, dims, grid.Dims())
	assert.Equal(t, []bool{false, true}, grid.Periodic())
	return grid
}

func TestDims(t *testing.T) {
	for _, test := range []struct {
		ranks       int
		fixed, want []int
	}{
		{12, []int{0, 0}, []int{4, 3}},
		{12, []int{0, 2, 0}, []int{3, 2, 2}},
		{7, []int{0}, []int{7}},
	} {
		got, err := mpi.Dims(test.ranks, test.fixed...)
		require.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
	_, err := mpi.Dims(7, 0, 2)
	assert.ErrorIs(t, err, mpi.ErrDims)
}

func TestCoordsAndRanks(t *testing.T) {
	grid := plane(t)
	seen := map[[2]int]bool{}
	for rank := range grid.Size() {
		coords, err := grid.Coords(rank)
		require.NoError(t, err)
		seen[[2]int(coords)] = true
		back, err := grid.RankAt(coords...)
		require.NoError(t, err)
		assert.Equal(t, rank, back)
		around, err := grid.RankAt(coords[0], coords[1]+grid.Dims()[1])
		require.NoError(t, err)
		assert.Equal(t, rank, around, "the second dimension wraps around")
	}
	assert.Len(t, seen, grid.Size())
	_, err := grid.RankAt(grid.Dims()[0], 0)
	assert.Error(t, err, "the first dimension has an edge")
	require.NoError(t, grid.Free())
}

func TestShift(t *testing.T) {
	grid := plane(t)
	me, err := grid.Coords(grid.Rank())
	require.NoError(t, err)
	rankOrNull := func(row int) int {
		if row < 0 || row >= grid.Dims()[0] {
			return mpi.ProcNull
		}
		rank, err := grid.RankAt(row, me[1])
		require.NoError(t, err)
		return rank
	}
	above, below, err := grid.Shift(0, 1)
	require.NoError(t, err)
	assert.Equal(t, []int{rankOrNull(me[0] - 1), rankOrNull(me[0] + 1)}, []int{above, below})

	left, right, err := grid.Shift(1, 1)
	require.NoError(t, err)
	got := []int{-1}
	_, err = mpi.Sendrecv(grid.Comm, []int{me[1]}, right, 0, got, left, 0)
	require.NoError(t, err)
	width := grid.Dims()[1]
	assert.Equal(t, (me[1]+width-1)%width, got[0])
	require.NoError(t, grid.Free())
}

func TestSub(t *testing.T) {
	grid := plane(t)
	me, err := grid.Coords(grid.Rank())
	require.NoError(t, err)
	row, err := grid.Sub([]bool{false, true})
	require.NoError(t, err)
	assert.Equal(t, grid.Dims()[1:], row.Dims())
	assert.Equal(t, []bool{true}, row.Periodic())
	sum := []int{me[0]}
	require.NoError(t, mpi.AllreduceInPlace(row.Comm, sum, mpi.Sum))
	assert.Equal(t, me[0]*row.Size(), sum[0], "all ranks of a row have the same first coordinate")
	require.NoError(t, row.Free())
	require.NoError(t, grid.Free())
}

func TestCartRefusals(t *testing.T) {
	_, err := mpi.World.Cart([]int{1, 1}, []bool{true}, false)
	assert.ErrorIs(t, err, mpi.ErrLength)
	_, err = mpi.World.Cart([]int{mpi.World.Size() + 1}, []bool{true}, false)
	assert.Error(t, err, "more places than ranks")

	grid := plane(t)
	_, err = grid.RankAt(0)
	assert.ErrorIs(t, err, mpi.ErrLength)
	_, err = grid.Sub([]bool{true})
	assert.ErrorIs(t, err, mpi.ErrLength)
	_, err = grid.Coords(grid.Size())
	assert.ErrorIs(t, err, mpi.ErrRank)
	_, _, err = grid.Shift(2, 1)
	assert.ErrorIs(t, err, mpi.ErrDims)
	require.NoError(t, grid.Free())
	_, err = grid.Coords(0)
	assert.ErrorIs(t, err, mpi.ErrComm)
}
