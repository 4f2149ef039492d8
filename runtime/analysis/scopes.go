package analysis

import (
	"cmp"
	"slices"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

const (
	// vagueShare is the share of the time in MPI that may be unsplit before
	// serialisation and transfer are said to be unknown.
	vagueShare = 0.1
	// vagueCore is the share of core time below which that does not matter.
	vagueCore = 0.01
	// noise is the share of useful time that may be the error of timing a
	// sample before ratios of useful times are said to be unknown.
	noise = 0.2
)

// scope adds up what the ranks did in the whole run or in a region.
type scope struct {
	tally  tally
	useful float64 // ns
	ranks  []rankTime
}

// rankTime is one rank's part in a scope, in nanoseconds.
type rankTime struct {
	world                          int32
	elapsed, useful, late, unsplit float64
}

// add takes in one rank's accounts of the scope. A rank cannot have been in
// MPI for longer than it was there; the estimate from timing a sample can say
// so.
func (s *scope) add(j *job, r int, elapsed float64, accounts []int, w *waits) figures {
	rank := &j.run.Ranks[r]
	sum := figures{}
	for _, a := range accounts {
		sum.time += w.accounts[a].time
	}
	scale := 1.0
	if sum.time > elapsed {
		scale = elapsed / sum.time
	}
	sum = figures{}
	for _, a := range accounts {
		f := w.accounts[a].scaled(scale)
		s.tally.add(&rank.Accounts[a], f, j.ranks[r].site[a])
		sum.add(f)
	}
	useful := max(elapsed-sum.time, 0)
	s.useful += useful
	s.ranks = append(s.ranks, rankTime{j.ranks[r].world, elapsed, useful, sum.late, sum.unsplit})
	return sum
}

// profile is the scope as the profile has it. worldElapsed, by the first rank
// of a world, is how long that world lasted in it.
func (s *scope) profile(worldElapsed map[int32]float64) profile.Scope {
	out := profile.Scope{Ranks: len(s.ranks), Split: s.tally.split(s.useful), Calls: s.tally.calls}
	for _, world := range worldsOf(s.ranks) {
		out.Elapsed = max(out.Elapsed, seconds(worldElapsed[world]))
	}
	// Without any call timed, time in MPI is not 0 but unknown.
	if s.tally.calls == 0 || s.tally.timed > 0 {
		out.Efficiencies = s.efficiencies(worldElapsed)
	}
	return out
}

// efficiencies are the POP metrics. Where ranks are of several worlds, each
// world is compared within itself, for as long as it lasted, and counts with
// its core time.
func (s *scope) efficiencies(worldElapsed map[int32]float64) profile.Efficiencies {
	var core, useful, mostUseful, ideal float64
	for _, world := range worldsOf(s.ranks) {
		n, most, mostBusy := 0.0, 0.0, 0.0
		for _, r := range s.ranks {
			if r.world == world {
				n++
				useful += r.useful
				most = max(most, r.useful)
				mostBusy = max(mostBusy, r.useful+r.late)
			}
		}
		elapsed := max(worldElapsed[world], most)
		core += n * elapsed
		mostUseful += n * most
		ideal += n * min(max(mostBusy, most), elapsed)
	}
	var e profile.Efficiencies
	if core <= 0 {
		return e
	}
	e.Parallel = ratio(useful, core)
	e.Communication = ratio(mostUseful, core)
	if s.tally.error() > noise*useful {
		return e
	}
	e.LoadBalance = ratio(useful, mostUseful)
	if unsplit := s.tally.unsplit; unsplit <= vagueShare*s.tally.time || unsplit <= vagueCore*core {
		e.Serialisation = ratio(mostUseful, ideal)
		e.Transfer = ratio(ideal, core)
	}
	return e
}

// ratio is null where there is nothing to divide by.
func ratio(a, b float64) *float64 {
	if b <= 0 {
		return nil
	}
	q := min(a/b, 1)
	return &q
}

func worldsOf(ranks []rankTime) []int32 {
	var worlds []int32
	for _, r := range ranks {
		if !slices.Contains(worlds, r.world) {
			worlds = append(worlds, r.world)
		}
	}
	return worlds
}

// elapsedOf is how long each world lasted: from its first rank's start to its
// last rank's end, without the time in which recording was off on all of them;
// where clocks cannot be compared, the longest of its ranks.
func (j *job) elapsedOf() map[int32]float64 {
	out := map[int32]float64{}
	for first := 0; first < len(j.ranks); {
		end := first
		for end < len(j.ranks) && j.ranks[end].world == j.ranks[first].world {
			end++
		}
		ranks := j.run.Ranks[first:end]
		start, stop, paused, longest, oneClock := ranks[0].Start, ranks[0].End, ranks[0].Paused, int64(0), true
		for i := range ranks {
			start, stop = min(start, ranks[i].Start), max(stop, ranks[i].End)
			paused = min(paused, ranks[i].Paused)
			longest = max(longest, ranks[i].End-ranks[i].Start-ranks[i].Paused)
			oneClock = oneClock && j.comparable(first, first+i)
		}
		out[int32(first)] = float64(longest)
		if oneClock {
			out[int32(first)] = float64(stop - start - paused)
		}
		first = end
	}
	return out
}

// accountsOf are the numbers of a rank's accounts that are the main thread's
// and for which `in` holds.
func accountsOf(rank *history.Rank, in func(a *history.Account) bool) []int {
	var list []int
	for i := range rank.Accounts {
		if a := &rank.Accounts[i]; a.Thread == 0 && in(a) {
			list = append(list, i)
		}
	}
	return list
}

// total is the whole run, and each rank by itself. Times are those of the main
// threads, numbers of calls those of all.
func (j *job) total(all []waits, worldElapsed map[int32]float64) (profile.Scope, []profile.Rank) {
	var s scope
	ranks := make([]profile.Rank, len(j.run.Ranks))
	for r := range j.run.Ranks {
		rank := &j.run.Ranks[r]
		elapsed := float64(rank.End - rank.Start - rank.Paused)
		accounts := accountsOf(rank, func(*history.Account) bool { return true })
		s.add(j, r, elapsed, accounts, &all[r])
		var own scope
		own.add(j, r, elapsed, accounts, &all[r])
		v := &j.ranks[r]
		ranks[r] = profile.Rank{
			World: rank.Task.World, Rank: rank.Task.Rank, Node: rank.Node, State: stateName(rank.State),
			Elapsed: seconds(elapsed), Split: own.tally.split(own.useful),
			First: v.first, Last: v.lastIn, Operations: v.tookPart,
		}
		for i := range rank.Accounts {
			ranks[r].Calls += rank.Accounts[i].Calls
			ranks[r].Bytes += rank.Accounts[i].Bytes
		}
	}
	total := s.profile(worldElapsed)
	total.Calls = 0
	for r := range ranks {
		total.Calls += ranks[r].Calls
	}
	return total, ranks
}

func stateName(s history.State) string {
	switch s {
	case history.Finalized:
		return "finalized"
	case history.Aborted:
		return "aborted"
	case history.Exited:
		return "exited"
	case history.Killed:
		return "killed"
	default:
		return "running"
	}
}

// regionKey puts the regions of different ranks together, where they may have
// different numbers.
type regionKey struct{ name, parent string }

// regions are the marked parts of the program, and the rest of it.
func (j *job) regions(all []waits, worldElapsed map[int32]float64) []profile.Region {
	type entry struct {
		scope
		entries int64
		elapsed map[int32]float64
	}
	entries := map[regionKey]*entry{}
	for r := range j.run.Ranks {
		rank := &j.run.Ranks[r]
		for key, numbers := range regionsByName(rank) {
			e := entries[key]
			if e == nil {
				e = &entry{elapsed: map[int32]float64{}}
				entries[key] = e
			}
			time := 0.0
			for _, g := range numbers {
				time += float64(rank.Regions[g].Time)
				e.entries += rank.Regions[g].Entries
			}
			accounts := accountsOf(rank, func(a *history.Account) bool { return slices.Contains(numbers, a.Region) })
			e.add(j, r, time, accounts, &all[r])
			world := j.ranks[r].world
			e.elapsed[world] = max(e.elapsed[world], time)
		}
	}
	whole := regionKey{wholeRun, ""}
	if len(entries) == 1 && entries[whole] != nil {
		entries[whole].elapsed = worldElapsed // nothing is marked
	}
	out := make([]profile.Region, 0, len(entries))
	for key, e := range entries {
		out = append(out, profile.Region{
			Name: key.name, Parent: key.parent, Entries: e.entries, Scope: e.scope.profile(e.elapsed),
		})
	}
	slices.SortFunc(out, func(a, b profile.Region) int {
		return cmp.Or(compareWaiting(&a.Split, &b.Split), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Parent, b.Parent))
	})
	return out
}

// regionsByName are a rank's regions that were entered, by name; several
// numbers may have the same.
func regionsByName(rank *history.Rank) map[regionKey][]int {
	byName := map[regionKey][]int{}
	for g := range rank.Regions {
		region := &rank.Regions[g]
		if region.Off || g > 0 && region.Entries == 0 && region.Time == 0 {
			continue
		}
		key := regionKey{name: region.Name}
		if g > 0 {
			key.parent = rank.Regions[region.Parent].Name
		}
		byName[key] = append(byName[key], g)
	}
	return byName
}

// compareWaiting puts what waits longest first.
func compareWaiting(a, b *profile.Split) int {
	return cmp.Or(cmp.Compare(b.MPI-b.Own, a.MPI-a.Own), cmp.Compare(b.MPI, a.MPI))
}
