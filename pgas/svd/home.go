package svd

import (
	"slices"
	"time"

	"evenkeel/collectives"
	"evenkeel/collectives/relay"
)

// partition is the objects of one home, by their index.
type partition struct {
	slots []slot
	free  []uint32 // indices that are not in use and may be again
}

// slot is an index with the object that has it now, or had it last.
type slot struct {
	Entry
	generation uint16
	users      *users // nil: nobody but the home knows the object, and nothing is under way
}

// users is who knows an object besides its home, and how they are told of changes:
// the entry's broadcast header.
type users struct {
	tasks  []Task   // in order; of objects in All empty, for those are everyone's
	nonces []uint64 // by which they asked

	header    collectives.Schedule
	chosenFor int // so many users; 0: not chosen

	telling  uint64 // the version that is being told, 0: none
	open     bool   // its broadcast is under way, or that of a moving
	moving   *moving
	releases []release
	freers   []freer
}

// freer is a task that is answered when everyone has heard that the object is freed.
type freer struct {
	task   Task
	number uint64 // of its own ticket, or of the order in the task's request
	reason Reason // WasFreed: by another call
}

// release is memory that is free when everyone has heard of a version.
type release struct {
	version uint64
	memory  Range
}

// moving is an object in All of which each task copies its part.
type moving struct {
	next   Entry
	copied bool // here
}

// find returns the slot of an object.
func (p *partition) find(h Handle) (*slot, Reason) {
	if int(h.Index()) >= len(p.slots) {
		return nil, NoObject
	}
	s := &p.slots[h.Index()]
	switch {
	case s.generation < h.Generation():
		return nil, NoObject
	case s.generation > h.Generation() || s.State == Freed && s.users == nil:
		return nil, WasFreed
	}
	return s, 0
}

// allocate finds an index; the slot's generation is the new object's.
func (p *partition) allocate(partition Task, spec Spec) (Handle, bool) {
	var index uint32
	switch {
	case len(p.free) > 0:
		index = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	case len(p.slots) < maxIndex: // the last one is no object's
		index = uint32(len(p.slots))
		p.slots = append(p.slots, slot{})
	default:
		return 0, false
	}
	s := &p.slots[index]
	*s = slot{Entry: Entry{Spec: spec, Version: 1}, generation: s.generation + 1}
	return newHandle(partition, index, s.generation), true
}

// Allocate enters an object with affinity to this task. It needs no message: who
// uses the handle asks for the entry.
func (r *Replica) Allocate(now time.Duration, spec Spec) (Handle, error) {
	r.now = now
	h, err := r.allocate(r.config.Self, spec)
	if err != nil {
		return 0, err
	}
	return h, nil
}

func (r *Replica) allocate(partition Task, spec Spec) (Handle, *Error) {
	if err := spec.check(); err != nil {
		return 0, &Error{Op: "allocation", Task: r.config.Self, Reason: BadSpec, Detail: err.Error()}
	}
	p := &r.own
	if partition == All {
		p = &r.all
	}
	h, ok := p.allocate(partition, spec)
	if !ok {
		return 0, r.refuse("allocation", 0, TooMany)
	}
	r.changed(h, p.slots[h.Index()].Entry, true)
	return h, nil
}

// mine returns the slot of a live object of this home.
func (r *Replica) mine(op string, h Handle) (*slot, *Error) {
	if r.invalid(h) {
		return nil, r.refuse(op, h, NoObject)
	}
	if h.Home() != r.config.Self {
		return nil, r.refuse(op, h, NotHome)
	}
	s, reason := r.partition(h).find(h)
	if reason == 0 && s.State == Freed {
		reason = WasFreed
	}
	if reason != 0 {
		return nil, r.refuse(op, h, reason)
	}
	return s, nil
}

// Told tells whether everyone who uses an object of this home has heard how it is now;
// if not, it will be among Told when they have.
func (r *Replica) Told(h Handle) bool {
	if r.invalid(h) || h.Home() != r.config.Self {
		return true
	}
	s, _ := r.partition(h).find(h)
	return s == nil || s.users == nil || s.users.telling == 0
}

