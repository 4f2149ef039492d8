package shared

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi/own"
	"evenkeel/pgas/gsm"
	"evenkeel/pgas/shared/heap"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
	"evenkeel/runtime/fabric"
)

// Lock is upc_lock_t. Threads that wait stand in a queue and get it in that order; each waits for a word
// of its own memory, which the one before it writes, so that waiting loads neither network nor memory of
// others. (J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on
// shared-memory multiprocessors, ACM TOCS 1991.)
//
// A lock has a part at the same place on every thread: the end of the queue, which counts on the home
// thread only, and that thread's place in the queue.
//
// Where a thread dies that holds a lock, or waits for it, and the job goes on without it, nobody hands the lock on. Then all
// who wait for it or come to it get [ErrLost]: on the thread's node half a second after its death at most, if they have a
// processor, on another one when it has been silent for EVENKEEL_GSM_SILENCE. The lock stays lost, and can't be freed. The
// same goes for what allocates, frees or resizes, where a thread dies in that. Who waits looks four times a second whether
// the thread in front of it lives; each tells the one behind it, and the last one whoever comes later, by the end of the
// queue.
//
// A lock can be freed only while nobody has it. So who stands in the queue needs no directory any more.
type Lock struct {
	w      *World
	door   *gsm.Window // that commands go through
	place  uint64
	home   int
	what   string // it is, of a lock over the heap
	handle Ref    // 0: of that, which is no object
	line   *directory.Line
	gone   string // why this thread has it no longer
	tries  watch  // of Attempt while somebody had it
}

// ErrLost is that a lock is lost, because a thread died that held it or waited for it.
var ErrLost = errors.New("nobody gets the lock any more; end the job, and find out why that thread ended")

// Words of a lock's part.
const (
	tailWord = 0              // on the home thread: 0 if the lock is free, else who came last, and one
	nextWord = heap.Unit      // of a thread's place: who comes next, and one
	waitWord = heap.Unit + 8  // 1 while the thread waits; or that the lock is lost
	usedWord = heap.Unit + 16 // 1 while the thread holds the lock, or waits for it; or that the lock is lost
)

// closed is the end of the queue of a lock that was freed.
const closed = ^uint64(0)

// lost is a lock that is lost: with this bit, in the end of the queue and in any word of a thread's place, stands the thread
// that died, and one.
const lost = uint64(1) << 63

func (l *Lock) at(thread int, word uint64) gsm.Address { return l.w.address(thread, l.place+word) }

func (l *Lock) failed(what, why string) error {
	return errors.Errorf("thread %d: %s %s: %s", l.w.thread, what, l.name(), why)
}

// lostBy is the error of a lock that is lost.
func (l *Lock) lostBy(what string, why uint64) error {
	return errors.WithMessagef(ErrLost, "thread %d: %s %s: thread %d died, or can't be reached, while it held the lock or waited for it",
		l.w.thread, what, l.name(), why&^lost-1)
}

func (l *Lock) name() string {
	if l.handle == 0 {
		return fmt.Sprintf("%s of thread %d", l.what, l.home)
	}
	return l.handle.String()
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

// unused says why the thread's place in the queue is not free.
func (l *Lock) unused(what, held string) error {
	switch used := atomic.LoadUint64(l.w.word(l.place + usedWord)); {
	case used&lost != 0:
		return l.lostBy(what, used)
	case used != 0:
		return l.failed(what, held)
	}
	return nil
}

// ended says why a lock with that end of its queue can't be taken, now or later.
func (l *Lock) ended(what string, tail uint64) error {
	switch {
	case tail == closed:
		return l.failed(what, wasFreed)
	case tail&lost != 0:
		return l.lostBy(what, tail)
	}
	return nil
}

// lives says whether a thread lives, as far as is known: on another node, whether it answers.
func (l *Lock) lives(thread int) bool {
	if l.w.job.SameNode(fabric.Task(thread)) {
		return l.w.job.Lives(fabric.Task(thread))
	}
	_, err := l.door.Get64(l.at(thread, usedWord))
	return err == nil
}

// watch says when it is time to look who lives. It reads the clock seldom.
type watch struct {
	asked uint32
	at    time.Time
}

func (w *watch) due() bool {
	const period = 250 * time.Millisecond
	if w.asked++; w.asked%64 != 0 {
		return false
	}
	now, then := time.Now(), w.at
	if now.Before(then) {
		return false
	}
	w.at = now.Add(period)
	return !then.IsZero()
}

// giveUp leaves the queue of a lock that is lost. Who stands behind this thread hears it, also if it is only about to say
// that it does.
func (l *Lock) giveUp(what string, why uint64) error {
	if next := atomic.SwapUint64(l.w.word(l.place+nextWord), why); next != 0 {
		l.door.Swap64(l.at(int(next-1), waitWord), why)
	} else {
		l.door.CompareAndSwap64(l.at(l.home, tailWord), uint64(l.w.thread)+1, why)
	}
	atomic.StoreUint64(l.w.word(l.place+usedWord), why)
	return l.lostBy(what, why)
}

// prepare makes the thread's own place in the queue, unless it has the lock.
func (l *Lock) prepare(what string) error {
	if atomic.LoadUint64(l.w.word(l.place+usedWord)) != 0 {
		return l.unused(what, "the thread holds it already")
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
			if why := l.standBehind(before); why != 0 {
				return l.giveUp(what, why)
			}
		}
		return nil
	})
	if err == nil && before != 0 {
		err = l.wait(what, int(before-1))
	}
	if err != nil {
		return err
	}
	return l.door.Fence()
}

