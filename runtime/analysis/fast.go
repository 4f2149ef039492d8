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

// idle adds up what was done in waits.
func idle(run *history.Run) profile.Idle {
	var sum history.Idle
	for r := range run.Ranks {
		sum.Add(run.Ranks[r].Idle)
	}
	return profile.Idle{
		Sleeps: sum.Sleeps, Slept: float64(sum.SleptNs) / 1e9,
		Runs: sum.Runs, Ran: float64(sum.RanNs) / 1e9,
		Hooks: sum.Hooks, HooksOverrun: sum.HooksOverrun,
		Loans: sum.Loans, Lent: float64(sum.LentNs) / 1e9,
	}
}
