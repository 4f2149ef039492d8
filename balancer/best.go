package balancer

import "github.com/pkg/errors"

// Work is what a computation cycle asks of the ranks, where it is known.
type Work struct {
	// Costs are those of regions of equal size (to within an item), in seconds of
	// a rank of slowness 1.
	Costs []float64
	// Slowness is how much longer than that each rank takes; nil: all 1.
	Slowness []float64
}

func (w Work) check(p Partition) error {
	if len(w.Costs) == 0 {
		return errors.New("costs of 0 regions were given: at least one is needed")
	}
	if err := checkRegions(w.Costs, p.Items()); err != nil {
		return err
	}
	if w.Slowness == nil {
		return nil
	}
	if len(w.Slowness) != p.Ranks() {
		return errors.Errorf("the slowness of %d ranks was given, but there are %d", len(w.Slowness), p.Ranks())
	}
	for r, s := range w.Slowness {
		if !(s > 0 && s <= mostCost) {
			return errors.Errorf("the slowness of rank %d is %v: it must be above 0, and %v at most", r, s, mostCost)
		}
	}
	return nil
}

func (w Work) model(items int64) (model, error) {
	regions, err := Even(items, len(w.Costs))
	if err != nil {
		return model{}, err
	}
	return model{weights: weigh(regions, w.Costs), slowness: w.Slowness}, nil
}

// Best is the partition that does known work in the least time, to within a
// thousandth, and keeps the limits of o. It is what a program can begin with
// that knows what its items cost.
func Best(items int64, ranks int, w Work, o Options) (Partition, error) {
	even, err := Even(items, ranks)
	if err != nil {
		return nil, err
	}
	if err := o.check(items, ranks); err != nil {
		return nil, err
	}
	if err := w.check(even); err != nil {
		return nil, err
	}
	m, err := w.model(items)
	if err != nil {
		return nil, err
	}
	return divide(&m, items, ranks, limits{o.MinItems, o.MaxItems}), nil
}

// Times are how many seconds each rank takes for known work, and the time in
// which they could do it together if items could be cut.
func (w Work) Times(p Partition) (times []float64, ideal float64, err error) {
	if err := p.Check(); err != nil {
		return nil, 0, err
	}
	if err := w.check(p); err != nil {
		return nil, 0, err
	}
	m, err := w.model(p.Items())
	if err != nil {
		return nil, 0, err
	}
	times = make([]float64, p.Ranks())
	m.predict(p, times)
	return times, m.ideal(p.Ranks()), nil
}
