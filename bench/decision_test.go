package main

import (
	"fmt"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/balancer/simulate"
)

func TestDecisionRow(t *testing.T) {
	row, err := decisionRow(1000, []decided{{4e-6, 2e-6, 1e-7}, {6e-6, 2e-6, 1e-7}, {8e-6, 2e-6, 1e-7}})
	require.NoError(t, err)
	assert.Equal(t, []any{1000, "6.0 (4.0–8.0)", "6 (4–8)", "2.0 (2.0–2.0)", "2 (2–2)", "0.10 (0.10–0.10)"}, []any(row))
}

func TestDecideFindsNewRanges(t *testing.T) {
	d, err := decide(16)
	require.NoError(t, err)
	assert.Positive(t, d.change)
	assert.Positive(t, d.quiet)
}

func TestSimulatedRow(t *testing.T) {
	row, err := simulatedRow(simulate.Noisy, simulate.Ranks, simulation{4, 20, 1}, 1)
	require.NoError(t, err)
	assert.Equal(t, []any{simulate.Noisy, simulate.Ranks, 4, 20, 1, "1.000", "1.000", "–"}, []any(row[:8]))
	row, err = simulatedRow(simulate.Constant, simulate.Ranks, simulation{4, 20, 1}, 1)
	require.NoError(t, err)
	assert.NotEqual(t, "0", row[9])
	one, err := simulatedRow(simulate.Bursty, simulate.Ranks, simulation{4, 200, 1}, 1)
	require.NoError(t, err)
	other, err := simulatedRow(simulate.Bursty, simulate.Ranks, simulation{4, 200, 1}, 2)
	require.NoError(t, err)
	both, err := simulatedRow(simulate.Bursty, simulate.Ranks, simulation{4, 200, 2}, 1)
	require.NoError(t, err)
	changes := func(row table.Row) (n float64) {
		_, err := fmt.Sscan(row[9].(string), &n)
		require.NoError(t, err)
		return n
	}
	assert.NotEqual(t, changes(one), changes(other))
	assert.InDelta(t, (changes(one)+changes(other))/2, changes(both), 0.1)
}
