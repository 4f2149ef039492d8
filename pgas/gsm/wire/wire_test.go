package wire

import (
	"math"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/fabric"
)

// encode is the packet's bytes with an empty tag, from what decode found: the inverse of decode, or it finds fault.
func decodeAndEncode(packet []byte) (again []byte, reason Reason) {
	var h Header
	rest, reason := h.Decode(packet)
	if reason != OK {
		return nil, reason
	}
	body := rest[:len(rest)-TagLength]
	b, ok := h.Append(nil), false
	switch h.Type {
	case TypeRaise:
		var p Raise
		ok = p.Decode(body)
		b = p.Append(b)
	case TypeConfirm:
		var p Confirm
		ok = p.Decode(body)
		b = AppendConfirm(b, p.Floor, words(p.Done))
	case TypeAck:
		var p Ack
		ok = p.Decode(body)
		b = AppendAck(b, p.Base, words(p.Received))
	case TypePut:
		var p PutPart
		ok = p.Decode(body)
		b = p.Append(b)
	case TypeGet:
		var p GetPart
		ok = p.Decode(body)
		b = p.Append(b)
	case TypeData:
		var p DataPart
		ok = p.Decode(body)
		b = append(p.AppendData(b), p.Data...)
	case TypeAtomic:
		var p Atomic
		ok = p.Decode(body)
		b = p.Append(b)
	case TypeMessage:
		var p ActiveMessage
		ok = p.Decode(body)
		b = p.Append(b)
	case TypeAnswer:
		var p Answer
		ok = p.Decode(body)
		b = p.Append(b)
	}
	if !ok {
		return nil, Malformed
	}
	return append(b, rest[len(rest)-TagLength:]...), OK
}

func words(m Bitmap) []uint64 {
	var w []uint64
	for i := 0; i < m.Len()/64; i++ {
		w = append(w, m.Word(i))
	}
	return w
}

// samples has a packet of every type.
func samples() [][]byte {
	order := Order{Number: 7, Sequence: 5, Floor: 3}
	extent := Extent{Window: 9, Count: 2, Offset: 4096, Length: 100}
	bodies := map[Type][]byte{
		TypeRaise:   (&Raise{Floor: 3}).Append(nil),
		TypeConfirm: AppendConfirm(nil, 3, []uint64{5}),
		TypePut:     (&PutPart{Order: order, Extent: extent, At: 90, Handler: 1, Data: make([]byte, 10)}).Append(nil),
		TypeGet:     (&GetPart{Order: order, Extent: extent, At: 0, Stride: 50, Run: 2}).Append(nil),
		TypeData:    append((&DataPart{Number: 7, Sequence: 5, At: 50}).AppendData(nil), 1, 2, 3),
		TypeAtomic:  (&Atomic{Order: order, Window: 9, Op: FetchAndAdd, Width: 8, Offset: 64, Operand: 1}).Append(nil),
		TypeMessage: (&ActiveMessage{Order: order, Handler: 4, Data: []byte("hi")}).Append(nil),
		TypeAnswer:  (&Answer{Number: 7, Sequence: 5, Value: 41, Data: []byte("ho")}).Append(nil),
		TypeAck:     AppendAck(nil, 6, []uint64{1, 1 << 63}),
	}
	var packets [][]byte
	for t := TypeRaise; t < types; t++ {
		h := Header{Type: t, Job: 1, Source: 2, Target: 3, SourceLife: 4, TargetLife: 5, Counter: 6, Epoch: 7}
		packets = append(packets, append(append(h.Append(nil), bodies[t]...), make([]byte, TagLength)...))
	}
	return packets
}

func TestEveryPacketDecodesToWhatWasEncoded(t *testing.T) {
	for _, packet := range samples() {
		again, reason := decodeAndEncode(packet)
		assert.Equal(t, OK, reason, Type(packet[1]))
		assert.Equal(t, packet, again, Type(packet[1]))
	}
}

