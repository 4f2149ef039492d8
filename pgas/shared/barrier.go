package shared

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../c
#cgo pkg-config: ompi-c
#include "world_barrier.h"
*/
import "C"

import (
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/mpi/own"
)

// barrier is the world's split-phase barrier: a reduction, begun by Notify and completed by Wait, that tells
// whether all gave the same value. It is in C's memory, where MPI works on it meanwhile.
type barrier struct {
	c        *C.struct_ek_shared_barrier
	notified bool
	value    uint64
}

func newBarrier(c *mpi.Comm) (barrier, error) {
	b := barrier{c: C.ek_shared_barrier_new(C.MPI_Comm(c.Pointer()))}
	if b.c == nil {
		return b, errors.New("no memory for the barrier")
	}
	return b, nil
}

// free frees the barrier, unless MPI may still use it.
func (b *barrier) free() {
	if !b.notified {
		C.free(unsafe.Pointer(b.c))
	}
}

// What the barrier is recorded as.
var (
	barrierCall = own.Named("shared.World.Barrier")
	notifyCall  = own.Named("shared.World.Notify")
	notifyWait  = own.Named("shared.World.Wait")
)

func caller(f own.Function, site uintptr) C.struct_ek_shared_caller {
	return C.struct_ek_shared_caller{function: C.int(f), site: C.uintptr_t(site)}
}

// Notify is upc_notify: the thread has come to the barrier, and may do what is its own until it calls
// Wait. All threads must give the same value, or Wait tells all of them. What the thread wrote before is
// seen by all after their Wait.
func (w *World) Notify(value uint64) error {
	if err := w.ready(); err != nil {
		return err
	}
	code := C.ek_shared_notify(w.barrier.c, C.uint64_t(value), caller(notifyCall, notifyCall.Site(0)))
	if err := mpi.Check("MPI_Iallreduce", int(code)); err != nil {
		return errors.WithMessagef(err, "thread %d: notify", w.thread)
	}
	w.barrier.notified, w.barrier.value = true, value
	return nil
}

// ready has the thread's accesses done before it comes to a barrier.
func (w *World) ready() error {
	if err := w.usable("notify"); err != nil {
		return err
	}
	if err := w.comm.Check("MPI_Iallreduce"); err != nil {
		return errors.WithMessagef(err, "thread %d: notify", w.thread)
	}
	return w.Fence()
}

// Wait is upc_wait: it returns when all threads have called Notify.
func (w *World) Wait() error {
	if !w.barrier.notified {
		return errors.Errorf("thread %d: wait: without a notify", w.thread)
	}
	if err := w.comm.Check("MPI_Wait"); err != nil {
		return errors.WithMessagef(err, "thread %d: wait", w.thread)
	}
	w.barrier.notified = false
	return w.passed(C.ek_shared_wait(w.barrier.c, caller(notifyWait, notifyWait.Site(0))), w.barrier.value)
}

// passed says what became of a barrier.
func (w *World) passed(code C.int, value uint64) error {
	if err := mpi.Check("MPI_Wait", int(code)); err != nil {
		return errors.WithMessagef(err, "thread %d: wait", w.thread)
	}
	if most, least := uint64(w.barrier.c.values[0]), ^uint64(w.barrier.c.values[1]); most != least {
		return errors.Errorf("thread %d: barrier %d: other threads are at barriers from %d to %d", w.thread, value, least, most)
	}
	return w.Fence()
}

// Barrier is upc_barrier: Notify and Wait, in one call of C.
func (w *World) Barrier(value uint64) error {
	if err := w.ready(); err != nil {
		return err
	}
	return w.passed(C.ek_shared_barrier(w.barrier.c, C.uint64_t(value), caller(barrierCall, barrierCall.Site(0))), value)
}
