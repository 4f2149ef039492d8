package split

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTwiceAsFastRunsTwoTasks(t *testing.T) {
	p, err := New(300, []Rank{{1, 1}, {2, 2}}, Default)
	require.NoError(t, err)
	assert.Equal(t, []Task{{0, 100, 0}, {100, 200, 1}, {200, 300, 1}}, p.Tasks)
	assert.Equal(t, []int{0, 1, 3}, p.Begin)
	assert.Equal(t, []int{1, 2}, p.Concurrent)
	assert.Equal(t, 1, p.Delta)
}
