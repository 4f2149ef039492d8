package directory

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"evenkeel/pgas/svd"
)

// Line is what a lookup finds: an object's entry, in one cache line. It is never
// changed; when the entry changes there is another line, and this one is Current no
// longer. So whoever has found a line can read it without looking back, for as long
// as it likes, and sees by one look whether there is news.
type Line struct {
	mark atomic.Uint64 // of its handle; 0: never used
	svd.Entry
}

// markOf differs from the marks of lines that were never used, and of those that are gone,
// for all handles but two, of an index that no object has.
func markOf(h svd.Handle) uint64 { return ^uint64(h) }

// gone is the mark of a line that is out of date.
const gone = 1

// Current says whether the line is still the entry of this object here.
func (l *Line) Current(h svd.Handle) bool { return l.mark.Load() == markOf(h) }

// table is what lookups read, never locked. Each partition has pages of lines in the
// order of its indices, so a lookup in a large table goes straight to the one line
// that it misses in the caches. That line is the entry that the index had first. One
// that has changed, or that has the index of a freed object, is in a line of its own,
// which the page leads to.
//
// Whatever leads to a line is never changed either: a page more is another list of
// pages. Everything is written before a pointer or a key makes it visible; what is out
// of date is the collector's when nobody reads it any more. One goroutine at a time
// writes.
type table struct {
	partitions atomic.Pointer[partitions]
	used       int    // keys in partitions
	known      int    // entries
	slab       []Line // lines that were never used, for entries that change
}

// partitions are found by hashing (open addressing).
type partitions struct {
	shift uint
	mask  uint64
	slots []slot
}

type slot struct {
	key   atomic.Uint64 // of a partition; 0: never used
	pages atomic.Pointer[[]page]
}

// page is pageLines indices, the first page of a partition fewer as long as it has no
// more.
type page struct {
	first   []Line
	changed []atomic.Pointer[Line] // nil: nothing has changed
}

const (
	indexShift  = 16 // bits of a handle below the index
	indexBits   = 24
	pageBits    = 12
	pageLines   = 1 << pageBits
	fewestLines = 1 << 4
	slabLines   = 1 << 4 // as many are kept as long as one of them is in use
	fewest      = 1 << 2 // to begin with
)

// spread multiplies the keys of partitions, which are often numbers in a row, or as many
// apart as there are tasks on a node (Fibonacci hashing).
const spread = 0x9e3779b97f4a7c15

func newPartitions(count int) *partitions {
	return &partitions{shift: uint(64 - bits.Len(uint(count-1))), mask: uint64(count - 1), slots: make([]slot, count)}
}

func keyOf(h svd.Handle) uint64 { return uint64(h)>>(indexShift+indexBits) + 1 }

func indexOf(h svd.Handle) int { return int(h >> indexShift & (1<<indexBits - 1)) }

// find returns the line of a handle, or nil.
func (t *table) find(h svd.Handle) *Line {
	p, key := t.partitions.Load(), keyOf(h)
	if s := &p.slots[key*spread>>p.shift]; s.key.Load() == key {
		index, pages := indexOf(h), *s.pages.Load()
		if at := index >> pageBits; at < len(pages) {
			if first := pages[at].first; index&(pageLines-1) < len(first) {
				if l := &first[index&(pageLines-1)]; l.Current(h) {
					return l
				}
			}
		}
	}
	return t.again(h)
}

// again looks for what is not in its first place. A line that is out of date between
// two looks was replaced, and what replaced it was there before.
func (t *table) again(h svd.Handle) *Line {
	index, at := indexOf(h), indexOf(h)&(pageLines-1)
	for {
		p := t.partitions.Load()
		s := p.of(keyOf(h))
		if s == nil {
			return nil
		}
		pages := s.pages.Load()
		if index>>pageBits >= len(*pages) || at >= len((*pages)[index>>pageBits].first) {
			return nil
		}
		in := &(*pages)[index>>pageBits]
		if l := &in.first[at]; l.Current(h) {
			return l
		}
		var l *Line
		if in.changed != nil {
			if l = in.changed[at].Load(); l != nil && l.Current(h) {
				return l
			}
		}
		if t.partitions.Load() == p && s.pages.Load() == pages && (in.changed == nil || in.changed[at].Load() == l) {
			return nil
		}
	}
}

// of returns the slot with a key, or nil: it looks at one after the other, up to one that
// was never used. Mostly the first is the right one.
func (p *partitions) of(key uint64) *slot {
	for i := key * spread >> p.shift; ; i++ {
		switch s := &p.slots[i&p.mask]; s.key.Load() {
		case key:
			return s
		case 0:
			return nil
		}
	}
}

