package mpi

// #include "calls.h"
import "C"

import (
	"math"
	"reflect"
	"unsafe"
)

// Number is an integer, floating-point or complex type with a predefined MPI datatype of the same
// size. byte is uint8 and travels as MPI_UINT8_T; int and uint have the size they have in Go.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Datatype is a Go type whose values MPI can move. All of them are free of pointers.
type Datatype interface {
	Number | ~bool |
		Located[int16] | Located[int32] | Located[int64] | Located[float32] | Located[float64]
}

// Located is a value with the place it came from, for the operations MinLoc and MaxLoc. Where
// values are equal, they choose the lower index.
type Located[T int16 | int32 | int64 | float32 | float64] struct {
	Value T
	Index int32
}

// Each name of a C macro below is a call into C, so the handles are fetched once.
var (
	scalars = [...]C.MPI_Datatype{
		reflect.Bool:       C.MPI_C_BOOL,
		reflect.Int:        bySize(int(0), C.MPI_INT32_T, C.MPI_INT64_T),
		reflect.Int8:       C.MPI_INT8_T,
		reflect.Int16:      C.MPI_INT16_T,
		reflect.Int32:      C.MPI_INT32_T,
		reflect.Int64:      C.MPI_INT64_T,
		reflect.Uint:       bySize(uint(0), C.MPI_UINT32_T, C.MPI_UINT64_T),
		reflect.Uint8:      C.MPI_UINT8_T,
		reflect.Uint16:     C.MPI_UINT16_T,
		reflect.Uint32:     C.MPI_UINT32_T,
		reflect.Uint64:     C.MPI_UINT64_T,
		reflect.Float32:    C.MPI_FLOAT,
		reflect.Float64:    C.MPI_DOUBLE,
		reflect.Complex64:  C.MPI_C_FLOAT_COMPLEX,
		reflect.Complex128: C.MPI_C_DOUBLE_COMPLEX,
	}
	pairs = map[reflect.Type]C.MPI_Datatype{
		reflect.TypeFor[Located[int16]]():   C.MPI_SHORT_INT,
		reflect.TypeFor[Located[int32]]():   C.MPI_2INT,
		reflect.TypeFor[Located[int64]]():   C.MPI_LONG_INT,
		reflect.TypeFor[Located[float32]](): C.MPI_FLOAT_INT,
		reflect.TypeFor[Located[float64]](): C.MPI_DOUBLE_INT,
	}
)

func bySize[T int | uint](v T, four, eight C.MPI_Datatype) C.MPI_Datatype {
	if unsafe.Sizeof(v) == 4 {
		return four
	}
	return eight
}

// datatypeOf returns the MPI datatype of the elements of a []T.
func datatypeOf[T Datatype]() C.MPI_Datatype {
	t := reflect.TypeFor[T]()
	if kind := t.Kind(); kind != reflect.Struct {
		return scalars[kind]
	}
	return pairs[t]
}

// sizeOf returns the bytes from one element of a []T to the next.
func sizeOf[T Datatype]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// inPlace stands for MPI_IN_PLACE, which is no address that a Go variable may hold.
var inPlace *C.char

// nothing is the address of a nil slice, which must not look like inPlace.
var nothing C.char

// address returns where the elements of buf are.
func address[T Datatype](buf []T) *C.char {
	if buf == nil {
		return &nothing
	}
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(buf)))
}

// addressOf returns where a single element is.
func addressOf[T Datatype](v *T) *C.char {
	return (*C.char)(unsafe.Pointer(v))
}

// cint turns a length, rank or tag into C's int. What does not fit becomes the most negative one,
// which MPI refuses by its meaning: ErrCount, ErrRank, ErrTag.
func cint(n int) C.int {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return math.MinInt32
	}
	return C.int(n)
}

func cints(ns []int) []C.int {
	out := make([]C.int, len(ns))
	for i, n := range ns {
		out[i] = cint(n)
	}
	return out
}

func goInts(ns []C.int) []int {
	out := make([]int, len(ns))
	for i, n := range ns {
		out[i] = int(n)
	}
	return out
}
