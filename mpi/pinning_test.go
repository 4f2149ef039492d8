package mpi_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
)

// watched returns memory that is on the Go heap by itself, and tells when it was collected.
func watched() (buf []int64, collected *atomic.Bool) {
	memory := new([100]int64)
	collected = new(atomic.Bool)
	runtime.SetFinalizer(memory, func(*[100]int64) { collected.Store(true) })
	return memory[:], collected
}

// collect returns when all garbage is collected and finalized: garbage made now is, two times.
func collect() {
	for range 2 {
		_, done := watched()
		for !done.Load() {
			runtime.GC()
			runtime.Gosched()
		}
	}
}

// The buffer of a request under way is known to no one but MPI. It lives until the request is
// complete, and no longer.
func TestBuffersLiveAsLongAsTheirRequests(t *testing.T) {
	received := make([]int64, 100)
	for name, start := range map[string]func(buf []int64) (*mpi.Request, error){
		"Isend": func(buf []int64) (*mpi.Request, error) { return mpi.Isend(mpi.Self, buf, 0, 0) },
		"Irecv": func(buf []int64) (*mpi.Request, error) { return mpi.Irecv(mpi.Self, buf, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			buf, collected := watched()
			r, err := start(buf)
			require.NoError(t, err)
			collect()
			assert.False(t, collected.Load(), "collected under way")
			if name == "Isend" {
				_, err = mpi.Recv(mpi.Self, received, 0, 0)
			} else {
				err = mpi.Send(mpi.Self, received, 0, 0)
			}
			require.NoError(t, err)
			assert.False(t, collected.Load(), "collected before Wait")
			_, err = r.Wait()
			require.NoError(t, err)
			collect()
			assert.True(t, collected.Load(), "kept after Wait")
		})
	}
	// Of collectives, all ranks wait for all, so they are checked together.
	broadcast, collected1 := watched()
	send, collected2 := watched()
	recv, collected3 := watched()
	inPlace, collected4 := watched()
	r1, err := mpi.Ibcast(mpi.World, broadcast, 0)
	require.NoError(t, err)
	r2, err := mpi.Iallreduce(mpi.World, send, recv, mpi.Max)
	require.NoError(t, err)
	r3, err := mpi.IallreduceInPlace(mpi.World, inPlace, mpi.Max)
	require.NoError(t, err)
	collect()
	states := []*atomic.Bool{collected1, collected2, collected3, collected4}
	for i, s := range states {
		assert.False(t, s.Load(), "collective buffer %d collected under way", i)
	}
	_, err = mpi.WaitAll(r1, r2, r3)
	require.NoError(t, err)
	collect()
	for i, s := range states {
		assert.True(t, s.Load(), "collective buffer %d kept after WaitAll", i)
	}
}

// The buffers of a transfer live until the call that completes it.
func TestOriginsLiveAsLongAsTheirEpochs(t *testing.T) {
	_, right := neighbours(mpi.World)
	w, err := mpi.WinAllocateShared[int64](mpi.World, 200)
	require.NoError(t, err)
	transfers := map[string]func(buf []int64) error{
		"Put":            func(buf []int64) error { return w.Put(buf, right, 0) },
		"Get":            func(buf []int64) error { return w.Get(buf, right, 0) },
		"Accumulate":     func(buf []int64) error { return w.Accumulate(buf, right, 0, mpi.Sum) },
		"FetchAndOp":     func(buf []int64) error { return w.FetchAndOp(1, &buf[0], right, 0, mpi.Sum) },
		"CompareAndSwap": func(buf []int64) error { return w.CompareAndSwap(1, 2, &buf[0], right, 0) },
	}
	lockAll := func() error { return w.LockAll() }
	lock := func() error { return w.Lock(mpi.LockShared, right) }
	for name, epoch := range map[string]struct{ begin, complete, end func() error }{
		"Unlock":     {lock, func() error { return w.Unlock(right) }, nil},
		"Flush":      {lock, func() error { return w.Flush(right) }, func() error { return w.Unlock(right) }},
		"FlushLocal": {lock, func() error { return w.FlushLocal(right) }, func() error { return w.Unlock(right) }},
		"UnlockAll":  {lockAll, w.UnlockAll, nil},
		"FlushAll":   {lockAll, w.FlushAll, w.UnlockAll},
	} {
		for transfer, start := range transfers {
			buf, collected := watched()
			require.NoError(t, epoch.begin())
			require.NoError(t, start(buf))
			collect()
			assert.False(t, collected.Load(), "%s: collected before %s", transfer, name)
			require.NoError(t, epoch.complete())
			collect()
			assert.True(t, collected.Load(), "%s: kept after %s", transfer, name)
			if epoch.end != nil {
				require.NoError(t, epoch.end())
			}
		}
	}

	buf, collected := watched()
	require.NoError(t, w.Fence(0))
	require.NoError(t, w.Put(buf, right, 0))
	collect()
	assert.False(t, collected.Load(), "collected before Fence")
	require.NoError(t, w.Fence(mpi.NoSucceed))
	collect()
	assert.True(t, collected.Load(), "kept after Fence")
	require.NoError(t, w.Free())
}

// After a call that failed to complete them, transfers keep their buffers until Free.
func TestOriginsOutliveFailures(t *testing.T) {
	if mpi.World.Size() == 1 {
		t.Skip("Open MPI 4.1 makes no such window over one rank")
	}
	_, right := neighbours(mpi.World)
	w, err := mpi.WinCreate(mpi.World, make([]int64, 100))
	require.NoError(t, err)
	buf, collected := watched()
	require.NoError(t, w.LockAll())
	require.NoError(t, w.Put(buf, right, 0))
	require.ErrorIs(t, w.Unlock(right), mpi.ErrRMASync, "the rank was not locked by Lock")
	collect()
	assert.False(t, collected.Load(), "collected after a failure")
	require.NoError(t, w.UnlockAll())
	require.NoError(t, w.Free())
	collect()
	assert.True(t, collected.Load(), "kept after Free")
}

// The memory of a window lives until Free.
func TestMemoryLivesAsLongAsItsWindow(t *testing.T) {
	if mpi.World.Size() == 1 {
		t.Skip("Open MPI 4.1 makes no such window over one rank")
	}
	buf, collected := watched()
	w, err := mpi.WinCreate(mpi.World, buf)
	require.NoError(t, err)
	collect()
	assert.False(t, collected.Load(), "collected while open")
	require.NoError(t, w.Free())
	collect()
	assert.True(t, collected.Load(), "kept after Free")
}
