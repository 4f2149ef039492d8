package mpi_test

import (
	"fmt"
	"testing"

	"evenkeel/mpi"
)

// elements is a datatype with its tests: the methods of typed, seen without the type parameter.
type elements interface {
	name() string

	sendRecv(*testing.T, *mpi.Comm)
	sendrecvRing(*testing.T, *mpi.Comm)
	nonblocking(*testing.T, *mpi.Comm)
	matchedProbe(*testing.T, *mpi.Comm)

	broadcast(*testing.T, *mpi.Comm)
	gatherScatter(*testing.T, *mpi.Comm)
	gatherScatterVaried(*testing.T, *mpi.Comm)
	allToAll(*testing.T, *mpi.Comm)
	reductions(*testing.T, *mpi.Comm)
	refusedOps(*testing.T, *mpi.Comm)

	fencedTransfers(*testing.T, *mpi.Comm)
	sharedWindow(*testing.T, *mpi.Comm)
}

// typed tests one datatype. value makes a different element from every small number, and summand one
// of a size that Sum and Prod of a few do not overflow; ops are the operations that the standard
// defines for the datatype, written in Go.
type typed[T mpi.Datatype] struct {
	value, summand func(int) T
	ops            map[mpi.Op]func(a, b T) T
}

func (e typed[T]) name() string { return fmt.Sprintf("%T", e.value(0)) }

// values returns n elements that differ from those of another start.
func (e typed[T]) values(n, start int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = e.value((start*7 + i) % 100)
	}
	return out
}

// named is a type of the program's own: the constraint admits it.
type named float64

var datatypes = []elements{
	integer[int](), integer[int8](), integer[int16](), integer[int32](), integer[int64](),
	integer[uint](), integer[uint8](), integer[uint16](), integer[uint32](), integer[uint64](),
	float[float32](), float[float64](), float[named](),
	typed[complex64]{single, single, sums[complex64]()},
	typed[complex128]{double, double, sums[complex128]()},
	typed[bool]{func(i int) bool { return i%2 == 1 }, nil, logicals()},
	located(
		func(v, i int) mpi.Located[int16] { return mpi.Located[int16]{Value: int16(v), Index: int32(i)} },
		func(l mpi.Located[int16]) (float64, int32) { return float64(l.Value), l.Index }),
	located(
		func(v, i int) mpi.Located[int32] { return mpi.Located[int32]{Value: int32(v), Index: int32(i)} },
		func(l mpi.Located[int32]) (float64, int32) { return float64(l.Value), l.Index }),
	located(
		func(v, i int) mpi.Located[int64] { return mpi.Located[int64]{Value: int64(v), Index: int32(i)} },
		func(l mpi.Located[int64]) (float64, int32) { return float64(l.Value), l.Index }),
	located(
		func(v, i int) mpi.Located[float32] { return mpi.Located[float32]{Value: float32(v), Index: int32(i)} },
		func(l mpi.Located[float32]) (float64, int32) { return float64(l.Value), l.Index }),
	located(
		func(v, i int) mpi.Located[float64] { return mpi.Located[float64]{Value: float64(v), Index: int32(i)} },
		func(l mpi.Located[float64]) (float64, int32) { return float64(l.Value), l.Index }),
}

type anInteger interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64
}

func integer[T anInteger]() elements {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	ops := orders[T]()
	ops[mpi.Land] = func(a, b T) T { return truth(a != 0 && b != 0) }
	ops[mpi.Lor] = func(a, b T) T { return truth(a != 0 || b != 0) }
	ops[mpi.Lxor] = func(a, b T) T { return truth((a != 0) != (b != 0)) }
	ops[mpi.Band] = func(a, b T) T { return a & b }
	ops[mpi.Bor] = func(a, b T) T { return a | b }
	ops[mpi.Bxor] = func(a, b T) T { return a ^ b }
	return typed[T]{alternating[T], func(i int) T { return T(i) }, ops}
}

func float[T ~float32 | ~float64]() elements {
	return typed[T]{alternating[T], alternating[T], orders[T]()}
}

// alternating makes 0, -1, 2, -3, …; of unsigned types the odd ones are near the greatest.
func alternating[T anInteger | ~float32 | ~float64](i int) T {
	if i%2 == 1 {
		return -T(i)
	}
	return T(i)
}

func single(i int) complex64  { return complex(float32(i), float32(-i)) }
func double(i int) complex128 { return complex(float64(-i), float64(i)) }

func sums[T mpi.Number]() map[mpi.Op]func(a, b T) T {
	return map[mpi.Op]func(a, b T) T{
		mpi.Sum:  func(a, b T) T { return a + b },
		mpi.Prod: func(a, b T) T { return a * b },
	}
}

func orders[T anInteger | ~float32 | ~float64]() map[mpi.Op]func(a, b T) T {
	ops := sums[T]()
	ops[mpi.Min] = func(a, b T) T { return min(a, b) }
	ops[mpi.Max] = func(a, b T) T { return max(a, b) }
	return ops
}

func logicals() map[mpi.Op]func(a, b bool) bool {
	return map[mpi.Op]func(a, b bool) bool{
		mpi.Land: func(a, b bool) bool { return a && b },
		mpi.Lor:  func(a, b bool) bool { return a || b },
		mpi.Lxor: func(a, b bool) bool { return a != b },
	}
}

// located makes the tests of one Located type, of which build makes an element and value reads one.
func located[T mpi.Datatype](build func(value, index int) T, read func(T) (value float64, index int32)) elements {
	choose := func(better func(a, b float64) bool) func(a, b T) T {
		return func(a, b T) T {
			va, ia := read(a)
			vb, ib := read(b)
			if better(vb, va) || va == vb && ib < ia {
				return b
			}
			return a
		}
	}
	return typed[T]{
		// Few values and many places, so that the lower place must decide.
		func(i int) T { return build(i%3, 100-i) },
		nil,
		map[mpi.Op]func(a, b T) T{
			mpi.MinLoc: choose(func(a, b float64) bool { return a < b }),
			mpi.MaxLoc: choose(func(a, b float64) bool { return a > b }),
		},
	}
}
