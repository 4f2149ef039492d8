package analysis

import (
	"cmp"
	"slices"

	"evenkeel/runtime/history"
)

// Bounds of what can be meant: beyond them a value is damage, and sums of such
// values would overflow.
const (
	farthest     = int64(1) << 55 // ns: a year and more, from any clock's zero
	mostThreads  = 1024
	mostWeight   = int64(1) << 32
	mostVariance = 1e40 // ns²
	highestLevel = 30
	mostWorlds   = 1 << 20
	mostRanks    = 1 << 24
)

// clean returns a run in which every index is in range, times are in order,
// ranks are sorted and no rank appears twice, and how many ranks, events and
// accounts did not fit and were left out. The run that it is given stays as it
// is; what needs no change is shared with it.
func clean(run *history.Run) (*history.Run, int64) {
	out := *run
	bad := int64(0)
	out.Nodes = slices.Clone(run.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.ClockError = min(max(n.ClockError, 0), farthest)
		if n.ClockOffset < -farthest || n.ClockOffset > farthest {
			n.ClockKnown = false
		}
	}
	out.Ranks = make([]history.Rank, 0, len(run.Ranks))
	for i := range run.Ranks {
		r := &run.Ranks[i]
		if r.Node < 0 || r.Node >= len(run.Nodes) || r.Task.Rank < 0 || r.Task.Rank > mostRanks ||
			r.Task.World < 0 || r.Task.World > mostWorlds || !plausible(r.Start) || !plausible(r.End) {
			bad++
			continue
		}
		out.Ranks = append(out.Ranks, cleanRank(r, &bad))
	}
	slices.SortStableFunc(out.Ranks, func(a, b history.Rank) int { return compareTasks(a.Task, b.Task) })
	ranks := len(out.Ranks)
	out.Ranks = slices.CompactFunc(out.Ranks, func(a, b history.Rank) bool { return a.Task == b.Task })
	return &out, bad + int64(ranks-len(out.Ranks))
}

func compareTasks(a, b history.Task) int {
	return cmp.Or(cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank))
}

func plausible(t int64) bool { return t > -farthest && t < farthest }

func cleanRank(in *history.Rank, bad *int64) history.Rank {
	r := *in
	r.End = max(r.End, r.Start)
	r.Paused = min(max(r.Paused, 0), r.End-r.Start)
	r.Level = min(max(r.Level, 0), highestLevel)
	r.Offered, r.Lost, r.Unrecorded = count(r.Offered), count(r.Lost), count(r.Unrecorded)
	r.Regions = cleanRegions(in, r.End-r.Start-r.Paused)
	r.Accounts = cleanAccounts(&r, bad)
	r.Events = cleanEvents(&r, bad)
	r.Comms = cleanComms(r.Comms)
	if r.BinWidth <= 0 || r.BinWidth > farthest || int64(len(r.Bins)) > farthest/r.BinWidth {
		r.Bins = nil
	}
	return r
}

// count is a number of things: not negative, and small enough to be added up.
func count(n int64) int64 { return min(max(n, 0), farthest) }

// cleanRegions gives every rank the region of the whole run, and a single
// region the whole time.
func cleanRegions(r *history.Rank, elapsed int64) []history.Region {
	if len(r.Regions) == 0 {
		return []history.Region{{Name: wholeRun, Entries: 1, Time: elapsed}}
	}
	regions := slices.Clone(r.Regions)
	for i := range regions {
		g := &regions[i]
		if g.Parent < 0 || g.Parent >= len(regions) {
			g.Parent = 0
		}
		g.Time, g.Entries = count(g.Time), count(g.Entries)
	}
	regions[0].Name = wholeRun
	regions[0].Off = false
	if !slices.ContainsFunc(regions[1:], func(g history.Region) bool { return g.Time > 0 && !g.Off }) {
		regions[0].Time = elapsed
	}
	return regions
}

func cleanAccounts(r *history.Rank, bad *int64) []history.Account {
	accounts := r.Accounts
	copied := false
	for i := range r.Accounts {
		mended := mend(r, r.Accounts[i])
		if mended == r.Accounts[i] {
			continue
		}
		if !copied {
			accounts, copied = slices.Clone(accounts), true
		}
		*bad++
		accounts[i] = mended
	}
	return accounts
}

// mend makes the best of an account that is out of order. Its place is kept,
// for others refer to it by number.
func mend(r *history.Rank, a history.Account) history.Account {
	a.Calls, a.Time, a.Bytes = count(a.Calls), count(a.Time), count(a.Bytes)
	a.Timed = min(count(a.Timed), a.Calls)
	a.Longest = count(a.Longest)
	a.Shortest = min(count(a.Shortest), a.Longest)
	if a.Comm < 0 || a.Comm >= len(r.Comms) {
		a.Comm = noComm
	}
	if a.Region < 0 || a.Region >= len(r.Regions) {
		a.Region = 0
	}
	if a.Thread < 0 || a.Thread >= mostThreads {
		a.Thread = mostThreads - 1
	}
	if !(a.Variance >= 0 && a.Variance < mostVariance) {
		a.Variance = 0
	}
	return a
}

// noComm is the Account.Comm of an account that names no communicator.
const noComm = -1

func cleanEvents(r *history.Rank, bad *int64) []history.Event {
	sound := func(e *history.Event) bool {
		return e.Enter <= e.Leave && plausible(e.Enter) && plausible(e.Leave) &&
			e.Account >= 0 && e.Account < len(r.Accounts) && e.Thread >= 0 && e.Thread < mostThreads &&
			e.Weight >= 1 && e.Weight <= mostWeight
	}
	kept, sorted := 0, true
	for i := range r.Events {
		if sound(&r.Events[i]) {
			kept++
		}
		sorted = sorted && (i == 0 || r.Events[i-1].Enter <= r.Events[i].Enter)
	}
	if kept == len(r.Events) && sorted {
		return r.Events
	}
	events := make([]history.Event, 0, kept)
	for i := range r.Events {
		if sound(&r.Events[i]) {
			events = append(events, r.Events[i])
		}
	}
	*bad += int64(len(r.Events) - kept)
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.Enter, b.Enter) })
	return events
}

func cleanComms(comms []history.Comm) []history.Comm {
	if !slices.ContainsFunc(comms, func(c history.Comm) bool { return c.Size < 0 }) {
		return comms
	}
	comms = slices.Clone(comms)
	for i := range comms {
		comms[i].Size = max(comms[i].Size, 0)
	}
	return comms
}
