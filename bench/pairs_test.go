package main

import (
	"context"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSummariseGivesMedianAndQuartiles(t *testing.T) {
	s, err := summarise([]float64{7, 1, 3, 2, 6, 5, 4})
	require.NoError(t, err)
	assert.Equal(t, summary{median: 4, first: 2, last: 6}, s)
	assert.Equal(t, "4.0 (2.0–6.0)", s.format("%.1f"))
}

func TestSummariseOfFewFiguresGivesExtremes(t *testing.T) {
	s, err := summarise([]float64{3, 9})
	require.NoError(t, err)
	assert.Equal(t, summary{median: 6, first: 3, last: 9}, s)
	s, err = summarise([]float64{5})
	require.NoError(t, err)
	assert.Equal(t, summary{median: 5, first: 5, last: 5}, s)
	_, err = summarise(nil)
	assert.Error(t, err)
}

func TestPairsCompareNeighbours(t *testing.T) {
	// The machine became twice as slow after the first pair: each ratio is 1.5
	// all the same.
	pairs := []pair{{15, 10}, {30, 20}, {30, 20}}
	assert.Equal(t, []float64{1.5, 1.5, 1.5}, each(pairs, pair.ratio))
	assert.Equal(t, []float64{5, 10, 10}, each(pairs, pair.added))
}

// order notes which variants ran, one after the other.
func order(t *testing.T, seed int64, rounds int) []string {
	var ran []string
	b := bench{
		options:  options{rounds: rounds, seed: seed},
		variants: []variant{{name: "a"}, {name: "b"}, {name: "c"}},
	}
	taken, err := takePairs(context.Background(), "test", b, func(_ context.Context, v variant) (float64, error) {
		ran = append(ran, v.name)
		return float64(len(ran)), nil
	})
	require.NoError(t, err)
	for _, v := range b.variants {
		require.Len(t, taken[v.name], rounds)
		for round, p := range taken[v.name] {
			assert.InDelta(t, 1, max(p.added(), -p.added()), 0, "the two of a pair are neighbours")
			assert.Equal(t, round, (int(min(p.under, p.alone))-1)/6, "a figure of its own round")
			assert.Equal(t, v.name, ran[int(p.under)-1])
			assert.Equal(t, alone.name, ran[int(p.alone)-1])
		}
	}
	return ran
}

func TestTheSeedShufflesPairs(t *testing.T) {
	ran := order(t, 1, 40)
	assert.Equal(t, ran, order(t, 1, 40), "the seed decides the order")
	assert.NotEqual(t, ran, order(t, 2, 40))
	first := map[string]int{}
	for i := 0; i < len(ran); i += 6 {
		first[ran[i]]++
	}
	assert.Len(t, first, 4, "each variant, and the program alone, come first at times")
}

func TestPairsEndWithTheFirstError(t *testing.T) {
	b := bench{options: options{rounds: 3}, variants: []variant{{name: "a"}}}
	runs := 0
	_, err := takePairs(context.Background(), "test", b, func(context.Context, variant) (float64, error) {
		runs++
		return 0, errors.New("the program failed")
	})
	assert.EqualError(t, err, "the program failed")
	assert.Equal(t, 1, runs)
}
