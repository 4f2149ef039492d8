package gsm

import (
	"github.com/pkg/errors"

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
		return w.send(to, target, data, source)
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
		packed := make([]byte, source.Size())
		if err := w.spans(from, source, packed); err != nil {
			return err
		}
		return errors.WithMessagef(target.Scatter(into, 0, packed, 0), "%v", w)
	}
	if err := dgsp.Move(target, into, 0, source, there, 0); err != nil {
		return w.refuse(wire.Get, from, uint64(len(there)), err)
	}
	w.counters.Gets++
	w.counters.GetBytes += uint64(source.Size())
	return nil
}

// LayoutHandler is the number of the handler through which PutLayout reaches other nodes.
const LayoutHandler wire.Handler = engine.MostHandlers - 1

// send writes to another node: the layout travels ahead of the data, once, and is only named after that.
func (w *Window) send(to Address, target *dgsp.Program, data []byte, source *dgsp.Program) error {
	_, high := target.Bounds()
	bytes := uint64(high)
	const furthest = 1 << 61
	if w.job.engine == nil {
		return w.refuse(wire.Put, to, bytes, ErrUnreachable)
	}
	if to.Offset > furthest {
		return w.refuse(wire.Put, to, bytes, ErrRange)
	}
	err := w.job.port.Put(to.Task, dgsp.Message{Source: source, Memory: data, Target: target, Window: uint32(to.Window),
		Base: int(to.Offset)})
	if err != nil {
		return w.refuse(wire.Put, to, bytes, port.Reason(err))
	}
	w.counters.Puts++
	w.counters.PutBytes += uint64(target.Size())
	return nil
}

// spans issues a GET for each stretch of a layout on another node, and waits for all.
func (w *Window) spans(at Address, there *dgsp.Program, packed []byte) error {
	var first error
	var under []*command
	wait := func() {
		for _, c := range under {
			if err := w.end(c); err != nil && first == nil {
				first = err
			}
		}
		under = under[:0]
	}
	there.Spans(0, there.Size(), func(s dgsp.Span) bool {
		c, err := w.get(at.Add(int64(s.At)), packed[:s.Length])
		packed = packed[s.Length:]
		if err != nil {
			first = err
			return false
		}
		if under = append(under, c); len(under) == mostUnnotified {
			wait()
		}
		return first == nil
	})
	wait()
	return first
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
