package directory

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

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

// table is what lookups read, never locked. The lines of a partition are in pages, in the order of its indices, so a lookup
// in a large table goes straight to the one line that it misses in the caches. That line is the entry that the
// index had first. One that has changed, or that has the index of a freed object, is in a line of its own, which the page
// leads to.
//
// Everything is written before a pointer or a key makes it visible; what is out of date is the collector's when nobody
// reads it any more. One goroutine at a time writes.
type table struct {
	pages atomic.Pointer[pages]
	used  int    // keys in pages
	slab  []Line // lines that were never used, for entries that change
}

// pages are found by hashing (open addressing).
type pages struct {
	shift uint
	mask  uint64
	pages []page
}

// page is pageLines indices, the first page of a partition fewer as long as it has no more: one less than a power of
// two is the last. Half a cache line, so that a lookup takes two loads from here to its line.
type page struct {
	key     atomic.Uint64                          // of partition and page; 0: never used
	last    atomic.Uint64                          // it only grows, and after there are more lines: to be read before them
	lines   atomic.Pointer[Line]                   // the first one
	changed atomic.Pointer[[]atomic.Pointer[Line]] // nil: nothing has changed
}

const (
	indexShift  = 16 // bits of a handle below the index
	pageBits    = 12
	pageLines   = 1 << pageBits
	fewestLines = 1 << 4
	slabLines   = 1 << 4 // as many are kept as long as one of them is in use
	fewest      = 1 << 2 // pages to begin with
)

// spread multiplies keys, which are often numbers in a row, or as many apart as there are tasks on a node (Fibonacci
// hashing).
const spread = 0x9e3779b97f4a7c15

func newPages(count int) *pages {
	return &pages{shift: uint(64 - bits.Len(uint(count-1))), mask: uint64(count - 1), pages: make([]page, count)}
}

func keyOf(h svd.Handle) uint64 { return uint64(h)>>(indexShift+pageBits) + 1 }

// within is the place of a handle's line in a page.
func within(h svd.Handle) uint64 { return uint64(h) >> indexShift & (pageLines - 1) }

// line is that at a place, which is not beyond the last.
func line(lines *Line, at uint64) *Line {
	return (*Line)(unsafe.Add(unsafe.Pointer(lines), at*uint64(unsafe.Sizeof(Line{}))))
}

// find returns the line of a handle, or nil.
func (t *table) find(h svd.Handle) *Line {
	if l := t.pages.Load().first(h); l != nil && l.Current(h) {
		return l
	}
	return t.again(h)
}

// findAll finds the lines of some handles. All are missed in the caches at once: first it is found out where they are,
// without a look at them.
func (t *table) findAll(handles []svd.Handle, lines []*Line) {
	const some = 64
	for len(handles) > some {
		t.findAll(handles[:some], lines[:some])
		handles, lines = handles[some:], lines[some:]
	}
	p := t.pages.Load()
	for i, h := range handles {
		lines[i] = p.first(h)
	}
	for i, h := range handles {
		if l := lines[i]; l == nil || !l.Current(h) {
			lines[i] = t.again(h)
		}
	}
}

// first is where the line of a handle is if its page is in the first place, and nothing has changed; nil: it is elsewhere.
func (p *pages) first(h svd.Handle) *Line {
	key := keyOf(h)
	in := &p.pages[key*spread>>(p.shift&63)]
	if in.key.Load() != key {
		return nil
	}
	last := in.last.Load()
	return line(in.lines.Load(), uint64(h)>>indexShift&last)
}

// again looks for what is not in its first place. A line that is out of date between
// two looks was replaced, and what replaced it was there before.
func (t *table) again(h svd.Handle) *Line {
	at := within(h)
	for {
		p := t.pages.Load()
		in := p.of(keyOf(h))
		if in == nil {
			return nil
		}
		last := in.last.Load()
		if at > last {
			return nil
		}
		lines := in.lines.Load()
		if l := line(lines, at); l.Current(h) {
			return l
		}
		changed := in.changed.Load()
		var l *Line
		if changed != nil && at < uint64(len(*changed)) {
			if l = (*changed)[at].Load(); l != nil && l.Current(h) {
				return l
			}
		}
		if t.pages.Load() == p && in.lines.Load() == lines && in.changed.Load() == changed &&
			(changed == nil || at >= uint64(len(*changed)) || (*changed)[at].Load() == l) {
			return nil
		}
	}
}

