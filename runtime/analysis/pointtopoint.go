package analysis

import (
	"sort"

	"evenkeel/runtime/history"
)

const (
	// peersRecorded is how many peers an event has room for: where they are as
	// many, there may have been more.
	peersRecorded = 8
	// callsSearched is how many of a peer's calls within a wait are looked at
	// for one that names the waiting rank.
	callsSearched = 64
	// slicesSearched is how many time slices back from the end of a wait are
	// looked at for the call that ended it.
	slicesSearched = 64
)

// matchPeers finds for every point-to-point call of a rank the peer that it
// waited for. No messages are matched: a wait for a message ends right after
// its sender (or, for a send that waits, its receiver) enters MPI, so only a
// peer that enters MPI during the call can have been late.
func (j *job) matchPeers(r int) {
	rank := &j.run.Ranks[r]
	v := &j.ranks[r]
	s := peerSearch{job: j, me: r, hints: make([]int32, len(j.ranks))}
	for i := range rank.Events {
		e := &rank.Events[i]
		c := &v.calls[i]
		if c.verdict != unseen {
			continue
		}
		switch rank.Accounts[e.Account].Function.Class {
		case history.Local, history.Begin:
			c.verdict, c.weight = alone, float32(e.Weight)
		case history.Send, history.Recv, history.SendRecv, history.Wait, history.Sync:
			if !e.Collective {
				s.judge(e, c)
			}
		}
	}
}

// peerSearch looks for the calls of peers that end one rank's waits.
type peerSearch struct {
	*job
	me    int
	hints []int32 // by rank: the call found last
}

// answer is what is known of a peer's part in a wait.
type answer uint8

const (
	absent  answer = iota // it did not enter MPI during the wait
	entered               // it entered MPI during the wait
	unknown               // nothing can be said
	unkept                // what would tell was not kept, by chance
)

func (s *peerSearch) judge(e *history.Event, c *call) {
	if s.open(s.me, c) {
		s.judgeOpen(e, c)
		return
	}
	found, vaguePeer := false, len(e.Peers) == 0 || len(e.Peers) >= peersRecorded
	level := s.run.Ranks[s.me].Level
	late := *c
	clock := int64(0)
	for _, peer := range e.Peers {
		p := s.find(s.me, peer)
		if p == s.me {
			continue
		}
		if p == none || !s.comparable(s.me, p) {
			vaguePeer = true
			continue
		}
		level = max(level, s.run.Ranks[p].Level)
		clock = max(clock, s.clockError(s.me, p))
		at, by, answer := s.entry(p, c)
		switch {
		case answer == unkept:
			return
		case answer == unknown:
			vaguePeer = true
		case answer == entered && (!found || at > late.until):
			found = true
			late.until, late.cause, late.by = at, int32(p), by
		}
	}
	if !sliceKept(c.leave, level) {
		return
	}
	*c = late
	c.clock = float32(min(clock, c.leave-c.enter))
	c.verdict, c.weight = paired, float32(e.Weight)
	if vaguePeer && !found {
		c.verdict = vague
	}
}

// judgeOpen judges a call that had not ended when recording did: the peer that
// it waits for is the one outside MPI, or else the first.
func (s *peerSearch) judgeOpen(e *history.Event, c *call) {
	c.weight, c.verdict = float32(e.Weight), vague
	for _, peer := range e.Peers {
		p := s.find(s.me, peer)
		if p == none || p == s.me || !s.comparable(s.me, p) {
			continue
		}
		v := &s.ranks[p]
		outside := v.last == none || !s.open(p, &v.calls[v.last])
		if c.verdict == vague || outside {
			c.verdict = paired
			c.until, c.cause, c.by = c.leave, int32(p), none
		}
		if outside {
			return
		}
	}
}

// entry looks for the call of peer p whose beginning ended call c: the latest
// that begins within c and names the waiting rank, or else the latest.
func (s *peerSearch) entry(p int, c *call) (int64, int32, answer) {
	from, kept := s.keptFrom(p, c)
	if !kept {
		return 0, none, unkept
	}
	v := &s.ranks[p]
	latest := s.latest(p, c.leave)
	if at, by, ok := s.scan(p, latest, from); ok {
		return at, by, entered
	}
	// The peer's clock may be ahead: its next call may have begun in time.
	if slack := s.clockError(s.me, p); slack > 0 && int(latest)+1 < len(v.calls) {
		next := latest + 1
		if v.calls[next].enter <= c.leave+slack && s.names(p, next) {
			return c.leave, next, entered
		}
	}
	inside := latest >= 0 && v.calls[latest].leave >= c.leave
	if from > c.enter || v.threaded || v.hidden && !inside {
		return 0, none, unknown
	}
	return 0, none, absent
}

// keptFrom is since when, up to the end of call c, all of p's calls were kept;
// false if its end is in a time slice that was not.
func (s *peerSearch) keptFrom(p int, c *call) (int64, bool) {
	level := s.run.Ranks[p].Level
	if level == 0 {
		return c.enter, true
	}
	if !sliceKept(c.leave, level) {
		return 0, false
	}
	from := c.leave &^ (sliceWidth - 1)
	for n := 0; from > c.enter; n++ {
		before := from - sliceWidth
		if n == slicesSearched || !sliceKept(before, level) {
			return from, true
		}
		from = before
	}
	return c.enter, true
}

// latest is the last call of rank p that begins no later than `limit`, or none.
func (s *peerSearch) latest(p int, limit int64) int32 {
	calls := s.ranks[p].calls
	low, high := 0, len(calls) // the first that begins later is within [low, high]
	hint := int(s.hints[p])
	for step := 1; hint < len(calls); step *= 2 {
		if calls[hint].enter > limit {
			high = hint
			break
		}
		low = hint + 1
		hint += step
	}
	low += sort.Search(high-low, func(i int) bool { return calls[low+i].enter > limit })
	s.hints[p] = int32(max(low-1, 0))
	return int32(low - 1)
}

// scan looks back from call `latest` of rank p for the one that ended the wait
// which began at `from`.
func (s *peerSearch) scan(p int, latest int32, from int64) (int64, int32, bool) {
	v := &s.ranks[p]
	for k, n := latest, 0; k >= 0 && n < callsSearched && v.calls[k].enter > from; k, n = k-1, n+1 {
		if s.names(p, k) {
			return v.calls[k].enter, k, true
		}
	}
	// Any call drives MPI's progress. Of several threads, though, the one that
	// entered MPI need not be the one that was late.
	if latest >= 0 && v.calls[latest].enter > from && !v.threaded {
		return v.calls[latest].enter, latest, true
	}
	return 0, none, false
}

// names says whether the waiting rank may be a peer of call k of rank p.
func (s *peerSearch) names(p int, k int32) bool {
	e := &s.run.Ranks[p].Events[k]
	if e.Collective {
		return false
	}
	me := history.Peer(s.run.Ranks[s.me].Task.Rank)
	for _, peer := range e.Peers {
		if peer == me || peer == history.AnyPeer {
			return true
		}
	}
	return len(e.Peers) >= peersRecorded
}
