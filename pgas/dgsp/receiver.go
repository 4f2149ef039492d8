package dgsp

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/pkg/errors"
)

// The receiving end. The path of a message through it:
//
//	incomplete   description packets are put together; data waits in the early-arrival queue
//	waiting      the program is complete, but what is in use leaves no room for it in the cache
//	asking       the shell was told of it (Described), and has not answered
//	placing      accepted: what waited is scattered, and all that comes
//	over         all data is in its place, or the message was refused
//
// Whatever is in the way of a packet, it is dropped, and counted: what has not arrived is sent
// again. Only what the receiver has taken does it report as taken, so nothing is lost, and nothing
// is scattered twice.

// Limits bound the memory of a Receiver, in bytes.
type Limits struct {
	Early       int // data that waits for its description
	Description int // descriptions that are being put together, each at most half of it
	Cache       int // programs, each at most half of it
}

// DefaultLimits suit a task with many partners.
func DefaultLimits() Limits { return Limits{Early: 4 << 20, Description: 4 << 20, Cache: 16 << 20} }

// openMessages is how many messages of a pair may be under way beyond the oldest that is not over.
const openMessages = 64

// Peer names who sends messages. What it stands for is up to the shell.
type Peer uint64

// EffectKind is what the shell is to do.
type EffectKind uint8

const (
	// Described: a message's description is complete. The shell answers Accept or Refuse, in the
	// passive form (Handler 0) after it has seen that the window takes the program's bounds at
	// Base, in the active form as the handler says.
	Described EffectKind = iota + 1
	// Scatter: put Data, which begins at packed position From, where Program has it, with
	// Base in the window, or in what the handler named.
	Scatter
	// Complete: all data of the message is in its place. Said once.
	Complete
)

// A message that asks for data is Described like others. When the shell has accepted it, and what was
// asked for is where it was wanted, it says so with Served, or says Refuse; there is no Complete.

// Effect is what the shell is to do, in the order in which effects come. Data and Header are valid
// until the next call of Step.
type Effect struct {
	Kind    EffectKind
	Peer    Peer
	Number  Number
	Window  uint32
	Base    int
	Handler uint32
	Header  []byte  // of Described
	Handle  *Handle // of Described
	Program *Program
	Ask     bool   // of Described: the data is wanted, see Served
	From    int    // of Scatter
	Data    []byte // of Scatter
}

// Counts are what a Receiver has done since its start.
type Counts struct {
	Placed    int // messages
	Served    int // messages that asked for data
	Refused   int
	Malformed int // packets that are none, or contradict their message
	Repeated  int // packets that had arrived before
	Stale     int // packets of messages that are over for both ends
	QueueFull int // data packets dropped: no room in the early-arrival queue
	NoRoom    int // description packets dropped: no room to put them together
	Unknown   int // layouts that were named but not held
	Hits      int // and that were held
}

// Receiver takes the messages of any number of peers. It belongs to one goroutine.
type Receiver struct {
	limits      Limits
	cache       *cache
	early       int // bytes in the queue
	description int // bytes that are being put together
	peers       map[Peer]*origin
	waiting     []*incoming // for room in the cache
	due         []*incoming // reports
	late        []lateReport
	effects     []Effect
	counts      Counts
}

// origin is a peer that sends.
type origin struct {
	next     Number // the highest number seen, and one
	open     map[Number]*incoming
	outcomes [openMessages]outcome // of messages that are over, by number
}

type outcome struct {
	number Number
	over   bool
	reason Reason
}

// lateReport answers a packet of a message that is over.
type lateReport struct {
	peer Peer
	head head
}

type stage uint8

const (
	stageIncomplete stage = iota
	stageWaiting
	stageAsking
	stagePlacing
	stageOver
)

// incoming is a message under way.
type incoming struct {
	peer    Peer
	number  Number
	stage   stage
	unknown bool // the last description packet named a layout that is not here
	due     bool // a report
	echo    uint32

	sizes                    // chunk 0: not known yet
	pendingData int          // packets that have not come
	arrived     arrived      // data packets
	early       []earlyPart  // data that waits for the description
	meta        *description // of the first description packet
	header      []byte
	wire        []byte // of the program, while it is put together
	pending     int    // description packets that have not come
	pieces      []bool // those that have
	program     *Program
	entry       *entry
	handle      *Handle
	served      bool // what it asks for
}

