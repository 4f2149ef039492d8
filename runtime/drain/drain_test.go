package drain

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// Ticks are nanoseconds here, and MPI_Init returned at begin.
const (
	begin    = 1_000_000
	binTicks = 1_000_000
)

// blank is a segment of one rank in which nothing has been recorded.
func blank(t require.TestingT, threads, ring, kept int, seed uint64) *segment.Segment {
	s, err := segment.Blank(segment.Header{
		LocalRanks: 1, ThreadSlots: uint32(threads), Accounts: 1, RingEvents: uint32(ring), HistoryEvents: uint32(kept), SampleSeed: seed,
		Anchor: [2]segment.ClockAnchor{{Ticks: 1000, Ns: 1000}, {Ticks: 1 << 40, Ns: 1 << 40}},
	})
	require.NoError(t, err)
	rank := s.Area(0).Rank
	rank.Threads, rank.Comms, rank.InitLeave, rank.BinTicks = uint32(threads), 2, begin, binTicks
	a := s.Area(0)
	a.Comms[0].Id, a.Comms[1].Id = 11, 22
	return s
}

// write leaves an event in the ring as leave_event in c/record.c does.
func write(t *segment.ThreadArea, e segment.Event) {
	head := segment.Load(&t.RingHead)
	slot := &t.Ring[head&uint64(len(t.Ring)-1)]
	segment.Store(&slot.Stamp, 0)
	from, to := words(&e), words(slot)
	for i := 1; i < len(from); i++ {
		atomic.StoreUint64(&to[i], from[i])
	}
	segment.Store(&slot.Stamp, head+1)
	segment.Store(&t.RingHead, head+1)
}

func words(e *segment.Event) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(e)), unsafe.Sizeof(*e)/8)
}

// model is what a drainer should have done, by a way that forgets nothing.
type model struct {
	written [][]segment.Event // by thread
	tail    []int
	lost    []uint64
	taken   []segment.Event
}

func (m *model) drain(ring int) {
	for t, events := range m.written {
		from := max(m.tail[t], len(events)-ring)
		m.lost[t] += uint64(from - m.tail[t])
		m.taken = append(m.taken, events[from:]...)
		m.tail[t] = len(events)
	}
}

// history is what of the events is kept in that much room, and the level.
func (m *model) history(room int, seed uint64) ([]segment.Event, uint64) {
	for level := 0; ; level++ {
		kept := []segment.Event{}
		for _, e := range m.taken {
			chance := history.Chance(e.Sequence, history.Mix(seed^[]uint64{11, 22}[e.Comm]))
			if history.KeepEvent(e.Weight&segment.EventCollective != 0, chance, int64(e.Enter), int64(e.Leave), level) {
				kept = append(kept, e)
			}
		}
		if len(kept) <= room || level == history.MaxLevel {
			return kept[:min(room, len(kept))], uint64(level)
		}
	}
}

// bins adds up the main thread's calls over bins of that width.
func (m *model) bins(width uint64) []segment.Bin {
	bins := make([]segment.Bin, segment.Bins)
	for _, e := range m.taken {
		if e.Thread != 0 || e.Leave <= begin || e.Leave == e.Enter {
			continue
		}
		weight := uint64(1) << (e.Weight & 63)
		for b := range bins {
			from, to := begin+uint64(b)*width, begin+uint64(b+1)*width
			if at, until := max(e.Enter, from), min(e.Leave, to); at < until {
				bins[b].Ticks += (until - at) * weight
			}
			if e.Leave >= from && e.Leave < to {
				bins[b].Calls += weight
			}
		}
	}
	return bins
}

// anEvent begins some time after the one before; a few are long.
func anEvent(random *rand.Rand, thread int, number int, clock *uint64) segment.Event {
	e := segment.Event{
		Stamp: uint64(number + 1), Sequence: uint64(number), Account: 3, Thread: uint8(thread),
		Comm: uint16(random.IntN(2)), Weight: uint8(random.IntN(4)),
	}
	if random.IntN(2) == 0 {
		e.Weight |= segment.EventCollective
	}
	*clock += random.Uint64N(5_000_000)
	e.Enter = *clock
	if random.IntN(20) == 0 {
		*clock += random.Uint64N(500_000_000)
	} else {
		*clock += random.Uint64N(200_000)
	}
	e.Leave = *clock
	return e
}

func TestDrainAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, ring := rapid.IntRange(1, 3).Draw(t, "threads"), 1<<rapid.IntRange(2, 6).Draw(t, "ring")
		room, seed := rapid.IntRange(1, 60).Draw(t, "history"), rapid.Uint64().Draw(t, "seed")
		s := blank(t, threads, ring, room, seed)
		defer s.Close()
		random := rand.New(rand.NewPCG(seed, 1))
		m := model{written: make([][]segment.Event, threads), tail: make([]int, threads), lost: make([]uint64, threads)}
		clocks := make([]uint64, threads)
		area, drainer := s.Area(0), New(s, 0)
		for range rapid.IntRange(1, 30).Draw(t, "drains") {
			for thread := range threads {
				for range random.IntN(ring * 3 / 2) {
					e := anEvent(random, thread, len(m.written[thread]), &clocks[thread])
					m.written[thread] = append(m.written[thread], e)
					write(&area.Threads[thread], e)
				}
			}
			if random.IntN(5) == 0 {
				drainer = New(s, 0) // another goes on where this one stopped
			}
			drainer.Drain(clocks[0])
			m.drain(ring)
		}

		kept, level := m.history(room, seed)
		rank := s.Area(0).Rank
		require.Equal(t, uint64(len(m.taken)), rank.HistoryOffered)
		require.Equal(t, level, rank.HistoryLevel)
		require.Equal(t, kept, append([]segment.Event{}, area.History[:rank.HistoryCount]...))
		require.Equal(t, clocks[0], rank.DrainedTicks)
		for thread := range threads {
			require.Equal(t, m.lost[thread], area.Threads[thread].RingLost)
			require.Equal(t, area.Threads[thread].RingHead, area.Threads[thread].RingTail)
		}
		require.Equal(t, m.bins(rank.BinTicks), area.Bins)
		require.Zero(t, rank.BinTicks%binTicks)
	})
}

