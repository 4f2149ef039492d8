package collectives

import (
	"math"

	"github.com/pkg/errors"
)

// Link is what a message between two tasks costs, by the LogGP model (Alexandrov,
// Ionescu, Schauser, Scheiman 1995). All times are in nanoseconds.
type Link struct {
	Latency  float64 // L: from the end of a message's sending to the beginning of its receipt
	Overhead float64 // o: a processor's work to send a message, or to receive one
	Gap      float64 // g: between two messages of one task, besides their bytes
	PerByte  float64 // G: for each byte of a message, the inverse of the bandwidth
}

// interval is the time from the beginning of one sending to that of the next.
func (l Link) interval(bytes float64) float64 {
	return max(l.Overhead, l.Gap+bytes*l.PerByte)
}

// hop is the time from the beginning of a sending to the end of its receipt.
func (l Link) hop(bytes float64) float64 {
	return l.Overhead + bytes*l.PerByte + l.Latency + l.Overhead
}

func (l Link) check() error {
	for _, figure := range []float64{l.Latency, l.Overhead, l.Gap, l.PerByte} {
		if figure < 0 || math.IsNaN(figure) || math.IsInf(figure, 0) {
			return errors.Errorf("latency %g, overhead %g, gap %g and %g per byte (ns) are no cost of a message",
				l.Latency, l.Overhead, l.Gap, l.PerByte)
		}
	}
	return nil
}

// Network is what messages cost in a job. All members of a group need the same
// figures, for they all choose their schedules from them.
type Network struct {
	Within  Link // between tasks of one node
	Between Link // between tasks of different nodes
	// Combine is a processor's work to combine one byte of two contributions to a
	// reduction, in nanoseconds.
	Combine float64
}

// Check says why these figures can't be those of a network.
func (n Network) Check() error {
	if err := n.Within.check(); err != nil {
		return errors.WithMessage(err, "within a node")
	}
	if err := n.Between.check(); err != nil {
		return errors.WithMessage(err, "between nodes")
	}
	if n.Combine < 0 || math.IsNaN(n.Combine) || math.IsInf(n.Combine, 0) {
		return errors.Errorf("%g ns to combine a byte", n.Combine)
	}
	return nil
}

// Load is what is to be sent: how much, and to how many.
type Load struct {
	Bytes     int
	Receivers int // all members but the root
	// Nodes is on how many nodes root and receivers are, and Fullest how many of
	// them are on the fullest node. Both 0 where that is not known: then everyone
	// is taken to be on a node of his own.
	Nodes, Fullest int
	// Reduce is for data that goes from the receivers to the root, combined on its
	// way; else it is a broadcast or, without bytes, a notification.
	Reduce bool
}

// Load describes what a group's members are to send.
func (g Group) Load(bytes int, reduce bool) Load {
	l := Load{Bytes: bytes, Receivers: len(g.tasks) - 1, Reduce: reduce}
	if g.nodes != nil {
		_, l.Nodes, l.Fullest = g.Size()
	}
	return l
}

// Cost predicts how long a schedule takes, in ns: from when the root begins until
// the last receiver has everything, or, of a reduction, from when all begin until
// the root has everything. A reduction is a broadcast run backwards, in which a
// parent also combines.
//
// Data in segments takes as long as the first segment, and for each of the others
// as long as the task that has the most to do with a segment.
func (n Network) Cost(s Schedule, l Load) float64 {
	if l.Receivers == 0 {
		return 0
	}
	e := estimate{schedule: s, load: l, between: n.link(n.Between, l), within: n.link(n.Within, l)}
	segments := 1.0
	e.bytes = float64(l.Bytes)
	if s.Segment > 0 && l.Bytes > int(s.Segment) {
		segments = math.Ceil(e.bytes / float64(s.Segment))
		e.bytes = e.bytes / segments
	}
	if l.Reduce {
		e.combine = e.bytes * n.Combine
	}
	return e.first() + (segments-1)*e.bottleneck()
}

// link is that of a level: without nodes there is only one.
func (n Network) link(l Link, load Load) Link {
	if load.Nodes == 0 {
		return n.Between
	}
	if load.Nodes == 1 {
		return n.Within
	}
	return l
}

// estimate is the cost of one segment in one schedule.
type estimate struct {
	schedule        Schedule
	load            Load
	between, within Link
	bytes           float64
	combine         float64 // a segment, at a parent
}

func (e estimate) interval(l Link) float64 {
	return max(l.interval(e.bytes), l.Overhead+e.combine)
}

func (e estimate) hop(l Link) float64 { return l.hop(e.bytes) + e.combine }

// twoLevels tells whether both levels of the schedule are used.
func (e estimate) twoLevels() bool { return e.schedule.Inner.Kind != None && e.load.Nodes > 0 }

// levels counts the receivers of the outer and the inner tree.
func (e estimate) levels() (outer, inner int) {
	if e.twoLevels() {
		return e.load.Nodes - 1, e.load.Fullest - 1
	}
	return e.load.Receivers, 0
}

