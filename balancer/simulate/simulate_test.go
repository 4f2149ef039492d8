package simulate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"evenkeel/balancer"
)

func TestLook(t *testing.T) {
	for _, ranks := range []int{2, 4, 64, 1000} {
		for _, cause := range []Cause{Items, Ranks} {
			for _, shape := range Shapes() {
				for _, noise := range []float64{0, 0.02} {
					items := int64(ranks) * 1000
					l, err := Describe(Description{Shape: shape, Cause: cause, Amplitude: 0.5, Noise: noise, Seconds: 0.01, Period: 50, Seed: 1}, items, ranks)
					require.NoError(t, err)
					r, err := Run(Setup{Items: items, Ranks: ranks, Cycles: 200, Options: balancer.DefaultOptions(items, ranks)}, l)
					require.NoError(t, err)
					fmt.Printf("%5d %-5s %-11s noise %.2f: static %.3f time %.3f oracle %.3f ideal %.3f saved %5.1f%% of oracle %5.1f%% moves %d  first after:", ranks, cause, shape, noise, r.Static, r.Time, r.Oracle, r.Ideal, 100*r.Saved(), 100*r.OfOracle(), r.Moves)
					for _, c := range r.Cycles[:6] {
						fmt.Printf(" %.3f", c.Time/c.Ideal)
					}
					fmt.Println()
				}
			}
		}
	}
}
