package balancer

import (
	"math"
	"math/bits"
	"slices"
)

// filter estimates what each rank will take in the next cycle, if the partition
// stays, from what it took before. Three predictors compete, and the one with the
// smallest errors of late is believed, on all ranks together and, where another was
// clearly better, on one: the median of the last cycles, which ignores a single cycle
// that was disturbed; the last cycle, which follows a load that jumped; and the trend
// of the last ones, which follows one that drifts.
type filter struct {
	ranks int
	// mean is the mean time of the ranks in the last cycle. How much there is to do
	// in a cycle may change, and is expected to stay as it was; the filter is about
	// how it lies on the ranks, so it keeps times as parts of their mean.
	mean float64
	// past are the last cycles, the newest first;
	// projected[k] is what the ranks would have taken in past[k]
	// with the present ranges.
	past      []measured
	projected [][]float64
	// wrong[e] is by how much predictor e was wrong, as a share of the mean time
	// of the ranks; what is k cycles old counts fading^k.
	wrong [predictors][]float64
	// noise are how far off the best predictions were in the last cycles, as
	// shares of the mean time; the newest first.
	noise []float64
	// hardly is a difference between predictors that does not count: a hundredth
	// of the mean time, or what noise makes.
	hardly float64
	usual  int       // the predictor that is best for the ranks together
	next   []float64 // what is expected
	// doubt is by how much each rank's time is likely to be other than was foreseen of
	// the last change, as a share of the mean time.
	doubt []float64
	// kept is how far differences that noise could have made came back.
	kept regression
	// moved is in how many cycles up to now the ranges were new.
	moved int
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
	// noises is of how many cycles noise is remembered. Of few, it would now be taken
	// for much less than it is, and now for much more.
	noises = 20
)

func newFilter(ranks int) *filter {
	f := &filter{ranks: ranks, next: make([]float64, ranks), doubt: make([]float64, ranks), sort: make([]float64, ranks)}
	for e := range f.wrong {
		f.wrong[e] = make([]float64, ranks)
	}
	return f
}

// add takes what was measured in a cycle. The projection fills in what a cycle of the
// past would have taken with the ranges of now.
func (f *filter) add(now measured, projection func(past measured, into []float64)) {
	took := now.took
	f.mean = meanOf(took)
	for r := range f.doubt {
		f.doubt[r] *= 0.7
	}
	if f.mean == 0 { // nothing can be learnt from it
		clear(f.next)
		return
	}
	for k, past := range f.past {
		projection(past, f.projected[k])
	}
	if len(f.past) > 0 && f.score(now.partition, took) {
		f.past, f.projected = f.past[:0], f.projected[:0]
	}
	if len(f.past) < remembered {
		f.past = append(f.past, measured{took: make([]float64, f.ranks)})
		f.projected = append(f.projected, make([]float64, f.ranks))
	}
	oldest, room := f.past[len(f.past)-1].took, f.projected[len(f.past)-1]
	copy(f.past[1:], f.past)
	copy(f.projected[1:], f.projected)
	for r, t := range took {
		oldest[r] = t / f.mean
		room[r] = oldest[r]
	}
	f.past[0], f.projected[0] = measured{now.partition, oldest, now.cost}, room
	f.hardly = 0.01
	if len(f.noise) > 0 {
		f.hardly += float64(f.typicalNoise() / 2)
	}
	f.usual = f.usually()
	for r := range f.ranks {
		f.next[r] = f.mean * f.predict(f.best(r), r)
	}
}

// score notes how wrong each predictor was. It returns whether the past is of no
// more use: a change, among the first after some quiet, had other effects than it
// was projected to have, and much more so than by noise.
func (f *filter) score(now Partition, took []float64) (surprised bool) {
	if f.past[0].partition.Equal(now) {
		f.moved = 0
	} else {
		f.moved++
	}
	f.kept.fade()
	likely := 2 * float64(f.uncertainty()*f.rarely(0))
	for r, t := range took {
		share := t / f.mean
		foreseen := f.predict(f.best(r), r)
		if math.Abs(foreseen-1) < likely {
			f.kept.add(foreseen-1, share-1)
		}
		f.sort[r] = math.Abs(foreseen - share)
		var wrong [predictors]float64
		for e := range wrong {
			wrong[e] = math.Abs(f.predict(e, r) - share)
		}
		for e := range wrong {
			f.wrong[e][r] = float64(f.wrong[e][r]*fading) + wrong[e]
		}
	}
	if f.moved > 0 && f.moved <= learning { // models may be wrong, not the times
		return meanOf(f.sort) > float64(surprising*f.typicalNoise())
	}
	if len(f.noise) < noises {
		f.noise = append(f.noise, 0)
	}
	copy(f.noise[1:], f.noise)
	f.noise[0] = medianOf(f.sort)
	return false
}

const (
	// surprising is how many times the typical noise can't be noise.
	surprising = 3
	// learning is how many changes on end it may take until models are right.
	learning = 3
)

