package dgsp

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testMTU = MinMTU + 48

// ends are a sender and a receiver without a network between them.
type ends struct {
	*testing.T
	sender   *Sender
	receiver *Receiver
	now      time.Duration
	memory   []byte // of the target: window 1
	places   int    // Scatter effects
	complete int
}

func newEnds(t *testing.T, limits Limits) *ends {
	sender, err := NewSender(testMTU, DefaultTimes())
	require.NoError(t, err)
	return &ends{T: t, sender: sender, receiver: NewReceiver(limits), memory: make([]byte, 1<<20)}
}

// packets are all that the sender sends now.
func (e *ends) packets() (all [][]byte) {
	for {
		p := e.sender.Next(e.now, nil)
		if p == nil {
			return all
		}
		all = append(all, p)
	}
}

func (e *ends) take(packets ...[]byte) {
	for _, p := range packets {
		require.NoError(e, e.receiver.Step(0, p))
		e.effects()
	}
}

func (e *ends) effects() {
	for _, f := range e.receiver.Effects() {
		switch f.Kind {
		case Described:
			require.NoError(e, e.receiver.Accept(f.Peer, f.Number))
			e.effects()
		case Scatter:
			e.places++
			require.NoError(e, f.Program.Scatter(e.memory, f.Base, f.Data, f.From))
		case Complete:
			e.complete++
		}
	}
}

func (e *ends) report() {
	for {
		_, p, ok := e.receiver.NextReport(nil)
		if !ok {
			return
		}
		require.NoError(e, e.sender.Step(e.now, p))
	}
}

func (e *ends) put(target *Program) Number {
	source, err := Compile(Block(target.Size()))
	require.NoError(e, err)
	memory := make([]byte, target.Size())
	noise(memory, 9)
	n, err := e.sender.Put(e.now, Message{Source: source, Memory: memory, Target: target, Window: 1})
	require.NoError(e, err)
	return n
}

func compiled(t require.TestingT, l Layout) *Program {
	p, err := Compile(l)
	require.NoError(t, err)
	return p
}

func kindOf(p []byte) packetKind { return packetKind(p[0]) }

// irregular takes several description packets.
func irregular(t require.TestingT, salt int) *Program {
	return compiled(t, drawIrregularOf(newSeeded(uint64(salt)), 700).layout)
}

func drawIrregularOf(d drawer, n int) shape {
	var s shape
	place := 0
	for range n {
		s.places = append(s.places, place)
		place += d.between(1, 5)
	}
	s.layout = placedAt(s.places)
	return s
}

// Description and data go out before anything comes back, the description first; the two are counted
// apart; data that comes first waits.
func TestDescriptionAndDataAreSentEagerlyAndCountedApart(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	p := irregular(t, 1)
	n := e.put(p)
	all := e.packets()
	var descriptions, data [][]byte
	for _, packet := range all {
		if kindOf(packet) == describes {
			assert.Empty(t, data, "the description goes first")
			descriptions = append(descriptions, packet)
		} else {
			data = append(data, packet)
		}
	}
	require.Greater(t, len(descriptions), 2)
	require.Equal(t, parts(p.Size(), testMTU-carryLength), len(data))

	d, c := e.receiver.Pending(0, n)
	assert.Equal(t, []int{-1, -1}, []int{d, c}, "nothing is known")
	e.take(data[0])
	d, c = e.receiver.Pending(0, n)
	assert.Equal(t, []int{-1, len(data) - 1}, []int{d, c})
	e.take(descriptions[1])
	d, c = e.receiver.Pending(0, n)
	assert.Equal(t, []int{len(descriptions) - 1, len(data) - 1}, []int{d, c})
	e.take(data[1], data[1], descriptions[1])
	d, c = e.receiver.Pending(0, n)
	assert.Equal(t, []int{len(descriptions) - 1, max(0, len(data)-2)}, []int{d, c}, "a packet counts once")
	assert.Zero(t, e.places)
	assert.Positive(t, e.receiver.Memory().Early)
	e.take(descriptions...)
	assert.Equal(t, 2, e.places, "what waited is in its place")
	assert.Zero(t, e.receiver.Memory().Early)
	e.take(data...)
	assert.Equal(t, 1, e.complete)
	e.report()
	assert.Equal(t, []Outcome{{n, nil}}, e.sender.Outcomes())
}

