// Package directory runs the shared variable directory (package svd) for a task: it
// gives the state machine its clock and its network, keeps a table that lookups read
// without a lock, and tells who waits.
//
// The path of a lookup: Lookup reads one cache line of the table. It takes no lock
// and waits for nobody, also while the entry is being changed. Who only names objects
// to other tasks needs no more. Who uses the memory at an address itself does so
// between Enter and Exit of a Reader, and so what it has found stays where it is.
//
// The path of a change: an event (a call, a message, a time) goes into the state
// machine under the lock; what has changed goes into the table; where memory goes
// away a new age of readers begins, and when the last reader before it has ended, the
// state machine hears that. Messages are sent after the lock is given back, in
// whatever order: the state machine bears that.
package directory

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/svd"
)

// Config is what a directory is made of.
type Config struct {
	svd.Config
	// Send sends a message to another task, or loses it. It does not block, and may
	// be called by any goroutine; the message is its own.
	Send func(to svd.Task, message []byte)
	// Released is told of memory that no task will reach any more. It must return
	// soon, and not call the directory. Nil: nobody is told.
	Released func(svd.Range)
	// Copy copies this task's part of an object in All that moves. It is called in a
	// goroutine of its own, and must not call the directory. Nil: there is nothing.
	Copy func(svd.Copy)
	// Silent is told of a task that does not answer (see Gone); nil: nobody.
	Silent func(svd.Task)
	// Due has Tick called in this time, at the latest; nil: somebody does anyway.
	Due func(in time.Duration)
}

// Directory is one task's. Its methods may be called from any goroutine.
type Directory struct {
	config  Config
	begin   time.Time
	table   table
	readers readers

	lock     sync.Mutex // over all below, and for writing the table
	replica  *svd.Replica
	answers  map[svd.Ticket]chan svd.Answer
	uses     map[svd.Handle][]chan error
	moves    map[svd.Handle]chan bool  // told when nobody uses the object: true, if it can be moved
	arrivals map[svd.Handle]chan error // and when it has moved
	tellings map[svd.Handle][]chan struct{}
	settled  chan struct{} // closed when some object is not being moved; nil: nobody waits
	draining []draining    // in order of age
	deadline time.Duration

	over chan struct{} // closed when the directory is: who waits for something will not get it
}

// draining is a change that waits for readers.
type draining struct {
	age   uint64
	letGo svd.LetGo
}

// New makes the directory of a task in a job without objects.
func New(c Config) (*Directory, error) {
	if c.Send == nil {
		return nil, errors.New("a directory needs a way to send")
	}
	replica, err := svd.New(c.Config)
	if err != nil {
		return nil, err
	}
	d := &Directory{config: c, begin: time.Now(), replica: replica, answers: map[svd.Ticket]chan svd.Answer{},
		uses: map[svd.Handle][]chan error{}, moves: map[svd.Handle]chan bool{}, arrivals: map[svd.Handle]chan error{},
		tellings: map[svd.Handle][]chan struct{}{}, deadline: never, over: make(chan struct{})}
	d.table.init()
	d.readers.age.Store(1)
	d.readers.wait(0)
	return d, nil
}

const never = time.Duration(1<<63 - 1)

func (d *Directory) now() time.Duration { return time.Since(d.begin) }

// Lookup returns the entry of an object that may be used; nil if the object is not
// known here (see Find), is being moved, or is gone. Its address is good to be used
// directly between Enter and Exit of a Reader only, while the line is Current.
func (d *Directory) Lookup(h svd.Handle) *Line { return d.table.find(h) }

// LookupAll is Lookup of many objects: lines[i] becomes that of handles[i]. Where the table is larger than the caches
// this takes less time than one lookup after the other, which wait for memory.
func (d *Directory) LookupAll(handles []svd.Handle, lines []*Line) {
	d.table.findAll(handles, lines[:len(handles)])
}

// Find is a Lookup that makes the object known here first, and waits while it moves.
func (d *Directory) Find(ctx context.Context, h svd.Handle) (*Line, error) {
	for {
		if l := d.table.find(h); l != nil {
			return l, nil
		}
		d.lock.Lock()
		if d.closed() {
			d.lock.Unlock()
			return nil, closedUnder("use of " + h.String())
		}
		_, err := d.replica.Lookup(h)
		var refused *svd.Error
		switch {
		case err == nil:
			d.lock.Unlock() // since the look at the table
			continue
		case errors.As(err, &refused) && refused.Reason == svd.IsMoving:
			if d.settled == nil {
				d.settled = make(chan struct{})
			}
			settled := d.settled
			d.lock.Unlock()
			select {
			case <-settled:
			case <-d.over:
				return nil, closedUnder("waiting for " + h.String() + ", which is being moved")
			case <-ctx.Done():
				return nil, errors.Wrapf(ctx.Err(), "waiting for %s, which is being moved", h)
			}
			continue
		case !errors.As(err, &refused) || refused.Reason != svd.NotKnown:
			d.lock.Unlock()
			return nil, err
		}
		known := make(chan error, 1)
		d.uses[h] = append(d.uses[h], known)
		d.replica.Use(d.now(), h)
		d.finish()
		select {
		case err := <-known:
			if err != nil {
				return nil, err
			}
		case <-d.over:
			return nil, closedUnder("use of " + h.String())
		case <-ctx.Done():
			return nil, errors.Wrapf(ctx.Err(), "asking task %d for %s", h.Home(), h)
		}
	}
}

