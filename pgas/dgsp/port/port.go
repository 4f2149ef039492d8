// Package port is the shell around the protocol of pgas/dgsp: it carries its packets as active messages
// of a task's engine, keeps its timers, and places data in memory.
//
// A packet that arrives runs through the receiver, whose effects are done at once, in the goroutine
// that drives the engine; a report for the task it came from goes back as the message's reply. What is
// to be sent is collected under the port's lock and given to the engine after it: the engine may call
// back at once.
package port

import (
	"maps"
	"sync"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/dgsp"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Arrival is a message of the active form whose description has come.
type Arrival struct {
	Peer   fabric.Task
	Key    wire.Key     // under which it came
	Size   int          // bytes of data
	Header []byte       // valid until the handler returns
	Handle *dgsp.Handle // of the program; used here, or in Port.With

	number dgsp.Number
}

func (a *Arrival) partner() partner { return partner{a.Peer, a.Key} }

// Memory is what a task lets others reach: so many bytes at an offset of a window, for what comes under
// a key; or why not.
type Memory func(key wire.Key, window uint32, offset, length int) ([]byte, dgsp.Reason)

// Answer is where a handler wants the data.
type Answer struct {
	Memory []byte        // the program is placed in it,
	Base   int           // here
	Target *dgsp.Program // or this one of the same size, if it is not nil
	Refuse dgsp.Reason   // or not at all, for this reason
	Done   func()        // is called once when all data is in its place; may be nil
}

// Handler is a header handler. It runs in the goroutine that drives the engine and must return soon.
type Handler func(Arrival) Answer

// Config of a Port.
type Config struct {
	Engine   *engine.Engine
	Handlers *engine.Handlers // the engine's
	Number   wire.Handler     // which of them is the port's; the same at all tasks
	// Reach is the memory that others may write. It is asked for all that a description spans before
	// anything is written, and again for every packet, so that a window that is closed gets no more.
	Reach Memory
	// Show is the memory that others may read, asked for once for each transfer; nil: none.
	Show   Memory
	Active map[uint32]Handler // header handlers, by number
	Limits dgsp.Limits        // zero: dgsp.DefaultLimits
	Times  dgsp.Times         // zero: dgsp.DefaultTimes
}

// Port is a task's. Its methods may be called from any goroutine, but not from handlers.
type Port struct {
	config Config
	begin  time.Time

	lock     sync.Mutex // over all below
	peers    map[partner]*peer
	busy     map[*peer]struct{} // those with transfers under way
	receiver *dgsp.Receiver
	answers  map[message]Answer // of messages of the active form that were accepted
	fetches  map[message]*fetch // what this task has asked others for, by what it asked with
	serving  []*peer            // to which there is something new to send
	timer    *time.Timer
	closed   bool
	packets  []*packet // unused
}

type message struct {
	partner
	number dgsp.Number
}

// partner is another task under one key, which seals all packets between the two: messages under
// different keys have nothing to do with each other.
type partner struct {
	task fabric.Task
	key  wire.Key
}

// peer is the partner's name at the receiver.
func (p partner) peer() dgsp.Peer { return dgsp.Peer(p.key)<<32 | dgsp.Peer(p.task) }

func partnerOf(p dgsp.Peer) partner { return partner{fabric.Task(p & 0xffffffff), wire.Key(p >> 32)} }

// peer is a partner that messages are sent to.
type peer struct {
	partner
	sender    *dgsp.Sender
	transfers map[dgsp.Number]*Transfer
	under     int        // packets
	asks      int        // messages of Get
	room      *sync.Cond // for a message
}

// most is how many packets to one task the engine has at a time.
const most = 64

// packet is an operation of the engine, and its bytes.
type packet struct {
	engine.Operation
	buffer []byte
}

// Transfer is a message under way.
type Transfer struct {
	done chan struct{}
	err  error
	then func(error) // called with the port's lock when it is over; may be nil
}

// Done says whether the transfer is over.
func (t *Transfer) Done() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Wait returns when the transfer is over: with nil when all data is in its place.
func (t *Transfer) Wait() error {
	<-t.done
	return t.err
}

// Open makes a task's port. Close it before the engine.
func Open(c Config) (*Port, error) {
	if c.Engine == nil || c.Handlers == nil || c.Reach == nil {
		return nil, errors.New("a port needs an engine, its handlers, and memory to reach")
	}
	if c.Limits == (dgsp.Limits{}) {
		c.Limits = dgsp.DefaultLimits()
	}
	if c.Times == (dgsp.Times{}) {
		c.Times = dgsp.DefaultTimes()
	}
	p := &Port{config: c, begin: time.Now(), peers: map[partner]*peer{}, busy: map[*peer]struct{}{}, receiver: dgsp.NewReceiver(c.Limits),
		answers: map[message]Answer{}, fetches: map[message]*fetch{}}
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	return p, errors.WithMessage(c.Handlers.KeyedMessages(c.Number, p.take), "opening a port for transfers between layouts")
}

// ErrClosed ends what was under way when the port was closed.
var ErrClosed = errors.New("the task's port for transfers between layouts was closed")

// Close ends all transfers with an error. The engine has the last of their memory back when it is closed.
func (p *Port) Close() {
	p.config.Handlers.Remove(p.config.Number)
	p.lock.Lock()
	defer p.lock.Unlock()
	p.closed = true
	p.timer.Stop()
	for _, q := range p.peers {
		q.sender.Fail(ErrClosed)
		q.tell()
	}
}

func (p *Port) now() time.Duration { return time.Since(p.begin) }

// Start begins a transfer to a task, under a key that both have. It waits while as many to that task are
// under way as may be.
func (p *Port) Start(to fabric.Task, key wire.Key, m dgsp.Message) (*Transfer, error) {
	p.lock.Lock()
	q, t, _, err := p.start(partner{to, key}, m)
	if err != nil {
		p.lock.Unlock()
		return nil, errors.WithMessagef(err, "a transfer to task %d", to)
	}
	p.proceed(q)
	return t, nil
}

// start waits until there is room for a message, and begins it.
func (p *Port) start(to partner, m dgsp.Message) (*peer, *Transfer, dgsp.Number, error) {
	q, err := p.peer(to)
	if err != nil {
		return nil, nil, 0, err
	}
	n, err := q.sender.Put(p.now(), m)
	for err == dgsp.ErrFull {
		q.room.Wait()
		n, err = q.sender.Put(p.now(), m)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	return q, p.begun(q, n), n, nil
}

// begun is the transfer of a message that its sender has taken.
func (p *Port) begun(q *peer, n dgsp.Number) *Transfer {
	t := &Transfer{done: make(chan struct{})}
	q.transfers[n] = t
	p.busy[q] = struct{}{}
	return t
}

// Put is Start and Wait.
func (p *Port) Put(to fabric.Task, key wire.Key, m dgsp.Message) error {
	t, err := p.Start(to, key, m)
	if err != nil {
		return err
	}
	return errors.WithMessagef(p.wait(t), "a transfer to task %d", to)
}

// wait is t.Wait, and has the engine go on meanwhile.
func (p *Port) wait(t *Transfer) (err error) {
	p.config.Engine.Await(func() { err = t.Wait() })
	return err
}

// Counts are those of the receiving end.
func (p *Port) Counts() dgsp.Counts {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.receiver.Counts()
}

// With runs f while no handler runs, for what it does with handles.
func (p *Port) With(f func()) {
	p.lock.Lock()
	f()
	p.place() // what was freed may have let another message in
	p.send(p.reports(nil, nil, p.served(nil)))
}

// Drop forgets a key that the task's credential has no more: transfers under it end with an error, and
// what others have sent under it, where that was not complete, without a word.
func (p *Port) Drop(key wire.Key) {
	p.lock.Lock()
	for to, q := range p.peers {
		if to.key == key {
			delete(p.peers, to)
			delete(p.busy, q)
			q.sender.Fail(ErrClosed)
			q.tell()
		}
	}
	for from := range p.receiver.Peers() {
		if partnerOf(from).key == key {
			p.receiver.Forget(from)
		}
	}
	maps.DeleteFunc(p.answers, func(m message, _ Answer) bool { return m.key == key })
	p.place() // what was forgotten may have let another message in
	p.send(p.reports(nil, nil, p.served(nil)))
}

func (p *Port) peer(to partner) (*peer, error) {
	if p.closed {
		return nil, ErrClosed
	}
	if q := p.peers[to]; q != nil {
		return q, nil
	}
	s, err := dgsp.NewSender(p.config.Engine.MessageLimit(to.task, to.key), p.config.Times)
	if err != nil {
		return nil, errors.WithMessagef(err, "a transfer to task %d", to.task)
	}
	q := &peer{partner: to, sender: s, transfers: map[dgsp.Number]*Transfer{}, room: sync.NewCond(&p.lock)}
	p.peers[to] = q
	return q, nil
}

// ---- sending ------------------------------------------------------------------------------------

// collect adds to operations what is to be sent to a task now, and sets the timer.
func (p *Port) collect(q *peer, operations []*engine.Operation) []*engine.Operation {
	q.tell()
	for !p.closed && q.under < most {
		k := p.packet()
		if k.buffer = q.sender.Next(p.now(), k.buffer[:0]); k.buffer == nil {
			p.packets = append(p.packets, k)
			break
		}
		q.under++
		operations = append(operations, p.message(k, q.partner, func(o *engine.Operation) { p.sent(q, k) }))
	}
	p.arm()
	return operations
}

func (p *Port) packet() *packet {
	if n := len(p.packets); n > 0 {
		k := p.packets[n-1]
		p.packets = p.packets[:n-1]
		return k
	}
	return &packet{}
}

func (p *Port) message(k *packet, to partner, done func(*engine.Operation)) *engine.Operation {
	k.Command = epoch.Command{Op: wire.Message, Peer: to.task, Key: to.key, Handler: p.config.Number, Data: k.buffer}
	k.Done = done
	return &k.Operation
}

// proceed unlocks the port and sends whatever follows from what a sender has learnt.
func (p *Port) proceed(q *peer) {
	p.send(p.reports(nil, nil, p.served(p.collect(q, nil))))
}

// send unlocks the port and gives the engine what was collected.
func (p *Port) send(operations []*engine.Operation) {
	p.lock.Unlock()
	if len(operations) > 0 {
		_ = p.config.Engine.Start(operations...) // a closed engine has ended them, or the port is about to
	}
}

// sent is called when a packet was executed at its target, or could not be.
func (p *Port) sent(q *peer, k *packet) {
	p.lock.Lock()
	q.under--
	if err := k.Err(); err != nil {
		q.sender.Fail(err)
	} else if reply := k.Reply(); len(reply) > 0 {
		_ = q.sender.Step(p.now(), reply) // what is no report changes nothing
	}
	p.packets = append(p.packets, k)
	p.proceed(q)
}

// tell ends the transfers that are over.
func (q *peer) tell() {
	for _, o := range q.sender.Outcomes() {
		t := q.transfers[o.Number]
		delete(q.transfers, o.Number)
		t.err = o.Err
		if t.then != nil {
			t.then(o.Err)
		}
		close(t.done)
		q.room.Broadcast()
	}
}

// arm sets the timer to the first deadline.
func (p *Port) arm() {
	var first time.Duration
	for q := range p.busy {
		if at, ok := q.sender.Deadline(); !ok {
			delete(p.busy, q)
		} else if first == 0 || at < first {
			first = at
		}
	}
	if first > 0 && !p.closed {
		p.timer.Reset(max(first-p.now(), 0))
	}
}

func (p *Port) tick() {
	p.lock.Lock()
	var operations []*engine.Operation
	for q := range p.busy {
		q.sender.Tick(p.now())
		operations = p.collect(q, operations)
	}
	p.send(p.reports(nil, nil, p.served(operations)))
}

// ---- receiving ----------------------------------------------------------------------------------

// take is the engine's handler of packets.
func (p *Port) take(source fabric.Task, key wire.Key, data, reply []byte) ([]byte, error) {
	from := partner{source, key}
	p.lock.Lock()
	if p.closed {
		p.lock.Unlock()
		return reply, wire.NoHandler
	}
	if q := p.peers[from]; q != nil && dgsp.IsReport(data) {
		err := q.sender.Step(p.now(), data)
		p.proceed(q)
		return reply, malformed(err)
	}
	err := p.receiver.Step(from.peer(), data)
	p.place()
	p.send(p.reports(&from, &reply, p.served(nil)))
	return reply, malformed(err)
}

func malformed(err error) error {
	if err != nil {
		return wire.Malformed
	}
	return nil
}

// reports has a report for the source of a packet go back as its reply, and adds others to operations.
func (p *Port) reports(source *partner, reply *[]byte, operations []*engine.Operation) []*engine.Operation {
	for {
		k := p.packet()
		to, said, ok := p.receiver.NextReport(k.buffer[:0])
		if !ok {
			p.packets = append(p.packets, k)
			return operations
		}
		if k.buffer = said; source != nil && *source == partnerOf(to) {
			*reply = append(*reply, said...)
			source = nil
			p.packets = append(p.packets, k)
			continue
		}
		operations = append(operations, p.message(k, partnerOf(to), func(*engine.Operation) { p.reported(k) }))
	}
}

// reported takes back a packet. That a report did not arrive is seen by its receiver.
func (p *Port) reported(k *packet) {
	p.lock.Lock()
	p.packets = append(p.packets, k)
	p.lock.Unlock()
}

// place does what the receiver wants done.
func (p *Port) place() {
	for effects := p.receiver.Effects(); len(effects) > 0; effects = p.receiver.Effects() {
		for i := range effects {
			p.do(&effects[i])
		}
	}
}

func (p *Port) do(e *dgsp.Effect) {
	at := message{partnerOf(e.Peer), e.Number}
	switch e.Kind {
	case dgsp.Described:
		if e.Ask {
			p.serve(e, at)
			return
		}
		if reason := p.ask(e, at); reason != dgsp.NoReason {
			_ = p.receiver.Refuse(e.Peer, e.Number, reason) // it waits for an answer
		} else {
			_ = p.receiver.Accept(e.Peer, e.Number)
		}
	case dgsp.Scatter:
		if reason := p.scatter(e, at); reason != dgsp.NoReason {
			delete(p.answers, at)
			_ = p.receiver.Refuse(e.Peer, e.Number, reason) // or that was done for a packet before
		}
	case dgsp.Complete:
		answer := p.answers[at]
		delete(p.answers, at)
		if answer.Done != nil {
			answer.Done()
		}
	}
}

// ask finds out whether a message may be placed.
func (p *Port) ask(e *dgsp.Effect, at message) dgsp.Reason {
	if e.Handler == 0 {
		_, _, reason := p.reach(e)
		return reason
	}
	handler := p.config.Active[e.Handler]
	if e.Handler == fetched {
		handler = p.fetched
	}
	if handler == nil {
		return dgsp.NoHandler
	}
	answer := handler(Arrival{at.task, at.key, e.Program.Size(), e.Header, e.Handle, at.number})
	if answer.Refuse != dgsp.NoReason {
		return answer.Refuse
	}
	if answer.Target == nil {
		answer.Target = e.Program
	}
	if answer.Target.Size() != e.Program.Size() || !answer.Target.Fits(answer.Memory, answer.Base) {
		return dgsp.OutOfRange
	}
	p.answers[at] = answer
	return dgsp.NoReason
}

// reach is the memory of a message of the passive form, and where in it the program is placed.
func (p *Port) reach(e *dgsp.Effect) (memory []byte, base int, reason dgsp.Reason) {
	return within(e, p.config.Reach)
}

// within is the memory that a program spans where it is placed, as a function knows it.
func within(e *dgsp.Effect, windows Memory) (memory []byte, base int, reason dgsp.Reason) {
	const furthest = 1 << 61
	low, high := e.Program.Bounds()
	if e.Base < -furthest || e.Base > furthest || e.Base+low < 0 {
		return nil, 0, dgsp.OutOfRange
	}
	memory, reason = windows(partnerOf(e.Peer).key, e.Window, e.Base+low, high-low)
	return memory, -low, reason
}

func (p *Port) scatter(e *dgsp.Effect, at message) dgsp.Reason {
	answer, accepted := p.answers[at]
	memory, base, program := answer.Memory, answer.Base, answer.Target
	if e.Handler == 0 {
		program = e.Program
		var reason dgsp.Reason
		if memory, base, reason = p.reach(e); reason != dgsp.NoReason {
			return reason
		}
	} else if !accepted {
		return dgsp.HandlerChoice // a packet before had it refused
	}
	if program.Scatter(memory, base, e.Data, e.From) != nil {
		return dgsp.OutOfRange
	}
	return dgsp.NoReason
}
