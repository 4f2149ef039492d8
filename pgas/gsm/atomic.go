package gsm

import (
	"sync/atomic"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// word64 is where an atomic goes, if that is on this node and allowed; it is counted then.
func (w *Window) word64(at Address) *uint64 {
	p := w.word(memory.Updating, at, 3)
	if p != nil {
		w.counters.Atomics++
	}
	return (*uint64)(p)
}

func (w *Window) word32(at Address) *uint32 {
	p := w.word(memory.Updating, at, 2)
	if p != nil {
		w.counters.Atomics++
	}
	return (*uint32)(p)
}

// Add64 adds to a word of 8 bytes, which wraps around.
func (w *Window) Add64(at Address, operand uint64) error {
	if p := w.word64(at); p != nil {
		atomic.AddUint64(p, operand)
		return nil
	}
	_, err := w.Update(wire.Add, 8, at, operand, 0)
	return err
}

// And64 keeps the bits of a word that are set in the operand.
func (w *Window) And64(at Address, operand uint64) error {
	if p := w.word64(at); p != nil {
		atomic.AndUint64(p, operand)
		return nil
	}
	_, err := w.Update(wire.And, 8, at, operand, 0)
	return err
}

// Or64 sets the bits of a word that are set in the operand.
func (w *Window) Or64(at Address, operand uint64) error {
	if p := w.word64(at); p != nil {
		atomic.OrUint64(p, operand)
		return nil
	}
	_, err := w.Update(wire.Or, 8, at, operand, 0)
	return err
}

// Xor64 turns the bits of a word that are set in the operand.
func (w *Window) Xor64(at Address, operand uint64) error {
	if p := w.word64(at); p != nil {
		memory.ExclusiveOr64(p, operand)
		return nil
	}
	_, err := w.Update(wire.Xor, 8, at, operand, 0)
	return err
}

// Swap64 writes a word and returns what was there.
func (w *Window) Swap64(at Address, value uint64) (old uint64, err error) {
	if p := w.word64(at); p != nil {
		return atomic.SwapUint64(p, value), nil
	}
	return w.Update(wire.Swap, 8, at, value, 0)
}

// CompareAndSwap64 writes a word if it is equal to compare, and returns what was there: compare, if it was written.
func (w *Window) CompareAndSwap64(at Address, compare, value uint64) (old uint64, err error) {
	if p := w.word64(at); p != nil {
		return memory.CompareAndSwap64(p, compare, value), nil
	}
	return w.Update(wire.CompareAndSwap, 8, at, value, compare)
}

// FetchAndAdd64 adds to a word and returns what it was.
func (w *Window) FetchAndAdd64(at Address, operand uint64) (old uint64, err error) {
	if p := w.word64(at); p != nil {
		return atomic.AddUint64(p, operand) - operand, nil
	}
	return w.Update(wire.FetchAndAdd, 8, at, operand, 0)
}

// FetchAndAnd64 keeps the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndAnd64(at Address, operand uint64) (old uint64, err error) {
	return w.Update(wire.FetchAndAnd, 8, at, operand, 0)
}

// FetchAndOr64 sets the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndOr64(at Address, operand uint64) (old uint64, err error) {
	return w.Update(wire.FetchAndOr, 8, at, operand, 0)
}

// FetchAndXor64 turns the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndXor64(at Address, operand uint64) (old uint64, err error) {
	return w.Update(wire.FetchAndXor, 8, at, operand, 0)
}

// Add32 adds to a word of 4 bytes, which wraps around.
func (w *Window) Add32(at Address, operand uint32) error {
	if p := w.word32(at); p != nil {
		atomic.AddUint32(p, operand)
		return nil
	}
	return w.update32(wire.Add, at, operand)
}

// And32 keeps the bits of a word that are set in the operand.
func (w *Window) And32(at Address, operand uint32) error { return w.update32(wire.And, at, operand) }

// Or32 sets the bits of a word that are set in the operand.
func (w *Window) Or32(at Address, operand uint32) error { return w.update32(wire.Or, at, operand) }

// Xor32 turns the bits of a word that are set in the operand.
func (w *Window) Xor32(at Address, operand uint32) error { return w.update32(wire.Xor, at, operand) }

// Swap32 writes a word and returns what was there.
func (w *Window) Swap32(at Address, value uint32) (old uint32, err error) {
	return w.fetch32(wire.Swap, at, value, 0)
}

// CompareAndSwap32 writes a word if it is equal to compare, and returns what was there.
func (w *Window) CompareAndSwap32(at Address, compare, value uint32) (old uint32, err error) {
	return w.fetch32(wire.CompareAndSwap, at, value, compare)
}

// FetchAndAdd32 adds to a word and returns what it was.
func (w *Window) FetchAndAdd32(at Address, operand uint32) (old uint32, err error) {
	if p := w.word32(at); p != nil {
		return atomic.AddUint32(p, operand) - operand, nil
	}
	return w.fetch32(wire.FetchAndAdd, at, operand, 0)
}

// FetchAndAnd32 keeps the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndAnd32(at Address, operand uint32) (old uint32, err error) {
	return w.fetch32(wire.FetchAndAnd, at, operand, 0)
}

// FetchAndOr32 sets the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndOr32(at Address, operand uint32) (old uint32, err error) {
	return w.fetch32(wire.FetchAndOr, at, operand, 0)
}

// FetchAndXor32 turns the bits that are set in the operand, and returns what the word was.
func (w *Window) FetchAndXor32(at Address, operand uint32) (old uint32, err error) {
	return w.fetch32(wire.FetchAndXor, at, operand, 0)
}

func (w *Window) update32(op wire.Op, at Address, operand uint32) error {
	_, err := w.Update(op, 4, at, uint64(operand), 0)
	return err
}

func (w *Window) fetch32(op wire.Op, at Address, operand, compare uint32) (uint32, error) {
	old, err := w.Update(op, 4, at, uint64(operand), uint64(compare))
	return uint32(old), err
}

// Update executes any atomic on a word of 4 or 8 bytes, and returns what the word was.
func (w *Window) Update(op wire.Op, width int, at Address, operand, compare uint64) (old uint64, err error) {
	c, err := w.perform(op, width, at, operand, compare, &old)
	if c != nil {
		err = w.end(c, updateCall)
	}
	return old, err
}

// perform executes an atomic; a command is what goes on.
func (w *Window) perform(op wire.Op, width int, at Address, operand, compare uint64, old *uint64) (*command, error) {
	switch {
	case !op.Atomic():
		return nil, w.refuse(op, at, uint64(width), ErrOperation)
	case width != 4 && width != 8:
		return nil, w.refuse(op, at, uint64(width), ErrLength)
	case at.Offset%uint64(width) != 0:
		return nil, w.refuse(op, at, uint64(width), ErrUnaligned)
	case w.far(at.Task):
		return w.issue(epoch.Command{Op: op, Width: width, Operand: operand, Compare: compare}, at, uint64(width), old)
	}
	word, err := w.reach(op, memory.Updating, at, uint64(width))
	if err != nil {
		return nil, err
	}
	if !memory.Aligned(word) {
		return nil, w.refuse(op, at, uint64(width), ErrUnaligned)
	}
	w.counters.Atomics++
	was := memory.Apply(op, word, operand, compare)
	if old != nil {
		*old = was
	}
	return nil, nil
}
