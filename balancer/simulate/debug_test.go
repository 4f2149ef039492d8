package simulate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"evenkeel/balancer"
)

func TestDebug(t *testing.T) {
	run := func(ranks int, cause Cause, shape Shape, noise float64) {
		items := int64(ranks) * 1000
		l, err := Describe(Description{Shape: shape, Cause: cause, Amplitude: 0.5, Noise: noise, Seconds: 0.01, Period: 50, Seed: 1}, items, ranks)
		require.NoError(t, err)
		r, err := Run(Setup{Items: items, Ranks: ranks, Cycles: 200, Options: balancer.DefaultOptions(items, ranks)}, l)
		require.NoError(t, err)
		for i, c := range r.Cycles[:60] {
			fmt.Printf("%d %.3f %d %s %s\n", i, c.Time/c.Ideal, c.Moved, c.Policy, c.Reason)
		}
	}
	run(64, Items, Drifting, 0)
	run(1000, Ranks, Constant, 0)
}
