package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"

	"evenkeel/balancer"
	"evenkeel/balancer/simulate"
)

// decisionRanks are how many ranks decide in a row of the table.
var decisionRanks = []int{2, 16, 128, 1024, 16_384, 131_072, 1_000_000}

// decided is what one controller took, in seconds: for a cycle after which it
// looked for better ranges, for one after which it did not, and, beside it, for
// reading the times of the ranks once.
type decided struct{ change, quiet, read float64 }

// measureDecision measures what a cycle costs each rank in the balancer, as a
// function of the number of ranks.
func measureDecision(ctx context.Context, b bench) (string, error) {
	taken := make([][]decided, len(decisionRanks))
	random := rand.New(rand.NewPCG(uint64(b.seed), 0))
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: balance-decision, round %d of %d\n", round+1, b.rounds)
		for _, i := range random.Perm(len(decisionRanks)) {
			if err := ctx.Err(); err != nil {
				return "", errors.Wrap(err, "stopped")
			}
			d, err := decide(decisionRanks[i])
			if err != nil {
				return "", err
			}
			taken[i] = append(taken[i], d)
		}
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"ranks", "new ranges, µs", "ns a rank", "no change, µs", "ns a rank", "reading the times once, µs"})
	for i, ranks := range decisionRanks {
		row, err := decisionRow(ranks, taken[i])
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown() + fmt.Sprintf("\n\nMedian (first–third quartile) of %d rounds whose order is shuffled (seed %d), each with a new controller; made by `%s`.\n\n%s",
		b.rounds, b.seed, b.command("balance-decision"), b.machine), nil
}

func decisionRow(ranks int, taken []decided) (table.Row, error) {
	row := table.Row{ranks}
	for _, column := range []struct {
		of   func(decided) float64
		verb string
	}{
		{func(d decided) float64 { return d.change * 1e6 }, "%.1f"},
		{func(d decided) float64 { return d.change * 1e9 / float64(ranks) }, "%.0f"},
		{func(d decided) float64 { return d.quiet * 1e6 }, "%.1f"},
		{func(d decided) float64 { return d.quiet * 1e9 / float64(ranks) }, "%.0f"},
		{func(d decided) float64 { return d.read * 1e6 }, "%.2f"},
	} {
		figures := make([]float64, len(taken))
		for i, d := range taken {
			figures[i] = column.of(d)
		}
		s, err := summarise(figures)
		if err != nil {
			return nil, err
		}
		row = append(row, s.format(column.verb))
	}
	return row, nil
}

// decide takes the times of two steps of a controller over ranks of different
// speed: of the one that finds new ranges, and of one when it has settled.
func decide(ranks int) (decided, error) {
	items := int64(ranks) * 1000
	load, err := simulate.Describe(simulate.Description{Shape: simulate.Constant, Cause: simulate.Ranks, Amplitude: 0.5, Seconds: 0.01, Period: 1}, items, ranks)
	if err != nil {
		return decided{}, err
	}
	var d decided
	watch := func(step func()) {
		start := time.Now()
		step()
		d.quiet = time.Since(start).Seconds()
		if d.quiet > d.change {
			d.change = d.quiet
		}
	}
	const cycles = 8
	result, err := simulate.Run(simulate.Setup{Items: items, Ranks: ranks, Cycles: cycles, Options: balancer.DefaultOptions(items, ranks), Watch: watch}, load)
	if err != nil {
		return decided{}, err
	}
	if result.Moves == 0 || result.Cycles[cycles-1].Changed {
		return decided{}, errors.Errorf("%d ranks: %d changes in %d cycles, where some are expected and then no more", ranks, result.Moves, cycles)
	}
	work, _ := load.Work(0)
	d.read = readTime(work.Slowness)
	return d, nil
}

// readTime is the time that it takes to find the largest of some numbers.
func readTime(values []float64) float64 {
	start := time.Now()
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v)
	}
	took := time.Since(start).Seconds()
	if largest == 0 { // so that the loop is not left out
		return 0
	}
	return took
}

