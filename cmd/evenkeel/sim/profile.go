package sim

import (
	"github.com/pkg/errors"

	"evenkeel/runtime/profile"
)

// Times are what the ranks of a recorded job computed, in seconds, by bin of its
// timeline and rank: the cycles of a replay. Bins in which not all ranks ran are
// left out. The second result is the time of these bins in which even the
// slowest rank did not compute.
func Times(p *profile.Profile) (times [][]float64, besides float64, err error) {
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
