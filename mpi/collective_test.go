package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestBroadcast(t *testing.T)           { eachKind(t, elements.broadcast) }
func TestGatherScatter(t *testing.T)       { eachKind(t, elements.gatherScatter) }
func TestGatherScatterVaried(t *testing.T) { eachKind(t, elements.gatherScatterVaried) }
func TestAllToAll(t *testing.T)            { eachKind(t, elements.allToAll) }

func TestBarriers(t *testing.T) {
	eachComm(t, func(t *testing.T, c *mpi.Comm) {
		require.NoError(t, c.Barrier())
		r, err := c.Ibarrier()
		require.NoError(t, err)
		_, err = r.Wait()
		require.NoError(t, err)
	})
}

// A barrier is complete only when every rank has begun it.
func TestIbarrierWaitsForAll(t *testing.T) {
	c := mpi.World
	if c.Size() == 1 {
		t.Skip("needs a second rank")
	}
	if c.Rank() == 0 {
		require.NoError(t, mpi.Ssend(c, []int{1}, 1, 0)) // rank 1 has begun its barrier
		require.NoError(t, mpi.Ssend(c, []int{1}, 1, 0)) // and has looked at it
	}
	r, err := c.Ibarrier()
	require.NoError(t, err)
	if c.Rank() == 1 {
		_, err = mpi.Recv(c, []int{0}, 0, 0)
		require.NoError(t, err)
		for range 100 {
			_, done, err := r.Test()
			require.NoError(t, err)
			require.False(t, done, "rank 0 has not begun")
		}
		_, err = mpi.Recv(c, []int{0}, 0, 0)
		require.NoError(t, err)
	}
	_, err = r.Wait()
	require.NoError(t, err)
}

func (e typed[T]) broadcast(t *testing.T, c *mpi.Comm) {
	for _, n := range lengths {
		for root := range c.Size() {
			buf := e.values(n, c.Rank()+1)
			require.NoError(t, mpi.Bcast(c, buf, root))
			assertSame(t, e.values(n, root+1), buf)

			buf = e.values(n, c.Rank()+1)
			r, err := mpi.Ibcast(c, buf, root)
			require.NoError(t, err)
			_, err = r.Wait()
			require.NoError(t, err)
			assertSame(t, e.values(n, root+1), buf)
		}
	}
}

func (e typed[T]) gatherScatter(t *testing.T, c *mpi.Comm) {
	for _, n := range lengths {
		mine := e.values(n, c.Rank())
		var all []T
		for rank := range c.Size() {
			all = append(all, e.values(n, rank)...)
		}
		for root := range c.Size() {
			var gathered, source []T
			if c.Rank() == root {
				gathered, source = make([]T, n*c.Size()), all
			}
			require.NoError(t, mpi.Gather(c, mine, gathered, root))
			assertSame(t, source, gathered)

			part := make([]T, n)
			require.NoError(t, mpi.Scatter(c, source, part, root))
			assertSame(t, mine, part)
		}
		gathered := make([]T, n*c.Size())
		require.NoError(t, mpi.Allgather(c, mine, gathered))
		assertSame(t, all, gathered)

		clear(gathered)
		copy(gathered[n*c.Rank():], mine)
		require.NoError(t, mpi.AllgatherInPlace(c, gathered))
		assertSame(t, all, gathered)
	}
}

// gatherScatterVaried moves rank+1 elements per rank: one after the other, and in the opposite order
// with a gap of one.
func (e typed[T]) gatherScatterVaried(t *testing.T, c *mpi.Comm) {
	counts, reversed := make([]int, c.Size()), make([]int, c.Size())
	total := 0
	for rank := range counts {
		counts[rank] = rank + 1
		total += rank + 1
	}
	end := total + c.Size()
	for rank := range counts {
		end -= counts[rank] + 1
		reversed[rank] = end
	}
	mine := e.values(c.Rank()+1, c.Rank())

	for _, displs := range [][]int{nil, reversed} {
		want := make([]T, total+c.Size())
		next := 0
		for rank, n := range counts {
			at := next
			if displs != nil {
				at = displs[rank]
			}
			copy(want[at:], e.values(n, rank))
			next += n
		}
		for root := range c.Size() {
			got, source := []T(nil), []T(nil)
			if c.Rank() == root {
				got, source = make([]T, len(want)), want
			}
			require.NoError(t, mpi.Gatherv(c, mine, got, counts, displs, root))
			assertSame(t, source, got)

			part := make([]T, len(mine))
			require.NoError(t, mpi.Scatterv(c, source, counts, displs, part, root))
			assertSame(t, mine, part)
		}
		got := make([]T, len(want))
		require.NoError(t, mpi.Allgatherv(c, mine, got, counts, displs))
		assertSame(t, want, got)
	}
}

// allToAll sends the values of start 10·from+to from each rank to each.
func (e typed[T]) allToAll(t *testing.T, c *mpi.Comm) {
	const n = 3
	var out, in, outV, inV []T
	outCounts, inCounts := make([]int, c.Size()), make([]int, c.Size())
	for rank := range c.Size() {
		out = append(out, e.values(n, 10*c.Rank()+rank)...)
		in = append(in, e.values(n, 10*rank+c.Rank())...)
		outCounts[rank], inCounts[rank] = rank, c.Rank()
		outV = append(outV, e.values(rank, 10*c.Rank()+rank)...)
		inV = append(inV, e.values(c.Rank(), 10*rank+c.Rank())...)
	}
	got := make([]T, len(in))
	require.NoError(t, mpi.Alltoall(c, out, got))
	assertSame(t, in, got)

	require.NoError(t, mpi.AlltoallInPlace(c, out))
	assertSame(t, in, out)

	got = make([]T, len(inV))
	require.NoError(t, mpi.Alltoallv(c, outV, outCounts, nil, got, inCounts, nil))
	assertSame(t, inV, got)

	// The same from and to the far end of larger buffers, with displacements.
	outDispls, inDispls := make([]int, c.Size()), make([]int, c.Size())
	at := 1
	for rank := range outDispls {
		outDispls[rank], inDispls[rank] = at, 1+rank*c.Rank()
		at += rank
	}
	got = make([]T, 1+len(inV))
	require.NoError(t, mpi.Alltoallv(c, append(make([]T, 1), outV...), outCounts, outDispls,
		got, inCounts, inDispls))
	assertSame(t, inV, got[1:])
}
