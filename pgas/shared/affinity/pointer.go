package affinity

import "github.com/pkg/errors"

// Pointer is a pointer to shared: UPC's triple. Address is in bytes from where a thread's part of
// the object's memory begins, which is the same offset on all threads. The zero Pointer points at
// element 0; pointers say nothing of the object, nor of the type, of what they point at.
type Pointer struct {
	Thread  int
	Phase   int // elements
	Address int // bytes
}

// ThreadOf is upc_threadof.
func ThreadOf(p Pointer) int { return p.Thread }

// PhaseOf is upc_phaseof.
func PhaseOf(p Pointer) int { return p.Phase }

// AddrField is upc_addrfield.
func AddrField(p Pointer) int { return p.Address }

// ResetPhase is upc_resetphase: the same with phase 0, as if a block began there.
func ResetPhase(p Pointer) Pointer { return Pointer{p.Thread, 0, p.Address} }

// Type is what arithmetic needs of the type that a pointer points at: `shared [Block] T *`, with
// elements of Size bytes, on so many threads. All are as in Layout.
type Type struct {
	Threads, Block, Size int
}

// Type is that of pointers at the array's elements.
func (l Layout) Type() Type { return Type{l.Threads, l.Block, l.Size} }

// Pointer points at element i.
func (l Layout) Pointer(i int) Pointer {
	return Pointer{l.ThreadOf(i), l.PhaseOf(i), l.LocalOf(i) * l.Size}
}

// Cast makes a pointer of one type a pointer of another: the phase is 0 where block size or element
// size differ.
func Cast(p Pointer, from, to Type) Pointer {
	if from.Block != to.Block || from.Size != to.Size {
		return ResetPhase(p)
	}
	return p
}

// Add is p + i: i elements further in the order of the array, through phases, then threads, then
// blocks of a thread. i may be negative.
func (t Type) Add(p Pointer, i int) Pointer {
	if t.Block == Indefinite {
		return Pointer{p.Thread, 0, p.Address + i*t.Size}
	}
	blocks, phase := divide(p.Phase+i, t.Block)
	rounds, thread := divide(p.Thread+blocks, t.Threads)
	return Pointer{thread, phase, p.Address + (phase-p.Phase+rounds*t.Block)*t.Size}
}

// Sub is p - q: the i with q + i == p. The error says that there is none: they don't point into one
// array of this type.
func (t Type) Sub(p, q Pointer) (int, error) {
	if t.Block == Indefinite {
		i, rest := divide(p.Address-q.Address, t.Size)
		if rest != 0 || p.Thread != q.Thread {
			return 0, t.apart(p, q)
		}
		return i, nil
	}
	rounds, rest := divide((p.Address-p.Phase*t.Size)-(q.Address-q.Phase*t.Size), t.Block*t.Size)
	if rest != 0 {
		return 0, t.apart(p, q)
	}
	return (rounds*t.Threads+p.Thread-q.Thread)*t.Block + p.Phase - q.Phase, nil
}

func (t Type) apart(p, q Pointer) error {
	return errors.Errorf("the pointers {thread %d, phase %d, address %d} and {thread %d, phase %d, address %d} do not point into one array of blocks "+
		"of %d elements of %d bytes", p.Thread, p.Phase, p.Address, q.Thread, q.Phase, q.Address, t.Block, t.Size)
}

// divide rounds down: the rest is never negative.
func divide(a, b int) (quotient, rest int) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
