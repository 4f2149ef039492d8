package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSpeedOfRanksMustShowAtOnce: what items cost is found out in steps, and the speed of ranks
// at once; so in the first two changes it must have foreseen half of what happened.
func TestSpeedOfRanksMustShowAtOnce(t *testing.T) {
	for _, one := range []struct {
		reviews int
		wrong   float64 // by rank, of 0.4 that was foreseen
		noise   float64
		best    kind
	}{{1, 0.3, 0, byItem}, {2, 0.3, 0, byItem}, {3, 0.3, 0, byRank}, {1, 0.19, 0, byRank}, {1, 0.3, 0.06, byRank}, {3, 0.6, 0, byItem}} {
		m := newModels(100, 2)
		m.reviews = one.reviews
		m.foreseen[byRank], m.wrong[byRank], m.wrong[byItem] = 0.4, one.wrong, 0.5
		assert.Equal(t, one.best, m.best(one.noise), "%v", one)
	}
}
