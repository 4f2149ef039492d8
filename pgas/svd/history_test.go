package svd

import (
	"errors"
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// chooser draws what happens next: rapid, which can shrink what breaks a rule, or a
// seed.
type chooser interface {
	below(n int, what string) int
}

type drawn struct{ t *rapid.T }

func (d drawn) below(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.t, what) }

type seeded struct{ random *rand.Rand }

func (s seeded) below(n int, _ string) int { return s.random.Intn(n) }

// play plays a history of so many actions in a world, and then lets it come to rest.
type play struct {
	*world
	choose  chooser
	handles []Handle
	// collective calls: how many each task has made, and with which arguments.
	specs    []Spec
	odd      []Task // who gives other arguments
	made     map[Task]int
	tickets  map[Task][]Ticket
	globals  map[call]Spec
	asked    int
	occupied uint64 // of shared memory
}

func newPlay(w *world, c chooser) *play {
	return &play{world: w, choose: c, made: map[Task]int{}, tickets: map[Task][]Ticket{}, globals: map[call]Spec{}}
}

func (p *play) anyTask() Task { return Task(p.choose.below(p.config.Tasks, "task")) }

func (p *play) anyHandle() (Handle, bool) {
	if len(p.handles) == 0 {
		return 0, false
	}
	// Mostly one of the last: those that live.
	if p.choose.below(3, "which") > 0 {
		return p.handles[max(0, len(p.handles)-1-p.choose.below(4, "last"))], true
	}
	return p.handles[p.choose.below(len(p.handles), "handle")], true
}

func (p *play) spec(address, size uint64) Spec {
	return Spec{Address: address, Size: size, Blocking: 1, Element: 1, Kind: Array}
}

// sharedSpec has memory at the same place in all tasks.
func (p *play) sharedSpec(size uint64) Spec {
	address := shared + p.occupied
	p.occupied += roomOfShared // also for who gives another size
	return p.spec(address, size)
}

func (p *play) action() {
	t := p.anyTask()
	me, now := p.task(t), p.network.Now
	switch p.choose.below(13, "action") {
	case 0: // allocate
		size := uint64(1 + p.choose.below(4, "size"))
		address := me.memory(size)
		h, err := me.Allocate(now, p.spec(address, size))
		if err != nil {
			p.fail("allocation: %v", err)
			return
		}
		me.own(h, address, size)
		p.handles = append(p.handles, h)
	case 1: // free, by anyone
		if h, any := p.anyHandle(); any {
			p.frees[call{t, me.Free(now, h)}] = h
		}
	case 2: // resize, at home
		if h, any := p.anyHandle(); any {
			p.resize(h, uint64(1+p.choose.below(6, "size")))
			t = h.Home()
		}
	case 3: // move, at home
		if h, any := p.anyHandle(); any {
			t = h.Home()
			if p.task(t).Move(now, h) == nil {
				p.busy[h] = true
			}
		}
	case 4, 5, 6: // first use, or look
		if h, any := p.anyHandle(); any {
			e, err := me.Lookup(h)
			if err == nil {
				if t != h.Home() && !p.holds(h, e) {
					p.fail("task %d finds %s at memory that is not its own", t, h)
				}
				me.readers = append(me.readers, reading{h, e})
			} else {
				me.Use(now, h)
			}
		}
	case 7:
		if h, any := p.anyHandle(); any {
			me.Forget(now, h)
		}
	case 8:
		if len(me.readers) > 0 {
			p.stop(t, p.choose.below(len(me.readers), "reader"))
		}
	case 9: // a collective call begins
		if len(p.specs) < 6 {
			p.specs = append(p.specs, p.sharedSpec(uint64(1+p.choose.below(4, "size"))))
			odd := Task(p.config.Tasks) // nobody
			if p.choose.below(4, "unequal") == 0 {
				odd = p.anyTask()
			}
			p.odd = append(p.odd, odd)
		}
	case 10:
		p.together(t)
	case 11:
		if len(me.copying) > 0 {
			p.copyOne(t)
		}
	case 12:
		if len(p.globals) < 6 {
			spec := p.sharedSpec(1)
			p.globals[call{t, me.AllocateGlobal(now, spec)}] = spec
		}
	}
	p.flush(t)
	p.collect()
	for range p.choose.below(8, "steps") {
		if !p.step() {
			break
		}
		p.collect()
	}
}

