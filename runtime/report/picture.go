package report

import (
	"math"
	"strconv"

	"evenkeel/runtime/profile"
)

// picture is what the pictures of the page are drawn from, and what its scripts tell of
// them. It has its own form, and not the profile's, so that a page stays small: rows
// beyond profile.MaxRows are means of neighbouring ranks.
type picture struct {
	Ranks      rankRows    `json:"ranks"`
	Timeline   timeline    `json:"timeline"`
	Pairs      pairMatrix  `json:"pairs"`
	Operations []operation `json:"operations"`
}

// rankRows are the bars of the ranks, one entry per row.
type rankRows struct {
	Labels   []string  `json:"labels"`
	Hosts    []string  `json:"hosts"`
	Useful   []float64 `json:"useful"`
	Late     []float64 `json:"late"`
	Transfer []float64 `json:"transfer"`
	Own      []float64 `json:"own"`
	Unsplit  []float64 `json:"unsplit"`
	Caused   []float64 `json:"caused"`
}

// timeline is what the ranks × time pictures have besides their shares, which scripts
// read in the pictures.
type timeline struct {
	BinWidth   float64    `json:"bin"`
	Bins       int        `json:"bins"`
	Labels     []string   `json:"labels"`
	Hosts      []string   `json:"hosts"`
	Efficiency []*float64 `json:"efficiency"`
	Balance    []*float64 `json:"balance"`
}

// pairMatrix says who waited for whom; Waiter and Culprit index Labels.
type pairMatrix struct {
	Labels []string `json:"labels"`
	Cells  []cell   `json:"cells"`
}

type cell struct {
	Waiter  int     `json:"w"`
	Culprit int     `json:"c"`
	Cost    float64 `json:"cost"`
	Times   int64   `json:"times"`
}

// operation is one of the worst operations.
type operation struct {
	Name     string    `json:"name"`
	Where    string    `json:"where"`
	Begin    float64   `json:"begin"`
	Spread   float64   `json:"spread"`
	Error    float64   `json:"error"`
	Cost     float64   `json:"cost"`
	Ranks    []int     `json:"ranks"`
	At       []float64 `json:"at"`
	Complete bool      `json:"complete"` // all arrivals are there, not only the first and the last
}

func pictureOf(p *profile.Profile) picture {
	n := namesOf(p)
	return picture{Ranks: rankRowsOf(p, n), Timeline: timelineOf(p, n), Pairs: pairMatrixOf(p, n), Operations: operationsOf(p)}
}

// group is a run of neighbouring ranks that share a row.
type group struct{ from, to int }

func groups(ranks, size int) []group {
	var all []group
	for from := 0; from < ranks; from += size {
		all = append(all, group{from, min(from+size, ranks)})
	}
	return all
}

// label is "3", or "8–15" for a row of several ranks.
func (g group) label(p *profile.Profile, n names) string {
	first, last := &p.Ranks[g.from], &p.Ranks[g.to-1]
	label := n.short(first.World, first.Rank)
	if g.to-g.from > 1 {
		label += "–" + n.short(last.World, last.Rank)
	}
	return label
}

func (g group) host(p *profile.Profile) string { return clean(p.Nodes[p.Ranks[g.from].Node].Host) }

// mean is the mean of a figure over the ranks of the group.
func (g group) mean(p *profile.Profile, figure func(*profile.Rank) float64) float64 {
	sum := 0.0
	for i := g.from; i < g.to; i++ {
		sum += figure(&p.Ranks[i])
	}
	return rounded(sum / float64(g.to-g.from))
}

