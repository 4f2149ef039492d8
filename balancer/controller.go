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
	"slices"

	"github.com/pkg/errors"
)

// Cycle is what was measured in one computation cycle, or in some that are so short
// that they were added up.
type Cycle struct {
	// Useful is how many seconds each rank computed between the last
	// synchronisation and this one, without its wait.
	Useful []float64
	// Cycles is how many were added up; 0: it is one.
	Cycles int
	// Costs, where the program knows them, are the costs of regions: the items
	// cut into len(Costs) parts of equal size (to within an item), in any unit.
	// Nil: not known in this cycle.
	Costs []float64
}

// Decision is what Controller.Step concluded.
type Decision struct {
	// Next is the partition of the next cycle; it is never written
	// to again, and must not be. Changed says whether it differs.
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
	// kind is the model that the gain was foreseen by.
	kind kind
}

// Controller decides for one partition. Each rank has one; given the same
// history they agree. It is not safe for concurrent use.
type Controller struct {
	options Options
	now     Partition
	cycles  int
	filter  *filter
	took    []float64 // what is believed that the ranks take with their ranges of now
	models  *models
	tried   tried
	// earlier is the partition before the last change, and what it took.
	earlier measured
	// moving is what moves take, carried how many items the busiest rank gave and took
	// in the last change, as long as it is not known what that took.
	moving  moving
	carried int64
	// age is how many cycles the partition has served. lasting is how many those
	// before it served, where the load proved not to be steady; 0: it did not.
	age, lasting int
	// lastMoved is how many items the last change moved, promised what it was to
	// save in a cycle. caution grows with each change that made things worse and
	// falls with each that kept at least half of its promise.
	lastMoved int64
	promised  float64
	caution   int
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
	for r := range start.Ranks() {
		if size := start.Size(r); size < o.MinItems {
			return nil, errors.Errorf("rank %d begins with %d items, but is to have at least %d; begin with what Best gives", r, size, o.MinItems)
		} else if o.MaxItems != nil && size > o.MaxItems[r] {
			return nil, errors.Errorf("rank %d begins with %d items, but may hold at most %d; begin with what Best gives", r, size, o.MaxItems[r])
		}
	}
	c := &Controller{options: o, now: append(Partition(nil), start...), caution: firstCaution}
	c.options.MaxItems = append([]int64(nil), o.MaxItems...)
	c.filter, c.took = newFilter(start.Ranks()), make([]float64, start.Ranks())
	c.models = newModels(start.Items(), start.Ranks())
	c.moving = moving{perMove: o.CostOfMove, perItem: o.CostPerItem}
	return c, nil
}

// Partition is the current one. It must not be changed.
func (c *Controller) Partition() Partition { return c.now }

// Step takes what was measured in a cycle and decides on the ranges of the
// next. With an error nothing has changed, and the cycle is not counted.
func (c *Controller) Step(h Cycle) (Decision, error) {
	if err := h.check(c.now.Items(), c.now.Ranks()); err != nil {
		return Decision{}, err
	}
	took := h.each()
	c.models.know(h.Costs)
	c.models.compare(c.now, took)
	if c.earlier.partition != nil && c.age == 0 {
		c.review(took)
	}
	c.cycles += max(1, h.Cycles)
	c.age += max(1, h.Cycles)
	if c.now.Items() < fewItems*int64(c.now.Ranks()) {
		c.tried.note(c.now, took, c.filter.typicalNoise())
	}
	now := measured{c.now, took, c.models.told(c.now)}
	c.filter.add(now, func(past measured, into []float64) {
		c.models.project(c.kindOf(c.options.Policy), past, now, into)
	})
	d := c.decide()
	if d.Changed {
		c.change(&d)
	}
	return d, nil
}

// Expected is what each rank is expected to take in the next cycle, in seconds;
// nil before the first Step. It must not be changed, and changes with the next Step.
func (c *Controller) Expected() []float64 {
	if c.cycles == 0 {
		return nil
	}
	return c.filter.next
}

