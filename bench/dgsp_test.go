package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStridedTableShowsSpeeds(t *testing.T) {
	run := func(hand, put, fromGo float64) stridedFigures {
		return stridedFigures{[]layoutFigures{{"8 of 16 bytes, 1 KiB", 1024, []float64{64, hand, 128, put}}}, []float64{fromGo}}
	}
	shown, err := stridedTable([]stridedFigures{run(256, 512, 100), run(512, 1024, 200), run(1024, 256, 400)})
	require.NoError(t, err)
	assert.Contains(t, shown, "| 8 of 16 bytes, 1 KiB | 16.0 (16.0–16.0) | 2.0 (1.0–4.0) | 8.0 (8.0–8.0) | 5.1 (2.6–10.2) | 2.0 (1.0–4.0) | 4.0 (2.0–8.0) |")
	_, err = stridedTable([]stridedFigures{{[]layoutFigures{{"8 of 16 bytes", 8, []float64{1}}}, []float64{1}}})
	assert.ErrorContains(t, err, "1 figures")
}

func TestProgramsOfRegularLayoutsStayShort(t *testing.T) {
	shown, err := programSizes()
	require.NoError(t, err)
	assert.Regexp(t, `8 of 16 bytes \| 1000000 \| 1\d \|`, shown)
}