// Resize changes the size of an object where it is, and the number of its elements: its
// home, which has the memory behind it when it grows (of an object in All, in all
// tasks). Others hear of it later (Told). When it shrinks, the end is Released once everyone has let go of it.
func (r *Replica) Resize(now time.Duration, h Handle, size, elements uint64) error {
	r.now = now
	s, err := r.mine("resizing", h)
	if err != nil {
		return err
	}
	if s.State == Moving {
		return r.refuse("resizing", h, IsMoving)
	}
	next := s.Entry
	next.Size, next.Elements = size, elements
	if err := next.check(); err != nil {
		return &Error{Op: "resizing", Handle: h, Task: r.config.Self, Reason: BadSpec, Detail: err.Error()}
	}
	if next == s.Entry {
		return nil
	}
	var freed *Range
	if size < s.Size {
		freed = &Range{h, s.Address + size, s.Size - size, true}
	}
	r.change(h, s, next, freed)
	r.pump()
	return nil
}

// Move begins to move an object of this home: from now on no lookup returns its
// address, and when nobody uses it any more it is among Quiet. Then Settle says where
// it shall be.
func (r *Replica) Move(now time.Duration, h Handle) error {
	r.now = now
	s, err := r.mine("moving", h)
	if err != nil {
		return err
	}
	if s.State == Moving {
		return r.refuse("moving", h, IsMoving)
	}
	next := s.Entry
	next.State = Moving
	r.change(h, s, next, nil)
	r.pump()
	return nil
}

// Settle ends a Move, after the object was among Quiet: it is at address from now on,
// and has this size and number of elements. An object with affinity to this task has
// been copied there. Of one in All each task copies its own part now (Copy), and when
// all have done so it is there. When everyone has heard, the memory before is Released;
// that it goes to is Released if the object was freed meanwhile. The end is among Settled.
func (r *Replica) Settle(now time.Duration, h Handle, address, size, elements uint64) error {
	r.now = now
	s, err := r.mine("settling", h)
	if err != nil {
		return err
	}
	if s.State != Moving {
		return r.refuse("settling", h, NotMoving)
	}
	if s.users != nil && s.users.telling > 0 {
		return r.refuse("settling", h, NotReleased)
	}
	next := s.Entry
	next.State, next.Address, next.Size, next.Elements = Live, address, size, elements
	if err := next.check(); err != nil {
		return &Error{Op: "settling", Handle: h, Task: r.config.Self, Reason: BadSpec, Detail: err.Error()}
	}
	if h.Partition() == All {
		r.copyParts(h, s, next)
	} else {
		r.settled(h, s, next)
	}
	r.pump()
	return nil
}

// settled gives a moved object its new entry.
func (r *Replica) settled(h Handle, s *slot, next Entry) {
	r.out.Settled = append(r.out.Settled, Resolved{Handle: h})
	r.change(h, s, next, &Range{h, s.Address, s.Size, false})
}

// copyParts has all tasks copy their part of an object. Until they have, nothing else is
// told of it, and so nothing of its memory is given back.
func (r *Replica) copyParts(h Handle, s *slot, next Entry) {
	u := s.users
	u.moving, u.telling = &moving{next: next}, s.Version
	c := Copy{Handle: h, From: s.Address, To: next.Address, Size: min(s.Size, next.Size)}
	r.out.Copies = append(r.out.Copies, c)
	if receivers := r.allOthers(); len(receivers) > 0 {
		news := appendHandle([]byte{newsCopy}, h)
		news = appendNumber(appendNumber(appendNumber(news, c.From), c.To), c.Size)
		u.open = true
		r.rounds[r.broadcast(u.header, receivers, news)] = h
	}
}

