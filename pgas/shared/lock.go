package shared

import (
	"sync/atomic"

	"github.com/pkg/errors"

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
	freed  bool
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
	return errors.Errorf("thread %d: %s %s of thread %d: %s", l.w.thread, what, l.what, l.home, why)
}

// over says that the world has ended, of a lock of the program: those over the heap are taken until all memory
// is given back.
func (l *Lock) over() bool { return l.handle != 0 && l.w.ended }

// ready makes the thread's own place in the queue, unless it has the lock or the lock is gone.
func (l *Lock) ready(what string) error {
	switch {
	case l.over():
		return l.failed(what, "the world has ended")
	case l.freed, l.handle != 0 && !l.line.Current(l.handle):
		return l.failed(what, "it was freed")
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
	before, err := l.reach("locking", func() (uint64, error) { return l.door.Swap64(l.at(l.home, tailWord), me) })
	if err != nil {
		return err
	}
	if before == closed {
		if _, err := l.door.Swap64(l.at(l.home, tailWord), closed); err != nil {
			return err
		}
		return l.failed("locking", "it was freed")
	}
	atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
	if before != 0 {
		if _, err := l.door.Swap64(l.at(int(before-1), nextWord), me); err != nil {
			return err
		}
		wait(l.w.word(l.place+waitWord), func(v uint64) bool { return v == 0 })
	}
	return l.door.Fence()
}

// reach reads or changes the end of the queue, whose memory is the lock's meanwhile.
func (l *Lock) reach(what string, f func() (uint64, error)) (uint64, error) {
	if l.handle == 0 {
		return f()
	}
	l.w.reader.Enter()
	defer l.w.reader.Exit()
	if !l.line.Current(l.handle) {
		return 0, l.failed(what, "it was freed")
	}
	return f()
}

// Attempt is upc_lock_attempt: it takes the lock if nobody has it, and says whether.
func (l *Lock) Attempt() (bool, error) {
	if err := l.ready("trying"); err != nil {
		return false, err
	}
	before, err := l.reach("trying", func() (uint64, error) {
		return l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, uint64(l.w.thread)+1)
	})
	if err == nil && before == closed {
		err = l.failed("trying", "it was freed")
	}
	if err != nil || before != 0 {
		return false, err
	}
	atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
	return true, l.door.Fence()
}

// Unlock is upc_unlock. Only the thread that has the lock may give it up.
func (l *Lock) Unlock() error {
	used := l.w.word(l.place + usedWord)
	if l.over() || atomic.LoadUint64(used) == 0 {
		return l.failed("unlocking", "the thread does not hold it")
	}
	if err := l.door.Fence(); err != nil {
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
	_, err := l.door.Swap64(l.at(int(thread), waitWord), 0)
	return err
}

// Waiting is the thread that came last of those that hold the lock or wait for it; -1: it is free. It may
// have changed when it is told.
func (l *Lock) Waiting() (thread int, err error) {
	if l.freed || l.w.ended {
		return -1, l.failed("asking for", "it was freed, or the world has ended")
	}
	last, err := l.reach("asking for", func() (uint64, error) { return l.door.Get64(l.at(l.home, tailWord)) })
	if last == closed {
		return -1, l.failed("asking for", "it was freed")
	}
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
	line, err := w.directory.Find(forever, r)
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
	r, err := w.allocateAll(what, lockSpec(0), w.lockMemory)
	if err != nil {
		return nil, err
	}
	return w.OpenLock(r)
}

// Free is upc_lock_free: one thread frees the lock for all. Nobody may hold it or wait for it.
func (l *Lock) Free() error {
	if l.freed {
		return l.failed("freeing", "it was freed before")
	}
	if !l.line.Current(l.handle) {
		return l.failed("freeing", "it was freed before, by another thread")
	}
	if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
		return l.failed("freeing", "the thread holds it")
	}
	before, err := l.reach("freeing", func() (uint64, error) {
		return l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, closed)
	})
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
	return l.w.discard(l.handle, l.place)
}

// AllFree is upc_all_lock_free: the same, called by all threads. Collective.
func (l *Lock) AllFree() error {
	const what = "freeing the lock"
	if err := l.w.same(what, object("the lock", l.handle)); err != nil {
		return err
	}
	var err error
	if l.w.thread == l.home {
		err = l.Free()
	}
	if err = l.w.agree(what, l.handle, err); err == nil {
		l.freed = true
	}
	return err
}