// A layout that the target holds is named, not sent; one that it has lost is sent again.
func TestHeldLayoutsAreOnlyNamed(t *testing.T) {
	limits := DefaultLimits()
	limits.Cache = 64 << 10
	e := newEnds(t, limits)
	p := irregular(t, 1)
	send := func(p *Program) (wireBytes int) {
		e.put(p)
		for round := 0; ; round++ {
			all := e.packets()
			for _, packet := range all {
				if kindOf(packet) == describes {
					wireBytes += len(packet) - describeLength
				}
			}
			e.take(all...)
			e.report()
			if o := e.sender.Outcomes(); len(o) > 0 {
				require.NoError(t, o[0].Err)
				return wireBytes
			}
			require.Less(t, round, 3)
		}
	}
	assert.Equal(t, len(p.Wire()), send(p))
	assert.Zero(t, send(p))
	assert.Zero(t, send(p))
	for salt := range 20 {
		send(irregular(t, salt+2)) // these drive it out
	}
	assert.LessOrEqual(t, e.receiver.Memory().Cache, limits.Cache)
	before := e.receiver.Counts().Unknown
	assert.Equal(t, len(p.Wire()), send(p))
	assert.Equal(t, before+1, e.receiver.Counts().Unknown)
	assert.Equal(t, 24, e.complete)
}

// A full queue drops what comes early; that part, and no other, is sent again.
func TestFullQueueDropsAndTheRestIsSentAgain(t *testing.T) {
	e := newEnds(t, Limits{Early: 1000, Description: 1 << 20, Cache: 1 << 20})
	p := compiled(t, Strided(1000, 8, 16))
	e.put(p)
	all := e.packets()
	descriptions, data := all[:1], all[1:]
	require.Equal(t, describes, kindOf(descriptions[0]))
	e.take(data...)
	kept := 1000 / (testMTU - carryLength + 64)
	assert.Equal(t, len(data)-kept, e.receiver.Counts().QueueFull)
	e.take(descriptions...)
	assert.Equal(t, kept, e.places)
	e.report()
	e.now += time.Second // longer than any timer
	e.sender.Tick(e.now)
	again := e.packets()
	assert.Len(t, again, len(data)-kept)
	e.take(again...)
	e.report()
	assert.Len(t, e.sender.Outcomes(), 1)
	for i := range 8000 {
		require.Equal(t, sourceByte(8000, i), e.memory[i/8*16+i%8])
	}
}

func sourceByte(length, i int) byte {
	memory := make([]byte, length)
	noise(memory, 9)
	return memory[i]
}

// More packets than a report has marks for.
func TestLongMessagesUnderLoss(t *testing.T) {
	e := newEnds(t, Limits{Early: 10000, Description: 1 << 20, Cache: 1 << 20})
	e.put(compiled(t, Strided(60000, 8, 16)))
	d := newSeeded(3)
	for round := 0; e.complete == 0; round++ {
		require.Less(t, round, 10000)
		e.now += 50 * time.Microsecond
		e.sender.Tick(e.now)
		for _, packet := range e.packets() {
			if d.between(0, 9) > 1 {
				e.take(packet)
			}
		}
		e.report()
	}
	want := make([]byte, 480000)
	noise(want, 9)
	for i, b := range want {
		if e.memory[i/8*16+i%8] != b {
			t.Fatalf("byte %d", i)
		}
	}
	assert.Len(t, e.sender.Outcomes(), 1)
	packets, again := e.sender.Sent()
	assert.Less(t, again, packets/2, "of those that are lost one in five, not all")
}

func TestSilentTargetEndsMessagesWithAnError(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	p := compiled(t, Block(100))
	first, second := e.put(p), e.put(p)
	e.packets()
	for ticks := 0; ; ticks++ {
		require.Less(t, ticks, 1000)
		at, ok := e.sender.Deadline()
		if !ok {
			break
		}
		require.Greater(t, at, e.now)
		e.now = at
		e.sender.Tick(e.now)
		e.packets()
	}
	assert.Equal(t, DefaultTimes().Silence, e.now)
	o := e.sender.Outcomes()
	require.Len(t, o, 2)
	assert.Equal(t, []Number{first, second}, []Number{o[0].Number, o[1].Number})
	assert.ErrorIs(t, o[0].Err, ErrSilent)
	_, err := e.sender.Put(e.now, Message{Source: p, Memory: make([]byte, 100), Target: p})
	assert.ErrorIs(t, err, ErrSilent)
	assert.Empty(t, e.sender.Outcomes())
}

