package epoch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
)

// guarded is a memory that trusts nobody, and remembers whether it was asked for what it must not be.
type guarded struct {
	t     *testing.T
	bytes [64]byte
}

func (g *guarded) Check(w wire.Window, _ wire.Op, offset, length uint64) error {
	if w != 1 {
		return wire.NoWindow
	}
	if offset > uint64(len(g.bytes)) || length > uint64(len(g.bytes))-offset {
		return wire.Range
	}
	return nil
}

func (g *guarded) Write(w wire.Window, offset uint64, data []byte) error {
	require.NoError(g.t, g.Check(w, wire.Put, offset, uint64(len(data))), "a part of a PUT reaches beyond what was checked")
	copy(g.bytes[offset:], data)
	return nil
}

func (g *guarded) Read(w wire.Window, offset uint64, into []byte) error {
	require.NoError(g.t, g.Check(w, wire.Get, offset, uint64(len(into))), "a part of a GET reaches beyond what was checked")
	copy(into, g.bytes[offset:])
	return nil
}

func (g *guarded) Atomic(w wire.Window, offset uint64, op wire.Op, width int, operand, compare uint64) (uint64, error) {
	return 0, g.Check(w, op, offset, uint64(width))
}

// A task of the job that has gone mad: its tags are right, its packets are anything. Nothing outside the windows is
// touched, no state outgrows its bounds, and nothing crashes, as a target or as an initiator.
func FuzzReceive(f *testing.F) {
	order := wire.Order{Sequence: 1}
	put := (&wire.PutPart{Order: order, Extent: wire.Extent{Window: 1, Count: 2, Length: 16}, Data: make([]byte, 8)}).Append(nil)
	get := (&wire.GetPart{Order: order, Extent: wire.Extent{Window: 1, Count: 2, Length: 16}, Stride: 8, Run: 2}).Append(nil)
	seed := func(packets ...[]byte) (all []byte) {
		for _, p := range packets {
			all = append(append(all, byte(len(p))), p...)
		}
		return all
	}
	packet := func(t wire.Type, epoch byte, body []byte) []byte { return append([]byte{byte(t), epoch}, body...) }
	raise := packet(wire.TypeRaise, 1, make([]byte, 8))
	f.Add(seed(raise, packet(wire.TypePut, 1, put), packet(wire.TypeGet, 1, get)))
	f.Add(seed(raise, packet(wire.TypeAtomic, 1, (&wire.Atomic{Order: order, Window: 1, Op: wire.Add, Width: 8}).Append(nil)),
		packet(wire.TypeMessage, 1, (&wire.ActiveMessage{Order: order, Handler: 1}).Append(nil))))
	f.Add(seed(packet(wire.TypeConfirm, 1, wire.AppendConfirm(nil, 0, []uint64{7})), packet(wire.TypeAck, 1, wire.AppendAck(nil, 1, []uint64{7})),
		packet(wire.TypeAnswer, 1, (&wire.Answer{Number: 1, Sequence: 1}).Append(nil)), packet(wire.TypeData, 1, make([]byte, 30))))
	f.Fuzz(func(t *testing.T, packets []byte) {
		memory := &guarded{t: t}
		c := Default()
		c.Life, c.Operations, c.Packets = 1, 4, 32
		c.MTU = func(fabric.Task) int { return wire.Overhead + 32 }
		c.Memory = func(fabric.Task, wire.Key) Memory { return memory }
		e, err := New(c)
		require.NoError(t, err)
		for token, op := range []wire.Op{wire.Put, wire.Get, wire.Add} {
			require.NoError(t, e.Submit(0, Command{Op: op, Peer: 1, Width: 8, Data: make([]byte, 100), Token: uint64(token)}))
		}
		notified := map[uint64]bool{}
		now := time.Duration(0)
		for len(packets) > 2 {
			length := min(int(packets[0]), len(packets)-1)
			p := packets[1 : 1+length]
			packets = packets[1+length:]
			if len(p) < 2 {
				now += 10 * time.Millisecond
				e.Advance(now)
				continue
			}
			h := wire.Header{Type: wire.Type(p[0]), Source: 1, SourceLife: 2, TargetLife: 1, Epoch: uint64(p[1])}
			e.Receive(now, &h, p[2:])
			for {
				sent, _, _, ok := e.Next(now, make([]byte, 0, wire.Overhead+32))
				if !ok {
					break
				}
				require.LessOrEqual(t, len(sent)+wire.TagLength, wire.Overhead+32)
			}
			for _, n := range e.Notifications(nil) {
				require.False(t, notified[n.Token], "a second notification")
				notified[n.Token] = true
			}
			if g := e.pairs[1].target; g != nil {
				require.LessOrEqual(t, g.records.len(), c.Operations)
				require.LessOrEqual(t, len(g.numbers.words), 2)
				require.LessOrEqual(t, g.data, c.Packets)
			}
		}
	})
}