// Copied answers a Copy.
func (r *Replica) Copied(now time.Duration, c Copy) {
	r.now = now
	if c.Handle.Home() != r.config.Self {
		r.relay.Confirm(c.broadcast)
	} else if s := r.slotOf(c.Handle); s != nil && s.users != nil && s.users.moving != nil {
		s.users.moving.copied = true
		r.advance(c.Handle)
	}
	r.pump()
}

// arrived ends the moving of an object of which all parts have been copied.
func (r *Replica) arrived(h Handle, s *slot) {
	next := s.users.moving.next
	s.users.moving, s.users.telling = nil, 0
	if s.State == Moving {
		r.settled(h, s, next)
		return
	}
	r.out.Settled = append(r.out.Settled, Resolved{h, r.refuse("moving", h, WasFreed)})
	r.release(Range{h, next.Address, next.Size, false})
	r.tell(h, s)
}

// discard frees an object of this home. Who is refused because another call has just freed it is not answered
// either before everyone has heard.
func (r *Replica) discard(h Handle, by freer) {
	s, err := r.mine("free", h)
	if err == nil {
		if s.users == nil {
			s.users = &users{}
		}
		s.users.freers = append(s.users.freers, by)
		next := s.Entry
		next.State = Freed
		r.change(h, s, next, &Range{h, s.Address, s.Size, false})
		return
	}
	by.reason = err.Reason
	if by.reason == WasFreed {
		if s := r.slotOf(h); s != nil && s.users != nil {
			s.users.freers = append(s.users.freers, by)
			return
		}
	}
	r.discarded(h, by)
}

// discarded answers who has freed an object.
func (r *Replica) discarded(h Handle, by freer) {
	switch {
	case by.task != r.config.Self:
		r.done(by.task, by.number, result{by.reason, h})
	case by.reason != 0:
		r.answer(Ticket(by.number), h, r.refuse("free", h, by.reason))
	default:
		r.answer(Ticket(by.number), h, nil)
	}
}

// change gives an object its next version, and has everyone told who knows it. What
// is freed by it is so when they have heard.
func (r *Replica) change(h Handle, s *slot, next Entry, freed *Range) {
	next.Version = s.Version + 1
	loses := s.loses(next)
	s.Entry = next
	if s.users == nil {
		s.users = &users{}
	}
	if freed != nil {
		s.users.releases = append(s.users.releases, release{next.Version, *freed})
	}
	r.changed(h, next, next.State != Freed)
	if loses {
		r.letGo(h, letting{version: next.Version, what: changing})
	}
	r.tell(h, s)
}

// tell begins to tell the current version, unless another is being told.
func (r *Replica) tell(h Handle, s *slot) {
	u := s.users
	if u.telling > 0 {
		return
	}
	u.telling = s.Version
	r.broadcastEntry(h, s, 0)
	r.advance(h)
}

// broadcastEntry sends an object's entry to its users.
func (r *Replica) broadcastEntry(h Handle, s *slot, ticket uint64) {
	u := s.users
	receivers := u.tasks
	if h.Partition() == All {
		receivers = r.allOthers()
	}
	if len(receivers) == 0 {
		return
	}
	news := appendHandle(append(make([]byte, 0, longestEntry), newsUpdate), h)
	news = appendEntry(appendNumber(news, ticket), s.Entry)
	if n := len(receivers); u.chosenFor == 0 || n > 2*u.chosenFor || 2*n < u.chosenFor {
		u.header, u.chosenFor = r.choose(receivers, len(news)), n
	}
	u.open = true
	r.rounds[r.broadcast(u.header, receivers, news)] = h
}

// broadcast returns the number of a broadcast to receivers.
func (r *Replica) broadcast(s collectives.Schedule, receivers []Task, news []byte) uint64 {
	arranged := slices.Clone(receivers) // which the relay keeps
	collectives.Arrange(r.config.Self, arranged, r.config.Nodes)
	b, err := r.relay.Broadcast(r.now, s, arranged, news)
	if err != nil {
		panic(err) // the schedule is one that Choose made
	}
	return b.Number
}