// of returns the page with a key, or nil: it looks at one after the other, up to one that
// was never used. Mostly the first is the right one.
func (p *pages) of(key uint64) *page {
	for i := key * spread >> p.shift; ; i++ {
		switch in := &p.pages[i&p.mask]; in.key.Load() {
		case key:
			return in
		case 0:
			return nil
		}
	}
}

// add takes the first page that was never used.
func (p *pages) add(key, last uint64, lines *Line, changed *[]atomic.Pointer[Line]) *page {
	for i := key * spread >> p.shift; ; i++ {
		if in := &p.pages[i&p.mask]; in.key.Load() == 0 {
			in.last.Store(last)
			in.lines.Store(lines)
			in.changed.Store(changed)
			in.key.Store(key)
			return in
		}
	}
}

func (t *table) init() { t.pages.Store(newPages(fewest)) }

// put makes e the entry of a handle.
func (t *table) put(h svd.Handle, e svd.Entry) {
	in, at := t.page(h), within(h)
	first := line(in.lines.Load(), at)
	if first.mark.Load() == 0 {
		first.Entry = e
		first.mark.Store(markOf(h))
		return
	}
	changed := in.changed.Load()
	if changed == nil {
		none := make([]atomic.Pointer[Line], in.last.Load()+1)
		changed = &none
		in.changed.Store(changed)
	}
	if len(t.slab) == 0 {
		t.slab = make([]Line, slabLines)
	}
	l := &t.slab[0]
	t.slab = t.slab[1:]
	l.Entry = e
	l.mark.Store(markOf(h))
	old := (*changed)[at].Swap(l) // first: who finds the old one out of date looks again
	if old == nil {
		old = first
	}
	old.mark.Store(gone)
}

// remove has a handle lead to nothing.
func (t *table) remove(h svd.Handle) {
	l := t.find(h)
	if l == nil {
		return
	}
	if changed := t.pages.Load().of(keyOf(h)).changed.Load(); changed != nil {
		(*changed)[within(h)].Store(nil)
	}
	l.mark.Store(gone)
}

// clear has all handles lead to nothing, and no line be current.
func (t *table) clear() {
	p := t.pages.Load()
	for i := range p.pages {
		in := &p.pages[i]
		if in.key.Load() == 0 {
			continue
		}
		lines := in.lines.Load()
		for at := range in.last.Load() + 1 {
			if l := line(lines, at); l.mark.Load() != 0 {
				l.mark.Store(gone)
			}
		}
		if changed := in.changed.Load(); changed != nil {
			for at := range *changed {
				if l := (*changed)[at].Load(); l != nil {
					l.mark.Store(gone)
				}
			}
		}
	}
}

// page returns that of a handle, with room for it.
func (t *table) page(h svd.Handle) *page {
	at := within(h)
	in := t.pages.Load().of(keyOf(h))
	if in != nil && at <= in.last.Load() {
		return in
	}
	count := uint64(pageLines)
	if h.Index() < pageLines {
		for count >= 4*fewestLines && count/4 > at {
			count /= 4
		}
	}
	lines := make([]Line, count)
	if in == nil {
		return t.add(keyOf(h), lines)
	}
	// Lines that move: who has found one of the old ones sees that, and looks again.
	before, old := in.last.Load()+1, in.lines.Load()
	for i := range before {
		lines[i].Entry = line(old, i).Entry
		lines[i].mark.Store(line(old, i).mark.Load())
	}
	if changed := in.changed.Load(); changed != nil {
		more := make([]atomic.Pointer[Line], count)
		for i := range *changed {
			more[i].Store((*changed)[i].Load())
		}
		in.changed.Store(&more)
	}
	in.lines.Store(&lines[0])
	in.last.Store(count - 1)
	for i := range before {
		line(old, i).mark.Store(gone)
	}
	return in
}

// add makes a page of lines, a power of two of them. Pages are moved when half of the places for them are used.
func (t *table) add(key uint64, lines []Line) *page {
	p := t.pages.Load()
	if 2*(t.used+1) > len(p.pages) {
		next := newPages(2 * len(p.pages))
		for i := range p.pages {
			if in := &p.pages[i]; in.key.Load() != 0 {
				next.add(in.key.Load(), in.last.Load(), in.lines.Load(), in.changed.Load())
			}
		}
		t.pages.Store(next)
		p = next
	}
	t.used++
	return p.add(key, uint64(len(lines)-1), &lines[0], nil)
}
