package spmd

// #include "evenkeel.h"
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/pkg/errors"
)

// Array holds the items of a partition that this rank has, and copies of its
// neighbours' items. Its memory is outside the Go heap and goes with the partition.
type Array[T any] struct {
	p    *Partition
	c    *C.ek_array
	halo int
}

// NewArray makes an array of zero items, with room for copies of `halo` items of the
// neighbours on either side. T must hold no Go pointers, since items move between
// processes. Collective.
func NewArray[T any](p *Partition, halo int) (*Array[T], error) {
	size := C.size_t(unsafe.Sizeof(*new(T)))
	if t := typeWithPointers[T](); t != nil { // on all ranks alike
		return nil, errors.Wrapf(ErrRefused, "%v holds Go pointers, which mean nothing to another process", t)
	}
	a := &Array[T]{p: p, halo: halo}
	if err := call(func() C.int { return C.ek_array_create(p.c, size, C.int64_t(halo), &a.c) }); err != nil {
		return nil, err
	}
	return a, nil
}

// typeWithPointers is T if it holds Go pointers, else nil.
func typeWithPointers[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); hasPointers(t) {
		return t
	}
	return nil
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.String, reflect.UnsafePointer:
		return true
	}
	return false
}

// Own is this rank's items. Until the next Step or Set that changes the ranges.
func (a *Array[T]) Own() []T {
	first, end := a.p.Range()
	return unsafe.Slice((*T)(C.ek_array_data(a.c)), end-first)
}

// WithHalo is the same with the copies: halo items before and after the own ones.
func (a *Array[T]) WithHalo() []T {
	first, end := a.p.Range()
	data := unsafe.Pointer(C.ek_array_data(a.c))
	return unsafe.Slice((*T)(unsafe.Add(data, -a.halo*int(unsafe.Sizeof(*new(T))))), end-first+2*a.halo)
}

// Exchange brings the copies up to date. Items before 0 and after N-1 do not exist:
// their places stay as they are, or, if the exchange is periodic, hold those from
// the other end. Collective.
func (a *Array[T]) Exchange(periodic bool) error {
	return call(func() C.int { return C.ek_array_exchange(a.c, flag(periodic)) })
}

// ExchangeBegin begins an Exchange, which ExchangeEnd ends: what lies between them
// may use own items, but not change those of the edge, and no copies.
func (a *Array[T]) ExchangeBegin(periodic bool) error {
	return call(func() C.int { return C.ek_array_exchange_begin(a.c, flag(periodic)) })
}

// ExchangeEnd ends what ExchangeBegin began.
func (a *Array[T]) ExchangeEnd() error {
	return call(func() C.int { return C.ek_array_exchange_end(a.c) })
}

// Gather copies all items of all ranks to all, which is as long as there are items,
// on all ranks. Collective.
func (a *Array[T]) Gather(all []T) error {
	_, items, err := a.p.RangeOf(a.p.ranks - 1)
	if err != nil {
		return err
	}
	wrong := ""
	if len(all) != items {
		wrong = fmt.Sprintf("room for %d items, but there are %d", len(all), items)
	}
	return call(refused(wrong, func() C.int { return C.ek_array_gather(a.c, unsafe.Pointer(unsafe.SliceData(all))) }))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Strings holds items of any length: some bytes each. Its memory is as that of
// Array.
type Strings struct {
	p *Partition
	c *C.ek_array
}

// NewStrings makes an array of empty items. Collective.
func NewStrings(p *Partition) (*Strings, error) {
	s := &Strings{p: p}
	if err := call(func() C.int { return C.ek_array_create_variable(p.c, &s.c) }); err != nil {
		return nil, err
	}
	return s, nil
}

// Assign gives this rank's items, which are copied.
func (s *Strings) Assign(items [][]byte) error {
	first, end := s.p.Range()
	if len(items) != end-first {
		return errors.Wrapf(ErrRefused, "%d items for a range of %d", len(items), end-first)
	}
	lengths := make([]int64, len(items))
	var bytes []byte
	for i, item := range items {
		lengths[i] = int64(len(item))
		bytes = append(bytes, item...)
	}
	return call(func() C.int {
		return C.ek_array_assign(s.c, (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(lengths))), unsafe.Pointer(unsafe.SliceData(bytes)))
	})
}

// Item is one of this rank's items, counted from the first of its range, or a copy:
// see Halo.Index. Until the next Assign or exchange, or Step or Set that changes the
// ranges.
func (s *Strings) Item(i int) []byte {
	first, end := s.p.Range()
	items := end - first + int(C.ek_array_copies(s.c))
	offsets := unsafe.Slice((*int64)(unsafe.Pointer(C.ek_array_offsets(s.c))), items+1)
	data := unsafe.Slice((*byte)(C.ek_array_data(s.c)), offsets[items])
	return data[offsets[i]:offsets[i+1]]
}