type earlyPart struct {
	from int
	data []byte
}

// NewReceiver makes the receiving end of a task.
func NewReceiver(limits Limits) *Receiver {
	return &Receiver{limits: limits, cache: newCache(limits.Cache), peers: map[Peer]*origin{}}
}

// Counts are those since the start.
func (r *Receiver) Counts() Counts { return r.counts }

// Memory is what the receiver holds for others: bytes in the early-arrival queue, of descriptions
// that are not complete, and of cached programs. Each stays within its limit.
func (r *Receiver) Memory() Limits {
	return Limits{Early: r.early, Description: r.description, Cache: r.cache.used}
}

// Pending counts the packets of a message that have not come, those of its description apart from
// those of its data; -1: none of that kind has come, or the message is not under way.
func (r *Receiver) Pending(peer Peer, number Number) (description, data int) {
	if o := r.peers[peer]; o != nil && o.open[number] != nil {
		return o.open[number].pendings()
	}
	return -1, -1
}

func (m *incoming) pendings() (description, data int) {
	description, data = -1, -1
	if m.meta != nil {
		description = m.pending
	}
	if m.chunk > 0 {
		data = m.pendingData
	}
	return description, data
}

// Step takes a packet of a peer. What is to be done stands in Effects afterwards, what is to be said
// in NextReport. The error says why a packet was dropped that no correct sender sends.
func (r *Receiver) Step(peer Peer, packet []byte) error {
	var h head
	rest, err := h.decode(packet)
	if err == nil && h.kind == reports {
		err = errors.WithMessage(ErrPacket, "a report for a sender")
	}
	var d description
	var c carried
	if err == nil && h.kind == describes {
		err = d.decode(rest)
	} else if err == nil {
		err = c.decode(rest)
	}
	if err != nil {
		r.counts.Malformed++
		return err
	}
	m := r.message(peer, &h)
	if m == nil {
		return nil
	}
	s := d.sizes
	if h.kind == carries {
		s = c.sizes
	}
	if m.chunk > 0 && m.sizes != s {
		r.counts.Malformed++
		return errors.WithMessagef(ErrPacket, "message %d of peer %d has %d bytes in one packet, %d in another", h.number, peer, m.size, s.size)
	}
	if m.chunk == 0 {
		m.sizes = s
		m.pendingData = s.packets()
	}
	m.echo = h.sent
	if h.kind == describes {
		err = r.describe(m, &d)
	} else {
		r.carry(m, &c)
	}
	r.report(m)
	return err
}

// message finds the message of a packet, or begins it. Nil: it is over.
func (r *Receiver) message(peer Peer, h *head) *incoming {
	o := r.peers[peer]
	if o == nil {
		o = &origin{open: map[Number]*incoming{}}
		r.peers[peer] = o
	}
	if m := o.open[h.number]; m != nil {
		return m
	}
	if h.number+openMessages < o.next {
		r.counts.Stale++ // its sender knows the outcome: else it would not have begun a message so much later
		return nil
	}
	if known := o.outcomes[h.number%openMessages]; known.over && known.number == h.number {
		r.counts.Repeated++
		r.answerLate(peer, h.sent, known)
		return nil
	}
	m := &incoming{peer: peer, number: h.number}
	o.open[h.number] = m
	if h.number >= o.next {
		o.next = h.number + 1
		r.abandon(o)
	}
	return m
}

// abandon ends messages that are too old to be under way, which a correct sender never leaves: what is
// held for a peer is bounded whatever it sends.
func (r *Receiver) abandon(o *origin) {
	if len(o.open) <= openMessages {
		return
	}
	for _, m := range o.open {
		if m.number+openMessages < o.next {
			r.refuse(m, HandlerChoice)
		}
	}
}

