package dgsp

import (
	"math/bits"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/pkg/errors"
)

// The sending end. Nothing waits for anything: the parts of the description go first, the data right
// behind them. A report of the receiver says what has arrived. A packet that is missing although one
// that was sent well after it has arrived is sent again (RFC 8985), or all that are missing once
// nothing has arrived for a time that follows from measured round trips (RFC 6298).

// Message is a transfer from one layout to another.
type Message struct {
	// Source places the data in Memory, at SourceBase. The memory must not change until the message
	// is over.
	Source     *Program
	Memory     []byte
	SourceBase int
	// Target places it at the receiver, at Base in Window, or where the handler says. The programs
	// must be of one size; their packed order says which byte goes where.
	Target *Program
	Window uint32
	Base   int
	// Handler, if not 0, is called at the target, with Header (at most MaxHeader bytes): the active
	// form.
	Handler uint32
	Header  []byte
	// Ask asks for the data instead: Target is where it lies at the receiver, which sends it in a
	// message of its own. There is no source and no handler then. The message is over when the
	// receiver says that it was served.
	Ask bool
}

// Times are the sender's patience.
type Times struct {
	First   time.Duration // to wait for a report before a round trip is known
	Least   time.Duration // to wait, at least
	Most    time.Duration // and at most, when nothing comes again and again
	Silence time.Duration // of the receiver, after which it is given up
}

// DefaultTimes suit networks from microseconds on.
func DefaultTimes() Times {
	return Times{First: 2 * time.Millisecond, Least: 100 * time.Microsecond, Most: 100 * time.Millisecond, Silence: 10 * time.Second}
}

// Errors that end messages.
var (
	// ErrSilent ends all messages to a task that has not reported for Times.Silence.
	ErrSilent = errors.New("the task does not answer")
	// ErrFull says that as many messages are under way as may be: wait for one to be over.
	ErrFull = errors.New("64 messages to the task are under way")
)

// Outcome is how a message ended. There is one for each, once.
type Outcome struct {
	Number Number
	Err    error // nil: all data is in its place at the target
}

// Sender sends messages to one task. It belongs to one goroutine.
type Sender struct {
	mtu      int
	times    Times
	open     []*outgoing // in the order of their numbers
	next     Number
	held     *lru.LRU[Hash, struct{}] // layouts that the receiver has said it has
	outcomes []Outcome
	failed   error

	round    roundTrip
	heard    time.Duration // the last report, or when the oldest message began
	progress time.Duration // when something was sent or arrived last: the timer starts there
	back     uint          // the timer has run out so many times in a row

	packets, again int
}

// outgoing is a message under way.
type outgoing struct {
	Message
	sizes
	number      Number
	over        bool
	naming      bool // its layout is only named
	described   bool
	description flight
	data        flight
	pieceSize   int
}

// NewSender makes the sending end to one task; packets have at most mtu bytes, at least MinMTU.
func NewSender(mtu int, times Times) (*Sender, error) {
	if mtu < MinMTU {
		return nil, errors.Errorf("packets of %d bytes are too short for a description: %d are needed", mtu, MinMTU)
	}
	const layouts = 4096
	held, err := lru.NewLRU[Hash, struct{}](layouts, nil)
	if err != nil {
		return nil, errors.Wrap(err, "remembering layouts")
	}
	return &Sender{mtu: mtu, times: times, held: held, round: roundTrip{timeout: times.First}}, nil
}

