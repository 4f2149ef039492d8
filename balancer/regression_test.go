package balancer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRegression: what stays is believed, what is noise is not, and of few ranks nothing is
// said.
func TestRegression(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	line := func(ranks int, stays, noise float64) float64 {
		var l regression
		for range 5 {
			l.fade()
			for range ranks {
				x := 0.1 * random.NormFloat64()
				l.add(x, stays*x+noise*random.NormFloat64())
			}
		}
		return l.surely()
	}
	for range 100 {
		assert.Less(t, line(1000, 0, 0.1), 0.05, "noise alone")
		assert.Less(t, line(40, 0, 0.1), 0.3, "of few ranks noise may look like something that stays")
		assert.InDelta(t, 0.95, line(1000, 1, 0.03), 0.06, "what walks on from where it was")
		assert.InDelta(t, 0.4, line(1000, 0.5, 0.05), 0.15, "half of each")
		assert.Zero(t, line(10, 1, 0), "of few ranks nothing is told")
	}
}
