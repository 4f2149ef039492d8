package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairsOf are those of ranks with 100 items each.
func pairsOf(t *testing.T, took []float64, earlier measured, l limits) pairs {
	t.Helper()
	now, err := Even(100*int64(len(took)), len(took))
	require.NoError(t, err)
	return newPairs(now, took, earlier, l)
}

// The fastest come first, and of equally fast ones the first; without a number all that are
// faster than the mean.
func TestFastest(t *testing.T) {
	full := make([]int64, 5)
	for r := range full {
		full[r] = 500
	}
	full[1] = 100
	for _, one := range []struct {
		what    string
		took    []float64
		most    []int64
		k       int
		slowest int
		want    []int
	}{
		{"the fastest one", []float64{2, 4, 1, 3, 2}, nil, 1, 1, []int{2}},
		{"of two that are equal, the first", []float64{2, 4, 1, 3, 2}, nil, 2, 1, []int{2, 0}},
		{"as many as there are", []float64{2, 4, 1, 3, 2}, nil, 4, 1, []int{2, 0, 4, 3}},
		{"more than there are", []float64{2, 4, 1, 3, 2}, nil, 9, 1, []int{2, 0, 4, 3}},
		{"all that are faster than the mean", []float64{2, 4, 1, 3, 2}, nil, 0, 1, []int{2, 0, 4}},
		{"not one that is as fast as the mean", []float64{2, 4, 1, 1, 2}, nil, 0, 1, []int{2, 3}},
		{"not one that is as slow as the slowest, which is the first", []float64{4, 1, 4, 3, 2}, nil, 9, 0, []int{1, 4, 3}},
		{"not one that has no room", []float64{4, 1, 3, 3, 2}, full, 9, 0, []int{4, 2, 3}},
		{"nobody", []float64{2, 2, 2}, nil, 9, 0, nil},
	} {
		p := pairsOf(t, one.took, measured{}, limits{most: one.most})
		assert.Equal(t, one.slowest, p.slowest, one.what)
		assert.Equal(t, one.want, p.fastest(one.k), one.what)
	}
}

// The line through the two last measurements counts if they tell enough and it is within a factor
// of 4 of the mean cost of an item; else that one.
func TestSlope(t *testing.T) {
	const mean = 1.0 / 4 // of rank 0: 25 s for 100 items
	for _, one := range []struct {
		what  string
		items int64 // that rank 0 had before
		took  float64
		want  float64
	}{
		{"5 of 100 items more tell nothing", 95, 23, mean},
		{"6 do", 94, 22, 0.5},
		{"6 less too", 106, 28, 0.5},
		{"as steep as is believed", 90, 15, 4 * mean},
		{"steeper", 90, 14, mean},
		{"as flat as is believed", 84, 24, mean / 4},
		{"flatter", 84, 24.5, mean},
		{"falling", 90, 26, mean},
	} {
		earlier := measured{partition: Partition{0, one.items, 200}, took: []float64{one.took, 25}}
		p := pairsOf(t, []float64{25, 25}, earlier, limits{})
		assert.Equal(t, one.want, p.slope(0), one.what)
	}
	p := newPairs(Partition{0, 100, 100}, []float64{30, 0}, measured{}, limits{})
	assert.Equal(t, 0.3, p.slope(1), "one without items is as fast as the mean of all")
}
