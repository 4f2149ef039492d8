package mpi

// #include "calls.h"
import "C"

import (
	"fmt"

	"github.com/pkg/errors"
)

// Error is what MPI answers to a call that it refuses or that fails.
type Error struct {
	Call  string // the MPI function, such as "MPI_Send"
	Code  int    // the library's own error code
	Class Class  // what the standard calls it
	Text  string // the library's words
}

// Error says which call failed, why, and for the frequent classes what to do.
func (e *Error) Error() string {
	text := e.Call + ": " + e.Text
	if hint, ok := hints[e.Class]; ok {
		text += " (" + hint + ")"
	}
	return text
}

// Is tells whether target is the class of the error, so that errors.Is(err, ErrRank) works.
func (e *Error) Is(target error) bool {
	class, ok := target.(Class)
	return ok && class == e.Class
}

// Class is an error class of the MPI standard, and itself an error to compare with errors.Is.
type Class int

// The error classes of the calls in this package.
const (
	ErrBuffer      = Class(C.MPI_ERR_BUFFER)
	ErrCount       = Class(C.MPI_ERR_COUNT)
	ErrType        = Class(C.MPI_ERR_TYPE)
	ErrTag         = Class(C.MPI_ERR_TAG)
	ErrComm        = Class(C.MPI_ERR_COMM)
	ErrRank        = Class(C.MPI_ERR_RANK)
	ErrRequest     = Class(C.MPI_ERR_REQUEST)
	ErrRoot        = Class(C.MPI_ERR_ROOT)
	ErrGroup       = Class(C.MPI_ERR_GROUP)
	ErrOp          = Class(C.MPI_ERR_OP)
	ErrTopology    = Class(C.MPI_ERR_TOPOLOGY)
	ErrDims        = Class(C.MPI_ERR_DIMS)
	ErrArg         = Class(C.MPI_ERR_ARG)
	ErrUnknown     = Class(C.MPI_ERR_UNKNOWN)
	ErrTruncate    = Class(C.MPI_ERR_TRUNCATE)
	ErrOther       = Class(C.MPI_ERR_OTHER)
	ErrIntern      = Class(C.MPI_ERR_INTERN)
	ErrInStatus    = Class(C.MPI_ERR_IN_STATUS)
	ErrPending     = Class(C.MPI_ERR_PENDING)
	ErrNoMem       = Class(C.MPI_ERR_NO_MEM)
	ErrWin         = Class(C.MPI_ERR_WIN)
	ErrBase        = Class(C.MPI_ERR_BASE)
	ErrSize        = Class(C.MPI_ERR_SIZE)
	ErrDisp        = Class(C.MPI_ERR_DISP)
	ErrAssert      = Class(C.MPI_ERR_ASSERT)
	ErrLockType    = Class(C.MPI_ERR_LOCKTYPE)
	ErrRMAConflict = Class(C.MPI_ERR_RMA_CONFLICT)
	ErrRMASync     = Class(C.MPI_ERR_RMA_SYNC)
	ErrRMARange    = Class(C.MPI_ERR_RMA_RANGE)
	ErrRMAShared   = Class(C.MPI_ERR_RMA_SHARED)
)

// hints say what to do about the classes that programs meet most.
var hints = map[Class]string{
	ErrRank:     "ranks run from 0 to Size()-1",
	ErrRoot:     "the root is a rank from 0 to Size()-1",
	ErrTag:      "tags run from 0 to at least 32767",
	ErrTruncate: "the message is longer than the buffer: receive into a longer one, or Probe and Count first",
	ErrOp:       "the operation is not defined for this datatype",
	ErrRMASync:  "the call needs an epoch: Fence, Lock or LockAll first",
}

// Error returns the library's words for the class.
func (c Class) Error() string {
	return text(C.int(c))
}

// ErrLength is the cause of the error of a call whose slices have lengths that do not fit together.
// MPI was not entered.
var ErrLength = errors.New("buffer length mismatch")

// Check is the error that a call of the MPI library by other code in the process gave back; nil: none.
func Check(call string, code int) error { return check(call, C.int(code)) }

// check turns the return value of an MPI call into an error.
func check(call string, code C.int) error {
	if code == C.MPI_SUCCESS {
		return nil
	}
	return newError(call, code)
}

// refuse makes the error that MPI should give, for what the library does not check itself.
func refuse(call string, class Class, format string, args ...any) *Error {
	return &Error{Call: call, Code: int(class), Class: class, Text: fmt.Sprintf(format, args...)}
}

func newError(call string, code C.int) *Error {
	class := C.int(C.MPI_ERR_UNKNOWN)
	if running.Load() {
		C.MPI_Error_class(code, &class)
	}
	return &Error{Call: call, Code: int(code), Class: Class(class), Text: text(code)}
}

// text asks MPI for the words of a code or class, which it has only while it runs.
func text(code C.int) string {
	if !running.Load() {
		return fmt.Sprintf("MPI error %d", code)
	}
	var words [C.MPI_MAX_ERROR_STRING]C.char
	var n C.int
	if C.MPI_Error_string(code, &words[0], &n) != C.MPI_SUCCESS {
		return fmt.Sprintf("MPI error %d", code)
	}
	return C.GoStringN(&words[0], n)
}

// needs refuses a buffer that has not the length that a call needs.
func needs(call, buffer string, have, want int) error {
	if have == want {
		return nil
	}
	return errors.Wrapf(ErrLength, "%s: %s has %d elements and needs %d", call, buffer, have, want)
}
