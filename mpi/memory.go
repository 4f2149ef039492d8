package mpi

// #include "calls.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/pkg/errors"
)

// AllocMem returns n zero elements outside the Go heap, where the library finds them cheapest to
// reach for the network. Give them back with FreeMem.
func AllocMem[T Datatype](n int) ([]T, error) {
	if !running.Load() {
		return nil, notRunning("MPI_Alloc_mem")
	}
	bytes, err := bytesOf[T]("MPI_Alloc_mem", n)
	if err != nil || n == 0 {
		return nil, err
	}
	var base unsafe.Pointer
	if err := check("MPI_Alloc_mem", C.MPI_Alloc_mem(bytes, C.MPI_INFO_NULL, unsafe.Pointer(&base))); err != nil {
		return nil, err
	}
	buf := unsafe.Slice((*T)(base), n)
	clear(buf)
	return buf, nil
}

// FreeMem gives back what AllocMem returned. No slice of it may be used afterwards.
func FreeMem[T Datatype](buf []T) error {
	if !running.Load() {
		return notRunning("MPI_Free_mem")
	}
	if len(buf) == 0 {
		return nil
	}
	return check("MPI_Free_mem", C.MPI_Free_mem(unsafe.Pointer(unsafe.SliceData(buf))))
}

// bytesOf returns the size of n elements, or refuses an n that has none.
func bytesOf[T Datatype](call string, n int) (C.MPI_Aint, error) {
	if n < 0 || n > math.MaxInt/sizeOf[T]() {
		return 0, errors.Wrapf(ErrLength, "%s: there can be no %d elements of %d bytes", call, n, sizeOf[T]())
	}
	return C.MPI_Aint(n * sizeOf[T]()), nil
}