// decide looks for a better partition.
func (c *Controller) decide() Decision {
	d := Decision{Next: c.now, Policy: c.options.Policy}
	if c.options.Policy == Static || c.now.Ranks() == 1 {
		d.Reason = "the ranges are to stay"
		return d
	}
	longest, mean := c.filter.believed(c.took, c.models.told(c.now), c.caution)
	least := max(c.options.ThresholdSeconds, float64(c.options.Threshold*longest))
	if c.caution > firstCaution {
		least *= float64(int(1) << (c.caution - firstCaution))
	}
	if wait := longest - mean; !(wait > 0 && wait >= least) {
		d.Reason = fmt.Sprintf("the ranks wait for %.3g s of a cycle of %.3g s, as far as can be told from noise, which is below the threshold", wait, longest)
		return d
	}
	first := true
	for _, try := range c.candidates(longest, mean) {
		if seen := c.tried.longest(try.Next); seen > 0 {
			try.Gain = min(try.Gain, longest-float64(seen*mean))
		}
		_, busiest := traffic(c.now, try.Next)
		try.Gain = float64(try.Gain * c.serves())
		try.Cost = c.moving.of(busiest)
		if first || try.Gain-try.Cost > d.Gain-d.Cost {
			d, first = try, false
		}
	}
	return c.weigh(d, longest, mean, least)
}

// weigh says whether the best change that was found is good enough: whether it
// saves the least that is worth anything, in seconds of a cycle, and more than it
// costs.
func (c *Controller) weigh(d Decision, longest, mean, least float64) Decision {
	saved := d.Gain / c.serves()
	moved, _ := traffic(c.now, d.Next)
	d.Reason = fmt.Sprintf("rank %d takes %.3g s of a mean of %.3g s", slices.Index(c.took, longest), longest, mean)
	switch {
	case moved == 0 || !(saved > 0 && saved >= least):
		d.Reason += ", but other ranges would not save enough"
	case d.Gain <= d.Cost:
		d.Reason += fmt.Sprintf(", but moving %d items takes longer than it would save", moved)
	default:
		d.Changed, d.Moved = true, moved
		d.Reason += fmt.Sprintf(", and %d items that move save %.3g s of each cycle", moved, saved)
		return d
	}
	d.Next = c.now
	return d
}

// serves is for how many cycles a change is expected to be of use: to the end
// of the run, or for as long again as it has run; but where ranges had to be
// changed again and again, for no longer than they used to last.
func (c *Controller) serves() float64 {
	left := c.cycles
	if c.options.Horizon > 0 {
		left = max(0, c.options.Horizon-c.cycles)
	}
	if c.lasting > 0 {
		left = min(left, max(c.lasting, c.age))
	}
	return float64(left)
}

// candidates are the changes that the policy has to offer, with what each would
// save in a cycle as the gain. There is always one. Auto offers the best ranges
// under the model that was right of late and, as this may cost less, a pairwise
// step. Where the ranges of now are known, so are those that were better.
func (c *Controller) candidates(longest, mean float64) []Decision {
	offers := c.offers(longest)
	if back, seen := c.tried.best(); back != nil && c.tried[0].again && !back.Equal(c.now) {
		d := Decision{Next: back, Policy: c.options.Policy, kind: c.kindOf(c.options.Policy)}
		d.Gain = longest - float64(max(seen, c.filter.noisy())*mean)
		offers = append(offers, d)
	}
	return offers
}

// offers are the changes that the policy makes of the times alone.
func (c *Controller) offers(longest float64) []Decision {
	l, took := limits{c.options.MinItems, c.options.MaxItems}, c.took
	step := func(next func(*pairs) Partition) []Decision {
		p := newPairs(c.now, took, c.earlier, l)
		to := next(&p)
		return []Decision{{Next: to, Policy: c.options.Policy, Gain: longest - p.longest(to), kind: byRank}}
	}
	switch c.options.Policy {
	case Pairwise:
		return step((*pairs).one)
	case KFastest:
		return step(func(p *pairs) Partition { return p.even(c.options.K) })
	case KFastestWeighted:
		return step(func(p *pairs) Partition { return p.weighted(c.options.K) })
	}
	k := c.kindOf(c.options.Policy)
	policy := Profiled
	if k == byRank {
		policy = Proportional
	}
	m := c.models.make(k, c.now, took, c.cycles)
	foreseen, noisy := make([]float64, len(took)), c.filter.noisy()
	offer := func(policy Policy, next Partition) Decision {
		then := m.predict(next, foreseen)
		then = max(then, meanOf(foreseen)*noisy)
		return Decision{Next: next, Policy: policy, Gain: longest - then, kind: k}
	}
	offers := []Decision{offer(policy, divide(&m, c.now.Items(), c.now.Ranks(), l))}
	if c.options.Policy == Auto {
		p := newPairs(c.now, took, c.earlier, l)
		offers = append(offers, offer(Pairwise, p.one()))
	}
	return offers
}