// Put begins a message. It refuses what can't be sent: nothing of that reaches the target.
func (s *Sender) Put(now time.Duration, m Message) (Number, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	size, err := m.check()
	if err != nil {
		return 0, err
	}
	if len(m.Header) > MaxHeader {
		return 0, errors.Errorf("a header of %d bytes: %d are the most", len(m.Header), MaxHeader)
	}
	if len(m.Header) > 0 && m.Handler == 0 {
		return 0, errors.New("a header without a handler to take it")
	}
	if len(s.open) > 0 && s.next-s.open[0].number >= openMessages {
		return 0, ErrFull
	}
	o := &outgoing{Message: m, number: s.next, pieceSize: s.mtu - describeLength - len(m.Header)}
	o.sizes = sizes{size, s.mtu - carryLength}
	if !o.sizes.valid() {
		return 0, errors.Errorf("%d bytes are more than a message can have in packets of %d", o.size, s.mtu)
	}
	o.data.count = o.packets()
	o.naming = s.held.Contains(m.Target.Hash())
	o.plan()
	if len(s.open) == 0 {
		s.heard, s.progress, s.back = now, now, 0
	}
	s.next++
	s.open = append(s.open, o)
	return o.number, nil
}

// check says how many bytes of data a message has, if it can be sent.
func (m *Message) check() (size int, err error) {
	switch {
	case m.Ask && (m.Target == nil || m.Source != nil || m.Handler != 0):
		return 0, errors.New("a message that asks for data has the program of where it lies, and no source and handler")
	case m.Ask:
		return 0, nil
	case m.Source == nil || m.Target == nil:
		return 0, errors.New("a message needs the programs of its source and its target")
	case m.Source.Size() != m.Target.Size():
		return 0, errors.Errorf("the source has %d bytes, the target %d", m.Source.Size(), m.Target.Size())
	}
	return m.Source.Size(), errors.WithMessage(m.Source.fits(m.Memory, m.SourceBase, 0, m.Source.Size()), "the source")
}

// plan lists the description packets.
func (o *outgoing) plan() {
	o.description = flight{count: o.wordsOf().pieces()}
}

// wordsOf is what the description packets have in common.
func (o *outgoing) wordsOf() *description {
	d := &description{sizes: o.sizes, hash: o.Target.Hash(), base: o.Base, window: o.Window, handler: o.Handler,
		pieceSize: o.pieceSize, asks: o.Ask, header: o.Header}
	if !o.naming {
		d.wire = len(o.Target.Wire())
	}
	return d
}

// Next appends the next packet to packet, or returns nil when none is to be sent now. It reads the
// memory of the message.
func (s *Sender) Next(now time.Duration, packet []byte) []byte {
	for _, o := range s.open {
		if i, again, ok := o.description.pick(now, descriptionWindow, true); ok {
			s.count(now, again)
			return s.describe(now, o, i, packet)
		}
		// Data that is missing may have been dropped because the description was: that goes first.
		if i, again, ok := o.data.pick(now, window, o.described); ok {
			s.count(now, again)
			return s.carry(now, o, i, packet)
		}
	}
	return nil
}

func (s *Sender) count(now time.Duration, again bool) {
	s.packets++
	s.progress = now
	if again {
		s.again++
	}
}

func stamp(now time.Duration) uint32 { return uint32(now / time.Microsecond) }

func (s *Sender) describe(now time.Duration, o *outgoing, index int, packet []byte) []byte {
	h := head{kind: describes, sent: stamp(now), number: o.number}
	d := o.wordsOf()
	d.index = index
	if d.wire > 0 {
		from := index * d.pieceSize
		d.piece = o.Target.Wire()[from:min(from+d.pieceSize, d.wire)]
	}
	return d.append(h.append(packet))
}

func (s *Sender) carry(now time.Duration, o *outgoing, index int, packet []byte) []byte {
	h := head{kind: carries, sent: stamp(now), number: o.number}
	c := carried{sizes: o.sizes, index: index}
	packet = c.append(h.append(packet))
	begin, length := len(packet), c.length()
	packet = append(packet, make([]byte, length)...)
	// Put has seen that the program stays in the memory, and both are constant.
	if err := o.Source.Gather(packet[begin:], o.Memory, o.SourceBase, c.from()); err != nil {
		panic(err)
	}
	return packet
}