func TestPutRefusesWhatCanNotBe(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	eight, nine := compiled(t, Block(8)), compiled(t, Block(9))
	for _, c := range []struct {
		m   Message
		say string
	}{
		{Message{Source: eight}, "needs the programs"},
		{Message{Source: eight, Target: nine, Memory: make([]byte, 9)}, "the source has 8 bytes, the target 9"},
		{Message{Source: eight, Target: eight, Memory: make([]byte, 7)}, "the source: placed at 0"},
		{Message{Source: eight, Target: eight, Memory: make([]byte, 8), SourceBase: 1}, "the source: placed at 1"},
		{Message{Source: eight, Target: eight, Memory: make([]byte, 8), Handler: 1, Header: make([]byte, MaxHeader+1)}, "257 bytes"},
		{Message{Source: eight, Target: eight, Memory: make([]byte, 8), Header: make([]byte, 1)}, "without a handler"},
	} {
		_, err := e.sender.Put(0, c.m)
		assert.ErrorContains(t, err, c.say)
	}
	assert.Empty(t, e.packets())
	for range openMessages {
		e.put(eight)
	}
	_, err := e.sender.Put(0, Message{Source: eight, Target: eight, Memory: make([]byte, 8)})
	assert.ErrorIs(t, err, ErrFull)
	_, err = NewSender(MinMTU-1, DefaultTimes())
	assert.ErrorContains(t, err, "too short")
}

func TestReceiverRefusesAnswersOutOfTurn(t *testing.T) {
	r := NewReceiver(DefaultLimits())
	assert.ErrorContains(t, r.Accept(1, 2), "message 2 of peer 1 does not wait")
	assert.ErrorContains(t, r.Refuse(1, 2, NoWindow), "can't be refused")
}

func TestForgottenPeersHoldNothing(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	e.put(irregular(t, 1))
	all := e.packets()
	e.take(all[0], all[len(all)-1])
	assert.Positive(t, e.receiver.Memory().Early)
	assert.Positive(t, e.receiver.Memory().Description)
	e.receiver.Forget(0)
	assert.Equal(t, Limits{}, e.receiver.Memory())
	_, _, ok := e.receiver.NextReport(nil)
	assert.False(t, ok)
}

// What contradicts what came before is dropped.
func TestPacketsThatContradictEachOther(t *testing.T) {
	e := newEnds(t, DefaultLimits())
	e.put(irregular(t, 1))
	all := e.packets()
	e.take(all[0])
	other := newEnds(t, DefaultLimits())
	other.put(irregular(t, 2)) // of the same size
	for _, p := range other.packets() {
		if kindOf(p) == describes {
			assert.ErrorIs(t, e.receiver.Step(0, p), ErrPacket)
		}
	}
	longer := newEnds(t, DefaultLimits())
	longer.put(compiled(t, Block(5000)))
	for _, p := range longer.packets() {
		assert.ErrorIs(t, e.receiver.Step(0, p), ErrPacket)
	}
	e.take(all...)
	assert.Equal(t, 1, e.complete)
}

// A peer that skips numbers, as no sender does, can't fill the memory.
func TestMessagesThatAreNeverFinishedAreBounded(t *testing.T) {
	r := NewReceiver(DefaultLimits())
	e := newEnds(t, DefaultLimits())
	e.put(irregular(t, 1))
	packet := e.packets()[0]
	for n := range 10000 {
		binary.LittleEndian.PutUint64(packet[8:], uint64(n)*7)
		require.NoError(t, r.Step(0, packet))
		require.LessOrEqual(t, len(r.peers[0].open), openMessages)
	}
	assert.LessOrEqual(t, r.Memory().Description, DefaultLimits().Description)
}

