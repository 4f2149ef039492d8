package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"

	"github.com/montanaflynn/stats"
	"github.com/pkg/errors"
)

// pair is what a variant took, and the program without a library right before
// or after it.
type pair struct {
	under, alone float64
}

func (p pair) ratio() float64 { return p.under / p.alone }
func (p pair) added() float64 { return p.under - p.alone }

func underOf(p pair) float64 { return p.under }
func aloneOf(p pair) float64 { return p.alone }

// takePairs measures, in each round and for each variant with a library, one
// pair. The seed shuffles the variants of a round and which of a pair goes
// first. What is measured is named on stderr, with the progress.
func takePairs(ctx context.Context, what string, b bench, once func(context.Context, variant) (float64, error)) (map[string][]pair, error) {
	taken := map[string][]pair{}
	random := rand.New(rand.NewSource(b.seed))
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: %s, round %d of %d\n", what, round+1, b.rounds)
		for _, i := range random.Perm(len(b.variants)) {
			v := b.variants[i]
			p, err := takePair(ctx, v, random.Intn(2) == 0, once)
			if err != nil {
				return nil, err
			}
			taken[v.name] = append(taken[v.name], p)
		}
	}
	return taken, nil
}

func takePair(ctx context.Context, v variant, aloneFirst bool, once func(context.Context, variant) (float64, error)) (p pair, err error) {
	if aloneFirst {
		if p.alone, err = once(ctx, alone); err != nil {
			return p, err
		}
	}
	if p.under, err = once(ctx, v); err != nil {
		return p, err
	}
	if !aloneFirst {
		p.alone, err = once(ctx, alone)
	}
	return p, err
}

// each applies a function of a pair to all of them.
func each(pairs []pair, of func(pair) float64) []float64 {
	var figures []float64
	for _, p := range pairs {
		figures = append(figures, of(p))
	}
	return figures
}

// summary is the middle and the spread of some figures.
type summary struct {
	median      float64
	first, last float64 // quartiles
}

// summarise needs at least one figure; below four, the quartiles are the
// extremes.
func summarise(figures []float64) (summary, error) {
	median, err := stats.Median(figures)
	if err != nil {
		return summary{}, errors.Wrap(err, "the median of no figures")
	}
	if len(figures) < 4 {
		low, _ := stats.Min(figures)
		high, _ := stats.Max(figures)
		return summary{median, low, high}, nil
	}
	quartiles, err := stats.Quartile(figures)
	if err != nil {
		return summary{}, errors.Wrap(err, "quartiles")
	}
	return summary{median, quartiles.Q1, quartiles.Q3}, nil
}

// format prints the median and the quartiles with this verb.
func (s summary) format(verb string) string {
	return fmt.Sprintf(verb+" ("+verb+"–"+verb+")", s.median, s.first, s.last)
}
