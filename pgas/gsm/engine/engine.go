// Package engine is the shell around the reliability protocol of global shared
// memory: it connects the pure state machines of a task (pgas/gsm/epoch) with
// its credential, its fabric and its memory, and gives each operation its end.
//
// The path of an operation:
//
//   - Start drives the engine, if nobody else does: what is started goes straight
//     to the protocol, packets are encoded and sealed, and the fabric is given
//     them in one batch. Else it goes into the send FIFO, all of which whoever
//     drives takes with his next turn, and the doorbell is rung if the engine
//     sleeps.
//   - Packets that arrive are opened and go through the state machine, which
//     touches memory and calls handlers.
//   - What has ended is told: Done is called, and whoever sleeps in Wait is woken.
//
// Whoever waits drives the engine meanwhile, so that an answer is seen by the
// goroutine that wants it. A goroutine of the engine's own drives it when nobody
// else does: it looks for a short time, and then sleeps in the fabric. It stays
// out of the way, at most Yield behind, while others drive.
//
// Active messages to a peer to which the fabric is lossless (one on the same
// node) need neither epochs nor tags; they go directly (direct.go). Those under a
// narrower key are told from others by their tag, and go as if there were loss.
package engine

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// Config is what an engine is made of.
type Config struct {
	// Protocol is the configuration of the state machines. Self, MTU and Handlers
	// are the engine's.
	Protocol epoch.Config
	// Credential is the task's.
	Credential *credential.Credential
	// Fabric is the task's; the engine closes it.
	Fabric fabric.Fabric
	// Handlers are the task's; nil: none.
	Handlers *Handlers
	// Drops is how many packets that are not the job's may come before Notice is
	// called, once; 0: 1000.
	Drops uint64
	// Notice is told of what the user should know; nil: a line on stderr.
	Notice func(string)
	// Foreign is told, from that call of Notice on, how many more packets that are
	// not the job's have come; nil: nobody is.
	Foreign func(more uint64)
	// Yield is how far behind the engine's goroutine may be while others drive; 0: 200 µs.
	Yield time.Duration
}

// Counters count what an engine did since it was made.
type Counters struct {
	epoch.Counters
	Direct         uint64 // active messages sent without epochs
	DirectExecuted uint64 // and executed
	Lost           uint64 // packets that the fabric refused
}

// ErrClosed is returned by an engine that was closed.
var ErrClosed = errors.New("this task has left the job")

const (
	batch    = 64               // packets that are received or sent at once
	train    = 1 << 17          // bytes that are sent at once, or one packet more: what the processor's cache keeps until then
	looks    = 64               // turns of a waiting goroutine before it waits in the fabric
	patience = time.Millisecond // with packets none of which has room
	rareTurn = 16               // turns that give the protocol nothing to do, for each that looks at the clock
	longest  = 1 << 16          // packet of any fabric
	longWait = time.Second
)

// Engine is one task's. Its methods may be called from any goroutine.
type Engine struct {
	config   Config
	fabric   fabric.Fabric
	lossless fabric.Lossless // nil: nobody
	foreign  fabric.Foreign  // nil: the fabric drops nothing itself
	begin    time.Time

	entry   sync.Mutex   // over entered
	entered []*Operation // the send FIFO
	pending atomic.Bool  // there is something in it

	turns   sync.Mutex  // over all below: one goroutine at a time drives the engine
	own     atomic.Bool // it is the engine's own that has it,
	asleep  atomic.Bool // and waits in the fabric
	wanted  atomic.Int32
	drives  atomic.Uint64 // by others
	parked  atomic.Int32  // goroutines that sleep until an operation is done
	kick    chan struct{} // has the engine's goroutine look
	closing atomic.Bool
	ended   chan struct{} // the engine's goroutine has

	endpoint   *epoch.Endpoint
	credential *credential.Credential
	handlers   *Handlers
	taken      []*Operation // from the send FIFO, for reuse
	waiting    []*Operation // that the endpoint had no room for yet
	operations table
	in         [batch]fabric.Packet
	out        [fabric.Classes]outbox
	full       []fabric.Task // of sendPast
	notified   []epoch.Notification
	rounds     uint
	unsent     bool // something was submitted or received that the endpoint may have packets for
	holding    bool // what goes back for messages waits for the turn after this one
	held       bool // and does
	direct     direct
	counters   Counters
	noticed    bool
	dropped    uint64 // by the fabric, as of the last look
	closed     bool
}

