package epoch

import (
	"math/bits"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// target is the state of the directed pair in which peer commands and this task executes.
type target struct {
	*Endpoint
	peer  fabric.Task
	life  wire.Life // of the initiator
	epoch uint64    // the copy of the pair's current epoch; 0: none was raised yet

	numbers marks          // the packets of this epoch that have arrived
	records window[record] // what became of operations, from the initiator's floor on, whatever the epoch

	refusals int           // 0: no record is of a refused operation
	confirm  bool          // a Confirm is owed
	ack      bool          // an Ack is owed
	answers  queue[uint64] // sequences whose answer is owed
	asked    queue[wanted] // data that is owed
	data     int           // packets of it
}

// record is what a target knows of one operation.
type record struct {
	state  recordState
	queued bool // it is in answers
	key    wire.Key
	reason wire.Reason
	got    uint32 // packets of a PUT that have arrived in this epoch,
	count  uint32 // of so many
	number uint64 // of the packet that is answered
	value  uint64
	reply  []byte
}

type recordState uint8

const (
	unknown  recordState = iota
	partial              // some packets of a PUT have been written in this epoch
	done                 // all of a PUT is written
	executed             // an atomic or a message has run; its answer is kept
	refused
)

// wanted is a run of packets of a GET that have still to be sent.
type wanted struct {
	wire.GetPart
	key  wire.Key
	sent uint32
}

// queue is a FIFO whose memory is used again.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(x T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, x)
}

func (q *queue[T]) first() *T { return &q.items[q.head] }

func (q *queue[T]) pop() {
	q.head++
	if q.head == len(q.items) {
		q.reset()
	}
}

func (q *queue[T]) reset() { q.items, q.head = q.items[:0], 0 }

func newTarget(e *Endpoint, h *wire.Header) *target {
	return &target{Endpoint: e, peer: h.Source, life: h.SourceLife}
}

func (t *target) receive(h *wire.Header, body []byte) wire.Reason {
	if h.SourceLife != t.life {
		return wire.EarlierLife
	}
	if h.Type == wire.TypeRaise {
		var r wire.Raise
		if !r.Decode(body) {
			return wire.Malformed
		}
		return t.raised(h.Epoch, &r)
	}
	if h.Epoch != t.epoch {
		return wire.Stale
	}
	switch h.Type {
	case wire.TypePut:
		var p wire.PutPart
		if p.Decode(body) {
			return t.put(h.Key, &p)
		}
	case wire.TypeGet:
		var g wire.GetPart
		if g.Decode(body) {
			return t.get(h.Key, &g)
		}
	case wire.TypeAtomic:
		var a wire.Atomic
		if a.Decode(body) {
			return t.atomic(h.Key, &a)
		}
	case wire.TypeMessage:
		var m wire.ActiveMessage
		if m.Decode(body) {
			return t.message(h.Key, &m)
		}
	}
	return wire.Malformed
}

// raised clears what belongs to the old epoch, and confirms the new one. What was executed stays known.
func (t *target) raised(epoch uint64, r *wire.Raise) wire.Reason {
	if epoch < t.epoch {
		return wire.Stale
	}
	t.floor(r.Floor)
	t.confirm = true
	if epoch == t.epoch {
		return wire.Repeated // its confirmation may be lost
	}
	t.epoch = epoch
	t.numbers.reset()
	t.ack = false
	t.answers.reset()
	t.asked.reset()
	t.data = 0
	for sequence := t.records.base; sequence < t.records.end; sequence++ {
		r := t.records.at(sequence)
		r.queued = false
		if r.state == partial {
			*r = record{}
		}
	}
	return wire.OK
}

// floor forgets operations whose notification has been given.
func (t *target) floor(sequence uint64) {
	if sequence > t.records.base {
		t.records.advance(sequence)
	}
}

// record finds what is known of the operation that a packet belongs to. Packets of finished operations, and those beyond
// the windows, have none.
func (t *target) record(o *wire.Order, run uint64) (*record, wire.Reason) {
	t.floor(o.Floor)
	switch {
	case o.Sequence < t.records.base:
		return nil, wire.Late
	case o.Sequence-t.records.base >= uint64(t.Operations):
		return nil, wire.Beyond
	case o.Number >= t.numbers.base && o.Number-t.numbers.base+run > uint64(t.Packets):
		return nil, wire.Beyond
	}
	return t.records.reach(o.Sequence), wire.OK
}

