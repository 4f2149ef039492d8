package affinity

import "math/bits"

// Locator finds elements of one layout without dividing: what an access needs.
type Locator struct {
	block, threads divisor
	length, count  int // of a block, in elements; of threads
}

// Locator is made once for many elements.
func (l Layout) Locator() Locator {
	block := l.Block
	if block == Indefinite {
		block = 1 << 62 // more elements than a layout has
	}
	return Locator{divisorBy(uint64(block)), divisorBy(uint64(l.Threads)), block, l.Threads}
}

// Locate is ThreadOf and LocalOf. Both divisions are written out, for it to be short enough to become part of who
// calls it.
func (l *Locator) Locate(i int) (thread, local int) {
	block, _ := bits.Mul64(l.block.fraction, uint64(i)<<1)
	block >>= l.block.shift & 63
	round, _ := bits.Mul64(l.threads.fraction, block<<1)
	round >>= l.threads.shift & 63
	return int(block) - int(round)*l.count, i - int(block-round)*l.length
}

// divisor divides by multiplying with a fraction that is a little larger than one by the divisor: so little that no
// quotient of a number below 1<<63 becomes larger. (T. Granlund, P. L. Montgomery: Division by invariant integers
// using multiplication, PLDI 1994, theorem 4.2.)
type divisor struct {
	fraction uint64 // 1<<(63+shift) by the divisor, rounded up
	shift    uint8
}

// divisorBy takes from 1 to 1<<63.
func divisorBy(n uint64) divisor {
	shift := uint8(bits.Len64(n - 1))
	if shift == 0 {
		return divisor{1 << 63, 0}
	}
	fraction, rest := bits.Div64(1<<(shift-1), 0, n)
	if rest > 0 {
		fraction++
	}
	return divisor{fraction, shift}
}
