package shared

import (
	"sync/atomic"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared/heap"
)

// Lock is upc_lock_t. Threads that wait stand in a queue and get it in that order; each waits for a word
// of its own memory, which the one before it writes, so that waiting loads neither network nor memory of
// others. (J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on
// shared-memory multiprocessors, ACM TOCS 1991.)
//
// A lock has a part at the same place on every thread: the end of the queue, which counts on the home
// thread only, and that thread's place in the queue.
type Lock struct {
	w     *World
	place uint64
	home  int
	what  string
	held  bool
	freed bool
}

// LockRef is a lock in a form that other threads make a Lock of (OpenLock): two numbers that can be
// kept in shared memory.
type LockRef struct {
	Place uint64
	Home  int64
}

// Words of a lock's part.
const (
	tailWord = 0              // on the home thread: 0 if the lock is free, else who came last, and one
	nextWord = heap.Unit      // of a thread's place: who comes next, and one
	waitWord = heap.Unit + 8  // 1 while the thread waits
	usedWord = heap.Unit + 16 // 1 while the thread holds the lock, or waits for it
)

// closed is the end of the queue of a lock that was freed.
const closed = ^uint64(0)

func (w *World) lockAt(place uint64, home int, what string) *Lock {
	return &Lock{w: w, place: place, home: home, what: what}
}

func (l *Lock) at(thread int, word uint64) gsm.Address { return l.w.address(thread, l.place+word) }

func (l *Lock) failed(what, why string) error {
	return errors.Errorf("thread %d: %s %s of thread %d: %s", l.w.thread, what, l.what, l.home, why)
}

// ready makes the thread's own place in the queue, unless it has the lock or the lock is gone.
func (l *Lock) ready(what string) error {
	switch {
	case l.freed:
		return l.failed(what, "it was freed")
	case l.w.ended:
		return l.failed(what, "the world has ended")
	case atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0:
		return l.failed(what, "the thread holds it already")
	}
	atomic.StoreUint64(l.w.word(l.place+nextWord), 0)
	atomic.StoreUint64(l.w.word(l.place+waitWord), 1)
	return nil
}

// Lock is upc_lock: it returns when the thread has the lock. What other threads did while they had it
// is seen from then on.
func (l *Lock) Lock() error {
	if err := l.ready("locking"); err != nil {
		return err
	}
	me := uint64(l.w.thread) + 1
	before, err := l.w.memory.Swap64(l.at(l.home, tailWord), me)
	if err != nil {
		return err
	}
	if before == closed {
		if _, err := l.w.memory.Swap64(l.at(l.home, tailWord), closed); err != nil {
			return err
		}
		return l.failed("locking", "it was freed")
	}
	atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
	if before != 0 {
		if _, err := l.w.memory.Swap64(l.at(int(before-1), nextWord), me); err != nil {
			return err
		}
		wait(l.w.word(l.place+waitWord), func(v uint64) bool { return v == 0 })
	}
	return l.w.Fence()
}

// Attempt is upc_lock_attempt: it takes the lock if nobody has it, and says whether.
func (l *Lock) Attempt() (bool, error) {
	if err := l.ready("trying"); err != nil {
		return false, err
	}
	before, err := l.w.memory.CompareAndSwap64(l.at(l.home, tailWord), 0, uint64(l.w.thread)+1)
	if err == nil && before == closed {
		err = l.failed("trying", "it was freed")
	}
	if err != nil || before != 0 {
		return false, err
	}
	atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
	return true, l.w.Fence()
}

// Unlock is upc_unlock. Only the thread that has the lock may give it up.
func (l *Lock) Unlock() error {
	used := l.w.word(l.place + usedWord)
	if l.w.ended || atomic.LoadUint64(used) == 0 {
		return l.failed("unlocking", "the thread does not hold it")
	}
	if err := l.w.Fence(); err != nil {
		return err
	}
	me := uint64(l.w.thread) + 1
	next := l.w.word(l.place + nextWord)
	if atomic.LoadUint64(next) == 0 {
		before, err := l.w.memory.CompareAndSwap64(l.at(l.home, tailWord), me, 0)
		if err != nil {
			return err
		}
		if before == me {
			atomic.StoreUint64(used, 0)
			return nil
		}
	}
	// Somebody came: who, is about to be written.
	thread := wait(next, func(v uint64) bool { return v != 0 }) - 1
	atomic.StoreUint64(used, 0)
	_, err := l.w.memory.Swap64(l.at(int(thread), waitWord), 0)
	return err
}

