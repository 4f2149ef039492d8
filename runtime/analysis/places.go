package analysis

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/montanaflynn/stats"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// callSites are the places in the program that call MPI, over all ranks and
// threads.
func (j *job) callSites(all []waits) []profile.CallSite {
	tallies := make([]tally, len(j.sites))
	for r := range j.run.Ranks {
		for a := range j.run.Ranks[r].Accounts {
			site := j.ranks[r].site[a]
			tallies[site].add(&j.run.Ranks[r].Accounts[a], all[r].accounts[a], site)
		}
	}
	out := make([]profile.CallSite, 0, len(j.sites))
	for i, s := range j.sites {
		t := &tallies[i]
		if t.calls == 0 && t.time == 0 {
			continue
		}
		out = append(out, profile.CallSite{
			Call: s.call, Module: s.module, Offset: strconv.FormatUint(s.offset, 16),
			Calls: t.calls, Timed: t.timed, Bytes: t.bytes, Longest: seconds(float64(t.longest)), Split: t.split(0),
		})
	}
	sortSites(out)
	return out
}

// sortSites puts the longest waiting first.
func sortSites(sites []profile.CallSite) {
	slices.SortFunc(sites, func(a, b profile.CallSite) int {
		return cmp.Or(compareWaiting(&a.Split, &b.Split), cmp.Compare(a.Module, b.Module),
			cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Call, b.Call))
	})
}

// JoinLines makes one of the call sites that stand for the same call in the same line: of a
// loop that the compiler unrolled, or a function that it put in several places. It wants their
// lines filled in, and leaves those alone whose line is not known. What is joined keeps the
// module and the offset of the part with the longest waiting.
func JoinLines(sites []profile.CallSite) []profile.CallSite {
	type line struct {
		call, module, function, file string
		number                       int
	}
	first := map[line]int{}
	joined := sites[:0]
	for _, s := range sites {
		if s.Line > 0 {
			at := line{s.Call, s.Module, s.Function, s.File, s.Line}
			if i, ok := first[at]; ok {
				joinSite(&joined[i], &s)
				continue
			}
			first[at] = len(joined)
		}
		joined = append(joined, s)
	}
	sortSites(joined)
	return joined
}

func joinSite(to, from *profile.CallSite) {
	to.Calls += from.Calls
	to.Timed += from.Timed
	to.Bytes += from.Bytes
	to.Longest = max(to.Longest, from.Longest)
	to.Useful += from.Useful
	to.MPI += from.MPI
	to.Late += from.Late
	to.Transfer += from.Transfer
	to.Own += from.Own
	to.Unsplit += from.Unsplit
	to.Error = math.Hypot(to.Error, from.Error) // sites are sampled apart
	to.LateError = math.Hypot(to.LateError, from.LateError)
}

// otherComms is the name of what stands for all communicators that were not
// recorded singly, and for calls that name none.
const otherComms = "other"

// communicators are the communicators, over all their members.
func (j *job) communicators(all []waits) []profile.Communicator {
	type entry struct {
		profile.Communicator
		tally tally
		id    uint64
	}
	entries := map[string]*entry{}
	for r := range j.run.Ranks {
		rank := &j.run.Ranks[r]
		for a := range rank.Accounts {
			comm := history.Comm{Other: true}
			if account := &rank.Accounts[a]; account.Comm != noComm {
				comm = rank.Comms[account.Comm]
			}
			id, name := commID(comm.Own()), comm.Name
			if comm.Other {
				id, name = "", otherComms
				comm.Size = 0
			}
			e := entries[id]
			if e == nil {
				e = &entry{id: comm.Own()}
				e.ID, e.Name, e.Size, e.LastRank = id, name, comm.Size, none
				entries[id] = e
			}
			e.Name = max(e.Name, name) // one that only some ranks know is good for all
			e.tally.add(&rank.Accounts[a], all[r].accounts[a], j.ranks[r].site[a])
		}
	}
	out := make([]profile.Communicator, 0, len(entries))
	for id, e := range entries {
		if e.tally.calls == 0 && e.tally.time == 0 {
			continue
		}
		e.Calls, e.Split = e.tally.calls, e.tally.split(0)
		if o := j.operations.comms[e.id]; o != nil && id != "" {
			j.fillOperations(&e.Communicator, o)
		}
		out = append(out, e.Communicator)
	}
	slices.SortFunc(out, func(a, b profile.Communicator) int {
		return cmp.Or(compareWaiting(&a.Split, &b.Split), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (j *job) fillOperations(c *profile.Communicator, o *commOperations) {
	c.Operations = int64(len(o.spreads))
	c.Spread, _ = stats.Median(o.spreads) // fails on an empty list alone
	most, last := int64(0), none
	for r, n := range o.last {
		if n > most || n == most && r < last {
			most, last = n, r
		}
	}
	c.LastRank = j.run.Ranks[last].Task.Rank
	c.LastShare = float64(most) / float64(c.Operations)
}
