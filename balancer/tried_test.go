package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTried: what partitions take is known once they were come back to, and forgotten when the
// same one takes something else.
func TestTried(t *testing.T) {
	var seen tried
	one, other := Partition{0, 1, 3}, Partition{0, 2, 3}
	seen.note(one, []float64{3, 1}, 0)
	seen.note(one, []float64{3, 1}, 0)
	seen.note(other, []float64{1, 4}, 0)
	assert.Zero(t, seen.longest(one), "the load may have been another one")
	seen.note(one, []float64{6.2, 2}, 0)
	assert.InDelta(t, 1.502, seen.longest(one), 0.01, "as a part of the mean, however much there is to do")
	assert.Zero(t, seen.longest(other))
	seen.note(other, []float64{1, 4}, 0)
	best, longest := seen.best()
	assert.Equal(t, one, best)
	assert.InDelta(t, 1.502, longest, 0.01)

	seen.note(other, []float64{1, 3}, 0.1)
	assert.NotZero(t, seen.longest(one), "it may be noise")
	seen.note(other, []float64{1, 3}, 0)
	assert.Zero(t, seen.longest(one))
	assert.Zero(t, seen.longest(other))

	for last := range int64(2 * mostTried) {
		seen.note(Partition{0, last, 100}, []float64{1, 1}, 0)
	}
	assert.Len(t, seen, mostTried)
}