// Step takes a report of the receiver.
func (s *Sender) Step(now time.Duration, packet []byte) error {
	var h head
	rest, err := h.decode(packet)
	if err != nil {
		return err
	}
	if h.kind != reports {
		return errors.WithMessage(ErrPacket, "not a report")
	}
	var r report
	if err := r.decode(rest); err != nil {
		return err
	}
	s.heard = now
	o := s.message(h.number)
	if o == nil {
		return nil // it is over
	}
	sent := s.round.measure(now, h.sent, s.times)
	if s.learn(o, h, &r) {
		s.progress, s.back = now, 0
	}
	// What was sent well before a packet that has arrived is lost.
	const least = 10 * time.Microsecond // stamps are as coarse as 1 µs
	for _, o := range s.open {
		o.description.lose(sent - max(s.round.smooth/4, least))
		o.data.lose(sent - max(s.round.smooth/4, least))
	}
	return nil
}

// learn takes what a report says of a message, and says whether that is news.
func (s *Sender) learn(o *outgoing, h head, r *report) (news bool) {
	switch h.state {
	case unknown:
		if o.naming {
			s.held.Remove(o.Target.Hash())
			o.naming = false
			o.plan()
			news = true
		}
	case described:
		s.held.Add(o.Target.Hash(), struct{}{})
		news = !o.described
		o.described = true
		o.description.arriveAll()
	case incomplete:
		if !o.naming && r.pendingDescription >= 0 {
			news = o.description.arrive(r.description.first, []uint64{r.description.marks})
		}
	case done, refused:
		if h.state == done {
			s.held.Add(o.Target.Hash(), struct{}{})
		}
		s.finish(o, h.reason)
		return true
	}
	return o.data.arrive(r.data.first, r.data.marks[:]) || news
}

func (s *Sender) message(n Number) *outgoing {
	for _, o := range s.open {
		if o.number == n && !o.over {
			return o
		}
	}
	return nil
}

func (s *Sender) finish(o *outgoing, reason Reason) {
	o.over = true
	o.description, o.data = flight{}, flight{}
	var err error
	if reason != NoReason {
		err = errors.WithStack(reason)
	}
	s.outcomes = append(s.outcomes, Outcome{o.number, err})
	for len(s.open) > 0 && s.open[0].over {
		s.open = s.open[1:]
	}
}

// Deadline is when Tick must be called, if nothing happens before; false: nothing is under way.
func (s *Sender) Deadline() (time.Duration, bool) {
	if len(s.open) == 0 {
		return 0, false
	}
	return min(s.progress+s.timeout(), s.heard+s.times.Silence), true
}

func (s *Sender) timeout() time.Duration {
	return min(s.round.timeout<<min(s.back, 20), s.times.Most)
}

// Tick sees whether the receiver is silent for too long.
func (s *Sender) Tick(now time.Duration) {
	if len(s.open) == 0 || s.failed != nil {
		return
	}
	if now >= s.heard+s.times.Silence {
		s.Fail(errors.WithMessagef(ErrSilent, "no report for %v", s.times.Silence))
		return
	}
	if now >= s.progress+s.timeout() {
		s.progress = now
		s.back++
		for _, o := range s.open {
			o.description.loseAll(now)
			o.data.loseAll(now)
		}
		// Where nothing is missing but the outcome, it is asked for by sending something again.
		for _, o := range s.open {
			if !o.over && o.data.complete() && o.description.complete() {
				o.description.repeatFirst()
			}
		}
	}
}

// Fail ends all messages with an error, and refuses more: the task is gone.
func (s *Sender) Fail(err error) {
	if s.failed != nil {
		return
	}
	s.failed = err
	for _, o := range s.open {
		if !o.over {
			s.outcomes = append(s.outcomes, Outcome{o.number, err})
		}
	}
	s.open = nil
}

