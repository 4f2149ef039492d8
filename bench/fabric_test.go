package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFabricRatiosAreWithinRuns(t *testing.T) {
	taken := map[string][]float64{"base": {10, 100, 10}, "way": {20, 300, 20}}
	row, err := fabricRow{title: "x", unit: "ns", way: "way", base: "base", goal: "≤ 3"}.row(taken)
	require.NoError(t, err)
	assert.Equal(t, []any{"x", "20 (20–300) ns", "2.00 (2.00–3.00)", "base", "≤ 3"}, []any(row))
	_, err = fabricRow{way: "other"}.row(taken)
	assert.Error(t, err)
	taken["way"] = taken["way"][1:]
	_, err = fabricRow{way: "way", base: "base"}.row(taken)
	assert.Error(t, err)
}

func TestParseNamed(t *testing.T) {
	named, err := parseFigures("line 280.1\nudp-put 5000\n")
	require.NoError(t, err)
	assert.Equal(t, figures{"line": 280.1, "udp-put": 5000}, named)
	for _, bad := range []string{"", "line", "line x", "line 0"} {
		_, err := parseFigures(bad)
		assert.Error(t, err, bad)
	}
}
