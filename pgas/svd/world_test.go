package svd

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"evenkeel/collectives"
	"evenkeel/collectives/lossy"
)

// world is the replicas of a job on a bad network, with memory at every task, readers
// that hold on to what they have looked up, and a sequential model: the versions that
// every object has had, in order. Whatever breaks a rule is noted in broken.
type world struct {
	network *lossy.Network
	config  Config
	tasks   map[Task]*player
	history map[Handle][]Entry // by version-1, as its home had them
	parts   map[Range]bool     // of objects in All: what their home was told of as released
	heard   map[Handle]int     // the version of which the home was told last that everyone has heard
	broken  []string
	busy    map[Handle]bool // moving
	moved   uint64          // shared memory that objects in All moved to
	limited bool            // players are not checked one by one: there are too many
	answers map[Task]map[Ticket]Answer
	frees   map[call]Handle
}

// call is one that a task has made, and that is answered.
type call struct {
	task   Task
	ticket Ticket
}

// player is a task.
type player struct {
	*Replica
	units    map[uint64]Handle // memory: who has each unit, 0: free
	top      uint64
	free     []uint64 // released units, used again soon: the worst for who still looks
	seen     map[Handle]uint64
	visible  map[Handle]Entry // by the changes that were told
	readers  []reading
	letting  []LetGo // not answered, for there are readers
	copying  []Copy  // not answered
	resolved map[Handle]Resolved
}

type reading struct {
	handle Handle
	entry  Entry
}

func testNetwork() collectives.Network {
	return collectives.Network{Within: collectives.Link{Latency: 150, Overhead: 80, Gap: 30, PerByte: 0.1},
		Between: collectives.Link{Latency: 15000, Overhead: 2500, Gap: 3000, PerByte: 0.9}}
}

func newWorld(seed int64, tasks int) *world {
	return &world{network: lossy.New(seed),
		config: Config{Tasks: tasks, Network: testNetwork(), Limit: 1400, Retry: 10 * time.Microsecond, RetryMax: time.Millisecond},
		tasks:  map[Task]*player{}, history: map[Handle][]Entry{}, parts: map[Range]bool{}, heard: map[Handle]int{}, busy: map[Handle]bool{},
		answers: map[Task]map[Ticket]Answer{}, frees: map[call]Handle{}}
}

func (w *world) task(t Task) *player {
	if w.tasks[t] == nil {
		c := w.config
		c.Self = t
		r, err := New(c)
		if err != nil {
			panic(err)
		}
		w.tasks[t] = &player{Replica: r, units: map[uint64]Handle{}, seen: map[Handle]uint64{}, visible: map[Handle]Entry{}, resolved: map[Handle]Resolved{}}
		w.answers[t] = map[Ticket]Answer{}
	}
	return w.tasks[t]
}

func (w *world) fail(format string, values ...any) {
	if len(w.broken) < 5 {
		w.broken = append(w.broken, fmt.Sprintf("at %v: ", w.network.Now)+fmt.Sprintf(format, values...))
	}
}

// memory finds size units in a row, released ones if there are; for everyone's
// objects in all tasks at once, at the same place.
func (p *player) memory(size uint64) uint64 {
	for _, first := range p.free {
		fits := true
		for u := first; u < first+size; u++ {
			fits = fits && slices.Contains(p.free, u)
		}
		if fits {
			p.free = slices.DeleteFunc(p.free, func(u uint64) bool { return u >= first && u < first+size })
			return first
		}
	}
	first := p.top
	p.top += size
	return first
}

func (p *player) own(h Handle, address, size uint64) {
	for u := address; u < address+size; u++ {
		p.units[u] = h
	}
}

// shared is where everyone's objects are, far from other memory.
const shared = 1 << 40

// holds tells whether all of an object's memory is still its own, where this entry
// says that it is.
func (w *world) holds(h Handle, e Entry) bool {
	home := w.task(h.Home())
	for u := e.Address; u < e.Address+e.Size; u++ {
		if home.units[u] != h {
			return false
		}
	}
	return true
}

// flush carries out a task's effects, and checks them.
func (w *world) flush(t Task) {
	p := w.task(t)
	for again := true; again; {
		again = false
		e := p.Take()
		for _, c := range e.Changes {
			w.change(t, p, c)
		}
		for _, m := range e.Messages {
			if len(m.Data) > w.config.Limit {
				w.fail("task %d sends task %d a message of %d bytes", t, m.To, len(m.Data))
			}
			w.network.Send(t, m.To, m.Data)
		}
		for _, a := range e.Answers {
			if _, twice := w.answers[t][a.Ticket]; twice {
				w.fail("task %d: ticket %d answered twice", t, a.Ticket)
			}
			w.answers[t][a.Ticket] = a
			if h, free := w.frees[call{t, a.Ticket}]; free {
				w.freed(h, a.Err)
			}
		}
		for _, res := range e.Resolved {
			p.resolved[res.Handle] = res
		}
		for _, f := range e.Released {
			w.release(t, p, f)
		}
		for _, h := range e.Told {
			w.told(h)
			w.heard[h] = len(w.history[h])
		}
		for _, h := range e.Quiet {
			again = true
			w.unused(h, "quiet")
			e := w.history[h][len(w.history[h])-1]
			size := (1 + (e.Size+e.Version)%6) * uint64(e.Element)
			address := w.newPlace(p, h, size)
			delete(w.busy, h)
			if err := p.Settle(w.network.Now, h, address, size, size); err != nil {
				w.fail("settling: %v", err)
			}
		}
		p.copying = append(p.copying, e.Copies...)
		p.letting = append(p.letting, e.LetGo...)
		again = w.letGone(p) || again
	}
	at, waits := p.Deadline()
	w.network.Wake(t, at, waits)
}

