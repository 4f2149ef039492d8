package memory

/*
#include "gsm_memory.h"

#cgo noescape ek_gsm_admit
#cgo nocallback ek_gsm_admit
*/
import "C"

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/gsm/wire"
)

// Counters are what went out through a window, and what was refused. Only the goroutine that uses the window writes them.
type Counters struct {
	Puts, PutBytes uint64
	Gets, GetBytes uint64
	Atomics        uint64
	Refused        uint64 // commands that were not issued
	Fences         uint64
	_              uint64
}

// entry is a window in its task's table: a cache line that its task writes and all read. Up to the limits everything is
// allowed on every page; a limit is 0 where the pages differ, or nothing is allowed.
type entry struct {
	window        uint32 // accessed atomically; 0: closed
	rights        uint32
	limit         [3]uint64 // of PUT, GET and atomics; accessed atomically
	start, length uint64
	narrow, token uint64
}

// Kind is what a command does, as far as rights are concerned: the place of its limit.
type Kind int

// The kinds, in the order of their rights.
const (
	Putting Kind = iota
	Getting
	Updating
)

func (k Kind) right() Rights { return 1 << k }

// Area is the memory of a task on its node: its window table, and what the windows show. It lies outside Go's heap.
type Area struct {
	entries  [windows]entry
	counters [windows]Counters
	task     uint32
	_        uint32
	pid      uint64
	heaps    uint64
	bytes    uint64
	// For each page of the heaps a byte follows: what others may not do.
}

// The two definitions are one: an array of a negative length does not compile.
var (
	_ [unsafe.Sizeof(entry{}) - C.sizeof_struct_ek_gsm_entry]struct{}
	_ [C.sizeof_struct_ek_gsm_entry - unsafe.Sizeof(entry{})]struct{}
	_ [unsafe.Sizeof(Counters{}) - C.sizeof_struct_ek_gsm_counters]struct{}
	_ [C.sizeof_struct_ek_gsm_counters - unsafe.Sizeof(Counters{})]struct{}
	_ [unsafe.Sizeof(Area{}) - C.sizeof_struct_ek_gsm_area]struct{}
	_ [C.sizeof_struct_ek_gsm_area - unsafe.Sizeof(Area{})]struct{}
)

// Nowhere stands for the area of a task on another node: it has no windows.
var Nowhere = new(Area)

// Word returns where the command on an aligned word of 1<<shift bytes goes; nil where that is not certain to be allowed,
// which Admit decides.
func (a *Area) Word(kind Kind, w wire.Window, offset uint64, shift int) unsafe.Pointer {
	e := &a.entries[w%windows]
	// Turned by the width, an offset that is no multiple of it is beyond all limits. Window before limit: see Space.Hide.
	if atomic.LoadUint32(&e.window) != uint32(w) || bits.RotateLeft64(offset, -shift) >= atomic.LoadUint64(&e.limit[kind])>>shift {
		return nil
	}
	return unsafe.Add(unsafe.Pointer(a), e.start+offset)
}

// Admit is the whole check of a command. It returns where the command goes, or why it may not: wire.NoWindow, wire.Range,
// wire.Protection, or wire.Credential.
func (a *Area) Admit(kind Kind, w wire.Window, offset, bytes uint64) (unsafe.Pointer, wire.Reason) {
	return a.AdmitNarrow(kind, w, offset, bytes, 0)
}

// AdmitNarrow is Admit for a command that comes with the token of a narrower key, or 0. To a window that is for all it leads
// like Admit; where the window wants another token the reason is wire.Credential.
func (a *Area) AdmitNarrow(kind Kind, w wire.Window, offset, bytes, token uint64) (unsafe.Pointer, wire.Reason) {
	e := &a.entries[w%windows]
	limit := atomic.LoadUint64(&e.limit[kind]) // of a window under a key it is 0
	if atomic.LoadUint32(&e.window) == uint32(w) && offset < limit && bytes <= limit-offset {
		return unsafe.Add(unsafe.Pointer(a), e.start+offset), wire.OK
	}
	return a.admit(kind, w, offset, bytes, token)
}

// admit decides what the limits leave open, such as commands on windows whose pages differ.
func (a *Area) admit(kind Kind, w wire.Window, offset, bytes, token uint64) (unsafe.Pointer, wire.Reason) {
	var place C.uint64_t
	result := C.ek_gsm_admit((*C.struct_ek_gsm_area)(unsafe.Pointer(a)), C.uint32_t(w), C.uint64_t(offset), C.uint64_t(bytes),
		C.uint32_t(kind.right()), C.uint64_t(token), &place)
	if result != C.EK_OK {
		return nil, reason(result)
	}
	return unsafe.Add(unsafe.Pointer(a), uint64(place)), wire.OK
}

// Counters are those of a window of this area, for others to read: as of its last fence.
func (a *Area) Counters(w wire.Window) *Counters {
	return &a.counters[w%windows]
}

// Bytes are those of an allocation of this area.
func (a *Area) Bytes(place, bytes uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(a), place)), bytes)
}

// SetTask says whose area this is.
func (a *Area) SetTask(task uint32) { a.task = task }
