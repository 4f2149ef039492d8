package shared

import (
	"github.com/pkg/errors"

	"evenkeel/pgas/shared/heap"
)

// booksOf finds the books of a place, and the lock over them.
func (w *World) booksOf(thread int, place uint64) (books, *Lock) {
	if place < w.half {
		return books{w, 0, heapBegin}, w.spread
	}
	return books{w, thread, w.half + heapBegin}, w.own[thread]
}

// allocateSpread takes so many bytes at the same place of every thread.
func (w *World) allocateSpread(bytes uint64) (uint64, error) { return w.take(0, 0, bytes) }

// allocateOwn takes bytes of one thread.
func (w *World) allocateOwn(thread int, bytes uint64) (uint64, error) {
	return w.take(thread, w.half, bytes)
}

func (w *World) take(thread int, half, bytes uint64) (uint64, error) {
	if w.ended {
		return 0, errors.New("the world has ended")
	}
	b, lock := w.booksOf(thread, half)
	if err := lock.Lock(); err != nil {
		return 0, err
	}
	offset, err := heap.Allocate(b, bytes)
	if unlocked := lock.Unlock(); err == nil {
		err = unlocked
	}
	return b.base + offset, err
}

// release gives back what was taken, on whichever thread.
func (w *World) release(thread int, place uint64) error {
	b, lock := w.booksOf(thread, place)
	if err := lock.Lock(); err != nil {
		return err
	}
	err := heap.Free(b, place-b.base)
	if unlocked := lock.Unlock(); err == nil {
		err = unlocked
	}
	return err
}

// allocated says with an error that nothing is allocated at a place.
func (w *World) allocated(what string, thread int, place uint64) error {
	b, _ := w.booksOf(thread, place)
	used := false
	var err error
	if place >= b.base && place < 2*w.half {
		used, err = heap.InUse(b, place-b.base)
	}
	if err == nil && !used {
		err = errors.Errorf("thread %d: %s: nothing is allocated at offset %d", w.thread, what, place)
	}
	return err
}
