package spmd

/*
#include "evenkeel.h"

int ek_go_halo(ek_partition *partition, uintptr_t handle, ek_halo **halo);
int ek_go_halo_exchange(ek_halo *halo, uintptr_t handle);
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Halo is copies of any items of others: of those that a rank needs for the items that
// it has. They lie behind its own, in the order of their numbers.
type Halo struct {
	p *Partition
	c *C.ek_halo
}

// NewHalo describes, once, what ranks need: needs returns the items that this rank
// needs for its range [first, end), in any order; its own may be among them. It is asked
// anew after the ranges have changed; if it fails on any rank, the exchange is ErrHook
// on all. For copies of the next few items on either side, see NewArray. Collective.
func NewHalo(p *Partition, needs func(first, end int) ([]int, error)) (*Halo, error) {
	halo := &Halo{p: p}
	h := hooks{cgo.NewHandle(needs)}
	if err := call(func() C.int { return C.ek_go_halo(p.c, C.uintptr_t(h.handle), &halo.c) }); err != nil {
		h.free()
		return nil, err
	}
	p.hooks = append(p.hooks, h)
	return halo, nil
}

// Renew asks what is needed now, and finds who has it. An exchange does so by itself
// where ranges have changed; this is for a program that wants to know the copies
// before, or that needs others without a change of ranges. Collective.
func (h *Halo) Renew() error {
	return call(func() C.int { return C.ek_halo_renew(h.c) })
}

// Copies are the items that copies are made of, rising.
func (h *Halo) Copies() []int {
	var at *C.int64_t
	n := C.ek_halo_copies(h.c, &at)
	copies := make([]int, n)
	for i, item := range unsafe.Slice(at, n) {
		copies[i] = int(item)
	}
	return copies
}

// Index is where an item is in WithCopies and Strings.Item; -1 if it is not here.
func (h *Halo) Index(item int) int {
	return int(C.ek_halo_index(h.c, C.int64_t(item)))
}

// Exchange brings the copies of an array's items up to date: an Array without copies
// on either side, or Strings. Their slices are new after the first exchange with a halo
// that was described anew, those of Strings after each. Collective.
func (h *Halo) Exchange(a Exchangeable) error {
	return call(func() C.int { return C.ek_halo_exchange(h.c, a.array()) })
}

// ExchangeBegin begins an Exchange, which ExchangeEnd ends.
func (h *Halo) ExchangeBegin(a Exchangeable) error {
	return call(func() C.int { return C.ek_halo_exchange_begin(h.c, a.array()) })
}

// ExchangeEnd ends what ExchangeBegin began.
func (h *Halo) ExchangeEnd() error {
	return call(func() C.int { return C.ek_halo_exchange_end(h.c) })
}

// Exchangeable is an Array or Strings.
type Exchangeable interface {
	array() *C.ek_array
}

func (a *Array[T]) array() *C.ek_array { return a.c }
func (s *Strings) array() *C.ek_array  { return s.c }

// WithCopies is this rank's items, and behind them the copies of the last exchange
// with a Halo. Of an array with copies on either side, see WithHalo.
func (a *Array[T]) WithCopies() []T {
	first, end := a.p.Range()
	return unsafe.Slice((*T)(C.ek_array_data(a.c)), end-first+int(C.ek_array_copies(a.c)))
}

// ExchangePacked brings copies up to date that the program packs itself: Pack is called
// for items of this rank's that others need, Unpack for the copies that come. An error
// of either is ErrHook on all ranks; what was unpacked by then stays. Collective.
func (h *Halo) ExchangePacked(m Packed) error {
	handle := cgo.NewHandle(&moving{m, map[span][]byte{}})
	defer handle.Delete()
	return call(func() C.int { return C.ek_go_halo_exchange(h.c, C.uintptr_t(handle)) })
}

//export ekGoNeeds
func ekGoNeeds(context C.uintptr_t, halo unsafe.Pointer, first, count C.int64_t) C.int {
	needs := cgo.Handle(context).Value().(func(int, int) ([]int, error))
	items, err := needs(int(first), int(first+count))
	if err != nil {
		say("naming the items of a halo", err)
		return 1
	}
	list := make([]C.int64_t, len(items))
	for i, item := range items {
		list[i] = C.int64_t(item)
	}
	C.ek_halo_need((*C.ek_halo)(halo), unsafe.SliceData(list), C.int64_t(len(list)))
	return 0
}
