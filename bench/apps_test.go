package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestApplicationsAreComparedWithinTheirRuns(t *testing.T) {
	f := appFigures{figures: map[string][]float64{}, sums: map[string]string{}}
	print := func(rate string) (all string) {
		for _, a := range applications {
			all += a.name + ".ours " + rate + " ab\n" + a.name + ".mpi 2 ab\n" + a.name + ".direct 8 ab\n"
		}
		return all
	}
	require.NoError(t, f.add("c.", print("4")))
	require.NoError(t, f.add("c.", print("8")))
	_, err := f.table()
	assert.Error(t, err, "Go's are missing")
	require.NoError(t, f.add("go.", print("1")))
	shown, err := f.table()
	require.NoError(t, err)
	assert.Contains(t, shown, "| GUPS, M updates/s | 6.00 (4.00–8.00) | 2.00 (2.00–2.00) | 3.00 (2.00–4.00) | 8.00 (8.00–8.00) | 0.75 (0.50–1.00) | 1.00 (1.00–1.00) | 2.00 (2.00–2.00) | 0.50 (0.50–0.50) |")
	assert.ErrorContains(t, f.add("go.", "gups.ours 1 ac\n"), "came to ac, and to ab before")
	assert.Error(t, f.add("c.", "gups.ours 1\n"))
	assert.Error(t, f.add("c.", "gups.ours x ab\n"))
	require.NoError(t, f.add("c.", "gups.ours 1 ab\n"))
	_, err = f.table()
	assert.ErrorContains(t, err, "was measured 3 and 2 times")
}
