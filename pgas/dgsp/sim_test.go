package dgsp

import (
	"container/heap"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// simulation is some senders and a receiver in virtual time, and a network that does what the seed
// says. What each message should do to the target's memory is known from lists of places.
type simulation struct {
	t        failer
	d        drawer
	now      time.Duration
	events   events
	sequence int

	network  network
	limits   Limits
	senders  []*Sender
	wake     []time.Duration
	receiver *Receiver
	messages map[uint32]*simulated // by window, which is the message's own
	open     int
	trace    func(string, ...any)
}

type network struct {
	loss, duplication, reordering int // per cent
}

type simulated struct {
	peer       Peer
	number     Number
	source     shape
	target     shape
	low        int
	memory     []byte // of the source, from the source's low on
	into, want []byte
	outcomes   int
	completed  int
	refusedFor Reason
	message    Message
	accepted   bool
	pendingBefore
}

type pendingBefore struct{ description, data int }

type event struct {
	at       time.Duration
	sequence int
	do       func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].sequence < e[j].sequence
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *simulation) after(delay time.Duration, do func()) {
	s.sequence++
	heap.Push(&s.events, event{s.now + delay, s.sequence, do})
}

// transmit brings a packet, or not, or twice.
func (s *simulation) transmit(packet []byte, deliver func([]byte)) {
	if s.d.between(1, 100) <= s.network.loss {
		return
	}
	times := 1
	if s.d.between(1, 100) <= s.network.duplication {
		times = 2
	}
	for range times {
		delay := 10 * time.Microsecond
		if s.d.between(1, 100) <= s.network.reordering {
			delay += time.Duration(s.d.between(0, 400)) * time.Microsecond
		}
		copied := append([]byte(nil), packet...)
		s.after(delay, func() { deliver(copied) })
	}
}

func (s *simulation) sendAll(i int) {
	sender := s.senders[i]
	for n := 0; n < 40; n++ {
		packet := sender.Next(s.now, nil)
		if packet == nil {
			break
		}
		require.LessOrEqual(s.t, len(packet), sender.mtu)
		s.transmit(packet, func(p []byte) { s.deliver(Peer(i), p) })
		if n == 39 {
			s.after(20*time.Microsecond, func() { s.sendAll(i) })
		}
	}
	if at, ok := sender.Deadline(); ok && (s.wake[i] <= s.now || at < s.wake[i]) {
		s.wake[i] = at
		s.after(max(at-s.now, 0), func() {
			sender.Tick(s.now)
			s.sendAll(i)
			s.outcomes(i)
		})
	}
}

func (s *simulation) deliver(peer Peer, packet []byte) {
	require.NoError(s.t, s.receiver.Step(peer, packet))
	s.effects()
	if s.d.between(0, 3) == 0 {
		s.report()
	} else {
		s.after(30*time.Microsecond, s.report)
	}
	held := s.receiver.Memory()
	require.LessOrEqual(s.t, held.Early, s.limits.Early)
	require.LessOrEqual(s.t, held.Description, s.limits.Description)
	require.LessOrEqual(s.t, held.Cache, s.limits.Cache)
}

func (s *simulation) report() {
	for {
		peer, packet, ok := s.receiver.NextReport(nil)
		if !ok {
			return
		}
		s.transmit(packet, func(p []byte) {
			require.NoError(s.t, s.senders[peer].Step(s.now, p))
			s.outcomes(int(peer))
			s.sendAll(int(peer))
		})
	}
}

func (s *simulation) outcomes(i int) {
	for _, o := range s.senders[i].Outcomes() {
		for _, m := range s.messages {
			if m.peer == Peer(i) && m.number == o.Number {
				m.outcomes++
				s.open--
				if m.refusedFor != NoReason {
					require.ErrorContains(s.t, o.Err, m.refusedFor.String())
				} else {
					require.NoError(s.t, o.Err)
					require.Equal(s.t, 1, m.completed, "told to the sender, so done")
				}
			}
		}
	}
}

func (s *simulation) effects() {
	for _, e := range s.receiver.Effects() {
		m := s.messages[e.Window]
		require.Equal(s.t, []any{m.peer, m.number}, []any{e.Peer, e.Number})
		switch e.Kind {
		case Described:
			s.described(m, e)
		case Scatter:
			require.True(s.t, m.accepted)
			require.Zero(s.t, m.completed, "nothing is scattered after the end")
			require.NoError(s.t, e.Program.Scatter(m.into, e.Base, e.Data, e.From))
		case Complete:
			m.completed++
			require.Equal(s.t, 1, m.completed)
			m.check(s.t)
		}
	}
}

