package mpi_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

func TestFencedTransfers(t *testing.T) { eachKind(t, elements.fencedTransfers) }
func TestSharedWindow(t *testing.T)    { eachKind(t, elements.sharedWindow) }

// fencedTransfers writes to the right neighbour's window and reads the left one's.
func (e typed[T]) fencedTransfers(t *testing.T, c *mpi.Comm) {
	if c.Size() > 1 && c.Size() < mpi.World.Size() {
		t.Skip("Open MPI 4.1 cannot open windows on parts of a split at the same time")
	}
	const n = 4
	local := make([]T, n+c.Rank()) // the parts need not be equally long
	w, err := mpi.WinCreate(c, local)
	if c.Size() == 1 {
		if err != nil {
			assert.ErrorIs(t, err, mpi.ErrWin)
			assert.ErrorContains(t, err, "WinAllocateShared")
			return
		}
	}
	require.NoError(t, err)
	left, right := neighbours(c)
	assert.Equal(t, n+left, w.Len(left))

	require.NoError(t, w.Fence(mpi.NoPrecede))
	require.NoError(t, w.Put(e.values(n-1, c.Rank()), right, 1))
	require.NoError(t, w.Fence(0))
	assertSame(t, e.values(n-1, left), w.Local()[1:n])
	assert.Equal(t, local, w.Local())

	got := make([]T, n-1)
	require.NoError(t, w.Get(got, left, 1))
	require.NoError(t, w.Fence(mpi.NoSucceed))
	beforeLeft := (left + c.Size() - 1) % c.Size()
	assertSame(t, e.values(n-1, beforeLeft), got)
	require.NoError(t, w.Free())
}

// sharedWindow stores to the own part and loads everyone's.
func (e typed[T]) sharedWindow(t *testing.T, c *mpi.Comm) {
	const n = 3
	w, err := mpi.WinAllocateShared[T](c, n)
	require.NoError(t, err)
	require.Len(t, w.Local(), n)
	assert.Equal(t, make([]T, n), w.Local(), "new memory is zero")

	require.NoError(t, w.Fence(0))
	copy(w.Local(), e.values(n, c.Rank()))
	require.NoError(t, w.Fence(0))
	for rank := range c.Size() {
		part, err := w.Shared(rank)
		require.NoError(t, err)
		assertSame(t, e.values(n, rank), part)
	}
	require.NoError(t, w.Fence(0))
	require.NoError(t, w.Free())
}

// windows runs a test on a window over Go memory and one over C memory.
func windows[T mpi.Datatype](t *testing.T, n int, test func(t *testing.T, w *mpi.Win[T])) {
	if mpi.World.Size() == 1 {
		t.Skip("Open MPI makes no such window over one rank")
	}
	t.Run("Go memory", func(t *testing.T) {
		w, err := mpi.WinCreate(mpi.World, make([]T, n))
		require.NoError(t, err)
		test(t, w)
		require.NoError(t, w.Free())
	})
	t.Run("C memory", func(t *testing.T) {
		buf, err := mpi.AllocMem[T](n)
		require.NoError(t, err)
		require.Equal(t, make([]T, n), buf)
		w, err := mpi.WinCreate(mpi.World, buf)
		require.NoError(t, err)
		test(t, w)
		require.NoError(t, w.Free())
		require.NoError(t, mpi.FreeMem(buf))
	})
}

func TestAccumulate(t *testing.T) {
	windows(t, 3, func(t *testing.T, w *mpi.Win[int64]) {
		size := int64(mpi.World.Size())
		require.NoError(t, w.Fence(0))
		require.NoError(t, w.Accumulate([]int64{1, int64(mpi.World.Rank())}, 0, 1, mpi.Sum))
		require.NoError(t, w.Fence(0))
		if mpi.World.Rank() == 0 {
			assert.Equal(t, []int64{0, size, size * (size - 1) / 2}, w.Local())
		}
	})
}

// Every rank draws tickets from a counter on rank 0: all differ, and none is missing.
func TestFetchAndOpHandsOutTickets(t *testing.T) {
	const each = 25
	windows(t, 1, func(t *testing.T, w *mpi.Win[int64]) {
		tickets := make([]int64, each)
		require.NoError(t, w.LockAll())
		for i := range tickets {
			require.NoError(t, w.FetchAndOp(1, &tickets[i], 0, 0, mpi.Sum))
			require.NoError(t, w.Flush(0))
		}
		require.NoError(t, w.FetchAndOp(1, nil, 0, 0, mpi.Sum))
		require.NoError(t, w.UnlockAll())
		require.NoError(t, mpi.World.Barrier())

		all := make([]int64, each*mpi.World.Size())
		require.NoError(t, mpi.Allgather(mpi.World, tickets, all))
		drawn := map[int64]bool{}
		for _, ticket := range all {
			drawn[ticket] = true
			assert.Less(t, ticket, int64(len(all)+mpi.World.Size()))
		}
		assert.Len(t, drawn, len(all))
		total := int64(0)
		require.NoError(t, w.Lock(mpi.LockShared, 0))
		require.NoError(t, w.FetchAndOp(0, &total, 0, 0, mpi.NoOp))
		require.NoError(t, w.Unlock(0))
		assert.EqualValues(t, len(all)+mpi.World.Size(), total)
		require.NoError(t, mpi.World.Barrier())
	})
}

