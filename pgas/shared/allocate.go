package shared

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi/own"
	"evenkeel/pgas/shared/heap"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
)

// The path of an object's memory: whoever allocates takes it from the heap, under a lock over the books, and
// enters the object in the directory. Whoever frees the object promises the books a part more, and frees the
// entry; when nobody can reach the memory any more the directory tells the object's home, which gives it back.
// Who finds the heap full meanwhile waits for what is promised.

// booksOf finds the books of a place, and the lock over them.
func (w *World) booksOf(thread int, place uint64) (books, *Lock) {
	if place < w.half {
		return books{w, 0, heapBegin}, w.spread
	}
	return books{w, thread, w.half + heapBegin}, w.own[thread]
}

// underLock calls f with the books of a place.
func (w *World) underLock(thread int, place uint64, f func(books) error) error {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	b, lock := w.booksOf(thread, place)
	if err := lock.Lock(); err != nil {
		return err
	}
	err := f(b)
	if unlocked := lock.Unlock(); err == nil {
		err = unlocked
	}
	return err
}

// allocateSpread takes so many bytes at the same place of every thread.
func (w *World) allocateSpread(bytes uint64) (uint64, error) { return w.take(0, 0, bytes) }

// allocateOwn takes bytes of the calling thread.
func (w *World) allocateOwn(bytes uint64) (uint64, error) { return w.take(w.thread, w.half, bytes) }

// take takes memory, of what is promised too.
func (w *World) take(thread int, half, bytes uint64) (place uint64, err error) {
	if w.ended {
		return 0, errors.New("the world has ended")
	}
	const longest, look = 5 * time.Second, 50 * time.Microsecond
	var waiting own.Call
	defer func() { waiting.End() }()
	for begin := time.Now(); ; time.Sleep(look) {
		promised := uint64(0)
		err = w.underLock(thread, half, func(b books) (err error) {
			var offset uint64
			if promised, err = b.Load(heap.Promised); err != nil {
				return err
			}
			offset, err = heap.Allocate(b, bytes)
			place = b.base + offset
			return err
		})
		if !errors.Is(err, heap.ErrFull) || promised == 0 {
			return place, err
		}
		if time.Since(begin) > longest {
			return 0, errors.WithMessagef(err, "after %v in which %d objects that were freed were still in use", longest, promised)
		}
		if !waiting {
			waiting = reclaimCall.Begin(w.comm, own.Nobody)
		}
	}
}

// release gives back what was taken, on whichever thread.
func (w *World) release(thread int, place uint64) error {
	return w.underLock(thread, place, func(b books) error { return heap.Free(b, place-b.base) })
}

// promise has those who allocate wait for the memory at a place, or, with -1, no longer.
func (w *World) promise(thread int, place uint64, parts int64) error {
	b, _ := w.booksOf(thread, place)
	return w.memory.Add64(w.address(b.thread, b.base+heap.Promised), uint64(parts))
}

// released is told by the directory of memory that nobody can reach any more. What is cut off an object stays with
// it, for it to grow again.
func (w *World) released(r svd.Range) {
	if r.Tail || int(r.Handle.Home()) != w.thread {
		return
	}
	w.starts.Lock()
	defer w.starts.Unlock()
	if w.over { // all memory goes at once
		return
	}
	w.giving.Go(func() {
		// Without memory, or without the network, nobody asks for it any more.
		_ = w.release(w.thread, r.Address)
		w.keeping.Lock()
		defer w.keeping.Unlock()
		b, _ := w.booksOf(w.thread, r.Address)
		_ = w.door.Add64(w.address(b.thread, b.base+heap.Promised), ^uint64(0))
	})
}

// copy copies the thread's part of an object that moves.
func (w *World) copy(c svd.Copy) { copy(w.local[c.To:c.To+c.Size], w.local[c.From:c.From+c.Size]) }

// copySpread copies the parts of all threads, for an object of this thread.
func (w *World) copySpread(to, from, bytes uint64) error {
	buffer := make([]byte, min(bytes, 1<<16))
	for t := range w.threads {
		for done := uint64(0); done < bytes; done += uint64(len(buffer)) {
			some := buffer[:min(bytes-done, uint64(len(buffer)))]
			if err := w.memory.Get(w.address(t, from+done), some); err != nil {
				return err
			}
			if err := w.memory.Put(w.address(t, to+done), some); err != nil {
				return err
			}
		}
	}
	return nil
}