// resize grows an object only into memory that is free behind it.
func (p *play) resize(h Handle, size uint64) {
	home := p.task(h.Home())
	versions := p.history[h]
	if len(versions) == 0 {
		return
	}
	e := versions[len(versions)-1]
	if e.State != Live {
		if home.Resize(p.network.Now, h, size, size) == nil {
			p.fail("%s is %s, and was resized", h, e.State)
		}
		return
	}
	if h.Partition() == All {
		p.resizeShared(h, e, size)
		return
	}
	for u := e.Address + e.Size; u < e.Address+size; u++ {
		if home.units[u] != 0 || u < home.top && !slices.Contains(home.free, u) {
			return
		}
	}
	for u := e.Address + e.Size; u < e.Address+size; u++ {
		home.free = slices.DeleteFunc(home.free, func(f uint64) bool { return f == u })
		home.units[u] = h
		home.top = max(home.top, u+1)
	}
	if err := home.Resize(p.network.Now, h, size, size); err != nil {
		p.fail("resizing: %v", err)
	}
}

// resizeShared has all tasks set the memory aside behind their part, unless an end that
// was cut off is still there.
func (p *play) resizeShared(h Handle, e Entry, size uint64) {
	size *= uint64(e.Element)
	for t := range Task(p.config.Tasks) {
		for u := e.Address + e.Size; u < e.Address+size; u++ {
			if p.task(t).units[u] != 0 {
				return
			}
		}
	}
	for t := range Task(p.config.Tasks) {
		for u := e.Address + e.Size; u < e.Address+size; u++ {
			p.task(t).units[u] = h
		}
	}
	if err := p.task(0).Resize(p.network.Now, h, size, size); err != nil {
		p.fail("resizing: %v", err)
	}
}

// together makes a task's next collective call, if one has begun.
func (p *play) together(t Task) {
	if p.made[t] == len(p.specs) {
		return
	}
	spec := p.specs[p.made[t]]
	if p.odd[p.made[t]] == t {
		spec.Element, spec.Size = 2, 2*spec.Size
	}
	if t > 0 {
		spec.Address = uint64(t) // task 0's counts
	}
	p.made[t]++
	p.tickets[t] = append(p.tickets[t], p.task(t).AllocateAll(p.network.Now, spec))
	p.flush(t)
}

// collect learns of handles that came later.
func (p *play) collect() {
	for t, answers := range p.answers {
		for _, a := range answers {
			if a.Handle.Partition() != All || a.Handle == 0 || a.Err != nil || slices.Contains(p.handles, a.Handle) {
				continue
			}
			if _, free := p.frees[call{t, a.Ticket}]; free {
				continue
			}
			p.handles = append(p.handles, a.Handle)
		}
	}
}

// finish completes what has begun, frees everything, and checks that everything came
// out as in a sequential history.
func (p *play) finish() {
	for t := range Task(p.config.Tasks) {
		for p.made[t] < len(p.specs) {
			p.together(t)
		}
	}
	for t := range Task(p.config.Tasks) {
		for len(p.task(t).readers) > 0 {
			p.stop(t, 0)
		}
	}
	p.run()
	p.collect()
	p.checkRest()
	p.checkAnswers()
	for _, h := range p.handles {
		t := Task(uint64(h) % uint64(p.config.Tasks))
		p.frees[call{t, p.task(t).Free(p.network.Now, h)}] = h
		p.flush(t)
	}
	p.run()
	p.checkRest()
	p.checkAnswers()
	for t, player := range p.tasks {
		for u, h := range player.units {
			p.fail("everything is freed, but unit %d of task %d still belongs to %s", u, t, h)
		}
		if len(player.copies) > 0 || len(player.nonces) > 0 {
			p.fail("everything is freed, but task %d has %d copies", t, len(player.copies))
		}
		for _, s := range append(slices.Clone(player.Replica.own.slots), player.all.slots...) {
			if s.users != nil {
				p.fail("everything is freed, but task %d keeps users", t)
			}
		}
	}
}

