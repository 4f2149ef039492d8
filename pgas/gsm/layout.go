package gsm

import (
	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// PutLayout writes bytes that lie in data as source says to where target says at an address, in packed order: byte i of one
// layout goes to byte i of the other. Both layouts begin where they are placed or after it. All that target spans, gaps too,
// must be allowed.
func (w *Window) PutLayout(to Address, target *dgsp.Program, data []byte, source *dgsp.Program) error {
	there, err := w.laidOut(wire.Put, memory.Putting, to, target, data, source)
	if err != nil {
		return err
	}
	if err := dgsp.Move(target, there, 0, source, data, 0); err != nil {
		return w.refuse(wire.Put, to, uint64(len(there)), err)
	}
	w.counters.Puts++
	w.counters.PutBytes += uint64(target.Size())
	return nil
}

// GetLayout is the other way round: it reads bytes that lie as source says at an address to where target says in into.
func (w *Window) GetLayout(from Address, source *dgsp.Program, into []byte, target *dgsp.Program) error {
	there, err := w.laidOut(wire.Get, memory.Getting, from, source, into, target)
	if err != nil {
		return err
	}
	if err := dgsp.Move(target, into, 0, source, there, 0); err != nil {
		return w.refuse(wire.Get, from, uint64(len(there)), err)
	}
	w.counters.Gets++
	w.counters.GetBytes += uint64(source.Size())
	return nil
}

// laidOut returns the memory that a layout spans at an address.
func (w *Window) laidOut(op wire.Op, kind memory.Kind, at Address, there *dgsp.Program, slice []byte, here *dgsp.Program) ([]byte, error) {
	if there == nil || here == nil || there.Size() != here.Size() {
		return nil, w.refuse(op, at, uint64(len(slice)), errors.WithMessage(ErrLength, "layouts of different sizes, or none"))
	}
	low, high := there.Bounds()
	mine, end := here.Bounds()
	if low < 0 || mine < 0 || end > len(slice) {
		return nil, w.refuse(op, at, uint64(len(slice)), errors.WithMessagef(ErrLength,
			"layouts over bytes %d to %d there and %d to %d of a slice of %d", low, high, mine, end, len(slice)))
	}
	return w.reach(op, kind, at, uint64(high))
}
