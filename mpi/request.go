package mpi

// #include "calls.h"
import "C"

import (
	stderrors "errors"
	"runtime"
	"sync"
	"unsafe"

	"github.com/pkg/errors"
)

// Request is a nonblocking operation under way. Its buffers are pinned until Wait, Test, WaitAll,
// WaitAny or TestAll has seen it complete; after that it is null, and completes at once. A request
// belongs to one goroutine at a time.
type Request struct {
	handle C.MPI_Request
	pins   runtime.Pinner
}

var nullRequest C.MPI_Request = C.MPI_REQUEST_NULL

// outstanding holds the requests that MPI still works on, so that the buffers of a request which
// the program drops stay pinned instead of being written to after they were collected.
var outstanding = requestSet{members: map[*Request]struct{}{}}

type requestSet struct {
	mu      sync.Mutex
	members map[*Request]struct{}
}

func (s *requestSet) add(r *Request) {
	s.mu.Lock()
	s.members[r] = struct{}{}
	s.mu.Unlock()
}

func (s *requestSet) remove(r *Request) {
	s.mu.Lock()
	delete(s.members, r)
	s.mu.Unlock()
}

func (s *requestSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members)
}

// pin keeps the elements of buf where they are. What is not on the Go heap needs no pin.
func pin[T Datatype](pins *runtime.Pinner, buf []T) {
	if len(buf) > 0 {
		pins.Pin(unsafe.SliceData(buf))
	}
}

func newRequest() *Request {
	return &Request{handle: nullRequest}
}

// started is the end of every call that begins an operation, with the code that MPI gave back.
func (r *Request) started(call string, code C.int) (*Request, error) {
	if err := check(call, code); err != nil {
		r.pins.Unpin()
		return nil, err
	}
	outstanding.add(r)
	return r, nil
}

// settle lets the buffers go when MPI has made the request null, that is, when it is complete.
func (r *Request) settle() {
	if r.handle == nullRequest {
		outstanding.remove(r)
		r.pins.Unpin()
	}
}

// Wait returns when the operation is complete, with the status of a receive.
func (r *Request) Wait() (Status, error) {
	return r.wait(place(0))
}

func (r *Request) wait(from C.uintptr_t) (Status, error) {
	if !running.Load() {
		return Status{}, notRunning("MPI_Wait")
	}
	o := C.ek_wait(&r.handle, from)
	r.settle()
	return Status{o.status}, check("MPI_Wait", o.code)
}

// Test tells whether the operation is complete, without waiting.
func (r *Request) Test() (Status, bool, error) {
	if !running.Load() {
		return Status{}, false, notRunning("MPI_Test")
	}
	o := C.ek_test(&r.handle, place(0))
	r.settle()
	return Status{o.status}, o.value != 0, check("MPI_Test", o.code)
}

// Cancel asks MPI to give the operation up. It must still be completed; its status then says
// whether it was cancelled or done.
func (r *Request) Cancel() error {
	if !running.Load() {
		return notRunning("MPI_Cancel")
	}
	if r.handle == nullRequest {
		return refuse("MPI_Cancel", ErrRequest, "null request: it is complete")
	}
	return check("MPI_Cancel", C.ek_cancel(&r.handle, place(0)))
}

// WaitAll returns when all requests are complete, with their statuses in order. When some have
// failed, the error holds the error of each. Nil requests are complete.
//
// It waits for one after the other: MPI_Waitall of Open MPI 4.1 never returns when a request had
// failed before the call.
func WaitAll(requests ...*Request) ([]Status, error) {
	statuses, from := make([]Status, len(requests)), place(0)
	var failed []error
	for i, r := range requests {
		if r == nil {
			continue
		}
		s, err := r.wait(from)
		if err != nil {
			failed = append(failed, errors.WithMessagef(err, "request %d", i))
		}
		statuses[i] = s
	}
	return statuses, stderrors.Join(failed...)
}

// TestAll tells whether all requests are complete, without waiting. When they are, it returns their
// statuses and errors as WaitAll does; when they are not, it completes none.
func TestAll(requests ...*Request) ([]Status, bool, error) {
	if !running.Load() {
		return nil, false, notRunning("MPI_Testall")
	}
	handles, statuses := collect(requests), make([]Status, len(requests))
	var flag C.int
	code := C.ek_testall(cint(len(requests)), unsafe.SliceData(handles), &flag, rawStatuses(statuses), place(0))
	settle(requests, handles)
	err := check("MPI_Testall", code)
	if errors.Is(err, ErrInStatus) {
		err = failures("MPI_Testall", statuses)
	}
	if flag == 0 {
		return nil, false, err
	}
	return statuses, true, err
}

// WaitAny returns when one of the requests is complete, with its index and status, and settles that
// one only. The index is Undefined when all were complete before.
func WaitAny(requests ...*Request) (int, Status, error) {
	if !running.Load() {
		return Undefined, Status{}, notRunning("MPI_Waitany")
	}
	handles := collect(requests)
	o := C.ek_waitany(cint(len(requests)), unsafe.SliceData(handles), place(0))
	settle(requests, handles)
	return int(o.value), Status{o.status}, check("MPI_Waitany", o.code)
}

// collect copies the handles into one array, as MPI wants them.
func collect(requests []*Request) []C.MPI_Request {
	handles := make([]C.MPI_Request, len(requests))
	for i, r := range requests {
		handles[i] = nullRequest
		if r != nil {
			handles[i] = r.handle
		}
	}
	return handles
}

// settle takes the handles back after MPI has changed them.
func settle(requests []*Request, handles []C.MPI_Request) {
	for i, r := range requests {
		if r != nil && r.handle != handles[i] {
			r.handle = handles[i]
			r.settle()
		}
	}
}

func rawStatuses(statuses []Status) *C.MPI_Status {
	return (*C.MPI_Status)(unsafe.Pointer(unsafe.SliceData(statuses)))
}

// failures returns the errors of single requests, which MPI leaves in their statuses.
func failures(call string, statuses []Status) error {
	var failed []error
	for i, s := range statuses {
		if err := check(call, s.raw.MPI_ERROR); err != nil {
			failed = append(failed, errors.WithMessagef(err, "request %d", i))
		}
	}
	return stderrors.Join(failed...)
}
