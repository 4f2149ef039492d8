package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFigure(t *testing.T) {
	figure, err := parseFigure("512.25\n")
	require.NoError(t, err)
	assert.Equal(t, 512.25, figure)
	for _, printed := range []string{"", "nonsense", "0", "-1", "1 2"} {
		_, err := parseFigure(printed)
		assert.Error(t, err, printed)
	}
}

func TestCostTableComparesWithTheReference(t *testing.T) {
	all := probes("/build")
	variants := []variant{{name: "tool"}}
	taken := []probed{
		{map[string][]pair{"tool": {{600, 500}, {600, 500}}}, map[string][]float64{"tool": {1.1, 1.2}, alone.name: {1, 1}}},
		{map[string][]pair{"tool": {{42.5, 10}, {42.5, 10}}}, map[string][]float64{"tool": {30, 32}, alone.name: {0, 0}}},
		{map[string][]pair{"tool": {{300, 300}, {300, 300}}}, map[string][]float64{"tool": {1, 1}, alone.name: {1, 1}}},
	}
	shown, err := costTable(all, taken, variants)
	require.NoError(t, err)
	lines := strings.Split(shown, "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[2], "| no library | 500.0 (500.0–500.0) | 1.000 (1.000–1.000) |  | 10.0 (10.0–10.0) | 0.0 (0.0–0.0) |  |")
	assert.Contains(t, lines[3], "| tool | 600.0 (600.0–600.0) | 1.150 (1.100–1.200) | 1.200 (1.200–1.200) |")
	assert.Contains(t, lines[3], "| 42.5 (42.5–42.5) | 31.0 (30.0–32.0) | 32.5 (32.5–32.5) |")
}

func TestBuiltVariantsLeavesOutWhatIsNotThere(t *testing.T) {
	build := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(build, "bench"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(build, "bench", "libwrap_clock.so"), nil, 0o600))
	built, missing := builtVariants(build)
	require.Len(t, built, 1)
	assert.Equal(t, "two clock reads and a ring entry", built[0].name)
	assert.Len(t, missing, 4)
}

func TestProcessorName(t *testing.T) {
	assert.Equal(t, "Some CPU @ 2 GHz", processorName("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"))
	assert.NotEmpty(t, processorName("CPU implementer : 0x41\n"))
}
