// Package relay broadcasts and reduces over a network that loses, repeats and
// reorders packets, as a pure state machine of one task: packets and the current
// time in; packets, deliveries and the next deadline out.
//
// A broadcast goes down a tree (package collectives). Each message carries the
// receivers below the one that it goes to, so only the origin needs to know who
// they are, and it may be others each time. A task has done its part when its own
// user has confirmed the delivery and all its children have done theirs; then it
// says so to the task that it has the message from, which repeats the message until
// it hears that. So the origin knows at the end that everyone has confirmed, after
// as many messages as receivers each way, none of which it had to send alone. A
// delivery is made exactly once.
//
// A reduction goes up the tree of a group whose members all know each other; a
// contribution is repeated until it has been taken.
package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/collectives/patience"
)

// Task is the number of a task in its job.
type Task = collectives.Task

// Config is what a relay must know. All tasks of a job have the same but for Self.
type Config struct {
	Self  Task
	Tasks int               // in the job
	Nodes collectives.Nodes // may be nil
	// Limit is the length in bytes of the longest message that the network takes,
	// at least MinLimit.
	Limit int
	// Retry is how long a task waits for a child to confirm before it repeats a
	// message, for each level of the tree below; about twice a round trip. It
	// doubles with each repetition, up to RetryMax.
	Retry, RetryMax time.Duration
	// Patience is after how many repetitions a task is reported as silent; 0: never.
	Patience int
}

// MinLimit is the least that Limit may be: a header and something to carry.
const MinLimit = 128

// maxParts bounds how many parts a broadcast has, and so what a receiver keeps.
const maxParts = 1 << 16

// Message is a packet for another task.
type Message struct {
	To   Task
	Data []byte
}

// Broadcast names a broadcast: its origin, and the number of its first part there.
type Broadcast struct {
	Origin Task
	Number uint64
}

// Delivery is the data of a broadcast by somebody else, whose user must Confirm it.
type Delivery struct {
	Broadcast
	Hops int // how often it was passed on from the origin
	Data []byte
}

// Reduced is the end of a reduction in one task: at the root with the value, and at
// the others when their contribution has been taken.
type Reduced struct {
	Group    uint32
	Sequence uint64
	Root     bool
	Value    []byte
}

// Effects are what is to be done after an event, each list in order.
type Effects struct {
	Messages   []Message
	Deliveries []Delivery
	Completed  []Broadcast // own ones, which everyone has confirmed
	Reduced    []Reduced
	Silent     []Task // that have not confirmed for too long, once for each silence
}

// Relay is the state of one task. It is used by one goroutine at a time.
type Relay struct {
	config   Config
	next     uint64 // number of the next part
	open     map[uint64]bool
	floor    uint64
	own      map[uint64]int // parts of own broadcasts that are not confirmed, by the first
	passages map[key]*passage
	origins  map[Task]*history
	partial  map[key]*assembly // by the first part
	groups   map[uint32]*member
	due      patience.Queue
	gone     map[Task]bool
	effects  Effects
}

// New makes the relay of a task that has not sent or received anything yet.
func New(c Config) (*Relay, error) {
	if c.Limit < MinLimit || c.Retry <= 0 || c.RetryMax < c.Retry || c.Tasks < 1 || int(c.Self) >= c.Tasks {
		return nil, errors.Errorf("a relay can't be made for task %d of %d, with messages of up to %d bytes (at least %d) and retries after %v up to %v",
			c.Self, c.Tasks, c.Limit, MinLimit, c.Retry, c.RetryMax)
	}
	return &Relay{config: c,
		open: map[uint64]bool{}, own: map[uint64]int{}, passages: map[key]*passage{}, origins: map[Task]*history{},
		partial: map[key]*assembly{}, groups: map[uint32]*member{}, gone: map[Task]bool{}}, nil
}

// passage is a part of a broadcast that has come through this task and is not done.
type passage struct {
	pass
	parent    Task
	children  []branch  // that have not done their part
	only      [1]branch // mostly there is no other child: without memory of its own
	confirmed bool      // by the user here
	waiting   patience.Item
}

