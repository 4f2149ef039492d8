package mpi

// #include "calls.h"
import "C"

import (
	"maps"
	"runtime"
	"slices"
	"sync"
)

// Assert is what a program promises about a Fence, to make it cheaper. Assertions are added up.
type Assert int

// The promises of the standard.
const (
	NoStore   = Assert(C.MPI_MODE_NOSTORE)   // the local part was not stored to since the last fence
	NoPut     = Assert(C.MPI_MODE_NOPUT)     // the local part will not be put to until the next fence
	NoPrecede = Assert(C.MPI_MODE_NOPRECEDE) // no transfer of this rank ends here; the same on all ranks
	NoSucceed = Assert(C.MPI_MODE_NOSUCCEED) // no transfer begins here; the same on all ranks
)

// LockKind says whether others may lock the same part at the same time.
type LockKind int

// The kinds of locks.
const (
	LockShared    = LockKind(C.MPI_LOCK_SHARED)
	LockExclusive = LockKind(C.MPI_LOCK_EXCLUSIVE)
)

// Fence ends the transfers of all ranks that began after the last fence, and lets new ones begin.
// Collective.
func (w *Win[T]) Fence(assert Assert) error {
	win, err := w.live("MPI_Win_fence")
	if err != nil {
		return err
	}
	began := w.origins.takeAll()
	return w.completed(began, "MPI_Win_fence", C.ek_win_fence(cint(int(assert)), win))
}

// Lock begins an epoch of transfers with the part of one rank, which takes no part in it.
func (w *Win[T]) Lock(kind LockKind, rank int) error {
	win, err := w.live("MPI_Win_lock")
	if err != nil {
		return err
	}
	return check("MPI_Win_lock", C.ek_win_lock(cint(int(kind)), cint(rank), win))
}

// Unlock completes the epoch's transfers, here and at the rank, and ends it.
func (w *Win[T]) Unlock(rank int) error {
	win, err := w.live("MPI_Win_unlock")
	if err != nil {
		return err
	}
	began := w.origins.take(rank)
	return w.completed(began, "MPI_Win_unlock", C.ek_win_unlock(cint(rank), win))
}

// LockAll begins an epoch of transfers with all ranks, with shared locks. It is not collective.
func (w *Win[T]) LockAll() error {
	win, err := w.live("MPI_Win_lock_all")
	if err != nil {
		return err
	}
	return check("MPI_Win_lock_all", C.ek_win_lock_all(win))
}

// UnlockAll completes the transfers of LockAll, everywhere, and ends its epoch.
func (w *Win[T]) UnlockAll() error {
	win, err := w.live("MPI_Win_unlock_all")
	if err != nil {
		return err
	}
	began := w.origins.takeAll()
	return w.completed(began, "MPI_Win_unlock_all", C.ek_win_unlock_all(win))
}

// Flush completes the transfers with one rank so far, here and there, within the epoch.
func (w *Win[T]) Flush(rank int) error {
	win, err := w.live("MPI_Win_flush")
	if err != nil {
		return err
	}
	began := w.origins.take(rank)
	return w.completed(began, "MPI_Win_flush", C.ek_win_flush(cint(rank), win))
}

// FlushAll completes the transfers with all ranks so far.
func (w *Win[T]) FlushAll() error {
	win, err := w.live("MPI_Win_flush_all")
	if err != nil {
		return err
	}
	began := w.origins.takeAll()
	return w.completed(began, "MPI_Win_flush_all", C.ek_win_flush_all(win))
}

// FlushLocal completes the transfers with one rank as far as the buffers here are concerned: what
// was put may be changed, what was gotten is there.
func (w *Win[T]) FlushLocal(rank int) error {
	win, err := w.live("MPI_Win_flush_local")
	if err != nil {
		return err
	}
	began := w.origins.take(rank)
	return w.completed(began, "MPI_Win_flush_local", C.ek_win_flush_local(cint(rank), win))
}

// Sync makes stores to the local part visible to transfers, and transfers visible to loads.
func (w *Win[T]) Sync() error {
	win, err := w.live("MPI_Win_sync")
	if err != nil {
		return err
	}
	return check("MPI_Win_sync", C.ek_win_sync(win))
}

// completed lets go the buffers of the transfers that a call has completed. When it failed, the
// library may still use them: they stay until Free.
func (w *Win[T]) completed(began []*runtime.Pinner, call string, code C.int) error {
	err := check(call, code)
	if err != nil {
		w.origins.strand(began)
		return err
	}
	release(began)
	return nil
}

// origins pins the local buffers of transfers that have begun, by target. A call that completes
// transfers takes their pins before it enters MPI and releases them after it: what another
// goroutine begins meanwhile has other pins.
type origins struct {
	mu       sync.Mutex
	targets  map[int]*runtime.Pinner
	stranded []*runtime.Pinner
}

// lock returns the pins of a target for a transfer that the caller begins before it unlocks, so that
// no completing call takes the pins of a transfer that has not begun.
func (o *origins) lock(target int) *runtime.Pinner {
	o.mu.Lock()
	if o.targets == nil {
		o.targets = map[int]*runtime.Pinner{}
	}
	if o.targets[target] == nil {
		o.targets[target] = new(runtime.Pinner)
	}
	return o.targets[target]
}

func (o *origins) unlock() {
	o.mu.Unlock()
}

func (o *origins) take(target int) []*runtime.Pinner {
	o.mu.Lock()
	defer o.mu.Unlock()
	pins, ok := o.targets[target]
	if !ok {
		return nil
	}
	delete(o.targets, target)
	return []*runtime.Pinner{pins}
}

func (o *origins) takeAll() []*runtime.Pinner {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Collect(maps.Values(o.targets))
	clear(o.targets)
	return all
}

func (o *origins) strand(pins []*runtime.Pinner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stranded = append(o.stranded, pins...)
}

// close releases everything, at the end of the window.
func (o *origins) close() {
	release(o.takeAll())
	release(o.stranded)
}

func release(pins []*runtime.Pinner) {
	for _, p := range pins {
		p.Unpin()
	}
}