// What is cut off a packet of fixed length, or all of a body, is missed by the decoder alone; the tag finds the rest.
func TestNoPacketDecodesWithoutItsBody(t *testing.T) {
	for _, packet := range samples() {
		for n := range HeaderLength + TagLength + 8 {
			_, reason := decodeAndEncode(packet[:n])
			assert.NotEqual(t, OK, reason, "%v cut to %d bytes", Type(packet[1]), n)
		}
	}
}

func TestHeaderComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{
			Type: rapid.SampledFrom([]Type{TypeRaise, TypePut, TypeAck}).Draw(t, "type"), Key: Key(rapid.Uint16().Draw(t, "key")),
			Job: rapid.Uint32().Draw(t, "job"), Source: fabric.Task(rapid.Uint32().Draw(t, "source")),
			Target:     fabric.Task(rapid.Uint32().Draw(t, "target")),
			SourceLife: Life(rapid.Uint32Min(1).Draw(t, "life")), TargetLife: Life(rapid.Uint32Min(1).Draw(t, "life of target")),
			Counter: rapid.Uint64().Draw(t, "counter"), Epoch: rapid.Uint64Min(1).Draw(t, "epoch"),
		}
		packet := append(h.Append(nil), make([]byte, TagLength)...)
		var back Header
		_, reason := back.Decode(packet)
		require.Equal(t, OK, reason)
		require.Equal(t, h, back)
		SetCounter(packet, 99)
		_, _ = back.Decode(packet)
		h.Counter = 99
		require.Equal(t, h, back)
	})
}

func TestHeadersAreRefused(t *testing.T) {
	packet := samples()[1]
	for what, change := range map[string]struct {
		at     int
		value  byte
		reason Reason
	}{
		"version":                  {0, 2, Version},
		"type 0":                   {1, 0, UnknownType},
		"type too high":            {1, byte(types), UnknownType},
		"no life of source":        {16, 0, Malformed},
		"no life of target":        {20, 0, Malformed},
		"epoch 0, which is before": {32, 0, Malformed},
	} {
		changed := append([]byte(nil), packet...)
		changed[change.at] = change.value
		var h Header
		_, reason := h.Decode(changed)
		assert.Equal(t, change.reason, reason, what)
	}
}

func TestBodiesAreRefused(t *testing.T) {
	order := Order{Sequence: 5, Floor: 5}
	extent := Extent{Count: 3, Offset: 8, Length: 100}
	good := PutPart{Order: order, Extent: extent, At: 90, Data: make([]byte, 10)}
	put := func(change func(p *PutPart)) bool {
		p := good
		change(&p)
		return new(PutPart).Decode(p.Append(nil))
	}
	assert.True(t, put(func(*PutPart) {}))
	assert.False(t, put(func(p *PutPart) { p.Floor = 6 }), "an operation below its own floor")
	assert.False(t, put(func(p *PutPart) { p.Offset = math.MaxUint64 - 99 }), "around the end of addresses")
	assert.False(t, put(func(p *PutPart) { p.At = 91 }), "data beyond the operation")
	assert.False(t, put(func(p *PutPart) { p.At = math.MaxUint64 }), "a place beyond the operation")
	assert.False(t, put(func(p *PutPart) { p.Data = nil }), "no data")
	assert.False(t, put(func(p *PutPart) { p.Count = 0 }), "no packets")
	assert.False(t, put(func(p *PutPart) { p.Count = 101 }), "more packets than bytes")
	assert.True(t, put(func(p *PutPart) { p.Length, p.Count, p.At, p.Data = 0, 1, 0, nil }), "nothing at all")

	get := func(change func(g *GetPart)) bool {
		g := GetPart{Order: order, Extent: extent, At: 40, Stride: 20, Run: 3}
		change(&g)
		return new(GetPart).Decode(g.Append(nil))
	}
	assert.True(t, get(func(*GetPart) {}))
	assert.False(t, get(func(g *GetPart) { g.Run = 4 }), "a packet beyond the operation")
	assert.False(t, get(func(g *GetPart) { g.Run = 0 }), "no packets")
	assert.False(t, get(func(g *GetPart) { g.Stride, g.Run = 1, MaxRun+1 }), "too many packets")
	assert.False(t, get(func(g *GetPart) { g.Stride = 0 }), "packets without data")
	assert.False(t, get(func(g *GetPart) { g.At = 100 }), "from the end on")
	assert.False(t, get(func(g *GetPart) { g.Number = math.MaxUint64 }), "numbers that roll over")
	assert.True(t, get(func(g *GetPart) { g.Length, g.Count, g.At, g.Run = 0, 1, 0, 1 }), "nothing at all")

	atomic := func(change func(a *Atomic)) bool {
		a := Atomic{Order: order, Op: Add, Width: 4}
		change(&a)
		return new(Atomic).Decode(a.Append(nil))
	}
	assert.True(t, atomic(func(*Atomic) {}))
	assert.False(t, atomic(func(a *Atomic) { a.Width = 2 }), "a width that there is none of")
	for _, op := range []Op{0, Put, Get, Message, ops} {
		assert.False(t, atomic(func(a *Atomic) { a.Op = op }), "%v", op)
	}
	assert.False(t, new(ActiveMessage).Decode((&ActiveMessage{Order: order}).Append(nil)), "no handler")
	assert.False(t, new(Answer).Decode((&Answer{Reason: Stale}).Append(nil)), "a reason that is no refusal")
	assert.False(t, new(Ack).Decode(AppendAck(nil, 0, make([]uint64, MaxWords+1))), "too many marks")
	assert.False(t, new(Confirm).Decode(make([]byte, 15)), "half a word")
}

func TestRunsOfAGetCoverItOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := GetPart{Extent: Extent{Count: 1, Length: rapid.Uint64Range(1, 1000).Draw(t, "length")}, Stride: rapid.Uint32Range(1, 300).Draw(t, "stride")}
		covered := uint64(0)
		for g.At = 0; g.At < g.Length; g.At += uint64(g.Stride) * uint64(g.Run) {
			most := (g.Length - g.At + uint64(g.Stride) - 1) / uint64(g.Stride)
			g.Run = uint32(min(most, uint64(rapid.IntRange(1, MaxRun).Draw(t, "run"))))
			require.True(t, new(GetPart).Decode(g.Append(nil)))
			for i := range g.Run {
				at, length := g.Part(i)
				require.Equal(t, covered, at)
				require.Positive(t, length)
				covered += length
			}
		}
		require.Equal(t, g.Length, covered)
	})
}

func TestOperationsOnWords(t *testing.T) {
	const word, all32 = uint64(0x11223344_55667788), uint64(math.MaxUint32)
	for op, want := range map[Op]uint64{
		Add: word + 3, FetchAndAdd: word + 3, And: word & 3, FetchAndAnd: word & 3, Or: word | 3, FetchAndOr: word | 3,
		Xor: word ^ 3, FetchAndXor: word ^ 3, Swap: 3, CompareAndSwap: 3, Put: word,
	} {
		assert.Equal(t, want, op.Apply(8, word, 3, word), "%v", op)
		assert.Equal(t, want&all32, op.Apply(4, word&all32, 3, word), "%v", op)
	}
	assert.Equal(t, word, CompareAndSwap.Apply(8, word, 3, word+1))
	assert.Zero(t, Add.Apply(4, all32, 1, 0), "32 bits roll over")
	for op := Op(0); op < ops+2; op++ {
		assert.NotEmpty(t, op.String())
	}
}

func TestReasonsTravelInErrors(t *testing.T) {
	for r := range reasons + 1 {
		assert.NotEmpty(t, r.Error(), "reason %d", r)
	}
	assert.Equal(t, OK, ReasonOf(nil))
	assert.Equal(t, Range, ReasonOf(errors.Wrap(Range, "PUT")))
	assert.Equal(t, Fault, ReasonOf(errors.New("something")))
	assert.Equal(t, Fault, ReasonOf(Stale), "a target does not answer with this")
}

// Whatever bytes arrive, the decoder neither panics nor takes what it would not write itself.
func FuzzDecode(f *testing.F) {
	for _, packet := range samples() {
		f.Add(packet)
		f.Add(packet[:len(packet)-1])
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		again, reason := decodeAndEncode(packet)
		if reason == OK {
			require.Equal(t, packet, again)
		}
	})
}
