package gsm

import (
	"fmt"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// Handle is a command that was started and whose end is wanted to be known. It is good for one Wait, or for Tests until one
// of them says that the command is done; the zero Handle is none.
type Handle struct {
	slot       uint32
	generation uint32 // from 1
}

func (h Handle) String() string { return fmt.Sprintf("handle %d.%d", h.slot, h.generation) }

// started is a command with a handle.
type started struct {
	generation uint32
	used, done bool
	err        error
}

// handles are those of a window. A slot is used again under another generation.
type handles struct {
	slots []started
	free  []uint32
}

// take returns a handle for a command that has just been done.
func (h *handles) take() Handle {
	var slot uint32
	if n := len(h.free); n > 0 {
		slot = h.free[n-1]
		h.free = h.free[:n-1]
	} else {
		slot = uint32(len(h.slots))
		h.slots = append(h.slots, started{})
	}
	s := &h.slots[slot]
	s.generation++
	s.used, s.done = true, true
	return Handle{slot: slot, generation: s.generation}
}

// of returns what a handle stands for, nil if it stands for nothing any more.
func (h *handles) of(handle Handle) *started {
	if int(handle.slot) >= len(h.slots) {
		return nil
	}
	s := &h.slots[handle.slot]
	if !s.used || s.generation != handle.generation {
		return nil
	}
	return s
}

func (h *handles) give(handle Handle) {
	h.slots[handle.slot].used = false
	h.free = append(h.free, handle.slot)
}

// StartPut starts to write bytes, which must stay as they are until it is done. With notify it returns a handle; without,
// Fence alone says that it is done.
func (w *Window) StartPut(to Address, data []byte, notify bool) (Handle, error) {
	return w.handle(w.Put(to, data), notify)
}

// StartGet starts to read bytes, which are there when it is done.
func (w *Window) StartGet(from Address, into []byte, notify bool) (Handle, error) {
	return w.handle(w.Get(from, into), notify)
}

// StartUpdate starts an atomic on a word of 4 or 8 bytes. What the word was is there, if old is not nil, when it is done.
func (w *Window) StartUpdate(op wire.Op, width int, at Address, operand, compare uint64, old *uint64, notify bool) (Handle, error) {
	was, err := w.Update(op, width, at, operand, compare)
	if err == nil && old != nil {
		*old = was
	}
	return w.handle(err, notify)
}

// handle is what a command returns that was done at once, as all are on the same node.
func (w *Window) handle(err error, notify bool) (Handle, error) {
	if err != nil || !notify {
		return Handle{}, err
	}
	return w.handles.take(), nil
}

// Test says whether a command is done. If it is, the handle is freed, and the error is the command's.
func (w *Window) Test(h Handle) (done bool, err error) {
	s := w.handles.of(h)
	if s == nil {
		return false, errors.WithMessagef(ErrHandle, "%v: testing %v", w, h)
	}
	if !s.done {
		return false, nil
	}
	w.handles.give(h)
	return true, s.err
}

// Wait returns when a command is done, with its error. The handle is freed.
func (w *Window) Wait(h Handle) error {
	s := w.handles.of(h)
	if s == nil {
		return errors.WithMessagef(ErrHandle, "%v: waiting for %v", w, h)
	}
	w.handles.give(h)
	return s.err
}

// Block of a strided transfer: so many blocks of so many bytes, every so many bytes one.
type Strided struct {
	Count  int // of blocks
	Bytes  int // of a block
	Stride int // from one block to the next at the target, in bytes
	Packed int // and in the slice: Bytes or more
}

// PutStrided writes blocks of the slice to blocks at the target, in no order.
func (w *Window) PutStrided(to Address, data []byte, s Strided) error {
	there, err := w.strided(wire.Put, memory.Putting, to, data, s)
	if err != nil {
		return err
	}
	memory.CopyStrided(there, s.Stride, data, s.Packed, s.Bytes, s.Count)
	w.counters.Puts++
	w.counters.PutBytes += uint64(s.Count) * uint64(s.Bytes)
	return nil
}

// GetStrided reads blocks at the target into blocks of the slice, in no order.
func (w *Window) GetStrided(from Address, into []byte, s Strided) error {
	there, err := w.strided(wire.Get, memory.Getting, from, into, s)
	if err != nil {
		return err
	}
	memory.CopyStrided(into, s.Packed, there, s.Stride, s.Bytes, s.Count)
	w.counters.Gets++
	w.counters.GetBytes += uint64(s.Count) * uint64(s.Bytes)
	return nil
}

// strided checks a strided transfer: the whole of what it spans must be allowed.
func (w *Window) strided(op wire.Op, kind memory.Kind, at Address, slice []byte, s Strided) ([]byte, error) {
	there, fits := span(s.Count, s.Bytes, s.Stride)
	here, held := span(s.Count, s.Bytes, s.Packed)
	if !fits || !held || here > uint64(len(slice)) {
		return nil, w.refuse(op, at, uint64(len(slice)), errors.WithMessagef(ErrLength, "%+v of a slice of %d", s, len(slice)))
	}
	return w.reach(op, kind, at, there)
}

// span is how many bytes blocks take from the first to the end of the last. False: they can't be, or overlap.
func span(count, bytes, stride int) (uint64, bool) {
	const most = 1 << 31 // of each: their product is far from running over
	if count < 0 || bytes < 0 || stride < bytes || count > most || stride > most {
		return 0, false
	}
	if count == 0 || bytes == 0 {
		return 0, true
	}
	return uint64(count-1)*uint64(stride) + uint64(bytes), true
}
