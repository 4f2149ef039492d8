package dgsp

// The wire form of a program: a version, the number of its instructions, the instructions, each
// after those that it refers to, and where the last of them begins. All numbers are varints, signed
// ones zigzag; "which" counts backwards, 1 being the instruction just before.
//
//	block     0  length
//	loop      1  which count stride
//	index     2  which count place, then the differences to the place before
//	sequence  3  count (difference to the place before, which | 0 length)...
//
// A program without bytes has no instructions.

/*
#include "dgsp.h"
*/
import "C"

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"unsafe"

	"github.com/pkg/errors"
)

const wireVersion = 1

// Hash names a program by its content: the first half of the SHA-256 of its wire form. Equal
// layouts that were made alike have equal hashes.
type Hash [16]byte

func (h Hash) String() string { return hex.EncodeToString(h[:4]) }

func hashOf(wire []byte) Hash {
	sum := sha256.Sum256(wire)
	return Hash(sum[:len(Hash{})])
}

// Wire is the form in which the program travels; not to be changed.
func (p *Program) Wire() []byte { return p.wire }

// Hash is that of the wire form.
func (p *Program) Hash() Hash { return p.hash }

// ---- encoding -----------------------------------------------------------------------------------

type encoder struct {
	instructions []byte
	numbers      map[*C.struct_ek_dgsp]int // of instructions that have been written, from 1
	depths       []int
}

// encode gives the program its wire form and hash.
func (p *Program) encode() error {
	e := &encoder{numbers: map[*C.struct_ek_dgsp]int{}}
	if p.node != nil {
		if depth := e.instruction(p.node); depth > MaxDepth {
			return errors.Errorf("layouts are nested %d deep, more than %d", depth, MaxDepth)
		}
	}
	wire := binary.AppendUvarint([]byte{wireVersion}, uint64(len(e.depths)))
	wire = append(wire, e.instructions...)
	p.wire = binary.AppendVarint(wire, int64(p.at))
	p.hash = hashOf(p.wire)
	return nil
}

func (e *encoder) unsigned(n int64) { e.instructions = binary.AppendUvarint(e.instructions, uint64(n)) }
func (e *encoder) signed(n int64)   { e.instructions = binary.AppendVarint(e.instructions, n) }

// which refers to an instruction that has been written, from the next one.
func (e *encoder) which(node *C.struct_ek_dgsp) {
	e.unsigned(int64(len(e.depths) + 1 - e.numbers[node]))
}

// instruction writes what a node needs, and then the node, unless that is done. It returns its depth.
func (e *encoder) instruction(node *C.struct_ek_dgsp) int {
	if number, done := e.numbers[node]; done {
		return e.depths[number-1]
	}
	depth := 0
	steps := stepsOf(node)
	if len(steps) > 0 {
		depth = 1 // that of its blocks
	}
	if node.child != nil {
		depth = e.instruction(node.child)
	}
	for _, s := range steps {
		if s.child != nil {
			depth = max(depth, e.instruction(s.child))
		}
	}
	e.unsigned(int64(node.kind))
	switch node.kind {
	case C.EK_DGSP_BLOCK:
		e.unsigned(int64(node.size))
	case C.EK_DGSP_LOOP:
		e.which(node.child)
		e.unsigned(int64(node.count))
		e.signed(int64(node.stride))
	case C.EK_DGSP_INDEX:
		e.which(node.child)
		e.unsigned(int64(node.count))
		before := int64(0)
		for _, at := range unsafe.Slice(node.at, int(node.count)) {
			e.signed(int64(at) - before)
			before = int64(at)
		}
	case C.EK_DGSP_SEQUENCE:
		e.unsigned(int64(node.count))
		before := int64(0)
		for i, s := range steps {
			e.signed(int64(s.at) - before)
			before = int64(s.at)
			if s.child != nil {
				e.which(s.child)
			} else {
				e.unsigned(0)
				e.unsigned(endOf(node, steps, i) - int64(s.offset))
			}
		}
	}
	e.depths = append(e.depths, depth+1)
	e.numbers[node] = len(e.depths)
	return depth + 1
}

func stepsOf(node *C.struct_ek_dgsp) []C.struct_ek_dgsp_step {
	if node.kind != C.EK_DGSP_SEQUENCE {
		return nil
	}
	return unsafe.Slice(node.steps, int(node.count))
}

// endOf is where step i ends in the packed form.
func endOf(node *C.struct_ek_dgsp, steps []C.struct_ek_dgsp_step, i int) int64 {
	if i+1 < len(steps) {
		return int64(steps[i+1].offset)
	}
	return int64(node.size)
}

// ---- decoding -----------------------------------------------------------------------------------

// ErrWire is the cause of what Decode says of bytes that are no program.
var ErrWire = errors.New("not a data gather/scatter program")

// Decode makes a program of its wire form, which may come from anybody: whatever the bytes, the
// program touches no place outside its Bounds, takes at most limit bytes of memory, and is nested
// at most MaxDepth deep. The bounds are not read but computed by what makes programs of layouts.
func Decode(wire []byte, limit int) (*Program, error) {
	if len(wire) > limit {
		return nil, errors.WithMessagef(ErrWire, "%d bytes, where %d are the most", len(wire), limit)
	}
	p, err := build(limit-len(wire), func(b *builder) part { return decode(b, wire) })
	if err != nil {
		return nil, errors.WithMessage(ErrWire, err.Error())
	}
	p.wire = append([]byte(nil), wire...)
	p.hash = hashOf(wire)
	return p, nil
}

