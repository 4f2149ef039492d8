package simulate

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/pkg/errors"

	"evenkeel/balancer"
)

// Shape is how a described load changes.
type Shape string

// The shapes.
const (
	Constant   Shape = "constant"    // the same in each cycle
	Drifting   Shape = "drifting"    // what is slow wanders steadily, once around in Period cycles
	RandomWalk Shape = "random-walk" // each part becomes a little slower or faster in each cycle
	Bursty     Shape = "bursty"      // now and then one part is slow for some cycles
	Noisy      Shape = "noisy"       // balanced, but each rank's time varies from cycle to cycle
)

// Shapes are all of them.
func Shapes() []Shape { return []Shape{Constant, Drifting, RandomWalk, Bursty, Noisy} }

// Cause is what makes a load uneven.
type Cause string

// The causes.
const (
	Items Cause = "items" // items cost differently
	Ranks Cause = "ranks" // ranks are of different speed
)

// Description describes a load.
type Description struct {
	Shape Shape
	Cause Cause
	// Amplitude is by how much the slowest rank exceeds the mean under even
	// ranges, about: 0.5 means one and a half times. Of Noisy it is the standard
	// deviation of a time.
	Amplitude float64
	// Noise is the standard deviation of each rank's time in each cycle, as a
	// share of it, in addition to the shape.
	Noise float64
	// Seconds is the mean time of a rank in a cycle.
	Seconds float64
	// Period is how many cycles a drifting load takes to come around.
	Period int
	Seed   uint64
}

// Described is a load made from a description.
type Described struct {
	Description
	ranks  int
	random *rand.Rand
	walk   []float64 // logarithms, by part
	burst  burst
	parts  []float64 // how slow each part is, mean about 1
	share  []float64 // which share of the items each is
	known  balancer.Work
	takes  balancer.Work
}

// burst is the part that is slow for now.
type burst struct{ part, left int }

// regions is how finely the costs of items are described, at most.
const regions = 4096

// Describe makes a load over so many items and ranks.
func Describe(d Description, items int64, ranks int) (*Described, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if items < 1 || ranks < 1 {
		return nil, errors.Errorf("%d items over %d ranks: at least one of each is needed", items, ranks)
	}
	l := &Described{Description: d, ranks: ranks, random: rand.New(rand.NewPCG(d.Seed, 0x6576656e6b65656c))}
	parts := ranks
	l.known.Costs = []float64{d.Seconds * float64(ranks)}
	if d.Cause == Items {
		parts = int(min(items, regions))
		l.known.Costs, l.share = make([]float64, parts), make([]float64, parts)
		bounds, err := balancer.Even(items, parts)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			l.share[i] = float64(bounds.Size(i)) / float64(items)
		}
	}
	l.known.Slowness, l.takes = make([]float64, ranks), balancer.Work{Costs: l.known.Costs, Slowness: make([]float64, ranks)}
	l.parts, l.walk = make([]float64, parts), make([]float64, parts)
	return l, nil
}

func (d *Description) check() error {
	known := false
	var names []string
	for _, s := range Shapes() {
		known = known || s == d.Shape
		names = append(names, string(s))
	}
	switch {
	case !known:
		return errors.Errorf("there is no load %q; there are %s", d.Shape, strings.Join(names, ", "))
	case d.Cause != Items && d.Cause != Ranks:
		return errors.Errorf("there is no cause %q; there are items and ranks", d.Cause)
	case !(d.Amplitude >= 0 && d.Amplitude <= 1000):
		return errors.Errorf("an amplitude of %v: give a number from 0 to 1000", d.Amplitude)
	case !(d.Noise >= 0 && d.Noise <= 10):
		return errors.Errorf("a noise of %v: give a number from 0 to 10", d.Noise)
	case !(d.Seconds > 0 && d.Seconds <= 1e9):
		return errors.Errorf("a cycle of %v seconds: give a number above 0, and 1e9 at most", d.Seconds)
	case d.Period < 1:
		return errors.Errorf("a period of %d cycles: at least one is needed", d.Period)
	}
	return nil
}

// Work implements Load.
func (l *Described) Work(cycle int) (takes, known balancer.Work) {
	l.shape(cycle)
	deviation := l.Noise
	if l.Shape == Noisy {
		deviation = math.Hypot(deviation, l.Amplitude)
	}
	for r := range l.known.Slowness {
		l.known.Slowness[r] = 1
		if l.Cause == Ranks {
			l.known.Slowness[r] = l.parts[r]
		}
		l.takes.Slowness[r] = l.known.Slowness[r]
		if deviation > 0 {
			l.takes.Slowness[r] *= l.noise(deviation)
		}
	}
	if l.Cause == Items {
		for i, slow := range l.parts {
			l.known.Costs[i] = l.Seconds * float64(l.ranks) * l.share[i] * slow
		}
	}
	return l.takes, l.known
}

// noise is log-normal with mean 1, so no time is negative.
func (l *Described) noise(deviation float64) float64 {
	s := math.Sqrt(math.Log1p(deviation * deviation))
	return math.Exp(s*l.random.NormFloat64() - s*s/2)
}

const (
	stepsAcross = 50   // in how many cycles a random walk comes as far as the amplitude
	burstChance = 0.05 // of a burst to begin in a cycle
	burstLength = 8    // cycles, on average
)

// shape fills in how slow each part is.
func (l *Described) shape(cycle int) {
	n := len(l.parts)
	switch l.Shape {
	case Constant, Drifting:
		at := 0.0
		if l.Shape == Drifting {
			at = float64(cycle) / float64(l.Period)
		}
		for i := range l.parts {
			l.parts[i] = 1 + l.Amplitude*(hill((float64(i)+0.5)/float64(n)-at)-hillMean)/(1-hillMean)
			l.parts[i] = max(l.parts[i], 0.01)
		}
	case RandomWalk:
		l.step(n)
	case Bursty:
		if l.burst.left > 0 {
			l.burst.left--
		} else if l.random.Float64() < burstChance {
			l.burst = burst{l.random.IntN(n), 1 + int(l.random.ExpFloat64()*burstLength)}
		}
		for i := range l.parts {
			l.parts[i] = 1
			if width := max(1, n/l.ranks); l.burst.left > 0 && i/width == l.burst.part/width {
				l.parts[i] = 1 + l.Amplitude
			}
		}
	case Noisy:
		for i := range l.parts {
			l.parts[i] = 1
		}
	}
}

// step makes every part a little slower or faster. Neighbouring items walk
// together: there are as many walkers as ranks, at most 64, and lines between.
func (l *Described) step(n int) {
	walkers := min(n, l.ranks, 64)
	if l.Cause == Ranks {
		walkers = n
	}
	size := math.Log1p(l.Amplitude) / math.Sqrt(stepsAcross)
	for w := range walkers {
		l.walk[w] += size * l.random.NormFloat64()
		l.walk[w] = min(max(l.walk[w], -math.Log1p(l.Amplitude)), math.Log1p(l.Amplitude))
	}
	for i := range l.parts {
		at := float64(i) * float64(walkers-1) / float64(max(1, n-1))
		w := min(int(at), max(0, walkers-2))
		next := min(w+1, walkers-1)
		l.parts[i] = math.Exp(l.walk[w] + (at-float64(w))*(l.walk[next]-l.walk[w]))
	}
}

// hill is a smooth bump on a circle of circumference 1: 1 on top, at 0.25, and
// hillMean on average.
func hill(x float64) float64 {
	c := 0.5 + 0.5*math.Sin(2*math.Pi*x)
	return c * c
}

const hillMean = 0.375
