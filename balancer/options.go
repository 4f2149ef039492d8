package balancer

import (
	"strings"

	"github.com/pkg/errors"
)

// Policy is a rule that makes new ranges from measured times.
type Policy int

const (
	// Auto chooses between the others from what the history shows.
	Auto Policy = iota
	// Static changes nothing.
	Static
	// Pairwise moves items from the slowest rank to the fastest.
	Pairwise
	// KFastest moves items from the slowest rank to the Options.K fastest, as
	// many to each.
	KFastest
	// KFastestWeighted moves items from the slowest rank to the Options.K
	// fastest, the more the faster they are.
	KFastestWeighted
	// Proportional gives each rank items in proportion to its measured rate.
	Proportional
	// Profiled divides by what the items cost: as Cycle.Costs says, else as
	// learnt from what the ranges took that they were in.
	Profiled
)

var policyNames = []string{"auto", "static", "pairwise", "k-fastest", "k-fastest-weighted", "proportional", "profiled"}

// String is the policy's name, which ParsePolicy takes.
func (p Policy) String() string {
	if p < 0 || int(p) >= len(policyNames) {
		return "no policy"
	}
	return policyNames[p]
}

// PolicyNames are the names that ParsePolicy takes.
func PolicyNames() []string { return append([]string(nil), policyNames...) }

// ParsePolicy finds a policy by its name.
func ParsePolicy(name string) (Policy, error) {
	for i, known := range policyNames {
		if name == known {
			return Policy(i), nil
		}
	}
	return 0, errors.Errorf("there is no policy %q; there are %s", name, strings.Join(policyNames, ", "))
}

// Options are the terms under which a Controller decides. DefaultOptions gives
// them values that suit most programs.
type Options struct {
	Policy Policy
	// K is how many ranks the k-fastest policies give to; 0: every rank that is
	// faster than the mean.
	K int
	// Threshold and ThresholdSeconds: nothing is done unless the wait that it
	// would save is at least this share of the cycle, and at least so many
	// seconds of each cycle.
	Threshold        float64
	ThresholdSeconds float64
	// MinItems is the least that a rank keeps.
	MinItems int64
	// MaxItems is the most that each rank has memory for; nil: no limit.
	MaxItems []int64
	// Horizon is how many cycles the program will have in all; 0: not known,
	// and then as many are expected to come as there have been.
	Horizon int
	// CostPerItem and CostOfMove say what a move costs: so many seconds for each
	// item that a rank gives or takes, and so many each time, until
	// Controller.Moved tells better.
	CostPerItem float64
	CostOfMove  float64
}

// DefaultOptions are Auto, a threshold of 2 % and 10 µs, and at least one item
// on each rank if there are enough. Moving is taken to cost nothing until
// Controller.Moved tells better.
func DefaultOptions(items int64, ranks int) Options {
	o := Options{Policy: Auto, Threshold: 0.02, ThresholdSeconds: 10e-6}
	if items >= int64(ranks) {
		o.MinItems = 1
	}
	return o
}

func (o *Options) check(items int64, ranks int) error {
	if o.Policy < 0 || int(o.Policy) >= len(policyNames) {
		return errors.Errorf("there is no policy number %d", int(o.Policy))
	}
	if o.K < 0 || o.K >= ranks && ranks > 1 {
		return errors.Errorf("the %d fastest of %d ranks: give from 0 (all that are faster than the mean) to %d", o.K, ranks, ranks-1)
	}
	if o.Horizon < 0 {
		return errors.Errorf("%d cycles in all: give the number, or 0 if it is not known", o.Horizon)
	}
	if !(o.Threshold >= 0 && o.Threshold < 1) {
		return errors.Errorf("a threshold of %v: it is a share of the cycle, from 0 to below 1", o.Threshold)
	}
	if err := checkSeconds("threshold", o.ThresholdSeconds); err != nil {
		return err
	}
	if err := checkCosts(o.CostPerItem, o.CostOfMove); err != nil {
		return err
	}
	return checkLimits(items, ranks, o)
}
