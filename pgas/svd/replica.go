// Package svd is the shared variable directory: what every task of a job knows of
// the objects that are shared in it, as a pure state machine of one task.
//
// Objects have opaque handles. The entry of an object, with its address, is kept by
// its home: the task that it has affinity to, or task 0 for the partition All of
// objects that all tasks allocate together. Other tasks get a copy when they first
// use a handle (Use), and from then on, until they Forget, the home broadcasts every
// change to them and to nobody else, over the schedule that stands in the entry's
// broadcast header. Allocating is therefore free of messages, and a change costs as
// many as there are users.
//
// An address is never used after its memory: a user that hears of a change which
// takes memory away first has its own readers let go (LetGo, LetGone), then
// confirms; and only when everyone has confirmed the home is told that the memory
// may be used again (Released). An entry has at most one broadcast under way; what
// changes meanwhile goes with the next one, so copies go through increasing versions
// and miss some, but never go back.
//
// The idea of the directory with its partitions is that of the IBM XL UPC runtime
// (Barton et al., Shared Memory Programming for Large Scale Machines, 2006).
//
// Package directory runs this for a real task.
package svd

import (
	"maps"
	"slices"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/collectives/patience"
	"evenkeel/collectives/relay"
)

// Config is what a replica must know. All tasks of a job have the same but for Self.
type Config struct {
	Self    Task
	Tasks   int
	Nodes   collectives.Nodes   // may be nil
	Network collectives.Network // what the schedules are chosen from
	// Limit is the length in bytes of the longest message that the network takes.
	Limit int
	// Retry is the time after which what is not answered is sent again, about twice
	// a round trip; it doubles each time, up to RetryMax.
	Retry, RetryMax time.Duration
	// Patience is after how many repetitions a task is reported as silent; 0: never.
	Patience int
}

// Ticket names a call whose answer comes later.
type Ticket uint64

// Answer is the end of a call.
type Answer struct {
	Ticket Ticket
	Handle Handle
	Err    error // an *Error
}

// Change says how an object is seen here from now on.
type Change struct {
	Handle Handle
	Entry  Entry
	Known  bool // else the handle leads to nothing here any more
}

// LetGo asks that whoever still uses the object as it was before this version stop;
// when the last one has, LetGone is to be called with the same.
type LetGo struct {
	Handle  Handle
	Version uint64
}

// Resolved is the end of a Use: the object is known now, or there is none.
type Resolved struct {
	Handle Handle
	Err    error // an *Error
}

// Range is memory of an object.
type Range struct {
	Handle        Handle
	Address, Size uint64
	Tail          bool // the object goes on before it
}

// Copy asks a task to copy its part of an object in All that is moved, which nobody
// uses; then Copied is to be called with the same.
type Copy struct {
	Handle    Handle
	From, To  uint64
	Size      uint64
	broadcast relay.Broadcast // by which the home asks
}

// Effects are what is to be done after an event: first the changes, then the rest in
// any order.
type Effects struct {
	Changes  []Change
	LetGo    []LetGo
	Messages []relay.Message
	Answers  []Answer
	Resolved []Resolved
	// Released is memory that no task will reach any more: at the home, or, of
	// objects in All, each task's own part.
	Released []Range
	// Quiet are objects of this home that nobody uses any more, for which Move was
	// called: Settle can be called for them.
	Quiet  []Handle
	Copies []Copy
	// Settled are objects of this home for which Settle was called: they have moved,
	// or were freed meanwhile.
	Settled []Resolved
	// Told are objects of this home of which everyone who uses them has heard how they
	// are now.
	Told   []Handle
	Silent []Task // that have not answered for too long
}

// Replica is the directory of one task. It is used by one goroutine at a time; every
// event takes the current time, which never goes back.
type Replica struct {
	config   Config
	now      time.Duration
	relay    *relay.Relay
	own      partition // this task's objects
	all      partition // those in All: at task 0 as their home, elsewhere as copies
	copies   map[Handle]Entry
	nonces   map[Handle]uint64 // by which this task asked for its copies
	wants    map[Handle]*want
	nonce    uint64
	letting  map[Handle][]letting
	rounds   map[uint64]Handle // the entry that a broadcast is about
	headers  map[collectives.Load]collectives.Schedule
	everyone []Task // but this task: at the home of All
	lines    map[Task]*line
	served   map[Task]*served
	tickets  Ticket
	calls    map[uint64]Ticket // collective ones under way
	due      patience.Queue
	gone     map[Task]bool
	out      Effects
}

