package report

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"evenkeel/runtime/profile"
)

// job describes a made-up run: ranks compute and then meet in a collective, bin
// after bin, and whoever computes longest is waited for by all.
type job struct {
	seed    uint64
	ranks   int
	nodes   int
	bins    int
	elapsed float64 // seconds
	// skew is how much longer the slowest rank computes than the mean; drift
	// how far, as a share of all ranks, the slow spot moves in the run.
	skew, drift float64
	sampled     bool // a sample of the calls was timed
}

// particles is the run that the golden files and most tests show.
var particles = job{seed: 1, ranks: 64, nodes: 4, bins: 240, elapsed: 48, skew: 0.55, drift: 0.4, sampled: true}

// profile makes the profile of the job: every sum in it is the sum of its
// parts.
func (j job) profile() *profile.Profile {
	m := &maker{job: j, random: rand.New(rand.NewPCG(j.seed, 2)), pairs: map[[2]int]*profile.Pair{}}
	p := &profile.Profile{
		Format: profile.Format, Version: profile.Version,
		Job: "1234", Command: "./particles --cells 64 --steps 2000 input/cluster.dat", Created: "2026-03-14T15:09:26Z",
		Complete: true, Notes: []string{},
	}
	m.machines(p)
	m.cycles(p)
	m.blame(p)
	m.scopes(p)
	m.places(p)
	m.worst(p)
	m.balance(p)
	return p
}

// maker holds what the parts of a profile are made from.
type maker struct {
	job
	random *rand.Rand
	pairs  map[[2]int]*profile.Pair
}

func (m *maker) machines(p *profile.Profile) {
	for n := range m.nodes {
		offset, uncertain := float64(n)*1.7e-4, 2.1e-6
		p.Nodes = append(p.Nodes, profile.Node{World: 1, Number: n, Host: fmt.Sprintf("node%02d", n+1), ClockOffset: &offset, ClockError: &uncertain})
	}
	for r := range m.ranks {
		node := r * m.nodes / m.ranks
		p.Nodes[node].Ranks++
		p.Ranks = append(p.Ranks, profile.Rank{World: 1, Rank: r, Node: node, State: "finalized", Elapsed: m.elapsed})
	}
}

// cycles fills the ranks and the timeline, and notes who waited for whom.
func (m *maker) cycles(p *profile.Profile) {
	width := m.elapsed / float64(m.bins)
	p.Timeline = profile.Timeline{BinWidth: width, Group: (m.ranks + profile.MaxRows - 1) / profile.MaxRows}
	rows := (m.ranks + p.Timeline.Group - 1) / p.Timeline.Group
	p.Timeline.MPI, p.Timeline.Late = matrix(rows, m.bins), matrix(rows, m.bins)
	for b := range m.bins {
		work := m.work(float64(b) / float64(m.bins))
		slowest := 0
		for r := range work {
			if work[r] > work[slowest] {
				slowest = r
			}
		}
		const busy = 0.95 // of a bin, for the slowest
		sum := 0.0
		for r := range work {
			useful := busy * work[r] / work[slowest]
			if r == slowest {
				useful = busy
			}
			late := busy - useful
			own := 0.008 + 0.004*m.random.Float64()
			m.add(p, r, b, width, profile.Split{Useful: useful, MPI: 1 - useful, Late: late, Own: own, Transfer: 1 - useful - late - own})
			sum += useful
			if late > 0 {
				m.wait(r, slowest, late*width)
				p.Ranks[slowest].Caused += late * width
			}
		}
		p.Ranks[slowest].Last += 8
		mean := sum / float64(m.ranks)
		p.Timeline.Efficiency = append(p.Timeline.Efficiency, mean)
		p.Timeline.LoadBalance = append(p.Timeline.LoadBalance, mean/busy)
	}
}

// work is how long each rank computes at a moment of the run (0 to 1): a bump
// over the ranks that moves, some noise, and a phase in which all are even.
func (m *maker) work(moment float64) []float64 {
	work := make([]float64, m.ranks)
	centre := 0.25 + m.drift*moment
	height := m.skew * (1 + 0.25*math.Sin(moment*40))
	if moment > 0.55 && moment < 0.62 {
		height *= 0.1
	}
	for r := range work {
		distance := ((float64(r)+0.5)/float64(m.ranks) - centre) / 0.09
		work[r] = 1 + height*math.Exp(-distance*distance) + 0.04*m.random.NormFloat64()
	}
	return work
}