func (t *target) put(key wire.Key, p *wire.PutPart) wire.Reason {
	r, reason := t.record(&p.Order, 1)
	if reason != wire.OK {
		return reason
	}
	if t.numbers.get(p.Number) {
		t.ack = true // the one for it may be lost
		if r.state == refused {
			t.answer(p.Sequence, p.Number)
		}
		return wire.Repeated
	}
	switch r.state {
	case refused, done:
		t.arrived(p.Number)
		if r.state == refused {
			t.answer(p.Sequence, p.Number)
		}
		return wire.Repeated
	case executed:
		return wire.Malformed
	case partial:
		if r.count != p.Count {
			return wire.Malformed
		}
	}
	memory, reason := t.allowed(key, wire.Put, &p.Extent)
	if reason == wire.OK && p.Handler != wire.None && (t.Handlers == nil || !t.Handlers.Has(p.Handler)) {
		reason = wire.NoHandler
	}
	if reason == wire.OK {
		reason = wire.ReasonOf(memory.Write(p.Window, p.Offset+p.At, p.Data))
	}
	t.arrived(p.Number)
	if reason != wire.OK {
		t.refuse(r, key, &p.Order, reason)
		return reason
	}
	t.counters.Executed++
	r.state, r.count = partial, p.Count
	r.got++
	if r.got == r.count {
		r.state = done
		if p.Handler != wire.None {
			t.Handlers.Arrived(t.peer, p.Handler, p.Window, p.Offset, p.Length)
		}
	}
	return wire.OK
}

// allowed is the memory that packets under the key may touch, if it allows the whole operation.
func (t *target) allowed(key wire.Key, op wire.Op, x *wire.Extent) (Memory, wire.Reason) {
	memory := t.Memory(t.peer, key)
	if memory == nil {
		return nil, wire.Credential
	}
	return memory, wire.ReasonOf(memory.Check(x.Window, op, x.Offset, x.Length))
}

// arrived: a number need not be sent again.
func (t *target) arrived(number uint64) {
	if !t.numbers.get(number) {
		t.numbers.set(number)
	}
	t.ack = true
}

// refuse remembers that an operation is not executed, and why.
func (t *target) refuse(r *record, key wire.Key, o *wire.Order, reason wire.Reason) {
	r.state, r.reason, r.key = refused, reason, key
	t.refusals++
	t.answer(o.Sequence, o.Number)
}

// answer has the answer of an operation sent, once more if need be.
func (t *target) answer(sequence, number uint64) {
	r := t.records.at(sequence)
	r.number = number
	if !r.queued {
		r.queued = true
		t.answers.push(sequence)
	}
}

func (t *target) get(key wire.Key, g *wire.GetPart) wire.Reason {
	r, reason := t.record(&g.Order, uint64(g.Run))
	if reason != wire.OK {
		return reason
	}
	switch r.state {
	case unknown:
		_, reason = t.allowed(key, wire.Get, &g.Extent)
	case refused:
		reason = r.reason
	default:
		return wire.Malformed
	}
	if reason == wire.OK && t.data+int(g.Run) > t.Packets {
		return wire.Overload
	}
	for k := range uint64(g.Run) {
		if !t.numbers.get(g.Number + k) {
			t.numbers.set(g.Number + k)
		}
	}
	if reason != wire.OK {
		t.ack = true
		t.refuse(r, key, &g.Order, reason)
		return reason
	}
	t.asked.push(wanted{GetPart: *g, key: key})
	t.data += int(g.Run)
	return wire.OK
}

func (t *target) atomic(key wire.Key, a *wire.Atomic) wire.Reason {
	r, reason := t.record(&a.Order, 1)
	if reason != wire.OK {
		return reason
	}
	if known, reason := t.once(r, &a.Order); known {
		return reason
	}
	memory := t.Memory(t.peer, key)
	if memory == nil {
		t.refuse(r, key, &a.Order, wire.Credential)
		return wire.Credential
	}
	old, err := memory.Atomic(a.Window, a.Offset, a.Op, int(a.Width), a.Operand, a.Compare)
	if reason := wire.ReasonOf(err); reason != wire.OK {
		t.refuse(r, key, &a.Order, reason)
		return reason
	}
	t.counters.Executed++
	r.state, r.key, r.value = executed, key, old
	t.answer(a.Sequence, a.Number)
	return wire.OK
}

func (t *target) message(key wire.Key, m *wire.ActiveMessage) wire.Reason {
	r, reason := t.record(&m.Order, 1)
	if reason != wire.OK {
		return reason
	}
	if known, reason := t.once(r, &m.Order); known {
		return reason
	}
	if t.Handlers == nil || !t.Handlers.Has(m.Handler) {
		t.refuse(r, key, &m.Order, wire.NoHandler)
		return wire.NoHandler
	}
	t.counters.Executed++
	reply, err := t.Handlers.Message(t.peer, key, m.Handler, m.Data, nil)
	reason = wire.ReasonOf(err)
	if reason == wire.OK && len(reply) > t.ReplyLimit(t.peer) {
		reason = wire.Length
	}
	if reason != wire.OK {
		t.refuse(r, key, &m.Order, reason)
		return reason
	}
	r.state, r.key, r.reply = executed, key, reply
	t.answer(m.Sequence, m.Number)
	return wire.OK
}

