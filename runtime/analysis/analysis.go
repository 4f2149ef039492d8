// Package analysis turns what the ranks of a job recorded into what can be
// concluded from it: which ranks waited, for whom, where, how steadily, and
// what it cost. docs/analysis.md says how each figure is computed and how
// certain it is.
//
// Everything here is a pure function of the run: no clock, no I/O, no
// goroutine.
package analysis

import (
	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// Analyse makes the profile of a run. It fills all but Created and, of the
// call sites, Function, File and Line, which need a clock and symbols.
//
// A run may be incomplete or damaged: what does not fit together is left out,
// and the profile's notes say so. The run is only read.
//
// The steps: every collective call is judged by the arrivals at its operation
// (collective.go), every other by what its peers did in the meantime
// (pointtopoint.go); then each rank's calls are swept once, their time divided
// and the ranks that caused it found (sweep.go, chain.go), and scaled to the
// accounts' totals (estimate.go). The rest adds that up in several ways.
func Analyse(run *history.Run) *profile.Profile {
	cleaned, bad := clean(run)
	j := newJob(cleaned)
	j.matchCollectives()
	for r := range j.ranks {
		j.matchPeers(r)
	}
	sweep := newSweep(j)
	all := make([]waits, len(j.ranks))
	for r := range j.ranks {
		all[r] = sweep.rank(r)
	}

	p := &profile.Profile{
		Format: profile.Format, Version: profile.Version,
		Job: run.Job, Complete: run.Complete && bad == 0,
		Nodes: j.nodes(),
	}
	if len(cleaned.Ranks) > 0 {
		p.Command = cleaned.Ranks[0].Command
	}
	elapsed := j.elapsedOf()
	p.Total, p.Ranks = j.total(all, elapsed)
	p.Regions = j.regions(all, elapsed)
	p.Communicators = j.communicators(all)
	p.CallSites = j.callSites(all)
	j.blame(p, all, sweep.times)
	p.Worst = j.operations.worst.ordered()
	p.Timeline = j.grid.timeline()
	p.Balance = j.balance(p, all)
	p.Quality = j.quality()
	p.Fast = fast(run)
	p.Windows = windows(run)
	p.Idle = idle(run)
	p.Notes = j.notes(&p.Quality, bad)
	return p
}
