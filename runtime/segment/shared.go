package segment

import (
	"sync/atomic"
	"unsafe"
)

// Load reads a word that a living rank may be writing.
func Load[T uint32 | uint64](word *T) T {
	switch p := any(word).(type) {
	case *uint32:
		return T(atomic.LoadUint32(p))
	case *uint64:
		return T(atomic.LoadUint64(p))
	}
	panic("unreachable")
}

// Store writes a word that another process may be reading.
func Store[T uint32 | uint64](word *T, value T) {
	switch p := any(word).(type) {
	case *uint32:
		atomic.StoreUint32(p, uint32(value))
	case *uint64:
		atomic.StoreUint64(p, uint64(value))
	}
}

// Read copies the event with that number from its slot of a ring. False: the
// slot holds another one, or the writer, which waits for nobody, was in it
// meanwhile. The stamp frames the copy: the writer takes it away first and
// puts it there last.
func (e *Event) Read(number uint64) (Event, bool) {
	if Load(&e.Stamp) != number+1 {
		return Event{}, false
	}
	var copied Event
	from, to := (*eventWords)(unsafe.Pointer(e)), (*eventWords)(unsafe.Pointer(&copied))
	for i := range from {
		to[i] = atomic.LoadUint64(&from[i])
	}
	return copied, Load(&e.Stamp) == number+1
}

type eventWords [unsafe.Sizeof(Event{}) / 8]uint64

// SetNewest keeps a reading of the node's clocks for those who look meanwhile.
// For one writer at a time.
func (h *Header) SetNewest(a ClockAnchor) {
	Store(&h.Anchor[1].Ns, 0) // until both words belong together
	Store(&h.Anchor[1].Ticks, a.Ticks)
	Store(&h.Anchor[1].Ns, a.Ns)
}

// Newest is the last reading that SetNewest, or C, has kept.
func (h *Header) Newest() ClockAnchor {
	for range 1000 {
		ns := Load(&h.Anchor[1].Ns)
		ticks := Load(&h.Anchor[1].Ticks)
		if ns != 0 && Load(&h.Anchor[1].Ns) == ns {
			return ClockAnchor{Ticks: ticks, Ns: ns}
		}
	}
	return h.Anchor[0] // its writer died between two words
}
