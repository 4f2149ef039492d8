package epoch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/wire"
)

// Packets made by hand, as a right partner never sends them: what stands at each limit of the protocol, one way and the
// other.

// handmade is one task's endpoint, and what makes packets from the other one for it.
type handmade struct {
	*testing.T
	task     *task
	endpoint *Endpoint
}

func oneByHand(t *testing.T, self int, config func(c *Config)) *handmade {
	w := two(t, config)
	return &handmade{t, w.tasks[self], w.tasks[self].endpoint}
}

// gets has the endpoint receive a packet of the other task's life, and says what becomes of it.
func (h *handmade) gets(kind wire.Type, epoch uint64, body []byte) wire.Reason {
	self := h.endpoint.Self
	return h.endpoint.receive(0, &wire.Header{Type: kind, Job: 7, Source: 1 - self, Target: self, SourceLife: wire.Life(2 - self),
		TargetLife: wire.Life(1 + self), Epoch: epoch}, body)
}

func (h *handmade) raise(epoch uint64) wire.Reason {
	return h.gets(wire.TypeRaise, epoch, (&wire.Raise{}).Append(nil))
}

// add adds 1 to the task's first word.
func (h *handmade) add(epoch, number, sequence uint64) wire.Reason {
	a := wire.Atomic{Order: wire.Order{Number: number, Sequence: sequence}, Window: opened, Op: wire.Add, Width: 8,
		Offset: h.task.offset(0), Operand: 1}
	return h.gets(wire.TypeAtomic, epoch, a.Append(nil))
}

// sends encodes all that the endpoint has to send.
func (h *handmade) sends() (packets int) {
	for {
		if _, _, _, more := h.endpoint.Next(0, h.task.buffer[:0]); !more {
			return packets
		}
		packets++
	}
}

func TestATargetTakesNothingBeyondItsEpochAndItsWindows(t *testing.T) {
	const operations, packets = 4, 32
	h := oneByHand(t, 1, func(c *Config) { c.Operations, c.Packets = operations, packets })
	word := h.task.offset(0)
	before := getWord(h.task.memory, word)
	require.Equal(t, wire.Stale, h.add(1, 0, 0), "no epoch was raised yet")
	require.Equal(t, wire.OK, h.raise(3))
	require.Equal(t, wire.Stale, h.add(4, 0, 0), "of an epoch to come")
	require.Equal(t, wire.Stale, h.raise(2), "a late one")
	require.Equal(t, wire.Stale, h.add(2, 0, 0), "of an epoch before")
	require.Equal(t, wire.Beyond, h.add(3, 0, operations))
	require.Equal(t, wire.Beyond, h.add(3, packets, 0))
	require.Equal(t, before, getWord(h.task.memory, word))
	require.Zero(t, h.endpoint.Counters().Executed)
	require.Equal(t, wire.OK, h.add(3, packets-1, operations-1))
	require.Equal(t, before+1, getWord(h.task.memory, word))
	require.EqualValues(t, 1, h.endpoint.Counters().Executed)
}

func TestPartsOfAPutAgreeOnTheirCount(t *testing.T) {
	h := oneByHand(t, 1, nil)
	require.Equal(t, wire.OK, h.raise(1))
	part := func(number uint64, count uint32) wire.Reason {
		return h.gets(wire.TypePut, 1, (&wire.PutPart{Order: wire.Order{Number: number}, At: 8 * number, Data: make([]byte, 8),
			Extent: wire.Extent{Window: opened, Count: count, Length: 32}}).Append(nil))
	}
	require.Equal(t, wire.OK, part(0, 3))
	require.Equal(t, wire.Malformed, part(1, 2), "else it were done with two")
	require.Equal(t, wire.OK, part(1, 3))
	require.Equal(t, wire.OK, part(2, 3))
	require.Equal(t, done, h.endpoint.pairs[0].target.records.at(0).state)
	require.EqualValues(t, 3, h.endpoint.Counters().Executed)
}