// simulations are the ranks and cycles of the table of simulated runs, and how many runs, each
// with a seed of its own, a row sums up: a run of few ranks has a handful of bursts.
var simulations = []simulation{{4, 200, 10}, {64, 200, 10}, {1000, 200, 2}, {1_000_000, 12, 1}}

type simulation struct{ ranks, cycles, runs int }

// simulateBalance makes the table of simulated runs. It times nothing, and is the
// same on every machine.
func simulateBalance(ctx context.Context, b bench) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"load", "cause", "ranks", "cycles", "runs", "time of even", "oracle", "of oracle's gain", "last cycles above ideal", "changes a run", "items moved a change"})
	for _, shape := range simulate.Shapes() {
		for _, cause := range []simulate.Cause{simulate.Items, simulate.Ranks} {
			if shape == simulate.Noisy && cause == simulate.Items {
				continue // the same as the other: items do not differ
			}
			for _, s := range simulations {
				if err := ctx.Err(); err != nil {
					return "", errors.Wrap(err, "stopped")
				}
				fmt.Fprintf(os.Stderr, "bench: balance-simulated, %s, %s, %d ranks\n", shape, cause, s.ranks)
				row, err := simulatedRow(shape, cause, s, uint64(b.seed))
				if err != nil {
					return "", err
				}
				t.AppendRow(row)
			}
		}
	}
	return t.RenderMarkdown() + fmt.Sprintf("\n\nAmplitude 0.5 (of the noisy load 0.05), noise 0.01, 1000 items a rank, moving 100 ns an item and 100 µs each time, in cycles of 10 ms; the first run of a row has seed %d; made by `%s`.",
		b.seed, b.command("balance-simulated")), nil
}

func simulatedRow(shape simulate.Shape, cause simulate.Cause, s simulation, seed uint64) (table.Row, error) {
	d := simulate.Description{Shape: shape, Cause: cause, Amplitude: 0.5, Noise: 0.01, Seconds: 0.01, Period: 100}
	if shape == simulate.Noisy {
		d.Amplitude, d.Noise = 0.05, 0
	}
	items := int64(s.ranks) * 1000
	o := balancer.DefaultOptions(items, s.ranks)
	o.CostPerItem, o.CostOfMove = 100e-9, 100e-6
	var all simulate.Result // sums
	last, ideal := 0.0, 0.0
	for run := range s.runs {
		d.Seed = seed + uint64(run)
		load, err := simulate.Describe(d, items, s.ranks)
		if err != nil {
			return nil, err
		}
		r, err := simulate.Run(simulate.Setup{Items: items, Ranks: s.ranks, Cycles: s.cycles, Options: o}, load)
		if err != nil {
			return nil, err
		}
		all.Time, all.Static, all.Oracle = all.Time+r.Time, all.Static+r.Static, all.Oracle+r.Oracle
		all.Moves, all.Moved = all.Moves+r.Moves, all.Moved+r.Moved
		for _, c := range r.Cycles[s.cycles/2:] {
			last += c.Time
			ideal += c.Ideal
		}
	}
	of := "–"
	if all.Static > 1.001*all.Oracle {
		of = fmt.Sprintf("%.0f %%", 100*all.OfOracle())
	}
	moved := "–"
	if all.Moves > 0 {
		moved = fmt.Sprintf("%.0f %%", 100*float64(all.Moved)/float64(all.Moves)/float64(items))
	}
	return table.Row{shape, cause, s.ranks, s.cycles, s.runs, fmt.Sprintf("%.3f", all.Time/all.Static), fmt.Sprintf("%.3f", all.Oracle/all.Static), of,
		fmt.Sprintf("%.1f %%", 100*(last/ideal-1)), fmt.Sprintf("%.3g", float64(all.Moves)/float64(s.runs)), moved}, nil
}
