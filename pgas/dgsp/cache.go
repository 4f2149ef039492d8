package dgsp

import (
	"container/list"

	"github.com/pkg/errors"
)

// cache holds the programs that came from others, by their hash, in bounded memory. Those that a
// message or a handler uses are pinned; of the others the one that was used longest ago goes first.
// Nobody is told: a sender finds out when it names a program that is gone, and sends it again.
type cache struct {
	limit, used int // bytes
	pinned      int // bytes of what must stay
	kept        int // of these, what handlers keep
	entries     map[Hash]*entry
	unpinned    list.List // of *entry; the front one goes first
}

type entry struct {
	program *Program
	pins    int
	keeps   int           // of these pins, those of handlers
	place   *list.Element // in unpinned
}

func newCache(limit int) *cache { return &cache{limit: limit, entries: map[Hash]*entry{}} }

// largest is the most memory that one program may take: two of them fit, so that what handlers keep
// never shuts out what messages need.
func (c *cache) largest() int { return c.limit / 2 }

// find pins the program with a hash; nil: it is not here.
func (c *cache) find(h Hash) *entry {
	e := c.entries[h]
	if e != nil {
		c.pin(e)
	}
	return e
}

func (c *cache) pin(e *entry) {
	if e.place != nil {
		c.unpinned.Remove(e.place)
		e.place = nil
		c.pinned += e.program.Memory()
	}
	e.pins++
}

func (c *cache) unpin(e *entry) {
	e.pins--
	if e.pins == 0 {
		c.pinned -= e.program.Memory()
		e.place = c.unpinned.PushBack(e)
	}
}

// admit takes a program in and pins it; nil: what is pinned leaves no room for it now.
func (c *cache) admit(p *Program) *entry {
	if e := c.find(p.Hash()); e != nil {
		return e
	}
	if p.Memory() > c.limit-c.pinned {
		return nil
	}
	for c.used+p.Memory() > c.limit {
		oldest := c.unpinned.Remove(c.unpinned.Front()).(*entry)
		delete(c.entries, oldest.program.Hash())
		c.used -= oldest.program.Memory()
	}
	e := &entry{program: p, pins: 1}
	c.entries[p.Hash()] = e
	c.used += p.Memory()
	c.pinned += p.Memory()
	return e
}

// Handle is a handler's way to the program of a message. It is valid until the message is done,
// or, if it is kept, until it is freed. It belongs to the goroutine of its Receiver.
type Handle struct {
	receiver *Receiver
	entry    *entry
	kept     bool
	message  bool // the message still uses the program
}

var errFreed = errors.New("the handle of a layout's program was freed, or its message is done and it was not kept")

// Program is the message's program.
func (h *Handle) Program() (*Program, error) {
	if !h.kept && !h.message {
		return nil, errFreed
	}
	return h.entry.program, nil
}

// Keep makes the handle and the cached program outlive the message, until Free. Handlers can keep
// up to half of the cache.
func (h *Handle) Keep() error {
	if h.kept {
		return errors.New("the handle of a layout's program is kept already")
	}
	if !h.message {
		return errFreed
	}
	c, memory := h.receiver.cache, h.entry.program.Memory()
	if h.entry.keeps == 0 {
		if c.kept+memory > c.limit-c.largest() {
			return errors.Errorf("keeping a program of %d bytes: handlers keep %d already, and %d are the most", memory, c.kept, c.limit-c.largest())
		}
		c.kept += memory
	}
	h.kept = true
	h.entry.keeps++
	c.pin(h.entry)
	return nil
}

// Free lets a kept program go.
func (h *Handle) Free() error {
	if !h.kept {
		return errFreed
	}
	h.kept = false
	h.entry.keeps--
	if h.entry.keeps == 0 {
		h.receiver.cache.kept -= h.entry.program.Memory()
	}
	h.receiver.release(h.entry)
	return nil
}
