package main

import (
	"context"
	"strings"

	"github.com/montanaflynn/stats"
	"github.com/pkg/errors"
)

// A machine may change its pace between two runs, and for seconds. So programs
// that measure something short make batches of it through the preloaded library
// and past it, by MPI's other names (PMPI_Send), in turns. What a library costs is
// then compared within moments; what it costs by being there at all, with what
// runs beside the program, shows only between runs.

// turns are the batches of one run: through the library, and past it.
type turns []pair

// parseTurns reads a line of two figures for each batch, of which there is one at
// least.
func parseTurns(printed string) (turns, error) {
	var all turns
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		through, past, found := strings.Cut(line, " ")
		if !found {
			return nil, errors.Errorf("expected two numbers in each line, but the program printed %q", line)
		}
		var p pair
		var err error
		if p.under, err = parseFigure(through); err != nil {
			return nil, err
		}
		if p.alone, err = parseFigure(past); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// comparison is the middle of turns: medians over the batches, of which the last is
// of what each pair says, and so not what the other two say.
type comparison struct {
	pair
	compared float64
}

// compare needs one batch at least.
func (t turns) compare(by func(pair) float64) comparison {
	middle := func(of func(pair) float64) float64 {
		median, err := stats.Median(each(t, of))
		if err != nil {
			panic(err) // there was no batch
		}
		return median
	}
	return comparison{pair{under: middle(underOf), alone: middle(aloneOf)}, middle(by)}
}

// probed is what was measured of a short operation, by the names of the variants.
type probed struct {
	runs     map[string][]pair    // pairs of runs, the program alone beside each
	compared map[string][]float64 // what tells, of runs of the program alone too
}

// takeTurns takes pairs of runs of a program that prints turns, and compares within
// each run.
func takeTurns(ctx context.Context, what string, b bench, by func(pair) float64,
	once func(context.Context, bench, variant) (string, error)) (probed, error) {
	compared := map[string][]float64{}
	runs, err := takePairs(ctx, what, b, func(ctx context.Context, v variant) (float64, error) {
		printed, err := once(ctx, b, v)
		if err != nil {
			return 0, err
		}
		batches, err := parseTurns(printed)
		if err != nil {
			return 0, err
		}
		found := batches.compare(by)
		compared[v.name] = append(compared[v.name], found.compared)
		return found.under, nil
	})
	return probed{runs, compared}, err
}
