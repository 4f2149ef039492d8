package gsm

import (
	"github.com/pkg/errors"

	"evenkeel/mpi/own"
	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/dgsp/port"
	"evenkeel/pgas/gsm/engine"
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
	if there == nil {
		return w.sendLayout(to, target, data, source)
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
	if there == nil {
		return w.fetchLayout(from, source, into, target)
	}
	if err := dgsp.Move(target, into, 0, source, there, 0); err != nil {
		return w.refuse(wire.Get, from, uint64(len(there)), err)
	}
	w.counters.Gets++
	w.counters.GetBytes += uint64(source.Size())
	return nil
}

// LayoutHandler is the number of the handler through which PutLayout and GetLayout reach other nodes.
const LayoutHandler wire.Handler = engine.MostHandlers - 1

// What layouts to and from other nodes are recorded as.
var (
	putLayoutCall = own.Named("gsm.Window.PutLayout")
	getLayoutCall = own.Named("gsm.Window.GetLayout")
)

// sendLayout writes to another node: the layout travels ahead of the data, once, and is only named after that.
func (w *Window) sendLayout(to Address, target *dgsp.Program, data []byte, source *dgsp.Program) error {
	if err := w.describable(wire.Put, to, target); err != nil {
		return err
	}
	defer putLayoutCall.Begin(w.job.comm, int(to.Task)).End()
	err := w.job.port.Put(to.Task, w.key.numberOf(), dgsp.Message{Source: source, Memory: data, Target: target,
		Window: uint32(to.Window), Base: int(to.Offset)})
	if err != nil {
		return w.refuse(wire.Put, to, span(target), port.Reason(err))
	}
	w.counters.Puts++
	w.counters.PutBytes += uint64(target.Size())
	return nil
}

// fetchLayout reads from another node, which gathers by the layout that it is sent, once, and that is only named after
// that.
func (w *Window) fetchLayout(from Address, source *dgsp.Program, into []byte, target *dgsp.Program) error {
	if err := w.describable(wire.Get, from, source); err != nil {
		return err
	}
	defer getLayoutCall.Begin(w.job.comm, int(from.Task)).End()
	err := w.job.port.Get(from.Task, w.key.numberOf(), uint32(from.Window), int(from.Offset), source, into, target)
	if err != nil {
		return w.refuse(wire.Get, from, span(source), port.Reason(err))
	}
	w.counters.Gets++
	w.counters.GetBytes += uint64(source.Size())
	return nil
}

// span is how many bytes a layout reaches from where it is placed.
func span(p *dgsp.Program) uint64 {
	_, high := p.Bounds()
	return uint64(high)
}

// describable says whether a layout at an address of another node can be sent there.
func (w *Window) describable(op wire.Op, at Address, there *dgsp.Program) error {
	const furthest = 1 << 61
	switch {
	case !w.key.has(at.Task):
		return w.refuse(op, at, span(there), ErrKey)
	case w.job.engine == nil:
		return w.refuse(op, at, span(there), ErrUnreachable)
	case at.Offset > furthest:
		return w.refuse(op, at, span(there), ErrRange)
	}
	return nil
}

// laidOut returns the memory that a layout spans at an address; none, if that is on another node.
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
	if w.far(at.Task) {
		return nil, nil
	}
	return w.reach(op, kind, at, uint64(high))
}