// discard frees an object for all.
func (w *World) discard(r Ref, place uint64) error {
	home := int(r.Home())
	if err := w.promise(home, place, 1); err != nil {
		return err
	}
	freeing := freeCall.Begin(w.comm, home)
	err := w.directory.Free(forever, r)
	freeing.End()
	if err != nil {
		if kept := w.promise(home, place, -1); kept != nil {
			return kept
		}
	}
	return err
}

// What a wait for the directory is recorded as: for an object's home to say how it is, or to free it; for users to hear of a
// new size, or to let go of the old place; for their letting go of memory that is wanted.
var (
	openCall    = own.Named("shared.Open")
	freeCall    = own.Named("shared.Free")
	resizeCall  = own.Named("shared.Resize")
	reclaimCall = own.Named("shared.Reclaim")
)

// find looks an object up, and asks its home if it is not known here.
func (w *World) find(r Ref) (*directory.Line, error) {
	if line := w.directory.Lookup(r); line != nil {
		return line, nil
	}
	defer openCall.Begin(w.comm, int(r.Home())).End()
	return w.directory.Find(forever, r)
}

// What is recorded of those who allocate and free together.
var (
	allAllocCall     = own.Named("shared.AllAlloc")
	allFreeCall      = own.Named("shared.Array.AllFree")
	allResizeCall    = own.Named("shared.Array.AllResize")
	allLockAllocCall = own.Named("shared.World.AllLockAlloc")
	allLockFreeCall  = own.Named("shared.Lock.AllFree")
)

// allocateAll enters an object together with all threads, of which thread 0 takes the memory.
func (w *World) allocateAll(by own.Function, what string, s svd.Spec, take func() (uint64, error)) (Ref, error) {
	if err := w.usable(what); err != nil {
		return 0, err
	}
	defer by.Begin(w.comm, own.Nobody).End()
	var taken error
	if w.thread == 0 {
		if s.Address, taken = take(); taken != nil {
			s.Address = svd.NoAddress
		}
	}
	r, err := w.directory.AllocateAll(forever, s)
	if err == nil {
		return r, nil
	}
	if w.thread == 0 && taken == nil {
		if kept := w.release(0, s.Address); kept != nil {
			return 0, kept
		}
	}
	return 0, errors.WithMessagef(failure(taken, err), "thread %d: %s of %d elements of %d bytes", w.thread, what, s.Elements, s.Element)
}

// resize gives an object of this thread another size: where it is, if there is room, or elsewhere.
func (w *World) resize(r Ref, place, bytes, elements uint64) error {
	thread := int(r.Home())
	room := uint64(0)
	err := w.underLock(thread, place, func(b books) (err error) {
		room, err = heap.Room(b, place-b.base)
		return err
	})
	if err != nil {
		return err
	}
	if bytes <= room {
		if err := w.directory.Resize(r, bytes, elements); err != nil {
			return err
		}
		defer resizeCall.Begin(w.comm, own.Nobody).End()
		w.directory.Heard(r)
		return nil
	}
	half := uint64(0)
	if place >= w.half {
		half = w.half
	}
	to, err := w.take(thread, half, bytes)
	if err != nil {
		return err
	}
	if err := w.promise(thread, place, 1); err != nil {
		return err
	}
	var copied error
	defer resizeCall.Begin(w.comm, own.Nobody).End()
	err = w.directory.Move(r, func(before svd.Entry) (_, _, _ uint64) {
		switch {
		case r.Partition() == svd.All: // each thread copies its own part
		case half > 0:
			copy(w.local[to:to+bytes], w.local[place:place+min(before.Size, bytes)])
		default:
			copied = w.copySpread(to, place, min(before.Size, bytes))
		}
		return to, bytes, elements
	})
	if err != nil { // it was freed meanwhile
		if kept := w.promise(thread, place, -1); kept != nil {
			return kept
		}
		if r.Partition() != svd.All {
			if kept := w.release(thread, to); kept != nil {
				return kept
			}
		}
	}
	return failure(err, copied)
}

// clear zeroes words at the same place of every thread.
func (w *World) clear(place uint64, words ...uint64) error {
	for t := range w.threads {
		for _, word := range words {
			if err := w.memory.Put64(w.address(t, place+word), 0); err != nil {
				return err
			}
		}
	}
	return w.Fence()
}
