package analysis

import (
	"math"
	"slices"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// tally adds up accounts of several ranks. Which calls of a collective are
// timed, and which operations and time slices are kept, is drawn once for all
// ranks, so errors of the same call site on different ranks may all have the
// same sign: these are added, those of different call sites as independent
// ones are.
type tally struct {
	figures
	calls, timed, bytes, longest int64
	shared                       map[int32]*sharedErrors // by call site
	independent                  float64                 // ns², variance of time
}

// sharedErrors are standard errors that may all have the same sign, in ns.
type sharedErrors struct{ time, late float64 }

func (t *tally) add(a *history.Account, f figures, site int32) {
	t.figures.add(f)
	t.calls += a.Calls
	t.timed += a.Timed
	t.bytes += a.Bytes
	t.longest = max(t.longest, a.Longest)
	if t.shared == nil {
		t.shared = map[int32]*sharedErrors{}
	}
	s := t.shared[site]
	if s == nil {
		s = &sharedErrors{}
		t.shared[site] = s
	}
	s.late += math.Sqrt(f.lateVariance)
	switch a.Function.Class {
	case history.Local, history.Send, history.Recv, history.SendRecv, history.Wait:
		t.independent += f.variance
	default:
		s.time += math.Sqrt(f.variance)
	}
}

// error is the standard error of the time, in nanoseconds.
func (t *tally) error() float64 {
	return math.Sqrt(t.independent + t.overSites(func(s *sharedErrors) float64 { return s.time }))
}

// overSites adds up the squares of one of the errors of each call site.
func (t *tally) overSites(of func(*sharedErrors) float64) float64 {
	sites := make([]int32, 0, len(t.shared))
	for site := range t.shared {
		sites = append(sites, site)
	}
	slices.Sort(sites) // sums of floating-point numbers depend on the order
	sum := 0.0
	for _, site := range sites {
		e := of(t.shared[site])
		sum += e * e
	}
	return sum
}

// split is the tally in seconds, next to the useful time, which is in
// nanoseconds.
func (t *tally) split(useful float64) profile.Split {
	lateError := math.Sqrt(t.overSites(func(s *sharedErrors) float64 { return s.late }))
	f := t.figures
	return profile.Split{
		Useful: seconds(useful), MPI: seconds(f.time), Late: seconds(f.late), Transfer: seconds(f.transfer),
		Own: seconds(f.own), Unsplit: seconds(f.unsplit),
		Error: seconds(t.error()), LateError: seconds(lateError + f.lateClock),
	}
}

func seconds(ns float64) float64 { return ns / 1e9 }
