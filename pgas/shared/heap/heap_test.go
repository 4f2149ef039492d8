package heap

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type words []uint64

func (w words) Load(offset uint64) (uint64, error) { return w[offset/8], nil }
func (w words) Store(offset, value uint64) error   { w[offset/8] = value; return nil }

type part struct{ at, bytes uint64 }

// Random histories against a plain list: no two parts overlap, contents stay, and when all is freed the
// range is one part again.
func TestPartsNeverOverlap(t *testing.T) {
	full := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		length := uint64(3*Unit + r.IntN(20000))
		m := make(words, length/8)
		require.NoError(t, Format(m, length))
		var used []part
		for range 60 {
			if r.IntN(5) < 3 {
				bytes := uint64(r.IntN(1 + r.IntN(2000)))
				at, err := Allocate(m, bytes)
				if err != nil {
					require.ErrorIs(t, err, ErrFull, "seed %d", seed)
					require.Less(t, largestGap(used, length), bytes+2*Unit, "seed %d: there was room", seed)
					full++
					continue
				}
				require.Zero(t, at%Unit)
				require.LessOrEqual(t, at+bytes, length, "seed %d", seed)
				for _, p := range used {
					require.True(t, at+bytes <= p.at-Unit || p.at+p.bytes <= at-Unit, "seed %d: %v overlaps %d+%d", seed, p, at, bytes)
				}
				used = append(used, part{at, bytes})
				for w := at / 8; w < (at+bytes)/8; w++ {
					m[w] = at * w
				}
			} else if len(used) > 0 {
				i := r.IntN(len(used))
				p := used[i]
				for w := p.at / 8; w < (p.at+p.bytes)/8; w++ {
					require.Equal(t, p.at*w, m[w], "seed %d", seed)
				}
				require.NoError(t, Free(m, p.at), "seed %d", seed)
				require.ErrorIs(t, Free(m, p.at), ErrPart, "seed %d", seed)
				used = slices.Delete(used, i, i+1)
			}
		}
		for _, p := range used {
			require.NoError(t, Free(m, p.at))
		}
		at, err := Allocate(m, length-length%Unit-2*Unit)
		require.NoError(t, err, "seed %d: all of it is free again, in one part", seed)
		require.EqualValues(t, 2*Unit, at)
	}
	assert.Positive(t, full, "the heap was full at times")
}

// largestGap is how many bytes in a row no part takes, header included.
func largestGap(used []part, length uint64) uint64 {
	sorted := slices.Clone(used)
	slices.SortFunc(sorted, func(a, b part) int { return int(a.at) - int(b.at) })
	at, gap := uint64(first), uint64(0)
	for _, p := range sorted {
		gap = max(gap, p.at-Unit-at)
		at = p.at + (max(p.bytes, 1)+Unit-1)/Unit*Unit
	}
	return max(gap, length-length%Unit-at)
}

func TestWhatIsNoPartIsNotFreed(t *testing.T) {
	m := make(words, 1000)
	require.NoError(t, Format(m, 8000))
	at, err := Allocate(m, 100)
	require.NoError(t, err)
	for _, offset := range []uint64{0, 8, 64, at + 8, at + 64, at + 128} {
		assert.ErrorIs(t, Free(m, offset), ErrPart, "%d", offset)
	}
	require.NoError(t, Free(m, at))
	_, err = Allocate(m, 1<<63)
	assert.ErrorIs(t, err, ErrFull)
	assert.ErrorContains(t, Format(m, 100), "takes 192 at least")
}

// broken fails after some accesses.
type broken struct {
	words
	left int
}

var errBroken = errors.New("broken")

func (b *broken) Load(offset uint64) (uint64, error) {
	if b.left--; b.left < 0 {
		return 0, errBroken
	}
	return b.words.Load(offset)
}

func (b *broken) Store(offset, value uint64) error {
	if b.left--; b.left < 0 {
		return errBroken
	}
	return b.words.Store(offset, value)
}

func TestErrorsOfTheMemoryComeThrough(t *testing.T) {
	for left := range 40 {
		b := &broken{make(words, 1000), 1000}
		require.NoError(t, Format(b, 8000))
		b.left = left
		one, err := Allocate(b, 100)
		if err == nil {
			_, err = Allocate(b, 100)
		}
		if err == nil {
			err = Free(b, one)
		}
		if b.left < 0 {
			require.ErrorIs(t, err, errBroken, "after %d accesses", left)
		} else {
			require.NoError(t, err)
		}
	}
}