// Forget has an object's home tell this task nothing more of it, until its next Find.
func (d *Directory) Forget(h svd.Handle) {
	d.lock.Lock()
	d.replica.Forget(d.now(), h)
	d.finish()
}

// Allocate enters an object with affinity to this task. It sends nothing.
func (d *Directory) Allocate(spec svd.Spec) (svd.Handle, error) {
	d.lock.Lock()
	h, err := d.replica.Allocate(d.now(), spec)
	d.finish()
	return h, err
}

// AllocateAll enters an object together with all other tasks, which call it in the
// same order with the same arguments, and get the same.
func (d *Directory) AllocateAll(ctx context.Context, spec svd.Spec) (svd.Handle, error) {
	return d.call(ctx, "allocating together with all tasks", func() svd.Ticket { return d.replica.AllocateAll(d.now(), spec) })
}

// AllocateGlobal enters an object of everyone for this task alone.
func (d *Directory) AllocateGlobal(ctx context.Context, spec svd.Spec) (svd.Handle, error) {
	return d.call(ctx, "allocating for everyone", func() svd.Ticket { return d.replica.AllocateGlobal(d.now(), spec) })
}

// Free frees an object. When it returns, also with the error that another call has freed it, no task finds the object any
// more, and nobody uses it: it waits for readers, so it is not to be called between a Reader's Enter and Exit.
func (d *Directory) Free(ctx context.Context, h svd.Handle) error {
	_, err := d.call(ctx, "freeing "+h.String(), func() svd.Ticket { return d.replica.Free(d.now(), h) })
	return err
}

// call waits for the answer to what begin begins.
func (d *Directory) call(ctx context.Context, what string, begin func() svd.Ticket) (svd.Handle, error) {
	d.lock.Lock()
	ticket := begin()
	answered := make(chan svd.Answer, 1)
	d.answers[ticket] = answered
	d.finish()
	select {
	case a := <-answered:
		return a.Handle, a.Err
	case <-d.over:
		return 0, closedUnder(what)
	case <-ctx.Done():
		d.lock.Lock()
		delete(d.answers, ticket)
		d.lock.Unlock()
		return 0, errors.Wrap(ctx.Err(), what)
	}
}

// Resize changes the size of an object of this home, where it is, and the number of its
// elements. It does not wait for those who use the object to hear of it (Heard).
func (d *Directory) Resize(h svd.Handle, size, elements uint64) error {
	d.lock.Lock()
	err := d.replica.Resize(d.now(), h, size, elements)
	d.finish()
	return err
}

// Heard waits until everyone who uses an object of this home has heard how it is now, or
// the directory is closed.
func (d *Directory) Heard(h svd.Handle) {
	d.lock.Lock()
	if d.replica.Told(h) {
		d.lock.Unlock()
		return
	}
	told := make(chan struct{})
	d.tellings[h] = append(d.tellings[h], told)
	d.lock.Unlock()
	select {
	case <-told:
	case <-d.over:
	}
}

// Move moves an object of this home: when nobody uses it any more, place is called with
// the object as it was, and says where it shall be, with which size and how many
// elements. An object with affinity to this task place also copies there; of one in
// All each task copies its part (Config.Copy). Move does not give up before everyone
// has let go and copied: an object can't be left half moved. It fails if the object was
// freed meanwhile. Memory that place has named is Released then, unless the object is
// this task's own: that is nobody's.
func (d *Directory) Move(h svd.Handle, place func(svd.Entry) (address, size, elements uint64)) error {
	d.lock.Lock()
	before, err := d.replica.Lookup(h)
	if err == nil {
		err = d.replica.Move(d.now(), h)
	}
	if err != nil {
		d.finish()
		return err
	}
	quiet, arrived := make(chan bool, 1), make(chan error, 1)
	d.moves[h], d.arrivals[h] = quiet, arrived
	d.finish()
	var address, size, elements uint64
	select {
	case free := <-quiet:
		if free {
			address, size, elements = place(before)
		}
	case <-d.over:
		return closedUnder("moving " + h.String())
	}
	d.lock.Lock()
	err = d.replica.Settle(d.now(), h, address, size, elements)
	if err != nil {
		delete(d.arrivals, h)
	}
	d.finish()
	if err != nil {
		return err
	}
	select {
	case err := <-arrived:
		return err
	case <-d.over:
		return closedUnder("moving " + h.String())
	}
}

// copy copies a part of an object, and says so.
func (d *Directory) copy(c svd.Copy) {
	if d.config.Copy != nil {
		d.config.Copy(c)
	}
	d.lock.Lock()
	d.replica.Copied(d.now(), c)
	d.finish()
}

