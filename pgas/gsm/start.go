package gsm

import (
	"fmt"

	"github.com/pkg/errors"

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
	used       bool
	command    *command // that goes on; nil: it is done
	err        error    // of one that is done
}

// handles are those of a window. A slot is used again under another generation.
type handles struct {
	slots []started
	free  []uint32
}

// take returns a handle for a command, which may be done already: nil.
func (h *handles) take(c *command) Handle {
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
	s.used, s.command, s.err = true, c, nil
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
	c, err := w.put(to, data)
	return w.started(c, err, notify)
}

// StartGet starts to read bytes, which are there when it is done.
func (w *Window) StartGet(from Address, into []byte, notify bool) (Handle, error) {
	c, err := w.get(from, into)
	return w.started(c, err, notify)
}

// StartUpdate starts an atomic on a word of 4 or 8 bytes. What the word was is there, if old is not nil, when it is done.
func (w *Window) StartUpdate(op wire.Op, width int, at Address, operand, compare uint64, old *uint64, notify bool) (Handle, error) {
	c, err := w.perform(op, width, at, operand, compare, old)
	return w.started(c, err, notify)
}

// mostUnnotified is how many commands without notification a window has under way.
const mostUnnotified = 1024

// started is what a command returns that goes on, or was done at once, as all are on the same node.
func (w *Window) started(c *command, err error, notify bool) (Handle, error) {
	switch {
	case err != nil:
		return Handle{}, err
	case notify:
		return w.handles.take(c), nil
	case c != nil:
		w.unnotified = append(w.unnotified, c)
		if len(w.unnotified) == mostUnnotified {
			w.finish() // the error of another command is the fence's
		}
	}
	return Handle{}, nil
}

// Test says whether a command is done. If it is, the handle is freed, and the error is the command's.
func (w *Window) Test(h Handle) (done bool, err error) {
	s := w.handles.of(h)
	switch {
	case s == nil:
		return false, errors.WithMessagef(ErrHandle, "%v: testing %v", w, h)
	case s.command != nil && !s.command.Finished():
		w.job.engine.Poll()
		if !s.command.Finished() {
			return false, nil
		}
	}
	return true, w.Wait(h)
}

// Wait returns when a command is done, with its error. The handle is freed.
func (w *Window) Wait(h Handle) error {
	s := w.handles.of(h)
	if s == nil {
		return errors.WithMessagef(ErrHandle, "%v: waiting for %v", w, h)
	}
	w.handles.give(h)
	if s.command != nil {
		s.err, s.command = w.end(s.command, waitCall), nil
	}
	return s.err
}
