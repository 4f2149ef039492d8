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
	// before is what the ranks took before it; nil: there was none. foreseen is how
	// much of the time was to move, by each kind, and wrong how much lay elsewhere
	// than foreseen; what is k changes old counts fading^k.
	before          []float64
	foreseen, wrong [kinds]float64
	// reviews is how many changes have been judged. alike: before the first, ranks
	// took as long for an item as others.
	reviews int
	alike   bool
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
// the program says counts more than what was learnt, and that items differ is more
// likely than that processors do, unless all was alike before. What the items cost is
// found out in steps, and the first can be far off; the speed of ranks is known at
// once, so at first it must foresee at least half of what happens, but for the noise.
func (s *models) best(noise float64) kind {
	best := s.ofItems()
	if best == byItem && s.alike && s.reviews == 0 {
		return byRank
	}
	for _, k := range []kind{byItem, byRank} {
		early := k == byRank && s.reviews <= 2
		if s.wrong[k] < s.wrong[best] && !(early && s.wrong[k] > float64(s.foreseen[k]/2)+float64(2*noise)) {
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
		return model{weights: s.costs, slowness: slownessOf(s.costs.of(now), took)}
	}
	return model{weights: s.uniform, slowness: slownessOf(s.uniform.of(now), took)}
}

// slownessOf is what each rank needs for a unit of cost. A rank that had no work
// is taken to be as fast as the mean, and none to be more than a million times
// faster.
func slownessOf(cost, took []float64) []float64 {
	slowness := make([]float64, len(took))
	mean := meanOf(took) / meanOf(cost)
	for r, t := range took {
		slowness[r] = mean
		if cost[r] > 0 {
			slowness[r] = max(t/cost[r], leastShare*mean)
		}
	}
	return slowness
}

// told is what the ranges of a partition cost, as parts of their mean, by what the
// program said last; nil: it has said nothing.
func (s *models) told(p Partition) []float64 {
	if s.costs == nil {
		return nil
	}
	cost := s.costs.of(p)
	mean := meanOf(cost)
	for r := range cost {
		cost[r] /= mean
	}
	return cost
}

// project fills in what the ranks would have taken, in a cycle of the past, with
// other ranges and, where the program says what items cost, with the costs of now.
func (s *models) project(k kind, past, now measured, into []float64) {
	switch {
	case k == byCost && past.cost != nil:
		for r, slowness := range slownessOf(past.cost, past.took) {
			into[r] = float64(slowness * now.cost[r])
		}
	case past.partition.Equal(now.partition):
		copy(into, past.took)
	case k == byItem:
		spread(past, now.partition, into)
	default:
		w := s.uniform
		if k == byCost {
			w = s.costs
		}
		m := model{weights: w, slowness: slownessOf(w.of(past.partition), past.took)}
		m.predict(now.partition, into)
	}
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

// compare notes, before any change, whether ranks take as long for an item as others.
func (s *models) compare(now Partition, took []float64) {
	if s.before == nil && meanOf(took) > 0 && apart(s.uniform.of(now), took) < hardlyApart {
		s.alike = true
	}
}

// hardlyApart is a part of the time that makes no difference if it lies elsewhere.
const hardlyApart = 0.05

// promise notes what each kind foresees of a change that is made by one of them.
func (s *models) promise(now, next Partition, took []float64, cycle int, used kind) {
	s.used = used
	s.before = took
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
func (s *models) review(took []float64) kind {
	if meanOf(took) == 0 {
		return s.used
	}
	s.reviews++
	for k, expected := range s.expected {
		if expected != nil && meanOf(expected) > 0 {
			s.foreseen[k] = float64(s.foreseen[k]*fading) + apart(s.before, expected)
			s.wrong[k] = float64(s.wrong[k]*fading) + apart(expected, took)
		}
	}
	return s.used
}

// apart is how much of the time lies on other ranks in one than in the other, counted
// on both.
func apart(one, other []float64) float64 {
	sum, first, second := 0.0, meanOf(one), meanOf(other)
	for r, t := range one {
		sum += math.Abs(t/first - other[r]/second)
	}
	return sum / float64(len(one))
}
