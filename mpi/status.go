package mpi

// #include "calls.h"
import "C"

// Status tells what was received, or what a probe found.
type Status struct {
	raw C.MPI_Status
}

// Source returns the rank that sent the message, ProcNull for a receive from ProcNull.
func (s Status) Source() int {
	return int(s.raw.MPI_SOURCE)
}

// Tag returns the tag of the message.
func (s Status) Tag() int {
	return int(s.raw.MPI_TAG)
}

// Cancelled tells whether the request ended by Cancel and not by a transfer.
func (s Status) Cancelled() (bool, error) {
	if !running.Load() {
		return false, notRunning("MPI_Test_cancelled")
	}
	var flag C.int
	err := check("MPI_Test_cancelled", C.ek_test_cancelled(s.raw, &flag))
	return flag != 0, err
}

// Count returns the length of the message in elements of T, and Undefined when it is no whole
// number of them.
func Count[T Datatype](s Status) (int, error) {
	if !running.Load() {
		return Undefined, notRunning("MPI_Get_count")
	}
	n := C.int(C.MPI_UNDEFINED)
	err := check("MPI_Get_count", C.ek_get_count(s.raw, datatypeOf[T](), &n))
	return int(n), err
}