// Receive takes a message of another task. An error says what was wrong with it.
func (d *Directory) Receive(from svd.Task, message []byte) error {
	d.lock.Lock()
	err := d.replica.Receive(d.now(), from, message)
	d.finish()
	return err
}

// Tick repeats what has not been answered in time, and returns when it is to be
// called again, at the latest; false if nothing is waited for.
func (d *Directory) Tick() (time.Duration, bool) {
	d.lock.Lock()
	now := d.now()
	if at, waits := d.replica.Deadline(); waits && at <= now {
		d.replica.Tick(now)
	}
	at := d.finish()
	return max(0, at-now), at != never
}

// Gone says that a task is dead.
func (d *Directory) Gone(task svd.Task) {
	d.lock.Lock()
	d.replica.Gone(d.now(), task)
	d.finish()
}

// close has all that is known lead to nothing, since the memory goes away, and lets go
// who waits for something.
func (d *Directory) close() {
	d.lock.Lock()
	defer d.lock.Unlock()
	if !d.closed() {
		close(d.over)
		d.table.clear()
	}
}

func (d *Directory) closed() bool {
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}

// closedUnder is the error of who wanted something when the directory was closed, or wants it afterwards.
func closedUnder(what string) error {
	return errors.Errorf("%s: the directory is closed", what)
}

// finish carries the effects of an event out, gives the lock back, and returns the
// next deadline.
func (d *Directory) finish() time.Duration {
	var after svd.Effects // what is done without the lock
	for {
		e := d.replica.Take()
		d.publish(e)
		if len(after.Messages) == 0 {
			after.Messages = e.Messages
		} else {
			after.Messages = append(after.Messages, e.Messages...)
		}
		after.Released = append(after.Released, e.Released...)
		after.Copies = append(after.Copies, e.Copies...)
		after.Silent = append(after.Silent, e.Silent...)
		if len(e.LetGo) > 0 {
			age := d.readers.next()
			for _, l := range e.LetGo {
				d.draining = append(d.draining, draining{age, l})
			}
			d.readers.wait(len(d.draining))
			d.readers.order()
		}
		if len(d.draining) == 0 || !d.drained() {
			break
		}
	}
	at, waits := d.replica.Deadline()
	if !waits {
		at = never
	}
	earlier := at < d.deadline
	d.deadline = at
	d.lock.Unlock()
	for _, m := range after.Messages {
		d.config.Send(m.To, m.Data)
	}
	if d.config.Released != nil {
		for _, r := range after.Released {
			d.config.Released(r)
		}
	}
	for _, c := range after.Copies {
		go d.copy(c)
	}
	if d.config.Silent != nil {
		for _, t := range after.Silent {
			d.config.Silent(t)
		}
	}
	if earlier && d.config.Due != nil {
		d.config.Due(at - d.now())
	}
	return at
}

// publish makes changes visible, and tells who waits for them.
func (d *Directory) publish(e svd.Effects) {
	settled := false
	for _, c := range e.Changes {
		if c.Known && c.Entry.State == svd.Live && !d.closed() {
			d.table.put(c.Handle, c.Entry)
		} else {
			d.table.remove(c.Handle)
		}
		settled = settled || c.Entry.State != svd.Moving
		if !c.Known {
			d.quiet(c.Handle, false)
		}
	}
	if settled && d.settled != nil {
		close(d.settled)
		d.settled = nil
	}
	for _, a := range e.Answers {
		if answered := d.answers[a.Ticket]; answered != nil {
			answered <- a
			delete(d.answers, a.Ticket)
		}
	}
	for _, r := range e.Resolved {
		for _, known := range d.uses[r.Handle] {
			known <- r.Err
		}
		delete(d.uses, r.Handle)
	}
	for _, h := range e.Told {
		for _, told := range d.tellings[h] {
			close(told)
		}
		delete(d.tellings, h)
	}
	for _, h := range e.Quiet {
		d.quiet(h, true)
	}
	for _, r := range e.Settled {
		if arrived := d.arrivals[r.Handle]; arrived != nil {
			arrived <- r.Err
			delete(d.arrivals, r.Handle)
		}
	}
}

// quiet tells a Move that nobody uses the object any more, or that it was freed.
func (d *Directory) quiet(h svd.Handle, copy bool) {
	if quiet := d.moves[h]; quiet != nil {
		quiet <- copy
		delete(d.moves, h)
	}
}

// drained tells the state machine which readers have ended, and whether any have.
func (d *Directory) drained() bool {
	oldest := d.readers.oldest()
	n := 0
	for n < len(d.draining) && d.draining[n].age <= oldest {
		n++
	}
	ended := d.draining[:n]
	d.draining = d.draining[n:]
	d.readers.wait(len(d.draining))
	for _, e := range ended {
		d.replica.LetGone(d.now(), e.letGo)
	}
	return n > 0
}

// drain is called by readers that end while someone waits for that.
func (d *Directory) drain() {
	d.lock.Lock()
	d.finish()
}
