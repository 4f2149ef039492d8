// Package heap hands out parts of a range of shared memory, of which it keeps the books in that memory
// itself: whoever can read and write the range can allocate and free, one at a time.
//
// Free parts are a list in the order of their addresses, joined with their neighbours; the first that
// is long enough is taken (D. E. Knuth, The Art of Computer Programming 1, 2.5, algorithms A and B).
// Each part that is in use is preceded by a header that says so, by which a part that is freed twice,
// or was never handed out, is recognised.
package heap

import "github.com/pkg/errors"

// Memory is the range: aligned words of 8 bytes at offsets below its length. An error ends the
// operation under way and is returned by it.
type Memory interface {
	Load(offset uint64) (uint64, error)
	Store(offset, value uint64) error
}

// Unit is what all offsets and lengths are multiples of: a cache line, so that no two parts share one.
const Unit = 64

// What is in the first words of a part: of a free one its length and the next free one, of one in use
// its length and its mark.
const (
	lengthWord = 0
	nextWord   = 8
	markWord   = 16
)

// The first unit of the range is the head of the list.
const first = Unit

// Promised is the offset of a word for whoever keeps the range: how many parts will be freed without
// anybody asking for it again. Allocate and Free leave it alone.
const Promised = 24

// Errors.
var (
	ErrFull = errors.New("there is no room in the shared heap")
	ErrPart = errors.New("it was freed before, or never allocated")
)

// mark says that the part at an offset is in use. No length looks like it.
func mark(offset uint64) uint64 { return 0xe5a1d8c3<<32 ^ offset }

// Format makes a range of so many bytes one free part.
func Format(m Memory, bytes uint64) error {
	bytes -= bytes % Unit
	const least = 3 * Unit // the head, a header and a part
	if bytes < least {
		return errors.Errorf("a shared heap of %d bytes: it takes %d at least", bytes, least)
	}
	return all(m.Store(lengthWord, 0), m.Store(nextWord, first), m.Store(Promised, 0),
		m.Store(first+lengthWord, bytes-first), m.Store(first+nextWord, 0), m.Store(first+markWord, 0))
}

func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Allocate returns the offset of a part of at least so many bytes, a multiple of Unit. What is in it is
// left as it is.
func Allocate(m Memory, bytes uint64) (uint64, error) {
	const most = 1 << 62
	if bytes > most {
		return 0, ErrFull
	}
	need := Unit + (max(bytes, 1)+Unit-1)/Unit*Unit
	before := uint64(0)
	for {
		at, err := m.Load(before + nextWord)
		if err != nil {
			return 0, err
		}
		if at == 0 {
			return 0, ErrFull
		}
		length, err := m.Load(at + lengthWord)
		if err != nil {
			return 0, err
		}
		if length >= need {
			return at + Unit, take(m, before, at, length, need)
		}
		before = at
	}
}

// take makes the beginning of a free part one in use, and leaves the rest.
func take(m Memory, before, at, length, need uint64) error {
	next, err := m.Load(at + nextWord)
	if err != nil {
		return err
	}
	if length > need {
		rest := at + need
		if err := all(m.Store(rest+lengthWord, length-need), m.Store(rest+nextWord, next), m.Store(rest+markWord, 0)); err != nil {
			return err
		}
		next = rest
	}
	return all(m.Store(before+nextWord, next), m.Store(at+lengthWord, need), m.Store(at+markWord, mark(at)))
}

// InUse says whether the part at this offset is handed out.
func InUse(m Memory, offset uint64) (bool, error) {
	if offset < first+Unit || offset%Unit != 0 {
		return false, nil
	}
	word, err := m.Load(offset - Unit + markWord)
	return word == mark(offset-Unit), err
}

// Room is how many bytes a part that is in use has.
func Room(m Memory, offset uint64) (uint64, error) {
	length, err := m.Load(offset - Unit + lengthWord)
	return length - Unit, err
}

// Free gives back the part at an offset that Allocate returned.
func Free(m Memory, offset uint64) error {
	used, err := InUse(m, offset)
	if err != nil {
		return err
	}
	if !used {
		return ErrPart
	}
	at := offset - Unit
	length, err := m.Load(at + lengthWord)
	if err != nil {
		return err
	}
	before, next := uint64(0), uint64(0)
	for {
		if next, err = m.Load(before + nextWord); err != nil {
			return err
		}
		if next == 0 || next > at {
			break
		}
		before = next
	}
	if err := m.Store(at+markWord, 0); err != nil {
		return err
	}
	if next != 0 && at+length == next {
		if length, next, err = joined(m, length, next); err != nil {
			return err
		}
	}
	if before != 0 {
		beforeLength, err := m.Load(before + lengthWord)
		if err != nil {
			return err
		}
		if before+beforeLength == at {
			return all(m.Store(before+lengthWord, beforeLength+length), m.Store(before+nextWord, next))
		}
	}
	return all(m.Store(at+lengthWord, length), m.Store(at+nextWord, next), m.Store(before+nextWord, at))
}

// joined are the length and the next free part of one that is joined with the free part behind it.
func joined(m Memory, length, next uint64) (uint64, uint64, error) {
	more, err := m.Load(next + lengthWord)
	if err != nil {
		return 0, 0, err
	}
	after, err := m.Load(next + nextWord)
	return length + more, after, err
}
