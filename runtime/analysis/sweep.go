package analysis

// waits is what one rank's calls come to.
type waits struct {
	accounts []figures // by account
	caused   []caused  // who made it wait, by account and rank
}

// caused is how long one rank made another wait in the calls of one account.
type caused struct {
	account, rank int32
	time          [2]float64 // ns in the calls that were looked at, weighted, by stratum
	times         int64      // calls
	total         float64    // ns, estimate over all calls
}

// sweep goes through a rank's calls once all of them are judged: it divides
// their time, finds who caused their waits, and what of the timeline was
// waiting.
type sweep struct {
	*job
	chain chain
	times []int64 // by rank: operations in which it was waited for

	samples []strata
	caused  []caused
	index   map[uint64]int32 // by account and rank: index into caused
	recent  []int32          // by account: the entry of caused that was needed last
}

func newSweep(j *job) *sweep {
	return &sweep{job: j, chain: chain{job: j}, times: make([]int64, len(j.ranks))}
}

// rank sweeps one rank's calls.
func (s *sweep) rank(r int) waits {
	rank := &s.run.Ranks[r]
	s.samples = make([]strata, len(rank.Accounts))
	s.recent = make([]int32, len(rank.Accounts))
	s.caused, s.index = nil, map[uint64]int32{}
	for i := range s.recent {
		s.recent[i] = none
	}
	for i := range s.ranks[r].calls {
		s.call(r, int32(i))
	}
	w := waits{accounts: make([]figures, len(rank.Accounts)), caused: s.caused}
	scales := make([][2]float64, len(rank.Accounts))
	for a := range rank.Accounts {
		w.accounts[a], scales[a] = s.samples[a].estimate(&rank.Accounts[a])
	}
	for i := range w.caused {
		c := &w.caused[i]
		c.total = c.time[short]*scales[c.account][short] + c.time[long]*scales[c.account][long]
	}
	return w
}

func (s *sweep) call(r int, i int32) {
	c := &s.ranks[r].calls[i]
	event := &s.run.Ranks[r].Events[i]
	account := event.Account
	k := s.stratum(r, c)
	if k == long {
		c.weight = float32(event.Weight) // all of its kind were kept
	}
	sample := &s.samples[account][k]
	duration := float64(c.leave - c.enter)
	sample.events++
	sample.seen += duration
	if c.verdict == unseen {
		return
	}
	x := split{time: duration, late: float64(c.until - c.enter), clock: float64(c.clock)}
	if x.late > 0 && c.cause != none {
		s.blame(r, account, k, c)
	}
	switch rest := duration - x.late; c.verdict {
	case alone:
		x.own = rest
	case vague: // perhaps also the shortest such call waited
		x.unsplit = rest
	default:
		x.own = min(rest, float64(s.ranks[r].shortest[account]))
		x.transfer = rest - x.own
	}
	sample.add(x, float64(c.weight))
	if event.Thread == 0 {
		s.grid.addCall(r, c)
	}
}

// blame divides a call's wait among those who caused it. What a rank would have
// caused itself is nobody's.
func (s *sweep) blame(r, account, stratum int, c *call) {
	if c.direct {
		s.charge(account, stratum, c, part{c.cause, float64(c.until - c.enter)})
		return
	}
	s.chain.explain(c)
	s.chain.forgive(int32(r))
	for _, p := range s.chain.parts {
		if p.time > 0 {
			s.charge(account, stratum, c, p)
		}
	}
}

// charge notes that a rank caused a part of a call's wait.
func (s *sweep) charge(account, stratum int, c *call, p part) {
	entry := s.entry(int32(account), p.rank)
	entry.time[stratum] += float64(c.weight) * p.time
	entry.times++
	if c.widest {
		s.times[p.rank]++
	}
}

// entry is the place of what a rank caused in the calls of an account.
func (s *sweep) entry(account, rank int32) *caused {
	if i := s.recent[account]; i != none && s.caused[i].rank == rank {
		return &s.caused[i]
	}
	key := uint64(account)<<32 | uint64(rank)
	i, known := s.index[key]
	if !known {
		i = int32(len(s.caused))
		s.index[key] = i
		s.caused = append(s.caused, caused{account: account, rank: rank})
	}
	s.recent[account] = i
	return &s.caused[i]
}
