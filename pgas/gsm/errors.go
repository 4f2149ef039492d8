package gsm

import (
	"fmt"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Why a command is refused. An [*Error] wraps one of these; nothing was written or read then.
var (
	ErrTask        = errors.New("the job has no such task")
	ErrNoWindow    = error(wire.NoWindow)
	ErrRange       = error(wire.Range)
	ErrProtected   = error(wire.Protection)
	ErrUnaligned   = error(wire.Alignment)
	ErrLength      = error(wire.Length)
	ErrOperation   = error(wire.Operation)
	ErrKey         = error(wire.Credential)
	ErrHandle      = errors.New("the handle was freed, or is of another window")
	ErrClosed      = errors.New("the window is closed, or its task has left the job")
	ErrNotMemory   = memory.ErrNotMemory
	ErrInUse       = memory.ErrInUse
	ErrNoMemory    = memory.ErrNoMemory
	ErrUnequal     = errors.New("the tasks differ in a collective call")
	ErrUnreachable = errors.New("the task is on another node, and there is no way to it")
)

// Error is a command that was refused.
type Error struct {
	Op      wire.Op
	Address Address
	Bytes   uint64
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v of %d bytes at %v: %v", e.Op, e.Bytes, e.Address, e.Err)
}

// Unwrap is one of the errors above.
func (e *Error) Unwrap() error { return e.Err }

// Address is a global address: an offset in bytes into a window of a task.
type Address struct {
	Task   fabric.Task
	Window wire.Window
	Offset uint64
}

// Add is the address so many bytes further on in the same window.
func (a Address) Add(bytes int64) Address {
	a.Offset += uint64(bytes)
	return a
}

func (a Address) String() string {
	return fmt.Sprintf("task %d, window %d, offset %d", a.Task, a.Window, a.Offset)
}