// standBehind tells the thread before this one in the queue. It returns 0, or that the lock is lost: that one gave up, or
// can't be told.
func (l *Lock) standBehind(before uint64) uint64 {
	if before&lost != 0 {
		return before
	}
	why, err := l.door.Swap64(l.at(int(before-1), nextWord), uint64(l.w.thread)+1)
	if err != nil {
		return lost | before
	}
	return why
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
	var look watch
	for {
		v := wait(l.w.word(l.place+waitWord), func(v uint64) bool { return v != 1 || !l.current() || look.due() })
		if err := l.renew(what); err != nil {
			return err
		}
		if v == 1 && !l.lives(before) { // it may have handed the lock on before
			if v = atomic.LoadUint64(l.w.word(l.place + waitWord)); v == 1 {
				v = lost | (uint64(before) + 1)
			}
		}
		switch {
		case v == 0:
			return nil
		case v != 1:
			return l.giveUp(what, v)
		}
	}
}

// Attempt is upc_lock_attempt: it takes the lock if nobody has it, and says whether. Who tries again and again is told that
// the lock is lost, if the thread died that came to it last.
func (l *Lock) Attempt() (bool, error) {
	const what = "trying"
	before := uint64(0)
	err := l.use(what, func() (err error) {
		if err = l.prepare(what); err != nil {
			return err
		}
		before, err = l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, uint64(l.w.thread)+1)
		if err == nil {
			err = l.ended(what, before)
		}
		if err == nil && before == 0 {
			atomic.StoreUint64(l.w.word(l.place+usedWord), 1)
		}
		return err
	})
	if err == nil && before != 0 && l.tries.due() && !l.lives(int(before-1)) { // who tries again and again hears it too
		err = l.lostBy(what, lost|before)
	}
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
		switch v := atomic.LoadUint64(used); {
		case v == 0:
			return l.failed(what, "the thread does not hold it")
		case v != 1:
			return l.lostBy(what, v)
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
	var look watch
	thread := uint64(0)
	for thread == 0 {
		if thread = wait(next, func(v uint64) bool { return v != 0 || look.due() }); thread == 0 {
			if why := l.lostBehind(); why != 0 {
				return l.giveUp(what, why)
			}
		}
	}
	atomic.StoreUint64(used, 0)
	if _, err = l.door.Swap64(l.at(int(thread-1), waitWord), 0); err != nil {
		return l.giveUp(what, lost|thread)
	}
	return nil
}

// lostBehind is asked when somebody has come behind this thread, and has not yet said who. It returns 0, or that the lock is
// lost, as the end of the queue says, or as nobody who died there will say any more.
func (l *Lock) lostBehind() uint64 {
	last, err := l.door.Get64(l.at(l.home, tailWord))
	switch {
	case err != nil:
		return lost | (uint64(l.home) + 1)
	case last&lost != 0:
		return last
	case l.lives(int(last - 1)):
		return 0
	}
	return lost | last
}

// Waiting is the thread that came last of those that hold the lock or wait for it; -1: it is free. It may
// have changed when it is told.
func (l *Lock) Waiting() (thread int, err error) {
	const what = "asking for"
	last := uint64(0)
	err = l.use(what, func() (err error) {
		if last, err = l.door.Get64(l.at(l.home, tailWord)); err != nil {
			return err
		}
		return l.ended(what, last)
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
	return &Lock{w: w, door: w.memory.Window, place: line.Address, home: int(r.Home()), handle: r, line: line}, nil
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
		err := l.unused(what, "the thread holds it")
		if err != nil {
			return err
		}
		before, err := l.door.CompareAndSwap64(l.at(l.home, tailWord), 0, closed)
		if err == nil {
			err = l.ended(what, before)
		}
		if err == nil && before != 0 {
			err = l.failed(what, "a thread holds it")
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
	err := l.use(what, func() error { return l.unused(what, "the thread holds it") })
	if err == nil {
		l.w.directory.Forget(l.handle)
		l.gone = "it was closed before"
	}
	return err
}

// AllFree is upc_all_lock_free: the same, called by all threads. Collective.
func (l *Lock) AllFree() error {
	const what = "freeing"
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