// checkAnswers: all calls have ended, collective ones alike everywhere, and of all
// frees of an object one succeeded.
func (p *play) checkAnswers() {
	if len(p.broken) > 0 {
		return // it may not have come to rest
	}
	freed := map[Handle]int{}
	for call, h := range p.frees {
		a, answered := p.answers[call.task][call.ticket]
		if !answered {
			p.fail("task %d's free of %s has no answer", call.task, h)
		}
		var refused *Error
		switch {
		case a.Err == nil:
			freed[h]++
		case !errors.As(a.Err, &refused) || refused.Reason != WasFreed || refused.Task != call.task || refused.Handle != h:
			p.fail("task %d's free of %s: %v", call.task, h, a.Err)
		default:
			freed[h] += 0
		}
	}
	for h, times := range freed {
		if times != 1 {
			p.fail("%s was freed %d times", h, times)
		}
	}
	given := map[Handle]bool{}
	for i := range p.specs {
		first := p.answers[0][p.tickets[0][i]]
		for t := range Task(p.config.Tasks) {
			a, answered := p.answers[t][p.tickets[t][i]]
			if !answered || a.Handle != first.Handle || (a.Err == nil) != (first.Err == nil) {
				p.fail("collective call %d: task 0 got %v, %v, and task %d %v, %v", i, first.Handle, first.Err, t, a.Handle, a.Err)
			}
			var refused *Error
			alone := p.config.Tasks == 1
			if odd := p.odd[i]; int(odd) < p.config.Tasks && !alone &&
				(!errors.As(a.Err, &refused) || refused.Reason != Unequal || odd > 0 && refused.Task != odd) {
				p.fail("task %d gave other arguments to collective call %d, but task %d got: %v", odd, i, t, a.Err)
			}
		}
		if first.Err == nil {
			if given[first.Handle] || p.history[first.Handle][0].Size != p.specs[i].Size && int(p.odd[i]) >= p.config.Tasks {
				p.fail("collective call %d got %s, which is not its", i, first.Handle)
			}
			given[first.Handle] = true
		}
	}
	for call := range p.globals {
		a, answered := p.answers[call.task][call.ticket]
		if !answered || a.Err != nil || given[a.Handle] {
			p.fail("task %d's object for everyone: %v, %v", call.task, a.Handle, a.Err)
		}
		given[a.Handle] = true
	}
}

// setUp draws a job and a network.
func setUp(c chooser) *play {
	tasks := 1 + c.below(8, "tasks")
	if c.below(8, "many") == 0 {
		tasks = 1 + c.below(64, "tasks")
	}
	w := newWorld(int64(c.below(1<<30, "seed")), tasks)
	w.network.Loss = float64(c.below(5, "loss")) / 10
	w.network.Duplicate = float64(c.below(4, "duplication")) / 10
	w.network.Jitter = time.Duration(c.below(40, "jitter")) * time.Microsecond
	w.config.Limit = []int{160, 1400}[c.below(2, "limit")]
	if perNode := c.below(4, "tasks per node"); perNode > 0 {
		w.config.Nodes = func(t Task) uint32 { return uint32(t) / uint32(perNode) }
	}
	return newPlay(w, c)
}

// TestHistories: any history of allocations, frees, changes and lookups, on any
// network, keeps the rules of world and comes out as a sequential one. With
// -rapid.checks more of them.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := setUp(drawn{t})
		for range rapid.IntRange(1, 60).Draw(t, "actions") {
			p.action()
		}
		p.finish()
		if len(p.broken) > 0 {
			t.Fatal(p.broken)
		}
	})
}

// TestSeededHistories are longer ones.
func TestSeededHistories(t *testing.T) {
	alone(t)
	for seed := range int64(*histories) {
		p := setUp(seeded{rand.New(rand.NewSource(seed))})
		for range 150 {
			p.action()
		}
		p.finish()
		if len(p.broken) > 0 {
			t.Fatalf("seed %d, %d tasks: %v", seed, p.config.Tasks, p.broken)
		}
	}
}
