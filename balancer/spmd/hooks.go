package spmd

/*
#include "evenkeel.h"

int ek_go_hooks(ek_partition *partition, uintptr_t handle);
int ek_go_overlap(ek_partition *partition, uintptr_t handle, double seconds);
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/cgo"
	"time"
	"unsafe"
)

// Packed is what the program keeps itself, and packs and unpacks itself. Ranges are
// [first, end).
type Packed interface {
	// Pack returns items that another rank will have, as bytes. They stay.
	Pack(first, end int) ([]byte, error)
	// Unpack takes items that come. The bytes are not its own afterwards.
	Unpack(first, end int, packed []byte) error
}

// Movable is that, where its items move. What Unpack takes is kept aside until Finish.
// An error of Pack or Unpack undoes the move on all ranks.
type Movable interface {
	Packed
	// Finish: the move is done, this rank has [first, end) now, and what went away
	// may be dropped (taken); or it is undone, the range is the old one, and what
	// came is to be dropped.
	Finish(first, end int, taken bool)
}

// hooks is a Movable that C knows by a handle.
type hooks struct {
	handle cgo.Handle
}

func (h hooks) free() { h.handle.Delete() }

// moving is a Movable, or what a halo copies, and what it has packed for the move or
// exchange that runs: a halo's items may go to several ranks.
type moving struct {
	Packed
	packed map[span][]byte
}

type span struct{ first, end int }

// Add has the items of m move with the partition's ranges. Collective.
func (p *Partition) Add(m Movable) error {
	h := hooks{cgo.NewHandle(&moving{m, map[span][]byte{}})}
	if err := call(func() C.int { return C.ek_go_hooks(p.c, C.uintptr_t(h.handle)) }); err != nil {
		h.free()
		return err
	}
	p.hooks = append(p.hooks, h)
	return nil
}

// Overlap has ranks that are early get ready for the range that they expect to have
// next: in a Step in which this rank will wait, by what the last cycle was like, it
// gets memory for the arrays, begins to receive the items that would come, and calls
// ready (may be nil), while the others still compute. It takes as long as declared at most: it is not called where less time is
// expected, and not again if it overran. If it fails, the next move is refused on all
// ranks. Steps are then measured as by ByTime. Collective.
func (p *Partition) Overlap(declared time.Duration, ready func(first, end int) error) error {
	h := hooks{cgo.NewHandle(ready)}
	if err := call(func() C.int { return C.ek_go_overlap(p.c, C.uintptr_t(h.handle), C.double(declared.Seconds())) }); err != nil {
		h.free()
		return err
	}
	p.hooks = append(p.hooks, h)
	return nil
}

// Overlapped is what a rank got ready while others computed.
type Overlapped struct {
	Times   int           // how often,
	Hidden  time.Duration // and for how long together
	Posted  int           // receives that were begun before the move was decided on,
	Used    int           // and those of them by which items came
	GivenUp bool          // ready took too long
}

// Overlapped says what this rank got ready while others computed.
func (p *Partition) Overlapped() Overlapped {
	var o C.struct_ek_overlapped
	C.ek_partition_overlapped(p.c, &o)
	hidden := time.Duration(float64(o.seconds) * float64(time.Second))
	return Overlapped{int(o.times), hidden, int(o.posted), int(o.used), o.given_up != 0}
}

//export ekGoReady
func ekGoReady(context C.uintptr_t, first, count C.int64_t) C.int {
	ready := cgo.Handle(context).Value().(func(int, int) error)
	if ready == nil {
		return 0
	}
	if err := ready(int(first), int(first+count)); err != nil {
		say("getting ready", err)
		return 1
	}
	return 0
}

func of(context C.uintptr_t) *moving {
	return cgo.Handle(context).Value().(*moving)
}

// say tells on stderr what an error of the program's was: C only knows that there
// was one.
func say(what string, err error) {
	fmt.Fprintf(os.Stderr, "evenkeel: %s: %v\n", what, err)
}

//export ekGoSize
func ekGoSize(context C.uintptr_t, first, count C.int64_t) C.int64_t {
	m := of(context)
	s := span{int(first), int(first + count)}
	packed, err := m.Pack(s.first, s.end)
	if err != nil {
		say("Pack", err)
		return -1
	}
	m.packed[s] = packed
	return C.int64_t(len(packed))
}

//export ekGoPack
func ekGoPack(context C.uintptr_t, first, count C.int64_t, buffer unsafe.Pointer, bytes C.int64_t) {
	copy(unsafe.Slice((*byte)(buffer), int(bytes)), of(context).packed[span{int(first), int(first + count)}])
}

//export ekGoUnpack
func ekGoUnpack(context C.uintptr_t, first, count C.int64_t, buffer unsafe.Pointer, bytes C.int64_t) C.int {
	if err := of(context).Unpack(int(first), int(first+count), unsafe.Slice((*byte)(buffer), int(bytes))); err != nil {
		say("Unpack", err)
		return 1
	}
	return 0
}

//export ekGoFinish
func ekGoFinish(context C.uintptr_t, first, count C.int64_t, taken C.int) {
	m := of(context)
	clear(m.packed)
	m.Packed.(Movable).Finish(int(first), int(first+count), taken != 0)
}