// outbox holds packets that are encoded and not sent yet.
type outbox struct {
	packets []fabric.Packet
	buffers [][]byte      // as many, of which the packets are made
	bytes   int           // of all packets
	stuck   time.Duration // since when no packet has gone; 0: the last try sent some
}

func (b *outbox) full() bool { return len(b.packets) == batch || b.bytes >= train }

// New starts an engine.
func New(c Config) (*Engine, error) {
	if c.Fabric == nil || c.Credential == nil {
		return nil, errors.New("an engine needs a fabric and a credential")
	}
	if c.Handlers == nil {
		c.Handlers = &Handlers{}
	}
	if c.Drops == 0 {
		c.Drops = 1000
	}
	if c.Yield == 0 {
		c.Yield = 200 * time.Microsecond
	}
	if c.Notice == nil {
		c.Notice = func(text string) { fmt.Fprintf(os.Stderr, "evenkeel: %s\n", text) }
	}
	if c.Foreign == nil {
		c.Foreign = func(uint64) {}
	}
	p := c.Protocol
	p.Self, p.MTU, p.Handlers = c.Fabric.Self(), c.Fabric.MTU, c.Handlers
	endpoint, err := epoch.New(p)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: c, fabric: c.Fabric, begin: time.Now(), endpoint: endpoint, credential: c.Credential,
		handlers: c.Handlers, kick: make(chan struct{}, 1), ended: make(chan struct{})}
	e.lossless, _ = c.Fabric.(fabric.Lossless)
	e.foreign, _ = c.Fabric.(fabric.Foreign)
	e.direct.init(endpoint.Config.Reply)
	for class := range e.out {
		e.out[class].buffers = make([][]byte, batch)
	}
	go e.alone()
	return e, nil
}

// Self is the task whose engine this is.
func (e *Engine) Self() fabric.Task { return e.fabric.Self() }

// MessageLimit is the most bytes of an active message to a peer under a key.
func (e *Engine) MessageLimit(peer fabric.Task, key wire.Key) int {
	if e.directly(peer, key) {
		return e.fabric.MTU(peer) - directHeader
	}
	return e.fabric.MTU(peer) - wire.Overhead
}

// Start starts operations, in order. Each ends once, also if it is refused. An
// error says that none was started: the engine is closed (ErrClosed), or one of
// them has not ended since it was last started. It does not block.
func (e *Engine) Start(operations ...*Operation) error {
	driving, err := e.start(operations)
	if driving {
		e.leave()
	}
	return err
}

// start is Start, after which the caller may have the engine still, to drive or leave it.
func (e *Engine) start(operations []*Operation) (driving bool, err error) {
	for i, o := range operations {
		if !o.state.CompareAndSwap(idle, pending) {
			release(operations[:i])
			return false, errors.Errorf("%v to task %d was started and has not ended: it can't be started again", o.Op, o.Peer)
		}
	}
	if e.turns.TryLock() {
		if e.closing.Load() {
			e.leave()
			release(operations)
			return false, ErrClosed
		}
		if e.pending.Load() {
			e.take()
		}
		e.issue(operations)
		e.turn()
		return true, nil
	}
	e.entry.Lock()
	if e.closing.Load() {
		e.entry.Unlock()
		release(operations)
		return false, ErrClosed
	}
	e.entered = append(e.entered, operations...)
	e.pending.Store(true)
	e.entry.Unlock()
	if e.turns.TryLock() {
		e.turn()
		return true, nil
	}
	if e.asleep.Load() {
		e.fabric.Wake()
	}
	return false, nil
}

// release: none of the operations was started.
func release(operations []*Operation) {
	for _, o := range operations {
		o.state.Store(idle)
	}
}

// Wait returns when an operation is done, with its error. One goroutine waits for
// an operation.
func (e *Engine) Wait(o *Operation) error {
	for !o.Finished() {
		switch {
		case e.turns.TryLock():
			e.drive(o)
			e.leave()
		case e.own.Load():
			e.enter()
			e.drive(o)
			e.leave()
		default: // another one drives, and goes on for us or has the engine's goroutine do it
			e.park(o)
		}
	}
	return o.Err()
}

