package analysis

import (
	"math"
	"slices"

	"github.com/montanaflynn/stats"

	"evenkeel/runtime/history"
)

const (
	// blocks is how many parts a run is cut into to see whether the imbalance
	// drifts; fewer where there are not perBlock cycles for each.
	blocks   = 16
	perBlock = 4
	// mostDifferences is how many figures a series keeps, and fewestCycles of
	// how many cycles it does so in any case.
	mostDifferences = 1 << 16
	fewestCycles    = 64
	// typical is how many times the largest difference of the median cycle a
	// difference may be before it counts as a disturbance.
	typical = 2
)

// seriesKey names the operations of one place in the program on one
// communicator: what happens there is compared from one time to the next.
type seriesKey struct {
	comm uint64
	site int32
}

// series is by how much each rank differs from the mean of all, in the cycles
// of a job or, where they are many, a sample of them.
type series struct {
	rows   int
	cycles []cycle
	level  int     // one cycle in 2^level is kept
	seen   float64 // cycles, kept or not
	weight float64 // cycles that they stand for
	clock  float64 // ns by which a row's differences may all be wrong
}

// cycle is the work before one synchronisation.
type cycle struct {
	chance      uint32
	block       int
	differences []float64 // ns, by row
}

// want says whether a cycle with that chance is one of the sample.
func (s *series) want(chance uint32) bool { return history.Kept(chance, s.level) }

// add adds a cycle of the sample, and makes the sample smaller when it gets
// too large.
func (s *series) add(c cycle) {
	s.cycles = append(s.cycles, c)
	for len(s.cycles) > fewestCycles && len(s.cycles)*s.rows > mostDifferences {
		s.level++
		s.cycles = slices.DeleteFunc(s.cycles, func(c cycle) bool { return !s.want(c.chance) })
	}
}

// addSeries adds by how much each rank was later than the mean at an operation
// in which all wait for all: what the work since the one before has come to.
func (o *operations) addSeries(m *matcher) {
	op := m.op
	if op.Function.Needs() != history.AllToAll || op.Inter {
		return
	}
	timed, lowest := int64(1), op.First()
	for _, a := range op.Arrivals {
		if a.Place < 0 || a.Place >= op.Size {
			return
		}
		timed = max(timed, m.event(a).Weight)
		if a.Place < lowest.Place {
			lowest = a
		}
	}
	key := seriesKey{op.CommID, m.ranks[lowest.Rank].site[m.event(lowest).Account]}
	s := o.series[key]
	if s == nil {
		s = &series{rows: op.Size}
		o.series[key] = s
	}
	s.seen++
	s.weight += float64(timed)
	s.clock = max(s.clock, float64(m.spans.widest(m)))
	c := cycle{chance: history.Chance(op.Sequence, history.Mix(op.CommID)), block: m.block(op.First().Enter)}
	if s.rows != op.Size || !s.want(c.chance) {
		return
	}
	c.differences = make([]float64, op.Size)
	for _, a := range op.Arrivals {
		c.differences[a.Place] = float64(a.Enter - op.First().Enter)
	}
	center(c.differences)
	s.add(c)
}

// center takes the mean of all from each.
func center(x []float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
	}
}

func (j *job) block(at int64) int {
	return int(min(max((at-j.start)*blocks/max(j.end-j.start, 1), 0), blocks-1))
}

// components is a variance between ranks and cycles, divided into what is the
// same throughout, what changes slowly, and what changes from one cycle to the
// next.
type components struct{ constant, drifting, random float64 }

func (c components) sum() float64 { return c.constant + c.drifting + c.random }

func (c *components) add(d components, weight float64) {
	c.constant += d.constant * weight
	c.drifting += d.drifting * weight
	c.random += d.random * weight
}

// explain keeps of the first two components the share that is given, and makes
// the rest random.
func (c components) explain(share float64) components {
	d := components{constant: c.constant * share, drifting: c.drifting * share}
	d.random = c.sum() - d.constant - d.drifting
	return d
}

// components divides the variance of the series. Single disturbances, however
// large, say nothing about how the load is spread: they are cut, and the share
// of the waiting that they cause counts as random.
func (s *series) components() components {
	if len(s.cycles) < 2 || s.rows < 2 {
		return components{}
	}
	kept := s.cut()
	return s.divide().explain(kept)
}

// cut limits all differences to what is typical, and returns the share of the
// waiting that is left.
func (s *series) cut() float64 {
	largest := make([]float64, len(s.cycles))
	for k, c := range s.cycles {
		for _, d := range c.differences {
			largest[k] = max(largest[k], math.Abs(d))
		}
	}
	median, _ := stats.Median(largest) // fails on an empty list alone
	limit := typical * median
	before, after := 0.0, 0.0
	for _, c := range s.cycles {
		before += slices.Max(c.differences) // how long a rank waits on average
		for i, d := range c.differences {
			c.differences[i] = min(max(d, -limit), limit)
		}
		center(c.differences)
		after += slices.Max(c.differences)
	}
	if before <= 0 {
		return 1
	}
	return min(after/before, 1)
}

// divide is a nested analysis of variance, cycles in blocks in ranks. The
// components are estimated from the mean squares, so that chance differences
// between the means of few cycles do not look like a pattern. None is less
// than 0.
func (s *series) divide() components {
	cycles, used := s.merge()
	sums := make([]float64, s.rows*len(cycles)) // by row and block
	within := 0.0
	for _, c := range s.cycles {
		for row, d := range c.differences {
			sums[row*len(cycles)+c.block*len(cycles)/blocks] += d
			within += d * d
		}
	}
	total, squares := 0.0, 0.0 // of the cycles in blocks
	for _, n := range cycles {
		total += n
		squares += n * n
	}
	between, means := 0.0, 0.0
	for row := range s.rows {
		sum := 0.0
		for b, n := range cycles {
			if in := sums[row*len(cycles)+b]; n > 0 {
				between += in * in / n
				within -= in * in / n
				sum += in
			}
		}
		between -= sum * sum / total
		mean := max(math.Abs(sum)/total-s.clock, 0)
		means += mean * mean
	}
	var c components
	freedom := float64(s.rows - 1)
	if total > used {
		c.random = max(within, 0) / (freedom * (total - used))
	}
	if used > 1 {
		// Blocks of different lengths count as this many cycles each.
		each := (total - squares/total) / (used - 1)
		c.drifting = max((between/(freedom*(used-1))-c.random)/each, 0)
	}
	c.constant = max(means/freedom-c.drifting*squares/(total*total)-c.random/total, 0)
	return c
}

// merge is the cycles by block, and how many blocks are not empty, with
// neighbouring blocks put together until they hold enough.
func (s *series) merge() (cycles []float64, used float64) {
	for n := blocks; ; n /= 2 {
		cycles = make([]float64, n)
		for _, c := range s.cycles {
			cycles[c.block*n/blocks]++
		}
		used = 0
		for _, c := range cycles {
			if c > 0 {
				used++
			}
		}
		if n == 1 || float64(len(s.cycles)) >= used*perBlock {
			return cycles, used
		}
	}
}