// choose makes a broadcast header, or finds one made before for about as many users.
func (r *Replica) choose(receivers []Task, bytes int) collectives.Schedule {
	load := collectives.Load{Bytes: about(bytes), Receivers: about(len(receivers))}
	if r.config.Nodes != nil {
		members := map[uint32]int{r.config.Nodes(r.config.Self): 1}
		fullest := 1
		for _, t := range receivers {
			members[r.config.Nodes(t)]++
			fullest = max(fullest, members[r.config.Nodes(t)])
		}
		load.Nodes, load.Fullest = about(len(members)), about(fullest)
	}
	s, found := r.headers[load]
	if !found {
		s, _ = r.config.Network.Choose(load)
		s.Segment = 0 // an entry is never cut
		r.headers[load] = s
	}
	return s
}

// about rounds up to a power of two.
func about(n int) int {
	power := 1
	for power < n {
		power *= 2
	}
	return power
}

// confirmed: everyone has heard what was being told.
func (r *Replica) confirmed(h Handle) {
	if s := r.slotOf(h); s != nil && s.users != nil {
		s.users.open = false
		r.advance(h)
	}
}

// slotOf returns the slot of an object of this home, whatever its state.
func (r *Replica) slotOf(h Handle) *slot {
	p := r.partition(h)
	if s := &p.slots[h.Index()]; s.generation == h.Generation() {
		return s
	}
	return nil
}

// advance does what follows when everyone, also here, has let go of what the version
// that is being told takes away.
func (r *Replica) advance(h Handle) {
	s := r.slotOf(h)
	if s == nil || s.users == nil || s.users.telling == 0 || s.users.open {
		return
	}
	u := s.users
	for _, l := range r.letting[h] {
		if l.what == changing && l.version <= u.telling {
			return
		}
	}
	if u.moving != nil {
		if u.moving.copied {
			r.arrived(h, s)
		}
		return
	}
	told := u.telling
	u.telling = 0
	keep := u.releases[:0]
	for _, f := range u.releases {
		if f.version > told {
			keep = append(keep, f)
			continue
		}
		r.release(f.memory)
	}
	u.releases = keep
	if s.Version > told {
		r.tell(h, s)
		return
	}
	r.out.Told = append(r.out.Told, h)
	switch {
	case s.State == Moving:
		r.out.Quiet = append(r.out.Quiet, h)
	case s.State == Freed:
		r.reuse(h, s)
		for _, by := range u.freers {
			r.discarded(h, by)
		}
	case len(u.tasks) == 0 && h.Partition() != All:
		s.users = nil
	}
}

// release gives memory back: here, and if each task has a part of it everywhere.
func (r *Replica) release(freed Range) {
	r.out.Released = append(r.out.Released, freed)
	if freed.Handle.Partition() != All {
		return
	}
	receivers := r.allOthers()
	if len(receivers) == 0 {
		return
	}
	news := appendHandle([]byte{newsRelease}, freed.Handle)
	news = appendNumber(appendNumber(news, freed.Address), freed.Size)
	if freed.Tail {
		news = append(news, 1)
	} else {
		news = append(news, 0)
	}
	r.broadcast(r.slotOf(freed.Handle).users.header, receivers, news)
}

// reuse lets a freed object's index be used again, unless its generations are used up.
func (r *Replica) reuse(h Handle, s *slot) {
	s.users = nil
	if s.generation < maxGeneration {
		p := r.partition(h)
		p.free = append(p.free, h.Index())
	}
}

// allOthers is all tasks but task 0, which is the home that asks.
func (r *Replica) allOthers() []Task {
	if r.everyone == nil {
		r.everyone = make([]Task, 0, r.config.Tasks-1)
		for t := 1; t < r.config.Tasks; t++ {
			if !r.gone[Task(t)] {
				r.everyone = append(r.everyone, Task(t))
			}
		}
	}
	return r.everyone
}

