package analysis

import (
	"math"

	"evenkeel/runtime/history"
)

// clockSpans answers how wrong the time from a rank's arrival at an operation
// to the last arrival may be, given the errors of the nodes' clocks.
type clockSpans struct {
	several bool    // the operation has ranks on several nodes
	nodes   []int   // of the operation
	latest  []int64 // by node: its last arrival, if `seen` says so
	seen    []int64 // by node: turn
	// reach is by how much the arrivals of a node may in truth have come after
	// what seems to be the last arrival: for the node with the largest, and
	// for the one after it.
	best, second int64
	bestNode     int
}

func (s *clockSpans) read(m *matcher) {
	arrivals := m.op.Arrivals
	node := func(a history.Arrival) int { return m.run.Ranks[a.Rank].Node }
	s.several = false
	for _, a := range arrivals[1:] {
		if node(a) != node(arrivals[0]) {
			s.several = true
			break
		}
	}
	if !s.several {
		return
	}
	if s.seen == nil {
		s.seen = make([]int64, len(m.run.Nodes))
		s.latest = make([]int64, len(m.run.Nodes))
	}
	s.nodes = s.nodes[:0]
	for _, a := range arrivals {
		n := node(a)
		if s.seen[n] != m.turn {
			s.seen[n] = m.turn
			s.nodes = append(s.nodes, n)
		}
		s.latest[n] = a.Enter // arrivals are in order
	}
	s.best, s.second, s.bestNode = math.MinInt64/2, math.MinInt64/2, none
	for _, n := range s.nodes {
		reach := m.run.Nodes[n].ClockError - (m.op.Last().Enter - s.latest[n])
		if reach > s.best {
			s.second, s.best, s.bestNode = s.best, reach, n
		} else {
			s.second = max(s.second, reach)
		}
	}
}

// error is by how many nanoseconds the wait of `a` for the others may be
// wrong. Where the clocks may err by more than the ranks came apart, who was
// last may be wrong too, so one that seems to have waited for nobody counts as
// well.
func (s *clockSpans) error(m *matcher, a history.Arrival) int64 {
	if !s.several {
		return 0
	}
	class := m.op.Function.Needs()
	if root := m.rootAt; class == history.FromRoot || class == history.ToRoot && m.byRank[a.Rank] != root {
		if root == none || m.byRank[a.Rank] == root {
			return 0
		}
		after := max(a.Enter-m.op.Arrivals[root].Enter, 0)
		return max(m.clockError(a.Rank, m.op.Arrivals[root].Rank)-after, 0)
	}
	if class == history.Prefix || class == history.Neighbour {
		return s.widest(m) // each needs others
	}
	n := m.run.Ranks[a.Rank].Node
	reach := s.best
	if n == s.bestNode {
		reach = s.second
	}
	return max(m.run.Nodes[n].ClockError+reach, 0)
}

// widest is the largest error of the time between any two arrivals of the
// operation.
func (s *clockSpans) widest(m *matcher) int64 {
	if !s.several {
		return 0
	}
	best, second := int64(0), int64(0)
	for _, n := range s.nodes {
		e := m.run.Nodes[n].ClockError
		if e > best {
			best, second = e, best
		} else {
			second = max(second, e)
		}
	}
	return best + second
}
