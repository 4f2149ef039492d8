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
	return clock.New(anchors, syncs, 0)
}

func measured(h *segment.Header) ([2]clock.Anchor, [2]clock.Sync) {
	var anchors [2]clock.Anchor
	var syncs [2]clock.Sync
	for i := range anchors {
		anchors[i] = clock.Anchor{Ticks: h.Anchor[i].Ticks, Monotonic: h.Anchor[i].Ns}
		syncs[i] = clock.Sync{At: h.Sync[i].MonotonicNs, Offset: h.Sync[i].OffsetNs, Error: h.Sync[i].ErrorNs}
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
		slot := &t.Ring[tail&(size-1)]
		if segment.Load(&slot.Stamp) != tail+1 {
			t.RingLost++
			continue
		}
		event := *slot
		if segment.Load(&slot.Stamp) != tail+1 {
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
	if len(d.area.History) == 0 {
		return
	}
	for d.keeps(&e, int(rank.HistoryLevel)) {
		n := rank.HistoryCount
		if n < uint64(len(d.area.History)) {
			d.area.History[n] = e
			segment.Store(&rank.HistoryCount, n+1)
			return
		}
		if rank.HistoryLevel >= 32 { // nothing is left to thin out
			return
		}
		d.thin()
	}
}

// thin raises the level and drops what it does not keep.
func (d *Drainer) thin() {
	rank := d.area.Rank
	level := rank.HistoryLevel + 1
	segment.Store(&rank.HistoryLevel, level)
	kept := uint64(0)
	for i := range d.area.History[:rank.HistoryCount] {
		if e := &d.area.History[i]; d.keeps(e, int(level)) {
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
// a call lasts that was not timed.
func (d *Drainer) open(t *segment.ThreadArea, now uint64) {
	current := segment.Load(&t.Current)
	if current != t.SeenCurrent {
		segment.Store(&t.FirstSeen, now)
		segment.Store(&t.SeenCurrent, current)
	}
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
