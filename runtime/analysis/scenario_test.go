package analysis

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/profile"
)

const second = int64(1e9)

// callSite finds the only call site of a function.
func callSite(t *testing.T, p *profile.Profile, call string) profile.CallSite {
	t.Helper()
	for _, s := range p.CallSites {
		if s.Call == call {
			return s
		}
	}
	require.Fail(t, "no such call site", call)
	return profile.CallSite{}
}

func assertSplit(t *testing.T, late, transfer, own, unsplit float64, got profile.Split) {
	t.Helper()
	assert.InDelta(t, late, got.Late, 1e-9, "late")
	assert.InDelta(t, transfer, got.Transfer, 1e-9, "transfer")
	assert.InDelta(t, own, got.Own, 1e-9, "own")
	assert.InDelta(t, unsplit, got.Unsplit, 1e-9, "unsplit")
}

// Three ranks compute 1, 2 and 4 s, then a barrier lets all go at 5 s; the run
// ends there.
func TestBarrier(t *testing.T) {
	b := newBuilder(3, 0, 5*second)
	b.world()
	for r, enter := range []int64{1, 2, 4} {
		b.call(r, made{function: barrier, enter: enter * second, leave: 5 * second, collective: true, offset: 0x10})
	}
	p := Analyse(b.done())

	// Late: 3 s and 2 s; the rest of each call is 1 s and was never shorter.
	assertSplit(t, 5, 0, 3, 0, p.Total.Split)
	assert.InDelta(t, 7, p.Total.Useful, 1e-9)
	assert.InDelta(t, 8, p.Total.MPI, 1e-9)
	e := p.Total.Efficiencies
	assert.InDelta(t, 7.0/15, *e.Parallel, 1e-12)
	assert.InDelta(t, 7.0/12, *e.LoadBalance, 1e-12)
	assert.InDelta(t, 4.0/5, *e.Communication, 1e-12)
	assert.InDelta(t, 1, *e.Serialisation, 1e-12) // on an ideal network: 4 s
	assert.InDelta(t, 4.0/5, *e.Transfer, 1e-12)

	require.Len(t, p.Culprits, 1)
	assert.Equal(t, profile.Culprit{World: 1, Rank: 2, Cost: 5, Share: 1, Times: 1, Victim: 0}, p.Culprits[0])
	require.Len(t, p.WaitsFor, 2)
	assert.Equal(t, profile.Pair{World: 1, Waiter: 0, Culprit: 2, Cost: 3, Times: 1}, p.WaitsFor[0])
	assert.InDelta(t, 5, p.Ranks[2].Caused, 1e-9)
	assert.EqualValues(t, 1, p.Ranks[2].Last)
	assert.EqualValues(t, 1, p.Ranks[0].First)

	require.Len(t, p.Worst, 1)
	w := p.Worst[0]
	assert.Equal(t, []profile.Arrival{{Rank: 0}, {Rank: 1, At: 1}, {Rank: 2, At: 3}}, w.Arrivals)
	assert.Equal(t, "MPI_COMM_WORLD", w.Communicator)
	assert.InDelta(t, 5, w.Cost, 1e-9)
	require.Len(t, p.Communicators, 1)
	assert.Equal(t, 2, p.Communicators[0].LastRank)
	assert.InDelta(t, 3, p.Communicators[0].Spread, 1e-9)
	assert.Equal(t, "10", p.CallSites[0].Offset)
	assert.Equal(t, "app", p.CallSites[0].Module)
}

// The root of a broadcast comes at 3 s: rank 1 waits for it from 1 s on, and
// rank 2, which comes at 4 s, for nobody.
func TestBcast(t *testing.T) {
	b := newBuilder(3, 0, 5*second)
	b.world()
	for r, times := range [][2]int64{{3, 4}, {1, 4}, {4, 5}} {
		b.call(r, made{function: bcast, enter: times[0] * second, leave: times[1] * second, collective: true, peers: peers(0)})
	}
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 1, 0, p.Ranks[0].Split)
	assertSplit(t, 2, 0, 1, 0, p.Ranks[1].Split)
	assertSplit(t, 0, 0, 1, 0, p.Ranks[2].Split)
	assert.Equal(t, 0, p.Culprits[0].Rank)
}

// In a reduction the root waits for the last of all. Rank 1 leaves at once,
// and does not wait for the root, which comes later.
func TestReduce(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.world()
	for r, times := range [][2]float64{{2, 6}, {1, 1.5}, {5, 5.5}} {
		b.call(r, made{
			function: reduce, enter: int64(times[0] * 1e9), leave: int64(times[1] * 1e9), collective: true, peers: peers(0),
		})
	}
	p := Analyse(b.done())
	assertSplit(t, 3, 0.5, 0.5, 0, p.Ranks[0].Split)
	assertSplit(t, 0, 0, 0.5, 0, p.Ranks[1].Split)
	assertSplit(t, 0, 0, 0.5, 0, p.Ranks[2].Split)
	assert.Equal(t, 2, p.Culprits[0].Rank)
}

// In a scan rank r waits for the ranks below it alone.
func TestScan(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.world()
	for r, times := range [][2]int64{{3, 4}, {1, 4}, {5, 6}} {
		b.call(r, made{function: scan, enter: times[0] * second, leave: times[1] * second, collective: true})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 0, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 2, p.Ranks[1].Late, 1e-9)
	assert.InDelta(t, 0, p.Ranks[2].Late, 1e-9)
}

// A neighbourhood collective waits for its rank's neighbours; without them it is unsplit.
func TestNeighbourhood(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.world()
	b.run.Ranks[0].Comms[0].Neighbours, b.run.Ranks[1].Comms[0].Neighbours = []int{1}, []int{0}
	b.call(0, made{function: neighbour, enter: 1 * second, leave: 3 * second, collective: true})
	b.call(1, made{function: neighbour, enter: 2 * second, leave: 3 * second, collective: true})
	b.call(2, made{function: neighbour, enter: 5 * second, leave: 6 * second, collective: true})
	p := Analyse(b.done())
	assertSplit(t, 1, 0, 1, 0, p.Ranks[0].Split)
	assertSplit(t, 0, 0, 1, 0, p.Ranks[1].Split)
	assertSplit(t, 0, 0, 0, 1, p.Ranks[2].Split)
}

