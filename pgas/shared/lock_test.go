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
	assert.ErrorContains(t, lock.Unlock(), fmt.Sprintf("thread %d: unlocking %s: the thread does not hold it", me, lock.Ref()))
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
		assert.ErrorContains(t, theirs.Unlock(), fmt.Sprintf("thread %d: unlocking %s: ", me, ref))
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

// However many objects there are, a lock stays what it is.
func TestALockAmongManyObjects(t *testing.T) { eachWorld(t, aLockAmongManyObjects) }

func aLockAmongManyObjects(t *testing.T, w *shared.World) {
	all, err := w.AllLockAlloc()
	require.NoError(t, err)
	mine, err := w.GlobalLockAlloc()
	require.NoError(t, err)
	for range 100 {
		_, err := shared.AllAlloc[int64](w, 1, 1)
		require.NoError(t, err)
		_, err = shared.Alloc[int64](w, 1)
		require.NoError(t, err)
		for _, lock := range []*shared.Lock{all, mine} {
			require.NoError(t, lock.Lock())
			require.NoError(t, lock.Unlock())
		}
	}
	require.NoError(t, all.AllFree())
	require.NoError(t, mine.Free())
}

// Whoever comes to a lock while it is freed has it before, or hears that it was freed, and waits for nobody.
func TestALockThatIsFreedWhileOthersWantIt(t *testing.T) {
	eachWorld(t, aLockThatIsFreedWhileOthersWantIt)
}

func aLockThatIsFreedWhileOthersWantIt(t *testing.T, w *shared.World) {
	refs, err := shared.AllAlloc[shared.Ref](w, 1, w.Threads())
	require.NoError(t, err)
	refused := 0
	for round := range max(30, times(t, 600)) {
		home := round % w.Threads()
		if w.MyThread() == home {
			lock, err := w.GlobalLockAlloc()
			require.NoError(t, err)
			require.NoError(t, refs.Put(0, lock.Ref()))
		}
		barrier(t, w)
		ref, err := refs.Get(0)
		require.NoError(t, err)
		lock, err := w.OpenLock(ref)
		require.NoError(t, err)
		barrier(t, w)
		if w.MyThread() == home {
			for err = lock.Free(); err != nil; err = lock.Free() {
				require.ErrorContains(t, err, "a thread holds it")
			}
		}
		for i := 0; w.MyThread() != home && i < 3; i++ {
			if err = lock.Lock(); err != nil {
				require.ErrorContains(t, err, "it was freed before")
				refused++
				break
			}
			require.NoError(t, lock.Unlock())
		}
		barrier(t, w)
		require.Error(t, lock.Unlock())
	}
	t.Logf("refused %d times", refused)
	require.NoError(t, refs.AllFree())
}

// Threads that come to a lock and die before they have said so are missed by the one that they stand behind; and who
// says so when that one has given up hears it. (tests/shared_death_test.go has threads that die.)
func TestALockThatIsLostBehindItsHolder(t *testing.T) { eachWorld(t, aLockThatIsLostBehindItsHolder) }

func aLockThatIsLostBehindItsHolder(t *testing.T, w *shared.World) {
	lock, err := w.AllLockAlloc()
	require.NoError(t, err)
	last := w.Threads() - 1
	if w.MyThread() == 0 {
		gone, err := w.GlobalLockAlloc()
		require.NoError(t, err)
		require.NoError(t, gone.Lock())
		require.NoError(t, gone.SetTail(uint64(w.Threads())+1)) // of a thread that there is not
		assert.ErrorContains(t, gone.Unlock(), fmt.Sprintf("unlocking %s: thread %d died", gone.Ref(), w.Threads()))
		assert.ErrorIs(t, gone.Unlock(), shared.ErrLost)
		require.NoError(t, lock.Lock())
		require.NoError(t, lock.SetTail(shared.Lost(last)))
		for _, err := range []error{lock.Unlock(), lock.Unlock(), lock.Lock(), lock.Free(), lock.Close()} {
			assert.ErrorIs(t, err, shared.ErrLost)
			assert.ErrorContains(t, err, fmt.Sprintf("%s: thread %d died", lock.Ref(), last))
		}
		_, err = lock.Waiting()
		assert.ErrorIs(t, err, shared.ErrLost)
		_, err = lock.Attempt()
		assert.ErrorIs(t, err, shared.ErrLost)
		require.NoError(t, lock.SetTail(1)) // as if thread 0 still had it
	}
	barrier(t, w)
	if w.MyThread() == last && last > 0 {
		assert.ErrorIs(t, lock.Lock(), shared.ErrLost)
		assert.ErrorIs(t, lock.Unlock(), shared.ErrLost)
	}
	barrier(t, w)
}