// add books the split of one bin, in shares of it.
func (m *maker) add(p *profile.Profile, r, b int, width float64, s profile.Split) {
	rank := &p.Ranks[r]
	rank.Split = sum(rank.Split, scale(s, width))
	rank.Calls += 180
	rank.Bytes += 180 * 4096
	rank.Operations += 8
	row := r / p.Timeline.Group
	ranks := float64(min(p.Timeline.Group, m.ranks-row*p.Timeline.Group))
	p.Timeline.MPI[row][b] += s.MPI / ranks
	p.Timeline.Late[row][b] += s.Late / ranks
}

func (m *maker) wait(waiter, culprit int, cost float64) {
	key := [2]int{waiter, culprit}
	if m.pairs[key] == nil {
		m.pairs[key] = &profile.Pair{World: 1, Waiter: waiter, Culprit: culprit}
	}
	m.pairs[key].Cost += cost
	m.pairs[key].Times += 8
}

func (m *maker) blame(p *profile.Profile) {
	culprits := map[int]*profile.Culprit{}
	worst := map[int]float64{}
	late := 0.0
	for _, pair := range m.pairs {
		p.WaitsFor = append(p.WaitsFor, *pair)
	}
	slices.SortFunc(p.WaitsFor, func(a, b profile.Pair) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), a.Waiter-b.Waiter, a.Culprit-b.Culprit)
	})
	for _, pair := range p.WaitsFor {
		c := culprits[pair.Culprit]
		if c == nil {
			c = &profile.Culprit{World: 1, Rank: pair.Culprit}
			culprits[pair.Culprit] = c
		}
		c.Cost += pair.Cost
		c.Times = max(c.Times, pair.Times)
		late += pair.Cost
		if pair.Cost > worst[pair.Culprit] {
			worst[pair.Culprit], c.Victim = pair.Cost, pair.Waiter
		}
	}
	p.WaitsFor = p.WaitsFor[:min(1024, len(p.WaitsFor))]
	for _, c := range culprits {
		c.Share = c.Cost / late
		p.Culprits = append(p.Culprits, *c)
	}
	slices.SortFunc(p.Culprits, func(a, b profile.Culprit) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), a.Rank-b.Rank)
	})
}

func (m *maker) scopes(p *profile.Profile) {
	var whole profile.Split
	var calls int64
	slowest, mean := 0.0, 0.0
	for _, rank := range p.Ranks {
		whole = sum(whole, rank.Split)
		calls += rank.Calls
		slowest = max(slowest, rank.Useful)
		mean += rank.Useful / float64(m.ranks)
	}
	if m.sampled {
		whole.Error, whole.LateError = whole.MPI*0.002, whole.Late*0.003
	}
	p.Total = profile.Scope{Elapsed: m.elapsed, Ranks: m.ranks, Split: whole, Calls: calls, Efficiencies: efficiencies(mean, slowest, m.elapsed)}
	p.Quality = profile.Quality{Calls: calls, TimedCalls: calls, Events: calls, EventsSeen: calls, Operations: int64(m.bins) * 8, ClockError: 4.2e-6}
	if m.sampled {
		p.Quality.TimedCalls, p.Quality.Events, p.Quality.SampleLevel = calls/12, calls/40, 3
	}
	for _, region := range []struct {
		name, parent string
		share        float64
	}{{"forces", "step", 0.62}, {"exchange", "step", 0.17}, {"whole run", "", 0.13}, {"output", "whole run", 0.08}} {
		part := scale(whole, region.share)
		p.Regions = append(p.Regions, profile.Region{Name: region.name, Parent: region.parent, Entries: 2000,
			Scope: profile.Scope{Elapsed: m.elapsed * region.share, Ranks: m.ranks, Split: part, Calls: int64(float64(calls) * region.share),
				Efficiencies: efficiencies(mean*region.share, slowest*region.share, m.elapsed*region.share)}})
	}
	for i, name := range []string{"MPI_COMM_WORLD", "rows", "columns", "grid", "split of rows", "io"} {
		share := math.Pow(2, -float64(i+1))
		part := scale(whole, share)
		part.Useful = 0
		p.Communicators = append(p.Communicators, profile.Communicator{ID: fmt.Sprintf("%016x", 0x9e3779b97f4a7c15*uint64(i+1)), Name: name,
			Size: max(1, m.ranks>>i), Calls: int64(float64(calls) * share), Split: part, Operations: int64(m.bins) * 8,
			Spread: 0.021 / float64(i+1), LastRank: m.ranks / 3, LastShare: 0.4})
	}
}

func efficiencies(mean, slowest, elapsed float64) profile.Efficiencies {
	parallel, balance, communication := mean/elapsed, mean/slowest, slowest/elapsed
	transfer := min(1, communication*1.12)
	serialisation := communication / transfer
	return profile.Efficiencies{Parallel: &parallel, LoadBalance: &balance, Communication: &communication, Serialisation: &serialisation, Transfer: &transfer}
}

