package dgsp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fromRapid draws from rapid.
type fromRapid struct{ *rapid.T }

func (r fromRapid) between(low, high int) int { return rapid.IntRange(low, high).Draw(r.T, "number") }

func fill(d drawer, memory []byte) {
	for i := range memory {
		memory[i] = byte(d.between(0, 255))
	}
}

// noise fills a memory quickly.
func noise(memory []byte, salt int) {
	x := uint32(salt)*2654435761 + 1
	for i := range memory {
		x = x*1664525 + 1013904223
		memory[i] = byte(x >> 24)
	}
}

type failer interface {
	require.TestingT
	Helper()
}

// checkProgram compares all that a program does with its list of places.
func checkProgram(t failer, d drawer, s shape, p *Program) {
	t.Helper()
	require.Equal(t, len(s.places), p.Size())
	low, high := p.Bounds()
	wantLow, wantHigh := s.reach()
	require.Equal(t, []int{wantLow, wantHigh}, []int{low, high})

	memory, target, wanted := make([]byte, high-low), make([]byte, high-low), make([]byte, high-low)
	noise(memory, 1)
	noise(target, 2)
	copy(wanted, target)
	want := make([]byte, p.Size())
	for i, place := range s.places {
		want[i] = memory[place-low]
	}
	for i, place := range s.places {
		wanted[place-low] = want[i]
	}
	var places []int
	for from := 0; from < p.Size(); {
		to := min(p.Size(), from+d.between(1, 400))
		packed := make([]byte, to-from)
		require.NoError(t, p.Gather(packed, memory, -low, from))
		require.Equal(t, want[from:to], packed)
		require.NoError(t, p.Scatter(target, -low, packed, from))
		p.Spans(from, to, func(s Span) bool {
			for i := range s.Length {
				places = append(places, s.At+i)
			}
			return true
		})
		from = to
	}
	require.Equal(t, wanted, target)
	require.Equal(t, s.places, places)
}

func TestProgramsAreTheirLayouts(t *testing.T) {
	for seed := range uint64(20000) {
		d := newSeeded(seed)
		s := drawShape(d, d.between(0, 3))
		p, err := Compile(s.layout)
		require.NoError(t, err, "seed %d", seed)
		checkProgram(seededTest{t, seed}, d, s, p)
		decoded, err := Decode(p.Wire(), MaxMemory)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, p.Hash(), decoded.Hash())
		checkProgram(seededTest{t, seed}, d, s, decoded)
		require.NoError(t, decoded.encode())
		require.Equal(t, p.Wire(), decoded.Wire(), "seed %d: what is decoded is made anew in the same form", seed)
	}
}

// seededTest says the seed with each failure.
type seededTest struct {
	*testing.T
	seed uint64
}

func (t seededTest) FailNow() {
	t.Logf("seed %d", t.seed)
	t.T.FailNow()
}

func TestProgramsShrunk(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := fromRapid{r}
		s := drawShape(d, d.between(0, 2))
		p, err := Compile(s.layout)
		require.NoError(r, err)
		checkProgram(r, d, s, p)
	})
}

func TestMoveBetweenLayouts(t *testing.T) {
	for seed := range uint64(5000) {
		d := newSeeded(seed)
		from, to := drawShape(d, 2), drawShape(d, 2)
		if len(from.places) == 0 || len(to.places) == 0 {
			continue
		}
		// The longer one is cut where the shorter one ends.
		if len(from.places) > len(to.places) {
			from, to = to, from
		}
		to = shape{placedAt(to.places[:len(from.places)]), to.places[:len(from.places)]}
		source, err := Compile(from.layout)
		require.NoError(t, err)
		target, err := Compile(to.layout)
		require.NoError(t, err)
		low, high := source.Bounds()
		memory := make([]byte, high-low)
		noise(memory, 1)
		targetLow, targetHigh := target.Bounds()
		moved, want := make([]byte, targetHigh-targetLow), make([]byte, targetHigh-targetLow)
		require.NoError(t, Move(target, moved, -targetLow, source, memory, -low), "seed %d", seed)
		for i, place := range to.places {
			want[place-targetLow] = memory[from.places[i]-low]
		}
		require.Equal(t, want, moved, "seed %d", seed)
	}
}

