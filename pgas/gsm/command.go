package gsm

import (
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// word returns where a command on an aligned word of 1<<shift bytes goes. Nil: on another node, or perhaps nowhere.
func (w *Window) word(kind memory.Kind, at Address, shift int) unsafe.Pointer {
	if uint64(at.Task) >= uint64(len(w.areas)) {
		return nil
	}
	return w.areas[at.Task].Word(kind, at.Window, at.Offset, shift)
}

// far says whether a task is on another node.
func (w *Window) far(task fabric.Task) bool {
	return uint64(task) < uint64(len(w.areas)) && w.areas[task] == memory.Nowhere
}

// Put64 writes a word of 8 bytes.
func (w *Window) Put64(to Address, value uint64) error {
	p := w.word(memory.Putting, to, 3)
	if p == nil {
		return w.put64(to, value)
	}
	*(*uint64)(p) = value // relaxed: sync/atomic has only a store that waits for all stores before it
	w.counters.Puts++
	w.counters.PutBytes += 8
	return nil
}

func (w *Window) put64(to Address, value uint64) error {
	return w.Put(to, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 8))
}

// Put32 writes a word of 4 bytes.
func (w *Window) Put32(to Address, value uint32) error {
	p := w.word(memory.Putting, to, 2)
	if p == nil {
		return w.put32(to, value)
	}
	*(*uint32)(p) = value
	w.counters.Puts++
	w.counters.PutBytes += 4
	return nil
}

func (w *Window) put32(to Address, value uint32) error {
	return w.Put(to, unsafe.Slice((*byte)(unsafe.Pointer(&value)), 4))
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
	o, err := w.put(to, data)
	if o != nil {
		return w.end(o, putCall)
	}
	return err
}

// put writes bytes; a command is what goes on.
func (w *Window) put(to Address, data []byte) (*command, error) {
	if w.far(to.Task) {
		return w.issue(epoch.Command{Op: wire.Put, Data: data}, to, uint64(len(data)), nil)
	}
	there, err := w.reach(wire.Put, memory.Putting, to, uint64(len(data)))
	if err != nil {
		return nil, err
	}
	copy(there, data)
	w.counters.Puts++
	w.counters.PutBytes += uint64(len(data))
	return nil, nil
}

// Get reads bytes, in no order.
func (w *Window) Get(from Address, into []byte) error {
	o, err := w.get(from, into)
	if o != nil {
		return w.end(o, getCall)
	}
	return err
}

func (w *Window) get(from Address, into []byte) (*command, error) {
	if w.far(from.Task) {
		return w.issue(epoch.Command{Op: wire.Get, Data: into}, from, uint64(len(into)), nil)
	}
	there, err := w.reach(wire.Get, memory.Getting, from, uint64(len(into)))
	if err != nil {
		return nil, err
	}
	copy(into, there)
	w.counters.Gets++
	w.counters.GetBytes += uint64(len(into))
	return nil, nil
}

// reach returns the memory of this node that a command goes to, or the error that says why it may not.
func (w *Window) reach(op wire.Op, kind memory.Kind, at Address, bytes uint64) ([]byte, error) {
	if w.areas == nil {
		return nil, w.refuse(op, at, bytes, ErrClosed)
	}
	if uint64(at.Task) >= uint64(len(w.areas)) {
		return nil, w.refuse(op, at, bytes, ErrTask)
	}
	place, why := w.areas[at.Task].AdmitNarrow(kind, at.Window, at.Offset, bytes, w.key.tokenOf())
	if why != wire.OK {
		return nil, w.refuse(op, at, bytes, why)
	}
	return unsafe.Slice((*byte)(place), bytes), nil
}

// refuse counts and returns the error of a command that was not done.
func (w *Window) refuse(op wire.Op, at Address, bytes uint64, why error) error {
	w.counters.Refused++
	return &Error{Op: op, Address: at, Bytes: bytes, Err: why}
}

// Fence has all commands that the window issued before it done, and seen by all, before any that it issues after it. It
// returns the first error of a command without notification.
func (w *Window) Fence() error {
	if w.areas == nil {
		return errors.WithMessagef(ErrClosed, "fence of window %d", w.number)
	}
	w.finish()
	var word uint64
	atomic.AddUint64(&word, 1) // a full fence: all stores before it are there for all
	w.counters.Fences++
	w.tell()
	return w.failure()
}

// finish waits for all commands under way. The first error of one that nobody has a handle of is left for failure.
func (w *Window) finish() {
	for _, o := range w.unnotified {
		if err := w.end(o, fenceCall); err != nil && w.failed == nil {
			w.failed = err
		}
	}
	clear(w.unnotified)
	w.unnotified = w.unnotified[:0]
	for i := range w.handles.slots {
		if s := &w.handles.slots[i]; s.used && s.command != nil {
			s.err, s.command = w.end(s.command, fenceCall), nil
		}
	}
}

// failure is the first error of a command without notification since it was called last.
func (w *Window) failure() error {
	err := w.failed
	w.failed = nil
	return err
}