// branch is a child, and whom it passes the message on to.
type branch struct {
	child Task
	below []Task
}

// history is what is known of an origin's parts: those below the floor are done
// everywhere, and finished are others that are done here.
type history struct {
	floor    uint64
	finished map[uint64]bool
}

// assembly collects the parts of a broadcast that has several.
type assembly struct {
	parts   [][]byte
	missing int
	numbers []uint64
	hops    int
}

// Broadcast begins a broadcast to receivers, each once and without this task,
// arranged as the schedule wants (collectives.Arrange). The relay keeps data and
// receivers until everyone has confirmed: then the broadcast is among Completed.
// Without receivers that is at once.
func (r *Relay) Broadcast(now time.Duration, s collectives.Schedule, receivers []Task, data []byte) (Broadcast, error) {
	if err := s.Check(); err != nil {
		return Broadcast{}, err
	}
	b := Broadcast{Origin: r.config.Self, Number: r.next}
	if len(r.gone) > 0 {
		receivers = slices.DeleteFunc(slices.Clone(receivers), func(t Task) bool { return r.gone[t] })
	}
	if len(receivers) == 0 {
		r.next++
		r.lift()
		r.effects.Completed = append(r.effects.Completed, b)
		return b, nil
	}
	pieces := [][]byte{data} // mostly
	if size := r.piece(s); len(data) > size {
		pieces = slices.Collect(slices.Chunk(data, size))
	}
	if len(pieces) > maxParts {
		return Broadcast{}, errors.Errorf("a broadcast of %d bytes would go in %d parts, but %d are the most", len(data), len(pieces), maxParts)
	}
	first := r.next
	r.next += uint64(len(pieces))
	r.own[first] = len(pieces)
	for i := range pieces {
		r.open[first+uint64(i)] = true
	}
	for i, piece := range pieces {
		p := &passage{parent: r.config.Self, confirmed: true, pass: pass{
			origin: r.config.Self, number: first + uint64(i), first: first, parts: uint64(len(pieces)),
			schedule: s, data: piece,
		}}
		r.passages[key{p.origin, p.number}] = p
		for tree := range slices.Chunk(receivers, r.width(s, receivers, len(pieces[0]))) {
			p.split(r.config, tree)
		}
		r.begin(now, p)
	}
	return b, nil
}

// piece is the length of pieces of data that leave half of a message to the route.
func (r *Relay) piece(s collectives.Schedule) int {
	size := (r.config.Limit - headerLength) / 2
	if s.Segment > 0 {
		size = min(size, int(s.Segment))
	}
	return size
}

// headerLength is the most that a pass takes besides route and data.
const headerLength = 1 + 6*10 + 4

// width is into lists of how many receivers are cut so that messages stay below the limit: mostly all are one.
func (r *Relay) width(s collectives.Schedule, receivers []Task, data int) int {
	const longestStep = 10 // bytes that a task takes at most in a route, with its run
	room := r.config.Limit - headerLength - data
	if s.Outer.Kind == collectives.Flat && (s.Inner.Kind == collectives.None || r.config.Nodes == nil) ||
		len(receivers)*longestStep < room || len(appendRoute(nil, receivers)) <= room {
		return len(receivers)
	}
	return max(1, room/longestStep)
}

func (p *passage) split(c Config, receivers []Task) {
	if p.children == nil {
		p.children = p.only[:0]
	}
	for child, below := range p.schedule.Split(c.Self, receivers, c.Nodes) {
		p.children = append(p.children, branch{child, below})
	}
}

// begin sends a passage to its children, without those that are gone.
func (r *Relay) begin(now time.Duration, p *passage) {
	for i := 0; i < len(p.children); {
		if r.gone[p.children[i].child] {
			r.adopt(p, i)
		} else {
			i++
		}
	}
	r.send(p)
	levels := 1
	for _, b := range p.children {
		levels = max(levels, 1+p.depth(len(b.below)))
	}
	p.waiting.Owner = p
	if !r.finish(p) {
		r.due.Add(now, &p.waiting, r.config.Retry*time.Duration(levels))
	}
}

