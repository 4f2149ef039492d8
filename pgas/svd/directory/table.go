package directory

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/svd"
)

// table is what lookups read: open addressing, one cache line for each entry, never
// locked. A line is written once, before its handle makes it visible, and never used
// again: when an entry changes it gets a new line, and the handle of the old one is
// taken away. So whoever has found a line can read it without looking back, for as
// long as it likes. When half of the lines are used up the entries go to new lines,
// and the collector takes the old ones when no one reads them any more.
//
// One goroutine at a time writes.
type table struct {
	lines atomic.Pointer[lines]
	used  int // lines with a handle, or that had one
	known int // entries
}

type lines struct {
	mask  uint64 // number of lines - 1
	shift uint
	all   []line
}

// line is one entry. The handle is stored with release and loaded with acquire, so
// who sees it sees the entry.
type line struct {
	handle atomic.Uint64 // 0: never used
	entry  svd.Entry
	_      [lineSize - 8 - unsafe.Sizeof(svd.Entry{})]byte
}

// taken is the handle of a line whose entry has gone: no object's, for its generation
// is 0.
const taken = 1 << 16

const lineSize = 64

const fewestLines = 1 << 6

func newLines(count uint64) *lines {
	return &lines{mask: count - 1, shift: uint(64 - bits.Len64(count-1)), all: make([]line, count)}
}

// spread multiplies a handle whose index and partition are its low bits. Of some
// thousand numbers it is the one by which the sets of handles that programs have (all
// indices of one partition or of some, some of many) come to lie on lines of their
// own: see TestSpread.
const spread = 0xd0dcd0e59399ff63

// first is where the search for a handle begins.
func (l *lines) first(h svd.Handle) uint64 {
	return bits.RotateLeft64(uint64(h), -16) * spread >> l.shift
}

// find returns the entry of a handle, or nil. It is small, so that the compiler puts
// it where it is called: mostly the first line is the right one.
func (t *table) find(h svd.Handle) *svd.Entry {
	l := t.lines.Load()
	if at := &l.all[l.first(h)]; at.handle.Load() == uint64(h) {
		return &at.entry
	}
	return l.search(h)
}

// search looks at one line after the other, up to one that was never used.
func (l *lines) search(h svd.Handle) *svd.Entry {
	if at := l.at(h); at != nil {
		return &at.entry
	}
	return nil
}

func (t *table) init() { t.lines.Store(newLines(fewestLines)) }

// put makes e the entry of a handle.
func (t *table) put(h svd.Handle, e svd.Entry) {
	l := t.lines.Load()
	if 2*(t.used+1) > len(l.all) {
		l = t.rebuild()
	}
	old := l.at(h)
	l.add(h, e) // first, so that a lookup finds either
	t.used++
	if old != nil {
		old.handle.Store(taken)
	} else {
		t.known++
	}
}

// remove has a handle lead to nothing.
func (t *table) remove(h svd.Handle) {
	if old := t.lines.Load().at(h); old != nil {
		old.handle.Store(taken)
		t.known--
	}
}

// at is the line of a handle, or nil.
func (l *lines) at(h svd.Handle) *line {
	for i := l.first(h); ; i++ {
		at := &l.all[i&l.mask]
		switch at.handle.Load() {
		case uint64(h):
			return at
		case 0:
			return nil
		}
	}
}

// add puts an entry into the first line that was never used.
func (l *lines) add(h svd.Handle, e svd.Entry) {
	for i := l.first(h); ; i++ {
		if at := &l.all[i&l.mask]; at.handle.Load() == 0 {
			at.entry = e
			at.handle.Store(uint64(h))
			return
		}
	}
}

// rebuild copies the entries to lines of which they fill a quarter at most.
func (t *table) rebuild() *lines {
	count := uint64(fewestLines)
	for count < 4*uint64(t.known) {
		count *= 2
	}
	next := newLines(count)
	for i := range t.lines.Load().all {
		at := &t.lines.Load().all[i]
		if h := at.handle.Load(); h != 0 && h != taken {
			next.add(svd.Handle(h), at.entry)
		}
	}
	t.used = t.known
	t.lines.Store(next)
	return next
}