func TestDrainBesideAWriterThatDoesNotWait(t *testing.T) {
	const events = 300_000
	s := blank(t, 1, 2, events, 0)
	defer s.Close()
	done := make(chan bool)
	go func() {
		thread := s.Area(0).Threads[0]
		for i := range uint64(events) {
			write(&thread, segment.Event{Enter: i + begin, Leave: i + begin + 1, Sequence: i, Bytes: ^i})
		}
		close(done)
	}()
	drainer := New(s, 0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		drainer.Drain(0)
	}

	area := s.Area(0)
	kept := area.History[:area.Rank.HistoryCount]
	assert.NotEmpty(t, kept)
	assert.Equal(t, uint64(events), area.Rank.HistoryCount+area.Threads[0].RingLost, "each event is taken or counted as lost")
	last := uint64(0)
	for i, e := range kept {
		require.Equal(t, ^e.Sequence, e.Bytes, "events are whole")
		require.Equal(t, e.Stamp, e.Sequence+1)
		require.True(t, i == 0 || e.Sequence > last, "and in order")
		last = e.Sequence
	}
}

func TestTheHistoryStaysWithinTheMemoryThatThereIs(t *testing.T) {
	const room, granted = 5000, 2 * growth
	s := blank(t, 1, 64, room, 0)
	defer s.Close()
	m := model{written: make([][]segment.Event, 1), tail: make([]int, 1), lost: make([]uint64, 1)}
	random, clock := rand.New(rand.NewPCG(1, 1)), uint64(0)
	area, drainer := s.Area(0), New(s, 0)
	reserved := 0
	drainer.Reserve = func(part []segment.Event) bool {
		require.Same(t, &area.History[reserved], &part[0], "each part is asked for once, in order")
		if reserved+len(part) > granted {
			return false
		}
		reserved += len(part)
		return true
	}
	for range 300 {
		for range 30 {
			e := anEvent(random, 0, len(m.written[0]), &clock)
			m.written[0] = append(m.written[0], e)
			write(&area.Threads[0], e)
		}
		drainer.Drain(clock)
		m.drain(64)
		require.LessOrEqual(t, area.Rank.HistoryCount, uint64(reserved))
	}
	kept, level := m.history(granted, 0)
	assert.Equal(t, granted, reserved)
	assert.Equal(t, level, area.Rank.HistoryLevel)
	assert.Equal(t, kept, area.History[:area.Rank.HistoryCount])
}

func TestBinsOfALongRunBecomeWider(t *testing.T) {
	s := blank(t, 1, 4, 4, 0)
	defer s.Close()
	area, drainer := s.Area(0), New(s, 0)
	for i := range uint64(10 * segment.Bins) { // half of each bin's time is in MPI
		at := begin + i*binTicks
		write(&area.Threads[0], segment.Event{Enter: at, Leave: at + binTicks/2})
		drainer.Drain(at)
	}
	assert.Equal(t, uint64(16*binTicks), area.Rank.BinTicks)
	for b := range 10 * segment.Bins / 16 {
		assert.Equal(t, segment.Bin{Ticks: 8 * binTicks, Calls: 16}, area.Bins[b], fmt.Sprint(b))
	}
	assert.Equal(t, segment.Bin{}, area.Bins[10*segment.Bins/16])
}

func TestACallThatIsNotTimedIsSeenToLast(t *testing.T) {
	s := blank(t, 1, 4, 4, 0)
	defer s.Close()
	thread, drainer := s.Area(0).Threads[0].Thread, New(s, 0)
	segment.Store(&thread.Current, 5)
	drainer.Drain(100)
	drainer.Drain(200)
	assert.Equal(t, uint64(100), thread.FirstSeen)
	assert.Equal(t, uint32(segment.AttentionCall), thread.Attention, "it is asked to time itself")
	thread.Attention = 0
	segment.Store(&thread.Current, 6)
	drainer.Drain(300)
	assert.Equal(t, uint64(300), thread.FirstSeen)
	assert.Equal(t, uint64(200), thread.SeenBefore)
	assert.Zero(t, thread.Attention)
}

func TestALongTimeOutsideMPIHasTheNextCallTimed(t *testing.T) {
	s := blank(t, 1, 4, 4, 0)
	defer s.Close()
	thread, drainer := s.Area(0).Threads[0], New(s, 0)
	drainer.Drain(100)
	thread.Accounts[0].Calls = 7
	drainer.Drain(200)
	assert.Zero(t, thread.Attention, "it made calls meanwhile")
	drainer.Drain(300)
	assert.Equal(t, uint32(segment.AttentionNext), thread.Attention)
}

func TestDamagedCountsDoNoHarm(t *testing.T) {
	for _, level := range []uint64{0, 1<<63 + 5} {
		s := blank(t, 1, 4, 2, 0)
		defer s.Close()
		area := s.Area(0)
		area.Rank.HistoryLevel, area.Rank.HistoryCount = level, 1<<63
		write(&area.Threads[0], segment.Event{Enter: 0, Leave: 1 << 62, Comm: 9, Weight: segment.EventCollective})
		assert.NotPanics(t, func() { New(s, 0).Drain(1) })
		area.Threads[0].RingHead, area.Threads[0].RingTail = 3, 1<<63
		assert.NotPanics(t, func() { New(s, 0).Drain(1) })
	}
}