// depth is about how many levels there are below.
func (p *passage) depth(below int) int {
	depth := p.schedule.Outer.Depth(below)
	if p.schedule.Inner.Kind != collectives.None {
		depth += p.schedule.Inner.Depth(below)
	}
	return depth
}

func (r *Relay) send(p *passage) {
	out := p.pass
	out.floor = min(r.floor, p.first) // of one's own broadcasts
	if p.origin != r.config.Self {
		out.floor = p.floor
	}
	out.hops++
	for _, b := range p.children {
		out.route = b.below
		data := make([]byte, 0, headerLength+len(out.route)+len(out.data)) // a longer route takes more room
		r.effects.Messages = append(r.effects.Messages, Message{b.child, out.append(data)})
	}
}

// finish ends a passage that everyone below has confirmed, and says so above.
func (r *Relay) finish(p *passage) bool {
	if len(p.children) > 0 || !p.confirmed {
		return false
	}
	k := key{p.origin, p.number}
	delete(r.passages, k)
	r.due.Remove(&p.waiting)
	if p.origin != r.config.Self {
		h := r.origin(p.origin)
		if p.number >= h.floor {
			h.finished[p.number] = true
		}
		if !r.gone[p.parent] {
			r.effects.Messages = append(r.effects.Messages, Message{p.parent, k.done(nil)})
		}
		return true
	}
	delete(r.open, p.number)
	r.lift()
	if r.own[p.first]--; r.own[p.first] == 0 {
		delete(r.own, p.first)
		r.effects.Completed = append(r.effects.Completed, Broadcast{r.config.Self, p.first})
	}
	return true
}

// lift brings the floor up to the oldest part that is not done.
func (r *Relay) lift() {
	for r.floor < r.next && !r.open[r.floor] {
		r.floor++
	}
}

func (r *Relay) origin(t Task) *history {
	h := r.origins[t]
	if h == nil {
		h = &history{finished: map[uint64]bool{}}
		r.origins[t] = h
	}
	return h
}

// IsMessage tells whether a packet is for a relay: its first byte says so. Others
// may use the same network with other first bytes.
func IsMessage(packet []byte) bool {
	return len(packet) > 0 && packet[0] >= kindPass && packet[0] < kinds
}

// Receive takes a packet from another task. An error says what was wrong with it;
// it has changed nothing then.
func (r *Relay) Receive(now time.Duration, from Task, packet []byte) error {
	if !IsMessage(packet) || int(from) >= r.config.Tasks {
		return errMessage
	}
	rest := read(packet[1:])
	switch packet[0] {
	case kindPass:
		p, err := parsePass(packet[1:], r.config.Tasks)
		if err != nil {
			return err
		}
		if p.origin == r.config.Self {
			return errors.Errorf("task %d sent task %d's own broadcast back", from, p.origin)
		}
		return r.received(now, from, p)
	case kindDone:
		k := key{rest.task(r.config.Tasks), rest.Number()}
		if rest.Bad {
			return errMessage
		}
		r.done(from, k)
		return nil
	case kindContribution:
		s := rest.step()
		if rest.Bad {
			return errMessage
		}
		r.contribution(now, from, s, rest.Rest)
		return nil
	default:
		s := rest.step()
		if rest.Bad {
			return errMessage
		}
		r.taken(from, s)
		return nil
	}
}

