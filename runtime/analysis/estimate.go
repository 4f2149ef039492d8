package analysis

import (
	"evenkeel/runtime/history"
)

// figures is where a time in MPI went. All are nanoseconds; late, transfer,
// own and unsplit add up to time.
type figures struct {
	time, late, transfer, own, unsplit float64
	variance                           float64 // of time, from timing a sample
	lateVariance                       float64 // of late, from looking at a sample
	lateClock                          float64 // by which late may be wrong because the clocks are
}

func (f *figures) add(g figures) {
	f.time += g.time
	f.late += g.late
	f.transfer += g.transfer
	f.own += g.own
	f.unsplit += g.unsplit
	f.variance += g.variance
	f.lateVariance += g.lateVariance
	f.lateClock += g.lateClock
}

// scaled is f with all its times multiplied.
func (f figures) scaled(by float64) figures {
	return figures{
		time: f.time * by, late: f.late * by, transfer: f.transfer * by, own: f.own * by, unsplit: f.unsplit * by,
		variance: f.variance * by * by, lateVariance: f.lateVariance * by * by, lateClock: f.lateClock * by,
	}
}

// sample adds up the events of an account. The events that were looked at
// stand for all its calls, each with its weight.
type sample struct {
	events float64 // all that were kept
	seen   float64 // ns in them
	looked float64 // those that were looked at
	known  float64 // ns in them

	// Weighted sums over those that were looked at; time is that of all four.
	time, late, transfer, own, unsplit, clock float64
	// Sums of products, for the variance of the share that is late.
	lateLate, lateTime, timeTime float64
}

// split is where the time of one call went, in nanoseconds.
type split struct{ time, late, transfer, own, unsplit, clock float64 }

func (s *sample) add(x split, weight float64) {
	s.looked++
	s.known += x.time
	s.time += weight * x.time
	s.late += weight * x.late
	s.transfer += weight * x.transfer
	s.own += weight * x.own
	s.unsplit += weight * x.unsplit
	s.clock += weight * x.clock
	late, time := weight*x.late, weight*x.time
	s.lateLate += late * late
	s.lateTime += late * time
	s.timeTime += time * time
}

// strata divide the events of an account: the long ones, which are all kept,
// and the others, of which in a long run only a sample is. Each stands for its
// own kind.
type strata [2]sample

const (
	short = 0
	long  = 1
)

// stratum says to which of its account's samples a call belongs.
func (j *job) stratum(r int, c *call) int {
	if alwaysKept(c.enter, c.leave, j.run.Ranks[r].Level) {
		return long
	}
	return short
}

// estimate is where the time of an account went, and by how much each of its
// nanoseconds that were looked at is to be multiplied, by stratum.
func (s *strata) estimate(a *history.Account) (figures, [2]float64) {
	// The calls that left an event took at least as long as these did.
	time := max(float64(a.Time), s[short].seen+s[long].seen)
	calls := max(float64(a.Calls), s[short].events+s[long].events)
	if class := a.Function.Class; class == history.Local || class == history.Begin {
		return figures{time: time, own: time, variance: a.Variance}, [2]float64{}
	}
	longTime := min(s[long].seen, time)
	f, shortScale := s[short].estimate(time-longTime, calls-s[long].events)
	g, longScale := s[long].estimate(longTime, s[long].events)
	if f.time > 0 {
		share := f.late / f.time
		f.lateVariance += share * share * a.Variance
	}
	f.add(g)
	f.variance = a.Variance
	return f, [2]float64{short: shortScale, long: longScale}
}

// estimate divides a time in MPI, spent in so many calls, as the sample was
// divided.
func (s *sample) estimate(time, calls float64) (figures, float64) {
	if time <= 0 {
		return figures{}, 0
	}
	if s.looked == 0 || s.time <= 0 {
		return figures{time: time, unsplit: time}, 0
	}
	scale := time / s.time
	f := figures{
		time: time, late: s.late * scale, transfer: s.transfer * scale, own: s.own * scale,
		unsplit: s.unsplit * scale, lateClock: s.clock * scale,
	}
	f.lateVariance = s.lateVariance(time, calls)
	return f, scale
}

// lateVariance is the variance of the estimate of late time: that of a ratio
// estimated from a sample without replacement, and never less than what so few
// calls, each wholly late or not at all, would leave open.
func (s *sample) lateVariance(time, calls float64) float64 {
	left := 1 - s.looked/calls // share of the calls that was not looked at
	if left <= 0 || s.timeTime <= 0 {
		return 0
	}
	scale := time / s.time
	share := s.late / s.time
	residual := max(s.lateLate-2*share*s.lateTime+share*share*s.timeTime, 0)
	variance := 0.0
	if s.looked > 1 {
		variance = scale * scale * residual * left * s.looked / (s.looked - 1)
	}
	size := s.time * s.time / s.timeTime // how many calls of equal length it is worth
	smoothed := (share*size + 1) / (size + 2)
	open := time * max(1-s.known/time, 0)
	return max(variance, open*open*smoothed*(1-smoothed)/(size+2))
}
