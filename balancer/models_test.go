package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSpeedOfRanksMustShowAtOnce: what items cost is found out in steps, and the speed of ranks
// at once; so in the first two changes it must have foreseen half of what happened.
func TestSpeedOfRanksMustShowAtOnce(t *testing.T) {
	for _, one := range []struct {
		reviews int
		wrong   float64 // by rank, of 0.4 that was foreseen
		noise   float64
		best    kind
	}{{1, 0.3, 0, byItem}, {2, 0.3, 0, byItem}, {3, 0.3, 0, byRank}, {1, 0.19, 0, byRank}, {1, 0.3, 0.06, byRank}, {3, 0.6, 0, byItem}} {
		m := newModels(100, 2)
		m.reviews = one.reviews
		m.foreseen[byRank], m.wrong[byRank], m.wrong[byItem] = 0.4, one.wrong, 0.5
		assert.Equal(t, one.best, m.best(one.noise), "%v", one)
	}
}

// TestProject: a cycle of the past with the ranges, and the costs, of now.
func TestProject(t *testing.T) {
	told := newModels(30, 2)
	told.know([]float64{1, 3}) // items 0 to 14, and 15 to 29
	untold := newModels(30, 2)
	past := measured{partition: Partition{0, 10, 30}, took: []float64{10, 40}}
	withCosts := measured{partition: past.partition, took: []float64{4, 2}, cost: []float64{2, 1}}
	for _, one := range []struct {
		what      string
		models    *models
		k         kind
		past, now measured
		want      []float64
	}{
		{"nothing has moved", untold, byItem, past, past, []float64{10, 40}},
		{"the items take their time along", untold, byItem, past, measured{partition: Partition{0, 20, 30}}, []float64{30, 20}},
		{"the ranks keep their speed", untold, byRank, past, measured{partition: Partition{0, 20, 30}}, []float64{20, 20}},
		{"a rank that had none is as fast as the mean", untold, byRank, measured{partition: Partition{0, 30, 30}, took: []float64{30, 0}},
			measured{partition: Partition{0, 15, 30}}, []float64{15, 15}},
		{"the costs of then and of now", told, byCost, withCosts, measured{partition: past.partition, cost: []float64{1, 2}}, []float64{2, 4}},
		{"the costs of now", told, byCost, measured{partition: Partition{0, 15, 30}, took: []float64{2, 6}},
			measured{partition: Partition{0, 25, 30}}, []float64{6, 2}},
	} {
		into := []float64{7, 7}
		one.models.project(one.k, one.past, one.now, into)
		assert.InDeltaSlice(t, one.want, into, 1e-9, one.what)
	}
}

// TestSpread: over ranges that begin and end anywhere, also empty ones.
func TestSpread(t *testing.T) {
	into := []float64{7, 7, 7, 7}
	spread(measured{partition: Partition{0, 10, 10, 30}, took: []float64{10, 0, 40}}, Partition{0, 5, 20, 20, 30}, into)
	assert.InDeltaSlice(t, []float64{5, 25, 0, 20}, into, 1e-12)
}

// TestAlikeBefore: what differs after all was alike is the ranks' speed, until a change has shown otherwise.
func TestAlikeBefore(t *testing.T) {
	even := Partition{0, 50, 100}
	for _, one := range []struct {
		took []float64
		best kind
	}{{[]float64{1, 1}, byRank}, {[]float64{1.04, 0.96}, byRank}, {[]float64{1.06, 0.94}, byItem}} {
		m := newModels(100, 2)
		m.compare(even, one.took)
		assert.Equal(t, one.best, m.best(0), "%v", one.took)
		m.review(one.took)
		assert.Equal(t, byItem, m.best(0), "after a change")
	}
	m := newModels(100, 2)
	m.promise(even, even, []float64{1, 2}, 1, byItem)
	m.compare(even, []float64{1, 1})
	assert.Equal(t, byItem, m.best(0), "it was not so before the change")
}

// TestReview: each kind is judged by what it foresaw, the newest change most.
func TestReview(t *testing.T) {
	m := newModels(100, 2)
	m.promise(Partition{0, 50, 100}, Partition{0, 75, 100}, []float64{1, 3}, 1, byRank)
	assert.Nil(t, m.expected[byCost], "the program has said nothing")
	assert.InDeltaSlice(t, []float64{1.5, 1.5}, m.expected[byRank], 1e-9)
	assert.InDeltaSlice(t, []float64{2.5, 1.5}, m.expected[byItem], 1e-9)

	assert.Equal(t, byRank, m.review([]float64{0, 0}))
	assert.Zero(t, m.reviews, "nothing can be told from no time")
	assert.Equal(t, byRank, m.review([]float64{2, 2}))
	assert.Equal(t, 1, m.reviews)
	assert.InDelta(t, 0.5, m.foreseen[byRank], 1e-9)
	assert.InDelta(t, 0, m.wrong[byRank], 1e-9)
	assert.InDelta(t, 0.75, m.foreseen[byItem], 1e-9)
	assert.InDelta(t, 0.25, m.wrong[byItem], 1e-9)
	m.review([]float64{1, 3})
	assert.Equal(t, 2, m.reviews)
	assert.InDelta(t, 0.5*fading+0.5, m.foreseen[byRank], 1e-9)
	assert.InDelta(t, 0.5, m.wrong[byRank], 1e-9)
	assert.InDelta(t, 0.25*fading+0.75, m.wrong[byItem], 1e-9)
	assert.Zero(t, m.foreseen[byCost])
	assert.Zero(t, m.wrong[byCost])

	m.expected[byRank] = []float64{0, 0}
	m.review([]float64{1, 3})
	assert.InDelta(t, 0.5, m.wrong[byRank], 1e-9, "a kind that foresaw no time is not judged")
}
