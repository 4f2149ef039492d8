// Package balancer decides how the items of a computation are divided among
// ranks, from the history of how long each rank computed between two
// synchronisation calls.
//
// It is pure: it knows no MPI, clock or goroutine. A Controller that is given
// the same history reaches the same decision, bit for bit, wherever it runs, so
// the ranks of a job need not tell each other what they decided. For this only
// the four operations and square roots of IEEE 754 are used, in a fixed order,
// and products are rounded before they are added (no fused multiply-add).
package balancer

import (
	"fmt"
	"math"

	"github.com/pkg/errors"
)

// Cycle is what was measured in one computation cycle.
type Cycle struct {
	// Useful is how many seconds each rank computed between the last
	// synchronisation and this one, without its wait.
	Useful []float64
	// Costs, where the program knows them, are the costs of regions: the items
	// cut into len(Costs) parts of equal size (to within an item), in any unit.
	// Nil: not known in this cycle.
	Costs []float64
}

// Decision is what Controller.Step concluded.
type Decision struct {
	// Next is the partition of the next cycle; it belongs to the controller
	// until the next Step but one. Changed says whether it differs.
	Next    Partition
	Changed bool
	// Moved is how many items change their owner; Moves, Sends and Receives
	// say which.
	Moved int64
	// Gain is how many seconds the change is expected to save in the cycles to
	// come, and Cost what moving takes. Without a change they tell of the
	// best change that was looked at, if any.
	Gain, Cost float64
	// Policy is the rule that was used; of Auto, the one that it chose.
	Policy Policy
	// Reason is one sentence for people.
	Reason string
}

// Controller decides for one partition. Each rank has one; given the same
// history they agree. It is not safe for concurrent use.
type Controller struct {
	options Options
	now     Partition
	cycles  int
}

// NewController returns a controller that begins with a partition, which it
// copies.
func NewController(start Partition, o Options) (*Controller, error) {
	if err := start.Check(); err != nil {
		return nil, err
	}
	if err := o.check(start.Items(), start.Ranks()); err != nil {
		return nil, err
	}
	return &Controller{options: o, now: append(Partition(nil), start...)}, nil
}

// Partition is the current one. It must not be changed.
func (c *Controller) Partition() Partition { return c.now }

// SetCost tells what moving takes, as measured: seconds for each item that a
// rank gives or takes, and seconds for each move. All ranks must tell the same.
func (c *Controller) SetCost(perItem, perMove float64) error {
	if err := checkCosts(perItem, perMove); err != nil {
		return err
	}
	c.options.CostPerItem, c.options.CostOfMove = perItem, perMove
	return nil
}

// Step takes what was measured in a cycle and decides on the ranges of the
// next. With an error nothing has changed, and the cycle is not counted.
func (c *Controller) Step(h Cycle) (Decision, error) {
	if err := h.check(c.now.Ranks()); err != nil {
		return Decision{}, err
	}
	c.cycles++
	slowest, total := 0, 0.0
	for r, t := range h.Useful {
		total += t
		if t > h.Useful[slowest] {
			slowest = r
		}
	}
	wait := h.Useful[slowest] - total/float64(len(h.Useful))
	if c.options.Policy == Static || wait < c.options.ThresholdSeconds || wait < c.options.Threshold*h.Useful[slowest] {
		return Decision{Next: c.now, Policy: c.options.Policy, Reason: "the ranks wait for less than the threshold"}, nil
	}
	next := c.proportional(h.Useful)
	moved, busiest := traffic(c.now, next)
	d := Decision{Next: next, Changed: moved > 0, Moved: moved, Policy: Proportional,
		Gain: wait * float64(c.remaining()), Cost: c.options.CostOfMove + c.options.CostPerItem*float64(busiest),
		Reason: fmt.Sprintf("rank %d makes the others wait", slowest)}
	if d.Gain < d.Cost {
		d.Next, d.Changed, d.Moved = c.now, false, 0
		d.Reason = "moving costs more than it gains"
	}
	c.now = d.Next
	return d, nil
}

// remaining is how many cycles are expected to come.
func (c *Controller) remaining() int {
	if c.options.Horizon == 0 {
		return c.cycles
	}
	return max(0, c.options.Horizon-c.cycles)
}

// proportional gives each rank items in proportion to its rate in one cycle.
func (c *Controller) proportional(useful []float64) Partition {
	rates := make([]float64, len(useful))
	total := 0.0
	for r, t := range useful {
		rates[r] = float64(c.now.Size(r)+1) / max(t, 1e-9)
		total += rates[r]
	}
	next := make(Partition, len(c.now))
	items, low, sum := c.now.Items(), c.options.MinItems, 0.0
	for r := range rates {
		sum += rates[r]
		left := int64(len(rates) - r - 1)
		next[r+1] = min(items-left*low, max(next[r]+low, int64(float64(items)*(sum/total))))
	}
	next[len(rates)] = items
	return next
}

func (h Cycle) check(ranks int) error {
	if len(h.Useful) != ranks {
		return errors.Errorf("times of %d ranks were given, but there are %d", len(h.Useful), ranks)
	}
	for r, t := range h.Useful {
		if !(t >= 0) || math.IsInf(t, 0) {
			return errors.Errorf("rank %d computed for %v seconds: a time must be a number and not negative", r, t)
		}
	}
	for i, cost := range h.Costs {
		if !(cost >= 0) || math.IsInf(cost, 0) {
			return errors.Errorf("region %d costs %v: a cost must be a number and not negative", i, cost)
		}
	}
	return nil
}
