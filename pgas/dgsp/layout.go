package dgsp

/*
#cgo CFLAGS: -std=gnu11 -Wall -Wextra -Werror
#include <stdlib.h>

#include "dgsp.h"
*/
import "C"

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/pkg/errors"
)

// Layout says where the bytes of a transfer lie, from some place in memory, and in which order they
// are sent. The zero Layout has no bytes. Layouts are values: they can be used in several others,
// and by several goroutines at once.
type Layout struct {
	build func(*builder) part
}

// part is an instruction and how far from its place it begins.
type part = C.struct_ek_dgsp_part

// builder makes one program in C's memory.
type builder struct {
	memory *C.struct_ek_dgsp_memory
	err    error // the first
}

func (b *builder) fail(format string, arguments ...any) part {
	if b.err == nil {
		b.err = errors.Errorf(format, arguments...)
	}
	return part{}
}

func (b *builder) part(l Layout) part {
	if l.build == nil || b.err != nil {
		return part{}
	}
	return l.build(b)
}

// Block is length bytes in one piece.
func Block(length int) Layout {
	return Layout{func(b *builder) part {
		if length < 0 {
			return b.fail("a block of %d bytes: its length can't be negative", length)
		}
		return C.ek_dgsp_block(b.memory, C.int64_t(length))
	}}
}

// Strided is count blocks of length bytes, one every stride bytes: MPI_Type_vector. The stride may
// be negative, or shorter than a block.
func Strided(count, length, stride int) Layout {
	return Repeat(Block(length), count, stride)
}

// Repeat is a layout count times, once every stride bytes. Repeat of Repeat is the nested strided
// layout of several dimensions.
func Repeat(each Layout, count, stride int) Layout {
	return Layout{func(b *builder) part {
		if count < 0 {
			return b.fail("a layout repeated %d times: the count can't be negative", count)
		}
		return C.ek_dgsp_loop(b.memory, b.part(each), C.int64_t(count), C.int64_t(stride))
	}}
}

// Indexed is block i of length[i] bytes at[i] bytes away: MPI_Type_create_hindexed. It keeps the
// two slices until it is compiled for the last time; they must be of one length.
func Indexed(at, length []int) Layout {
	return Layout{func(b *builder) part {
		if len(at) != len(length) {
			return b.fail("%d places for %d blocks: each block needs its place", len(at), len(length))
		}
		for i, l := range length {
			if l < 0 {
				return b.fail("block %d of an indexed layout has %d bytes: its length can't be negative", i, l)
			}
		}
		if len(at) == 0 {
			return part{}
		}
		places, lengths := copied(at), copied(length) // C writes into them
		return C.ek_dgsp_blocks(b.memory, &places[0], &lengths[0], C.int64_t(len(places)))
	}}
}

// IndexedOf is the same layout at each of these places, in bytes. It keeps the slice until it is
// compiled for the last time.
func IndexedOf(each Layout, at []int) Layout {
	return Layout{func(b *builder) part {
		child := b.part(each)
		if len(at) == 0 {
			return part{}
		}
		places := copied(at)
		return C.ek_dgsp_index(b.memory, child, &places[0], C.int64_t(len(places)))
	}}
}

// Field is a layout at a place within a Struct, in bytes.
type Field struct {
	At     int
	Layout Layout
}

// Struct is different layouts one after the other: MPI_Type_create_struct.
func Struct(fields ...Field) Layout {
	return Layout{func(b *builder) part {
		parts := make([]part, len(fields))
		for i, f := range fields {
			parts[i] = b.part(f.Layout)
			at := int64(parts[i].at) + int64(f.At)
			if f.At > math.MaxInt64/4 || f.At < -math.MaxInt64/4 {
				return b.fail("field %d of a struct lies %d bytes away, which no memory reaches", i, f.At)
			}
			parts[i].at = C.int64_t(at)
		}
		if len(parts) == 0 {
			return part{}
		}
		return C.ek_dgsp_sequence(b.memory, &parts[0], C.int64_t(len(parts)))
	}}
}

func copied(numbers []int) []C.int64_t {
	all := make([]C.int64_t, len(numbers))
	for i, n := range numbers {
		all[i] = C.int64_t(n)
	}
	return all
}

// MaxMemory bounds the memory of one program, in bytes.
const MaxMemory = 64 << 20

// MaxDepth bounds how deep layouts are nested in each other.
const MaxDepth = 64

// Compile makes the program of a layout: the shortest form that means the same bytes in the same
// order. A program of a regular layout has the same size whatever its number of blocks.
func Compile(l Layout) (*Program, error) {
	p, err := build(MaxMemory, func(b *builder) part { return b.part(l) })
	if err != nil {
		return nil, errors.WithMessage(err, "compiling a layout")
	}
	if err := p.encode(); err != nil {
		return nil, errors.WithMessage(err, "compiling a layout")
	}
	return p, nil
}

// build runs a construction in memory of C that lives as long as the program.
func build(limit int, construct func(*builder) part) (*Program, error) {
	memory := (*C.struct_ek_dgsp_memory)(C.calloc(1, C.sizeof_struct_ek_dgsp_memory))
	memory.limit = C.size_t(limit)
	b := &builder{memory: memory}
	made := construct(b)
	if b.err == nil && bool(memory.failed) {
		b.err = errors.Errorf("the program takes more than %d bytes, or its numbers are beyond what memory has", limit)
	}
	if b.err != nil {
		forget(memory)
		return nil, b.err
	}
	p := &Program{node: made.node, at: int(made.at), memory: int(memory.used)}
	if made.node != nil {
		p.size = int(made.node.size)
		p.low = int(made.at) + int(made.node.low)
		p.high = int(made.at) + int(made.node.high)
	}
	runtime.AddCleanup(p, forget, memory)
	return p, nil
}

func forget(memory *C.struct_ek_dgsp_memory) {
	C.ek_dgsp_forget(memory)
	C.free(unsafe.Pointer(memory))
}
