// Package simulate plays a computation whose work is known through the balancer,
// with the same functions that a real run calls, and says what it would take. It
// is pure and deterministic.
package simulate

import (
	"slices"

	"github.com/pkg/errors"

	"evenkeel/balancer"
)

// Load is a computation: what each of its cycles asks of the ranks.
type Load interface {
	// Work is that of a cycle, counted from 0: what it takes, noise and all, and
	// what could have been known before. Cycles are asked for in order, and what is
	// returned is used before the next is.
	Work(cycle int) (takes, known balancer.Work)
}

// Setup is what to simulate.
type Setup struct {
	Items   int64
	Ranks   int
	Cycles  int
	Options balancer.Options
	// Tell gives the costs of the regions to the controller, as a program does
	// that knows them.
	Tell bool
	// Watch, if it is not nil, is called around each decision, so that a caller
	// that has a clock can measure what decisions take.
	Watch func(decide func())
}

// Cycle is what happened in one cycle. Times are seconds.
type Cycle struct {
	Static  float64 `json:"static"`  // longest time of a rank, if the ranges stay even
	Time    float64 `json:"time"`    // and with the balancer
	Oracle  float64 `json:"oracle"`  // with the best ranges for this very cycle, but for its noise
	Ideal   float64 `json:"ideal"`   // if items could be cut
	Moving  float64 `json:"moving"`  // taken by the move at the end of the cycle
	Moved   int64   `json:"moved"`   // items
	Before  float64 `json:"before"`  // imbalance with even ranges: longest / mean - 1
	After   float64 `json:"after"`   // and with the balancer
	Policy  string  `json:"policy"`  // that made the change, if there was one
	Reason  string  `json:"reason"`  // of the decision
	Changed bool    `json:"changed"` // whether there was one
}

// Result is a simulated run. Totals are sums over the cycles.
type Result struct {
	Cycles []Cycle `json:"cycles"`
	Static float64 `json:"static"`
	Time   float64 `json:"time"` // with Moving
	Oracle float64 `json:"oracle"`
	Ideal  float64 `json:"ideal"`
	Moving float64 `json:"moving"`
	Moved  int64   `json:"moved"`
	Moves  int     `json:"moves"`
	// Last are the ranges at the end, and First what it began with.
	First balancer.Partition `json:"-"`
	Last  balancer.Partition `json:"-"`
}

// Saved is the share of the static time that the balancer saves.
func (r *Result) Saved() float64 { return share(r.Static-r.Time, r.Static) }

// OfOracle is the share of what the oracle saves that the balancer saves; 1 where
// there is nothing to save.
func (r *Result) OfOracle() float64 {
	if r.Static <= r.Oracle {
		return 1
	}
	return (r.Static - r.Time) / (r.Static - r.Oracle)
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// Run simulates, from an even partition. What moving takes is what Options say.
func Run(s Setup, load Load) (*Result, error) {
	if s.Cycles < 1 {
		return nil, errors.Errorf("%d cycles: at least one is needed", s.Cycles)
	}
	even, err := balancer.Even(s.Items, s.Ranks)
	if err != nil {
		return nil, err
	}
	controller, err := balancer.NewController(even, s.Options)
	if err != nil {
		return nil, err
	}
	result := &Result{Cycles: make([]Cycle, 0, s.Cycles), First: even}
	for k := range s.Cycles {
		takes, known := load.Work(k)
		c, err := cycle(s, takes, known, even, controller)
		if err != nil {
			return nil, errors.WithMessagef(err, "cycle %d", k)
		}
		result.add(c)
	}
	result.Last = controller.Partition()
	return result, nil
}

func (r *Result) add(c Cycle) {
	r.Cycles = append(r.Cycles, c)
	r.Static += c.Static
	r.Time += c.Time + c.Moving
	r.Oracle += c.Oracle
	r.Ideal += c.Ideal
	r.Moving += c.Moving
	r.Moved += c.Moved
	if c.Changed {
		r.Moves++
	}
}

func cycle(s Setup, w, known balancer.Work, even balancer.Partition, controller *balancer.Controller) (Cycle, error) {
	static, ideal, err := w.Times(even)
	if err != nil {
		return Cycle{}, err
	}
	best, err := balancer.Best(s.Items, s.Ranks, known, s.Options)
	if err != nil {
		return Cycle{}, err
	}
	oracle, _, err := w.Times(best)
	if err != nil {
		return Cycle{}, err
	}
	now := controller.Partition()
	times, _, err := w.Times(now)
	if err != nil {
		return Cycle{}, err
	}
	h := balancer.Cycle{Useful: times}
	if s.Tell {
		h.Costs = known.Costs
	}
	var d balancer.Decision
	decide := func() { d, err = controller.Step(h) }
	if s.Watch != nil {
		s.Watch(decide)
	} else {
		decide()
	}
	if err != nil {
		return Cycle{}, err
	}
	c := Cycle{
		Static: slices.Max(static), Time: slices.Max(times), Oracle: slices.Max(oracle), Ideal: ideal,
		Before: imbalance(static), After: imbalance(times),
		Reason: d.Reason, Changed: d.Changed, Moved: d.Moved,
	}
	if d.Changed {
		c.Moving, c.Policy = d.Cost, d.Policy.String()
	}
	return c, nil
}

func imbalance(times []float64) float64 {
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	if sum == 0 {
		return 0
	}
	return slices.Max(times)/(sum/float64(len(times))) - 1
}
