package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamedFigures(t *testing.T) {
	one, err := parseRows("a way|10\nanother|2.5\n", "|")
	require.NoError(t, err)
	assert.Equal(t, []namedFigure{{"a way", 10}, {"another", 2.5}}, one)
	for _, wrong := range []string{"", "a way", "a way|", "a way|x", "a|1|2"} {
		_, err := parseRows(wrong, "|")
		assert.Error(t, err, "%q", wrong)
	}
	shown, err := namedTable([][]namedFigure{{{"a way", 10}}, {{"a way", 30}}, {{"a way", 20}}})
	require.NoError(t, err)
	assert.Contains(t, shown, "| a way | 20 (10–30) |")
	_, err = namedTable([][]namedFigure{{{"a way", 10}}, {{"another", 30}}})
	assert.ErrorContains(t, err, "something else")
}
