package svd

import (
	"time"

	"evenkeel/collectives/patience"
	"evenkeel/collectives/relay"
)

// want is a question for an entry that has not been answered.
type want struct {
	handle Handle
	nonce  uint64
	// floor is the highest version that came by broadcast meanwhile, which this
	// task has confirmed: an answer with an earlier one is out of date, though it
	// comes later.
	floor   uint64
	waiting patience.Item
}

func (w *want) question() (Task, []byte) {
	return w.handle.Home(), appendNumber(appendHandle([]byte{kindWant}, w.handle), w.nonce)
}

func forget(h Handle, nonce uint64) []byte {
	return appendNumber(appendHandle([]byte{kindForget}, h), nonce)
}

// Use makes an object known here: the first use through a handle. It is among
// Resolved when it is known, or when it is known that there is none.
func (r *Replica) Use(now time.Duration, h Handle) {
	r.now = now
	_, reason := r.look(h)
	if reason == NotKnown && r.gone[h.Home()] {
		reason = DeadTask
	}
	switch {
	case reason == 0 || reason == IsMoving:
		r.out.Resolved = append(r.out.Resolved, Resolved{Handle: h})
	case reason != NotKnown:
		r.out.Resolved = append(r.out.Resolved, Resolved{h, r.refuse("use", h, reason)})
	case r.wants[h] == nil:
		r.nonce++
		w := &want{handle: h, nonce: r.nonce}
		w.waiting.Owner = w
		r.wants[h] = w
		r.due.Add(now, &w.waiting, r.config.Retry)
		r.send(w.question())
	}
}

// Forget drops the copy of an object that this task will not use for some time; its
// home tells it of no changes from then on.
func (r *Replica) Forget(now time.Duration, h Handle) {
	r.now = now
	e, found := r.copies[h]
	if !found {
		return
	}
	nonce := r.nonces[h]
	delete(r.copies, h)
	delete(r.nonces, h)
	r.changed(h, e, false)
	r.letGo(h, letting{version: e.Version + 1, what: forgetting, nonce: nonce})
}

// told takes the answer to a want. Only that to the last want is taken: an answer to
// one before a Forget may be of a time when the object was elsewhere.
func (r *Replica) told(h Handle, nonce uint64, reason Reason, e Entry) {
	w := r.wants[h]
	if w == nil || w.nonce != nonce {
		if _, known := r.copies[h]; w == nil && !known && reason == 0 && h.Partition() != All && len(r.letting[h]) == 0 {
			r.send(h.Home(), forget(h, nonce))
		}
		return
	}
	if reason != 0 {
		r.resolve(h, r.refuse("use", h, reason))
		return
	}
	if e.Version < w.floor {
		return // the question will be repeated
	}
	if h.Partition() == All {
		r.all.put(h, e)
	} else {
		r.copies[h], r.nonces[h] = e, nonce
	}
	r.changed(h, e, e.State != Freed)
	r.resolve(h, nil)
}

// resolve ends a want.
func (r *Replica) resolve(h Handle, err *Error) {
	w := r.wants[h]
	if w == nil {
		return
	}
	r.due.Remove(&w.waiting)
	delete(r.wants, h)
	resolved := Resolved{Handle: h}
	if err != nil {
		resolved.Err = err
	}
	r.out.Resolved = append(r.out.Resolved, resolved)
}

// updated takes a change that an object's home has broadcast, and confirms it when
// nobody here uses the object as it was before.
func (r *Replica) updated(h Handle, e Entry, b relay.Broadcast) {
	before, known := r.before(h)
	switch {
	case r.gone[h.Home()], h.Partition() == All && r.all.outdated(h, e), known && e.Version <= before.Version:
		r.confirm(h, e.Version, b)
	case h.Partition() == All || known:
		r.take(h, e)
		if known && before.loses(e) {
			r.letGo(h, letting{version: e.Version, what: confirming, broadcast: b})
		} else {
			r.confirm(h, e.Version, b)
		}
	default:
		if w := r.wants[h]; w != nil {
			w.floor = max(w.floor, e.Version)
		} else if len(r.letting[h]) == 0 {
			// This task has forgotten the object, and its home has not heard.
			r.send(h.Home(), forget(h, r.nonce))
		}
		r.confirm(h, e.Version, b)
	}
}

// before is how an object was known here until now.
func (r *Replica) before(h Handle) (Entry, bool) {
	if h.Partition() != All {
		e, known := r.copies[h]
		return e, known
	}
	s, reason := r.all.find(h)
	if reason != 0 {
		return Entry{}, false
	}
	return s.Entry, true
}

// take puts a newer entry into the replica.
func (r *Replica) take(h Handle, e Entry) {
	r.changed(h, e, e.State != Freed)
	switch {
	case h.Partition() == All:
		r.all.put(h, e)
		if e.State != Freed {
			r.resolve(h, nil)
		} else {
			r.resolve(h, r.refuse("use", h, WasFreed))
		}
	case e.State == Freed:
		delete(r.copies, h)
		delete(r.nonces, h)
	default:
		r.copies[h] = e
	}
}

// confirm confirms a broadcast, at once unless somebody here still lets go of the
// object for another reason.
func (r *Replica) confirm(h Handle, version uint64, b relay.Broadcast) {
	if pending := r.letting[h]; len(pending) > 0 {
		last := pending[len(pending)-1]
		r.letting[h] = append(pending, letting{version: last.version, what: confirming, broadcast: b})
		return
	}
	r.relay.Confirm(b)
}

// outdated tells whether what is known of an index in All is as new as this.
func (p *partition) outdated(h Handle, e Entry) bool {
	if int(h.Index()) >= len(p.slots) {
		return false
	}
	s := &p.slots[h.Index()]
	return s.generation > h.Generation() || s.generation == h.Generation() && s.Version >= e.Version
}

// unknown drops the copies of objects in All that are not freed, for their home is dead.
func (p *partition) unknown(dropped func(Handle)) {
	for i := range p.slots {
		s := &p.slots[i]
		if s.generation == 0 || s.State == Freed {
			continue
		}
		dropped(newHandle(All, uint32(i), s.generation))
		*s = slot{Entry: Entry{State: Freed}, generation: s.generation - 1}
	}
}

// put stores a copy of an object in All.
func (p *partition) put(h Handle, e Entry) {
	for int(h.Index()) >= len(p.slots) {
		p.slots = append(p.slots, slot{})
	}
	if !p.outdated(h, e) {
		p.slots[h.Index()] = slot{Entry: e, generation: h.Generation()}
	}
}
