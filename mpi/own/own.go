// Package own records the waits in functions of evenkeel's own Go packages as those in MPI's are:
// by their names, and by where the program called them. Which functions, and what they wait for:
// `own` in c/tables/mpi.table. Where libevenkeel.so is not preloaded it does nothing.
//
// A wait is one of the thread that its goroutine runs on, and stays on until it ends. So it is a wait
// of the rank if that is the thread that called MPI first, and else one of another thread, while the
// rank may compute. Waits of evenkeel's own goroutines are nobody's, and are not recorded.
package own

/*
#cgo CFLAGS: -D_GNU_SOURCE -I${SRCDIR}/../../c
#cgo LDFLAGS: -ldl
#cgo pkg-config: ompi-c
#include <dlfcn.h>
#include <stdlib.h>
#include "own_binding.h"

static const struct ek_own_binding *binding;

static void find(void)
{
	binding = dlsym(RTLD_DEFAULT, "ek_own_binding");
	if (binding && binding->size != sizeof *binding) // another version's
		binding = 0;
}

static int number_of(const char *name)
{
	return binding ? binding->function(name) : -1;
}

static void begin(int function, uintptr_t site, MPI_Comm comm, int rank)
{
	binding->begin(function, site, comm, rank);
}

static void end(void)
{
	binding->end();
}

#cgo nocallback begin
#cgo nocallback end
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"

	"evenkeel/mpi"
	"evenkeel/mpi/caller"
)

// Function is a function that is recorded; negative: nobody records it.
type Function int32

var find = sync.OnceFunc(func() { C.find() })

// Named is the function of that name in mpi.table.
func Named(name string) Function {
	find()
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return Function(C.number_of(c))
}

// Site is where the program called evenkeel, for C code that records a function itself; 0 if nobody
// does. up says how many functions lie between the program and the one that calls Site: none of these
// may be inlined.
//
//go:noinline
func (f Function) Site(up int) uintptr {
	if f < 0 {
		return 0
	}
	return caller.Program(up + 1)
}

// Nobody is no rank: the function waits for the communicator.
const Nobody = mpi.ProcNull

// Call is a call of a function, from Begin to End.
type Call bool

// Begin begins a call of f, which waits for others of a communicator, or for one rank of it. What the
// goroutine calls of MPI, or of other functions, until its End is a part of it.
func (f Function) Begin(c *mpi.Comm, rank int) Call {
	if f < 0 {
		return false
	}
	return f.begin(c, rank)
}

//go:noinline
func (f Function) begin(c *mpi.Comm, rank int) Call {
	site := caller.Program(0)
	if !caller.InProgram(site) {
		return false
	}
	runtime.LockOSThread()
	C.begin(C.int(f), C.uintptr_t(site), C.MPI_Comm(c.Pointer()), C.int(rank))
	return true
}

// End ends the call.
func (c Call) End() {
	if c {
		C.end()
		runtime.UnlockOSThread()
	}
}
