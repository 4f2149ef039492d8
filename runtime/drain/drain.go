// Package drain empties the event rings of one rank into what is kept of its
// run: the history and the time bins of its area in the node segment.
//
// While the rank lives, the runtime inside it drains; after its death, or on a
// private copy, whoever reads the segment does. All that a Drainer knows is in
// the segment, so that one may go on where another stopped.
package drain

import (
	"evenkeel/runtime/clock"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// Drainer drains one rank. Not for concurrent use; one per rank at a time.
type Drainer struct {
	// Reserve, if set, is asked before a part of the history is written for the
	// first time; false: there is no memory for it.
	Reserve func(part []segment.Event) bool

	room    uint64 // events of the history that may be written
	full    bool   // the room will not grow
	segment *segment.Segment
	area    segment.Area
	clock   clock.Clock
	index   int
}

// New returns the drainer of the i-th rank of a writable segment.
func New(s *segment.Segment, i int) *Drainer {
	return &Drainer{segment: s, index: i}
}

// Drain takes what the rings hold, as of now (ticks), and notes which calls
// have been open since when.
func (d *Drainer) Drain(now uint64) {
	d.area = d.segment.Area(d.index)
	d.clock = ClockOf(d.segment.Header)
	for i := range d.area.Threads {
		d.ring(&d.area.Threads[i])
		d.open(&d.area.Threads[i], now)
	}
	segment.Store(&d.area.Rank.DrainedTicks, now)
}

// ClockOf is the clock of the segment's node, as far as it is known now.
func ClockOf(h *segment.Header) clock.Clock {
	anchors, syncs := measured(h)
	return clock.New(anchors, syncs)
}

func measured(h *segment.Header) ([2]clock.Anchor, [2]clock.Sync) {
	var anchors [2]clock.Anchor
	var syncs [2]clock.Sync
	for i, a := range []segment.ClockAnchor{h.Anchor[0], h.Newest()} {
		anchors[i] = clock.Anchor{Ticks: a.Ticks, Monotonic: a.Ns}
		// MonotonicNs is written last: with it, the others are there.
		syncs[i].At = segment.Load(&h.Sync[i].MonotonicNs)
		syncs[i].Offset, syncs[i].Error = h.Sync[i].OffsetNs, h.Sync[i].ErrorNs
	}
	return anchors, syncs
}

// ClockError is the uncertainty of the node's aligned time over a run of that
// length, ns.
func ClockError(h *segment.Header, length int64) int64 {
	_, syncs := measured(h)
	return clock.Uncertainty(syncs, length)
}

// ring takes the events that a thread has left since the last time. The writer
// does not wait for us: what it has overwritten is counted as lost, and a copy
// that it wrote into is thrown away (its stamp tells).
func (d *Drainer) ring(t *segment.ThreadArea) {
	head, tail := segment.Load(&t.RingHead), t.RingTail
	size := uint64(len(t.Ring))
	if head-tail > size {
		t.RingLost += head - size - tail
		tail = head - size
	}
	for ; tail < head; tail++ {
		event, whole := t.Ring[tail&(size-1)].Read(tail)
		if !whole {
			t.RingLost++
			continue
		}
		d.take(event)
	}
	segment.Store(&t.RingTail, tail)
}

// take adds an event to the bins and, if the rule keeps it, to the history.
func (d *Drainer) take(e segment.Event) {
	rank := d.area.Rank
	segment.Store(&rank.HistoryOffered, rank.HistoryOffered+1)
	if e.Thread == 0 {
		AddToBins(d.area, e.Enter, e.Leave, 1<<(e.Weight&63))
	}
	for d.keeps(&e, level(rank)) {
		n := rank.HistoryCount
		if n < d.room || d.grow() {
			d.area.History[n] = e
			segment.Store(&rank.HistoryCount, n+1)
			return
		}
		if level(rank) == history.MaxLevel {
			return
		}
		d.thin()
	}
}

// growth is by how many events at a time the history grows: 64 KiB of them.
const growth = 1024

// grow makes room for more of the history, and says whether it could.
func (d *Drainer) grow() bool {
	all := uint64(len(d.area.History))
	d.room = max(d.room, min(d.area.Rank.HistoryCount, all)) // what is in use is there
	next := min(d.room+growth, all)
	if d.full || next == d.room {
		return false
	}
	d.full = d.Reserve != nil && !d.Reserve(d.area.History[d.room:next])
	if !d.full {
		d.room = next
	}
	return !d.full
}

// level is the rank's, within what a level can be whatever a damaged segment
// says.
func level(r *segment.Rank) int { return int(min(r.HistoryLevel, history.MaxLevel)) }

// thin raises the level and drops what it does not keep.
func (d *Drainer) thin() {
	rank := d.area.Rank
	higher := level(rank) + 1
	segment.Store(&rank.HistoryLevel, uint64(higher))
	used := d.area.History[:min(rank.HistoryCount, uint64(len(d.area.History)))]
	kept := uint64(0)
	for i := range used {
		if e := &used[i]; d.keeps(e, higher) {
			d.area.History[kept] = *e
			kept++
		}
	}
	segment.Store(&rank.HistoryCount, kept)
}

func (d *Drainer) keeps(e *segment.Event, level int) bool {
	if level == 0 {
		return true
	}
	collective := e.Weight&segment.EventCollective != 0
	var chance uint32
	if collective && int(e.Comm) < len(d.area.Comms) {
		seed := history.Mix(d.segment.Header.SampleSeed ^ d.area.Comms[e.Comm].Id)
		chance = history.Chance(e.Sequence, seed)
	}
	return history.KeepEvent(collective, chance, d.clock.Time(e.Enter), d.clock.Time(e.Leave), level)
}

// open notes the call that the thread is in, so that it can be told since when
// a call lasts that was not timed. A call, or a time outside MPI, that has
// lasted from one look to the next is brought to the thread's attention: see
// the head of c/record.h.
func (d *Drainer) open(t *segment.ThreadArea, now uint64) {
	current, calls := segment.Load(&t.Current), uint64(0)
	if current == 0 {
		calls = callsOf(t)
	}
	switch {
	case current != t.SeenCurrent || calls != t.SeenCalls || t.FirstSeen == 0:
		segment.Store(&t.FirstSeen, now)
		segment.Store(&t.SeenBefore, d.area.Rank.DrainedTicks)
		segment.Store(&t.SeenCalls, calls)
		segment.Store(&t.SeenCurrent, current)
	case current == 0:
		segment.Store(&t.Attention, segment.AttentionNext)
	default:
		segment.Store(&t.Attention, segment.AttentionCall)
	}
}

func callsOf(t *segment.ThreadArea) uint64 {
	calls := uint64(0)
	for i := range t.Accounts {
		calls += segment.Load(&t.Accounts[i].Calls)
	}
	return calls
}

// AddToBins adds weight times the part of a call that lies in each bin. The
// bins begin at the rank's InitLeave; a run that outgrows them makes each
// twice as wide.
func AddToBins(a segment.Area, enter, leave, weight uint64) {
	rank, bins := a.Rank, a.Bins
	start := rank.InitLeave
	if start == 0 || leave <= enter || leave <= start || rank.BinTicks == 0 {
		return
	}
	enter = max(enter, start) - start
	leave -= start
	for leave >= rank.BinTicks*uint64(len(bins)) {
		if rank.BinTicks >= 1<<50 { // no clock ticks that long
			return
		}
		for i := range len(bins) / 2 {
			bins[i].Ticks = bins[2*i].Ticks + bins[2*i+1].Ticks
			bins[i].Calls = bins[2*i].Calls + bins[2*i+1].Calls
		}
		clear(bins[len(bins)/2:])
		rank.BinTicks *= 2
	}
	bins[leave/rank.BinTicks].Calls += weight
	for b := enter / rank.BinTicks; b <= leave/rank.BinTicks; b++ {
		from, to := max(enter, b*rank.BinTicks), min(leave, (b+1)*rank.BinTicks)
		bins[b].Ticks += (to - from) * weight
	}
}