// change makes a decision's partition the current one.
func (c *Controller) change(d *Decision) {
	took := append([]float64(nil), c.took...)
	c.promised = d.Gain / c.serves()
	if c.lastMoved > 0 && d.Moved >= c.lastMoved/2 {
		c.lasting = c.age
	}
	c.models.promise(c.now, d.Next, took, c.cycles, d.kind)
	c.filter.changed(took, c.models.expected[d.kind])
	c.earlier = measured{partition: c.now, took: took}
	_, c.carried = traffic(c.now, d.Next)
	c.now, c.lastMoved, c.age = d.Next, d.Moved, 0
}

// kindOf is the model that a policy predicts by.
func (c *Controller) kindOf(p Policy) kind {
	switch p {
	case Auto:
		return c.models.best(c.filter.typicalNoise())
	case Profiled:
		return c.models.ofItems()
	}
	return byRank
}

// review looks, in the first cycle after a change, which model was right about
// it, and whether it did any good: what the ranks would have taken without it is
// reckoned by the model from what they took.
func (c *Controller) review(took []float64) {
	k := c.models.review(took)
	m := c.models.make(k, c.now, took, c.cycles)
	switch saved := m.predict(c.earlier.partition, nil) - slices.Max(took); {
	case saved < 0:
		c.caution = min(c.caution+1, mostCaution)
	case saved >= c.promised/2:
		c.caution = max(c.caution-1, 0)
	}
}

// A controller begins as if it had looked at 2^firstCaution cycles already: a
// difference must be so large that noise would not show it in as many. At most a
// saving must be 2^(mostCaution - firstCaution) = 4 times the threshold.
const (
	firstCaution = 4
	mostCaution  = 6
)

const (
	// mostSeconds is more than a cycle can take; larger times are mistakes, and
	// their sums might overflow.
	mostSeconds = 1e15
	mostCycles  = 1 << 30
	mostCost    = 1e100
)

// each is what the ranks took in one of the cycles.
func (h Cycle) each() []float64 {
	if h.Cycles <= 1 {
		return h.Useful
	}
	took := make([]float64, len(h.Useful))
	for r, t := range h.Useful {
		took[r] = t / float64(h.Cycles)
	}
	return took
}

func (h Cycle) check(items int64, ranks int) error {
	if h.Cycles < 0 || h.Cycles > mostCycles {
		return errors.Errorf("%d cycles were added up: give a number from 1 to %d, or 0 for one", h.Cycles, mostCycles)
	}
	if len(h.Useful) != ranks {
		return errors.Errorf("times of %d ranks were given, but there are %d", len(h.Useful), ranks)
	}
	for r, t := range h.Useful {
		if !(t >= 0 && t <= mostSeconds) {
			return errors.Errorf("rank %d computed for %v seconds: a time must be a number from 0 to %v", r, t, float64(mostSeconds))
		}
	}
	return checkRegions(h.Costs, items)
}

func checkRegions(costs []float64, items int64) error {
	if int64(len(costs)) > items {
		return errors.Errorf("costs of %d regions were given, but there are only %d items", len(costs), items)
	}
	for i, cost := range costs {
		if !(cost >= 0 && cost <= mostCost) {
			return errors.Errorf("region %d costs %v: a cost must be a number from 0 to %v", i, cost, mostCost)
		}
	}
	return nil
}
