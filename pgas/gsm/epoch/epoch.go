// Package epoch is the reliability protocol of global shared memory, as state machines without clock, network or
// goroutine: guaranteed-once notification for PUT and GET, guaranteed-once delivery for atomics and active messages, over
// a network that loses, repeats and reorders packets.
//
// The idea is that of software-guaranteed reliability for global shared memory operations (R. Blackmore and others): all
// packets that an initiating task sends to a target task carry the epoch of that directed pair, the target accepts none
// but those of its copy of the epoch, and where packets seem lost the initiator raises the epoch at both ends before it
// sends anything again. So what the network held back is never executed after the operation's notification. The form,
// events and the time in, packets and notifications out, is that of etcd's raft.
//
// The path of an operation:
//
//   - Submit puts it into its pair's window of operations, under the next sequence (initiator.go). While the pair has no
//     confirmed epoch only Raise packets go out.
//   - Next encodes its packets as the window of packets allows: each has a number in the epoch and carries the operation's
//     (sequence, count) and extent, so that it can be executed in any order.
//   - The target's Receive executes each number once, counts the packets of each sequence, and keeps what became of the
//     sequence until the initiator's floor has passed it (target.go).
//   - Acks, answers and data come back; the last one finishes the operation, which gives its one Notification.
//   - A packet that is overtaken, or not answered in time, goes out again under its number (selective repair). After
//     Config.Repairs timeouts in a row the epoch is raised: when the target confirms that it has cleared the old one, all
//     that has not been notified or confirmed starts from its beginning.
//
// An Endpoint is one task's end of all its pairs. It is for one goroutine at a time.
package epoch