// A nonblocking barrier: rank 0 begins at 1 s, computes, and waits from 3 s on
// for rank 1, which begins at 4 s.
func TestNonblockingCollective(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	for r, begin := range []int64{1, 4} {
		b.call(r, made{function: ibarrier, enter: begin * second, leave: begin*second + 1000, collective: true, sequence: 9})
	}
	b.call(0, made{function: waitall, enter: 3 * second, leave: 5 * second, collective: true, sequence: 9})
	b.call(1, made{function: waitall, enter: 4*second + 2000, leave: 5 * second, collective: true, sequence: 9})
	p := Analyse(b.done())
	assert.InDelta(t, 1, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 0, p.Ranks[1].Late, 1e-9)
	assert.EqualValues(t, 1, p.Quality.Operations)
	assert.Equal(t, 1, p.Culprits[0].Rank)
	assert.EqualValues(t, 1, p.Culprits[0].Times)
}

// The receiver waits from 1 s on; the sender computes until 4 s and its
// message takes until 5 s.
func TestReceiveFromLateSender(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	b.call(0, made{function: recv, enter: 1 * second, leave: 5 * second, peers: peers(1)})
	b.call(0, made{function: recv, enter: 5*second + 1, leave: 5*second + 1, peers: peers(1)}) // the shortest: 0
	b.call(1, made{function: send, enter: 4 * second, leave: 5 * second, peers: peers(0)})
	p := Analyse(b.done())
	assertSplit(t, 3, 1, 0, 0, p.Ranks[0].Split)
	assertSplit(t, 0, 0, 1, 0, p.Ranks[1].Split)
	assert.Equal(t, profile.Pair{World: 1, Waiter: 0, Culprit: 1, Cost: 3, Times: 1}, p.WaitsFor[0])
}

// The receiver's call is said to have begun at 1 s, which is a guess: until 2 s
// it still got messages of the sender, which then computes until 4 s.
func TestReceiveThatBeganLaterThanSaid(t *testing.T) {
	late := func(guessed bool) float64 {
		b := newBuilder(2, 0, 6*second)
		b.world()
		b.call(0, made{function: recv, enter: 1 * second, leave: 5 * second, peers: peers(1), guessed: guessed})
		for _, at := range []int64{12, 15, 20, 40} {
			b.call(1, made{function: send, enter: at * second / 10, leave: at*second/10 + 1000, peers: peers(0)})
		}
		return Analyse(b.done()).Ranks[0].Late
	}
	assert.InDelta(t, 3, late(true), 1e-9)
	assert.InDelta(t, 0.2, late(false), 1e-9, "a call that was timed from its beginning got the first message")
}

// The sender was there before the receiver and computes on: the message needs
// nothing of it, so it is not to blame.
func TestReceiveOfEagerMessage(t *testing.T) {
	b := newBuilder(2, 0, 9*second)
	b.world()
	b.call(1, made{function: send, enter: 1 * second, leave: 1*second + 1000, peers: peers(0)})
	b.call(0, made{function: recv, enter: 2 * second, leave: 3 * second, peers: peers(1)})
	b.call(1, made{function: send, enter: 8 * second, leave: 8*second + 1000, peers: peers(0)})
	b.call(0, made{function: recv, enter: 8 * second, leave: 8*second + 2000, peers: peers(1)})
	p := Analyse(b.done())
	assert.InDelta(t, 0, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 1, p.Ranks[0].Transfer, 1e-5)
	assert.Empty(t, p.Culprits)
}

// A blocking send that waits for its receiver.
func TestSendToLateReceiver(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	b.call(0, made{function: send, enter: 1 * second, leave: 4 * second, peers: peers(1)})
	b.call(1, made{function: recv, enter: 3 * second, leave: 4 * second, peers: []history.Peer{history.AnyPeer}})
	p := Analyse(b.done())
	assert.InDelta(t, 2, p.Ranks[0].Late, 1e-9)
	// From any source and no sender known: nothing can be said of the receive.
	assert.InDelta(t, 1, p.Ranks[1].Unsplit, 1e-9)
}

// It is the receive that ends the wait of a send, not what else the receiver
// does in the meantime.
func TestSendToBusyReceiver(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	b.call(0, made{function: send, enter: 1 * second, leave: 5 * second, peers: peers(1)})
	b.call(1, made{function: recv, enter: 2 * second, leave: 2 * second, peers: peers(0)})
	b.call(1, made{function: isend, enter: 3 * second, leave: 3 * second, peers: peers(0)})
	b.call(1, made{function: isend, enter: 4 * second, leave: 4 * second, peers: peers(1)})
	p := Analyse(b.done())
	assert.InDelta(t, 1, p.Ranks[0].Late, 1e-9)
}

// The sender's clock is ahead: its send seems to begin after the message came.
func TestSenderWithClockAhead(t *testing.T) {
	for ahead, late := range map[int64]float64{5e6: 3, 50e6: 0} {
		b := newBuilder(2, 0, 6*second)
		b.run.Nodes = append(b.run.Nodes, history.Node{World: 1, Number: 1, Host: "b", ClockKnown: true, ClockError: 10e6})
		b.run.Ranks[1].Node = 1
		b.world()
		b.call(0, made{function: recv, enter: 1 * second, leave: 4 * second, peers: peers(1)})
		b.call(1, made{function: send, enter: 4*second + ahead, leave: 5 * second, peers: peers(0)})
		p := Analyse(b.done())
		assert.InDelta(t, late, p.Ranks[0].Late, 1e-9)
		assert.InDelta(t, 0.01, p.Ranks[0].LateError, 1e-9)
	}
}

// A receive from any source whose sender is not known is unsplit, also the
// shortest: perhaps all of them waited.
func TestReceiveFromAnySource(t *testing.T) {
	b := newBuilder(2, 0, 9*second)
	b.world()
	b.call(0, made{function: recv, enter: 1 * second, leave: 4 * second, peers: []history.Peer{history.AnyPeer}})
	b.call(0, made{function: recv, enter: 5 * second, leave: 6 * second, peers: []history.Peer{history.AnyPeer}})
	b.call(1, made{function: send, enter: 3 * second, leave: 4 * second, peers: peers(0)})
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 0, 4, p.Ranks[0].Split)
	assert.Nil(t, p.Total.Efficiencies.Serialisation)
	assert.Nil(t, p.Total.Efficiencies.Transfer)
	assert.NotNil(t, p.Total.Efficiencies.Communication)
}