func (s *simulation) described(m *simulated, e Effect) {
	description, data := s.receiver.Pending(e.Peer, e.Number)
	require.Zero(s.t, description)
	require.LessOrEqual(s.t, data, (m.message.Source.Size()+s.senders[m.peer].mtu-1)/(s.senders[m.peer].mtu-carryLength)+1)
	require.Equal(s.t, string(m.message.Header), string(e.Header))
	require.Equal(s.t, m.message.Handler, e.Handler)
	if e.Handler != 0 {
		s.active(m, e)
		return
	}
	m.accepted = true
	require.NoError(s.t, s.receiver.Accept(e.Peer, e.Number))
	s.effects()
}

// active is a handler: it looks at what changes, may keep the program, and answers at once, later, or
// with a refusal.
func (s *simulation) active(m *simulated, e Effect) {
	program, err := e.Handle.Program()
	require.NoError(s.t, err)
	var places []int
	program.Spans(0, program.Size(), func(span Span) bool {
		for i := range span.Length {
			places = append(places, span.At+i)
		}
		return true
	})
	require.True(s.t, slices.Equal(m.target.places, places))
	if e.Handle.Keep() == nil {
		s.after(time.Duration(s.d.between(1, 3000))*time.Microsecond, func() {
			_, err := e.Handle.Program()
			require.NoError(s.t, err)
			require.NoError(s.t, e.Handle.Free())
			require.Error(s.t, e.Handle.Free())
			s.effects() // the room may have let another one in
			s.report()
		})
	}
	answer := func() {
		if m.message.Handler == 2 {
			m.refusedFor = HandlerChoice
			require.NoError(s.t, s.receiver.Refuse(e.Peer, e.Number, HandlerChoice))
		} else {
			m.accepted = true
			require.NoError(s.t, s.receiver.Accept(e.Peer, e.Number))
		}
		s.effects()
		s.report()
	}
	if s.d.between(0, 1) == 0 {
		s.after(time.Duration(s.d.between(1, 800))*time.Microsecond, answer)
	} else {
		answer()
	}
}

// check compares the memory with what it should be. Of a byte that is named twice either copy may
// stay.
func (m *simulated) check(t failer) {
	candidates := map[int][]byte{}
	sourceLow, _ := m.source.reach()
	for i, place := range m.target.places {
		candidates[place] = append(candidates[place], m.memory[m.source.places[i]-sourceLow])
	}
	for i, b := range m.into {
		if c, named := candidates[i+m.low]; named {
			require.Contains(t, c, b)
		} else {
			require.Equal(t, m.want[i], b, "a byte that no block names")
		}
	}
}

func drawNetwork(d drawer) network {
	worst := []int{0, 5, 20, 50}
	return network{worst[d.between(0, 3)], worst[d.between(0, 3)], worst[d.between(0, 3)]}
}

// drawIrregular is so many blocks that the description takes several packets.
func drawIrregular(d drawer) shape {
	var s shape
	place := 0
	for range d.between(1, 400) {
		s.places = append(s.places, place)
		place += d.between(1, 5)
	}
	s.layout = placedAt(s.places)
	return s
}

// cut makes two shapes of equal length.
func cut(from, to shape) (shape, shape) {
	if len(from.places) > len(to.places) {
		from = shape{placedAt(from.places[:len(to.places)]), from.places[:len(to.places)]}
	} else if len(from.places) < len(to.places) {
		to = shape{placedAt(to.places[:len(from.places)]), to.places[:len(from.places)]}
	}
	return from, to
}

func (s *simulation) put(i int, pool []shape, window uint32) {
	from, to := drawShape(s.d, 2), pool[s.d.between(0, len(pool)-1)]
	if len(from.places) < len(to.places) && len(from.places) > 0 {
		places := make([]int, 0, len(to.places)) // several times the same bytes
		for k := range to.places {
			places = append(places, from.places[k%len(from.places)])
		}
		from = shape{placedAt(places), places}
	}
	from, to = cut(from, to)
	source, err := Compile(from.layout)
	require.NoError(s.t, err)
	target, err := Compile(to.layout)
	require.NoError(s.t, err)
	sourceLow, sourceHigh := from.reach()
	low, high := to.reach()
	m := &simulated{peer: Peer(i), source: from, target: to, low: low, memory: make([]byte, sourceHigh-sourceLow),
		into: make([]byte, high-low), want: make([]byte, high-low)}
	noise(m.memory, int(window))
	noise(m.into, int(window)+1000)
	copy(m.want, m.into)
	m.message = Message{Source: source, Memory: m.memory, SourceBase: -sourceLow, Target: target, Window: window, Base: -low}
	if m.message.Handler = uint32(max(0, s.d.between(-3, 2))); m.message.Handler != 0 {
		m.message.Header = []byte(fmt.Sprint("header ", window))
	}
	if _, err := Decode(target.Wire(), s.limits.Cache/2); err != nil {
		m.refusedFor = BadProgram
	}
	if len(target.Wire()) > s.limits.Description/2 {
		m.refusedFor = TooLarge
	}
	m.number, err = s.senders[i].Put(s.now, m.message)
	if err == ErrFull {
		s.after(100*time.Microsecond, func() { s.put(i, pool, window) })
		return
	}
	require.NoError(s.t, err)
	s.messages[window] = m
	s.sendAll(i)
}

