package sim

import (
	"slices"

	"github.com/pkg/errors"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// FewestCycles is how many cycles must have been found for a replay of them.
const FewestCycles = 4

// CycleTimes are what the ranks of a recorded job computed, in seconds, by cycle
// and rank. The second result is the time of these cycles in which even the
// slowest rank did not compute.
func CycleTimes(run *history.Run) (times [][]float64, besides float64) {
	const second = 1e9
	for _, c := range history.Cycles(run) {
		useful := make([]float64, len(c.Useful))
		for r, t := range c.Useful {
			useful[r] = float64(t) / second
		}
		times = append(times, useful)
		besides += max(0, float64(c.Length)/second-slices.Max(useful))
	}
	return times, besides
}

// BinTimes are the same by bin of the timeline, where nothing better is known of
// the job. Bins in which not all ranks ran are left out.
func BinTimes(p *profile.Profile) (times [][]float64, besides float64, err error) {
	t := &p.Timeline
	if len(t.MPI) < 2 || t.BinWidth <= 0 {
		return nil, 0, errors.New("the profile has no timeline of two ranks or more: there is nothing to balance")
	}
	ranks, group := p.Total.Ranks, max(1, t.Group)
	for b := range t.MPI[0] {
		useful, slowest := make([]float64, ranks), 0.0
		running := true
		for r := range useful {
			share := t.MPI[min(r/group, len(t.MPI)-1)][b]
			running = running && share >= 0
			useful[r] = max(0, t.BinWidth*(1-share))
			slowest = max(slowest, useful[r])
		}
		if running {
			times = append(times, useful)
			besides += t.BinWidth - slowest
		}
	}
	if len(times) == 0 {
		return nil, 0, errors.New("the profile's timeline has no part in which all ranks ran: the job was too short")
	}
	return times, besides, nil
}
