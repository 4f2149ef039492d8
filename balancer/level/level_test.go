package level

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreedCoreTriggers(t *testing.T) {
	with := func(cores int) Snapshot {
		return Snapshot{Seen: Cores | Quota | Others | Nice, Cores: cores, Quota: math.Inf(1)}
	}
	v, err := Compare([]Snapshot{with(1), with(1)}, []Snapshot{with(1), with(2)}, 0.1)
	require.NoError(t, err)
	assert.Equal(t, Verdict{Resplit: true, Factors: []float64{1, 2}, Rank: 1, Reason: "rank 1 has 2 cores instead of 1"}, v)
}