// typicalNoise is how far off the best prediction of a rank typically was of
// late; +Inf before there was any.
func (f *filter) typicalNoise() float64 {
	known := len(f.noise)
	var noise [noises]float64
	copy(noise[:], f.noise)
	switch {
	case known == 0:
		return math.Inf(1)
	case known < 3: // too few to leave out an exceptional one
		return slices.Max(noise[:known])
	}
	return medianOf(noise[:known])
}

// usually is the predictor that was best for the ranks together. Where others were hardly
// better than the median, it is the median; of the errors of many ranks, little is enough.
func (f *filter) usually() int {
	best, least := byMedian, meanOf(f.wrong[byMedian])-float64(2*f.hardly/float64(f.ranks))
	for e := byMedian + 1; e < predictors; e++ {
		if wrong := meanOf(f.wrong[e]); wrong < least {
			best, least = e, wrong
		}
	}
	return best
}

// clearly is how many times what hardly counts another predictor than the usual one must
// be better on a rank: with less, noise would choose wrongly on some of many.
const clearly = 4

// best is the predictor that is believed of a rank.
func (f *filter) best(rank int) int {
	best, least := f.usual, f.wrong[f.usual][rank]-float64(clearly*f.hardly)
	for e := range predictors {
		if e != f.usual && f.wrong[e][rank] < least {
			best, least = e, f.wrong[e][rank]
		}
	}
	return best
}

func (f *filter) predict(predictor, rank int) float64 {
	last := f.projected[0][rank]
	switch {
	case predictor == byMedian:
		var window [remembered]float64
		for k := range f.past {
			window[k] = f.projected[k][rank]
		}
		return medianOf(window[:len(f.past)])
	case predictor == byTrend && len(f.past) == remembered:
		ahead := 0.0
		for k, weight := range line {
			ahead += float64(weight * f.projected[k][rank])
		}
		return max(0, ahead)
	case predictor == byTrend && len(f.past) >= 3:
		return max(0, last+float64((last-f.projected[2][rank])/2))
	default:
		return last
	}
}

// line is what the last cycles, the newest first, count for where the straight line
// through them (by least squares) is in the next.
var line = [remembered]float64{0.8, 0.5, 0.2, -0.1, -0.4}

// steadiness is what share of the errors that are seen comes from each predictor
// itself, and not from the noise of the cycle that it is compared with: 0.47 of the
// median of five normal errors, 0.71 of the last, and 0.72 of the line through five
// would be right where all ranks are foreseen alike. Tried out between noise alone, which
// must not move anything, and drift, which must.
var steadiness = [predictors]float64{byMedian: 0.5, byLast: 0.75, byTrend: 0.75}

// deviation is the standard deviation of normal errors, whose absolute values have a
// median of 1.
const deviation = 1.4826

// uncertainty is the standard deviation of what was seen from what was predicted,
// as a share of the mean time; +Inf before anything is known of it.
func (f *filter) uncertainty() float64 {
	known := len(f.noise)
	noise := f.typicalNoise() * f.few(known)
	if known > 2 { // it may have become quiet
		noise = min(noise, max(f.noise[0], f.noise[1])*f.few(2))
	}
	return noise * deviation
}

// few is by how much a deviation may be larger that was estimated from the errors of
// so few cycles, as in Student's distribution.
func (f *filter) few(cycles int) float64 {
	return 1 + 5/float64((f.ranks-1)*cycles)
}

// changed notes what a change is expected to make of what the ranks took, which may be
// wrong by half of it.
func (f *filter) changed(took, expected []float64) {
	for r, t := range took {
		f.doubt[r] = max(f.doubt[r], math.Abs(t-expected[r])/(4*f.mean))
	}
}

// believed fills in what is expected of each rank, as far as it can be told from
// noise, and returns the longest and the mean. A time within a threshold of the
// mean of all is taken to be the mean, one beyond twice the threshold is believed,
// with a straight line between: firm shrinkage (Gao and Bruce, "WaveShrink with
// firm shrinkage", 1997). The threshold is what the largest of n normal errors
// rarely exceeds, √(2 ln n) deviations (Donoho and Johnstone, "Ideal spatial
// adaptation by wavelet shrinkage", 1994). n is the number of ranks, times
// 2^caution.
//
// In the first cycles of few ranks, where noise is taken for much more than it seems, one beyond
// the threshold is believed whole: by a part of it a part of the items would move, and the rest
// would have to be found out again.
//
// That is for ranks of which most are as they should be. After a change they are
// not quite, as models are not quite right: then at least that part of the difference
// is believed which is the mean of what it can be, if model and noise are off by
// normal errors.
//
// Where differences within the thresholds came back in the cycles before, as those of ranks
// whose speeds walk at random do, the part that surely did is believed of all.
//
// Before anything is known of noise, of what two show the smaller is believed: what
// the program told of the costs of ranges and the times, then the times of two cycles.
func (f *filter) believed(into, told []float64, caution int) (longest, mean float64) {
	mean = meanOf(f.next)
	doubtful := f.rarely(caution)
	noise, usual := f.uncertainty(), usualNoise
	if len(f.noise) > 0 {
		usual = f.typicalNoise() * deviation
	}
	kept := 0.0
	if len(f.noise) > 0 {
		kept = f.kept.surely()
	}
	beyond := f.persistent(caution)
	earlier := 0.0
	if len(f.past) > 1 {
		earlier = meanOf(f.projected[1])
	}
	for r, t := range f.next {
		off, steady := t-mean, steadiness[f.best(r)]
		part := 0.0
		switch {
		case len(f.noise) == 0 && len(f.past) > 1:
			part = max(0, min(1, (f.projected[1][r]/earlier-1)*mean/off, (f.projected[0][r]-1)*mean/off))
		case len(f.noise) == 0 && f.doubt[r] == 0 && told != nil:
			part = max(0, min(1, (told[r]-1)*mean/off))
		default:
			part = max(f.firm(noise*steady*doubtful*mean/math.Abs(off)), f.wrongly(r, usual*steady, math.Abs(off)/mean))
		}
		part = max(part, kept, f.shown(r, beyond)*mean/math.Abs(off))
		into[r] = mean
		if part > 0 {
			into[r] += float64(off * part)
		}
		longest = max(longest, into[r])
	}
	return longest, mean
}

