package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChange: what the table counts.
func TestChange(t *testing.T) {
	for _, users := range []int{1, 9, 200} {
		c, err := change(5000, users)
		require.NoError(t, err)
		assert.Equal(t, 2*users, c.packets)
		assert.Positive(t, c.hops)
		assert.LessOrEqual(t, c.hops, c.schedule.Outer.Depth(users))
		assert.Greater(t, c.bytes, 10*users)
	}
}

func TestParseFigures(t *testing.T) {
	f, err := parseFigures("limit 1.5\nlookup 2\n")
	require.NoError(t, err)
	assert.Equal(t, figures{"limit": 1.5, "lookup": 2}, f)
	_, err = parseFigures("nothing")
	assert.ErrorContains(t, err, "nothing")
	_, err = parseFigures("lookup x")
	assert.Error(t, err)
}
