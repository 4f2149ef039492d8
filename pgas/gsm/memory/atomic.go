package memory

import (
	"sync/atomic"
	"unsafe"

	"evenkeel/pgas/gsm/wire"
)

// Aligned says whether the address of a word is a multiple of its width: a window may start anywhere.
func Aligned(word []byte) bool { return uintptr(unsafe.Pointer(&word[0]))%uintptr(len(word)) == 0 }

// Apply executes an atomic on a word, whose length is its width.
func Apply(op wire.Op, word []byte, operand, compare uint64) (old uint64) {
	if len(word) == 8 {
		return apply64(op, (*uint64)(unsafe.Pointer(&word[0])), operand, compare)
	}
	return uint64(apply32(op, (*uint32)(unsafe.Pointer(&word[0])), uint32(operand), uint32(compare)))
}

func apply64(op wire.Op, p *uint64, operand, compare uint64) (old uint64) {
	switch op {
	case wire.Add, wire.FetchAndAdd:
		return atomic.AddUint64(p, operand) - operand
	case wire.And, wire.FetchAndAnd:
		return atomic.AndUint64(p, operand)
	case wire.Or, wire.FetchAndOr:
		return atomic.OrUint64(p, operand)
	case wire.Swap:
		return atomic.SwapUint64(p, operand)
	case wire.CompareAndSwap:
		return CompareAndSwap64(p, compare, operand)
	}
	return ExclusiveOr64(p, operand)
}

func apply32(op wire.Op, p *uint32, operand, compare uint32) (old uint32) {
	switch op {
	case wire.Add, wire.FetchAndAdd:
		return atomic.AddUint32(p, operand) - operand
	case wire.And, wire.FetchAndAnd:
		return atomic.AndUint32(p, operand)
	case wire.Or, wire.FetchAndOr:
		return atomic.OrUint32(p, operand)
	case wire.Swap:
		return atomic.SwapUint32(p, operand)
	case wire.CompareAndSwap:
		return CompareAndSwap32(p, compare, operand)
	}
	return ExclusiveOr32(p, operand)
}

// CompareAndSwap64 tells what was there, which Go's does not.
func CompareAndSwap64(p *uint64, compare, value uint64) (old uint64) {
	return compareAndSwap(func(old, new uint64) (bool, uint64) {
		if atomic.CompareAndSwapUint64(p, old, new) {
			return true, old
		}
		return false, atomic.LoadUint64(p)
	}, compare, value)
}

// CompareAndSwap32 does the same with 4 bytes.
func CompareAndSwap32(p *uint32, compare, value uint32) (old uint32) {
	return compareAndSwap(func(old, new uint32) (bool, uint32) {
		if atomic.CompareAndSwapUint32(p, old, new) {
			return true, old
		}
		return false, atomic.LoadUint32(p)
	}, compare, value)
}

// ExclusiveOr64 turns bits: there is no instruction that also tells what they were.
func ExclusiveOr64(p *uint64, operand uint64) (old uint64) {
	return exclusiveOr(func(old, new uint64) (bool, uint64) {
		if atomic.CompareAndSwapUint64(p, old, new) {
			return true, old
		}
		return false, atomic.LoadUint64(p)
	}, atomic.LoadUint64(p), operand)
}

// ExclusiveOr32 does the same with 4 bytes.
func ExclusiveOr32(p *uint32, operand uint32) (old uint32) {
	return exclusiveOr(func(old, new uint32) (bool, uint32) {
		if atomic.CompareAndSwapUint32(p, old, new) {
			return true, old
		}
		return false, atomic.LoadUint32(p)
	}, atomic.LoadUint32(p), operand)
}

// What tries again is told how: so a test can have others come in between, and the compiler makes the same of it as of
// loops over the instructions. swap writes new where old is, and says whether that was so, and else what was there a
// moment later.

// compareAndSwap: what is found different after a failure is what the word was at that later moment, when a comparison
// fails too.
func compareAndSwap[T uint32 | uint64](swap func(old, new T) (bool, T), compare, value T) (old T) {
	for {
		if swapped, was := swap(compare, value); swapped || was != compare {
			return was
		}
	}
}

func exclusiveOr[T uint32 | uint64](swap func(old, new T) (bool, T), old, operand T) T {
	for {
		swapped, was := swap(old, old^operand)
		if swapped {
			return old
		}
		old = was
	}
}
