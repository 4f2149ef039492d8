package svd

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"evenkeel/collectives"
	"evenkeel/collectives/patience"
)

func appendNumber(to []byte, n uint64) []byte { return binary.AppendUvarint(to, n) }

// order is what one task asks another task's directory to do.
type order struct {
	op     byte
	ticket Ticket
	handle Handle
	spec   Spec
}

const (
	opFree byte = iota + 1
	opAllocate
)

func (o order) name() string {
	if o.op == opFree {
		return "free"
	}
	return "allocation for everyone"
}

// longestOrder is what an order takes at most in a message, longestHeader what
// stands before orders.
const (
	longestOrder  = 1 + 5*10 + 1
	longestHeader = 1 + 2*10
)

// line is this task's requests to one home: one message at a time is under way, so
// that the home needs to remember only its last answer to do everything once.
type line struct {
	home     Task
	sequence uint64
	sent     []order
	message  []byte
	queue    []order
	waiting  patience.Item
}

func (l *line) question() (Task, []byte) { return l.home, l.message }

// served is the last request of another task, and the results of its orders.
type served struct {
	sequence uint64
	results  []result
	open     int // orders that are not done yet
}

// result is what has come of an order.
type result struct {
	reason Reason
	handle Handle
}

// message answers a request: with its results, or that they are still to come.
func (s *served) message() []byte {
	if s.open > 0 {
		return appendNumber([]byte{kindBusy}, s.sequence)
	}
	message := appendNumber(appendNumber([]byte{kindAnswer}, s.sequence), uint64(len(s.results)))
	for _, done := range s.results {
		message = appendHandle(append(message, byte(done.reason)), done.handle)
	}
	return message
}

// done takes the result of an order; the request is answered with that of the last.
func (r *Replica) done(task Task, order uint64, came result) {
	s := r.served[task]
	s.results[order] = came
	if s.open--; s.open == 0 {
		r.send(task, s.message())
	}
}

// Free frees an object, from any task. The Answer says whether this was the call that
// freed it. It comes when all users have been told and have let go, so that nobody finds
// the object any more; the memory is Released at its home then.
func (r *Replica) Free(now time.Duration, h Handle) Ticket {
	r.now = now
	t := r.ticket()
	switch {
	case r.invalid(h):
		r.answer(t, h, r.refuse("free", h, NoObject))
	case h.Home() == r.config.Self:
		r.discard(h, freer{task: r.config.Self, number: uint64(t)})
	default:
		r.order(h.Home(), order{op: opFree, ticket: t, handle: h})
	}
	r.pump()
	return t
}

// AllocateGlobal enters an object in All for this task alone (upc_global_alloc): the
// Answer has its handle, and everyone learns of it.
func (r *Replica) AllocateGlobal(now time.Duration, spec Spec) Ticket {
	r.now = now
	t := r.ticket()
	if r.config.Self == 0 {
		h, err := r.enter(spec, 0)
		r.answer(t, h, err)
	} else {
		r.order(0, order{op: opAllocate, ticket: t, spec: spec})
	}
	r.pump()
	return t
}

// enter allocates in All, and tells everyone.
func (r *Replica) enter(spec Spec, ticket uint64) (Handle, *Error) {
	h, err := r.allocate(All, spec)
	if err != nil {
		return 0, err
	}
	s := &r.all.slots[h.Index()]
	s.users = &users{telling: s.Version}
	r.broadcastEntry(h, s, ticket)
	r.advance(h)
	return h, nil
}

func (r *Replica) order(home Task, o order) {
	if r.gone[home] {
		r.answer(o.ticket, o.handle, r.refuse(o.name(), o.handle, DeadTask))
		return
	}
	l := r.lines[home]
	if l == nil {
		l = &line{home: home}
		l.waiting.Owner = l
		r.lines[home] = l
	}
	l.queue = append(l.queue, o)
	r.submit(l)
}

// submit sends what has queued up, as much as a message takes.
func (r *Replica) submit(l *line) {
	if len(l.sent) > 0 || len(l.queue) == 0 {
		return
	}
	n := min(len(l.queue), max(1, (r.config.Limit-longestHeader)/longestOrder))
	l.sent = append([]order(nil), l.queue[:n]...)
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.sequence++
	l.message = appendNumber(appendNumber([]byte{kindRequest}, l.sequence), uint64(n))
	for _, o := range l.sent {
		l.message = append(l.message, o.op)
		if o.op == opFree {
			l.message = appendHandle(l.message, o.handle)
		} else {
			l.message = appendSpec(l.message, o.spec)
		}
	}
	r.due.Add(r.now, &l.waiting, r.config.Retry)
	r.send(l.home, l.message)
}

