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
	return h.getsAt(0, kind, epoch, body)
}

func (h *handmade) getsAt(now time.Duration, kind wire.Type, epoch uint64, body []byte) wire.Reason {
	self := h.endpoint.Self
	return h.endpoint.receive(now, &wire.Header{Type: kind, Job: 7, Source: 1 - self, Target: self, SourceLife: wire.Life(2 - self),
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
func (h *handmade) sends() (packets int) { return h.sendsAt(0) }

func (h *handmade) sendsAt(now time.Duration) (packets int) {
	for {
		if _, _, _, more := h.endpoint.Next(now, h.task.buffer[:0]); !more {
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

// A packet that was overtaken by one alone is lost when clearly more than a round trip has passed.
func TestAPacketIsLostWhenItsAnswerIsOverdue(t *testing.T) {
	const trip = 80 * time.Microsecond
	for variation, patience := range map[time.Duration]time.Duration{0: trip / 8, trip / 10: trip * 3 / 20} {
		put := Command{Op: wire.Put, Data: make([]byte, 8)}
		h := confirmed(t, nil, put, put)
		h.endpoint.pairs[1].initiator.timing = timing{smoothed: trip, variation: variation}
		require.Equal(t, wire.OK, h.getsAt(trip, wire.TypeAck, 1, wire.AppendAck(nil, 0, []uint64{0b10}, 0, nil)))
		overdue, _ := h.endpoint.Deadline()
		require.Equal(t, trip+patience, overdue)
		h.endpoint.Advance(overdue - 1)
		require.Zero(t, h.sendsAt(overdue-1))
		h.endpoint.Advance(overdue)
		require.Equal(t, 1, h.sendsAt(overdue))
	}
}

// An epoch is raised again after longer and longer times, and a confirmation of which nobody knows what it answers gives
// no round trip.
func TestAnEpochIsRaisedAgainLessAndLessOften(t *testing.T) {
	h := oneByHand(t, 0, nil)
	require.NoError(t, h.endpoint.Submit(0, Command{Op: wire.Put, Peer: 1, Window: opened, Data: make([]byte, 8)}))
	require.Equal(t, 1, h.sends())
	first := h.endpoint.FirstTimeout
	for now := first; now < 8*first; now = 2*now + first {
		at, _ := h.endpoint.Deadline()
		require.Equal(t, now, at)
		h.endpoint.Advance(at)
		require.Equal(t, 1, h.sendsAt(at))
	}
	require.Equal(t, wire.OK, h.getsAt(8*first, wire.TypeConfirm, 1, wire.AppendConfirm(nil, 0, nil)))
	require.Zero(t, h.endpoint.pairs[1].initiator.timing.smoothed)
}

// What counters say of packets that come and go.
func TestPacketsAreCounted(t *testing.T) {
	h := oneByHand(t, 1, nil)
	receives := func(kind wire.Type, epoch uint64, body []byte) {
		h.endpoint.Receive(0, &wire.Header{Type: kind, Job: 7, Source: 0, Target: 1, SourceLife: 1, TargetLife: 2, Epoch: epoch}, body)
	}
	receives(wire.TypeRaise, 1, (&wire.Raise{}).Append(nil))
	m := wire.ActiveMessage{Handler: runs, Data: make([]byte, 8)}
	receives(wire.TypeMessage, 1, m.Append(nil))
	receives(wire.TypeMessage, 2, m.Append(nil))
	require.Equal(t, 2, h.sends(), "a confirmation and an answer")
	c := h.endpoint.Counters()
	require.Equal(t, Counters{Sent: 2, Received: 3, Executed: 1, Dropped: c.Dropped}, c)
	require.EqualValues(t, 1, c.Dropped[wire.Stale])
}

// Karn's rule: nobody knows which transmission of a packet that was sent again was answered.
func TestAPacketThatWasSentAgainGivesNoRoundTrip(t *testing.T) {
	put := Command{Op: wire.Put, Data: make([]byte, 8)}
	h := confirmed(t, nil, put, put)
	i := h.endpoint.pairs[1].initiator
	ack := func(now time.Duration, base uint64) {
		require.Equal(t, wire.OK, h.getsAt(now, wire.TypeAck, 1, wire.AppendAck(nil, base, nil, 0, nil)))
	}
	measured := func() [2]time.Duration { return [2]time.Duration{i.timing.smoothed, i.timing.variation} }
	before := measured()
	ack(10*time.Microsecond, 1)
	once := measured()
	require.NotEqual(t, before, once)
	late, _ := h.endpoint.Deadline()
	h.endpoint.Advance(late)
	require.Equal(t, 1, h.sendsAt(late))
	ack(late+time.Microsecond, 2)
	require.Len(t, h.endpoint.Notifications(nil), 2)
	require.Equal(t, once, measured())
}

// An answer that comes sooner than a round trip after a packet was sent again is not to the last transmission: what
// was sent before that is not taken for overtaken.
func TestAnEarlyAnswerIsToAnEarlierTransmission(t *testing.T) {
	const trip = 200 * time.Microsecond
	for after, again := range map[time.Duration]int{trip / 4: 0, trip: 1} {
		put := Command{Op: wire.Put, Data: make([]byte, 8)}
		h := confirmed(t, nil, put, put, put, put, put)
		h.endpoint.pairs[1].initiator.timing = timing{smoothed: trip}
		ack := func(now time.Duration, base, marks uint64) {
			require.Equal(t, wire.OK, h.getsAt(now, wire.TypeAck, 1, wire.AppendAck(nil, base, []uint64{marks}, 0, nil)))
		}
		ack(trip, 0, 0b1110)
		require.Equal(t, 1, h.sendsAt(trip), "the first is lost")
		ack(trip+after, 4, 0)
		require.Equal(t, again, h.sendsAt(trip+after), "the fifth, %v later", after)
	}
}

// The marks of an Ack's refused operations count from its floor, in what a target says and in what an initiator hears.
func TestRefusalsCountFromTheFloor(t *testing.T) {
	target := oneByHand(t, 1, nil)
	require.Equal(t, wire.OK, target.raise(1))
	refused := wire.PutPart{Order: wire.Order{Sequence: 5, Floor: 3}, Extent: wire.Extent{Window: 99, Count: 1, Length: 8},
		Data: make([]byte, 8)}
	require.Equal(t, wire.NoWindow, target.gets(wire.TypePut, 1, refused.Append(nil)))
	var ack *wire.Ack
	for {
		packet, _, _, more := target.endpoint.Next(0, target.task.buffer[:0])
		if !more {
			break
		}
		if wire.TypeOf(packet) == wire.TypeAck {
			ack = &wire.Ack{}
			require.True(t, ack.Decode(append([]byte(nil), packet[wire.HeaderLength:]...)))
		}
	}
	require.NotNil(t, ack)
	require.EqualValues(t, 3, ack.Floor)
	require.True(t, ack.Refused.Get(2))
	require.False(t, ack.Refused.Get(5))

	put := Command{Op: wire.Put, Data: make([]byte, 8)}
	h := confirmed(t, nil, put, put)
	hears := func(floor uint64) wire.Reason {
		return h.gets(wire.TypeAck, 1, wire.AppendAck(nil, 2, nil, floor, []uint64{1}))
	}
	require.Equal(t, wire.OK, hears(1), "the first is done")
	require.Len(t, h.endpoint.Notifications(nil), 1)
	require.Equal(t, wire.Repeated, hears(1), "the second is refused: its reason has still to come")
	require.Empty(t, h.endpoint.Notifications(nil))
	require.Equal(t, wire.OK, hears(0), "it was the first")
	require.Len(t, h.endpoint.Notifications(nil), 1)
}

// Of what was under way together the first loss alone is paid for, to the last packet.
func TestALossIsPaidForOnce(t *testing.T) {
	c := congestion{window: 64}
	c.lost(5, 10, 8)
	require.Equal(t, 56, c.window)
	c.lost(10, 20, 8)
	require.Equal(t, 56, c.window, "it was under way then")
	c.lost(11, 20, 8)
	require.Equal(t, 49, c.window)
	c.timedOut(30, 20)
	require.Equal(t, 25, c.window, "nothing at all came back: half")
	c.timedOut(40, 20)
	require.Equal(t, 20, c.window, "not below the least")
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
