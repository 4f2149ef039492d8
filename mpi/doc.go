// Package mpi is the Go binding to MPI: thin, generic over slices, with errors as values, and
// nothing but MPI.
//
// It is written against the MPI 3.1 standard and tested with Open MPI 4.1. Names are those of the
// standard without their prefix. What belongs to a communicator or a window is a method of [Comm]
// or [Win]; what carries data is a generic function over slices ([Send], [Allreduce], …), with the
// MPI datatype derived from the element type (see [Datatype]).
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//
//		"evenkeel/mpi"
//	)
//
//	func main() {
//		if err := run(); err != nil {
//			log.Fatal(err) // mpirun ends the other ranks
//		}
//	}
//
//	func run() error {
//		if err := mpi.Init(); err != nil {
//			return err
//		}
//		rank, size := mpi.World.Rank(), mpi.World.Size()
//
//		sum := []float64{float64(rank)}
//		if err := mpi.AllreduceInPlace(mpi.World, sum, mpi.Sum); err != nil {
//			return err
//		}
//		fmt.Printf("rank %d of %d: the ranks add up to %v\n", rank, size, sum[0])
//		return mpi.Finalize()
//	}
//
// Build it with go build (gcc, libopenmpi-dev and pkg-config installed), start it with
// mpirun -np 4 ./program. In a module of your own, have go mod edit -require evenkeel@v0.0.0
// -replace evenkeel=/path/to/evenkeel and go mod tidy before.
//
// # Errors
//
// Every communicator and window of this package returns errors instead of ending the program. What
// MPI refuses is an [*Error] with the call, the MPI error code, its [Class] and text; both
// errors.As(err, &mpiError) and errors.Is(err, mpi.ErrTruncate) work. A slice whose length does not
// fit the call is refused before MPI is entered, with [ErrLength]; so is every call outside Init
// and Finalize, with [ErrNotRunning]. As in C, a rank that leaves a collective call with an error
// of its own leaves the others waiting in theirs: end the program, or call [Comm.Abort].
//
// # Memory
//
// A blocking call holds its slices until it returns. A nonblocking call pins them (runtime.Pinner)
// and keeps them reachable until Wait or Test has seen the [Request] complete, even when the
// program forgets the request; a window pins its memory until Free, and the buffers of Put, Get and
// the like until the call that completes them. Until then the program must leave the elements
// alone, as in C. Slices of C memory ([AllocMem], [WinAllocateShared]) are used in the same way.
//
// # Threads and goroutines
//
// The Go scheduler moves a goroutine from thread to thread. [Init] therefore asks MPI for
// [ThreadSerialized]: any goroutine may call MPI, one at a time. Goroutines that call MPI at the
// same time need InitThread(ThreadMultiple). With a library that grants no more than
// [ThreadFunneled], call runtime.LockOSThread in an init function, and MPI from the main goroutine
// only. A blocking MPI call keeps its thread busy (most libraries spin): a rank needs a processor
// of its own, and GOMAXPROCS small enough for the ranks of a node to share it.
//
// # Signals
//
// MPI leaves the handlers of the Go runtime in place: a nil dereference is a Go panic, and
// signal.Notify sees the SIGTERM that mpirun sends when a job ends early.
//
// # Call sites
//
// Under evenkeel the report names the program's own functions and lines, not those of this package;
// without it nothing is looked up. The rank's time in MPI is that of the thread that called MPI first: call
// runtime.LockOSThread in an init function to have it be that of the main goroutine.
//
// # Faults of Open MPI 4.1
//
// Some calls fail where the standard allows them. WinCreate over one
// rank is refused; WinCreate at the same time on disjoint communicators of one Split collides in a
// file name; a 64-bit CompareAndSwap on the rank's own part of a window of WinCreate ends in a
// segmentation fault. mpirun --mca osc ^rdma avoids all three, and so does WinAllocateShared. A
// Sum of 8- and 16-bit integers can stop at the greatest value where Go would wrap around. A message
// of a rank to itself that is too long for an Irecv posted before it is cut off without
// ErrTruncate.
package mpi