func (r *Receiver) answerLate(peer Peer, echo uint32, known outcome) {
	const most = 4096
	if len(r.late) < most { // else the sender asks again
		r.late = append(r.late, lateReport{peer, head{kind: reports, state: known.state(), reason: known.reason, sent: echo, number: known.number}})
	}
}

func (o outcome) state() state {
	if o.reason != NoReason {
		return refused
	}
	return done
}

// ---- descriptions -------------------------------------------------------------------------------

// describe takes a part of a description.
func (r *Receiver) describe(m *incoming, d *description) error {
	if m.stage != stageIncomplete {
		r.counts.Repeated++
		return nil
	}
	if d.wire == 0 {
		r.named(m, d)
		return nil
	}
	if d.wire > r.limits.Description/2 {
		r.refuse(m, TooLarge)
		return nil
	}
	if m.meta == nil {
		if r.description+d.wire > r.limits.Description {
			r.counts.NoRoom++
			return nil
		}
		r.description += d.wire
		m.begin(d)
	} else if m.meta.contradicts(d) {
		r.counts.Malformed++
		return errors.WithMessagef(ErrPacket, "two descriptions of message %d of peer %d", m.number, m.peer)
	}
	m.unknown = false
	if m.pieces[d.index] {
		r.counts.Repeated++
		return nil
	}
	m.pieces[d.index] = true
	m.pending--
	copy(m.wire[d.index*d.pieceSize:], d.piece)
	if m.pending == 0 {
		r.complete(m)
	}
	return nil
}

// begin makes room for a description, whichever of its packets came first.
func (m *incoming) begin(d *description) {
	m.note(d)
	m.pending = d.pieces()
	m.pieces = make([]bool, m.pending)
	m.wire = make([]byte, d.wire)
}

func (m *incoming) note(d *description) {
	meta := *d
	m.header = append([]byte(nil), d.header...)
	meta.header, meta.piece = nil, nil
	m.meta = &meta
}

func (d *description) contradicts(other *description) bool {
	return d.hash != other.hash || d.base != other.base || d.window != other.window || d.handler != other.handler ||
		d.wire != other.wire || d.pieceSize != other.pieceSize || d.asks != other.asks
}

// named takes a description that only names its layout.
func (r *Receiver) named(m *incoming, d *description) {
	if m.meta != nil {
		r.counts.Repeated++ // and the layout is being sent by now
		return
	}
	e := r.cache.find(d.hash)
	if e == nil {
		r.counts.Unknown++
		m.unknown = true
		return
	}
	r.counts.Hits++
	m.note(d)
	m.entry, m.program = e, e.program
	r.ask(m)
}

// complete makes the program of a description all of whose parts are here.
func (r *Receiver) complete(m *incoming) {
	if hashOf(m.wire) != m.meta.hash {
		r.refuse(m, BadProgram)
		return
	}
	if e := r.cache.find(m.meta.hash); e != nil { // another message brought it meanwhile
		m.entry, m.program = e, e.program
		r.forgetWire(m)
		r.ask(m)
		return
	}
	program, err := Decode(m.wire, r.cache.largest())
	if err != nil {
		r.refuse(m, BadProgram)
		return
	}
	m.program = program
	m.stage = stageWaiting
	r.waiting = append(r.waiting, m)
	r.admit()
}

// admit lets those in that wait for room in the cache, the first first.
func (r *Receiver) admit() {
	for len(r.waiting) > 0 {
		m := r.waiting[0]
		if m.stage != stageWaiting {
			r.waiting = r.waiting[1:]
			continue
		}
		e := r.cache.admit(m.program)
		if e == nil {
			return
		}
		r.waiting = r.waiting[1:] // before asking, which may end the message and come here again
		r.forgetWire(m)
		m.entry, m.program = e, e.program
		r.ask(m)
		r.report(m)
	}
}

func (r *Receiver) forgetWire(m *incoming) {
	r.description -= len(m.wire)
	m.wire, m.pieces = nil, nil
}

// release lets go of a use of a program.
func (r *Receiver) release(e *entry) {
	r.cache.unpin(e)
	r.admit()
}