// Rank 0 waits for rank 1, which itself waits for rank 2 from 0.5 s to 4 s,
// and then computes until 6 s: 2.5 s are rank 1's doing, and 2.5 s rank 2's.
func TestChain(t *testing.T) {
	b := newBuilder(3, 0, 8*second)
	b.world()
	b.call(2, made{function: send, enter: 3500e6, leave: 4 * second, peers: peers(1)})
	b.call(1, made{function: recv, enter: 500e6, leave: 4 * second, peers: peers(2)})
	b.call(1, made{function: send, enter: 6 * second, leave: 7 * second, peers: peers(0)})
	b.call(0, made{function: recv, enter: 1 * second, leave: 7 * second, peers: peers(1)})
	p := Analyse(b.done())
	// The 0.5 s in which rank 1 got its message count as rank 1's.
	assert.InDelta(t, 5, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 3, p.Ranks[1].Late, 1e-9)
	assert.InDelta(t, 2.5, p.Ranks[1].Caused, 1e-9)
	assert.InDelta(t, 5.5, p.Ranks[2].Caused, 1e-9)
	assert.Equal(t, 2, p.Culprits[0].Rank)
	assert.EqualValues(t, 2, p.Culprits[0].Times)
}

// The last to come to a barrier had waited for rank 2 in a receive: the blame
// is rank 2's for that part, though it came to the barrier before.
func TestChainThroughCollective(t *testing.T) {
	b := newBuilder(3, 0, 8*second)
	b.world()
	b.call(2, made{function: send, enter: 5 * second, leave: 5 * second, peers: peers(1)})
	b.call(1, made{function: recv, enter: 1 * second, leave: 5 * second, peers: peers(2)})
	for r, enter := range []float64{1, 6, 5.5} {
		b.call(r, made{function: barrier, enter: int64(enter * 1e9), leave: 6 * second, collective: true})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 5, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 1+0.5, p.Ranks[1].Caused, 1e-9)
	assert.InDelta(t, 4+4, p.Ranks[2].Caused, 1e-9)
	assert.EqualValues(t, 1, p.Ranks[1].Last)
}

// Of several peers the one that comes last ends the wait, and is blamed for
// all of it, also for the time in which another one was late too.
func TestWaitForSeveral(t *testing.T) {
	b := newBuilder(3, 0, 8*second)
	b.world()
	b.call(0, made{function: waitall, enter: 1 * second, leave: 6 * second, peers: peers(1, 2)})
	b.call(1, made{function: isend, enter: 3 * second, leave: 3*second + 10, peers: peers(0)})
	b.call(2, made{function: isend, enter: 5 * second, leave: 5*second + 10, peers: peers(0)})
	// After its message rank 1 computes on and comes back during the wait, but
	// not with anything for rank 0.
	b.call(1, made{function: isend, enter: 5500e6, leave: 5500e6 + 10, peers: peers(2)})
	p := Analyse(b.done())
	assert.InDelta(t, 4, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 4, p.Ranks[2].Caused, 1e-9)
	assert.InDelta(t, 0, p.Ranks[1].Caused, 1e-9)
}

// The receiver gets back to a core long after its message came. Meanwhile the
// sender has sent the next one, which did not end the wait. A long message that
// was sent without blocking, though, comes with the call that completes it.
func TestFirstMessageEndsTheWait(t *testing.T) {
	for bytes, late := range map[int64]float64{100: 2, 1e6: 3} {
		b := newBuilder(2, 0, 9*second)
		b.world()
		b.call(0, made{function: recv, enter: 1 * second, leave: 6 * second, peers: peers(1)})
		for i := range int64(2) {
			b.call(1, made{function: isend, enter: (3 + 2*i) * second, leave: (3 + 2*i) * second, peers: peers(0), bytes: bytes})
			b.call(1, made{function: waitall, enter: (4 + 2*i) * second, leave: (4 + 2*i) * second, peers: peers(0)})
		}
		p := Analyse(b.done())
		assert.InDelta(t, late, p.Ranks[0].Late, 1e-9, "%d bytes", bytes)
	}
}

// Rank 0 has a lock until 3 s, and enters MPI meanwhile; rank 1, which waits for it from
// 1 s on, then has it until 5 s, and rank 2, behind it in the queue from 2 s on, waits for
// the one and then for the other.
func TestLock(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.world()
	b.call(0, made{function: isend, enter: 2 * second, leave: 2*second + second/2, peers: peers(1)})
	b.call(0, made{function: isend, enter: 4 * second, leave: 4*second + second/2, peers: peers(1)})
	b.call(1, made{function: lock, enter: 1 * second, leave: 3 * second, peers: peers(0)})
	b.call(1, made{function: isend, enter: 4 * second, leave: 4*second + second/2, peers: peers(0)})
	b.call(2, made{function: lock, enter: 2 * second, leave: 5 * second, peers: peers(1)})
	for i := range int64(mostSteps) { // later than what is looked for
		b.call(1, made{function: isend, enter: 5*second + 2*i, leave: 5*second + 2*i + 1, peers: peers(0), offset: 1})
	}
	p := Analyse(b.done())
	assertSplit(t, 2, 0, 0.5+mostSteps*1e-9, 0, p.Ranks[1].Split)
	assertSplit(t, 3, 0, 0, 0, p.Ranks[2].Split)
	assert.Equal(t, []profile.Pair{
		{World: 1, Waiter: 1, Culprit: 0, Cost: 2, Times: 1},
		{World: 1, Waiter: 2, Culprit: 1, Cost: 2, Times: 1},
		{World: 1, Waiter: 2, Culprit: 0, Cost: 1, Times: 1},
	}, p.WaitsFor)
}

// Of a long run's waits for a lock those that end in a slice of time that was kept stand for
// the others, of which one was kept because it began there; and the long ones, which are all
// kept, for themselves, wherever they end.
func TestLockInThinnedRun(t *testing.T) {
	const level = 2
	kept := int64(1)
	for !sliceKept(kept*sliceWidth, level) || sliceKept((kept+1)*sliceWidth, level) {
		kept++
	}
	later := kept + 2 + history.LongSlices<<level
	for sliceKept(later*sliceWidth, level) {
		later++
	}
	at, long := kept*sliceWidth, (later-kept-1)*sliceWidth
	b := newBuilder(4, 0, (later+1)*sliceWidth)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].Level = level
	}
	b.call(0, made{function: lock, enter: at, leave: at + 4000, peers: peers(1)})
	b.call(0, made{function: lock, enter: at + 8000, leave: at + sliceWidth, peers: peers(2)})
	b.call(0, made{function: lock, enter: at + sliceWidth, leave: at + sliceWidth + long, peers: peers(3)})
	p := Analyse(b.done())
	costs := map[int]float64{}
	for _, pair := range p.WaitsFor {
		costs[pair.Culprit] = pair.Cost * 1e9
	}
	assert.Len(t, costs, 2)
	assert.InDelta(t, sliceWidth-4000, costs[1], 1, "for the short ones")
	assert.InDelta(t, long, costs[3], 1)
}

