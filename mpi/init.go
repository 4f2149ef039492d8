package mpi

/*
#cgo pkg-config: ompi-c
#include "calls.h"
*/
import "C"

import (
	"sync/atomic"

	"github.com/pkg/errors"
)

// ThreadLevel says which threads of a process may call MPI.
type ThreadLevel int

// The levels of the MPI standard, each including those before it.
const (
	ThreadSingle     = ThreadLevel(C.MPI_THREAD_SINGLE)     // the process has one thread; no Go program is so
	ThreadFunneled   = ThreadLevel(C.MPI_THREAD_FUNNELED)   // the thread that called InitThread
	ThreadSerialized = ThreadLevel(C.MPI_THREAD_SERIALIZED) // any thread, one at a time
	ThreadMultiple   = ThreadLevel(C.MPI_THREAD_MULTIPLE)   // any thread at any time
)

// ErrNotRunning is the cause of the error of every call before Init or after Finalize, where the
// MPI library itself would end the job.
var ErrNotRunning = errors.New("MPI is not running: call Init first, and nothing after Finalize")

// running is set between Init and Finalize.
var running atomic.Bool

// Init starts MPI for a program whose goroutines call it one at a time (ThreadSerialized). It is
// called once, before everything else but Version, Initialized, Finalized and InitThread.
func Init() error {
	provided, err := InitThread(ThreadSerialized)
	if err != nil {
		return err
	}
	if provided < ThreadSerialized {
		return errors.Errorf("MPI grants thread level %d, goroutines that move between threads need %d: "+
			"call runtime.LockOSThread in an init function and use InitThread(ThreadFunneled)",
			provided, ThreadSerialized)
	}
	return nil
}

// InitThread starts MPI and returns the thread level that the library grants, which can be lower or
// higher than required. It is called once, instead of Init.
func InitThread(required ThreadLevel) (ThreadLevel, error) {
	if Initialized() {
		return 0, errors.New("MPI_Init_thread: MPI is initialised already; call Init or InitThread once")
	}
	var provided C.int
	if err := check("MPI_Init_thread", C.MPI_Init_thread(nil, nil, C.int(required), &provided)); err != nil {
		return 0, err
	}
	findTell()
	running.Store(true)
	if err := World.adopt(C.MPI_COMM_WORLD); err != nil {
		return 0, err
	}
	if err := Self.adopt(C.MPI_COMM_SELF); err != nil {
		return 0, err
	}
	return ThreadLevel(provided), nil
}

// QueryThread returns the thread level that MPI granted.
func QueryThread() (ThreadLevel, error) {
	if !running.Load() {
		return 0, notRunning("MPI_Query_thread")
	}
	var provided C.int
	err := check("MPI_Query_thread", C.MPI_Query_thread(&provided))
	return ThreadLevel(provided), err
}

// Finalize ends MPI; every rank calls it, once, after its last other call. It finalizes also when
// it then reports requests that were never completed.
func Finalize() error {
	if !running.CompareAndSwap(true, false) {
		return notRunning("MPI_Finalize")
	}
	if err := check("MPI_Finalize", C.MPI_Finalize()); err != nil {
		return err
	}
	if n := outstanding.count(); n > 0 {
		return errors.Errorf("MPI_Finalize: %d requests were never completed; call Wait or Test on each", n)
	}
	return nil
}

// Initialized tells whether MPI was started in this process, by Init or by someone else. It stays
// true after Finalize.
func Initialized() bool {
	var flag C.int
	C.MPI_Initialized(&flag)
	return flag != 0
}

// Finalized tells whether MPI was ended in this process.
func Finalized() bool {
	var flag C.int
	C.MPI_Finalized(&flag)
	return flag != 0
}

// Wtime returns the seconds since a moment in the past that stays the same while the process lives.
func Wtime() float64 {
	return float64(C.MPI_Wtime())
}

// Wtick returns the seconds between two ticks of Wtime.
func Wtick() float64 {
	return float64(C.MPI_Wtick())
}

// Version returns the version of the MPI standard that the library follows, such as 3, 1.
func Version() (major, minor int) {
	var version, subversion C.int
	C.MPI_Get_version(&version, &subversion)
	return int(version), int(subversion)
}

// LibraryVersion returns the name and version of the MPI library, in its own words.
func LibraryVersion() string {
	var text [C.MPI_MAX_LIBRARY_VERSION_STRING]C.char
	var n C.int
	C.MPI_Get_library_version(&text[0], &n)
	return C.GoStringN(&text[0], n)
}

// ProcessorName returns the name of the machine that the rank runs on.
func ProcessorName() (string, error) {
	if !running.Load() {
		return "", notRunning("MPI_Get_processor_name")
	}
	var text [C.MPI_MAX_PROCESSOR_NAME]C.char
	var n C.int
	if err := check("MPI_Get_processor_name", C.MPI_Get_processor_name(&text[0], &n)); err != nil {
		return "", err
	}
	return C.GoStringN(&text[0], n), nil
}

func notRunning(call string) error {
	return errors.WithMessage(ErrNotRunning, call)
}
