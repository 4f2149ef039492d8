package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGsmIsComparedWithinItsRuns(t *testing.T) {
	taken := map[string][]float64{}
	require.NoError(t, addFigures(taken, "c.", "put.ours 2\nput.mpi 20\nput.raw 1\nlarge.ours 30\nlarge.mpi 20\nlarge.raw 40\n"))
	require.NoError(t, addFigures(taken, "c.", "put.ours 4\nput.mpi 80\nput.raw 2\nlarge.ours 10\nlarge.mpi 20\nlarge.raw 10\n"))
	require.NoError(t, addFigures(taken, "go.", "put.ours 3\nput.raw 1\n"))
	row, err := gsmRow(remoteWays[0], taken)
	require.NoError(t, err)
	assert.Equal(t, []any{"PUT, 8 bytes, ns", "3.00 (2.00–4.00)", "50.00 (20.00–80.00)", "15.00 (10.00–20.00)", "1.50 (1.00–2.00)",
		"0.50 (0.50–0.50)", "3.00 (3.00–3.00)", "1.00 (1.00–1.00)"}, []any(row))
	row, err = gsmRow(remoteWay{name: "large", rate: true}, taken)
	require.NoError(t, err)
	assert.Equal(t, []any{"", "20.0 (10.0–30.0)", "20.0 (20.0–20.0)", "1.00 (0.50–1.50)", "25.0 (10.0–40.0)", "0.88 (0.75–1.00)", "", ""}, []any(row))
	_, err = gsmRow(remoteWay{name: "large", rate: true, inGo: true}, taken)
	assert.Error(t, err, "Go's are missing")
	assert.Error(t, addFigures(taken, "", "put.ours x\n"))
}