// New makes the replica of a task in a job without objects.
func New(c Config) (*Replica, error) {
	if c.Tasks > int(All) {
		return nil, errors.Errorf("a job of %d tasks is too large for the directory, which knows up to %d", c.Tasks, All)
	}
	if err := c.Network.Check(); err != nil {
		return nil, err
	}
	r, err := relay.New(relay.Config{Self: c.Self, Tasks: c.Tasks, Nodes: c.Nodes, Limit: c.Limit,
		Retry: c.Retry, RetryMax: c.RetryMax, Patience: c.Patience})
	if err != nil {
		return nil, err
	}
	return &Replica{config: c, relay: r, copies: map[Handle]Entry{}, nonces: map[Handle]uint64{}, wants: map[Handle]*want{},
		letting: map[Handle][]letting{}, rounds: map[uint64]Handle{}, headers: map[collectives.Load]collectives.Schedule{},
		lines: map[Task]*line{}, served: map[Task]*served{}, calls: map[uint64]Ticket{}, gone: map[Task]bool{}}, nil
}

// Lookup returns the entry of an object that may be used now.
func (r *Replica) Lookup(h Handle) (Entry, error) {
	e, reason := r.look(h)
	if reason != 0 {
		return Entry{}, r.refuse("use", h, reason)
	}
	return e, nil
}

func (r *Replica) look(h Handle) (Entry, Reason) {
	if r.invalid(h) {
		return Entry{}, NoObject
	}
	var e Entry
	if p := r.partition(h); p == nil {
		copied, found := r.copies[h]
		if !found {
			return Entry{}, NotKnown
		}
		e = copied
	} else {
		s, reason := p.find(h)
		if reason == NoObject && h.Home() != r.config.Self {
			reason = NotKnown // the news may be on its way
		}
		if reason != 0 {
			return Entry{}, reason
		}
		e = s.Entry
	}
	switch e.State {
	case Moving:
		return e, IsMoving
	case Freed:
		return e, WasFreed
	}
	return e, 0
}

func (r *Replica) invalid(h Handle) bool {
	return h.Generation() == 0 || h.Partition() != All && int(h.Partition()) >= r.config.Tasks
}

// partition is where an object stands; nil for other tasks' objects.
func (r *Replica) partition(h Handle) *partition {
	switch h.Partition() {
	case r.config.Self:
		return &r.own
	case All:
		return &r.all
	}
	return nil
}

func (r *Replica) refuse(op string, h Handle, reason Reason) *Error {
	return &Error{Op: op, Handle: h, Task: r.config.Self, Reason: reason}
}

// LetGone answers a LetGo: no one here uses the object as it was before that version.
func (r *Replica) LetGone(now time.Duration, g LetGo) {
	r.now = now
	rest := r.letting[g.Handle][:0]
	var gone []letting
	for _, l := range r.letting[g.Handle] {
		if l.version <= g.Version {
			gone = append(gone, l)
		} else {
			rest = append(rest, l)
		}
	}
	if r.letting[g.Handle] = rest; len(rest) == 0 {
		delete(r.letting, g.Handle)
	}
	for _, l := range gone {
		switch l.what {
		case confirming:
			r.relay.Confirm(l.broadcast)
		case forgetting:
			r.send(g.Handle.Home(), forget(g.Handle, l.nonce))
		case changing:
			r.advance(g.Handle)
		}
	}
	r.pump()
}

// letting is what is done when readers have let go of an object.
type letting struct {
	version   uint64
	what      byte
	broadcast relay.Broadcast // to be confirmed
	nonce     uint64          // to be forgotten
}

const (
	confirming byte = iota // a user's: the change may go on at home
	forgetting             // a user's: home need not tell it any more
	changing               // the home's own
)

func (r *Replica) letGo(h Handle, l letting) {
	r.letting[h] = append(r.letting[h], l)
	r.out.LetGo = append(r.out.LetGo, LetGo{h, l.version})
}

func (r *Replica) changed(h Handle, e Entry, known bool) {
	r.out.Changes = append(r.out.Changes, Change{h, e, known})
}

func (r *Replica) send(to Task, message []byte) {
	if !r.gone[to] {
		r.out.Messages = append(r.out.Messages, relay.Message{To: to, Data: message})
	}
}

// Receive takes a message from another task. An error says what was wrong with it;
// it has changed nothing then.
func (r *Replica) Receive(now time.Duration, from Task, message []byte) error {
	r.now = now
	if int(from) >= r.config.Tasks || len(message) == 0 {
		return errMessage
	}
	defer r.pump()
	if relay.IsMessage(message) {
		return r.relay.Receive(now, from, message)
	}
	in := read(message[1:])
	switch message[0] {
	case kindWant:
		h, nonce := in.handle(r.config.Tasks), in.Number()
		if in.Bad || h.Home() != r.config.Self {
			return errMessage
		}
		r.wanted(from, h, nonce)
	case kindState:
		h, nonce, reason := in.handle(r.config.Tasks), in.Number(), in.reason()
		var e Entry
		if reason == 0 {
			e = in.entry()
		}
		if in.Bad || h.Home() != from {
			return errMessage
		}
		r.told(h, nonce, reason, e)
	case kindForget:
		h, nonce := in.handle(r.config.Tasks), in.Number()
		if in.Bad || h.Home() != r.config.Self {
			return errMessage
		}
		r.forgotten(from, h, nonce)
	case kindRequest:
		return r.requested(from, &in)
	case kindAnswer:
		return r.answered(from, &in)
	case kindBusy:
		sequence := in.Number()
		if in.Bad {
			return errMessage
		}
		if l := r.lines[from]; l != nil && l.sequence == sequence {
			l.waiting.Tries = 0 // it is not silent
		}
	default:
		return errMessage
	}
	return nil
}

