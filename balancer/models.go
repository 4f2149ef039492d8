package balancer

import "math"

// kind says to what a model attributes that ranks take different times.
type kind int

const (
	// byItem: items differ, ranks are alike. What the items cost is learnt.
	byItem kind = iota
	// byRank: ranks differ, items are alike.
	byRank
	// byCost: items differ as the program says, and ranks differ besides.
	byCost
	kinds
)

// models are the explanations of why ranks take different times. While the
// ranges stay they can't be told apart; after a change they are judged by how
// well they foresaw it.
type models struct {
	items   int64
	uniform *weights
	costs   *weights // nil: the program has said nothing
	terrain *terrain
	// expected is what each kind foresaw of the last change; nil: it did not say.
	expected [kinds][]float64
	// used is the kind that the last change was made by.
	used kind
	// wrong is how wrong each was, as a share of the time; what is k changes old
	// counts fading^k.
	wrong [kinds]float64
}

func newModels(items int64, ranks int) *models {
	return &models{items: items, uniform: uniform(items), terrain: newTerrain(items)}
}

// know takes the costs of regions.
func (s *models) know(costs []float64) {
	total := 0.0
	for _, cost := range costs {
		total += cost
	}
	if total < nothing {
		return
	}
	regions, err := Even(s.items, len(costs))
	if err != nil {
		return // no regions, which total has excluded
	}
	s.costs = weigh(regions, costs)
}

// ofItems is the kind that knows most of the items.
func (s *models) ofItems() kind {
	if s.costs != nil {
		return byCost
	}
	return byItem
}

// best is the kind that was the least wrong. Where they were equally wrong, what
// the program says counts more than what was learnt, and that items differ is
// more likely than that processors do.
func (s *models) best() kind {
	best := s.ofItems()
	for _, k := range []kind{byItem, byRank} {
		if s.wrong[k] < s.wrong[best] {
			best = k
		}
	}
	return best
}

// make is a model by which the ranks take these times with their ranges of now.
func (s *models) make(k kind, now Partition, took []float64, cycle int) model {
	switch k {
	case byItem:
		s.terrain.fit(now, took, int32(cycle))
		return model{weights: s.terrain.weights()}
	case byCost:
		return model{weights: s.costs, slowness: slownessOf(s.costs, now, took)}
	}
	return model{weights: s.uniform, slowness: slownessOf(s.uniform, now, took)}
}

// slownessOf is what each rank needs for a unit of cost. A rank that had no work
// is taken to be as fast as the mean, and none to be more than a million times
// faster.
func slownessOf(w *weights, p Partition, took []float64) []float64 {
	slowness := make([]float64, len(took))
	mean := meanOf(took) * float64(len(took)) / w.total()
	c := cursor{weights: w}
	before := 0.0
	for r, t := range took {
		end := c.before(p[r+1])
		slowness[r] = mean
		if end > before {
			slowness[r] = max(t/(end-before), leastShare*mean)
		}
		before = end
	}
	return slowness
}

// project fills in what the ranks would have taken, in a cycle of the past, with
// other ranges.
func (s *models) project(k kind, past measured, now Partition, into []float64) {
	if k == byItem {
		spread(past, now, into)
		return
	}
	w := s.uniform
	if k == byCost {
		w = s.costs
	}
	m := model{weights: w, slowness: slownessOf(w, past.partition, past.took)}
	m.predict(now, into)
}

// spread divides what each range took evenly among its items, and adds up what
// the items of other ranges took.
func spread(past measured, now Partition, into []float64) {
	clear(into)
	giver, taker := 0, 0
	for at := int64(0); at < now.Items(); {
		for past.partition[giver+1] <= at {
			giver++
		}
		for now[taker+1] <= at {
			taker++
		}
		end := min(past.partition[giver+1], now[taker+1])
		into[taker] += float64(past.took[giver] * (float64(end-at) / float64(past.partition.Size(giver))))
		at = end
	}
}

// promise notes what each kind foresees of a change that is made by one of them.
func (s *models) promise(now, next Partition, took []float64, cycle int, used kind) {
	s.used = used
	for k := range kinds {
		if k == byCost && s.costs == nil {
			continue
		}
		if s.expected[k] == nil {
			s.expected[k] = make([]float64, len(took))
		}
		m := s.make(k, now, took, cycle)
		m.predict(next, s.expected[k])
	}
}

// review judges the kinds by what came, and returns the one that the change was
// made by. Only how the time lies on the ranks counts, not how much it is in all.
// What was learnt of the items is trusted the less, the more it was wrong.
func (s *models) review(took []float64) kind {
	total := 0.0
	for _, t := range took {
		total += t
	}
	if total == 0 {
		return s.used
	}
	for k, expected := range s.expected {
		if expected == nil {
			continue
		}
		foreseen := 0.0
		for _, t := range expected {
			foreseen += t
		}
		if foreseen == 0 {
			continue
		}
		wrong := 0.0
		for r, t := range took {
			wrong += math.Abs(t/total - expected[r]/foreseen)
		}
		s.wrong[k] = float64(s.wrong[k]*fading) + wrong
		if kind(k) == byItem {
			s.terrain.doubt = min(1, fullDoubt*wrong)
		}
	}
	return s.used
}

// fullDoubt is how much of the terrain is forgotten for each part of the time
// that it foresaw wrongly: all of it at 1/8.
const fullDoubt = 8