// A lock made of CompareAndSwap guards a counter that each rank reads, adds to and writes back.
func TestCompareAndSwapMakesALock(t *testing.T) {
	const rounds = 10
	windows(t, 2, func(t *testing.T, w *mpi.Win[int32]) {
		require.NoError(t, w.LockAll())
		for range rounds {
			for {
				var before int32
				require.NoError(t, w.CompareAndSwap(1, 0, &before, 0, 0))
				require.NoError(t, w.Flush(0))
				if before == 0 {
					break
				}
				runtime.Gosched()
			}
			value := []int32{0}
			require.NoError(t, w.Get(value, 0, 1))
			require.NoError(t, w.FlushLocal(0))
			value[0]++
			require.NoError(t, w.Put(value, 0, 1))
			require.NoError(t, w.FlushAll())
			require.NoError(t, w.Accumulate([]int32{0}, 0, 0, mpi.Replace))
			require.NoError(t, w.Flush(0))
		}
		require.NoError(t, w.UnlockAll())
		require.NoError(t, mpi.World.Barrier())
		if mpi.World.Rank() == 0 {
			require.NoError(t, w.Lock(mpi.LockExclusive, 0))
			require.NoError(t, w.Sync())
			assert.EqualValues(t, rounds*mpi.World.Size(), w.Local()[1])
			require.NoError(t, w.Unlock(0))
		}
		require.NoError(t, mpi.World.Barrier())
	})
}

// Of 64 bits, each rank swaps an element of its right neighbour: Open MPI 4.1 cannot swap the rank's
// own.
func TestCompareAndSwapOf64Bits(t *testing.T) {
	left, right := neighbours(mpi.World)
	windows(t, 1, func(t *testing.T, w *mpi.Win[uint64]) {
		const before, after = 1 << 40, 1<<63 + 1
		w.Local()[0] = before
		require.NoError(t, mpi.World.Barrier())
		require.NoError(t, w.LockAll())
		var first, second uint64
		require.NoError(t, w.CompareAndSwap(after+uint64(mpi.World.Rank()), before, &first, right, 0))
		require.NoError(t, w.Flush(right))
		require.NoError(t, w.CompareAndSwap(0, before, &second, right, 0))
		require.NoError(t, w.UnlockAll())
		assert.EqualValues(t, uint64(before), first)
		assert.EqualValues(t, after+uint64(mpi.World.Rank()), second, "the second swap does not match")
		require.NoError(t, mpi.World.Barrier())
		assert.EqualValues(t, uint64(after)+uint64(left), w.Local()[0])
		require.NoError(t, mpi.World.Barrier())
	})
}

// Go's atomics count together in memory that the ranks share.
func TestSharedWindowAtomics(t *testing.T) {
	const each = 1000
	w, err := mpi.WinAllocateShared[int64](mpi.World, 1)
	require.NoError(t, err)
	counter, err := w.Shared(0)
	require.NoError(t, err)
	for range each {
		atomic.AddInt64(&counter[0], 1)
	}
	require.NoError(t, mpi.World.Barrier())
	assert.EqualValues(t, each*mpi.World.Size(), atomic.LoadInt64(&counter[0]))
	require.NoError(t, mpi.World.Barrier())
	require.NoError(t, w.Free())
}

func TestSharedWindowOfUnevenParts(t *testing.T) {
	w, err := mpi.WinAllocateShared[float64](mpi.World, mpi.World.Rank())
	require.NoError(t, err)
	for rank := range mpi.World.Size() {
		part, err := w.Shared(rank)
		require.NoError(t, err)
		assert.Len(t, part, rank)
	}
	require.NoError(t, w.Free())
}

// Goroutines use one window at the same time, each with a target element of its own.
func TestWindowGoroutines(t *testing.T) {
	windows(t, 3, func(t *testing.T, w *mpi.Win[int64]) {
		require.NoError(t, w.LockAll())
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				for range 20 {
					assert.NoError(t, w.Accumulate([]int64{1}, 0, i, mpi.Sum))
					assert.NoError(t, w.Flush(0))
				}
			})
		}
		group.Wait()
		require.NoError(t, w.UnlockAll())
		require.NoError(t, mpi.World.Barrier())
		if mpi.World.Rank() == 0 {
			n := int64(20 * mpi.World.Size())
			assert.Equal(t, []int64{n, n, n}, w.Local())
		}
		require.NoError(t, mpi.World.Barrier())
	})
}
