package balancer

import (
	"math"
	"slices"
)

// filter estimates what each rank will take in the next cycle, if the partition
// stays, from what it took before. Three predictors compete on each rank, and
// the one with the smallest error of late is believed: the median of the last
// cycles, which ignores a single cycle that was disturbed; the last cycle, which
// follows a load that jumped; and the trend of the last three, which follows one
// that drifts.
type filter struct {
	ranks int
	// past[k] is what the ranks took k cycles ago, as if they had had their
	// present ranges then.
	past [][]float64
	// wrong[e] is by how much predictor e was wrong, as a share of the mean time
	// of the ranks; what is k cycles old counts fading^k.
	wrong [predictors][]float64
	// noise are how far off the best predictions were in the last cycles, as
	// shares of the mean time; the newest first.
	noise []float64
	next  []float64 // what is expected
	moved bool      // since the last cycle
	sort  []float64 // room for a median over the ranks
}

const (
	byMedian = iota
	byLast
	byTrend
	predictors
)

const (
	remembered = 5   // cycles
	fading     = 0.7 // of an old error, with each cycle
	// noiseUnknown is taken for the noise of times before any was seen.
	noiseUnknown = 0.05
)

func newFilter(ranks int) *filter {
	f := &filter{ranks: ranks, next: make([]float64, ranks), sort: make([]float64, ranks)}
	for e := range f.wrong {
		f.wrong[e] = make([]float64, ranks)
	}
	return f
}

// add takes what the ranks took in a cycle.
func (f *filter) add(took []float64) {
	if len(f.past) > 0 {
		f.score(took)
	}
	if len(f.past) < remembered {
		f.past = append(f.past, nil)
	}
	oldest := f.past[len(f.past)-1]
	copy(f.past[1:], f.past)
	f.past[0] = append(oldest[:0], took...)
	for r := range f.ranks {
		f.next[r] = f.predict(f.best(r), r)
	}
	f.moved = false
}

// score notes how wrong each predictor was.
func (f *filter) score(took []float64) {
	mean := meanOf(took)
	if mean == 0 {
		return
	}
	for r, t := range took {
		f.sort[r] = math.Abs(f.next[r]-t) / mean
		var wrong [predictors]float64
		for e := range wrong {
			wrong[e] = math.Abs(f.predict(e, r)-t) / mean
		}
		for e := range wrong {
			f.wrong[e][r] = float64(f.wrong[e][r]*fading) + wrong[e]
		}
	}
	if f.moved {
		return // it may be the model of the move that was wrong, not the times
	}
	if len(f.noise) < remembered {
		f.noise = append(f.noise, 0)
	}
	copy(f.noise[1:], f.noise)
	f.noise[0] = medianOf(f.sort)
}

// best is the predictor that is believed of a rank. Where they were equally
// good, it is the calmest.
func (f *filter) best(rank int) int {
	best := byMedian
	for e := byMedian + 1; e < predictors; e++ {
		if f.wrong[e][rank] < f.wrong[best][rank] {
			best = e
		}
	}
	return best
}

func (f *filter) predict(predictor, rank int) float64 {
	last := f.past[0][rank]
	switch {
	case predictor == byMedian:
		var window [remembered]float64
		for k := range f.past {
			window[k] = f.past[k][rank]
		}
		return medianOf(window[:len(f.past)])
	case predictor == byTrend && len(f.past) >= 3:
		return max(0, last+(last-f.past[2][rank])/2)
	default:
		return last
	}
}

// uncertainty is the standard error of what is expected of a rank, as a share of
// the mean time. How far off predictions were is a measure of it, since that
// comes in equal parts, about, of the error of the prediction and of the noise of
// the cycle that it is compared with.
func (f *filter) uncertainty() float64 {
	const deviation = 1.4826 // from the median of the absolute values of normal errors
	const half = 0.7071      // of a variance
	switch {
	case len(f.noise) == 0:
		return noiseUnknown * half
	case len(f.noise) < 3: // too few to leave out an exceptional one
		return slices.Max(f.noise) * deviation * half
	}
	var noise [remembered]float64
	copy(noise[:], f.noise)
	return medianOf(noise[:len(f.noise)]) * deviation * half
}

// move tells what is expected of each rank with its new range.
func (f *filter) move(expected []float64) {
	for r, t := range expected {
		if f.next[r] > 0 {
			ratio := t / f.next[r]
			for k := range f.past {
				f.past[k][r] = float64(f.past[k][r] * ratio)
			}
		} else {
			for k := range f.past {
				f.past[k][r] = t
			}
		}
		f.next[r] = t
	}
	f.moved = true
}

func meanOf(times []float64) float64 {
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	return sum / float64(len(times))
}

// medianOf is the median, of an even number the mean of the middle two. It puts
// the values into another order.
func medianOf(values []float64) float64 {
	n := len(values)
	upper := nth(values, n/2)
	if n%2 == 1 {
		return upper
	}
	return (slices.Max(values[:n/2]) + upper) / 2
}

// nth puts the n-th smallest value into its place, smaller ones before it, and
// returns it (Hoare's quickselect; its pivot is the median of three).
func nth(values []float64, n int) float64 {
	for low, high := 0, len(values)-1; low < high; {
		middle := low + (high-low)/2
		a, b, c := values[low], values[middle], values[high]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return values[n]
		}
	}
	return values[n]
}
