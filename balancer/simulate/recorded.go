package simulate

import (
	"math"

	"github.com/pkg/errors"

	"evenkeel/balancer"
)

// Recorded is a load that was measured: how long each rank computed in each
// cycle, when its ranges were even.
type Recorded struct {
	work []balancer.Work
}

// Record makes a load of times, by cycle and rank. Where items are the cause, the
// work of a rank lies evenly in its part of the items, and it can be done by any
// number of ranks; where ranks are, it takes the same ranks again.
func Record(times [][]float64, cause Cause, ranks int) (*Recorded, error) {
	if len(times) == 0 {
		return nil, errors.New("no cycle was recorded")
	}
	if cause != Items && cause != Ranks {
		return nil, errors.Errorf("there is no cause %q; there are items and ranks", cause)
	}
	r := &Recorded{}
	for k, took := range times {
		if len(took) == 0 || len(took) != len(times[0]) {
			return nil, errors.Errorf("cycle %d has the times of %d ranks, the first of %d", k, len(took), len(times[0]))
		}
		total := 0.0
		for rank, t := range took {
			if !(t >= 0) || math.IsInf(t, 0) {
				return nil, errors.Errorf("rank %d computed for %v seconds in cycle %d: a time must be a number and not negative", rank, t, k)
			}
			total += t
		}
		if cause == Items {
			r.work = append(r.work, balancer.Work{Costs: took})
			continue
		}
		if ranks != len(took) {
			return nil, errors.Errorf("%d ranks can't take the place of the %d that were recorded, if ranks are of different speed; leave the number out, or say that items are the cause", ranks, len(took))
		}
		r.work = append(r.work, balancer.Work{Costs: []float64{total}, Slowness: slowness(took, total)})
	}
	return r, nil
}

// idle is the slowness of a rank that did nothing in a cycle, which is none.
const idle = 1e-9

func slowness(took []float64, total float64) []float64 {
	slow := make([]float64, len(took))
	for r, t := range took {
		slow[r] = idle
		if total > 0 {
			slow[r] = max(idle, t/total*float64(len(took)))
		}
	}
	return slow
}

// Cycles is how many were recorded.
func (r *Recorded) Cycles() int { return len(r.work) }

// Work implements Load. Beyond its cycles a recording begins again.
func (r *Recorded) Work(cycle int) (takes, known balancer.Work) {
	w := r.work[cycle%len(r.work)]
	return w, w
}
