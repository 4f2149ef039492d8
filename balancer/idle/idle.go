// Package idle plans what a rank does while it waits for slower ones: how long it
// spins, gives its core up and sleeps, and how much set-up for the next cycle fits
// in. It is pure and deterministic, as package balancer is.
package idle

import (
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Costs are what ways to wait cost, as measured; in seconds.
type Costs struct {
	// Yield is how late a rank may notice the end of its wait that gives its core
	// up again and again; Wake is how late one that sleeps.
	Yield, Wake float64
}

// Plan is what to do in the next wait; times are seconds. The steps follow each
// other, and whoever still waits after the last one spins.
type Plan struct {
	// Expected is how long the wait will be, Least how long it will be at least, as
	// far as history tells.
	Expected, Least float64
	// Spin first for so long, then Yield, then Sleep; 0: not at all, +Inf: until the
	// wait ends.
	Spin, Yield, Sleep float64
}

// Remembered is how many of the last waits a plan rests on.
const Remembered = 8

// worthwhile is how many times as long as its cost a way to wait must be used.
const worthwhile = 2

// Next plans the next wait from the last ones, the newest first. A wait that will
// be long for certain is slept through to shortly before its end, so that waking
// delays nobody; a shorter one is yielded through. Nothing is known of a first
// wait: it is spun for as long as waking would cost and then slept through, which
// is never more than twice as bad as if its length had been known (Karlin, Li,
// Manasse and Owicki, "Empirical studies of competitive spinning", 1991).
func Next(waits []float64, c Costs) (Plan, error) {
	if err := check(waits, c); err != nil {
		return Plan{}, err
	}
	if len(waits) == 0 {
		return Plan{Spin: c.Wake, Sleep: math.Inf(1)}, nil
	}
	last := slices.Clone(waits[:min(len(waits), Remembered)])
	slices.Sort(last)
	p := Plan{Expected: last[len(last)/2], Least: last[0]}
	switch {
	case p.Least > float64(worthwhile*c.Wake):
		p.Sleep = p.Least - c.Wake
	case p.Least > float64(worthwhile*c.Yield):
		p.Yield = p.Least - c.Yield
	}
	return p, nil
}

func check(waits []float64, c Costs) error {
	for _, t := range append([]float64{c.Yield, c.Wake}, waits...) {
		if !(t >= 0) || math.IsInf(t, 0) {
			return errors.Errorf("a time of %v seconds: it must be a number and not negative", t)
		}
	}
	return nil
}

// Fits says whether set-up that takes so many seconds can be done in the wait
// without delaying anybody.
func (p Plan) Fits(setUp float64) bool { return setUp <= p.Least }

// Waits are how long each rank will wait, if the ranks take what is expected of
// them (Controller.Expected) and then wait for the slowest.
func Waits(expected []float64) []float64 {
	longest := 0.0
	for _, t := range expected {
		longest = max(longest, t)
	}
	waits := make([]float64, len(expected))
	for r, t := range expected {
		waits[r] = longest - t
	}
	return waits
}