// Nobody is late for data that are fetched, whatever the rank does that has them; and who
// fetches from a rank sends it no message.
func TestAccess(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	b.call(0, made{function: get, enter: 0, leave: 1 * second, peers: peers(1)})
	b.call(0, made{function: get, enter: 2 * second, leave: 5 * second, peers: peers(1)})
	b.call(0, made{function: recv, enter: 5 * second, leave: 5*second + second/2, peers: peers(1)})
	b.call(1, made{function: send, enter: 1 * second, leave: 5*second + second/2, peers: peers(0)})
	p := Analyse(b.done())
	assert.InDelta(t, 0, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 2, callSite(t, p, "ek_gsm_get").Transfer, 1e-9)
	assert.InDelta(t, 4, p.Ranks[1].Late, 1e-9)
}

// A lock that is never given up is waited for until the recording ends.
func TestLockForEver(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.world()
	b.run.Ranks[0].State, b.run.Ranks[1].State = history.Killed, history.Killed
	b.call(1, made{function: lock, enter: 1 * second, leave: 6 * second, peers: peers(0)})
	p := Analyse(b.done())
	assertSplit(t, 5, 0, 0, 0, p.Ranks[1].Split)
	assert.Equal(t, 0, p.Culprits[0].Rank)
}

// A wait that goes round in a circle, as no program's can, is still divided.
func TestCircle(t *testing.T) {
	b := newBuilder(2, 0, 8*second)
	b.world()
	for i := range int64(20) {
		b.call(0, made{function: recv, enter: i * 100, leave: i*100 + 99, peers: peers(1)})
		b.call(1, made{function: recv, enter: i*100 + 50, leave: i*100 + 149, peers: peers(0)})
	}
	p := Analyse(b.done())
	s := p.Total.Split
	assert.InDelta(t, s.MPI, s.Late+s.Transfer+s.Own+s.Unsplit, 1e-12)
	for _, pair := range p.WaitsFor {
		assert.NotEqual(t, pair.Waiter, pair.Culprit)
	}
}

// The sender had waited for another thread of the rank that now waits for it:
// nobody else is to blame.
func TestWaitForOwnThread(t *testing.T) {
	b := newBuilder(2, 0, 8*second)
	b.world()
	b.call(0, made{function: send, thread: 1, enter: 4 * second, leave: 4 * second, peers: peers(1)})
	b.call(1, made{function: recv, enter: 1 * second, leave: 4 * second, peers: peers(0)})
	b.call(1, made{function: send, enter: 6 * second, leave: 6 * second, peers: peers(0)})
	b.call(0, made{function: recv, enter: 2 * second, leave: 6 * second, peers: peers(1)})
	p := Analyse(b.done())
	assert.InDelta(t, 4, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 2, p.Ranks[1].Caused, 1e-9)
	assert.InDelta(t, 3, p.Ranks[0].Caused, 1e-9)
}

// The sender does something else in MPI for a part of the wait, and waits for
// nobody there: that is its doing too.
func TestPeerBusyInMPI(t *testing.T) {
	b := newBuilder(2, 0, 8*second)
	b.world()
	b.call(1, made{function: isend, enter: 2 * second, leave: 3 * second, peers: peers(1)})
	b.call(1, made{function: send, enter: 4 * second, leave: 5 * second, peers: peers(0)})
	b.call(0, made{function: recv, enter: 1 * second, leave: 5 * second, peers: peers(1)})
	p := Analyse(b.done())
	assert.InDelta(t, 3, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 3, p.Ranks[1].Caused, 1e-9)
}

// The sender's message may have come with a call that left no event, so what
// ended the wait is not known.
func TestPeerWithHiddenCalls(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		b := newBuilder(2, 0, 9*second)
		b.world()
		b.call(0, made{function: recv, enter: 1 * second, leave: 3 * second, peers: peers(1)})
		b.call(0, made{function: recv, enter: 4 * second, leave: 4 * second, peers: peers(1)})
		if hidden {
			b.call(1, made{function: send, enter: 3 * second, leave: 3 * second, peers: peers(0), untimed: true})
		}
		b.call(1, made{function: send, enter: 8 * second, leave: 8 * second, peers: peers(0)})
		p := Analyse(b.done())
		if hidden {
			assertSplit(t, 0, 0, 0, 2, p.Ranks[0].Split)
		} else {
			assertSplit(t, 0, 2, 0, 0, p.Ranks[0].Split)
		}
	}
}

// Which of the sender's threads had the message is not known where none names
// the receiver.
func TestPeerWithThreadsThatNameNobody(t *testing.T) {
	b := newBuilder(2, 0, 9*second)
	b.world()
	b.call(0, made{function: recv, enter: 1 * second, leave: 3 * second, peers: peers(1)})
	b.call(0, made{function: recv, enter: 4 * second, leave: 4 * second, peers: peers(1)})
	b.call(1, made{function: isend, thread: 1, enter: 2 * second, leave: 2 * second, peers: peers(1)})
	b.call(1, made{function: isend, enter: 5 * second, leave: 5 * second, peers: peers(1)})
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 0, 2, p.Ranks[0].Split)
}

// An account that lacks the call that was still open.
func TestEventsBeyondTheAccount(t *testing.T) {
	b := newBuilder(1, 0, 9*second)
	b.world()
	b.call(0, made{function: isend, enter: 1 * second, leave: 4 * second})
	b.run.Ranks[0].Accounts[0].Time = 0
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 3, 0, p.Ranks[0].Split)
	assert.InDelta(t, 6, p.Ranks[0].Useful, 1e-9)
}

// Of two ranks with events of different levels the higher one counts: a wait
// that ends in a slice of time that the receiver kept by chance alone is no
// part of the sample.
func TestDifferentLevels(t *testing.T) {
	const level = 3
	kept := int64(1)
	for !sliceKept(kept*sliceWidth, level) || sliceKept((kept+1)*sliceWidth, level) {
		kept++
	}
	at := kept * sliceWidth
	b := newBuilder(2, 0, at+10*sliceWidth)
	b.world()
	b.run.Ranks[0].Level = level
	// In the kept slice half of the wait is late, in the next one all of it.
	b.call(0, made{function: recv, enter: at, leave: at + 2000, peers: peers(1)})
	b.call(1, made{function: send, enter: at + 1000, leave: at + 1500, peers: peers(0)})
	b.call(0, made{function: recv, enter: at + 3000, leave: at + sliceWidth + 1000, peers: peers(1)})
	b.call(1, made{function: send, enter: at + sliceWidth + 1000, leave: at + sliceWidth + 1000, peers: peers(0)})
	p := Analyse(b.done())
	assert.InDelta(t, p.Ranks[0].MPI/2, p.Ranks[0].Late, 1e-9)
}

