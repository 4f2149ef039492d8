package main

import (
	"testing"

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
	row, err := simulatedRow(simulate.Noisy, simulate.Ranks, 4, 20, 1)
	require.NoError(t, err)
	assert.Equal(t, []any{simulate.Noisy, simulate.Ranks, 4, 20, "1.000", "1.000", "–"}, []any(row[:7]))
	row, err = simulatedRow(simulate.Constant, simulate.Ranks, 4, 20, 1)
	require.NoError(t, err)
	assert.NotEqual(t, 0, row[8])
}