// Outcomes returns the messages that are over, and forgets them.
func (s *Sender) Outcomes() []Outcome {
	o := s.outcomes
	s.outcomes = nil
	return o
}

// Sent counts packets, and those among them that were sent again.
func (s *Sender) Sent() (packets, again int) { return s.packets, s.again }

// ---- what is under way --------------------------------------------------------------------------

// flight is the packets 0 to count-1 of one kind: those below first have arrived, and those from
// first+len(sent) on have not been sent.
type flight struct {
	count, first int
	sent         []sentPacket
	lost         int           // of sent
	oldest       time.Duration // nothing that is under way was sent before
}

type sentPacket struct {
	at   time.Duration
	what uint8 // underWay, isLost, hasArrived
}

const (
	underWay uint8 = iota
	isLost
	hasArrived
)

func (f *flight) complete() bool { return f.first == f.count }
func (f *flight) unsent() bool   { return f.first+len(f.sent) < f.count }

// pick chooses a packet to be sent now: one that was lost, if these are wanted, or the next one if it
// is less than width beyond the first that is missing.
func (f *flight) pick(now time.Duration, width int, wanted bool) (index int, again, ok bool) {
	if f.lost > 0 && wanted {
		for i := range f.sent {
			if f.sent[i].what == isLost {
				f.lost--
				f.sent[i] = sentPacket{now, underWay}
				return f.first + i, true, true
			}
		}
	}
	if f.unsent() && len(f.sent) < width {
		f.sent = append(f.sent, sentPacket{now, underWay})
		return f.first + len(f.sent) - 1, false, true
	}
	return 0, false, false
}

// arrive notes that all packets before first are there, and first+i for each mark; it says whether
// that is news. What can't be is left out.
func (f *flight) arrive(first int, marks []uint64) (news bool) {
	for i := range f.sent {
		at := f.first + i - first
		if f.sent[i].what != hasArrived && (at < 0 || at < 64*len(marks) && marks[at/64]>>(at%64)&1 != 0) {
			f.settle(i)
			news = true
		}
	}
	f.advance()
	return news
}

func (f *flight) arriveAll() {
	f.first, f.sent, f.lost = f.count, nil, 0
}

func (f *flight) settle(i int) {
	if f.sent[i].what == isLost {
		f.lost--
	}
	f.sent[i].what = hasArrived
}

func (f *flight) advance() {
	n := 0
	for n < len(f.sent) && f.sent[n].what == hasArrived {
		n++
	}
	f.first += n
	f.sent = f.sent[n:]
}

// lose marks what was sent before a time.
func (f *flight) lose(before time.Duration) {
	if before <= f.oldest {
		return
	}
	f.oldest = before
	for i := range f.sent {
		if f.sent[i].what == underWay && f.sent[i].at < before {
			f.sent[i].what = isLost
			f.lost++
		}
	}
}

func (f *flight) loseAll(now time.Duration) { f.lose(now + 1) }

// repeatFirst has one packet sent again that has arrived.
func (f *flight) repeatFirst() {
	f.first = f.count - 1
	f.sent = append(f.sent[:0], sentPacket{0, isLost})
	f.lost = 1
}

// roundTrip is the timer of RFC 6298.
type roundTrip struct {
	smooth, variation, timeout time.Duration
}

// measure takes the stamp of a packet that was answered, and returns when that was sent.
func (r *roundTrip) measure(now time.Duration, echo uint32, t Times) time.Duration {
	took := time.Duration(stamp(now)-echo) * time.Microsecond
	if bits.Len32(stamp(now)-echo) == 32 {
		took = 0 // a stamp of the future is none of ours
	}
	if r.smooth == 0 {
		r.smooth, r.variation = took, took/2
	} else {
		r.variation += ((r.smooth - took).Abs() - r.variation) / 4
		r.smooth += (took - r.smooth) / 8
	}
	r.timeout = min(max(r.smooth+4*r.variation, t.Least), t.Most)
	return now - took
}