// In a bin of whose time in MPI only a part was looked at, that part stands
// for all.
func TestTimelineOfASample(t *testing.T) {
	b := newBuilder(2, 0, 64*second)
	b.world()
	b.call(0, made{function: barrier, enter: 40 * second, leave: 42 * second, collective: true})
	b.call(1, made{function: barrier, enter: 41 * second, leave: 42 * second, collective: true})
	for r := range 2 {
		b.run.Ranks[r].BinWidth = 4 * second
		b.run.Ranks[r].Bins = make([]int64, 16)
		b.run.Ranks[r].Bins[10] = 4 * second
	}
	p := Analyse(b.done())
	assert.Equal(t, 1.0, p.Timeline.MPI[0][10])
	assert.Equal(t, 0.5, p.Timeline.Late[0][10])
}

// Of two threads of the sender the one with the message for rank 0 counts: its
// other thread comes and goes all the time.
func TestPeerWithThreads(t *testing.T) {
	b := newBuilder(2, 0, 8*second)
	b.world()
	b.call(0, made{function: recv, enter: 1 * second, leave: 5 * second, peers: peers(1)})
	for i := range int64(60) {
		at := i * second / 10
		b.call(1, made{function: recv, thread: 1, enter: at, leave: at + 1000, peers: peers(1)})
	}
	b.call(1, made{function: send, enter: 4 * second, leave: 5 * second, peers: peers(0)})
	p := Analyse(b.done())
	assert.InDelta(t, 3, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 1, p.Ranks[1].MPI, 1e-9, "the main thread's alone")
	assert.InDelta(t, 60*1e-6+4, callSite(t, p, "MPI_Recv").MPI, 1e-9, "of all threads")
}

// A rank is killed: the others are in a barrier that it never reached, still
// open when their recording ended. It is blamed, and its neighbour, which waits
// for it in a receive, is not.
func TestMemberThatNeverCame(t *testing.T) {
	b := newBuilder(4, 0, 10*second)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].State = history.Running
	}
	b.run.Ranks[3].State, b.run.Ranks[3].End = history.Killed, 4*second
	b.call(0, made{function: barrier, enter: 2 * second, leave: 10 * second, collective: true})
	b.call(1, made{function: barrier, enter: 3 * second, leave: 10 * second, collective: true})
	b.call(2, made{function: recv, enter: 5 * second, leave: 10 * second, peers: peers(3)})
	p := Analyse(b.done())
	assertSplit(t, 8, 0, 0, 0, p.Ranks[0].Split)
	assertSplit(t, 7, 0, 0, 0, p.Ranks[1].Split)
	assertSplit(t, 5, 0, 0, 0, p.Ranks[2].Split)
	assert.Equal(t, 3, p.Culprits[0].Rank)
	assert.InDelta(t, 20, p.Culprits[0].Cost, 1e-9)
	assert.Equal(t, "killed", p.Ranks[3].State)
}

// Two of four ranks never come to an operation that the others are still in:
// each of those waits for the one that it needs, if it needs one.
func TestMemberThatNeverCameToWhatNotAllNeed(t *testing.T) {
	for name, c := range map[string]struct {
		function history.Function
		peers    [4][]history.Peer
		missing  []int
		culprits map[int]int // by who waits
	}{
		"from a root that is missing":       {bcast, [4][]history.Peer{1: peers(0), 2: peers(0)}, []int{0, 3}, map[int]int{1: 0, 2: 0}},
		"from a root that is there":         {bcast, [4][]history.Peer{1: peers(1), 2: peers(1)}, []int{0, 3}, nil},
		"to a root that is missing":         {reduce, [4][]history.Peer{0: peers(3), 1: peers(3)}, []int{2, 3}, map[int]int{0: 3, 1: 3}},
		"to a root that is there":           {reduce, [4][]history.Peer{1: peers(1), 2: peers(1)}, []int{0, 3}, map[int]int{1: 0}},
		"prefix":                            {scan, [4][]history.Peer{}, []int{1, 2}, map[int]int{3: 1}},
		"prefix without the first":          {scan, [4][]history.Peer{}, []int{0, 2}, map[int]int{1: 0, 3: 0}},
		"neighbourhood":                     {neighbour, [4][]history.Peer{0: peers(1, 3), 1: peers(0, 2)}, []int{2, 3}, map[int]int{0: 3, 1: 2}},
		"neighbourhood with no missing one": {neighbour, [4][]history.Peer{0: peers(1), 1: peers(0, 2)}, []int{2, 3}, map[int]int{1: 2}},
		"nonblocking, from a root":          {ibcast, [4][]history.Peer{1: peers(0), 2: peers(0)}, []int{0, 3}, map[int]int{1: 0, 2: 0}},
	} {
		b := newBuilder(4, 0, 10*second)
		b.world()
		for r := range b.run.Ranks {
			b.run.Ranks[r].State = history.Running
			if slices.Contains(c.missing, r) {
				b.run.Ranks[r].State = history.Killed
				continue
			}
			m := made{function: c.function, enter: 2 * second, leave: 10 * second, collective: true, peers: c.peers[r]}
			if m.function.Class == history.Neighbour { // which are its communicator's, not the call's
				for _, peer := range m.peers {
					b.run.Ranks[r].Comms[0].Neighbours = append(b.run.Ranks[r].Comms[0].Neighbours, int(peer))
				}
				m.peers = nil
			}
			if m.function.Class == history.Begin {
				m.leave = m.enter
				b.call(r, m)
				m.function, m.leave, m.peers = waitall, 10*second, nil
			}
			b.call(r, m)
		}
		p := Analyse(b.done())
		culprits := map[int]int{}
		for _, pair := range p.WaitsFor {
			culprits[pair.Waiter] = pair.Culprit
			assert.InDelta(t, 8, pair.Cost, 1e-9, name)
		}
		assert.Len(t, culprits, len(c.culprits), name)
		for waiter, culprit := range c.culprits {
			assert.Equal(t, culprit, culprits[waiter], "%s: rank %d", name, waiter)
			assert.Positive(t, p.Ranks[culprit].Caused, name)
		}
		for _, culprit := range p.Culprits {
			assert.EqualValues(t, 1, culprit.Times, name)
		}
	}
}