// Do starts operations and waits for them all; the error is the first one's.
func (e *Engine) Do(operations ...*Operation) error {
	driving, err := e.start(operations)
	if driving {
		for _, o := range operations {
			e.drive(o)
		}
		e.leave()
	}
	if err != nil {
		return err
	}
	var first error
	for _, o := range operations {
		if err := e.Wait(o); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Poll drives the engine once: for tasks that compute, and those that look for
// messages themselves. False: there was nothing to do.
func (e *Engine) Poll() bool {
	progress, _ := e.poll(false)
	return progress
}

// PollHolding is Poll, but where messages have run handlers, what goes back for
// them waits for the next turn: for who is about to answer them by messages of
// his own, which then leave in the same packet train, and polls again soon. If he
// does not, the engine's goroutine has it sent. True: something waits.
func (e *Engine) PollHolding() bool {
	_, held := e.poll(true)
	return held
}

func (e *Engine) poll(holding bool) (progress, held bool) {
	if !e.turns.TryLock() {
		if !e.own.Load() {
			return true, false // another one drives
		}
		e.enter()
	}
	e.holding = holding
	progress = e.turn()
	e.holding = false
	held = e.held
	e.leave()
	return progress, held
}

// Fail ends all operations on a task that is known to have ended, those under
// way and those to come, with wire.Dead.
func (e *Engine) Fail(peer fabric.Task) {
	e.enter()
	e.fail(peer, wire.Dead)
	e.leave()
}

// Counters returns what has been counted.
func (e *Engine) Counters() Counters {
	e.enter()
	defer e.leave()
	c := e.counters
	c.Counters = e.endpoint.Counters()
	return c
}

// Partners is how many tasks the engine keeps state for.
func (e *Engine) Partners() int {
	e.enter()
	defer e.leave()
	return e.endpoint.Partners()
}

// Credential calls f with the task's credential, while nothing is sealed or
// opened: to give it keys, and take them away.
func (e *Engine) Credential(f func(*credential.Credential) error) error {
	e.enter()
	defer e.leave()
	return f(e.credential)
}

// Close ends all operations under way with wire.Closed, and closes the fabric.
func (e *Engine) Close() error {
	e.entry.Lock()
	closed := e.closing.Swap(true)
	e.entry.Unlock()
	if closed {
		<-e.ended
		return nil
	}
	e.enter()
	e.closed = true
	e.take()
	e.endpoint.Close()
	e.tell()
	e.operations.each(func(o *Operation) { e.end(o, wire.Closed) })
	for _, o := range e.waiting {
		e.end(o, wire.Closed)
	}
	e.waiting = nil
	e.turns.Unlock()
	e.knock()
	<-e.ended
	return e.fabric.Close()
}

// ---- who drives -------------------------------------------------------------

// enter takes the engine, from its own goroutine if that has it.
func (e *Engine) enter() {
	e.wanted.Add(1)
	if e.asleep.Load() {
		e.fabric.Wake()
	}
	e.turns.Lock()
	e.wanted.Add(-1)
}

// leave gives the engine back. Operations that were started meanwhile by who
// could not have it are taken first.
func (e *Engine) leave() {
	for {
		e.drives.Add(1)
		e.turns.Unlock()
		if !e.pending.Load() || !e.turns.TryLock() {
			break
		}
		e.turn()
	}
	if e.parked.Load() > 0 {
		e.knock()
	}
}

func (e *Engine) knock() {
	select {
	case e.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// drive turns until an operation is done.
func (e *Engine) drive(o *Operation) {
	for quiet := 0; !o.Finished(); quiet++ {
		if e.turn() {
			quiet = 0
		}
		if quiet > looks {
			e.sleep()
			quiet = looks / 2
		}
		if e.wanted.Load() > 0 {
			e.leave()
			runtime.Gosched()
			e.enter()
		}
	}
}

// park sleeps until an operation is done.
func (e *Engine) park(o *Operation) {
	if o.woken == nil {
		o.woken = make(chan struct{}, 1)
	}
	if !o.state.CompareAndSwap(pending, parked) {
		return
	}
	e.parked.Add(1)
	<-o.woken
	e.parked.Add(-1)
}

// Await has the engine's goroutine drive it, without its usual patience, while wait
// runs: for who waits for something that is more than an operation.
func (e *Engine) Await(wait func()) {
	e.parked.Add(1)
	e.knock()
	wait()
	e.parked.Add(-1)
}

// alone is the engine's own goroutine.
func (e *Engine) alone() {
	defer close(e.ended)
	timer := time.NewTimer(0)
	seen := e.drives.Load()
	for !e.closing.Load() {
		drives := e.drives.Load()
		if e.wanted.Load() == 0 && (drives == seen || e.parked.Load() > 0) && e.turns.TryLock() {
			e.own.Store(true)
			if !e.turn() {
				e.sleep()
				e.turn()
			}
			e.own.Store(false)
			e.turns.Unlock()
			seen = e.drives.Load()
			continue
		}
		seen = drives
		timer.Reset(e.config.Yield)
		select {
		case <-e.kick:
		case <-timer.C:
		}
	}
}

// sleep waits in the fabric for whatever comes next.
func (e *Engine) sleep() {
	timeout := longWait
	now := e.now()
	e.rounds = rareTurn - 1 // the next turn looks at the clock
	if deadline, some := e.direct.deadline(); some && deadline <= now && e.sweep(now) {
		return // somebody may wait for what has ended
	}
	if deadline, some := e.endpoint.Deadline(); some {
		timeout = deadline - now
	}
	if deadline, some := e.direct.deadline(); some {
		timeout = min(timeout, deadline-now)
	}
	for class := range e.out {
		if len(e.out[class].packets) > 0 {
			timeout = min(timeout, time.Millisecond) // the fabric has no room now
		}
	}
	e.asleep.Store(true) // before the look at pending, as Start does it the other way round
	if !e.pending.Load() && e.wanted.Load() == 0 && !e.closing.Load() {
		e.fabric.Wait(timeout)
	}
	e.asleep.Store(false)
	runtime.Gosched()
}

func (e *Engine) now() time.Duration { return time.Since(e.begin) }

// ---- one turn -----------------------------------------------------------------

// turn does all that can be done now. False: there was nothing.
func (e *Engine) turn() bool {
	if e.closed {
		return false
	}
	progress := false
	if e.pending.Load() {
		e.take()
		progress = true
	}
	if e.unsent || e.held {
		// What was started goes out before the look at what has come: that is a system
		// call, for which the other task would wait too.
		e.unsent, e.held = false, false
		e.send(e.now())
		progress = true
	}
	n, err := e.fabric.Receive(e.in[:])
	if e.foreign != nil {
		e.suspectDropped(e.foreign.Foreign())
	}
	if err == nil && n > 0 {
		ran := e.handlers.ran
		e.receive(e.in[:n])
		progress = true
		if e.holding && e.handlers.ran != ran {
			e.held = true
			return true
		}
	}
	if len(e.direct.queue) > 0 && e.resume() {
		progress = true
	}
	if e.rounds++; e.unsent || e.rounds%rareTurn == 0 {
		if e.endpoint.Partners() > 0 {
			progress = e.advance() || progress
		}
	}
	return progress
}

// take takes what is in the send FIFO.
func (e *Engine) take() {
	e.entry.Lock()
	e.taken, e.entered = e.entered, e.taken[:0]
	e.pending.Store(false)
	e.entry.Unlock()
	e.issue(e.taken)
	clear(e.taken)
	e.taken = e.taken[:0]
}

// issue begins operations: those of the protocol leave with the next turn.
func (e *Engine) issue(operations []*Operation) {
	var now time.Duration
	for _, o := range operations {
		switch {
		case o.Op == wire.Message && o.Peer == e.Self():
			e.toSelf(o)
		case o.Op == wire.Message && e.directly(o.Peer, o.Key):
			e.startDirect(o)
		default:
			if now == 0 {
				now = e.now()
			}
			e.submit(now, o)
		}
	}
}

func (e *Engine) submit(now time.Duration, o *Operation) {
	e.unsent = true
	o.Token = uint64(e.operations.add(o))
	switch err := e.endpoint.Submit(now, o.Command); {
	case err == nil:
	case errors.Is(err, epoch.ErrFull):
		e.operations.remove(uint32(o.Token))
		e.waiting = append(e.waiting, o)
	default:
		e.operations.remove(uint32(o.Token))
		o.finish(&epoch.Notification{Reason: reasonOf(err)}, err)
	}
}

// again submits what had to wait, in order.
func (e *Engine) again(now time.Duration) {
	all := e.waiting
	e.waiting = nil
	for _, o := range all {
		e.submit(now, o)
	}
}

func reasonOf(err error) wire.Reason {
	var r wire.Reason
	if errors.As(err, &r) {
		return r
	}
	return wire.Fault
}

func (e *Engine) toSelf(o *Operation) {
	reply, err := e.handlers.Message(e.Self(), o.Key, o.Handler, o.Data, nil)
	o.finish(&epoch.Notification{Peer: o.Peer, Op: o.Op, Reply: reply, Reason: wire.ReasonOf(err)}, nil)
}

func (e *Engine) receive(packets []fabric.Packet) {
	var now time.Duration
	for i := range packets {
		p := &packets[i]
		if len(p.Data) >= directHeader && p.Data[0] >= directFirst && e.directly(p.Peer, wire.JobKey) {
			e.receiveDirect(p)
			continue
		}
		h, body, reason := e.credential.Open(p.Data)
		if reason != wire.OK {
			e.endpoint.Drop(reason)
			e.suspect(1, reason)
			continue
		}
		if now == 0 {
			now = e.now()
		}
		e.endpoint.Receive(now, &h, body)
		e.unsent = true
	}
}

// suspectDropped takes how many packets the fabric has dropped until now.
func (e *Engine) suspectDropped(all uint64) {
	if more := all - e.dropped; more > 0 {
		e.dropped = all
		e.suspect(more, wire.Malformed)
	}
}

// suspect tells the user once that packets come which are not the job's, and the
// report how many.
func (e *Engine) suspect(more uint64, last wire.Reason) {
	if e.noticed {
		e.config.Foreign(more)
		return
	}
	total := e.dropped
	counters := e.endpoint.Counters()
	for reason := wire.Short; reason <= wire.Forged; reason++ {
		total += counters.Dropped[reason]
	}
	if total >= e.config.Drops {
		e.noticed = true
		e.config.Notice(fmt.Sprintf("task %d has dropped %d packets that are not this job's (the last one: %v): "+
			"another job or program sends to its ports", e.Self(), total, last))
		e.config.Foreign(total)
	}
}

// advance does what is due, sends what is to be sent, and tells what has ended.
func (e *Engine) advance() bool {
	e.unsent = false
	now := e.now()
	if deadline, some := e.endpoint.Deadline(); some && deadline <= now {
		e.endpoint.Advance(now)
	}
	progress := e.send(now)
	if e.tell() {
		progress = true
		if len(e.waiting) > 0 {
			e.again(now)
		}
	}
	return progress
}

// send encodes, seals and sends packets until there are no more, or no room.
func (e *Engine) send(now time.Duration) bool {
	progress := false
	for {
		filled := e.fill(now)
		if filled {
			progress = true
		}
		room := true
		for class := range e.out {
			room = e.out[class].flush(e, now) && room
		}
		if !filled || !room {
			return progress
		}
	}
}

// fill encodes packets until an outbox is full. False: there was none.
func (e *Engine) fill(now time.Duration) bool {
	some := false
	for !e.out[fabric.Control].full() && !e.out[fabric.Bulk].full() {
		// Which class the next packet has is known when it is there: it is encoded into
		// the buffer of the bulk class, and the other class trades it for one of its own.
		bulk := &e.out[fabric.Bulk]
		at := len(bulk.packets)
		if bulk.buffers[at] == nil {
			bulk.buffers[at] = make([]byte, 0, longest)
		}
		packet, to, class, more := e.endpoint.Next(now, bulk.buffers[at][:0])
		if !more {
			return some
		}
		sealed, err := e.credential.Seal(packet)
		if err != nil {
			e.counters.Lost++
			continue
		}
		box := &e.out[class]
		place := len(box.packets)
		bulk.buffers[at], box.buffers[place] = box.buffers[place], sealed
		box.packets = append(box.packets, fabric.Packet{Peer: to, Class: class, Path: pathOf(class, to), Data: sealed})
		box.bytes += len(sealed)
		if place > 0 && joins(box.packets[place-1], box.packets[place]) {
			box.packets[place-1], box.packets[place] = box.packets[place], box.packets[place-1]
			box.buffers[place-1], box.buffers[place] = box.buffers[place], box.buffers[place-1]
		}
		some = true
	}
	return some
}

// joins says whether a packet had better go before the one that was made before
// it: fabrics send packets to a task as one where none but the last is shorter.
// What goes back for the task's own commands may well be a packet later, and
// among each other neither these nor those change places.
func joins(before, p fabric.Packet) bool {
	return before.Peer == p.Peer && len(before.Data) < len(p.Data) &&
		!wire.TypeOf(before.Data).FromInitiator() && wire.TypeOf(p.Data).FromInitiator()
}

// pathOf keeps the data of different peers on different paths, and that of one
// peer on one: packets that overtake each other look like lost ones.
func pathOf(class fabric.Class, to fabric.Task) uint8 {
	if class == fabric.Control {
		return fabric.Static
	}
	return uint8(1 + to%255)
}

// flush sends what is in an outbox. False: there was no room for all. Packets to a
// task that takes none let those to others past; if nothing else is left in an
// outbox for long they are lost, as on any network, and the protocol sends them
// again: a task that is dead or stopped holds up nobody but its partners' commands
// to it.
func (b *outbox) flush(e *Engine, now time.Duration) bool {
	left := 0
	sent := e.sendPast(b.packets, func(i int) {
		b.packets[left] = b.packets[i]
		b.buffers[left], b.buffers[i] = b.buffers[i], b.buffers[left]
		left++
	}, func(i int) {
		e.counters.Lost++
		e.fail(b.packets[i].Peer, wire.Dead)
	})
	switch {
	case left == 0 || sent > 0:
		b.stuck = 0
	case b.stuck == 0:
		b.stuck = now
	case now-b.stuck > patience:
		e.counters.Lost += uint64(left)
		left, b.stuck = 0, 0
	}
	b.packets = b.packets[:left]
	b.bytes = 0
	for i := range b.packets {
		b.bytes += len(b.packets[i].Data)
	}
	return left == 0
}

// sendPast sends packets, in order to each peer: where one has no room, those to
// others go past. It tells which stay and which can't be sent, now or ever, and
// says how many went.
func (e *Engine) sendPast(packets []fabric.Packet, stays, refused func(i int)) int {
	sent := 0
	full := e.full[:0]
	for at := 0; at < len(packets); {
		if slices.Contains(full, packets[at].Peer) {
			stays(at)
			at++
			continue
		}
		end := at + 1
		for end < len(packets) && !slices.Contains(full, packets[end].Peer) {
			end++
		}
		n, err := e.fabric.Send(packets[at:end])
		sent += n
		at += n
		if err != nil {
			refused(at)
			at++
		} else if at < end {
			full = append(full, packets[at].Peer)
		}
	}
	e.full = full
	return sent
}

// tell ends the operations that the endpoint has notified.
func (e *Engine) tell() bool {
	e.notified = e.endpoint.Notifications(e.notified[:0])
	for i := range e.notified {
		n := &e.notified[i]
		if o := e.operations.remove(uint32(n.Token)); o != nil {
			o.finish(n, nil)
		}
	}
	return len(e.notified) > 0
}

func (e *Engine) end(o *Operation, reason wire.Reason) {
	o.finish(&epoch.Notification{Peer: o.Peer, Op: o.Op, Reason: reason}, nil)
}

// fail ends what goes to a peer.
func (e *Engine) fail(peer fabric.Task, reason wire.Reason) {
	e.endpoint.Fail(peer, reason)
	e.failDirect(peer, reason)
	e.tell()
}

// ---- the operations under way -------------------------------------------------

// table gives operations numbers. A number is used again under another
// generation.
type table struct {
	slots []entry
	free  []uint32
}

type entry struct {
	operation  *Operation
	generation uint32
	direct     bool
	since      time.Duration // when a direct one was first seen under way; 0: not yet
}

func (t *table) add(o *Operation) uint32 {
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		t.slots[slot].operation = o
		return slot
	}
	t.slots = append(t.slots, entry{operation: o})
	return uint32(len(t.slots) - 1)
}

func (t *table) remove(slot uint32) *Operation {
	if int64(slot) >= int64(len(t.slots)) {
		return nil
	}
	s := &t.slots[slot]
	o := s.operation
	if o != nil {
		*s = entry{generation: s.generation + 1}
		t.free = append(t.free, slot)
	}
	return o
}

// each removes all.
func (t *table) each(f func(*Operation)) {
	for slot := range t.slots {
		if o := t.remove(uint32(slot)); o != nil {
			f(o)
		}
	}
}