// simulate runs some messages to their end.
func simulate(t failer, d drawer, messages int) *simulation {
	s := &simulation{t: t, d: d, network: drawNetwork(d), messages: map[uint32]*simulated{}}
	s.limits = Limits{Early: []int{0, 500, 2000, 100000}[d.between(0, 3)], Description: []int{800, 2000, 20000}[d.between(0, 2)],
		Cache: []int{4000, 8000, 100000}[d.between(0, 2)]}
	s.receiver = NewReceiver(s.limits)
	for range d.between(1, 3) {
		sender, err := NewSender(MinMTU+d.between(0, 300), Times{First: 500 * time.Microsecond, Least: 20 * time.Microsecond,
			Most: 20 * time.Millisecond, Silence: 10 * time.Second})
		require.NoError(t, err)
		s.senders = append(s.senders, sender)
	}
	s.wake = make([]time.Duration, len(s.senders))
	pool := make([]shape, d.between(1, 8))
	for i := range pool {
		if pool[i] = drawShape(d, 3); d.between(0, 1) == 0 {
			pool[i] = drawIrregular(d)
		}
	}
	s.open = messages
	spread := []int{300, 1500, 30000}[d.between(0, 2)]
	for w := range messages {
		i := d.between(0, len(s.senders)-1)
		s.after(time.Duration(d.between(0, spread))*time.Microsecond, func() { s.put(i, pool, uint32(w)) })
	}
	for s.open > 0 {
		require.NotEmpty(t, s.events, "messages are under way, and nothing will happen any more")
		s.step()
		require.Less(t, s.now, 200*time.Second, "no end")
	}
	// What is still in the network must change nothing.
	for len(s.events) > 0 {
		s.step()
	}
	for _, m := range s.messages {
		require.Equal(t, 1, m.outcomes)
		if m.refusedFor == NoReason {
			require.Equal(t, 1, m.completed)
			m.check(t)
		}
	}
	held := s.receiver.Memory()
	require.Zero(t, held.Early)
	require.Zero(t, held.Description)
	require.Zero(t, s.receiver.cache.pinned)
	require.Zero(t, s.receiver.cache.kept)
	return s
}

func (s *simulation) step() {
	e := heap.Pop(&s.events).(event)
	s.now = e.at
	e.do()
}

// TestMessagesUnderFaults: EVENKEEL_TEST_CASES says how many seeds, EVENKEEL_TEST_SEED which first.
func TestMessagesUnderFaults(t *testing.T) {
	cases, first := setting("EVENKEEL_TEST_CASES", 600), setting("EVENKEEL_TEST_SEED", 1)
	var total Counts
	packets, again := 0, 0
	for seed := first; seed < first+cases; seed++ {
		d := newSeeded(seed)
		s := simulate(seededTest{t, seed}, d, d.between(1, 16))
		c := s.receiver.Counts()
		total.Placed += c.Placed
		total.Refused += c.Refused
		total.Repeated += c.Repeated
		total.Stale += c.Stale
		total.QueueFull += c.QueueFull
		total.NoRoom += c.NoRoom
		total.Unknown += c.Unknown
		total.Hits += c.Hits
		for _, sender := range s.senders {
			p, a := sender.Sent()
			packets += p
			again += a
		}
	}
	t.Logf("%d cases: %d packets, of them %d again; %+v", cases, packets, again, total)
	// All that is to be tested has happened.
	assert.Zero(t, total.Malformed)
	for what, n := range map[string]int{"placed": total.Placed, "refused": total.Refused, "repeated": total.Repeated,
		"queue full": total.QueueFull, "no room": total.NoRoom, "known layouts": total.Hits} {
		assert.Positive(t, n, what)
	}
}

func setting(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func TestMessagesShrunk(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		simulate(r, fromRapid{r}, fromRapid{r}.between(1, 3))
	})
}