// add takes the first slot that was never used.
func (p *partitions) add(key uint64, pages *[]page) *slot {
	for i := key * spread >> p.shift; ; i++ {
		if s := &p.slots[i&p.mask]; s.key.Load() == 0 {
			s.pages.Store(pages)
			s.key.Store(key)
			return s
		}
	}
}

func (t *table) init() { t.partitions.Store(newPartitions(fewest)) }

// put makes e the entry of a handle.
func (t *table) put(h svd.Handle, e svd.Entry) {
	s, at := t.slot(keyOf(h)), indexOf(h)&(pageLines-1)
	in := s.page(indexOf(h))
	first := &in.first[at]
	if first.mark.Load() == 0 {
		first.Entry = e
		first.mark.Store(markOf(h))
		t.known++
		return
	}
	if in.changed == nil {
		in = s.replace(indexOf(h)>>pageBits, page{in.first, make([]atomic.Pointer[Line], len(in.first))})
	}
	if len(t.slab) == 0 {
		t.slab = make([]Line, slabLines)
	}
	l := &t.slab[0]
	t.slab = t.slab[1:]
	l.Entry = e
	l.mark.Store(markOf(h))
	old := in.changed[at].Swap(l) // first: who finds the old one out of date looks again
	switch {
	case old != nil:
		old.mark.Store(gone)
	case first.mark.Load() != gone:
		first.mark.Store(gone)
	default:
		t.known++
	}
}

// remove has a handle lead to nothing.
func (t *table) remove(h svd.Handle) {
	l := t.find(h)
	if l == nil {
		return
	}
	if in := t.slot(keyOf(h)).page(indexOf(h)); in.changed != nil {
		in.changed[indexOf(h)&(pageLines-1)].Store(nil)
	}
	l.mark.Store(gone)
	t.known--
}

// clear has all handles lead to nothing.
func (t *table) clear() {
	for i := range t.partitions.Load().slots {
		pages := t.partitions.Load().slots[i].pages.Load()
		if pages == nil {
			continue
		}
		for _, in := range *pages {
			for k := range in.first {
				in.first[k].mark.Store(gone)
			}
			for k := range in.changed {
				if l := in.changed[k].Swap(nil); l != nil {
					l.mark.Store(gone)
				}
			}
		}
	}
	t.known = 0
}

// slot returns that of a partition, which it makes if there is none. Slots are moved when
// half of them are used.
func (t *table) slot(key uint64) *slot {
	p := t.partitions.Load()
	if s := p.of(key); s != nil {
		return s
	}
	if 2*(t.used+1) > len(p.slots) {
		next := newPartitions(2 * len(p.slots))
		for i := range p.slots {
			if s := &p.slots[i]; s.key.Load() != 0 {
				next.add(s.key.Load(), s.pages.Load())
			}
		}
		t.partitions.Store(next)
		p = next
	}
	t.used++
	return p.add(key, new([]page))
}

// page returns the page of an index, with room for it.
func (s *slot) page(index int) *page {
	pages := *s.pages.Load()
	at, within := index>>pageBits, index&(pageLines-1)
	if at < len(pages) && within < len(pages[at].first) {
		return &pages[at]
	}
	lines := pageLines
	for at == 0 && len(pages) <= 1 && lines >= 4*fewestLines && lines/4 > within {
		lines /= 4
	}
	larger := page{first: make([]Line, lines)}
	if at < len(pages) && pages[at].changed != nil {
		larger.changed = make([]atomic.Pointer[Line], lines)
		for i := range pages[at].changed {
			larger.changed[i].Store(pages[at].changed[i].Load())
		}
	}
	if at >= len(pages) {
		return s.replace(at, larger)
	}
	// Lines that move: who has found one of the old ones sees that, and looks again.
	old := pages[at].first
	for i := range old {
		larger.first[i].Entry = old[i].Entry
		larger.first[i].mark.Store(old[i].mark.Load())
	}
	in := s.replace(at, larger)
	for i := range old {
		old[i].mark.Store(gone)
	}
	return in
}

// replace makes a page the at-th of the partition.
func (s *slot) replace(at int, p page) *page {
	pages := slices.Clone(*s.pages.Load())
	for len(pages) <= at {
		pages = append(pages, page{})
	}
	pages[at] = p
	s.pages.Store(&pages)
	return &pages[at]
}
