package analysis

import (
	"math"

	"evenkeel/runtime/profile"
)

// mostBins is the most bins that a timeline has.
const mostBins = 512

// grid is the run cut into bins of equal width: what each rank's main thread
// did in each.
type grid struct {
	start int64
	width int64 // ns
	bins  int
	rows  []gridRow
}

// gridRow is one rank's; all are nanoseconds by bin.
type gridRow struct {
	running []float64 // between its start and its end
	mpi     []float64 // in MPI
	looked  []float64 // in calls that were looked at, weighted,
	late    []float64 // and what of that was waiting for a late rank
}

// newGrid takes the width of the widest bins that a rank recorded, so that
// no rank's are cut finer than they are.
func newGrid(j *job) grid {
	g := grid{start: j.start}
	recorded := false
	for r := range j.run.Ranks {
		if rank := &j.run.Ranks[r]; len(rank.Bins) > 0 {
			recorded = true
			g.width = max(g.width, rank.BinWidth)
		}
	}
	if !recorded || j.end <= j.start {
		return g
	}
	for (j.end-j.start-1)/g.width >= mostBins {
		g.width *= 2
	}
	g.bins = int((j.end-j.start-1)/g.width) + 1
	g.rows = make([]gridRow, len(j.run.Ranks))
	all := make([]float64, 4*g.bins*len(g.rows))
	for r := range g.rows {
		row := &g.rows[r]
		for _, series := range []*[]float64{&row.running, &row.mpi, &row.looked, &row.late} {
			*series, all = all[:g.bins:g.bins], all[g.bins:]
		}
		rank := &j.run.Ranks[r]
		g.spread(row.running, rank.Start, rank.End, 1)
		for b, mpi := range rank.Bins {
			from := rank.Start + int64(b)*rank.BinWidth
			if to := min(from+rank.BinWidth, rank.End); to > from {
				g.spread(row.mpi, from, to, float64(max(mpi, 0))/float64(to-from))
			}
		}
		for b := range row.mpi {
			row.mpi[b] = min(row.mpi[b], row.running[b])
		}
	}
	return g
}

// spread adds the time between from and to, each nanosecond times weight, to
// the bins in which it lies.
func (g *grid) spread(series []float64, from, to int64, weight float64) {
	from, to = max(from, g.start), min(to, g.start+g.width*int64(g.bins))
	for from < to {
		b := (from - g.start) / g.width
		next := min(g.start+(b+1)*g.width, to)
		series[b] += float64(next-from) * weight
		from = next
	}
}

// addCall adds a call that was looked at.
func (g *grid) addCall(r int, c *call) {
	if g.bins == 0 {
		return
	}
	row := &g.rows[r]
	g.spread(row.looked, c.enter, c.leave, float64(c.weight))
	g.spread(row.late, c.enter, c.until, float64(c.weight))
}

// lateIn is how long rank r waited for a late rank in bin b: of its time in
// MPI the share that the calls which were looked at say.
func (g *grid) lateIn(r, b int) float64 {
	row := &g.rows[r]
	if row.looked[b] <= 0 {
		return 0
	}
	return row.mpi[b] * min(row.late[b]/row.looked[b], 1)
}

// timeline is the grid as the profile has it.
func (g *grid) timeline() profile.Timeline {
	t := profile.Timeline{
		BinWidth: seconds(float64(g.width)), Group: 1,
		MPI: [][]float64{}, Late: [][]float64{}, Efficiency: []float64{}, LoadBalance: []float64{},
	}
	if g.bins == 0 {
		t.BinWidth = 0
		return t
	}
	t.Group = (len(g.rows) + profile.MaxRows - 1) / profile.MaxRows
	for first := 0; first < len(g.rows); first += t.Group {
		mpi, late := g.row(first, min(first+t.Group, len(g.rows)))
		t.MPI, t.Late = append(t.MPI, mpi), append(t.Late, late)
	}
	for b := range g.bins {
		efficiency, balance := g.efficiency(b)
		t.Efficiency = append(t.Efficiency, efficiency)
		t.LoadBalance = append(t.LoadBalance, balance)
	}
	return t
}

// row is the mean shares of the ranks from first up to end, -1 where none ran.
func (g *grid) row(first, end int) (mpi, late []float64) {
	for b := range g.bins {
		running, inMPI, waiting := 0.0, 0.0, 0.0
		for r := first; r < end; r++ {
			running += g.rows[r].running[b]
			inMPI += g.rows[r].mpi[b]
			waiting += g.lateIn(r, b)
		}
		if running <= 0 {
			mpi, late = append(mpi, -1), append(late, -1)
			continue
		}
		mpi = append(mpi, rounded(inMPI/running))
		late = append(late, rounded(waiting/running))
	}
	return mpi, late
}

// efficiency is the share of the ranks' time in a bin that was useful, and how
// evenly; -1 where none ran.
func (g *grid) efficiency(b int) (efficiency, balance float64) {
	running, useful, most, ranks := 0.0, 0.0, 0.0, 0.0
	for r := range g.rows {
		row := &g.rows[r]
		if row.running[b] <= 0 {
			continue
		}
		share := (row.running[b] - row.mpi[b]) / row.running[b]
		running += row.running[b]
		useful += row.running[b] - row.mpi[b]
		most = max(most, share)
		ranks++
	}
	switch {
	case running <= 0:
		return -1, -1
	case most <= 0:
		return 0, 1
	}
	return rounded(useful / running), rounded(min(useful/running/most, 1))
}

// rounded keeps four decimals: the shares of a timeline are for pictures.
func rounded(share float64) float64 { return math.Round(share*1e4) / 1e4 }
