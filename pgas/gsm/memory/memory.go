// Package memory maps the memory that the tasks of a node share, and keeps what each task allocates in it and shows of it
// in windows.
//
// It is a Go face of c/gsm_memory.c, which C programs use through libevenkeel.so: one implementation, and one file that
// both kinds of programs could map. Setting up crosses into C; commands do not: what they look at is a Go type here, laid
// out as the C one.
package memory

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Werror
#include <stdlib.h>
#include "gsm_memory.h"
*/
import "C"

import (
	"unsafe"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/wire"
)

// Rights are what others may do to memory.
type Rights uint32

// The rights, and all of them.
const (
	Put    Rights = C.EK_GSM_PUT
	Get    Rights = C.EK_GSM_GET
	Atomic Rights = C.EK_GSM_ATOMIC
	All    Rights = C.EK_GSM_ALL
)

// Part says which of a task's heaps, and which half of its window table.
type Part int

// Collective is what changes only in collective calls, in the same way on all tasks, so that the same call gives the same
// place and window everywhere without a message. Own is the task's own.
const (
	Own        Part = C.EK_GSM_OWN
	Collective Part = C.EK_GSM_COLLECTIVE
)

// Page is the number of bytes that protection is for.
const Page = C.EK_GSM_PAGE

// windows is the length of a window table.
const windows = C.EK_GSM_WINDOWS

// Why a call is refused, besides wire.NoWindow and its like.
var (
	ErrNoMemory  = errors.New("there is no room")
	ErrNotMemory = errors.New("no memory that was allocated here")
	ErrInUse     = errors.New("a window still shows it")
)

// reason is the name in packets of what C says is wrong with a command.
func reason(result C.int) wire.Reason {
	switch result {
	case C.EK_OK:
		return wire.OK
	case C.EK_GSM_NO_WINDOW:
		return wire.NoWindow
	case C.EK_GSM_RANGE:
		return wire.Range
	case C.EK_GSM_PROTECTED:
		return wire.Protection
	case C.EK_GSM_LENGTH:
		return wire.Length
	case C.EK_GSM_OPERATION:
		return wire.Operation
	case C.EK_GSM_KEY:
		return wire.Credential
	}
	return wire.Fault
}

func failure(result C.int) error {
	switch result {
	case C.EK_GSM_NOT_MEMORY:
		return ErrNotMemory
	case C.EK_GSM_IN_USE:
		return ErrInUse
	case C.EK_GSM_NO_MEMORY:
		return ErrNoMemory
	}
	return reason(result)
}

// call runs a function of C that may say what went wrong.
func call(f func(text *C.char) C.int) error {
	var text [C.EK_GSM_TEXT]C.char
	result := f(&text[0])
	if result == C.EK_OK {
		return nil
	}
	return errors.WithMessage(failure(result), C.GoString(&text[0]))
}

// Invitation is what the lowest task of a node tells the others of their memory, as plain bytes.
type Invitation [unsafe.Sizeof(C.struct_ek_gsm_invitation{})]byte

func (i *Invitation) c() *C.struct_ek_gsm_invitation {
	return (*C.struct_ek_gsm_invitation)(unsafe.Pointer(i))
}

// Invite makes the file that so many tasks of a node share, with two heaps of so many bytes for each: a reservation of
// addresses, not yet memory. The file has no name. To be ended by Uninvite when all have entered. Also the invitation
// that comes with an error is to be sent: Enter refuses it.
func Invite(tasks int, heap uint64) (Invitation, error) {
	var i Invitation
	err := call(func(text *C.char) C.int {
		return C.ek_gsm_invite(i.c(), C.uint32_t(tasks), C.uint64_t(heap), text)
	})
	return i, err
}

// Uninvite closes the descriptor by which others entered.
func (i *Invitation) Uninvite() {
	C.ek_gsm_uninvite(i.c())
}

// Space is a process's hold on the memory of its node. Its methods may be called from several goroutines, Exit apart.
type Space struct {
	c *C.struct_ek_gsm_space
}