// The root of a broadcast has long gone on, but no event of it was kept: it is
// not said to be missing.
func TestMemberThatCameUnseen(t *testing.T) {
	for _, function := range []history.Function{bcast, barrier} {
		b := newBuilder(2, 0, 10*second)
		b.world()
		for r := range b.run.Ranks {
			b.run.Ranks[r].State = history.Running
		}
		b.call(0, made{function: function, enter: 1 * second, leave: 1*second + 1000, collective: true, peers: peers(0), noEvent: true})
		b.call(1, made{function: function, enter: 2 * second, leave: 10 * second, collective: true, peers: peers(0)})
		p := Analyse(b.done())
		assert.Empty(t, p.Culprits, function.Name)
		assertSplit(t, 0, 0, 0, 8, p.Ranks[1].Split)
	}
}

// A rank that still waits for two others waits for the one that computes, not
// for the one that waits itself.
func TestWaitThatNeverEnded(t *testing.T) {
	b := newBuilder(3, 0, 10*second)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].State = history.Running
	}
	b.call(0, made{function: waitall, enter: 1 * second, leave: 10 * second, peers: peers(1, 2)})
	b.call(1, made{function: recv, enter: 3 * second, leave: 10 * second, peers: peers(0)})
	p := Analyse(b.done())
	assertSplit(t, 9, 0, 0, 0, p.Ranks[0].Split)
	assert.InDelta(t, 9, p.WaitsFor[0].Cost, 1e-9)
	assert.Equal(t, 2, p.WaitsFor[0].Culprit)
}

// Of two ranks that compute, the one is waited for that has sent nothing, or
// whose last message lies further back.
func TestWaitThatNeverEndedForSeveral(t *testing.T) {
	for name, c := range map[string]struct {
		sent    [2][]int64 // by ranks 1 and 2, when
		culprit int
	}{
		"only the first has sent":  {[2][]int64{{2}, {}}, 2},
		"only the second has sent": {[2][]int64{{}, {2}}, 1},
		"the first sent last":      {[2][]int64{{1, 4}, {2, 3}}, 2},
		"the second sent last":     {[2][]int64{{2, 3}, {1, 4}}, 1},
	} {
		b := newBuilder(3, 0, 10*second)
		b.world()
		for r := range b.run.Ranks {
			b.run.Ranks[r].State = history.Running
		}
		b.call(0, made{function: waitall, enter: 1 * second, leave: 10 * second, peers: peers(1, 2)})
		for i, times := range c.sent {
			for _, at := range times {
				b.call(i+1, made{function: send, enter: at * second, leave: at*second + 1000, peers: peers(0)})
			}
			// What is said to others, and what is received, is no message for rank 0.
			b.call(i+1, made{function: send, enter: int64(7-i) * second, leave: int64(7-i)*second + 1000, peers: peers(2 - i)})
			b.call(i+1, made{function: recv, enter: int64(8+i) * second, leave: int64(8+i)*second + 1000, peers: peers(0)})
		}
		p := Analyse(b.done())
		assertSplit(t, 9, 0, 0, 0, p.Ranks[0].Split)
		assert.Equal(t, c.culprit, p.Culprits[0].Rank, name)
	}
}

// Rank 1 sent for longer than rank 2, but fewer of its messages were kept: that
// does not make it the one that is waited for.
func TestWaitThatNeverEndedInThinnedRun(t *testing.T) {
	const level = 2
	kept := int64(1)
	for !sliceKept(kept*sliceWidth, level) || sliceKept((kept+1)*sliceWidth, level) {
		kept++
	}
	b := newBuilder(3, 0, (kept+100)*sliceWidth)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].State = history.Running
	}
	b.run.Ranks[1].Level = level
	b.call(0, made{function: waitall, enter: kept * sliceWidth, leave: (kept + 100) * sliceWidth, peers: peers(1, 2)})
	for i := range int64(2) {
		at := (kept + i) * sliceWidth
		b.call(2, made{function: send, enter: at, leave: at + 1000, peers: peers(0)})
		b.call(1, made{function: send, enter: at + 2000, leave: at + 3000, peers: peers(0), noEvent: i == 1})
	}
	p := Analyse(b.done())
	assert.Equal(t, 2, p.Culprits[0].Rank)
}

// Two ranks wait for each other and never end.
func TestDeadlock(t *testing.T) {
	b := newBuilder(2, 0, 10*second)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].State = history.Running
		b.call(r, made{function: recv, enter: int64(r+1) * second, leave: 10 * second, peers: peers(1 - r)})
	}
	p := Analyse(b.done())
	s := p.Total.Split
	assert.InDelta(t, 17, s.MPI, 1e-9)
	assert.InDelta(t, s.MPI, s.Late+s.Transfer+s.Own+s.Unsplit, 1e-9)
}

// Two nodes whose clocks are known to within 10 ms and 20 ms.
func TestClockErrorAcrossNodes(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.run.Nodes[0].ClockError = 10e6
	b.run.Nodes = append(b.run.Nodes, history.Node{World: 1, Number: 1, Host: "b", ClockKnown: true, ClockError: 20e6})
	b.run.Ranks[2].Node = 1
	b.world()
	for r, enter := range []int64{1, 2, 4} {
		b.call(r, made{function: barrier, enter: enter * second, leave: 5 * second, collective: true})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 0.03, p.Ranks[0].LateError, 1e-9)
	assert.InDelta(t, 0.03, p.Ranks[1].LateError, 1e-9)
	assert.InDelta(t, 0, p.Ranks[2].LateError, 1e-9)
	assert.InDelta(t, 0.06, p.Total.LateError, 1e-9)
	assert.InDelta(t, 0.03, p.Worst[0].Error, 1e-9)
	assert.InDelta(t, 0.03, p.Quality.ClockError, 1e-9)
	assert.InDelta(t, 0.02, *p.Nodes[1].ClockError, 1e-9)
}