func (m *maker) places(p *profile.Profile) {
	shares := 0.0
	for i, site := range []struct {
		call, function, file string
		line                 int
	}{
		{"MPI_Allreduce", "total_energy", "src/forces.c", 212},
		{"MPI_Waitall", "exchange_halo", "src/halo.c", 88},
		{"MPI_Barrier", "step", "src/main.c", 141},
		{"MPI_Bcast", "read_input", "src/input.c", 57},
		{"MPI_Reduce", "particles::Histogram<double, 64>::collect(particles::Cell const&)", "src/histogram.cc", 303},
		{"MPI_Isend", "exchange_halo", "src/halo.c", 71},
		{"MPI_Irecv", "exchange_halo", "src/halo.c", 66},
		{"MPI_Gather", "", "", 0},
		{"MPI_File_write_all", "write_frame", "src/output.c", 0},
	} {
		share := math.Pow(0.5, float64(i+1))
		if i == 8 {
			share = 1 - shares
		}
		shares += share
		part := scale(p.Total.Split, share)
		part.Useful = 0
		p.CallSites = append(p.CallSites, profile.CallSite{Call: site.call, Module: "particles", Offset: fmt.Sprintf("0x%x", 0x1a40+i*0x73),
			Function: site.function, File: site.file, Line: site.line, Calls: int64(float64(p.Total.Calls) * share),
			Timed: int64(float64(p.Quality.TimedCalls) * share), Bytes: int64(1e9 * share), Longest: 0.08 * share, Split: part})
	}
}

func (m *maker) worst(p *profile.Profile) {
	for i := range 12 {
		spread := 0.09 / (1 + 0.15*float64(i))
		op := profile.Operation{Call: []string{"MPI_Allreduce", "MPI_Barrier", "MPI_Bcast"}[i%3], Communicator: "MPI_COMM_WORLD",
			Sequence: uint64(100 + 37*i), Begin: m.elapsed * float64(i+1) / 14, Spread: spread, Error: 4.2e-6}
		order := m.random.Perm(m.ranks)
		shown := order
		if m.ranks > 64 {
			shown = append(slices.Clone(order[:32]), order[m.ranks-32:]...)
		}
		for k, rank := range shown {
			at := spread * math.Pow(float64(k)/float64(max(1, len(shown)-1)), 2.2)
			op.Arrivals = append(op.Arrivals, profile.Arrival{Rank: rank, At: at})
			op.Cost += spread - at
		}
		op.First, op.Last = shown[0], shown[len(shown)-1]
		p.Worst = append(p.Worst, op)
	}
}

func (m *maker) balance(p *profile.Profile) {
	mean, slowest := p.Total.Useful/float64(m.ranks), 0.0
	byWork := slices.Clone(p.Ranks)
	slices.SortFunc(byWork, func(a, b profile.Rank) int { return cmp.Compare(b.Useful, a.Useful) })
	for _, rank := range byWork[:min(8, m.ranks)] {
		p.Balance.Slowest = append(p.Balance.Slowest, rank.Rank)
	}
	slowest = byWork[0].Useful
	p.Balance.Imbalance = slowest/mean - 1
	p.Balance.Kind, p.Balance.Advice = "drifting", "repartition"
	p.Balance.Constant, p.Balance.Drifting, p.Balance.Random = 0.23, 0.7, 0.07
	p.Balance.Gain = 1 - mean/slowest
	p.Balance.Why = fmt.Sprintf("93%% of the variance between ranks lasts longer than 20 cycles, and the slowest rank computes %s longer than the mean.", percent(p.Balance.Imbalance))
}

func matrix(rows, columns int) [][]float64 {
	m := make([][]float64, rows)
	for r := range m {
		m[r] = make([]float64, columns)
	}
	return m
}

func scale(s profile.Split, by float64) profile.Split {
	return profile.Split{Useful: s.Useful * by, MPI: s.MPI * by, Late: s.Late * by, Transfer: s.Transfer * by, Own: s.Own * by, Unsplit: s.Unsplit * by, Error: s.Error * by, LateError: s.LateError * by}
}

func sum(a, b profile.Split) profile.Split {
	return profile.Split{Useful: a.Useful + b.Useful, MPI: a.MPI + b.MPI, Late: a.Late + b.Late, Transfer: a.Transfer + b.Transfer, Own: a.Own + b.Own, Unsplit: a.Unsplit + b.Unsplit, Error: math.Hypot(a.Error, b.Error), LateError: math.Hypot(a.LateError, b.LateError)}
}
