package analysis

import (
	"math"
	"sort"

	"evenkeel/runtime/history"
)

const (
	// peersRecorded is how many peers an event has room for: where they are as
	// many, there may have been more.
	peersRecorded = 8
	// callsSearched is how many of a peer's calls within a wait are looked at,
	// from its end back.
	callsSearched = 64
	// eager is the size in bytes up to which a message leaves with the call
	// that sends it; a longer one may need its sender's next call.
	eager = 4096
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
		switch class := rank.Accounts[e.Account].Function.Class; class {
		case history.Local, history.Begin:
			c.verdict, c.weight = alone, float32(e.Weight)
		case history.Send, history.Recv, history.SendRecv, history.Wait, history.Sync:
			if !e.Collective {
				s.judge(e, c, class)
			}
		case history.Held:
			s.judgeHeld(e, c)
		case history.Access:
			s.judgeAccess(e, c)
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

func (s *peerSearch) judge(e *history.Event, c *call, class history.Class) {
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
		at, by, answer := s.entry(p, c, class, e.Guessed)
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

// judgeHeld judges a call that waited for its peer from begin to end: it was made because
// the peer had what it needs, and ended when that was given up. Of a long run's calls those
// are no sample that were kept because they touch a slice; the long ones are all there, and
// need no call of the peer's.
func (s *peerSearch) judgeHeld(e *history.Event, c *call) {
	level := s.run.Ranks[s.me].Level
	if !s.open(s.me, c) && !sliceKept(c.leave, level) && !alwaysKept(c.enter, c.leave, level) {
		return
	}
	c.verdict, c.weight = vague, float32(e.Weight)
	for _, peer := range e.Peers {
		if p := s.find(s.me, peer); p != none && p != s.me {
			c.verdict = paired
			c.until, c.cause, c.by = c.leave, int32(p), none
			if next := int(s.latest(p, c.leave)) + 1; next < len(s.ranks[p].calls) && s.ranks[p].calls[next].prev != none {
				c.by = int32(next)
			}
			return
		}
	}
}

// judgeAccess judges a call that moved data of a peer: nobody was late for it.
func (s *peerSearch) judgeAccess(e *history.Event, c *call) {
	switch {
	case s.open(s.me, c):
		s.judgeOpen(e, c)
	case sliceKept(c.leave, s.run.Ranks[s.me].Level):
		c.verdict, c.weight = paired, float32(e.Weight)
	}
}

// judgeOpen judges a call that had not ended when recording did: the peer that
// it waits for is the one outside MPI, of several the one that has sent nothing
// for the longest time, or else the first.
func (s *peerSearch) judgeOpen(e *history.Event, c *call) {
	c.weight, c.verdict = float32(e.Weight), vague
	culprit, outside, silentSince := none, false, int64(0)
	for _, peer := range e.Peers {
		p := s.find(s.me, peer)
		if p == none || p == s.me || !s.comparable(s.me, p) {
			continue
		}
		if v := &s.ranks[p]; v.last != none && s.open(p, &v.calls[v.last]) {
			if culprit == none {
				culprit = p
			}
			continue
		}
		if sent := s.lastSent(p); !outside || sent < silentSince {
			culprit, outside, silentSince = p, true, sent
		}
	}
	if culprit != none {
		c.verdict = paired
		c.until, c.cause, c.by = c.leave, int32(culprit), none
	}
}

// lastSent is when rank p last began to send something to the waiting rank, or
// before all times. Only what every rank of a thinned-out run keeps counts, so
// that no peer seems more silent than another because less of it was kept.
func (s *peerSearch) lastSent(p int) int64 {
	calls := s.ranks[p].calls
	for k := int32(len(calls)) - 1; k >= 0; k-- {
		if !history.KeepEvent(false, 0, calls[k].enter, calls[k].leave, s.level) || !s.names(p, k) {
			continue
		}
		if sending := s.sending(p, k); sending == sendsAtOnce || sending == sendsLater {
			return calls[k].enter
		}
	}
	return math.MinInt64
}

// entry looks for the call of peer p whose beginning ended call c, which is of
// that class and may have begun later than it says.
func (s *peerSearch) entry(p int, c *call, class history.Class, guessed bool) (int64, int32, answer) {
	from, kept := s.keptFrom(p, c)
	if !kept {
		return 0, none, unkept
	}
	v := &s.ranks[p]
	latest := s.latest(p, c.leave)
	if guessed {
		from = s.silentUntil(p, latest, from)
	}
	if by := s.scan(p, latest, from, class != history.Send); by != none {
		return v.calls[by].enter, by, entered
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

// silentUntil is when the longest time after `from` ended that rank p was outside
// MPI, up to its call `latest`: the wait for it lies in that time, and p's calls
// before may have been answers to earlier calls of the waiting rank.
func (s *peerSearch) silentUntil(p int, latest int32, from int64) int64 {
	v := &s.ranks[p]
	longest, until := int64(0), from
	for k := latest; k >= 0 && v.calls[k].enter > from; k-- {
		since := from
		if k > 0 {
			since = max(since, v.calls[k-1].leave)
		}
		if silence := v.calls[k].enter - since; silence > longest {
			longest, until = silence, v.calls[k].enter-1
		}
	}
	return until
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

// scan looks for the call of rank p, up to its call `latest`, that ended a wait
// which began at `from`. Messages between two ranks come in order, so it is the
// first with which p sent something to the waiting rank, and not a later one,
// which p may have made before the waiting rank was on a core again; or, where
// that was a long message that did not block, the call that completes it. A
// rank that itself does nothing but send waits for the first call of any kind
// that names it.
func (s *peerSearch) scan(p int, latest int32, from int64, forMessage bool) int32 {
	v := &s.ranks[p]
	named, sent, completed := int32(none), int32(none), int32(none)
	for k, n := latest, 0; k >= 0 && n < callsSearched && v.calls[k].enter > from; k, n = k-1, n+1 {
		if !s.names(p, k) {
			continue
		}
		named = k
		switch s.sending(p, k) {
		case completes:
			completed = k
		case sendsAtOnce:
			sent = k
		case sendsLater:
			if sent = k; completed != none {
				sent = completed
			}
		}
	}
	switch {
	case forMessage && sent != none:
		return sent
	case named != none:
		return named
	case latest >= 0 && v.calls[latest].enter > from && !v.threaded:
		// Any call drives MPI's progress; that just before the end of the wait
		// is the likeliest. Of several threads, though, the one that entered
		// MPI need not be the one that was late.
		return latest
	}
	return none
}

// sending is what a call does for a message from its rank.
type sending uint8

const (
	sendsNothing sending = iota
	sendsAtOnce
	sendsLater // when it is completed
	completes
)

func (s *peerSearch) sending(p int, k int32) sending {
	e := &s.run.Ranks[p].Events[k]
	switch f := &s.run.Ranks[p].Accounts[e.Account].Function; f.Class {
	case history.Send, history.SendRecv:
		return sendsAtOnce
	case history.Wait:
		return completes
	case history.Local:
		switch f.Name {
		case "MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Ibsend", "MPI_Start", "MPI_Startall":
			if e.Bytes > eager {
				return sendsLater
			}
			return sendsAtOnce
		}
	}
	return sendsNothing
}

// names says whether the waiting rank may be a peer of call k of rank p.
func (s *peerSearch) names(p int, k int32) bool {
	e := &s.run.Ranks[p].Events[k]
	class := s.run.Ranks[p].Accounts[e.Account].Function.Class
	if e.Collective || class == history.Held || class == history.Access { // which send nothing
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