// Within a node no clock can err, also where a run has several.
func TestClockErrorWithinNode(t *testing.T) {
	b := newBuilder(3, 0, 6*second)
	b.run.Nodes[0].ClockError = 10e6
	b.run.Nodes = append(b.run.Nodes, history.Node{World: 1, Number: 1, Host: "b", ClockKnown: true, ClockError: 20e6})
	b.run.Ranks[2].Node = 1
	b.world()
	for r, enter := range []int64{1, 4, 2} {
		b.call(r, made{function: barrier, enter: enter * second, leave: 5 * second, collective: true})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 0, p.Ranks[0].LateError, 1e-9) // the last of the other node came 2 s before
	assert.InDelta(t, 0.03, p.Ranks[2].LateError, 1e-9)
}

// Without a measurement times of two nodes are not compared.
func TestClockUnknown(t *testing.T) {
	b := newBuilder(2, 0, 6*second)
	b.run.Nodes = append(b.run.Nodes, history.Node{World: 1, Number: 1, Host: "b"})
	b.run.Ranks[1].Node = 1
	b.run.Ranks[1].Start, b.run.Ranks[1].End = 1000*second, 1006*second
	b.world()
	b.call(0, made{function: barrier, enter: 1 * second, leave: 5 * second, collective: true})
	b.call(0, made{function: barrier, enter: 5 * second, leave: 6 * second, collective: true, sequence: 1})
	b.call(1, made{function: barrier, enter: 1004 * second, leave: 1005 * second, collective: true})
	b.call(1, made{function: barrier, enter: 1005 * second, leave: 1006 * second, collective: true, sequence: 1})
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 0, 5, p.Ranks[0].Split)
	assert.InDelta(t, 6, p.Total.Elapsed, 1e-9)
	assert.Nil(t, p.Nodes[1].ClockError)
	assert.Contains(t, p.Notes[len(p.Notes)-1], "clocks")
}

// Packets that no task of a job has sent are told of, by whom most were dropped.
func TestForeignPackets(t *testing.T) {
	for _, c := range []struct {
		dropped []int64
		want    string
	}{
		{[]int64{0, 1200, 0}, "Rank 1 dropped 1200 packets that are not its job's"},
		{[]int64{1000, 0, 3000}, "2 ranks dropped 4000 packets that are not their job's, most of them rank 2 (3000)"},
	} {
		b := newBuilder(len(c.dropped), 0, 6*second)
		b.world()
		assert.Empty(t, Analyse(b.done()).Notes)
		for r, n := range c.dropped {
			b.run.Ranks[r].Foreign = n
		}
		notes := Analyse(b.done()).Notes
		require.Len(t, notes, 1)
		assert.Contains(t, notes[0], c.want)
	}
}

// One call in four of a receive is timed: the accounts say how long all took,
// the events how to divide it.
func TestScaledToAccounts(t *testing.T) {
	b := newBuilder(2, 0, 100*second)
	b.world()
	for i := range int64(16) {
		at := (i + 1) * second
		sampled := i%4 == 0
		b.call(0, made{function: barrier, enter: at, leave: at + 10e6, collective: true, sequence: uint64(i), weight: 4, untimed: !sampled})
		b.call(1, made{function: barrier, enter: at + 8e6, leave: at + 10e6, collective: true, sequence: uint64(i), weight: 4, untimed: !sampled})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 0.16, p.Ranks[0].MPI, 1e-9)
	assert.InDelta(t, 0.128, p.Ranks[0].Late, 1e-9)
	assert.InDelta(t, 0.032, p.Ranks[1].MPI, 1e-9)
	assert.InDelta(t, 0.128, p.Ranks[1].Caused, 1e-9)
	assert.Greater(t, p.Ranks[0].Error, 0.0)
	assert.GreaterOrEqual(t, p.Ranks[0].LateError, 0.8*p.Ranks[0].Error) // 0.8 of the time is late
	assert.EqualValues(t, 4, p.Quality.Operations)
	assert.EqualValues(t, 32, p.Quality.Calls)
	assert.EqualValues(t, 8, p.Quality.TimedCalls)
}

// Where useful time is smaller than the error of the time in MPI, nothing can
// be said of how it is spread.
func TestUsefulTimeWithinNoise(t *testing.T) {
	b := newBuilder(2, 0, 165e6)
	b.world()
	for i := range int64(16) {
		for r := range 2 {
			b.call(r, made{
				function: barrier, enter: i * 10e6, leave: (i + 1) * 10e6, collective: true, sequence: uint64(i),
				weight: 4, untimed: i%4 != 0,
			})
		}
	}
	e := Analyse(b.done()).Total.Efficiencies
	assert.InDelta(t, 5.0/165, *e.Parallel, 1e-9)
	assert.Nil(t, e.LoadBalance)
	assert.Nil(t, e.Serialisation)
	assert.Nil(t, e.Transfer)
}

// A rank with events of its own alone: of no call it is known whether it waited.
func TestNothingMatched(t *testing.T) {
	b := newBuilder(1, 0, 10*second)
	b.run.Ranks[0].Comms = []history.Comm{{ID: worldID, Size: 2}}
	b.call(0, made{function: barrier, enter: 1 * second, leave: 2 * second, collective: true})
	b.call(0, made{function: barrier, enter: 3 * second, leave: 7 * second, collective: true, sequence: 1})
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 0, 5, p.Ranks[0].Split)
}

// Two regions, marked on both ranks under different numbers.
func TestRegions(t *testing.T) {
	b := newBuilder(2, 0, 10*second)
	b.world()
	b.run.Ranks[0].Regions = []history.Region{{Time: 4 * second}, {Name: "solve", Entries: 1, Time: 6 * second}}
	b.run.Ranks[1].Regions = []history.Region{
		{Time: 5 * second}, {Name: "off", Off: true, Time: second}, {Name: "solve", Entries: 2, Time: 5 * second},
	}
	for r, enter := range []int64{1, 3} {
		b.call(r, made{function: barrier, enter: enter * second, leave: 3 * second, collective: true, region: r + 1})
		b.call(r, made{function: barrier, enter: 9 * second, leave: 9 * second, collective: true, sequence: 1})
	}
	p := Analyse(b.done())
	require.Len(t, p.Regions, 2)
	solve := p.Regions[0]
	assert.Equal(t, "solve", solve.Name)
	assert.Equal(t, "whole run", solve.Parent)
	assert.EqualValues(t, 3, solve.Entries)
	assert.InDelta(t, 6, solve.Elapsed, 1e-9)
	assert.InDelta(t, 4+5, solve.Useful, 1e-9)
	assert.InDelta(t, 2, solve.Late, 1e-9)
	assert.InDelta(t, 0.75, *solve.Efficiencies.Parallel, 1e-9)
	assert.InDelta(t, 0.9, *solve.Efficiencies.LoadBalance, 1e-9)
	assert.Equal(t, "whole run", p.Regions[1].Name)
	assert.InDelta(t, 9, p.Regions[1].Useful, 1e-9)
}