// newPlace is where an object goes that moves: one in All to the same place everywhere.
func (w *world) newPlace(home *player, h Handle, size uint64) uint64 {
	if h.Partition() != All {
		address := home.memory(size)
		home.own(h, address, size)
		return address
	}
	w.moved += roomOfShared
	address := uint64(2*shared) + w.moved
	for t := range Task(w.config.Tasks) {
		w.task(t).own(h, address, size)
	}
	return address
}

// roomOfShared is how much room an object in All has to grow where it is.
const roomOfShared = 16 // six elements of two bytes, and those of a size that another task gave

// copyOne copies what a task was asked for first: nobody looks at either place, and both
// are the object's own.
func (w *world) copyOne(t Task) {
	p := w.task(t)
	c := p.copying[0]
	p.copying = p.copying[1:]
	w.unused(c.Handle, "copied")
	for u := range c.Size {
		if p.units[c.From+u] != c.Handle || p.units[c.To+u] != c.Handle {
			w.fail("task %d copies %v, which is not all its own", t, c)
			break
		}
	}
	p.Copied(w.network.Now, c)
	w.flush(t)
}

// change: what becomes visible is a version that the object had, no earlier than
// what was visible before, and its memory is its own.
func (w *world) change(t Task, p *player, c Change) {
	if t == c.Handle.Home() {
		if int(c.Entry.Version) != len(w.history[c.Handle])+1 {
			w.fail("%s goes from version %d to %d", c.Handle, len(w.history[c.Handle]), c.Entry.Version)
		}
		if c.Entry.Version == 1 && c.Handle.Partition() == All { // each task's part, which it has set aside
			for other := range Task(w.config.Tasks) {
				w.task(other).own(c.Handle, c.Entry.Address, c.Entry.Size)
			}
		}
		w.history[c.Handle] = append(w.history[c.Handle], c.Entry)
		if p.Told(c.Handle) {
			w.told(c.Handle)
		}
	}
	delete(p.visible, c.Handle)
	if !c.Known {
		return
	}
	if c.Entry.State == Live {
		p.visible[c.Handle] = c.Entry
	}
	versions := w.history[c.Handle]
	if int(c.Entry.Version) > len(versions) || versions[c.Entry.Version-1] != c.Entry {
		w.fail("task %d sees %s as it never was: %+v", t, c.Handle, c.Entry)
	}
	if c.Entry.Version < p.seen[c.Handle] {
		w.fail("task %d sees version %d of %s after %d", t, c.Entry.Version, c.Handle, p.seen[c.Handle])
	}
	p.seen[c.Handle] = c.Entry.Version
	if c.Entry.State == Live && t != c.Handle.Home() && !w.holds(c.Handle, c.Entry) {
		w.fail("task %d sees %s at memory that is not its own any more: %+v", t, c.Handle, c.Entry)
	}
}

func overlap(e Entry, f Range) bool {
	return e.Address < f.Address+f.Size && f.Address < e.Address+e.Size
}

// release: nobody can reach that memory, by a lookup or as a reader. Then it is used
// for something else.
func (w *world) release(t Task, p *player, f Range) {
	for other, q := range w.tasks {
		if w.limited {
			break
		}
		if w.network.Dead[other] {
			continue
		}
		if e, err := q.Lookup(f.Handle); err == nil && overlap(e, f) {
			w.fail("%v is released, but task %d finds it", f, other)
		}
		for _, r := range q.readers {
			if r.handle == f.Handle && overlap(r.entry, f) {
				w.fail("%v is released, but task %d reads it", f, other)
			}
		}
	}
	if f.Handle.Partition() == All {
		inside := func(e Entry) bool { return e.Address < f.Address && f.Address < e.Address+e.Size }
		if f.Tail != slices.ContainsFunc(w.history[f.Handle], inside) {
			w.fail("task %d is told of %+v, which is not what it says", t, f)
		}
		if t == 0 {
			w.parts[f] = true
		} else if !w.parts[f] {
			w.fail("task %d is told of %+v before its home", t, f)
		}
	}
	for u := f.Address; u < f.Address+f.Size; u++ {
		if p.units[u] != f.Handle {
			w.fail("unit %d of %s is released, but belongs to %s", u, f.Handle, p.units[u])
		}
		if f.Handle.Partition() != All {
			p.free = append(p.free, u)
		}
		delete(p.units, u)
	}
}