// first is how long the first segment takes to reach everyone.
func (e estimate) first() float64 {
	outer, inner := e.levels()
	within := span(e.schedule.Inner, inner, e.interval(e.within), e.hop(e.within), 0, map[int]float64{})
	if !e.twoLevels() && e.schedule.Outer.Kind == Flat && e.load.Nodes > 1 {
		// The root sends to its own node first, and to the others then.
		near := e.load.Fullest - 1
		far := outer - near
		return max(float64(near)*e.interval(e.within)+float64(far-1)*e.interval(e.between)+e.hop(e.between),
			float64(near-1)*e.interval(e.within)+e.hop(e.within))
	}
	return span(e.schedule.Outer, outer, e.interval(e.between), e.hop(e.between), within, map[int]float64{})
}

// span is when the last of n receivers has the data, and has had it passed on in
// its node, which takes a task `after` from when it has sent to its children.
func span(s Shape, n int, interval, hop, after float64, known map[int]float64) float64 {
	switch {
	case n == 0:
		return after
	case s.Kind == Flat && after == 0:
		return float64(n-1)*interval + hop
	case s.Kind == Flat:
		return max(float64(n-1)*interval+hop+after, float64(n)*interval+after)
	case s == Chain && after == 0:
		return float64(n) * hop
	case s == Chain:
		return max(float64(n)*hop+after, float64(n-1)*hop+interval+after)
	}
	if time, found := known[n]; found {
		return time
	}
	last, children := 0.0, 0
	for first, end := range s.Ranges(n) {
		below := span(s, end-first-1, interval, hop, after, known)
		last = max(last, float64(children)*interval+hop+below)
		children++
	}
	if after > 0 {
		last = max(last, float64(children)*interval+after)
	}
	known[n] = last
	return last
}

// bottleneck is the most that one task has to do with each segment. A task that
// broadcasts receives a segment while its link is still busy with the last sending
// of the one before; one that reduces is held up by its processor or by its link.
func (e estimate) bottleneck() float64 {
	outer, inner := e.levels()
	children := float64(e.schedule.Outer.Degree(outer))
	local := 0.0
	if inner > 0 {
		local = float64(e.schedule.Inner.Degree(inner))
	}
	up := Link{} // to the parent of the busiest task; the root has none
	switch {
	case outer > int(children):
		up = e.between
	case outer > 0 && inner > 0 && children == 1:
		up = e.between
	case outer == 0 && inner > int(local):
		up = e.within
	}
	if e.load.Reduce {
		processor := children*(e.between.Overhead+e.combine) + local*(e.within.Overhead+e.combine) + up.Overhead
		network := children*(e.between.Gap+e.bytes*e.between.PerByte) + local*(e.within.Gap+e.bytes*e.within.PerByte)
		return max(processor, network)
	}
	between, within := e.between.interval(e.bytes), e.within.interval(e.bytes)
	if local > 0 {
		return children*between + (local-1)*within + max(within, e.within.Overhead+up.Overhead)
	}
	return (children-1)*between + max(between, e.between.Overhead+up.Overhead)
}

// Choose returns the schedule that the model finds fastest, and its cost in ns. It
// depends on its arguments alone, so all members of a group choose alike.
func (n Network) Choose(l Load) (Schedule, float64) {
	best, least := Schedule{Outer: flat}, math.Inf(1)
	for _, s := range n.candidates(l) {
		if cost := n.Cost(s, l); cost < least {
			best, least = s, cost
		}
	}
	return best, least
}

// flat is the tree in which the root sends to everyone by itself.
var flat = Shape{Kind: Flat}

// whole are the shapes for data in one piece, piecewise those for data in segments.
var (
	whole = []Shape{flat, Binomial, {Knomial, 3}, {Knomial, 4}, {Knomial, 5}, {Knomial, 6}, {Knomial, 8},
		{Knomial, 11}, {Knomial, 16}, {Knomial, 32}, {Knomial, 64}, Chain, {Kary, 2}, {Kary, 3}, {Kary, 4}}
	piecewise = []Shape{Chain, {Kary, 2}, {Kary, 3}, {Kary, 4}}
)

// minSegment is the length in bytes below which data is not cut.
const minSegment = 64

func (n Network) candidates(l Load) []Schedule {
	shapes, twoLevels := whole, l.Nodes > 1 && l.Fullest > 1
	inners := []Shape{{}}
	if twoLevels {
		inners = whole
	}
	var all []Schedule
	if twoLevels {
		all = append(all, Schedule{Outer: flat})
	}
	for _, outer := range shapes {
		for _, inner := range inners {
			all = append(all, Schedule{Outer: outer, Inner: inner})
		}
	}
	if l.Bytes <= minSegment {
		return all
	}
	if twoLevels {
		inners = piecewise
	}
	for _, outer := range piecewise {
		for _, inner := range inners {
			for segments := 2; segments*minSegment <= l.Bytes && segments <= 1<<14; segments = segments*3/2 + 1 {
				size := (l.Bytes + segments - 1) / segments
				all = append(all, Schedule{Outer: outer, Inner: inner, Segment: uint32(size)})
			}
		}
	}
	return all
}
