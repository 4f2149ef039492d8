package shared_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/mpi"
	"evenkeel/pgas/shared"
)

// All threads are told of what differs at the start, and can start again.
func TestUnequalHeaps(t *testing.T) {
	_, err := shared.Start(mpi.World, shared.Options{Heap: 100})
	assert.ErrorContains(t, err, "a shared heap of 100 bytes for each thread")
	if mpi.World.Size() > 1 {
		_, err = shared.Start(mpi.World, shared.Options{Heap: (1 + mpi.World.Rank()) << 20})
		assert.ErrorContains(t, err, "a shared heap must be as large on all threads; they ask for 1048576 to")
	}
}

// Whatever is done after the end is an error that says so, and reaches no memory.
func TestTheEnd(t *testing.T) {
	w, err := shared.Start(mpi.World, shared.Options{Heap: 1 << 20})
	require.NoError(t, err)
	a, err := shared.AllAlloc[int64](w, 1, 2*w.Threads())
	require.NoError(t, err)
	mine, err := shared.Alloc[int64](w, 1)
	require.NoError(t, err)
	require.NoError(t, mine.Resize(2))
	lock, err := w.AllLockAlloc()
	require.NoError(t, err)
	require.NoError(t, w.End())
	next := (w.MyThread() + 1) % w.Threads()
	for what, do := range map[string]func() error{
		"reading one's own": func() error { _, err := a.Get(w.MyThread()); return err },
		"reading a resized": func() error { _, err := mine.Get(0); return err },
		"reading":           func() error { _, err := a.Get(next); return err },
		"reading strictly":  func() error { _, err := a.GetStrict(next); return err },
		"writing one's own": func() error { return a.Put(w.MyThread(), 1) },
		"writing":           func() error { return a.Put(next, 1) },
		"following":         func() error { _, err := a.Load(a.Pointer(next)); return err },
		"bulk":              func() error { return a.Memset(0, 2, 1) },
		"broadcast":         func() error { return shared.Broadcast(a, 0, a, 1, 1, shared.Syncs{}) },
		"allocating all":    func() error { _, err := shared.AllAlloc[int64](w, 1, 1); return err },
		"allocating":        func() error { _, err := shared.Alloc[int64](w, 1); return err },
		"opening":           func() error { _, err := shared.OpenArray[int64](w, mine.Ref()); return err },
		"opening a lock":    func() error { _, err := w.OpenLock(77<<16 | 1); return err },
		"fence":             w.Fence,
		"freeing":           mine.Free,
		"closing":           mine.Close,
		"resizing":          func() error { return mine.Resize(2) },
		"locking":           lock.Lock,
		"trying":            func() error { _, err := lock.Attempt(); return err },
		"unlocking":         lock.Unlock,
		"freeing a lock":    lock.AllFree,
		"barrier":           func() error { return w.Barrier(0) },
		"ending":            w.End,
	} {
		assert.ErrorContains(t, do(), "has ended", what)
	}
}
