package analysis

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

// drawWorld is any job that a program of collectives, messages and regions
// makes, recorded in any way.
func drawWorld(t *rapid.T) *world {
	o := options{
		ranks:      rapid.IntRange(1, 9).Draw(t, "ranks"),
		transfer:   rapid.Int64Range(0, 1e6).Draw(t, "transfer"),
		clockError: rapid.Int64Range(0, 1e6).Draw(t, "clock error"),
		timed:      rapid.IntRange(0, 4).Draw(t, "timed"),
		events:     rapid.IntRange(0, 6).Draw(t, "events"),
		level:      rapid.IntRange(0, 6).Draw(t, "level"),
	}
	o.nodes = rapid.IntRange(1, o.ranks).Draw(t, "nodes")
	w := newWorld(rapid.Uint64().Draw(t, "seed"), o)
	part := w.group("part", w.everybody()[:(o.ranks+1)/2]...)
	work := loads(w)
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 0, 1:
			computeAll(w, work)
		case 2:
			f := rapid.SampledFrom([]history.Function{barrier, bcast, reduce, scan}).Draw(t, "function")
			w.all(f, 0, w.rng.IntN(o.ranks))
		case 3:
			w.all(allreduce, part, 0)
		case 4:
			w.halo()
		case 5:
			w.background(work)
		case 6:
			w.mark(rapid.SampledFrom([]string{"", "solve", "update"}).Draw(t, "region"))
		}
	}
	if rapid.Bool().Draw(t, "thread") {
		side := w.group("side", w.everybody()...)
		w.aside(1, func() {
			computeAll(w, work)
			w.all(barrier, side, 0)
		})
	}
	return w
}

// addsUp checks that a split is one.
func addsUp(t require.TestingT, s profile.Split, what string) {
	slack := 1e-9 * (1 + s.MPI)
	require.InDelta(t, s.MPI, s.Late+s.Transfer+s.Own+s.Unsplit, slack, what)
	for _, x := range []float64{s.Useful, s.MPI, s.Late, s.Transfer, s.Own, s.Unsplit, s.Error, s.LateError} {
		require.GreaterOrEqual(t, x, -slack, what)
	}
}

// multiply checks that efficiencies lie between 0 and 1 and that their
// products hold, as far as they are known.
func multiply(t require.TestingT, e profile.Efficiencies, what string) {
	for _, x := range []*float64{e.Parallel, e.LoadBalance, e.Communication, e.Serialisation, e.Transfer} {
		if x != nil {
			require.True(t, *x >= 0 && *x <= 1, what)
		}
	}
	if e.LoadBalance != nil {
		require.InDelta(t, *e.Parallel, *e.LoadBalance**e.Communication, 1e-9, what)
	}
	if e.Serialisation != nil {
		require.InDelta(t, *e.Communication, *e.Serialisation**e.Transfer, 1e-9, what)
	}
}

// consistent checks all that must hold in any profile.
func consistent(t require.TestingT, p *profile.Profile) {
	addsUp(t, p.Total.Split, "total")
	multiply(t, p.Total.Efficiencies, "total")
	elapsed, caused := 0.0, 0.0
	for _, r := range p.Ranks {
		addsUp(t, r.Split, "rank")
		require.InDelta(t, r.Elapsed, r.Useful+r.MPI, 1e-9*(1+r.Elapsed))
		require.LessOrEqual(t, r.Elapsed, p.Total.Elapsed*(1+1e-9))
		elapsed += r.Elapsed
		caused += r.Caused
	}
	require.InDelta(t, elapsed, p.Total.Useful+p.Total.MPI, 1e-9*(1+elapsed))
	for _, g := range p.Regions {
		addsUp(t, g.Split, g.Name)
		multiply(t, g.Efficiencies, g.Name)
	}
	late, mpi := 0.0, 0.0
	for _, s := range p.CallSites {
		addsUp(t, s.Split, s.Call)
		late += s.Late
		mpi += s.MPI
	}
	inComms := 0.0
	for _, c := range p.Communicators {
		addsUp(t, c.Split, c.Name)
		inComms += c.MPI
	}
	require.InDelta(t, mpi, inComms, 1e-9*(1+mpi), "call sites and communicators divide the same")
	require.LessOrEqual(t, caused, late*(1+1e-6)+1e-9, "more was caused than waited")
	cost, share := 0.0, 0.0
	for _, c := range p.Culprits {
		cost += c.Cost
		share += c.Share
	}
	require.InDelta(t, caused, cost, 1e-9*(1+cost))
	require.LessOrEqual(t, share, 1+1e-6)
	for _, pair := range p.WaitsFor {
		require.NotEqual(t, pair.Waiter, pair.Culprit, "a rank cannot wait for itself")
	}
	parts := p.Balance.Constant + p.Balance.Drifting + p.Balance.Random
	require.True(t, parts == 0 || math.Abs(parts-1) < 1e-9)
	encoded, err := json.Marshal(p)
	require.NoError(t, err)
	_, err = profile.Decode(encoded)
	require.NoError(t, err)
}

func TestProfileIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		consistent(t, Analyse(drawWorld(t).finish()))
	})
}

// copied is a run that shares nothing with another, as far as the tests write
// to it.
func copied(run *history.Run) *history.Run {
	out := *run
	out.Ranks = slices.Clone(run.Ranks)
	for r := range out.Ranks {
		rank := &out.Ranks[r]
		rank.Events = slices.Clone(rank.Events)
		for i := range rank.Events {
			rank.Events[i].Peers = slices.Clone(rank.Events[i].Peers)
		}
		rank.Comms = slices.Clone(rank.Comms)
		for c := range rank.Comms {
			rank.Comms[c].Members = slices.Clone(rank.Comms[c].Members)
		}
	}
	return &out
}

func asJSON(t require.TestingT, p *profile.Profile) string {
	data, err := json.Marshal(p)
	require.NoError(t, err)
	return string(data)
}

// The run that is given stays as it is, and the same run gives the same
// profile, in whatever order its ranks stand.
func TestOrderOfRanksDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawWorld(t).finish()
		before := copied(run)
		want := asJSON(t, Analyse(run))
		require.Equal(t, before.Ranks, run.Ranks)
		shuffled := copied(run)
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		order.Shuffle(len(shuffled.Ranks), func(i, k int) {
			shuffled.Ranks[i], shuffled.Ranks[k] = shuffled.Ranks[k], shuffled.Ranks[i]
		})
		require.Equal(t, want, asJSON(t, Analyse(shuffled)))
	})
}

// A run that is later by any time is the same run. Only where events were
// thinned out by slices of time does it matter when it was.
func TestTimeOfRunDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawWorld(t).finish()
		for r := range run.Ranks {
			run.Ranks[r].Level = 0
		}
		later := copied(run)
		by := rapid.Int64Range(-1e15, 1e15).Draw(t, "by")
		for r := range later.Ranks {
			rank := &later.Ranks[r]
			rank.Start, rank.End = rank.Start+by, rank.End+by
			for i := range rank.Events {
				rank.Events[i].Enter += by
				rank.Events[i].Leave += by
			}
		}
		require.Equal(t, asJSON(t, Analyse(run)), asJSON(t, Analyse(later)))
	})
}

// Ranks with other numbers are the same ranks.
func TestNumbersOfRanksDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawWorld(t).finish()
		numbers := rapid.Permutation(everyone(len(run.Ranks))).Draw(t, "numbers")
		renamed := copied(run)
		for r := range renamed.Ranks {
			rank := &renamed.Ranks[r]
			rank.Task.Rank = numbers[r]
			for i := range rank.Events {
				for k, peer := range rank.Events[i].Peers {
					rank.Events[i].Peers[k] = history.Peer(numbers[peer])
				}
			}
			for c := range rank.Comms {
				for k, member := range rank.Comms[c].Members {
					rank.Comms[c].Members[k] = numbers[member]
				}
			}
		}
		p, q := Analyse(run), Analyse(renamed)
		for r := range p.Ranks {
			a, b := p.Ranks[r], q.Ranks[numbers[r]]
			require.InDelta(t, a.Useful, b.Useful, 1e-9)
			require.InDelta(t, a.MPI, b.MPI, 1e-9)
			require.InDelta(t, a.Late, b.Late, 1e-9)
			require.InDelta(t, a.Unsplit, b.Unsplit, 1e-9)
		}
		require.InDelta(t, p.Total.LateError, q.Total.LateError, 1e-9)
	})
}

func everyone(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// However a chain of waits goes, its parts are the wait.
func TestChainsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, _ := clean(drawWorld(t).finish())
		j := newJob(run)
		j.matchCollectives()
		for r := range j.ranks {
			j.matchPeers(r)
		}
		c := chain{job: j}
		for r := range j.ranks {
			for i := range j.ranks[r].calls {
				call := &j.ranks[r].calls[i]
				if call.cause == none {
					continue
				}
				c.explain(call)
				sum := 0.0
				for _, p := range c.parts {
					sum += p.time
				}
				require.InDelta(t, float64(call.until-call.enter), sum, 1e-3)
			}
		}
	})
}

// What is called always kept is.
func TestAlwaysKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.IntRange(0, 20).Draw(t, "level")
		enter := rapid.Int64Range(0, 1<<50).Draw(t, "enter")
		leave := enter + rapid.Int64Range(0, 1<<40).Draw(t, "duration")
		if alwaysKept(enter, leave, level) {
			require.True(t, history.KeepEvent(false, 0, enter, leave, level))
		}
	})
}