import (
	"container/heap"
	"math"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Memory is what the commands of another task may touch. Every call checks the window, its ranges, protection and
// alignment; a call that returns an error has changed nothing. An error that has a wire.Reason in its chain reaches the
// initiator as that reason.
type Memory interface {
	// Check says whether a PUT or GET of that extent is allowed as a whole.
	Check(w wire.Window, op wire.Op, offset, length uint64) error
	Write(w wire.Window, offset uint64, data []byte) error
	Read(w wire.Window, offset uint64, into []byte) error
	Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (old uint64, err error)
}

// Handlers runs what active messages, and PUTs that ask for it, call at the target. Its methods run inside
// Endpoint.Receive, must not call the Endpoint, and get slices that are valid until they return.
type Handlers interface {
	// Has says whether there is such a handler.
	Has(h wire.Handler) bool
	// Message runs a handler, once for each message, which came under that key. It may append a reply to reply, at most Config.Reply bytes.
	Message(source fabric.Task, key wire.Key, h wire.Handler, data, reply []byte) ([]byte, error)
	// Arrived runs a handler, once for each PUT, when all of it is in memory.
	Arrived(source fabric.Task, h wire.Handler, w wire.Window, offset, length uint64)
}

// Config is what an Endpoint is made with. Default has values for all but what is the task's own. The windows are the
// same in all tasks of a job.
type Config struct {
	Self     fabric.Task
	Job      uint32
	Life     wire.Life                                     // random, not 0, and another one whenever the task starts
	MTU      func(peer fabric.Task) int                    // the longest packet, tag included
	Memory   func(source fabric.Task, key wire.Key) Memory // what packets of source under that key may touch; nil: nothing
	Handlers Handlers                                      // nil: none
	First    uint64                                        // the first epoch of each pair, from 1

	Operations int // operations of a pair under way at once: how many answers a target keeps. At most 64*wire.MaxWords
	Packets    int // packets of a pair under way at once. At most 64*wire.MaxWords
	Queue      int // operations of a pair that wait besides
	Reply      int // bytes of a handler's reply

	// Repairs is how many timeouts in a row are mended inside the epoch before it is raised. 0 is the protocol as it was
	// described: any lost packet costs the epoch.
	Repairs int

	LeastWindow int // packets under way that the window never goes below when it backs off
	MostData    int // bytes of a pair's data under way at once, if LeastWindow allows no more; 0: what Packets allow

	FirstTimeout time.Duration // before a round trip has been measured
	LeastTimeout time.Duration
	MostTimeout  time.Duration
	Silence      time.Duration // after which a target that says nothing has failed
}

// Default is a Config for networks with round trips from microseconds to milliseconds.
func Default() Config {
	return Config{
		First: 1, Operations: 256, Packets: 1024, Queue: 1024, Reply: 1024, Repairs: 10, LeastWindow: 8, MostData: 1 << 20,
		FirstTimeout: 2 * time.Millisecond, LeastTimeout: 100 * time.Microsecond, MostTimeout: 50 * time.Millisecond,
		Silence: 5 * time.Second,
	}
}

func (c *Config) check() error {
	const most = 64 * wire.MaxWords
	powerOfTwo := func(n int) bool { return n > 0 && n&(n-1) == 0 }
	switch {
	case c.Life == 0 || c.First == 0:
		return errors.New("the life and the first epoch of a task are not 0")
	case c.MTU == nil || c.Memory == nil:
		return errors.New("a task needs an MTU and a memory")
	case !powerOfTwo(c.Operations) || !powerOfTwo(c.Packets) || c.Operations > most || c.Packets > most || c.Packets < 2*wire.MaxRun:
		return errors.Errorf("windows are powers of two up to %d, that of packets from %d: not %d operations and %d packets", most, 2*wire.MaxRun, c.Operations, c.Packets)
	case c.Queue < 0 || c.Reply < 0 || c.Repairs < 0 || c.MostData < 0 || c.LeastWindow < 1 || c.LeastWindow > c.Packets:
		return errors.New("a limit is out of its range")
	case c.LeastTimeout <= 0 || c.FirstTimeout < c.LeastTimeout || c.MostTimeout < c.FirstTimeout || c.Silence <= 0:
		return errors.New("timeouts are positive, and the first is neither the shortest nor longer than the longest")
	}
	return nil
}

// Command is one operation on the memory of another task.
type Command struct {
	Op      wire.Op
	Peer    fabric.Task
	Key     wire.Key
	Window  wire.Window
	Offset  uint64 // in the window
	Handler wire.Handler
	Width   int // of an atomic: 4 or 8 bytes
	Operand uint64
	Compare uint64
	// Data is where a PUT or message reads, and where a GET writes. It belongs to the Endpoint until the notification.
	Data  []byte
	Token uint64 // comes back in the notification
}

// Notification says that an operation has ended. There is exactly one for each that Submit took.
type Notification struct {
	Token  uint64
	Peer   fabric.Task
	Op     wire.Op
	Reason wire.Reason // OK, or why it failed. After Silent, Dead, Exhausted and Closed it may have been done
	Value  uint64      // of an atomic: the word before
	Reply  []byte      // of a message
}

// Counters count what an Endpoint did since it was made.
type Counters struct {
	Sent     uint64 // packets
	Resent   uint64 // of these, parts of operations that had been sent in the same epoch
	Received uint64 // packets
	Executed uint64 // parts of PUTs and GETs, atomics and messages, as a target
	Raised   uint64 // epochs after the first of each pair, as an initiator
	Dropped  [wire.Reasons]uint64
}

// ErrFull is returned for an operation that has to wait until others have ended.
var ErrFull = errors.New("as many operations as are allowed wait for this task")

// Endpoint is one task's end of the directed pairs that it is in, as initiator and as target.
type Endpoint struct {
	Config
	counters      Counters
	pairs         map[fabric.Task]*pair
	least         int          // the shortest MTU that the windows allow
	ready         queue[*pair] // those that may have a packet to send
	deadlines     deadlines
	notifications []Notification
	closed        bool
}

// pair is what a task knows of one partner: each role is there from its first use.
type pair struct {
	peer      fabric.Task
	initiator *initiator
	target    *target
	ready     bool          // it is in Endpoint.ready
	deadline  time.Duration // the next one of initiator
	place     int           // in Endpoint.deadlines; -1 if it is not
}

const never = time.Duration(math.MaxInt64)

// New returns the end of a task that has no partners yet.
func New(c Config) (*Endpoint, error) {
	if err := c.check(); err != nil {
		return nil, errors.Wrap(err, "reliability protocol")
	}
	bitmaps := wire.HeaderLength + 17 + (max(c.Operations, 64)+c.Packets+63)/8 + wire.TagLength // of an Ack
	return &Endpoint{Config: c, pairs: map[fabric.Task]*pair{}, least: max(bitmaps, wire.Overhead+1)}, nil
}

// Counters returns what has been counted.
func (e *Endpoint) Counters() Counters { return e.counters }

// Partners is how many tasks it keeps state for.
func (e *Endpoint) Partners() int { return len(e.pairs) }

// Drop counts a packet that somebody before Receive did not let through.
func (e *Endpoint) Drop(r wire.Reason) { e.counters.Dropped[r]++ }

// Submit takes an operation. What it returns as an error has not been taken, and gives no notification: ErrFull, or why
// the command is none.
func (e *Endpoint) Submit(now time.Duration, c Command) error {
	if e.closed {
		return wire.Closed
	}
	if err := e.illegal(&c); err != nil {
		return err
	}
	p := e.pair(c.Peer)
	if p.initiator == nil {
		p.initiator = newInitiator(e, p)
	}
	if err := p.initiator.submit(now, c); err != nil {
		return err
	}
	e.changed(p)
	return nil
}

func (e *Endpoint) illegal(c *Command) error {
	switch {
	case e.MTU(c.Peer) < e.least:
		return errors.Wrapf(wire.Length, "packets to task %d have at most %d bytes, and %d are needed", c.Peer, e.MTU(c.Peer), e.least)
	case !c.Op.Valid():
		return wire.Operation
	case c.Peer == e.Self:
		return errors.Wrapf(wire.Operation, "task %d commands itself", e.Self)
	case c.Op.Atomic() && c.Width != 4 && c.Width != 8:
		return errors.Wrapf(wire.Length, "%v of %d bytes", c.Op, c.Width)
	case c.Op.Atomic() && c.Offset%uint64(c.Width) != 0:
		return errors.Wrapf(wire.Alignment, "%v at offset %d", c.Op, c.Offset)
	case c.Op == wire.Message && c.Handler == wire.None:
		return wire.NoHandler
	case c.Op == wire.Message && len(c.Data) > e.MessageLimit(c.Peer):
		return errors.Wrapf(wire.Length, "active message of %d bytes, at most %d", len(c.Data), e.MessageLimit(c.Peer))
	case c.Offset > math.MaxUint64-uint64(len(c.Data)):
		return errors.Wrapf(wire.Range, "%v of %d bytes at offset %d", c.Op, len(c.Data), c.Offset)
	case uint64(len(c.Data)) > math.MaxUint32*uint64(e.part(c.Peer)):
		return errors.Wrapf(wire.Length, "%v of %d bytes in packets of %d", c.Op, len(c.Data), e.MTU(c.Peer))
	}
	return nil
}

// MessageLimit is the most bytes of an active message to a peer.
func (e *Endpoint) MessageLimit(peer fabric.Task) int { return e.MTU(peer) - wire.Overhead }

// ReplyLimit is the most bytes of a handler's reply to a peer.
func (e *Endpoint) ReplyLimit(peer fabric.Task) int { return min(e.Reply, e.MessageLimit(peer)) }

// part is how many bytes of data one packet to a peer carries: whole cache lines where it has room for many, since copies
// that begin at odd places take half as long again.
func (e *Endpoint) part(peer fabric.Task) int {
	const line, many = 64, 1024
	most := e.MessageLimit(peer)
	if most < many {
		return most
	}
	return most / line * line
}

func (e *Endpoint) pair(peer fabric.Task) *pair {
	p := e.pairs[peer]
	if p == nil {
		p = &pair{peer: peer, place: -1, deadline: never}
		e.pairs[peer] = p
	}
	return p
}

// Receive takes a packet whose tag has been found right: its header and body, without tag.
func (e *Endpoint) Receive(now time.Duration, h *wire.Header, body []byte) {
	reason := e.receive(now, h, body)
	e.counters.Received++
	if reason != wire.OK {
		e.Drop(reason)
	}
}

func (e *Endpoint) receive(now time.Duration, h *wire.Header, body []byte) wire.Reason {
	switch {
	case e.closed:
		return wire.Closed
	case h.Job != e.Job:
		return wire.Job
	case h.Target != e.Self || h.Source == e.Self:
		return wire.Misrouted
	case h.TargetLife != e.Life && (h.TargetLife != 0 || h.Type != wire.TypeRaise):
		return wire.EarlierLife
	}
	p := e.pairs[h.Source]
	if h.Type.FromInitiator() {
		if p == nil || p.target == nil {
			if h.Type != wire.TypeRaise {
				return wire.Stale
			}
			p = e.pair(h.Source)
			p.target = newTarget(e, h)
		}
		reason := p.target.receive(h, body)
		e.changed(p)
		return reason
	}
	if p == nil || p.initiator == nil {
		return wire.Stale
	}
	reason := p.initiator.receive(now, h, body)
	e.changed(p)
	return reason
}

// Next encodes the next packet that is to go out, without its tag, into b[:0], whose capacity is the MTU. It returns
// false when there is none now. What it has returned counts as sent.
func (e *Endpoint) Next(now time.Duration, b []byte) (packet []byte, to fabric.Task, class fabric.Class, ok bool) {
	for e.ready.len() > 0 {
		p := *e.ready.first()
		packet, class, ok = e.nextOf(now, p, b[:0])
		e.ready.pop()
		p.ready = false
		if ok {
			e.counters.Sent++
			e.changed(p) // at the end of the queue, if it has more: partners take turns
			return packet, p.peer, class, true
		}
		e.plan(p)
	}
	return nil, 0, 0, false
}

func (e *Endpoint) nextOf(now time.Duration, p *pair, b []byte) (packet []byte, class fabric.Class, ok bool) {
	if p.target != nil {
		if packet, class, ok = p.target.next(b); ok {
			return packet, class, true
		}
	}
	if p.initiator != nil {
		return p.initiator.next(now, b)
	}
	return nil, 0, false
}

// header is that of a packet to a peer.
func (e *Endpoint) header(t wire.Type, peer fabric.Task, life wire.Life, epoch uint64, key wire.Key) wire.Header {
	return wire.Header{Type: t, Key: key, Job: e.Job, Source: e.Self, Target: peer, SourceLife: e.Life, TargetLife: life, Epoch: epoch}
}

// changed puts a pair where it has to be after anything happened to it.
func (e *Endpoint) changed(p *pair) {
	if !p.ready && (p.target != nil && p.target.ready() || p.initiator != nil && p.initiator.ready()) {
		p.ready = true
		e.ready.push(p)
	}
	e.plan(p)
}

// plan enters the pair's next deadline.
func (e *Endpoint) plan(p *pair) {
	deadline := never
	if p.initiator != nil {
		deadline = p.initiator.deadline()
	}
	if deadline == p.deadline {
		return
	}
	p.deadline = deadline
	switch {
	case deadline == never:
		heap.Remove(&e.deadlines, p.place)
	case p.place < 0:
		heap.Push(&e.deadlines, p)
	default:
		heap.Fix(&e.deadlines, p.place)
	}
}

// Deadline is when Advance is to be called next, unless something happens before; false: never.
func (e *Endpoint) Deadline() (time.Duration, bool) {
	if len(e.deadlines) == 0 {
		return 0, false
	}
	return e.deadlines[0].deadline, true
}

// Advance does what is due at a time.
func (e *Endpoint) Advance(now time.Duration) {
	for len(e.deadlines) > 0 && e.deadlines[0].deadline <= now {
		p := e.deadlines[0]
		p.initiator.advance(now)
		e.changed(p)
	}
}

// Fail ends all operations on a peer that is known to have ended, those under way and those to come.
func (e *Endpoint) Fail(peer fabric.Task, reason wire.Reason) {
	p := e.pair(peer)
	if p.initiator == nil {
		p.initiator = newInitiator(e, p)
	}
	p.initiator.end(reason)
	e.changed(p)
}

// Close ends all operations under way, with Closed. Afterwards nothing is sent, received or executed.
func (e *Endpoint) Close() {
	e.closed = true
	for _, p := range e.pairs {
		if p.initiator != nil {
			p.initiator.end(wire.Closed)
		}
		p.ready, p.place, p.deadline = false, -1, never
	}
	e.ready, e.deadlines = queue[*pair]{}, nil
}

// Notifications appends those that no call has returned yet, in the order in which the operations ended.
func (e *Endpoint) Notifications(n []Notification) []Notification {
	n = append(n, e.notifications...)
	clear(e.notifications)
	e.notifications = e.notifications[:0]
	return n
}

// deadlines is a heap of pairs by their deadline.
type deadlines []*pair

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline < d[j].deadline }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push is container/heap's.
func (d *deadlines) Push(x any) {
	p := x.(*pair)
	p.place = len(*d)
	*d = append(*d, p)
}

// Pop is container/heap's.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	p := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	p.place = -1
	return p
}
