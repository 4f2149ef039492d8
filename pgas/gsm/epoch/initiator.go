package epoch

import (
	"math"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// initiator is the state of the directed pair in which this task commands and peer executes.
type initiator struct {
	*Endpoint
	pair  *pair
	life  wire.Life   // of the target, 0 until its first Confirm
	ended wire.Reason // not OK: no operation is taken any more

	// The epoch, and whether the target has still to confirm it.
	epoch   uint64
	raising bool
	ask     bool          // a Raise is to be sent
	asked   int           // how many were sent for this epoch,
	askedAt time.Duration // the last of them
	askAt   time.Duration // when to send the next one
	vain    int           // epochs in a row in which nothing was finished

	// Operations by sequence. Those below base have had their notification.
	operations window[operation]
	cursor     [fabric.Classes]uint64 // the next operation of each class that may have packets never sent in this epoch

	// Packets by number.
	flights  window[flight]
	inFlight int    // sent, and neither finished nor taken for lost
	lost     int    // taken for lost, and not sent again yet
	lostFrom uint64 // none below is lost
	// Transmissions of each kind so far in this epoch, and the last of them that is known to have arrived.
	order, newest [kinds]uint64

	congestion congestion
	timing     timing
	timeouts   int           // in a row
	timerAt    time.Duration // when what is in flight should have been answered
	overtaken  time.Duration // when the first of what has been overtaken is taken for lost; never: nothing has
	silentAt   time.Duration // when the target has been silent for too long
}

// operation is one that the initiator has taken. While it waits for the notification it may be started again from its
// beginning by a new epoch.
type operation struct {
	Command
	count    uint32 // packets of data, (sequence, count) in the description
	next     uint32 // the first that was not sent in this epoch
	out      uint32 // sent in this epoch and not finished
	part     uint32 // bytes in each packet but the last
	number   uint64 // of the packet of an atomic or message
	reason   wire.Reason
	notified bool
}

// flight is a packet, or one of a run, of the current epoch.
type flight struct {
	sequence uint64
	index    uint32 // which packet of the operation
	state    flightState
	again    bool // it was sent more than once
	sentAt   time.Duration
	order    uint64 // which transmission of its kind the last was
}

type flightState uint8

const (
	finished flightState = iota
	flying
	missing // taken for lost
)

// kind is the way in which a packet is answered. A target answers in another order than it is asked, but each kind in
// turn.
type kind uint8

const (
	byAck kind = iota
	byData
	byAnswer
	kinds
)

func kindOf(op wire.Op) kind {
	switch op {
	case wire.Put:
		return byAck
	case wire.Get:
		return byData
	}
	return byAnswer
}

func newInitiator(e *Endpoint, p *pair) *initiator {
	return &initiator{
		Endpoint: e, pair: p, epoch: e.First, raising: true, ask: true, silentAt: never, timerAt: never, overtaken: never,
		congestion: congestion{window: e.LeastWindow},
	}
}

func classOf(o *operation) fabric.Class {
	if o.count > 1 {
		return fabric.Bulk
	}
	return fabric.Control
}

func (i *initiator) submit(now time.Duration, c Command) error {
	switch {
	case i.ended != wire.OK:
		return i.ended
	case i.operations.len() >= i.Operations+i.Queue:
		return ErrFull
	case i.operations.end == math.MaxUint64:
		return errors.Wrapf(wire.Exhausted, "task %d", i.pair.peer)
	}
	part := uint64(i.part(c.Peer))
	count := uint64(1)
	if c.Op == wire.Put || c.Op == wire.Get {
		count = max(1, (uint64(len(c.Data))+part-1)/part)
	}
	if i.operations.len() == 0 {
		i.silentAt = now + i.Silence
	}
	*i.operations.reach(i.operations.end) = operation{Command: c, count: uint32(count), part: uint32(part)}
	return nil
}

// ready says whether there is a packet to send now.
func (i *initiator) ready() bool {
	if i.operations.len() == 0 {
		return false
	}
	if i.raising {
		return i.ask
	}
	if i.lost > 0 && i.room(fabric.Control) {
		return true
	}
	for class := range fabric.Class(fabric.Classes) {
		if i.room(class) && i.unsent(class) != nil {
			return true
		}
	}
	return false
}

// Control packets may go that far beyond the window, so that they need not wait behind bulk data.
const controlReserve = 8

// room says whether the windows have place for one more packet of a class.
func (i *initiator) room(class fabric.Class) bool {
	window := i.congestion.window
	if class == fabric.Control {
		window += controlReserve
	}
	return i.inFlight < window
}

// lastNumber is the last that begins a packet, for a run of numbers must not roll over.
const lastNumber = math.MaxUint64 - wire.MaxRun

// mostWindow is how many packets may be under way, as far as the windows go and what the network and the target's
// buffers should have to hold.
func (i *initiator) mostWindow(o *operation) int {
	if i.MostData == 0 {
		return i.Packets
	}
	return min(i.Packets, max(i.MostData/int(o.part), i.LeastWindow))
}

// unsent is the next operation of a class that has packets which were never sent in this epoch, and may send them.
func (i *initiator) unsent(class fabric.Class) *operation {
	// The target keeps so many places for numbers and for sequences.
	if i.flights.len() >= i.Packets || i.flights.end > lastNumber {
		return nil
	}
	last := min(i.operations.end, i.operations.base+uint64(i.Operations))
	cursor := &i.cursor[class]
	for *cursor = max(*cursor, i.operations.base); *cursor < last; *cursor++ {
		o := i.operations.at(*cursor)
		if classOf(o) == class && !o.notified && o.reason == wire.OK && o.next < o.count {
			return o
		}
	}
	return nil
}

func (i *initiator) next(now time.Duration, b []byte) ([]byte, fabric.Class, bool) {
	if !i.ready() {
		return nil, 0, false
	}
	if i.raising {
		i.ask = false
		i.asked++
		i.askedAt, i.askAt = now, now+i.timing.timeout(&i.Config)
		h := i.header(wire.TypeRaise, i.pair.peer, i.life, i.epoch, wire.JobKey)
		return (&wire.Raise{Floor: i.operations.base}).Append(h.Append(b)), fabric.Control, true
	}
	if i.lost > 0 {
		return i.again(now, b)
	}
	for class := range fabric.Class(fabric.Classes) {
		if !i.room(class) {
			continue
		}
		if o := i.unsent(class); o != nil {
			number, sequence := i.flights.end, i.cursor[class]
			run := uint32(1)
			if o.Op == wire.Get {
				run = i.run(o)
			}
			for k := range run {
				*i.flights.reach(number + uint64(k)) = flight{sequence: sequence, index: o.next + k}
			}
			if o.Op == wire.Message || o.Op.Atomic() {
				o.number = number
			}
			o.next += run
			o.out += run
			return i.transmit(now, b, number, run), class, true
		}
	}
	return nil, 0, false
}

// run is how many packets of data a GET asks for at once: enough to spare requests, and no more than the windows allow.
func (i *initiator) run(o *operation) uint32 {
	room := min(i.congestion.window-i.inFlight, i.Packets-i.flights.len(), wire.MaxRun)
	return min(uint32(max(room, 1)), o.count-o.next)
}

// again sends what was taken for lost, under its old number.
func (i *initiator) again(now time.Duration, b []byte) ([]byte, fabric.Class, bool) {
	number := max(i.lostFrom, i.flights.base)
	for i.flights.at(number).state != missing {
		number++
	}
	f := *i.flights.at(number)
	o := i.operations.at(f.sequence)
	run := uint32(1)
	if o.Op == wire.Get {
		for run < wire.MaxRun && i.flights.has(number+uint64(run)) {
			if n := i.flights.at(number + uint64(run)); n.state != missing || n.sequence != f.sequence {
				break
			}
			run++
		}
	}
	i.lost -= int(run)
	i.lostFrom = number + uint64(run)
	i.counters.Resent++
	return i.transmit(now, b, number, run), classOf(o), true
}

// transmit encodes the packet of a number, or that of a run of numbers of a GET.
func (i *initiator) transmit(now time.Duration, b []byte, number uint64, run uint32) []byte {
	if i.inFlight == 0 {
		i.timerAt = now + i.timing.timeout(&i.Config)
	}
	f := i.flights.at(number)
	o := i.operations.at(f.sequence)
	kind := kindOf(o.Op)
	for k := range uint64(run) {
		f := i.flights.at(number + k)
		i.order[kind]++
		f.again = f.state == missing
		f.state, f.sentAt, f.order = flying, now, i.order[kind]
	}
	i.inFlight += int(run)

	order := wire.Order{Number: number, Sequence: f.sequence, Floor: i.operations.base}
	h := i.header(0, i.pair.peer, i.life, i.epoch, o.Key)
	switch {
	case o.Op == wire.Put:
		h.Type = wire.TypePut
		at, data := o.slice(f.index)
		return (&wire.PutPart{Order: order, Extent: o.extent(), At: at, Handler: o.Handler, Data: data}).Append(h.Append(b))
	case o.Op == wire.Get:
		h.Type = wire.TypeGet
		at, _ := o.slice(f.index)
		return (&wire.GetPart{Order: order, Extent: o.extent(), At: at, Stride: o.part, Run: run}).Append(h.Append(b))
	case o.Op == wire.Message:
		h.Type = wire.TypeMessage
		return (&wire.ActiveMessage{Order: order, Handler: o.Handler, Data: o.Data}).Append(h.Append(b))
	}
	h.Type = wire.TypeAtomic
	a := wire.Atomic{
		Order: order, Window: o.Window, Op: o.Op, Width: uint8(o.Width), Offset: o.Offset, Operand: o.Operand, Compare: o.Compare,
	}
	return a.Append(h.Append(b))
}

func (o *operation) extent() wire.Extent {
	return wire.Extent{Window: o.Window, Count: o.count, Offset: o.Offset, Length: uint64(len(o.Data))}
}

// slice is a packet's part of the operation's data.
func (o *operation) slice(index uint32) (at uint64, data []byte) {
	at = uint64(index) * uint64(o.part)
	return at, o.Data[at:min(at+uint64(o.part), uint64(len(o.Data)))]
}

func (i *initiator) receive(now time.Duration, h *wire.Header, body []byte) wire.Reason {
	if i.life != 0 && h.SourceLife != i.life {
		return wire.EarlierLife
	}
	if h.Epoch != i.epoch || i.raising != (h.Type == wire.TypeConfirm) {
		return wire.Stale
	}
	reason := wire.Malformed
	switch h.Type {
	case wire.TypeConfirm:
		var c wire.Confirm
		if c.Decode(body) {
			i.life = h.SourceLife
			reason = i.confirmed(now, &c)
		}
	case wire.TypeAck:
		var a wire.Ack
		if a.Decode(body) {
			reason = i.acked(now, &a)
		}
	case wire.TypeData:
		var d wire.DataPart
		if d.Decode(body) {
			reason = i.arrived(now, &d)
		}
	case wire.TypeAnswer:
		var a wire.Answer
		if a.Decode(body) {
			reason = i.answered(now, &a)
		}
	}
	// A target that confirms one epoch after the other, and takes nothing else, is as good as silent: it may not have the
	// key of what it gets.
	const many = 2
	if reason != wire.Malformed && i.operations.len() > 0 && (h.Type != wire.TypeConfirm || i.vain < many) {
		i.silentAt = now + i.Silence
	}
	return reason
}

// confirmed: the target has cleared what belonged to older epochs, and says what it need not get again.
func (i *initiator) confirmed(now time.Duration, c *wire.Confirm) wire.Reason {
	i.raising, i.ask = false, false
	if i.asked == 1 {
		i.timing.measure(now - i.askedAt)
	}
	i.timing.backoff, i.timeouts = 0, 0
	for n := range uint64(c.Done.Len()) {
		sequence := c.Floor + n
		if !c.Done.Get(n) || !i.operations.has(sequence) {
			continue
		}
		if o := i.operations.at(sequence); o.Op == wire.Put {
			i.vain = 0
			i.notify(o, wire.OK, 0, nil)
		}
	}
	i.pass()
	return wire.OK
}

// acked: packets of PUTs have arrived, or requests of a GET that was refused.
func (i *initiator) acked(now time.Duration, a *wire.Ack) wire.Reason {
	progress := false
	for number := i.flights.base; number < min(a.Base, i.flights.end); number++ {
		progress = i.landed(now, number, a) || progress
	}
	for w := range a.Received.Len() / 64 {
		first := a.Base + uint64(w)*64
		for word := a.Received.Word(w); word != 0; word &= word - 1 {
			if number := first + trailing(word); i.flights.has(number) {
				progress = i.landed(now, number, a) || progress
			}
		}
	}
	if !progress {
		return wire.Repeated
	}
	i.progress(now)
	return wire.OK
}

// landed is about one number of an Ack. Numbers of GETs, atomics and messages have been seen by the target, but are only
// finished by what they ask for.
func (i *initiator) landed(now time.Duration, number uint64, a *wire.Ack) bool {
	f := i.flights.at(number)
	if f.state == finished {
		return false
	}
	o := i.operations.at(f.sequence)
	if o.reason == wire.OK && (o.Op != wire.Put || a.Refused.Get(f.sequence-a.Floor)) {
		return false // the packet is sent again, and answered again, until the reason is known
	}
	if o.Op != wire.Put && o.Op != wire.Get {
		return false
	}
	i.finish(now, f)
	return true
}

// arrived: data of a GET.
func (i *initiator) arrived(now time.Duration, d *wire.DataPart) wire.Reason {
	if d.Sequence < i.operations.base {
		return wire.Late
	}
	if !i.flights.has(d.Number) {
		return wire.Repeated
	}
	f := i.flights.at(d.Number)
	if f.state == finished {
		return wire.Repeated
	}
	o := i.operations.at(f.sequence)
	if f.sequence != d.Sequence || o.Op != wire.Get {
		return wire.Malformed
	}
	at, into := o.slice(f.index)
	if at != d.At || len(into) != len(d.Data) {
		return wire.Malformed
	}
	copy(into, d.Data)
	i.finish(now, f)
	i.progress(now)
	return wire.OK
}

// answered: an atomic or a message has been executed, or the target refuses an operation.
func (i *initiator) answered(now time.Duration, a *wire.Answer) wire.Reason {
	if a.Sequence < i.operations.base {
		return wire.Late
	}
	if !i.operations.has(a.Sequence) {
		return wire.Malformed
	}
	o := i.operations.at(a.Sequence)
	if o.notified || o.reason != wire.OK {
		return wire.Repeated
	}
	if o.Op == wire.Put || o.Op == wire.Get {
		if a.Reason == wire.OK {
			return wire.Malformed
		}
		// Nothing more of it is sent for the first time. What is under way is acknowledged by its numbers, so that none is
		// missing at the target for ever.
		o.reason = a.Reason
		i.settle(o)
		i.progress(now)
		return wire.OK
	}
	if o.out == 0 || a.Number != o.number {
		return wire.Malformed
	}
	i.finish(now, i.flights.at(o.number))
	i.notify(o, a.Reason, a.Value, a.Data)
	i.progress(now)
	return wire.OK
}

// finish ends a flight.
func (i *initiator) finish(now time.Duration, f *flight) {
	if f.state == missing {
		i.lost--
	} else {
		i.inFlight--
	}
	f.state = finished
	o := i.operations.at(f.sequence)
	i.congestion.arrived(i.mostWindow(o))
	if !f.again {
		i.timing.measure(now - f.sentAt)
	}
	// Nobody knows which transmission of a packet that was sent again is answered: not the last, if less than a round trip
	// has passed. To believe so would have everything taken for lost that was sent in between.
	if !f.again || now-f.sentAt >= i.timing.smoothed {
		newest := &i.newest[kindOf(o.Op)]
		*newest = max(*newest, f.order)
	}
	o.out--
	i.settle(o)
}

// settle ends a PUT or GET of which nothing is missing, or nothing will come.
func (i *initiator) settle(o *operation) {
	if o.out == 0 && (o.Op == wire.Put || o.Op == wire.Get) && (o.next == o.count || o.reason != wire.OK) {
		i.notify(o, o.reason, 0, nil)
	}
}

// notify gives the operation's one notification. The floor follows with the next pass.
func (i *initiator) notify(o *operation, reason wire.Reason, value uint64, reply []byte) {
	if o.notified {
		return
	}
	o.notified = true
	n := Notification{Token: o.Token, Peer: o.Peer, Op: o.Op, Reason: reason, Value: value}
	if len(reply) > 0 {
		n.Reply = append([]byte(nil), reply...)
	}
	o.Data = nil
	i.notifications = append(i.notifications, n)
}

// pass moves the floor over operations that have had their notification.
func (i *initiator) pass() {
	for i.operations.len() > 0 && i.operations.at(i.operations.base).notified {
		i.operations.advance(i.operations.base + 1)
	}
	if i.operations.len() == 0 {
		i.silentAt = never
	}
}

// progress: something has arrived that was waited for.
func (i *initiator) progress(now time.Duration) {
	i.timeouts, i.timing.backoff, i.vain = 0, 0, 0
	for i.flights.len() > 0 && i.flights.at(i.flights.base).state == finished {
		i.flights.advance(i.flights.base + 1)
	}
	i.timerAt = never
	if i.inFlight > 0 {
		i.timerAt = now + i.timing.timeout(&i.Config)
	}
	i.pass()
	if i.flights.end > lastNumber { // numbers start again with the epoch, and never inside it
		i.raise()
		return
	}
	i.overtakes(now)
}

// A packet is taken for lost when one of its kind that was sent so many transmissions later has been answered, or any
// later one and clearly more than a round trip has passed (after RFC 9002, 6.1).
const reordering = 3

func (i *initiator) overtakes(now time.Duration) {
	i.overtaken = never
	if i.Repairs == 0 {
		return
	}
	patience := i.timing.smoothed + max(i.timing.smoothed/8, 2*i.timing.variation)
	for number := i.flights.base; number < i.flights.end; number++ {
		f := i.flights.at(number)
		if f.state != flying {
			continue
		}
		newest := i.newest[kindOf(i.operations.at(f.sequence).Op)]
		if f.order >= newest {
			continue
		}
		if newest-f.order >= reordering || f.sentAt+patience <= now {
			i.lose(number, f)
			i.congestion.lost(f.sentAt, now, i.LeastWindow)
		} else {
			i.overtaken = min(i.overtaken, f.sentAt+patience)
		}
	}
}

func (i *initiator) lose(number uint64, f *flight) {
	f.state = missing
	i.inFlight--
	i.lost++
	i.lostFrom = min(i.lostFrom, number)
}

// deadline is when advance has something to do.
func (i *initiator) deadline() time.Duration {
	switch {
	case i.operations.len() == 0:
		return never
	case i.raising && i.ask:
		return i.silentAt
	case i.raising:
		return min(i.silentAt, i.askAt)
	case i.inFlight == 0:
		return i.silentAt
	}
	return min(i.silentAt, i.timerAt, i.overtaken)
}

func (i *initiator) advance(now time.Duration) {
	switch {
	case i.operations.len() == 0:
	case i.silentAt <= now:
		i.fail(wire.Silent)
	case i.raising:
		if !i.ask && i.askAt <= now {
			i.ask = true
			i.timing.backoff++
		}
	case i.inFlight > 0 && i.timerAt <= now:
		i.timedOut(now)
	case i.overtaken <= now:
		i.overtakes(now)
	}
}

// timedOut: no answer came in time. What is as old as that goes out again, or all of it in a new epoch.
func (i *initiator) timedOut(now time.Duration) {
	timeout := i.timing.timeout(&i.Config)
	i.timeouts++
	i.timing.backoff++
	if i.timeouts > i.Repairs {
		i.raise()
		return
	}
	oldest := true
	for number := i.flights.base; number < i.flights.end; number++ {
		if f := i.flights.at(number); f.state == flying && (oldest || f.sentAt+timeout <= now) {
			i.lose(number, f)
			oldest = false
		}
	}
	i.congestion.timedOut(now, i.LeastWindow)
	i.timerAt = never
	if i.inFlight > 0 {
		i.timerAt = now + i.timing.timeout(&i.Config)
	}
}

// raise begins the next epoch: nothing but that is sent until the target has confirmed it, and then everything that it
// does not say is done starts from the beginning.
func (i *initiator) raise() {
	i.clear()
	for sequence := i.operations.base; sequence < i.operations.end; sequence++ {
		if o := i.operations.at(sequence); !o.notified {
			o.next, o.out = 0, 0
			if o.reason != wire.OK {
				i.notify(o, o.reason, 0, nil)
			}
		}
	}
	i.pass()
	if i.epoch == math.MaxUint64 {
		i.end(wire.Exhausted)
		return
	}
	i.epoch++
	i.vain++
	i.raising, i.ask, i.asked = true, true, 0
	i.counters.Raised++
}

// clear forgets the packets of the epoch.
func (i *initiator) clear() {
	i.flights = window[flight]{slots: i.flights.slots}
	clear(i.flights.slots)
	i.inFlight, i.lost, i.lostFrom = 0, 0, 0
	i.order, i.newest = [kinds]uint64{}, [kinds]uint64{}
	i.timerAt, i.overtaken, i.timeouts = never, never, 0
	i.cursor = [fabric.Classes]uint64{}
	i.congestion = congestion{window: i.LeastWindow}
}

// fail ends all operations under way. What the network still holds of them belongs to an epoch that is over.
func (i *initiator) fail(reason wire.Reason) {
	for sequence := i.operations.base; sequence < i.operations.end; sequence++ {
		i.notify(i.operations.at(sequence), reason, 0, nil)
	}
	i.pass()
	i.timing.backoff = 0
	if i.ended == wire.OK {
		i.raise()
	} else {
		i.clear()
	}
	i.vain = 0
}

// end fails all operations under way and takes no others.
func (i *initiator) end(reason wire.Reason) {
	if i.ended == wire.OK {
		i.ended = reason
		i.fail(reason)
	}
}