// So many messages that numbers come round in what is remembered of them.
func TestManyMessagesUnderFaults(t *testing.T) {
	var total Counts
	for seed := range uint64(4) {
		d := newSeeded(seed + 77)
		s := simulate(seededTest{t, seed + 77}, d, 300)
		total.Stale += s.receiver.Counts().Stale
		total.Unknown += s.receiver.Counts().Unknown
	}
	assert.Positive(t, total.Stale)
	assert.Positive(t, total.Unknown, "layouts that had to leave the cache came again")
	t.Logf("%+v", total)
}

// FuzzReceiver feeds any packets, and the parts of a good message between them: nothing is taken into
// memory beyond the limits, and what is scattered stays where the message may write.
func FuzzReceiver(f *testing.F) {
	message := func(t testing.TB, p *Program, handler uint32) (packets [][]byte) {
		sender, _ := NewSender(testMTU, DefaultTimes())
		m := Message{Source: compiled(t, Block(p.Size())), Memory: make([]byte, p.Size()), Target: p, Handler: handler}
		if _, err := sender.Put(0, m); err != nil {
			t.Fatal(err)
		}
		for p := sender.Next(0, nil); p != nil; p = sender.Next(0, nil) {
			packets = append(packets, p)
		}
		return packets
	}
	for _, p := range append(message(f, irregular(f, 1), 0), message(f, compiled(f, Strided(100, 8, 16)), 3)...) {
		f.Add(p, byte(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, each byte) {
		limits := Limits{Early: 4000, Description: 4000, Cache: 16000}
		r := NewReceiver(limits)
		good := message(t, irregular(t, 1), 0)
		window := make([]byte, 5000)
		effects := func() {
			for e := r.Effects(); len(e) > 0; e = r.Effects() {
				for _, f := range e {
					low, high := f.Program.Bounds()
					switch f.Kind {
					case Described:
						if f.Base >= -low && f.Base <= len(window)-high {
							require.NoError(t, r.Accept(f.Peer, f.Number))
						} else {
							require.NoError(t, r.Refuse(f.Peer, f.Number, OutOfRange))
						}
					case Scatter:
						require.NoError(t, f.Program.Scatter(window, f.Base, f.Data, f.From))
					}
				}
			}
		}
		for i := 0; len(stream) > 0; i++ {
			n := min(len(stream), int(each)*8+describeLength)
			_ = r.Step(Peer(i%2), bytes.Clone(stream[:n]))
			stream = stream[n:]
			effects()
			_ = r.Step(0, bytes.Clone(good[i%len(good)]))
			effects()
			held := r.Memory()
			if held.Early > limits.Early || held.Description > limits.Description || held.Cache > limits.Cache {
				t.Fatalf("%+v is held, %+v allowed", held, limits)
			}
			for _, _, ok := r.NextReport(nil); ok; _, _, ok = r.NextReport(nil) {
			}
		}
	})
}

// FuzzSender feeds any reports to a sender with a message under way.
func FuzzSender(f *testing.F) {
	e := newEnds(&testing.T{}, DefaultLimits())
	p := irregular(f, 1)
	e.put(p)
	e.take(e.packets()...)
	for _, packet, ok := e.receiver.NextReport(nil); ok; _, packet, ok = e.receiver.NextReport(nil) {
		f.Add(packet)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, err := NewSender(testMTU, DefaultTimes())
		require.NoError(t, err)
		memory := make([]byte, p.Size())
		for range 3 {
			_, err := s.Put(0, Message{Source: compiled(t, Block(p.Size())), Memory: memory, Target: p})
			require.NoError(t, err)
		}
		var now time.Duration
		outcomes := map[Number]int{}
		for len(stream) > 0 {
			for packet := s.Next(now, nil); packet != nil; packet = s.Next(now, nil) {
				if len(packet) > testMTU {
					t.Fatal("too long a packet")
				}
			}
			n := min(len(stream), reportLength)
			_ = s.Step(now, stream[:n])
			stream = stream[n:]
			now += time.Millisecond
			s.Tick(now)
			for _, o := range s.Outcomes() {
				if outcomes[o.Number]++; outcomes[o.Number] > 1 {
					t.Fatalf("message %d is over twice", o.Number)
				}
			}
		}
	})
}