// Enter maps the memory as the task of that number on the node.
func Enter(i Invitation, self int) (*Space, error) {
	s := &Space{c: (*C.struct_ek_gsm_space)(C.calloc(1, C.sizeof_struct_ek_gsm_space))}
	if s.c == nil {
		return nil, errors.WithStack(ErrNoMemory)
	}
	err := call(func(text *C.char) C.int { return C.ek_gsm_enter(s.c, i.c(), C.uint32_t(self), text) })
	if err != nil {
		C.free(unsafe.Pointer(s.c))
		return nil, err
	}
	return s, nil
}

// Exit unmaps the memory. No slice and no area of it may be used any more.
func (s *Space) Exit() {
	C.ek_gsm_exit(s.c)
	C.free(unsafe.Pointer(s.c))
	s.c = nil
}

// Area is the memory of a task of the node.
func (s *Space) Area(local int) *Area {
	return (*Area)(unsafe.Add(unsafe.Pointer(s.c._map), uint64(local)*uint64(s.c.area_size)))
}

// Lives says whether the process still lives that has entered as the task of an area: it is gone where it is dead, runs
// another program, or has left. Where that can't be found out it lives. Takes some 100 µs.
func (s *Space) Lives(a *Area) bool {
	return bool(C.ek_gsm_lives(s.c, (*C.struct_ek_gsm_area)(unsafe.Pointer(a))))
}

// Self is the caller's own area.
func (s *Space) Self() *Area {
	return (*Area)(unsafe.Pointer(s.c.area))
}

// Take allocates bytes, which are zero, and returns their place in the own area: a multiple of 64, and of Page where they
// are as many.
func (s *Space) Take(part Part, bytes uint64) (place uint64, err error) {
	var at C.uint64_t
	err = call(func(text *C.char) C.int { return C.ek_gsm_take(s.c, uint32(part), C.uint64_t(bytes), &at, text) })
	return uint64(at), err
}

// Give gives back what begins at a place. It is refused while a window shows any of it. It is taken anew only after
// Settle: others may have looked at a window a moment ago, and still be about to write.
func (s *Space) Give(place uint64) error {
	return call(func(text *C.char) C.int { return C.ek_gsm_give(s.c, C.uint64_t(place), text) })
}

// Show opens a window over bytes of one allocation; no bytes show nothing.
func (s *Space) Show(part Part, place, bytes uint64, rights Rights) (wire.Window, error) {
	return s.ShowUnder(0, part, place, bytes, rights)
}

// ShowUnder is Show of a window that is only for commands which come with a token, which is odd; 0: for all.
func (s *Space) ShowUnder(token uint64, part Part, place, bytes uint64, rights Rights) (wire.Window, error) {
	var w C.uint32_t
	err := call(func(text *C.char) C.int {
		return C.ek_gsm_show(s.c, uint32(part), C.uint64_t(place), C.uint64_t(bytes), C.uint32_t(rights), C.uint64_t(token), &w, text)
	})
	return wire.Window(w), err
}

// Revoke has an open window refuse every command, as if nobody had the right token.
func (s *Space) Revoke(w wire.Window) {
	C.ek_gsm_revoke(s.c, C.uint32_t(w))
}

// Hide closes a window.
func (s *Space) Hide(w wire.Window) error {
	return call(func(text *C.char) C.int { return C.ek_gsm_hide(s.c, C.uint32_t(w), text) })
}

// Guard sets what others may do to whole pages of one allocation, whatever window they come by.
func (s *Space) Guard(place, bytes uint64, rights Rights) error {
	return call(func(text *C.char) C.int {
		return C.ek_gsm_guard(s.c, C.uint64_t(place), C.uint64_t(bytes), C.uint32_t(rights), text)
	})
}

// Mark begins a global fence, and Settle ends it, when all tasks of the job have begun theirs: what was given back and
// closed before Mark can be used again.
func (s *Space) Mark() uint64 {
	return uint64(C.ek_gsm_mark(s.c))
}

// Settle is the end of what Mark began.
func (s *Space) Settle(mark uint64) {
	C.ek_gsm_settle(s.c, C.uint64_t(mark))
}

// Usage is how many bytes of a heap are in use, and how many wait for Settle.
func (s *Space) Usage(part Part) (used, released uint64) {
	var u, r C.uint64_t
	C.ek_gsm_usage(s.c, uint32(part), &u, &r)
	return uint64(u), uint64(r)
}
