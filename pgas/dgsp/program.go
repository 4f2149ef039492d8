package dgsp

/*
#include "dgsp.h"
#include "move.h"

#cgo noescape gather
#cgo nocallback gather
#cgo noescape scatter
#cgo nocallback scatter
#cgo noescape move
#cgo nocallback move

// The program is placed at `at`, once. What it touches may begin behind the address of the memory:
// only C adds the two.
static struct ek_dgsp_run placed(const struct ek_dgsp *type, int64_t at)
{
	return (struct ek_dgsp_run){type, at, 0, false};
}

static void gather(const struct ek_dgsp *type, int64_t at, const void *memory, void *packed, int64_t from, int64_t to)
{
	struct ek_dgsp_run run = placed(type, at);
	ek_dgsp_pack(&run, memory, packed, from, to);
}

static void scatter(const struct ek_dgsp *type, int64_t at, void *memory, const void *packed, int64_t from, int64_t to)
{
	struct ek_dgsp_run run = placed(type, at);
	ek_dgsp_unpack(&run, memory, packed, from, to);
}

static void move(const struct ek_dgsp *target, int64_t target_at, void *to, const struct ek_dgsp *source, int64_t source_at,
                 const void *from, int64_t size)
{
	struct ek_dgsp_run scattered = placed(target, target_at), gathered = placed(source, source_at);
	ek_dgsp_move(&scattered, to, &gathered, from, 0, size);
}

static int64_t spans(const struct ek_dgsp *type, int64_t at, int64_t from, int64_t to, struct ek_dgsp_span *some, int64_t most,
                     int64_t *count)
{
	struct ek_dgsp_run run = placed(type, at);
	return ek_dgsp_spans(&run, from, to, some, most, count);
}
*/
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/pkg/errors"
)

// Program is a compiled layout. It is constant; any number of goroutines may use it. Its memory
// goes with the last reference to it.
//
// All positions are in bytes: a place is one in memory, counted from the base that a call is given;
// a packed position is one in the bytes of the layout one after the other, from 0 to Size.
type Program struct {
	node      *C.struct_ek_dgsp // nil: no bytes
	at        int               // where it begins, from the base
	size      int
	low, high int
	memory    int
	wire      []byte
	hash      Hash
}

// Size is the number of bytes that the program gathers or scatters.
func (p *Program) Size() int { return p.size }

// Bounds are the places that the program touches: all of them are in [low, high).
func (p *Program) Bounds() (low, high int) { return p.low, p.high }

// Memory is what the program takes, in bytes.
func (p *Program) Memory() int { return p.memory + len(p.wire) }

// fits says whether the program stays in a memory, and [from, from+length) in its packed form.
func (p *Program) fits(memory []byte, base, from, length int) error {
	if from < 0 || length > p.size-from {
		return errors.Errorf("bytes %d to %d of a program that has %d", from, from+length, p.size)
	}
	if p.size > 0 && (base < -p.low || base > len(memory)-p.high) {
		return errors.Errorf("placed at %d, the program touches bytes %d to %d from there of a memory of %d bytes",
			base, p.low, p.high, len(memory))
	}
	return nil
}

// Fits says whether the program, placed at base, stays in a memory.
func (p *Program) Fits(memory []byte, base int) bool { return p.fits(memory, base, 0, 0) == nil }

// Gather copies as many bytes as packed has, from packed position from on, out of memory, in which
// the layout is placed at base. It copies nothing on an error: the program or the bytes asked for
// reach out of what is there.
func (p *Program) Gather(packed, memory []byte, base, from int) error {
	if err := p.fits(memory, base, from, len(packed)); err != nil {
		return errors.WithMessage(err, "gathering")
	}
	if len(packed) > 0 {
		C.gather(p.node, C.int64_t(base+p.at), start(memory), start(packed), C.int64_t(from), C.int64_t(from+len(packed)))
		runtime.KeepAlive(p)
	}
	return nil
}

// Scatter is the inverse of Gather: it copies packed to where the layout has those bytes.
func (p *Program) Scatter(memory []byte, base int, packed []byte, from int) error {
	if err := p.fits(memory, base, from, len(packed)); err != nil {
		return errors.WithMessage(err, "scattering")
	}
	if len(packed) > 0 {
		C.scatter(p.node, C.int64_t(base+p.at), start(memory), start(packed), C.int64_t(from), C.int64_t(from+len(packed)))
		runtime.KeepAlive(p)
	}
	return nil
}

// Move copies all bytes of one layout to where another has them, byte i of the packed form of one
// to byte i of the other's. The memories must not overlap, and the programs must be of one size.
func Move(target *Program, to []byte, base int, source *Program, from []byte, sourceBase int) error {
	if target.size != source.size {
		return errors.Errorf("moving %d bytes to a layout of %d", source.size, target.size)
	}
	if err := target.fits(to, base, 0, target.size); err != nil {
		return errors.WithMessage(err, "scattering")
	}
	if err := source.fits(from, sourceBase, 0, source.size); err != nil {
		return errors.WithMessage(err, "gathering")
	}
	if target.size > 0 {
		C.move(target.node, C.int64_t(base+target.at), start(to), source.node, C.int64_t(sourceBase+source.at), start(from),
			C.int64_t(target.size))
		runtime.KeepAlive(target)
		runtime.KeepAlive(source)
	}
	return nil
}

func start(memory []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(memory)) }

// Span is a stretch of memory: Length bytes at a place.
type Span struct {
	At, Length int
}

// Spans calls yield with the places of the packed bytes [from, to), in their order, neighbours
// joined where they are found together, until yield returns false.
func (p *Program) Spans(from, to int, yield func(Span) bool) {
	var some [64]C.struct_ek_dgsp_span
	from, to = max(from, 0), min(to, p.size)
	for from < to {
		var count C.int64_t
		from = int(C.spans(p.node, C.int64_t(p.at), C.int64_t(from), C.int64_t(to), &some[0], C.int64_t(len(some)), &count))
		runtime.KeepAlive(p)
		for _, s := range some[:count] {
			if !yield(Span{int(s.at), int(s.length)}) {
				return
			}
		}
	}
}