type decoder struct {
	*builder
	rest   []byte
	parts  []part
	depths []int
}

func decode(b *builder, wire []byte) part {
	d := &decoder{builder: b, rest: wire}
	if version := d.unsigned(); version != wireVersion {
		return b.fail("version %d, not %d", version, wireVersion)
	}
	count := d.length(2)
	for range count {
		made, depth := d.instruction()
		if d.err == nil && depth > MaxDepth {
			d.fail("nested more than %d deep", MaxDepth)
		}
		if d.err == nil && made.node == nil && !bool(b.memory.failed) {
			d.fail("an instruction without bytes")
		}
		if d.err != nil || bool(b.memory.failed) {
			return part{}
		}
		d.parts = append(d.parts, made)
		d.depths = append(d.depths, depth)
	}
	at := d.signed()
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes too many", len(d.rest))
	}
	if d.err != nil || count == 0 {
		return part{}
	}
	// The instruction may begin behind its place, but a program that was made begins at it.
	last := d.parts[count-1]
	if !within(at, int64(last.at)) || !within(at+int64(last.at)) {
		return d.fail("it begins %d bytes away", at)
	}
	last.at += C.int64_t(at)
	return last
}

// within says whether numbers are such as places of memory can be; the difference of two of them is
// one that signed reads.
func within(places ...int64) bool {
	for _, n := range places {
		if n > 1<<60-1 || n < -(1<<60-1) {
			return false
		}
	}
	return true
}

func (d *decoder) unsigned() int64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > 1<<61 {
		d.fail("cut off, or a number out of range")
		d.rest = nil
		return 0
	}
	d.rest = d.rest[size:]
	return int64(n)
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 || n > 1<<61-1 || n < -(1<<61-1) {
		d.fail("cut off, or a number out of range")
		d.rest = nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// length is a number of things of which each takes at least so many of the bytes that follow: what
// is made room for is in proportion to what was sent.
func (d *decoder) length(each int) int {
	n := d.unsigned()
	if n > int64(len(d.rest)/each) {
		d.fail("%d entries in %d bytes", n, len(d.rest))
		return 0
	}
	return int(n)
}

// which is an instruction that was read before, and its depth.
func (d *decoder) which(back int64) (part, int) {
	if back < 1 || back > int64(len(d.parts)) {
		d.fail("it refers to an instruction that is not there")
		return part{}, 0
	}
	i := len(d.parts) - int(back)
	return d.parts[i], d.depths[i]
}

func (d *decoder) instruction() (part, int) {
	switch kind := d.unsigned(); kind {
	case C.EK_DGSP_BLOCK:
		return C.ek_dgsp_block(d.memory, C.int64_t(d.unsigned())), 1
	case C.EK_DGSP_LOOP:
		child, depth := d.which(d.unsigned())
		count, stride := d.unsigned(), d.signed()
		if d.err != nil {
			return part{}, 0
		}
		return C.ek_dgsp_loop(d.memory, child, C.int64_t(count), C.int64_t(stride)), depth + 1
	case C.EK_DGSP_INDEX:
		child, depth := d.which(d.unsigned())
		at := make([]C.int64_t, d.length(1))
		place := int64(0)
		for i := range at {
			place += d.signed()
			if !within(place) {
				return d.fail("a place out of range"), 0
			}
			at[i] = C.int64_t(place)
		}
		if d.err != nil || len(at) == 0 {
			return part{}, 0
		}
		return C.ek_dgsp_index(d.memory, child, &at[0], C.int64_t(len(at))), depth + 1
	case C.EK_DGSP_SEQUENCE:
		return d.sequence()
	default:
		return d.fail("instruction of kind %d", kind), 0
	}
}

// step is one of a sequence: an instruction that was read before, or a block.
type step struct {
	at     C.int64_t
	made   part
	length C.int64_t // of a block; 0: it is none
}

func (d *decoder) sequence() (part, int) {
	steps := make([]step, d.length(2))
	place, deepest, blocks := int64(0), 1, 0
	for i := range steps {
		s := &steps[i]
		place += d.signed()
		if which := d.unsigned(); which != 0 {
			var depth int
			s.made, depth = d.which(which)
			deepest = max(deepest, depth)
		} else if s.length = C.int64_t(d.unsigned()); s.length == 0 {
			return d.fail("a step without bytes"), 0
		} else {
			blocks++
		}
		if !within(place, int64(s.made.at)) || !within(place+int64(s.made.at)) {
			return d.fail("a place out of range"), 0
		}
		s.at = C.int64_t(place)
	}
	switch {
	case d.err != nil || len(steps) == 0:
		return part{}, 0
	case blocks == len(steps):
		at, length := make([]C.int64_t, blocks), make([]C.int64_t, blocks)
		for i, s := range steps {
			at[i], length[i] = s.at, s.length
		}
		return C.ek_dgsp_blocks(d.memory, &at[0], &length[0], C.int64_t(blocks)), deepest + 1
	}
	parts := make([]part, len(steps))
	for i, s := range steps {
		if parts[i] = s.made; s.length > 0 {
			parts[i] = C.ek_dgsp_block(d.memory, s.length)
		}
		parts[i].at += s.at
	}
	return C.ek_dgsp_sequence(d.memory, &parts[0], C.int64_t(len(parts))), deepest + 1
}
