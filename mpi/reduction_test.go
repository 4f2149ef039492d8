package mpi_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestReductions(t *testing.T) { eachKind(t, elements.reductions) }
func TestRefusedOps(t *testing.T) { eachKind(t, elements.refusedOps) }

// reductions compares every operation of the datatype with the same in Go.
func (e typed[T]) reductions(t *testing.T, c *mpi.Comm) {
	for _, op := range slices.Sorted(maps.Keys(e.ops)) { // on all ranks in the same order
		t.Run(fmt.Sprintf("op %d", op), func(t *testing.T) { e.reduction(t, c, op, e.ops[op]) })
	}
}

func (e typed[T]) reduction(t *testing.T, c *mpi.Comm, op mpi.Op, combine func(a, b T) T) {
	const n = 3 // elements per rank of a scattered result
	value := e.value
	if op == mpi.Sum || op == mpi.Prod {
		value = e.summand
	}
	contribution := func(rank int) []T {
		out := make([]T, n*c.Size())
		for i := range out {
			out[i] = value((rank*3 + i*2) % 5)
		}
		return out
	}
	// prefix[r] combines the contributions of ranks 0 to r.
	prefix := make([][]T, c.Size())
	for rank := range prefix {
		prefix[rank] = contribution(rank)
		if rank > 0 {
			for i, v := range prefix[rank] {
				prefix[rank][i] = combine(prefix[rank-1][i], v)
			}
		}
	}
	send, all := contribution(c.Rank()), prefix[c.Size()-1]
	fresh := func() []T { return make([]T, len(send)) }
	mine := func() []T { return contribution(c.Rank()) }

	for root := range c.Size() {
		recv, inPlace := []T(nil), mine()
		if c.Rank() == root {
			recv = fresh()
		}
		require.NoError(t, mpi.Reduce(c, send, recv, op, root))
		require.NoError(t, mpi.ReduceInPlace(c, inPlace, op, root))
		if c.Rank() == root {
			assertSame(t, all, recv)
			assertSame(t, all, inPlace)
		}
	}

	recv := fresh()
	require.NoError(t, mpi.Allreduce(c, send, recv, op))
	assertSame(t, all, recv)
	recv = mine()
	require.NoError(t, mpi.AllreduceInPlace(c, recv, op))
	assertSame(t, all, recv)

	first, second := fresh(), mine()
	r1, err := mpi.Iallreduce(c, send, first, op)
	require.NoError(t, err)
	r2, err := mpi.IallreduceInPlace(c, second, op)
	require.NoError(t, err)
	_, err = mpi.WaitAll(r1, r2)
	require.NoError(t, err)
	assertSame(t, all, first)
	assertSame(t, all, second)

	part := make([]T, n)
	require.NoError(t, mpi.ReduceScatterBlock(c, send, part, op))
	assertSame(t, all[n*c.Rank():n*(c.Rank()+1)], part)
	part, err = mpi.ReduceScatterBlockInPlace(c, mine(), op)
	require.NoError(t, err)
	assertSame(t, all[n*c.Rank():n*(c.Rank()+1)], part)

	// Of the parts, that of rank 0 is empty and that of the last rank the longest.
	counts, begin, rest := make([]int, c.Size()), 0, len(all)
	for i := range counts[:c.Size()-1] {
		counts[i] = min(i, n)
		rest -= counts[i]
	}
	counts[c.Size()-1] = rest
	for _, before := range counts[:c.Rank()] {
		begin += before
	}
	part = make([]T, counts[c.Rank()])
	require.NoError(t, mpi.ReduceScatter(c, send, part, counts, op))
	assertSame(t, all[begin:begin+len(part)], part)
	part, err = mpi.ReduceScatterInPlace(c, mine(), counts, op)
	require.NoError(t, err)
	assertSame(t, all[begin:begin+counts[c.Rank()]], part)

	recv = fresh()
	require.NoError(t, mpi.Scan(c, send, recv, op))
	assertSame(t, prefix[c.Rank()], recv)
	recv = mine()
	require.NoError(t, mpi.ScanInPlace(c, recv, op))
	assertSame(t, prefix[c.Rank()], recv)

	first, second = fresh(), mine()
	require.NoError(t, mpi.Exscan(c, send, first, op))
	require.NoError(t, mpi.ExscanInPlace(c, second, op))
	if c.Rank() > 0 {
		assertSame(t, prefix[c.Rank()-1], first)
		assertSame(t, prefix[c.Rank()-1], second)
	}
}

// refusedOps tries the operations that the standard does not define for the datatype.
func (e typed[T]) refusedOps(t *testing.T, c *mpi.Comm) {
	for op := mpi.Op(-1); op <= mpi.NoOp+1; op++ {
		if _, ok := e.ops[op]; ok {
			continue
		}
		err := mpi.Allreduce(c, e.values(2, 0), make([]T, 2), op)
		assert.ErrorIs(t, err, mpi.ErrOp, "op %d", op)
	}
}

func TestEmptyReductions(t *testing.T) {
	require.NoError(t, mpi.Allreduce(mpi.World, []int{}, nil, mpi.Sum))
	require.NoError(t, mpi.AllreduceInPlace[int](mpi.World, nil, mpi.Sum))
	require.NoError(t, mpi.Reduce[int](mpi.World, nil, nil, mpi.Sum, 0))
	require.NoError(t, mpi.ReduceInPlace[int](mpi.World, nil, mpi.Sum, 0))
}