func rankRowsOf(p *profile.Profile, n names) rankRows {
	var rows rankRows
	for _, g := range groups(len(p.Ranks), max(1, (len(p.Ranks)+profile.MaxRows-1)/profile.MaxRows)) {
		rows.Labels = append(rows.Labels, g.label(p, n))
		rows.Hosts = append(rows.Hosts, g.host(p))
		rows.Useful = append(rows.Useful, g.mean(p, func(r *profile.Rank) float64 { return r.Useful }))
		rows.Late = append(rows.Late, g.mean(p, func(r *profile.Rank) float64 { return r.Late }))
		rows.Transfer = append(rows.Transfer, g.mean(p, func(r *profile.Rank) float64 { return r.Transfer }))
		rows.Own = append(rows.Own, g.mean(p, func(r *profile.Rank) float64 { return r.Own }))
		rows.Unsplit = append(rows.Unsplit, g.mean(p, func(r *profile.Rank) float64 { return r.Unsplit }))
		rows.Caused = append(rows.Caused, g.mean(p, func(r *profile.Rank) float64 { return r.Caused }))
	}
	return rows
}

func timelineOf(p *profile.Profile, n names) timeline {
	t := &p.Timeline
	line := timeline{BinWidth: t.BinWidth, Bins: len(t.Efficiency), Efficiency: curve(t.Efficiency), Balance: curve(t.LoadBalance)}
	if len(t.MPI) > 0 {
		for _, g := range groups(len(p.Ranks), t.Group) {
			line.Labels = append(line.Labels, g.label(p, n))
			line.Hosts = append(line.Hosts, g.host(p))
		}
	}
	return line
}

// curve rounds the points of a line; below 0 there is none.
func curve(points []float64) []*float64 {
	line := make([]*float64, len(points))
	for i, y := range points {
		if y >= 0 {
			y = rounded(y)
			line[i] = &y
		}
	}
	return line
}

// pairMatrixOf adds up the pairs in bands of neighbouring ranks, as many as a
// matrix can show; up to that many ranks, a band is a rank.
func pairMatrixOf(p *profile.Profile, n names) pairMatrix {
	const most = 64
	type task struct{ world, rank int }
	var m pairMatrix
	band := map[task]int{}
	for i, g := range groups(len(p.Ranks), max(1, (len(p.Ranks)+most-1)/most)) {
		m.Labels = append(m.Labels, g.label(p, n))
		for _, rank := range p.Ranks[g.from:g.to] {
			band[task{rank.World, rank.Rank}] = i
		}
	}
	at := map[[2]int]int{}
	for _, pair := range p.WaitsFor {
		waiter, known := band[task{pair.World, pair.Waiter}]
		culprit, alsoKnown := band[task{pair.World, pair.Culprit}]
		if !known || !alsoKnown {
			continue
		}
		place, seen := at[[2]int{waiter, culprit}]
		if !seen {
			place = len(m.Cells)
			at[[2]int{waiter, culprit}] = place
			m.Cells = append(m.Cells, cell{Waiter: waiter, Culprit: culprit})
		}
		m.Cells[place].Cost = rounded(m.Cells[place].Cost + pair.Cost)
		m.Cells[place].Times += pair.Times
	}
	return m
}

func operationsOf(p *profile.Profile) []operation {
	const most, allArrivals = 64, 64
	var all []operation
	for _, o := range p.Worst[:min(most, len(p.Worst))] {
		one := operation{Name: clean(o.Call), Where: clean(o.Communicator) + " #" + strconv.FormatUint(o.Sequence, 10),
			Begin: rounded(o.Begin), Spread: rounded(o.Spread), Error: rounded(o.Error), Cost: rounded(o.Cost), Complete: len(o.Arrivals) < allArrivals || len(p.Ranks) <= allArrivals}
		for _, arrival := range o.Arrivals[:min(allArrivals, len(o.Arrivals))] {
			one.Ranks = append(one.Ranks, arrival.Rank)
			one.At = append(one.At, rounded(arrival.At))
		}
		all = append(all, one)
	}
	return all
}

// rounded keeps four significant digits, which is more than a picture shows,
// and makes 0 of what JSON cannot hold.
func rounded(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil || math.IsNaN(y) || math.IsInf(y, 0) {
		return 0
	}
	return y
}
