package analysis

import (
	"cmp"
	"slices"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// windows are those of global shared memory through which something went out, by rank.
func windows(run *history.Run) []profile.Window {
	all := []profile.Window{}
	for r := range run.Ranks {
		task := run.Ranks[r].Task
		for _, w := range run.Ranks[r].Windows {
			one := profile.Window{World: task.World, Rank: task.Rank, Job: w.Job, Number: w.Number, Puts: w.Puts, PutBytes: w.PutBytes,
				Gets: w.Gets, GetBytes: w.GetBytes, Atomics: w.Atomics, Refused: w.Refused, Fences: w.Fences}
			if commands(one) > 0 {
				all = append(all, one)
			}
		}
	}
	if len(all) > profile.MostWindows {
		slices.SortStableFunc(all, func(a, b profile.Window) int { return cmp.Compare(commands(b), commands(a)) })
		all = all[:profile.MostWindows]
		slices.SortFunc(all, func(a, b profile.Window) int {
			return cmp.Or(cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Number, b.Number))
		})
	}
	return all
}

func commands(w profile.Window) int64 { return w.Puts + w.Gets + w.Atomics + w.Refused }
