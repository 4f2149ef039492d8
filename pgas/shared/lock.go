package shared

import (
	"sync/atomic"

	"github.com/pkg/errors"

	"evenkeel/mpi/own"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared/heap"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
)

// Lock is upc_lock_t. Threads that wait stand in a queue and get it in that order; each waits for a word
// of its own memory, which the one before it writes, so that waiting loads neither network nor memory of
// others. (J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on
// shared-memory multiprocessors, ACM TOCS 1991.)
//
// A lock has a part at the same place on every thread: the end of the queue, which counts on the home
// thread only, and that thread's place in the queue.
//
// A lock can be freed only while nobody has it. So who stands in the queue needs no directory any more.
type Lock struct {
	w      *World
	door   *gsm.Window // that commands go through
	place  uint64
	home   int
	what   string
	handle Ref // 0: of a lock over the heap, which is no object
	line   *directory.Line
	gone   string // why this thread has it no longer
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

func (l *Lock) at(thread int, word uint64) gsm.Address { return l.w.address(thread, l.place+word) }

func (l *Lock) failed(what, why string) error {
	return errors.Errorf("thread %d: %s %s of thread %d, %s: %s", l.w.thread, what, l.what, l.home, l.handle, why)
}

// over says that the world has ended, of a lock of the program: those over the heap are taken until all memory
// is given back.
func (l *Lock) over() bool { return l.handle != 0 && l.w.ended }

// current says whether the lock is as this thread knows it. Those over the heap are no objects, and stay.
func (l *Lock) current() bool { return l.handle == 0 || l.line.Current(l.handle) }

// renew finds out how the lock is now, if what is known of it is out of date. The error says that it is gone.
func (l *Lock) renew(what string) error {
	if l.over() {
		return l.failed(what, "the world has ended")
	}
	if l.gone != "" {
		return l.failed(what, l.gone)
	}
	if l.current() {
		return nil
	}
	line, err := l.w.find(l.handle)
	if err != nil {
		return l.failed(what, err.Error())
	}
	l.line = line
	return nil
}

// use calls f, which reads or changes the queue, while its memory is the lock's.
func (l *Lock) use(what string, f func() error) error {
	for {
		if err := l.renew(what); err != nil {
			return err
		}
		if l.handle == 0 {
			return f()
		}
		l.w.reader.Enter()
		if l.current() {
			err := f()
			l.w.reader.Exit()
			return err
		}
		l.w.reader.Exit()
	}
}

// prepare makes the thread's own place in the queue, unless it has the lock.
func (l *Lock) prepare(what string) error {
	if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
		return l.failed(what, "the thread holds it already")
	}
	atomic.StoreUint64(l.w.word(l.place+nextWord), 0)
	atomic.StoreUint64(l.w.word(l.place+waitWord), 1)
	return nil
}

// What a wait for a lock is recorded as: one of the program, and one over the heap.
var (
	lockCall  = own.Named("shared.Lock.Lock")
	allocCall = own.Named("shared.Alloc")
)

// Lock is upc_lock: it returns when the thread has the lock. What other threads did while they had it
// is seen from then on.
func (l *Lock) Lock() error {
	const what = "locking"
	before, me := uint64(0), uint64(l.w.thread)+1
	err := l.use(what, func() (err error) {
		if err = l.prepare(what); err != nil {
			return err
		}
		if before, err = l.door.Swap64(l.at(l.home, tailWord), me); err != nil {
			return err
		}
		if before == closed { // those who have come behind this thread meanwhile hear that it was freed
			if _, err = l.door.Swap64(l.at(l.home, tailWord), closed); err != nil {
				return err
			}
			return l.failed(what, wasFreed)
		}
		atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
		if before != 0 {
			_, err = l.door.Swap64(l.at(int(before-1), nextWord), me)
		}
		return err
	})
	if err == nil && before != 0 {
		err = l.wait(what, int(before-1))
	}
	if err != nil {
		return err
	}
	return l.door.Fence()
}

// wait waits for the thread's turn. A lock in whose queue somebody stands is not freed; but who came behind one that found
// it freed stands in no queue, and its place may be other memory by now. The thread `before` in the queue has the lock, or
// gets it first.
func (l *Lock) wait(what string, before int) error {
	by := lockCall
	if l.handle == 0 {
		by = allocCall
	}
	defer by.Begin(l.w.comm, before).End()
	for {
		v := wait(l.w.word(l.place+waitWord), func(v uint64) bool { return v == 0 || !l.current() })
		if err := l.renew(what); err != nil {
			return err
		}
		if v == 0 {
			return nil
		}
	}
}

// Attempt is upc_lock_attempt: it takes the lock if nobody has it, and says whether.
func (l *Lock) Attempt() (bool, error) {
	const what = "trying"
	before := uint64(0)
	err := l.use(what, func() (err error) {
		if err = l.prepare(what); err != nil {
			return err
		}
		before, err = l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, uint64(l.w.thread)+1)
		switch {
		case err == nil && before == closed:
			return l.failed(what, wasFreed)
		case err == nil && before == 0:
			atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
		}
		return err
	})
	if err != nil || before != 0 {
		return false, err
	}
	return true, l.door.Fence()
}