// shown is what all of the last cycles, two at least, showed of a rank's difference from the mean,
// as a share of the mean: the smallest of them, if all are on one side of the mean and beyond what
// noise can be taken for; else 0.
func (f *filter) shown(rank int, beyond float64) float64 {
	if len(f.projected) < 2 {
		return 0
	}
	least := f.projected[0][rank] - 1
	for _, cycle := range f.projected[1:] {
		if !(math.Abs(least) >= beyond) {
			return 0
		}
		if off := cycle[rank] - 1; off*least <= 0 {
			return 0
		} else if math.Abs(off) < math.Abs(least) {
			least = off
		}
	}
	if !(math.Abs(least) >= beyond) {
		return 0
	}
	return math.Abs(least)
}

// persistent is the difference that noise rarely makes one rank show in all of the last cycles,
// as a share of the mean. That one of n ranks takes, in k cycles
// on end, more or less than the mean by x deviations each time has a chance of at most
// 2n (½ exp(-x²/2))^k. So what stays is believed in time, however much noise there is besides.
func (f *filter) persistent(caution int) float64 {
	noise := f.typicalNoise() * deviation
	if len(f.noise) < remembered {
		noise = earlyNoise
		if len(f.noise) > 0 {
			noise = max(noise, f.typicalNoise()*deviation)
		}
	}
	tails := float64(bits.Len(uint(f.ranks-1))+caution+certainty) / float64(len(f.projected))
	return noise * math.Sqrt(twiceLn2*max(leastCertain, tails-1))
}

const (
	// certainty is for how many times as many cycles, in powers of two, noise is to be told
	// from what lasts.
	certainty = 4
	// leastCertain keeps what lasts beyond 0.8 deviations, however few ranks there are.
	leastCertain = 0.5
	// earlyNoise is the least that is taken for noise while little is known of it.
	earlyNoise = 0.05
	twiceLn2   = 1.3863
)

// rarely is how many deviations the largest of so many normal errors as there are ranks,
// times 2^caution, rarely exceeds.
func (f *filter) rarely(caution int) float64 {
	return math.Sqrt(twiceLn2 * float64(bits.Len(uint(f.ranks-1))+caution))
}

// noisy is how many times the mean the slowest rank is expected to take at least, whatever the
// ranges are: noise makes one the slowest. It is a third of what noise rarely exceeds, as with
// the ranges of now noise comes on top, too.
func (f *filter) noisy() float64 {
	if len(f.noise) == 0 {
		return 1
	}
	return 1 + float64(f.typicalNoise()*float64(deviation*f.rarely(0))/3)
}

// usualNoise is how far off times are taken to be, as a share of the mean time, before
// anything is known of it.
const usualNoise = 0.02

// wrongly is the part of a difference, a share of the mean time, that is likely to come
// from the last change, which was foreseen wrongly, and not from noise: twice the doubt
// at most, as what is more is rather another disturbance.
func (f *filter) wrongly(rank int, noise, off float64) float64 {
	change := float64(f.doubt[rank] * f.doubt[rank])
	if change < nothing {
		return 0
	}
	return min(change/(change+float64(noise*noise)), 2*f.doubt[rank]/off)
}

// hardlyKnown is by how much, at least, noise is taken for more than it seems where a difference
// beyond the threshold leaves no doubt.
const hardlyKnown = 1.25

// firm is the part of a difference that is believed if the threshold is so many times
// as large.
func (f *filter) firm(ratio float64) float64 {
	switch {
	case !(ratio < 1):
		return 0
	case ratio > 0.5 && !(len(f.noise) < remembered && f.few(len(f.noise)) > hardlyKnown):
		return 2 * (1 - ratio)
	}
	return 1
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