// told: nobody finds an object as it was before.
func (w *world) told(h Handle) {
	now := len(w.history[h])
	for other, q := range w.tasks {
		if w.limited || w.network.Dead[other] {
			continue
		}
		if e, err := q.Lookup(h); err == nil && int(e.Version) < now {
			w.fail("all have been told of version %d of %s, but task %d finds version %d", now, h, other, e.Version)
		}
	}
}

// freed: whoever frees an object is answered when nobody uses it any more, also if another call has freed it.
func (w *world) freed(h Handle, err error) {
	var refused *Error
	if err == nil || errors.As(err, &refused) && refused.Reason == WasFreed {
		w.unused(h, "freed")
	}
}

// unused: nobody uses an object that is to be moved, or is freed.
func (w *world) unused(h Handle, because string) {
	for other, q := range w.tasks {
		if w.limited || w.network.Dead[other] {
			continue
		}
		if _, err := q.Lookup(h); err == nil {
			w.fail("%s is %s, but task %d finds it", h, because, other)
		}
		for _, r := range q.readers {
			if r.handle == h {
				w.fail("%s is %s, but task %d reads it", h, because, other)
			}
		}
	}
}

// letGone answers what no reader is in the way of.
func (w *world) letGone(p *player) bool {
	rest := p.letting[:0]
	var gone []LetGo
	for _, l := range p.letting {
		if slices.ContainsFunc(p.readers, func(r reading) bool { return r.handle == l.Handle && r.entry.Version < l.Version }) {
			rest = append(rest, l)
		} else {
			gone = append(gone, l)
		}
	}
	p.letting = rest
	for _, l := range gone {
		p.LetGone(w.network.Now, l)
	}
	return len(gone) > 0
}

// stop ends a reader.
func (w *world) stop(t Task, i int) {
	p := w.task(t)
	r := p.readers[i]
	if !w.holds(r.handle, r.entry) {
		w.fail("task %d has read memory that is not %s any more", t, r.handle)
	}
	p.readers = slices.Delete(p.readers, i, i+1)
	w.letGone(p)
	w.flush(t)
}

// step does what happens next, and says whether there was anything.
func (w *world) step() bool {
	return w.network.Step(func(p lossy.Packet) {
		if err := w.task(p.To).Receive(w.network.Now, p.From, p.Data); err != nil {
			w.fail("task %d refuses a message of task %d: %v", p.To, p.From, err)
		}
		clear(p.Data) // the network's memory
		w.flush(p.To)
	}, func(due Task) {
		w.task(due).Tick(w.network.Now)
		w.flush(due)
		w.copyAny()
	}) || w.copyAny()
}

// copyAny copies a part: so late that others ask again.
func (w *world) copyAny() bool {
	for i := range w.config.Tasks {
		t := Task((w.network.Packets + i) % w.config.Tasks)
		if p := w.tasks[t]; p != nil && len(p.copying) > 0 {
			w.copyOne(t)
			return true
		}
	}
	return false
}

func (w *world) run() {
	for steps := 0; len(w.broken) == 0 && w.step(); steps++ {
		if steps > 5_000_000 {
			w.fail("the job does not come to rest")
			return
		}
	}
}

// checkVisible: a task finds what its changes have told, and nothing else.
func (w *world) checkVisible() {
	for t, p := range w.tasks {
		for h := range w.history {
			e, err := p.Lookup(h)
			if told, visible := p.visible[h]; visible != (err == nil) || visible && e != told {
				w.fail("task %d finds %s as %+v (%v), but was told of %+v", t, h, e, err, told)
			}
		}
	}
}

// checkRest: when nothing happens any more, every copy is as its object is at home,
// the home knows of all who have one, and nothing is under way.
func (w *world) checkRest() {
	w.checkVisible()
	for t, p := range w.tasks {
		if !p.Idle() {
			w.fail("task %d is not idle: %d wants, %d lettings, %d rounds, %d calls, relay idle %v", t, len(p.wants), len(p.Replica.letting), len(p.rounds), len(p.calls), p.relay.Idle())
		}
		for h, e := range p.copies {
			versions := w.history[h]
			if e != versions[len(versions)-1] {
				w.fail("task %d has %s as %+v, but it is %+v", t, h, e, versions[len(versions)-1])
			}
			if !slices.Contains(w.task(h.Home()).Users(h), t) {
				w.fail("task %d has a copy of %s, of which its home does not know", t, h)
			}
		}
	}
	for h, versions := range w.history {
		last := versions[len(versions)-1]
		if !w.task(h.Home()).Told(h) {
			w.fail("nobody has anything to hear of %s, but its home says so", h)
		}
		if last.Version > 1 && w.heard[h] != len(versions) {
			w.fail("the home of %s was not told that all have heard of version %d, but of %d", h, len(versions), w.heard[h])
		}
		if h.Partition() != All {
			continue
		}
		for t, p := range w.tasks {
			e, err := p.Lookup(h)
			if (err == nil) != (last.State == Live) || err == nil && e != last {
				w.fail("task %d has %s as %+v (%v), but it is %+v", t, h, e, err, last)
			}
		}
	}
}
