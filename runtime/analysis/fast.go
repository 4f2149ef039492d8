package analysis

import (
	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// fast adds up what was done in MPI's place.
func fast(run *history.Run) profile.Fast {
	var sum history.Fast
	for r := range run.Ranks {
		sum.Add(run.Ranks[r].Fast)
	}
	return profile.Fast(sum)
}
