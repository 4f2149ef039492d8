package dgsp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeRefuses(t *testing.T) {
	five := []byte{wireVersion, 6, 0, 1} // a byte, and loops of two over it whose bounds add up to more than 2^63
	for i := range 5 {
		five = append(five, 1, 1, 2)
		five = binary.AppendVarint(five, 1<<61-2-int64(i))
	}
	five = append(five, 0)
	blowUp := []byte{wireVersion, 41, 0, 1} // sequences of sequences: 2^40 steps
	for range 40 {
		blowUp = append(blowUp, 3, 2, 0, 1, 10, 1)
	}
	blowUp = append(blowUp, 0)
	for _, c := range []struct {
		what string
		wire []byte
		say  string
	}{
		{"nothing", nil, "cut off"},
		{"another version", []byte{9, 0, 0}, "version 9"},
		{"cut off", []byte{wireVersion, 1, 0}, "entries"},
		{"a block without bytes", []byte{wireVersion, 1, 0, 0, 0}, "without bytes"},
		{"more than it says", []byte{wireVersion, 1, 0, 5, 0, 7}, "1 bytes too many"},
		{"refers to itself", []byte{wireVersion, 1, 1, 1, 2, 16, 0}, "not there"},
		{"refers too far back", []byte{wireVersion, 2, 0, 1, 1, 2, 2, 16, 0}, "not there"},
		{"an unknown kind", []byte{wireVersion, 1, 4, 1, 0}, "kind 4"},
		{"more places than bytes", []byte{wireVersion, 2, 0, 1, 2, 1, 200, 1, 2, 0}, "200 entries"},
		{"no places", []byte{wireVersion, 2, 0, 1, 2, 1, 0, 0}, "without bytes"},
		{"bounds that wrap around", five, "beyond what memory has"},
		{"too much memory", blowUp, "takes more than"},
	} {
		_, err := Decode(c.wire, 1<<20)
		assert.ErrorIs(t, err, ErrWire, c.what)
		assert.ErrorContains(t, err, c.say, c.what)
	}
	_, err := Decode(make([]byte, 100), 99)
	assert.ErrorIs(t, err, ErrWire)
}

// FuzzDecode: whatever is decoded touches nothing outside its bounds. Run with -asan it is also
// shown by the memory itself, which is as long as the bounds say.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(50) {
		p, err := Compile(drawShape(newSeeded(seed), 3).layout)
		require.NoError(f, err)
		f.Add(p.Wire())
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		p, err := Decode(wire, 1<<20)
		if err != nil {
			return
		}
		low, high := p.Bounds()
		size := p.Size()
		spans := 0
		p.Spans(0, size, func(s Span) bool {
			if s.Length <= 0 || s.At < low || s.At+s.Length > high {
				t.Fatalf("span %+v of a program with bounds [%d, %d)", s, low, high)
			}
			spans++
			return spans < 1000
		})
		if err := p.encode(); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(p.Wire(), 2<<20)
		if err != nil {
			t.Fatal(err)
		}
		if again.Size() != size {
			t.Fatalf("%d bytes become %d", size, again.Size())
		}
		if high-low > 1<<16 {
			return
		}
		memory := make([]byte, high-low)
		noise(memory, 1)
		packed, packedAgain := make([]byte, min(size, 1<<16)), make([]byte, min(size, 1<<16))
		from := size - len(packed)
		if err := p.Gather(packed, memory, -low, from); err != nil {
			t.Fatal(err)
		}
		if err := again.Gather(packedAgain, memory, -low, from); err != nil {
			t.Fatal(err)
		}
		if string(packed) != string(packedAgain) {
			t.Fatal("encoded anew it means other bytes")
		}
		if err := p.Scatter(memory, -low, packed, from); err != nil {
			t.Fatal(err)
		}
	})
}
