package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseLayouts(t *testing.T) {
	all, err := parseLayouts("a, b|1024|10|20\nc|8|1|2.5\n", 2)
	require.NoError(t, err)
	assert.Equal(t, []layoutFigures{{"a, b", 1024, []float64{10, 20}}, {"c", 8, []float64{1, 2.5}}}, all)
	for _, wrong := range []string{"", "a|1024|10", "a|x|10|20", "a|1024|10|0", "a|1024|10|20|30"} {
		_, err := parseLayouts(wrong, 2)
		assert.Error(t, err, "%q", wrong)
	}
}

func TestLayoutTableComparesWithinPairs(t *testing.T) {
	run := func(hand, alone, under float64) layoutRun {
		return layoutRun{alone: []layoutFigures{{"v", 8, []float64{hand, alone}}}, under: []layoutFigures{{"v", 8, []float64{hand, under}}}}
	}
	shown, err := layoutTable([]layoutRun{run(1000, 4000, 2000), run(1000, 9000, 3000), run(1000, 2000, 500)}, []string{"MPI_Pack"}, []int{1}, []int{0})
	require.NoError(t, err)
	assert.Contains(t, shown, "| v | 8 | 4 | 2 | 3.00 (2.00–4.00) | 1 | 0.50 (0.33–2.00) |")
}
