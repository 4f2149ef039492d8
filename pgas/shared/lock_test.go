package shared_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/shared"
)

// A counter that is read and written under a lock, and nothing of it is lost.
func TestLocksExclude(t *testing.T) { eachWorld(t, locksExclude) }

func locksExclude(t *testing.T, w *shared.World) {
	lock, err := w.AllLockAlloc()
	require.NoError(t, err)
	counter, err := shared.AllAlloc[int64](w, 1, w.Threads())
	require.NoError(t, err)
	require.NoError(t, counter.Put(w.MyThread(), 0))
	barrier(t, w)
	often := times(t, 1000)
	for i := range often {
		if i%3 == 0 {
			got, err := lock.Attempt()
			require.NoError(t, err)
			if !got {
				require.NoError(t, lock.Lock())
			}
		} else {
			require.NoError(t, lock.Lock())
		}
		last := w.Threads() - 1
		v, err := counter.Get(last)
		require.NoError(t, err)
		require.NoError(t, counter.Put(last, v+1))
		require.NoError(t, lock.Unlock())
	}
	barrier(t, w)
	v, err := counter.Get(w.Threads() - 1)
	require.NoError(t, err)
	require.EqualValues(t, often*w.Threads(), v)
	barrier(t, w)
	require.NoError(t, counter.AllFree())
	require.NoError(t, lock.AllFree())
	assert.ErrorContains(t, lock.Lock(), "it was freed")
}

// Threads get the lock in the order in which they came: each has come, as its place in the queue shows,
// before the next one comes.
func TestLocksAreFair(t *testing.T) { eachWorld(t, locksAreFair) }

func locksAreFair(t *testing.T, w *shared.World) {
	lock, err := w.AllLockAlloc()
	require.NoError(t, err)
	order, err := shared.AllAlloc[int64](w, 0, w.Threads()+1)
	require.NoError(t, err)
	for round := range max(3, times(t, 20)) {
		if w.MyThread() == 0 {
			require.NoError(t, order.Memset(0, order.Len(), 0))
			require.NoError(t, lock.Lock())
		}
		barrier(t, w)
		// Thread t queues up when t-1 has: it sees the end of the queue change.
		if me := w.MyThread(); me > 0 {
			for {
				last, err := lock.Waiting()
				require.NoError(t, err)
				if last == me-1 {
					break
				}
				giveWay()
			}
			require.NoError(t, lock.Lock())
			n, err := order.Get(0)
			require.NoError(t, err)
			require.EqualValues(t, me-1, n, "round %d", round)
			require.NoError(t, order.Put(0, n+1))
			require.NoError(t, lock.Unlock())
		} else {
			for {
				last, err := lock.Waiting()
				require.NoError(t, err)
				if last == w.Threads()-1 {
					break
				}
				giveWay()
			}
			require.NoError(t, lock.Unlock())
		}
		barrier(t, w)
	}
	require.NoError(t, lock.AllFree())
	require.NoError(t, order.AllFree())
}

func TestLocksOfOneThreadAndTheirErrors(t *testing.T) { eachWorld(t, locksOfOneThreadAndTheirErrors) }

func locksOfOneThreadAndTheirErrors(t *testing.T, w *shared.World) {
	me := w.MyThread()
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	lock, err := w.GlobalLockAlloc()
	require.NoError(t, err)
	require.NoError(t, refs.Put(me, lock.Ref()))
	assert.ErrorContains(t, lock.Unlock(), fmt.Sprintf("thread %d: unlocking the lock of thread %d: the thread does not hold it", me, me))
	require.NoError(t, lock.Lock())
	assert.ErrorContains(t, lock.Lock(), "holds it already")
	_, err = lock.Attempt()
	assert.ErrorContains(t, err, "holds it already")
	assert.ErrorContains(t, lock.Free(), "the thread holds it")
	barrier(t, w)

	next := (me + 1) % w.Threads()
	ref, err := refs.Get(next)
	require.NoError(t, err)
	theirs, err := w.OpenLock(ref)
	require.NoError(t, err)
	if next != me {
		got, err := theirs.Attempt()
		require.NoError(t, err)
		assert.False(t, got)
		assert.ErrorContains(t, theirs.Unlock(), fmt.Sprintf("thread %d: unlocking the lock of thread %d", me, next))
		assert.ErrorContains(t, theirs.Free(), "a thread holds it")
	}
	barrier(t, w)
	require.NoError(t, lock.Unlock())
	barrier(t, w)
	require.NoError(t, theirs.Lock())
	require.NoError(t, theirs.Unlock())
	barrier(t, w)
	require.NoError(t, theirs.Free())
	barrier(t, w)
	if next != me {
		assert.ErrorContains(t, lock.Lock(), "it was freed")
		_, err = lock.Attempt()
		assert.ErrorContains(t, err, "it was freed")
	}
	assert.ErrorContains(t, theirs.Free(), "freed before")
	_, err = w.OpenLock(ref)
	assert.ErrorContains(t, err, "it was freed before")
	_, err = w.OpenLock(3<<16 | 1)
	assert.ErrorContains(t, err, "there never was such an object")
	barrier(t, w)
}