// requested does what another task asks for, once.
func (r *Replica) requested(from Task, in *reader) error {
	sequence, count := in.Number(), in.Number()
	if in.Bad || count == 0 || count > uint64(len(in.Rest)) {
		return errMessage
	}
	orders := make([]order, count)
	for i := range orders {
		o := &orders[i]
		o.op = in.Byte()
		switch o.op {
		case opFree:
			o.handle = in.handle(r.config.Tasks)
			in.Bad = in.Bad || o.handle.Home() != r.config.Self
		case opAllocate:
			o.spec = in.spec()
			in.Bad = in.Bad || r.config.Self != 0
		default:
			in.Bad = true
		}
		if in.Bad {
			return errMessage
		}
	}
	last := r.served[from]
	if last == nil {
		last = &served{}
	}
	switch {
	case sequence == last.sequence && sequence > 0:
		r.send(from, last.message())
		return nil
	case sequence != last.sequence+1:
		return nil // late: its answer has arrived
	case last.open > 0:
		return errMessage // one is under way at a time
	}
	r.served[from] = &served{sequence, make([]result, count), len(orders)}
	for i, o := range orders {
		if o.op == opFree {
			r.discard(o.handle, freer{task: from, number: uint64(i)})
			continue
		}
		h, err := r.enter(o.spec, 0)
		came := result{handle: h}
		if err != nil {
			came.reason = err.Reason
		}
		r.done(from, uint64(i), came)
	}
	return nil
}

// answered takes the results of a request.
func (r *Replica) answered(from Task, in *reader) error {
	sequence, count := in.Number(), in.Number()
	l := r.lines[from]
	if in.Bad {
		return errMessage
	}
	if l == nil || sequence != l.sequence || len(l.sent) == 0 {
		return nil // a late one
	}
	if count != uint64(len(l.sent)) {
		return errMessage
	}
	results := make([]result, count)
	for i := range results {
		results[i] = result{in.reason(), Handle(in.Number())}
	}
	if in.Bad {
		return errMessage
	}
	sent := l.sent
	l.sent, l.message = nil, nil
	r.due.Remove(&l.waiting)
	for i, o := range sent {
		var err *Error
		if results[i].reason != 0 {
			err = r.refuse(o.name(), o.handle, results[i].reason)
			if o.op == opAllocate {
				if why := o.spec.check(); why != nil {
					err.Detail = why.Error()
				}
			}
		}
		r.answer(o.ticket, results[i].handle, err)
	}
	r.submit(l)
	return nil
}

// collectiveGroup is the relay's number for all tasks of the job.
const collectiveGroup = 0

// AllocateAll enters an object in All together with all other tasks (upc_all_alloc):
// each calls it, in the same order, with the same arguments but for the address, of
// which task 0's counts (NoAddress: there is no memory). All get the same handle, or
// the same error; from when they know that a task is dead on, that.
func (r *Replica) AllocateAll(now time.Duration, spec Spec) Ticket {
	r.now = now
	t := r.ticket()
	if len(r.gone) > 0 { // they can't come together any more
		r.answer(t, 0, nobodyWithout(slices.Min(slices.Collect(maps.Keys(r.gone)))))
		return t
	}
	place := r.gathering().PlaceAmongAll(r.config.Tasks, r.config.Self)
	value := appendSpec(appendNumber(nil, uint64(r.config.Self)), spec)
	sequence := r.relay.Reduce(now, collectiveGroup, place, value, agree)
	r.calls[sequence] = t
	r.pump()
	return t
}

// nobodyWithout refuses a collective call because a task is dead.
func nobodyWithout(task Task) *Error {
	return &Error{Op: "collective allocation", Task: task, Reason: DeadTask}
}

// gathering is the tree by which collective calls come together.
func (r *Replica) gathering() collectives.Shape {
	load := collectives.Load{Bytes: longestOrder, Receivers: r.config.Tasks - 1, Reduce: true}
	s, found := r.headers[load]
	if !found {
		s, _ = r.config.Network.Choose(load)
		r.headers[load] = s
	}
	return s.Outer
}

// agree combines the arguments of two tasks: those of the first, and, behind them,
// those of the first task whose arguments are different, if there is one.
func agree(before, after []byte) []byte {
	a, b := read(before), read(after)
	a.Number()
	first := a.spec()
	if len(a.Rest) > 0 || a.Bad {
		return before
	}
	b.Number()
	other := b.spec()
	if other.Address = first.Address; other != first {
		return append(before, after[:len(after)-len(b.Rest)]...)
	}
	return append(before, b.Rest...)
}

// gathered: all tasks have called, and task 0 has what they gave.
func (r *Replica) gathered(sequence uint64, value []byte) {
	in := read(value)
	in.Number()
	spec := in.spec()
	ticket := sequence + 1
	var err *Error
	if len(in.Rest) > 0 {
		other := Task(in.Number())
		err = &Error{Op: "collective allocation", Task: other, Reason: Unequal, Detail: spec.difference(in.spec())}
	} else if spec.Address == NoAddress {
		err = &Error{Op: "collective allocation", Reason: NoMemory}
	}
	if err == nil {
		var h Handle
		if h, err = r.enter(spec, ticket); err == nil {
			r.ended(ticket, h, nil)
			return
		}
		err.Op = "collective allocation"
	}
	if receivers := r.allOthers(); len(receivers) > 0 {
		news := append(appendNumber([]byte{newsRefuse}, ticket), byte(err.Reason))
		news = append(appendNumber(news, uint64(err.Task)), err.Detail...)
		r.broadcast(r.choose(receivers, len(news)), receivers, news)
	}
	r.ended(ticket, 0, err)
}

// ended answers this task's part of a collective call; ticket 0 is none.
func (r *Replica) ended(ticket uint64, h Handle, err *Error) {
	if ticket == 0 {
		return
	}
	if t, open := r.calls[ticket-1]; open {
		delete(r.calls, ticket-1)
		r.answer(t, h, err)
	}
}