// once says whether a guaranteed-once delivery has been executed or refused before, in this epoch or an older one, and
// has it answered again then.
func (t *target) once(r *record, o *wire.Order) (known bool, reason wire.Reason) {
	if !t.numbers.get(o.Number) {
		t.numbers.set(o.Number)
	}
	switch r.state {
	case executed, refused:
		t.answer(o.Sequence, o.Number)
		return true, wire.Repeated
	case unknown:
		return false, wire.OK
	}
	return true, wire.Malformed
}

// ready says whether there is a packet to send.
func (t *target) ready() bool {
	return t.confirm || t.ack || t.answers.len() > 0 || t.asked.len() > 0
}

func (t *target) next(b []byte) ([]byte, fabric.Class, bool) {
	for t.ready() {
		switch {
		case t.confirm:
			t.confirm = false
			h := t.header(wire.TypeConfirm, t.peer, t.life, t.epoch, wire.JobKey)
			var words [wire.MaxWords]uint64
			return wire.AppendConfirm(h.Append(b), t.records.base, t.marked(words[:0], done)), fabric.Control, true
		case t.answers.len() > 0:
			sequence := *t.answers.first()
			t.answers.pop()
			if t.records.has(sequence) { // else its notification has been given
				return t.answered(b, sequence), fabric.Control, true
			}
		case t.ack:
			t.ack = false
			h := t.header(wire.TypeAck, t.peer, t.life, t.epoch, wire.JobKey)
			var received, refusals [wire.MaxWords]uint64
			return wire.AppendAck(h.Append(b), t.numbers.base, t.numbers.appendFrom(received[:0]), t.records.base, t.refused(refusals[:0])), fabric.Control, true
		default:
			if packet, class, ok := t.part(b); ok {
				return packet, class, true
			}
		}
	}
	return nil, 0, false
}

// answered is the packet that says what became of an operation.
func (t *target) answered(b []byte, sequence uint64) []byte {
	r := t.records.at(sequence)
	r.queued = false
	h := t.header(wire.TypeAnswer, t.peer, t.life, t.epoch, r.key)
	a := wire.Answer{Number: r.number, Sequence: sequence, Value: r.value, Reason: r.reason, Data: r.reply}
	return a.Append(h.Append(b))
}

// marked marks the operations of a state.
func (t *target) marked(words []uint64, state recordState) []uint64 {
	for sequence := t.records.base; sequence < t.records.end; sequence++ {
		i := int(sequence - t.records.base)
		if i%64 == 0 {
			words = append(words, 0)
		}
		if t.records.at(sequence).state == state {
			words[i/64] |= 1 << (i % 64)
		}
	}
	return words
}

// refused marks the operations that are refused, without looking for them where there are none.
func (t *target) refused(words []uint64) []uint64 {
	if t.refusals == 0 {
		return words
	}
	words = t.marked(words, refused)
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	t.refusals = len(words) // none are left, or there is something to look for
	return words
}

// part sends the next packet of data, as the memory is now.
func (t *target) part(b []byte) ([]byte, fabric.Class, bool) {
	w := t.asked.first()
	at, length := w.Part(w.sent)
	d := wire.DataPart{Number: w.Number + uint64(w.sent), Sequence: w.Sequence, At: at}
	class := fabric.Control
	if w.Count > 1 {
		class = fabric.Bulk
	}
	h := t.header(wire.TypeData, t.peer, t.life, t.epoch, w.key)
	b = d.AppendData(h.Append(b))
	packet := b[:min(len(b)+int(length), cap(b))]
	order, window, offset, key := w.Order, w.Window, w.Offset, w.key
	w.sent++
	t.data--
	if w.sent == w.Run {
		t.asked.pop()
	}
	if order.Sequence < t.records.base {
		return nil, 0, false // its notification has been given
	}
	reason := wire.Length // the initiator's packets are longer than ours
	if len(packet) == len(b)+int(length) && len(packet)+wire.TagLength <= t.MTU(t.peer) {
		memory := t.Memory(t.peer, key)
		reason = wire.Credential
		if memory != nil {
			reason = wire.ReasonOf(memory.Read(window, offset+at, packet[len(b):]))
		}
	}
	if reason != wire.OK { // it was allowed when it was asked for: the window has closed since
		t.Drop(reason)
		t.refuse(t.records.reach(order.Sequence), key, &order, reason)
		t.ack = true
		return nil, 0, false
	}
	t.counters.Executed++
	return packet, class, true
}

// trailing is the number of the lowest mark of a word.
func trailing(word uint64) uint64 { return uint64(bits.TrailingZeros64(word)) }
