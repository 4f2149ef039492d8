package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTurnsCompareNeighbours(t *testing.T) {
	// The machine became twice as slow after the first batch: each ratio is 1.5
	// all the same.
	batches, err := parseTurns("15 10\n30 20\n30 20\n")
	require.NoError(t, err)
	assert.Equal(t, turns{{15, 10}, {30, 20}, {30, 20}}, batches)
	assert.Equal(t, comparison{pair{30, 20}, 1.5}, batches.compare(pair.ratio))
	assert.Equal(t, comparison{pair{30, 20}, 10}, batches.compare(pair.added))
	for _, printed := range []string{"", "12", "1 2\n3", "0 1", "1 -1", "1 2 3"} {
		_, err := parseTurns(printed)
		assert.Error(t, err, printed)
	}
}
