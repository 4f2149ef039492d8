package mpi

// #include "calls.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/pkg/errors"
)

// Win is a window: memory of every rank of a communicator that the others may read and update
// without its help (though many libraries need it to enter MPI now and then for progress). Offsets
// and lengths count elements of T. A window may be used by several goroutines under ThreadMultiple.
type Win[T Datatype] struct {
	handle  C.MPI_Win
	local   []T
	lengths []int // of every rank's part, so that no transfer leaves a part
	memory  runtime.Pinner
	origins origins
}

var nullWin C.MPI_Win = C.MPI_WIN_NULL

// WinCreate opens a window over buf, whose length may differ between ranks. buf is pinned and may be
// Go memory or a slice of AllocMem. It can be reached from now on in the epochs of Fence, Lock and
// LockAll. Collective. See the package comment for what Open MPI 4.1 cannot do with it.
func WinCreate[T Datatype](c *Comm, buf []T) (*Win[T], error) {
	comm, err := c.live("MPI_Win_create")
	if err != nil {
		return nil, err
	}
	bytes, err := bytesOf[T]("MPI_Win_create", len(buf))
	if err != nil {
		return nil, err
	}
	w, err := newWin[T](c, len(buf))
	if err != nil {
		return nil, err
	}
	w.local = buf
	pin(&w.memory, buf)
	if err := check("MPI_Win_create",
		C.ek_win_create(address(buf), bytes, C.int(sizeOf[T]()), comm, &w.handle)); err != nil {
		w.memory.Unpin()
		if c.size == 1 && errors.Is(err, ErrWin) {
			err = errors.WithMessage(err, "the library makes no window over one rank: "+
				"use WinAllocateShared, or with Open MPI 4.1 start with mpirun --mca osc ^rdma")
		}
		return nil, err
	}
	return w, w.open()
}

// WinAllocateShared opens a window over n elements of new, zeroed memory per rank, which the ranks
// can also load from and store to directly (Local, Shared). All ranks of c must be on one node (see
// Comm.SplitType). Collective.
func WinAllocateShared[T Datatype](c *Comm, n int) (*Win[T], error) {
	comm, err := c.live("MPI_Win_allocate_shared")
	if err != nil {
		return nil, err
	}
	bytes, err := bytesOf[T]("MPI_Win_allocate_shared", n)
	if err != nil {
		return nil, err
	}
	w, err := newWin[T](c, n)
	if err != nil {
		return nil, err
	}
	var base unsafe.Pointer
	if err := check("MPI_Win_allocate_shared", C.ek_win_allocate_shared(bytes, C.int(sizeOf[T]()),
		comm, unsafe.Pointer(&base), &w.handle)); err != nil {
		return nil, err
	}
	if n > 0 {
		w.local = unsafe.Slice((*T)(base), n)
		clear(w.local)
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, c.Barrier() // no rank may see another's part before it is zero
}

// newWin tells all ranks how long the part of each is.
func newWin[T Datatype](c *Comm, n int) (*Win[T], error) {
	w := &Win[T]{handle: nullWin, lengths: make([]int, c.size)}
	return w, Allgather(c, []int{n}, w.lengths)
}

// openWins keeps the windows reachable until Free, whatever the program does with its own
// reference: the other ranks still write to their memory.
var openWins sync.Map

func (w *Win[T]) open() error {
	openWins.Store(w.handle, w)
	return check("MPI_Win_set_errhandler", C.MPI_Win_set_errhandler(w.handle, C.MPI_ERRORS_RETURN))
}

// Free closes the window and unpins its memory; slices of shared memory must not be used afterwards.
// All epochs must have ended. Collective.
func (w *Win[T]) Free() error {
	win, err := w.live("MPI_Win_free")
	if err != nil {
		return err
	}
	if err := check("MPI_Win_free", C.ek_win_free(win)); err != nil {
		return err
	}
	openWins.Delete(w.handle)
	w.handle, w.local = nullWin, nil
	w.origins.close()
	w.memory.Unpin()
	return nil
}

//
//go:noinline
func (w *Win[T]) live(call string) (C.ek_win, error) {
	if !running.Load() {
		return C.ek_win{}, notRunning(call)
	}
	if w == nil || w.handle == nullWin {
		return C.ek_win{}, refuse(call, ErrWin, "null window: it was freed")
	}
	return C.ek_win{handle: w.handle, from: place(1)}, nil
}

// Local returns the rank's own part of the window. Others may write to it during an epoch: read it
// after the call that ends the epoch, or between Sync and Sync.
func (w *Win[T]) Local() []T {
	return w.local
}

// Len returns the length of a rank's part, and Undefined when there is no such rank.
func (w *Win[T]) Len(rank int) int {
	if rank < 0 || rank >= len(w.lengths) {
		return Undefined
	}
	return w.lengths[rank]
}

// Shared returns the part of a rank in a window of WinAllocateShared, to load from and store to
// directly. It is valid until Free. Go's atomics on it are atomic between the ranks too.
func (w *Win[T]) Shared(rank int) ([]T, error) {
	win, err := w.live("MPI_Win_shared_query")
	if err != nil {
		return nil, err
	}
	var bytes C.MPI_Aint
	var unit C.int
	var base unsafe.Pointer
	if err := check("MPI_Win_shared_query",
		C.MPI_Win_shared_query(win.handle, cint(rank), &bytes, &unit, unsafe.Pointer(&base))); err != nil {
		return nil, err
	}
	if bytes == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(base), int(bytes)/sizeOf[T]()), nil
}
