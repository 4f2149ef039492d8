package gsm

import (
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// word returns where a command on an aligned word of 1<<shift bytes goes. Nil: on another node, or perhaps nowhere.
func (w *Window) word(kind memory.Kind, at Address, shift int) unsafe.Pointer {
	if uint64(at.Task) >= uint64(len(w.areas)) {
		return nil
	}
	return w.areas[at.Task].Word(kind, at.Window, at.Offset, shift)
}

// Put64 writes a word of 8 bytes.
func (w *Window) Put64(to Address, value uint64) error {
	p := w.word(memory.Putting, to, 3)
	if p == nil {
		return w.Put(to, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 8))
	}
	*(*uint64)(p) = value // relaxed: sync/atomic has only a store that waits for all stores before it
	w.counters.Puts++
	w.counters.PutBytes += 8
	return nil
}

// Put32 writes a word of 4 bytes.
func (w *Window) Put32(to Address, value uint32) error {
	p := w.word(memory.Putting, to, 2)
	if p == nil {
		return w.Put(to, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 4))
	}
	*(*uint32)(p) = value
	w.counters.Puts++
	w.counters.PutBytes += 4
	return nil
}

// Get64 reads a word of 8 bytes.
func (w *Window) Get64(from Address) (uint64, error) {
	p := w.word(memory.Getting, from, 3)
	if p == nil {
		return w.get64(from)
	}
	w.counters.Gets++
	w.counters.GetBytes += 8
	return atomic.LoadUint64((*uint64)(p)), nil
}

func (w *Window) get64(from Address) (value uint64, err error) {
	err = w.Get(from, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 8))
	return value, err
}

// Get32 reads a word of 4 bytes.
func (w *Window) Get32(from Address) (uint32, error) {
	p := w.word(memory.Getting, from, 2)
	if p == nil {
		return w.get32(from)
	}
	w.counters.Gets++
	w.counters.GetBytes += 4
	return atomic.LoadUint32((*uint32)(p)), nil
}

func (w *Window) get32(from Address) (value uint32, err error) {
	err = w.Get(from, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 4))
	return value, err
}

// Put writes bytes, in no order.
func (w *Window) Put(to Address, data []byte) error {
	memory, err := w.reach(wire.Put, memory.Putting, to, uint64(len(data)))
	if err != nil {
		return err
	}
	copy(memory, data)
	w.counters.Puts++
	w.counters.PutBytes += uint64(len(data))
	return nil
}

// Get reads bytes, in no order.
func (w *Window) Get(from Address, into []byte) error {
	memory, err := w.reach(wire.Get, memory.Getting, from, uint64(len(into)))
	if err != nil {
		return err
	}
	copy(into, memory)
	w.counters.Gets++
	w.counters.GetBytes += uint64(len(into))
	return nil
}

// reach returns the memory that a command goes to, or the error that says why it may not.
func (w *Window) reach(op wire.Op, kind memory.Kind, at Address, bytes uint64) ([]byte, error) {
	if w.areas == nil {
		return nil, w.refuse(op, at, bytes, ErrClosed)
	}
	if uint64(at.Task) >= uint64(len(w.areas)) {
		return nil, w.refuse(op, at, bytes, ErrTask)
	}
	area := w.areas[at.Task]
	if area == memory.Nowhere {
		return nil, w.refuse(op, at, bytes, ErrUnreachable)
	}
	place, why := area.Admit(kind, at.Window, at.Offset, bytes)
	if why != wire.OK {
		return nil, w.refuse(op, at, bytes, why)
	}
	return unsafe.Slice((*byte)(place), bytes), nil
}

// refuse counts and returns the error of a command that is not issued.
func (w *Window) refuse(op wire.Op, at Address, bytes uint64, why error) error {
	w.counters.Refused++
	return &Error{Op: op, Address: at, Bytes: bytes, Err: why}
}

// Fence has all commands that the window issued before it done, and seen by all, before any that it issues after it. It
// returns the first error of a command that had neither a handle nor an answer.
func (w *Window) Fence() error {
	if w.areas == nil {
		return errors.WithMessagef(ErrClosed, "fence of window %d", w.number)
	}
	var word uint64
	atomic.AddUint64(&word, 1) // a full fence: all stores before it are there for all
	w.counters.Fences++
	return nil
}