// pump takes the relay's effects as events.
func (r *Replica) pump() {
	for {
		e := r.relay.Take()
		if len(r.out.Messages) == 0 {
			r.out.Messages = e.Messages
		} else {
			r.out.Messages = append(r.out.Messages, e.Messages...)
		}
		r.out.Silent = append(r.out.Silent, e.Silent...)
		for _, d := range e.Deliveries {
			r.news(d)
		}
		for _, b := range e.Completed {
			if h, found := r.rounds[b.Number]; found {
				delete(r.rounds, b.Number)
				r.confirmed(h)
			}
		}
		for _, red := range e.Reduced {
			if red.Root {
				r.gathered(red.Sequence, red.Value)
			}
		}
		if len(e.Deliveries) == 0 && len(e.Completed) == 0 && len(e.Reduced) == 0 {
			return
		}
	}
}

// Tick repeats what has not been answered in time. It may be called at any time.
func (r *Replica) Tick(now time.Duration) {
	r.now = now
	r.relay.Tick(now)
	for i := r.due.Due(now, r.config.RetryMax); i != nil; i = r.due.Due(now, r.config.RetryMax) {
		to, message := i.Owner.(asking).question()
		if i.Tries == r.config.Patience {
			r.out.Silent = append(r.out.Silent, to)
		}
		r.send(to, message)
	}
	r.pump()
}

// asking is what waits for an answer from one task.
type asking interface{ question() (Task, []byte) }

// Deadline is when Tick has something to do.
func (r *Replica) Deadline() (time.Duration, bool) {
	at, waits := r.due.Deadline()
	if other, also := r.relay.Deadline(); also && (!waits || other < at) {
		return other, true
	}
	return at, waits
}

// Take returns the effects since the last Take.
func (r *Replica) Take() Effects {
	e := r.out
	r.out = Effects{}
	return e
}

// Idle tells whether nothing is under way that this task takes part in.
func (r *Replica) Idle() bool {
	return r.relay.Idle() && r.due.Len() == 0 && len(r.rounds) == 0 && len(r.letting) == 0 && len(r.calls) == 0
}

// Gone says that a task is dead: what it would have had to confirm need not be, what
// was asked of it is refused, and its objects are not known any more. Its memory must
// not be reachable for those who still look at it.
func (r *Replica) Gone(now time.Duration, task Task) {
	r.now = now
	r.gone[task] = true
	r.relay.Gone(now, task)
	for _, p := range []*partition{&r.own, &r.all} {
		for i := range p.slots {
			if u := p.slots[i].users; u != nil {
				u.remove(task, ^uint64(0))
			}
		}
	}
	if i := slices.Index(r.everyone, task); i >= 0 {
		r.everyone = slices.Delete(r.everyone, i, i+1)
	}
	for _, h := range slices.Sorted(maps.Keys(r.copies)) {
		if h.Home() == task {
			delete(r.copies, h)
			delete(r.nonces, h)
			r.changed(h, Entry{}, false)
		}
	}
	if task == 0 {
		r.all.unknown(func(h Handle) { r.changed(h, Entry{}, false) })
	}
	for _, h := range slices.Sorted(maps.Keys(r.wants)) {
		if h.Home() == task {
			r.resolve(h, r.refuse("use", h, DeadTask))
		}
	}
	for _, sequence := range slices.Sorted(maps.Keys(r.calls)) {
		r.ended(sequence+1, 0, nobodyWithout(task))
	}
	if l := r.lines[task]; l != nil {
		r.due.Remove(&l.waiting)
		delete(r.lines, task)
		for _, o := range append(l.sent, l.queue...) {
			r.answer(o.ticket, o.handle, r.refuse(o.name(), o.handle, DeadTask))
		}
	}
	r.pump()
}

func (r *Replica) ticket() Ticket {
	r.tickets++
	return r.tickets
}

func (r *Replica) answer(t Ticket, h Handle, err *Error) {
	a := Answer{Ticket: t, Handle: h}
	if err != nil {
		a.Err = err
	}
	r.out.Answers = append(r.out.Answers, a)
}