// Waiting is the thread that came last of those that hold the lock or wait for it; -1: it is free. It may
// have changed when it is told.
func (l *Lock) Waiting() (thread int, err error) {
	if l.freed || l.w.ended {
		return -1, l.failed("asking for", "it was freed, or the world has ended")
	}
	last, err := l.w.memory.Get64(l.at(l.home, tailWord))
	if last == closed {
		return -1, l.failed("asking for", "it was freed")
	}
	return int(last) - 1, err
}

// Ref is the lock in a form that can be handed on.
func (l *Lock) Ref() LockRef { return LockRef{l.place, int64(l.home)} }

// OpenLock is the lock that another thread allocated.
func (w *World) OpenLock(r LockRef) (*Lock, error) {
	if err := w.allocated("opening a lock", 0, r.Place); err != nil {
		return nil, err
	}
	if r.Home < 0 || r.Home >= int64(w.threads) {
		return nil, errors.Errorf("thread %d: opening a lock of thread %d, where there are %d", w.thread, r.Home, w.threads)
	}
	return w.lockAt(r.Place, int(r.Home), "the lock"), nil
}

// GlobalLockAlloc is upc_global_lock_alloc: a lock of the calling thread, which hands it on with Ref.
func (w *World) GlobalLockAlloc() (*Lock, error) {
	place, err := w.allocateSpread(lockBytes)
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: allocating a lock", w.thread)
	}
	for t := range w.threads {
		for _, word := range []uint64{tailWord, nextWord, waitWord, usedWord} {
			if err := w.memory.Put64(w.address(t, place+word), 0); err != nil {
				return nil, err
			}
		}
	}
	return w.lockAt(place, w.thread, "the lock"), w.Fence()
}

// AllLockAlloc is upc_all_lock_alloc: a lock that all threads get. Collective.
func (w *World) AllLockAlloc() (*Lock, error) {
	if err := w.usable("allocating a lock"); err != nil {
		return nil, err
	}
	var made *Lock
	ref := []int64{0}
	var err error
	if w.thread == 0 {
		if made, err = w.GlobalLockAlloc(); err == nil {
			ref[0] = int64(made.place)
		}
	}
	if err := w.agree("allocating a lock", err); err != nil {
		return nil, err
	}
	if err := mpi.Bcast(w.comm, ref, 0); err != nil {
		return nil, err
	}
	return w.lockAt(uint64(ref[0]), 0, "the lock"), nil
}

// Free is upc_lock_free: one thread frees the lock for all. Nobody may hold it or wait for it.
func (l *Lock) Free() error {
	if l.freed {
		return l.failed("freeing", "it was freed before")
	}
	if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
		return l.failed("freeing", "the thread holds it")
	}
	before, err := l.w.memory.CompareAndSwap64(l.at(l.home, tailWord), 0, closed)
	if err != nil {
		return err
	}
	if before == closed {
		return l.failed("freeing", "it was freed before")
	}
	if before != 0 {
		return l.failed("freeing", "a thread holds it")
	}
	l.freed = true
	return l.w.release(0, l.place)
}

// AllFree is upc_all_lock_free: the same, called by all threads. Collective.
func (l *Lock) AllFree() error {
	if err := l.w.same("freeing a lock", l.place); err != nil {
		return err
	}
	if err := l.w.comm.Barrier(); err != nil {
		return err
	}
	var err error
	if l.w.thread == l.home {
		err = l.Free()
	}
	if err = l.w.agree("freeing a lock", err); err == nil {
		l.freed = true
	}
	return err
}