// More than a tile of bytes, neither side in one piece.
func TestMoveInTiles(t *testing.T) {
	source, err := Compile(Strided(5000, 8, 24))
	require.NoError(t, err)
	target, err := Compile(Strided(10000, 4, 12))
	require.NoError(t, err)
	memory, moved, want := make([]byte, 5000*24), make([]byte, 10000*12), make([]byte, 10000*12)
	noise(memory, 3)
	require.NoError(t, Move(target, moved, 0, source, memory, 0))
	for i := range 40000 {
		want[i/4*12+i%4] = memory[i/8*24+i%8]
	}
	require.Equal(t, want, moved)
}

func placedAt(places []int) Layout {
	length := make([]int, len(places))
	for i := range length {
		length[i] = 1
	}
	return Indexed(places, length)
}

// A regular layout's program does not grow with its number of blocks.
func TestSizeOfRegularProgramsIsConstant(t *testing.T) {
	nested := func(n int) Layout { return Repeat(Repeat(Strided(n, 8, 16), n, 32*n), n, 64*n*n) }
	mixed := func(n int) Layout { return Repeat(Struct(Field{0, Block(4)}, Field{8, Block(8)}), n, 24) }
	for _, make := range []func(int) Layout{nested, mixed} {
		var wire, memory []int
		for _, n := range []int{100, 1000, 10000} {
			p, err := Compile(make(n))
			require.NoError(t, err)
			wire = append(wire, len(p.Wire()))
			memory = append(memory, p.memory)
		}
		assert.Equal(t, memory[0], memory[2])
		assert.LessOrEqual(t, wire[2], 40)
		assert.LessOrEqual(t, wire[2]-wire[0], 10, "only numbers become longer")
	}
}

func TestLayoutsThatCanNotBe(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		say    string
	}{
		{Block(-1), "a block of -1 bytes"},
		{Strided(-2, 8, 16), "repeated -2 times"},
		{Indexed([]int{1, 2}, []int{3}), "2 places for 1 blocks"},
		{Indexed([]int{1, 2}, []int{3, -1}), "block 1 of an indexed layout has -1 bytes"},
		{Struct(Field{math.MaxInt64, Block(1)}), "field 0 of a struct lies 9223372036854775807 bytes away"},
		{Strided(math.MaxInt64, 8, 16), "beyond what memory has"},
		{Block(math.MaxInt64), "beyond what memory has"},
		{Repeat(Strided(2, 1, math.MaxInt64/4), 2, math.MaxInt64/4-100), "beyond what memory has"},
		{IndexedOf(Block(1), []int{math.MinInt64, 0, 5}), "beyond what memory has"},
		{nestedDeep(32), "nested 65 deep"},
	} {
		_, err := Compile(c.layout)
		assert.ErrorContains(t, err, c.say)
	}
	_, err := Compile(nestedDeep(31))
	assert.NoError(t, err)
}

// nestedDeep is twice as deep, so that no two levels can become one, and a block.
func nestedDeep(twice int) Layout {
	l := Block(1)
	for i := range twice {
		l = Repeat(Struct(Field{0, l}, Field{1000 * (i + 1), Block(1)}), 2, 100000*(i+1))
	}
	return l
}

func TestProgramsStayInTheirMemory(t *testing.T) {
	p, err := Compile(Struct(Field{-8, Block(4)}, Field{16, Block(8)}))
	require.NoError(t, err)
	memory := make([]byte, 32)
	packed := make([]byte, 12)
	require.NoError(t, p.Gather(packed, memory, 8, 0))
	require.NoError(t, p.Scatter(memory, 8, packed, 0))
	for _, base := range []int{7, 9, -1, 33, math.MinInt64, math.MaxInt64} {
		assert.ErrorContains(t, p.Gather(packed, memory, base, 0), "of a memory of 32 bytes")
		assert.ErrorContains(t, p.Scatter(memory, base, packed, 0), "of a memory of 32 bytes")
	}
	assert.ErrorContains(t, p.Gather(packed, memory, 8, 1), "bytes 1 to 13 of a program that has 12")
	assert.ErrorContains(t, p.Gather(packed, memory, 8, -1), "bytes -1 to 11")
	other, err := Compile(Block(11))
	require.NoError(t, err)
	assert.ErrorContains(t, Move(other, memory, 0, p, memory, 8), "moving 12 bytes to a layout of 11")
}