// A spawned world lives from 4 s to 6 s: it is compared within itself, and
// does not look like late ranks of the first.
func TestSpawnedWorld(t *testing.T) {
	b := newBuilder(2, 0, 10*second)
	b.world()
	b.run.Nodes = append(b.run.Nodes, history.Node{World: 2, Host: "a", ClockKnown: true})
	for r := range 2 {
		b.addRank(history.Task{World: 2, Rank: r}, 4*second, 6*second).Node = 1
	}
	b.comm(99, "MPI_COMM_WORLD", 2, 3)
	for r := 2; r < 4; r++ {
		b.run.Ranks[r].Comms[0].Members = []int{0, 1}
	}
	b.call(2, made{function: barrier, enter: 5 * second, leave: 6 * second, collective: true})
	b.call(3, made{function: barrier, enter: 6 * second, leave: 6 * second, collective: true})
	p := Analyse(b.done())
	e := p.Total.Efficiencies
	assert.InDelta(t, 10, p.Total.Elapsed, 1e-9)
	assert.InDelta(t, 23.0/24, *e.Parallel, 1e-12)
	assert.InDelta(t, 23.0/24, *e.LoadBalance, 1e-12)
	assert.InDelta(t, 1, *e.Communication, 1e-12)
	assert.Equal(t, profile.Culprit{World: 2, Rank: 1, Cost: 1, Share: 1, Times: 1, Victim: 0}, p.Culprits[0])
}

// Collectives over one rank alone are MPI's own work.
func TestSelf(t *testing.T) {
	b := newBuilder(1, 0, 10*second)
	b.comm(5, "MPI_COMM_SELF", 0)
	b.call(0, made{function: barrier, enter: 1 * second, leave: 2 * second, collective: true})
	b.call(0, made{function: barrier, enter: 3 * second, leave: 7 * second, collective: true, sequence: 1})
	p := Analyse(b.done())
	assertSplit(t, 0, 0, 5, 0, p.Ranks[0].Split)
	assert.Empty(t, p.Worst)
	assert.Equal(t, -1, p.Communicators[0].LastRank)
	assert.Equal(t, "balanced", p.Balance.Kind)
}

// Recording was off for a part: it is no part of the elapsed time.
func TestPaused(t *testing.T) {
	b := newBuilder(2, 0, 10*second)
	b.world()
	for r := range 2 {
		b.run.Ranks[r].Paused = 4 * second
		b.call(r, made{function: barrier, enter: int64(r+1) * second, leave: 2 * second, collective: true})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 6, p.Total.Elapsed, 1e-9)
	assert.InDelta(t, 5, p.Ranks[0].Useful, 1e-9)
	assert.InDelta(t, 11.0/12, *p.Total.Efficiencies.Parallel, 1e-12)
}

// Both sides of an intercommunicator wait for each other.
func TestIntercommunicator(t *testing.T) {
	b := newBuilder(3, 0, 10*second)
	for r, place := range []int{0, 0, 1} {
		b.run.Ranks[r].Comms = []history.Comm{{ID: 6, Size: 3, Rank: place, Inter: true, Members: []int{0, 1, 2}}}
		b.call(r, made{function: barrier, enter: int64(r+1) * second, leave: 3 * second, collective: true})
		b.call(r, made{function: bcast, enter: int64(r+4) * second, leave: 7 * second, collective: true, sequence: 1, peers: peers(0)})
	}
	p := Analyse(b.done())
	assert.InDelta(t, 3, callSite(t, p, "MPI_Barrier").Late, 1e-9)
	assert.InDelta(t, 0, callSite(t, p, "MPI_Bcast").Late, 1e-9, "which group gives is not known")
	assert.InDelta(t, 6, callSite(t, p, "MPI_Bcast").Unsplit, 1e-9)
}

// The share of a bin that a rank spent waiting.
func TestTimeline(t *testing.T) {
	b := newBuilder(2, 0, 64*second)
	b.world()
	b.run.Ranks[1].Start = 32 * second
	b.call(0, made{function: barrier, enter: 40 * second, leave: 44 * second, collective: true})
	b.call(1, made{function: barrier, enter: 42 * second, leave: 44 * second, collective: true})
	for r := range 2 {
		rank := &b.run.Ranks[r]
		rank.BinWidth = 4 * second
		rank.Bins = make([]int64, 16)
		rank.Bins[(40*second-rank.Start)/rank.BinWidth] = int64(4-2*r) * second
	}
	p := Analyse(b.done())
	require.Len(t, p.Timeline.Efficiency, 16)
	assert.InDelta(t, 4, p.Timeline.BinWidth, 1e-9)
	assert.Equal(t, []float64{0, 1, 0}, p.Timeline.MPI[0][9:12])
	assert.Equal(t, []float64{0, 0.5, 0}, p.Timeline.Late[0][9:12])
	assert.Equal(t, []float64{-1, 0, 0, 0.5}, []float64{p.Timeline.MPI[1][7], p.Timeline.MPI[1][8], p.Timeline.MPI[1][9], p.Timeline.MPI[1][10]})
	assert.Equal(t, 0.25, p.Timeline.Efficiency[10])
	assert.Equal(t, 0.5, p.Timeline.LoadBalance[10])
	assert.Equal(t, 1.0, p.Timeline.Efficiency[0])
}

// Of a barrier in a long run only the long waits were kept. That of the last
// to come was not, so it was short: rank 2 is the only one it can be.
func TestLongWaitInThinnedRun(t *testing.T) {
	const level = 2
	b := newBuilder(3, 0, 100*second)
	b.world()
	for r := range b.run.Ranks {
		b.run.Ranks[r].Level = level
	}
	for r, enter := range []float64{10, 12, 60} {
		m := made{function: barrier, enter: int64(enter * 1e9), leave: 60*second + 1000, collective: true, sequence: 3}
		m.noEvent = r == 2
		b.call(r, m)
	}
	p := Analyse(b.done())
	assert.InDelta(t, 50, p.Ranks[0].Late, 1e-5)
	assert.InDelta(t, 48, p.Ranks[1].Late, 1e-5)
	assert.InDelta(t, float64(8<<level+1)*sliceWidth/1e9, p.Ranks[0].LateError, 1e-6)
	assert.InDelta(t, 98, p.Ranks[2].Caused, 1e-5)
	assert.EqualValues(t, 0, p.Quality.Operations)
}
