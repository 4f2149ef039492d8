package arrivals

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/fabric"
)

// TestMerge: however arrivals are merged, the sketch is the same; first, last and
// count are exact; and a sketch of few tasks has them all.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64(), 1, 300).Draw(t, "times")
		var all []Arrival
		sketch := Sketch{}
		for task, time := range times {
			a := Arrival{fabric.Task(task), time}
			all = append(all, a)
			sketch = Merge(sketch, Of(a))
		}
		// In another order, and as a tree, encoded.
		encoded := [][]byte{}
		for _, i := range rapid.Permutation(all).Draw(t, "order") {
			encoded = append(encoded, Of(i).Append(nil))
		}
		for len(encoded) > 1 {
			i := rapid.IntRange(0, len(encoded)-2).Draw(t, "pair")
			encoded[i] = Combine(encoded[i], encoded[i+1])
			encoded = slices.Delete(encoded, i+1, i+2)
		}
		other, err := Decode(encoded[0])
		if err != nil {
			t.Fatal(err)
		}
		assert.Equal(t, sketch, other)
		assert.Equal(t, uint64(len(all)), sketch.Count)
		assert.Equal(t, slices.MinFunc(all, byTime), sketch.First)
		assert.Equal(t, slices.MaxFunc(all, byTime), sketch.Last)
		assert.Len(t, sketch.Sample, min(len(all), Sample))
	})
}

// TestQuantiles: estimates are as far off as the sample's size says.
func TestQuantiles(t *testing.T) {
	const tasks, trials = 2000, 60
	for _, p := range []float64{0.1, 0.5, 0.9} {
		square := 0.0
		for seed := range int64(trials) {
			random := rand.New(rand.NewSource(seed))
			sketch := Sketch{}
			for task, place := range random.Perm(tasks) { // its place in the order of arrival
				sketch = Merge(sketch, Of(Arrival{fabric.Task(task), int64(place)}))
			}
			got, err := sketch.Quantile(p)
			require.NoError(t, err)
			off := float64(got)/tasks - p
			square += off * off
		}
		want := math.Sqrt(p * (1 - p) / Sample)
		assert.InEpsilon(t, want, math.Sqrt(square/trials), 0.5)
	}
}

func TestRefused(t *testing.T) {
	_, err := Sketch{}.Quantile(0.5)
	assert.ErrorContains(t, err, "no arrivals")
	_, err = Of(Arrival{}).Quantile(2)
	assert.ErrorContains(t, err, "2 is no part")
	for _, length := range []int{0, 7, 9, 8, 20, 33, 8 + 12*67} {
		_, err := Decode(make([]byte, length))
		assert.Error(t, err, "%d bytes", length)
	}
	one := Of(Arrival{3, 4}).Append(nil)
	assert.Equal(t, one, Combine(one, nil))
	assert.Equal(t, one, Combine(nil, one))
}