// Unlock is upc_unlock. Only the thread that has the lock may give it up.
func (l *Lock) Unlock() error {
	const what = "unlocking"
	used := l.w.word(l.place + usedWord)
	err := l.use(what, func() error {
		if atomic.LoadUint64(used) == 0 {
			return l.failed(what, "the thread does not hold it")
		}
		return nil
	})
	if err == nil {
		err = l.door.Fence()
	}
	if err != nil {
		return err
	}
	me := uint64(l.w.thread) + 1
	next := l.w.word(l.place + nextWord)
	if atomic.LoadUint64(next) == 0 {
		before, err := l.door.CompareAndSwap64(l.at(l.home, tailWord), me, 0)
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
	_, err = l.door.Swap64(l.at(int(thread), waitWord), 0)
	return err
}

// Waiting is the thread that came last of those that hold the lock or wait for it; -1: it is free. It may
// have changed when it is told.
func (l *Lock) Waiting() (thread int, err error) {
	const what = "asking for"
	last := uint64(0)
	err = l.use(what, func() (err error) {
		last, err = l.door.Get64(l.at(l.home, tailWord))
		if last == closed {
			return l.failed(what, wasFreed)
		}
		return err
	})
	return int(last) - 1, err
}

// Ref names the lock for others.
func (l *Lock) Ref() Ref { return l.handle }

// lockOf is the lock of an entry.
func (w *World) lockOf(what string, r Ref, line *directory.Line) (*Lock, error) {
	if line.Kind != svd.Lock {
		return nil, errors.Errorf("thread %d: %s: %s is no lock, but of kind %s", w.thread, what, r, line.Kind)
	}
	return &Lock{w: w, door: w.memory.Window, place: line.Address, home: int(r.Home()), what: "the lock", handle: r, line: line}, nil
}

// OpenLock is the lock that another thread allocated.
func (w *World) OpenLock(r Ref) (*Lock, error) {
	const what = "opening a lock"
	if w.ended {
		return nil, errors.Errorf("thread %d: %s: the world has ended", w.thread, what)
	}
	line, err := w.find(r)
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: %s", w.thread, what)
	}
	return w.lockOf(what, r, line)
}

// lockSpec is a lock's entry.
func lockSpec(place uint64) svd.Spec {
	return svd.Spec{Address: place, Size: lockBytes, Blocking: 1, Elements: 1, Element: lockBytes, Kind: svd.Lock}
}

// lockMemory takes the memory of a lock, which is free then.
func (w *World) lockMemory() (uint64, error) {
	place, err := w.allocateSpread(lockBytes)
	if err == nil {
		err = w.clear(place, tailWord, nextWord, waitWord, usedWord)
	}
	return place, err
}

// GlobalLockAlloc is upc_global_lock_alloc: a lock of the calling thread, which hands it on with Ref.
func (w *World) GlobalLockAlloc() (*Lock, error) {
	const what = "allocating a lock"
	place, err := w.lockMemory()
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: %s", w.thread, what)
	}
	r, err := w.directory.Allocate(lockSpec(place))
	if err != nil {
		return nil, errors.WithMessagef(err, "thread %d: %s", w.thread, what)
	}
	return w.lockOf(what, r, w.directory.Lookup(r))
}

// AllLockAlloc is upc_all_lock_alloc: a lock that all threads get. Collective.
func (w *World) AllLockAlloc() (*Lock, error) {
	const what = "allocating a lock"
	r, err := w.allocateAll(allLockAllocCall, what, lockSpec(0), w.lockMemory)
	if err != nil {
		return nil, err
	}
	return w.OpenLock(r)
}

// Free is upc_lock_free: one thread frees the lock for all. Nobody may hold it or wait for it.
func (l *Lock) Free() error {
	const what = "freeing"
	err := l.use(what, func() error {
		if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
			return l.failed(what, "the thread holds it")
		}
		before, err := l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, closed)
		switch {
		case err == nil && before == closed:
			return l.failed(what, wasFreed)
		case err == nil && before != 0:
			return l.failed(what, "a thread holds it")
		}
		return err
	})
	if err != nil {
		return err
	}
	l.gone = wasFreed
	return l.w.discard(l.handle, l.place)
}

// Close has the thread, which does not hold the lock, let go of it without freeing it, as Array.Close does.
func (l *Lock) Close() error {
	const what = "closing"
	err := l.use(what, func() error {
		if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
			return l.failed(what, "the thread holds it")
		}
		return nil
	})
	if err == nil {
		l.w.directory.Forget(l.handle)
		l.gone = "it was closed before"
	}
	return err
}

// AllFree is upc_all_lock_free: the same, called by all threads. Collective.
func (l *Lock) AllFree() error {
	const what = "freeing the lock"
	defer allLockFreeCall.Begin(l.w.comm, own.Nobody).End()
	if err := l.w.same(what, object("the lock", l.handle)); err != nil {
		return err
	}
	var err error
	if l.w.thread == l.home {
		err = l.Free()
	}
	if err = l.w.agree(what, l.handle, err); err == nil {
		l.gone = wasFreed
	}
	return err
}
