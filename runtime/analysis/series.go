package analysis

import "evenkeel/runtime/history"

// blocks is how many parts a run is cut into to see whether the imbalance
// drifts; fewer where there are not perBlock cycles for each.
const (
	blocks   = 16
	perBlock = 4
)

// seriesKey names the operations of one place in the program on one
// communicator: what happens there is compared from one time to the next.
type seriesKey struct {
	comm uint64
	site int32
}

// series adds up by how much each rank differs from the mean of all, over the
// cycles of a job. Only sums are kept, so it may be of any length.
type series struct {
	rows    int
	cycles  [blocks]float64 // by block: how many
	sums    []float64       // by row and block
	squares float64         // of all
	weight  float64         // operations that they stand for
	clock   float64         // by which a row's differences may all be wrong
}

func newSeries(rows int) *series {
	return &series{rows: rows, sums: make([]float64, rows*blocks)}
}

// add adds one row's difference in a cycle of a block.
func (s *series) add(row, block int, difference float64) {
	s.sums[row*blocks+block] += difference
	s.squares += difference * difference
}

// addSeries adds by how much each rank was later than the mean at an operation
// in which all wait for all: what the work since the one before has come to.
func (o *operations) addSeries(m *matcher) {
	op := m.op
	if op.Function.Needs() != history.AllToAll || op.Inter {
		return
	}
	first := op.First()
	mean, weight, lowest := 0.0, int64(1), first
	for _, a := range op.Arrivals {
		if a.Place < 0 || a.Place >= op.Size {
			return
		}
		mean += float64(a.Enter - first.Enter)
		weight = max(weight, m.event(a).Weight)
		if a.Place < lowest.Place {
			lowest = a
		}
	}
	mean /= float64(len(op.Arrivals))
	key := seriesKey{op.CommID, m.ranks[lowest.Rank].site[m.event(lowest).Account]}
	s := o.series[key]
	if s == nil {
		s = newSeries(op.Size)
		o.series[key] = s
	}
	if s.rows != op.Size {
		return
	}
	block := m.block(first.Enter)
	s.cycles[block]++
	s.weight += float64(weight)
	for _, a := range op.Arrivals {
		s.add(a.Place, block, float64(a.Enter-first.Enter)-mean)
	}
	s.clock = max(s.clock, float64(m.spans.widest(m)))
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

// components are the variance components of a nested analysis of variance,
// cycles in blocks in ranks, estimated from the mean squares so that chance
// differences between the means of few cycles do not look like a pattern. None
// is less than 0.
func (s *series) components() components {
	cycles, used := s.merge()
	total, squares := 0.0, 0.0 // of the cycles in blocks
	for _, n := range cycles {
		total += n
		squares += n * n
	}
	freedom := float64(s.rows - 1)
	if total < 2 || freedom < 1 {
		return components{}
	}
	between, within, means := 0.0, s.squares, 0.0
	for row := range s.rows {
		sum := 0.0
		sums := s.blockSums(row, len(cycles))
		for b, n := range cycles {
			if n > 0 {
				between += sums[b] * sums[b] / n
				within -= sums[b] * sums[b] / n
				sum += sums[b]
			}
		}
		between -= sum * sum / total
		mean := max(max(sum, -sum)/total-s.clock, 0)
		means += mean * mean
	}
	var c components
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
		total := 0.0
		for b, c := range s.cycles {
			cycles[b*n/blocks] += c
			total += c
		}
		used = 0
		for _, c := range cycles {
			if c > 0 {
				used++
			}
		}
		if n == 1 || total >= used*perBlock {
			return cycles, used
		}
	}
}

func (s *series) blockSums(row, n int) []float64 {
	sums := make([]float64, n)
	for b, sum := range s.sums[row*blocks : (row+1)*blocks] {
		sums[b*n/blocks] += sum
	}
	return sums
}

// count is how many cycles were seen.
func (s *series) count() float64 {
	n := 0.0
	for _, c := range s.cycles {
		n += c
	}
	return n
}
