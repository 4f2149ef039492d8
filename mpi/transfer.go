package mpi

// #include "calls.h"
import "C"

import "github.com/pkg/errors"

// The transfers of a window begin at once and are complete after the call that ends or flushes the
// epoch. Until then their local buffers are pinned and must be left alone.

// Put writes origin to the part of rank target, from an offset on.
func (w *Win[T]) Put(origin []T, target, offset int) error {
	win, err := w.reach("MPI_Put", len(origin), target, offset)
	if err != nil {
		return err
	}
	pins := w.origins.lock(target)
	defer w.origins.unlock()
	pin(pins, origin)
	return check("MPI_Put", C.ek_put(address(origin), cint(len(origin)), datatypeOf[T](),
		cint(target), C.MPI_Aint(offset), win))
}

// Get reads the part of rank target, from an offset on, into origin.
func (w *Win[T]) Get(origin []T, target, offset int) error {
	win, err := w.reach("MPI_Get", len(origin), target, offset)
	if err != nil {
		return err
	}
	pins := w.origins.lock(target)
	defer w.origins.unlock()
	pin(pins, origin)
	return check("MPI_Get", C.ek_get(address(origin), cint(len(origin)), datatypeOf[T](),
		cint(target), C.MPI_Aint(offset), win))
}

// Accumulate combines origin into the part of rank target, from an offset on; each element is
// updated atomically with respect to other accumulating transfers of the same type.
func (w *Win[T]) Accumulate(origin []T, target, offset int, op Op) error {
	win, err := w.reach("MPI_Accumulate", len(origin), target, offset)
	if err != nil {
		return err
	}
	pins := w.origins.lock(target)
	defer w.origins.unlock()
	pin(pins, origin)
	return check("MPI_Accumulate", C.ek_accumulate(address(origin), cint(len(origin)), datatypeOf[T](),
		cint(target), C.MPI_Aint(offset), op.handle(), win))
}

// FetchAndOp combines origin into one element of rank target, and stores in result what was there
// before, in one atomic step. A nil result is not wanted.
func (w *Win[T]) FetchAndOp(origin T, result *T, target, offset int, op Op) error {
	win, err := w.reach("MPI_Fetch_and_op", 1, target, offset)
	if err != nil {
		return err
	}
	if result == nil {
		result = new(T)
	}
	in := []T{origin}
	pins := w.origins.lock(target)
	defer w.origins.unlock()
	pin(pins, in)
	pins.Pin(result)
	return check("MPI_Fetch_and_op", C.ek_fetch_and_op(address(in), addressOf(result), datatypeOf[T](),
		cint(target), C.MPI_Aint(offset), op.handle(), win))
}

// CompareAndSwap stores origin in one element of rank target when the element equals compare, and
// stores in result what was there before, in one atomic step. A nil result is not wanted. T must be
// an integer or bool type. See the package comment for what Open MPI 4.1 cannot do with 64 bits.
func (w *Win[T]) CompareAndSwap(origin, compare T, result *T, target, offset int) error {
	win, err := w.reach("MPI_Compare_and_swap", 1, target, offset)
	if err != nil {
		return err
	}
	if result == nil {
		result = new(T)
	}
	in := []T{origin, compare}
	pins := w.origins.lock(target)
	defer w.origins.unlock()
	pin(pins, in)
	pins.Pin(result)
	return check("MPI_Compare_and_swap", C.ek_compare_and_swap(address(in), addressOf(&in[1]),
		addressOf(result), datatypeOf[T](), cint(target), C.MPI_Aint(offset), win))
}

// reach refuses a transfer that leaves the target's part. A rank that does not exist is left to MPI
// to refuse.
//
//go:noinline
func (w *Win[T]) reach(call string, n, target, offset int) (C.ek_win, error) {
	win, err := w.live(call)
	if err != nil {
		return C.ek_win{}, err
	}
	win.from = place(1)
	if have := w.Len(target); have != Undefined && (offset < 0 || offset > have-n) {
		return C.ek_win{}, errors.Wrapf(ErrLength, "%s: %d elements at offset %d leave the window of rank %d, which has %d",
			call, n, offset, target, have)
	}
	return win, nil
}