func TestATargetOwesNoMoreDataThanItsWindow(t *testing.T) {
	const packets = 32
	h := oneByHand(t, 1, func(c *Config) { c.Packets = packets })
	require.Equal(t, wire.OK, h.raise(1))
	ask := func(number uint64, run uint32) wire.Reason {
		return h.gets(wire.TypeGet, 1, (&wire.GetPart{Order: wire.Order{Number: number}, At: 8 * number, Stride: 8, Run: run,
			Extent: wire.Extent{Window: opened, Count: 64, Length: 512}}).Append(nil))
	}
	require.Equal(t, wire.OK, ask(0, wire.MaxRun))
	require.Equal(t, wire.OK, ask(wire.MaxRun, wire.MaxRun))
	require.Equal(t, wire.Overload, ask(packets, 1))
	require.Equal(t, packets+1, h.sends(), "the data, and a confirmation")
	require.EqualValues(t, packets, h.endpoint.Counters().Executed)
	require.Equal(t, wire.OK, ask(packets, 1), "there is room again")
}

func TestAReplyIsNoLongerThanConfigured(t *testing.T) {
	for reply, want := range map[int]wire.Reason{8: wire.OK, 7: wire.Length} { // the handler replies to odd numbers by 8 bytes
		w := two(t, func(c *Config) { c.Reply = reply })
		require.Equal(t, want, w.does(Command{Op: wire.Message, Handler: runs, Data: []byte{1, 0, 0, 0, 0, 0, 0, 0}}).Reason, "%d", reply)
	}
}

// confirmed is an initiator whose first epoch was confirmed, with commands of which all packets have been sent.
func confirmed(t *testing.T, config func(c *Config), commands ...Command) *handmade {
	h := oneByHand(t, 0, config)
	for _, c := range commands {
		c.Peer, c.Window = 1, opened
		require.NoError(t, h.endpoint.Submit(0, c))
	}
	require.Equal(t, 1, h.sends(), "it raises the epoch")
	require.Equal(t, wire.OK, h.gets(wire.TypeConfirm, 1, wire.AppendConfirm(nil, 0, nil)))
	h.sends()
	return h
}

func TestAnInitiatorTakesNothingButWhatItAskedFor(t *testing.T) {
	into := make([]byte, 8)
	h := confirmed(t, nil, Command{Op: wire.Get, Data: into})
	data := func(bytes int) []byte {
		return append((&wire.DataPart{}).AppendData(nil), make([]byte, bytes)...)
	}
	into[0] = 1
	require.Equal(t, wire.Malformed, h.gets(wire.TypeData, 1, data(7)), "too little")
	require.Equal(t, wire.Malformed, h.gets(wire.TypeData, 1, data(9)), "too much")
	for _, life := range []wire.Life{1, 3} {
		require.Equal(t, wire.EarlierLife, h.endpoint.receive(0, &wire.Header{Type: wire.TypeData, Job: 7, Source: 1, SourceLife: life,
			TargetLife: 1, Epoch: 1}, data(8)), "of another life of the target")
	}
	require.EqualValues(t, 1, into[0])
	require.Equal(t, wire.OK, h.gets(wire.TypeData, 1, data(8)))
	require.Zero(t, into[0])
}

func TestAPacketIsLostWhenThreeLaterOnesHaveArrived(t *testing.T) {
	put := Command{Op: wire.Put, Data: make([]byte, 8)}
	h := confirmed(t, nil, put, put, put, put)
	ack := func(marks uint64) {
		require.Equal(t, wire.OK, h.gets(wire.TypeAck, 1, wire.AppendAck(nil, 0, []uint64{marks}, 0, nil)))
	}
	ack(0b110)
	require.Zero(t, h.sends())
	ack(0b1110)
	require.Equal(t, 1, h.sends())
	require.EqualValues(t, 1, h.endpoint.Counters().Resent)
}

// Epochs that ended with nothing are forgotten with the operations that failed: the next one has its whole time again
// when the target comes back.
func TestAFailureEndsWhatWasInVain(t *testing.T) {
	h := oneByHand(t, 0, func(c *Config) { c.Silence, c.Repairs = silence, 0 })
	submit := func(now time.Duration) {
		require.NoError(t, h.endpoint.Submit(now, Command{Op: wire.Add, Width: 8, Peer: 1, Window: opened}))
		h.sends()
	}
	submit(0)
	i := h.endpoint.pairs[1].initiator
	i.vain = 5
	h.endpoint.Advance(silence)
	require.Equal(t, wire.Silent, h.endpoint.Notifications(nil)[0].Reason)
	submit(silence)
	now := 2*silence - 1
	require.Equal(t, wire.OK, h.endpoint.receive(now, &wire.Header{Type: wire.TypeConfirm, Job: 7, Source: 1, SourceLife: 2,
		TargetLife: 1, Epoch: i.epoch}, wire.AppendConfirm(nil, 1, nil)))
	require.Equal(t, now+silence, i.silentAt)
}
