package engine

import (
	"encoding/binary"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Active messages over a fabric that is lossless need no reliability: a request
// is executed where it arrives, once, and its answer ends the operation. A
// request of up to 40 bytes takes one cache line there and one back.
//
//	request: kind | 3 bytes 0 | slot | generation | handler | data
//	answer:  kind | reason | 2 bytes 0 | slot | generation | 4 bytes 0 | reply
//
// Slot and generation name the operation at its initiator. The first byte tells
// these packets from those with a tag, which begin with the protocol's version.
const (
	directFirst   = 0x80
	directRequest = 0x80
	directAnswer  = 0x81
	directHeader  = 16
)

// direct is what goes over lossless fabrics.
type direct struct {
	under   int // operations under way
	buffer  []byte
	reply   []byte
	packet  [1]fabric.Packet
	queue   []fabric.Packet // for which there was no room, with data of their own
	checkAt time.Duration   // when sweep is due; 0: not planned
}

func (d *direct) init(reply int) { d.reply = make([]byte, 0, reply) }

func (d *direct) busy() bool { return d.under > 0 || len(d.queue) > 0 }

func (d *direct) deadline() (time.Duration, bool) { return d.checkAt, d.under > 0 }

func (e *Engine) directly(peer fabric.Task, key wire.Key) bool {
	return e.lossless != nil && key == wire.JobKey && e.lossless.Lossless(peer)
}

func (e *Engine) startDirect(o *Operation) {
	err := error(nil)
	switch {
	case o.Handler == wire.None:
		err = wire.NoHandler
	case len(o.Data) > e.MessageLimit(o.Peer, wire.JobKey):
		err = errors.Wrapf(wire.Length, "active message of %d bytes, at most %d", len(o.Data), e.MessageLimit(o.Peer, wire.JobKey))
	}
	if err != nil {
		o.finish(&epoch.Notification{Reason: reasonOf(err)}, err)
		return
	}
	slot := e.operations.add(o)
	e.operations.slots[slot].direct = true
	e.direct.under++
	e.counters.Direct++
	e.sendDirect(o.Peer, directRequest, wire.OK, slot, e.operations.slots[slot].generation, o.Handler, o.Data)
}

func (e *Engine) sendDirect(to fabric.Task, kind byte, reason wire.Reason, slot, generation uint32, h wire.Handler, data []byte) {
	d := &e.direct
	d.buffer = append(d.buffer[:0], kind, byte(reason), 0, 0)
	d.buffer = binary.LittleEndian.AppendUint32(d.buffer, slot)
	d.buffer = binary.LittleEndian.AppendUint32(d.buffer, generation)
	d.buffer = binary.LittleEndian.AppendUint32(d.buffer, uint32(h))
	d.buffer = append(d.buffer, data...)
	d.packet[0] = fabric.Packet{Peer: to, Class: fabric.Control, Data: d.buffer}
	if len(d.queue) == 0 {
		n, err := e.fabric.Send(d.packet[:])
		if err != nil {
			e.refused(to)
			return
		}
		if n == 1 {
			return
		}
	}
	d.packet[0].Data = append([]byte(nil), d.buffer...)
	d.queue = append(d.queue, d.packet[0])
}

// refused: the fabric can't send to that task, now or ever.
func (e *Engine) refused(to fabric.Task) {
	e.counters.Lost++
	e.fail(to, wire.Dead)
}

// resume sends what had to wait for room.
func (e *Engine) resume() bool {
	d := &e.direct
	before, left := len(d.queue), d.queue[:0]
	var gone []fabric.Task
	e.sendPast(d.queue, func(i int) { left = append(left, d.queue[i]) }, func(i int) { gone = append(gone, d.queue[i].Peer) })
	d.queue = left
	for _, to := range gone {
		e.refused(to)
	}
	return len(left) < before
}

func (e *Engine) receiveDirect(p *fabric.Packet) {
	slot := binary.LittleEndian.Uint32(p.Data[4:])
	generation := binary.LittleEndian.Uint32(p.Data[8:])
	data := p.Data[directHeader:]
	switch p.Data[0] {
	case directRequest:
		e.counters.DirectExecuted++
		reply, err := e.handlers.Message(p.Peer, wire.JobKey, wire.Handler(binary.LittleEndian.Uint32(p.Data[12:])), data, e.direct.reply)
		reason := wire.ReasonOf(err)
		if reason == wire.OK && len(reply) > min(cap(e.direct.reply), e.MessageLimit(p.Peer, wire.JobKey)) {
			reason = wire.Fault
		}
		if reason != wire.OK {
			reply = nil
		}
		e.sendDirect(p.Peer, directAnswer, reason, slot, generation, wire.None, reply)
	case directAnswer:
		if int64(slot) >= int64(len(e.operations.slots)) || e.operations.slots[slot].generation != generation ||
			!e.operations.slots[slot].direct {
			e.endpoint.Drop(wire.Late)
			return
		}
		e.direct.under--
		o := e.operations.remove(slot)
		n := epoch.Notification{Peer: o.Peer, Op: o.Op, Reason: wire.Reason(p.Data[1])}
		if len(data) > 0 {
			n.Reply = append(o.result.Reply[:0], data...) // the room of the reply before
		}
		o.finish(&n, nil)
	default:
		e.endpoint.Drop(wire.UnknownType)
	}
}

// sweep gives up operations that have had no answer for the configured silence;
// false: there were none.
// How long they have been under way is known to an eighth of it, which spares
// each message two readings of the clock.
func (e *Engine) sweep(now time.Duration) (some bool) {
	silence := e.endpoint.Silence
	e.direct.checkAt = now + silence/8
	for slot := range e.operations.slots {
		s := &e.operations.slots[slot]
		switch {
		case !s.direct:
		case s.since == 0:
			s.since = now
		case now-s.since >= silence:
			e.endDirect(uint32(slot), wire.Silent)
			some = true
		}
	}
	return some
}

// failDirect ends what goes to a peer.
func (e *Engine) failDirect(peer fabric.Task, reason wire.Reason) {
	for slot := range e.operations.slots {
		if s := &e.operations.slots[slot]; s.direct && s.operation.Peer == peer {
			e.endDirect(uint32(slot), reason)
		}
	}
	kept := e.direct.queue[:0]
	for _, p := range e.direct.queue {
		if p.Peer != peer {
			kept = append(kept, p)
		}
	}
	e.direct.queue = kept
}

func (e *Engine) endDirect(slot uint32, reason wire.Reason) {
	e.direct.under--
	e.end(e.operations.remove(slot), reason)
}