// Header returns an object's broadcast header, as its home would use it now; false
// if it has no users yet.
func (r *Replica) Header(h Handle) (collectives.Schedule, bool) {
	if r.invalid(h) || h.Home() != r.config.Self {
		return collectives.Schedule{}, false
	}
	s, reason := r.partition(h).find(h)
	if reason != 0 || s.users == nil || s.users.chosenFor == 0 {
		return collectives.Schedule{}, false
	}
	return s.users.header, true
}

// wanted: a user asks for an entry, and is told of its changes from now on.
func (r *Replica) wanted(from Task, h Handle, nonce uint64) {
	s, reason := r.partition(h).find(h)
	if reason == 0 && s.State == Freed {
		reason = WasFreed
	}
	answer := appendNumber(appendHandle([]byte{kindState}, h), nonce)
	answer = append(answer, byte(reason))
	if reason == 0 {
		if h.Partition() != All {
			if s.users == nil {
				s.users = &users{}
			}
			s.users.add(from, nonce)
		}
		answer = appendEntry(answer, s.Entry)
	}
	r.send(from, answer)
}

// forgotten: a user needs no news any more.
func (r *Replica) forgotten(from Task, h Handle, nonce uint64) {
	s, reason := r.partition(h).find(h)
	if reason != 0 || s.users == nil || h.Partition() == All {
		return
	}
	s.users.remove(from, nonce)
	if len(s.users.tasks) == 0 && s.users.telling == 0 && s.State == Live {
		s.users = nil
	}
}

func (u *users) add(task Task, nonce uint64) {
	i, found := slices.BinarySearch(u.tasks, task)
	if found {
		u.nonces[i] = max(u.nonces[i], nonce)
		return
	}
	u.tasks = slices.Insert(u.tasks, i, task)
	u.nonces = slices.Insert(u.nonces, i, nonce)
}

// remove drops a user, unless it has asked again since.
func (u *users) remove(task Task, nonce uint64) {
	if i, found := slices.BinarySearch(u.tasks, task); found && u.nonces[i] <= nonce {
		u.tasks = slices.Delete(u.tasks, i, i+1)
		u.nonces = slices.Delete(u.nonces, i, i+1)
	}
}

// Users are the tasks that are told of an object's changes, besides everyone for
// objects in All.
func (r *Replica) Users(h Handle) []Task {
	if r.invalid(h) || h.Home() != r.config.Self {
		return nil
	}
	s, reason := r.partition(h).find(h)
	if reason != 0 || s.users == nil {
		return nil
	}
	return slices.Clone(s.users.tasks)
}

// news takes what a home has broadcast.
func (r *Replica) news(d relay.Delivery) {
	in := read(d.Data)
	switch in.Byte() {
	case newsUpdate:
		h, ticket, e := in.handle(r.config.Tasks), in.Number(), in.entry()
		if in.Bad || h.Home() != d.Origin {
			break
		}
		r.updated(h, e, d.Broadcast)
		r.ended(ticket, h, nil)
		return
	case newsRelease:
		freed := Range{in.handle(r.config.Tasks), in.Number(), in.Number(), in.Byte() != 0}
		if !in.Bad && d.Origin == 0 && freed.Handle.Partition() == All {
			r.out.Released = append(r.out.Released, freed)
		}
	case newsCopy:
		c := Copy{in.handle(r.config.Tasks), in.Number(), in.Number(), in.Number(), d.Broadcast}
		if in.Bad || d.Origin != 0 || c.Handle.Partition() != All {
			break
		}
		r.out.Copies = append(r.out.Copies, c)
		return
	case newsRefuse:
		ticket, reason, task := in.Number(), in.reason(), Task(in.Number())
		if !in.Bad && d.Origin == 0 {
			r.ended(ticket, 0, &Error{Op: "collective allocation", Task: task, Reason: reason, Detail: string(in.Rest)})
		}
	}
	r.relay.Confirm(d.Broadcast)
}