func (r *Receiver) ask(m *incoming) {
	m.stage = stageAsking
	if !m.meta.asks && m.program.Size() != m.size {
		r.refuse(m, SizeDiffers)
		return
	}
	m.handle = &Handle{receiver: r, entry: m.entry, message: true}
	e := m.effect(Described)
	e.Header, e.Handle, e.Ask = m.header, m.handle, m.meta.asks
	r.effects = append(r.effects, e)
}

func (m *incoming) effect(kind EffectKind) Effect {
	return Effect{Kind: kind, Peer: m.peer, Number: m.number, Window: m.meta.window, Base: m.meta.base, Handler: m.meta.handler,
		Program: m.program}
}

// ---- data ---------------------------------------------------------------------------------------

// carry takes a part of the data.
func (r *Receiver) carry(m *incoming, c *carried) {
	if m.arrived.has(c.index) {
		r.counts.Repeated++
		return
	}
	if !m.arrived.takes(c.index) {
		r.counts.QueueFull++ // further ahead than any sender goes
		return
	}
	if m.stage == stagePlacing {
		r.scatter(m, c.from(), c.data)
	} else if r.early+earlyCost(c.data) > r.limits.Early {
		r.counts.QueueFull++
		return
	} else {
		r.early += earlyCost(c.data)
		m.early = append(m.early, earlyPart{c.from(), append([]byte(nil), c.data...)})
	}
	m.arrived.add(c.index)
	m.pendingData--
	r.finish(m)
}

// earlyCost is what a part costs in the queue: its data, and what says where it belongs.
func earlyCost(data []byte) int { return len(data) + 64 }

func (r *Receiver) scatter(m *incoming, from int, data []byte) {
	e := m.effect(Scatter)
	e.From, e.Data = from, data
	r.effects = append(r.effects, e)
}

// finish ends a message whose description and data are all there.
func (r *Receiver) finish(m *incoming) {
	switch {
	case m.stage != stagePlacing || m.pendingData > 0 || m.meta.asks && !m.served:
		return
	case !m.meta.asks:
		r.effects = append(r.effects, m.effect(Complete))
		r.counts.Placed++
	default:
		r.counts.Served++
	}
	r.over(m, NoReason)
}

// ---- what the shell says ------------------------------------------------------------------------

// under is a message that waits for an answer or is being placed.
func (r *Receiver) under(peer Peer, number Number) *incoming {
	if o := r.peers[peer]; o != nil {
		return o.open[number]
	}
	return nil
}

// Accept answers Described: data is to be scattered.
func (r *Receiver) Accept(peer Peer, number Number) error {
	m := r.under(peer, number)
	if m == nil || m.stage != stageAsking {
		return errors.Errorf("message %d of peer %d does not wait for an answer", number, peer)
	}
	m.stage = stagePlacing
	for _, part := range m.early {
		r.scatter(m, part.from, part.data)
	}
	r.forgetEarly(m)
	r.report(m)
	r.finish(m)
	return nil
}

// Served ends a message that asked for data, which is there now.
func (r *Receiver) Served(peer Peer, number Number) error {
	m := r.under(peer, number)
	if m == nil || m.stage != stagePlacing || !m.meta.asks {
		return errors.Errorf("message %d of peer %d does not wait for data", number, peer)
	}
	m.served = true
	r.finish(m)
	return nil
}

// Refuse answers Described, or ends a message while it is being placed: its sender is told the
// reason.
func (r *Receiver) Refuse(peer Peer, number Number, reason Reason) error {
	m := r.under(peer, number)
	if m == nil || m.stage != stageAsking && m.stage != stagePlacing || reason == NoReason || reason >= reasons {
		return errors.Errorf("message %d of peer %d can't be refused", number, peer)
	}
	r.refuse(m, reason)
	r.report(m)
	return nil
}

// Peers are those of whose messages something is known.
func (r *Receiver) Peers() iter.Seq[Peer] { return maps.Keys(r.peers) }