// received: a message that has come before is answered if it is done; if it is not,
// the answer comes by itself.
func (r *Relay) received(now time.Duration, from Task, in pass) error {
	k, h := key{in.origin, in.number}, r.origin(in.origin)
	if in.floor > h.floor {
		h.floor = in.floor
		for n := range h.finished {
			if n < in.floor {
				delete(h.finished, n)
			}
		}
	}
	if in.number < h.floor || h.finished[in.number] {
		r.effects.Messages = append(r.effects.Messages, Message{from, k.done(nil)})
		return nil
	}
	if p := r.passages[k]; p != nil {
		p.parent = from // another than before, if that is gone
		return nil
	}
	first := key{in.origin, in.first}
	a := r.partial[first]
	if a == nil && in.parts > 1 {
		a = &assembly{parts: make([][]byte, in.parts), missing: int(in.parts)}
		r.partial[first] = a
	} else if a != nil && uint64(len(a.parts)) != in.parts {
		return errors.Errorf("task %d's broadcast %d has %d parts in one message and %d in another", in.origin, in.first, len(a.parts), in.parts)
	}
	in.data = slices.Clone(in.data)
	p := &passage{pass: in, parent: from}
	r.passages[k] = p
	p.split(r.config, in.route)
	r.begin(now, p)
	if a == nil {
		r.effects.Deliveries = append(r.effects.Deliveries, Delivery{Broadcast{in.origin, in.first}, int(in.hops), in.data})
		return nil
	}
	a.parts[in.number-in.first] = in.data
	a.missing--
	a.hops = max(a.hops, int(in.hops))
	if a.missing == 0 {
		r.effects.Deliveries = append(r.effects.Deliveries, Delivery{Broadcast{in.origin, in.first}, a.hops, slices.Concat(a.parts...)})
	}
	return nil
}

// Confirm says that the user has done what a delivery asks for.
func (r *Relay) Confirm(b Broadcast) {
	first := key{b.Origin, b.Number}
	if p := r.passages[first]; p != nil && p.parts == 1 {
		p.confirmed = true
		r.finish(p)
		return
	}
	a := r.partial[first]
	if a == nil || a.missing > 0 {
		return
	}
	delete(r.partial, first)
	for i := range a.parts {
		if p := r.passages[key{b.Origin, b.Number + uint64(i)}]; p != nil {
			p.confirmed = true
			r.finish(p)
		}
	}
}

func (r *Relay) done(from Task, k key) {
	p := r.passages[k]
	if p == nil {
		return
	}
	if i := slices.IndexFunc(p.children, func(b branch) bool { return b.child == from }); i >= 0 {
		p.children = slices.Delete(p.children, i, i+1)
		r.finish(p)
	}
}

// Gone says that a task is dead. Those who had messages from it have them from its
// parents; a reduction of its group never ends.
func (r *Relay) Gone(now time.Duration, task Task) {
	r.gone[task] = true
	for _, p := range r.sorted() {
		i := slices.IndexFunc(p.children, func(b branch) bool { return b.child == task })
		if i < 0 {
			continue
		}
		r.adopt(p, i)
		r.begin(now, p)
	}
}

// adopt puts the children of a child that is gone in its place.
func (r *Relay) adopt(p *passage, i int) {
	below := p.children[i].below
	p.children = slices.Delete(p.children, i, i+1)
	p.split(r.config, below)
}

// sorted are the passages in an order that does not depend on the map.
func (r *Relay) sorted() []*passage {
	all := make([]*passage, 0, len(r.passages))
	for _, p := range r.passages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *passage) int {
		return cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.number, b.number))
	})
	return all
}

// Tick repeats what has not been confirmed in time. It may be called at any time.
func (r *Relay) Tick(now time.Duration) {
	for i := r.due.Due(now, r.config.RetryMax); i != nil; i = r.due.Due(now, r.config.RetryMax) {
		w := i.Owner.(waiter)
		if i.Tries == r.config.Patience {
			r.effects.Silent = append(r.effects.Silent, w.missing()...)
		}
		w.repeat(r)
	}
}

// waiter is what waits for answers: a passage or a reduction.
type waiter interface {
	missing() []Task
	repeat(*Relay)
}

func (p *passage) missing() []Task {
	var tasks []Task
	for _, b := range p.children {
		tasks = append(tasks, b.child)
	}
	return tasks
}

func (p *passage) repeat(r *Relay) { r.send(p) }

// Deadline is when Tick has something to do.
func (r *Relay) Deadline() (time.Duration, bool) { return r.due.Deadline() }

// Take returns the effects since the last Take.
func (r *Relay) Take() Effects {
	e := r.effects
	r.effects = Effects{}
	return e
}

// Idle tells whether nothing is under way: all that this task has sent is
// confirmed, and all that it has received is done.
func (r *Relay) Idle() bool {
	return len(r.passages) == 0 && r.due.Len() == 0 && len(r.partial) == 0
}