// Forget drops all that a peer has sent: it has ended, or begins anew. Its messages are over without
// a word; data of theirs that was scattered stays.
func (r *Receiver) Forget(peer Peer) {
	o := r.peers[peer]
	if o == nil {
		return
	}
	for _, m := range o.open {
		r.over(m, HandlerChoice)
	}
	delete(r.peers, peer)
	r.late = slices.DeleteFunc(r.late, func(l lateReport) bool { return l.peer == peer })
}

func (r *Receiver) refuse(m *incoming, reason Reason) {
	r.counts.Refused++
	r.over(m, reason)
}

func (r *Receiver) forgetEarly(m *incoming) {
	for _, part := range m.early {
		r.early -= earlyCost(part.data)
	}
	m.early = nil
}

// over ends a message and gives back what it holds; its outcome stays known for as long as its
// sender may ask.
func (r *Receiver) over(m *incoming, reason Reason) {
	r.forgetEarly(m)
	r.forgetWire(m)
	m.stage = stageOver
	o := r.peers[m.peer]
	delete(o.open, m.number)
	known := outcome{m.number, true, reason}
	o.outcomes[m.number%openMessages] = known
	if m.handle != nil {
		m.handle.message = false
	}
	r.answerLate(m.peer, m.echo, known)
	if m.entry != nil {
		r.release(m.entry)
	}
}

// ---- effects and reports ------------------------------------------------------------------------

// Effects returns what the shell is to do, and forgets it. The slice is valid until the next call of
// Step, Accept or Refuse.
func (r *Receiver) Effects() []Effect {
	e := r.effects
	r.effects = r.effects[len(r.effects):]
	return e
}

func (r *Receiver) report(m *incoming) {
	if !m.due && m.stage != stageOver {
		m.due = true
		r.due = append(r.due, m)
	}
}

// NextReport appends a packet that is to go to a peer, and returns it with that peer's number; ok is
// false when there is nothing to say. A shell sends reports when it has taken what had arrived.
func (r *Receiver) NextReport(packet []byte) (peer Peer, reported []byte, ok bool) {
	if len(r.late) > 0 {
		l := r.late[0]
		r.late = r.late[1:]
		return l.peer, (&report{pendingDescription: -1, pendingData: -1}).append(l.head.append(packet)), true
	}
	for len(r.due) > 0 {
		m := r.due[0]
		r.due = r.due[1:]
		m.due = false
		if m.stage == stageOver {
			continue // that was said
		}
		h := head{kind: reports, sent: m.echo, number: m.number}
		var said report
		said.pendingDescription, said.pendingData = m.pendings()
		switch {
		case m.stage > stageIncomplete:
			h.state = described
		case m.unknown:
			h.state = unknown
		}
		said.description = m.piecesArrived()
		said.data = m.arrived.received
		return m.peer, said.append(h.append(packet)), true
	}
	return 0, nil, false
}

func (m *incoming) piecesArrived() (r received[uint64]) {
	for r.first < len(m.pieces) && m.pieces[r.first] {
		r.first++
	}
	for i := r.first; i < len(m.pieces) && i < r.first+64; i++ {
		if m.pieces[i] {
			r.marks |= 1 << (i - r.first)
		}
	}
	return r
}

// arrived are the data packets that have come.
type arrived struct {
	received[[windowWords]uint64]
}

func (a *arrived) takes(index int) bool { return index < a.first+window }

func (a *arrived) has(index int) bool {
	i := index - a.first
	return i < 0 || i < window && a.marks[i/64]>>(i%64)&1 != 0
}

func (a *arrived) add(index int) {
	i := index - a.first
	a.marks[i/64] |= 1 << (i % 64)
	if i == 0 {
		a.advance()
	}
}

// advance moves first to the first packet that is missing.
func (a *arrived) advance() {
	n := 0
	for _, w := range a.marks {
		ones := bits.TrailingZeros64(^w)
		n += ones
		if ones < 64 {
			break
		}
	}
	a.first += n
	words, shift := n/64, n%64
	var moved [windowWords]uint64
	for i := words; i < windowWords; i++ {
		moved[i-words] = a.marks[i] >> shift
		if i+1 < windowWords {
			moved[i-words] |= a.marks[i+1] << (64 - shift)
		}
	}
	a.marks = moved
}
