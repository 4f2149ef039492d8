package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	testBarrier  = Account{Function: Function{Name: "MPI_Barrier", Class: AllToAll}}
	testIbarrier = Account{Function: Function{Name: "MPI_Ibarrier", Class: Begin}}
	testWait     = Account{Function: Function{Name: "MPI_Wait", Class: Wait}}
	testSend     = Account{Function: Function{Name: "MPI_Send", Class: Send}}
)

const (
	barrierAccount = iota
	ibarrierAccount
	waitAccount
	sendAccount
)

// rankOf is a member, at that place, of one communicator of that size.
func rankOf(place, size int, events ...Event) Rank {
	return Rank{
		Task: Task{1, place}, Accounts: []Account{testBarrier, testIbarrier, testWait, testSend},
		Comms: []Comm{{ID: 7, Size: size, Rank: place}}, Events: events,
	}
}

// collective is a barrier's event.
func collective(sequence uint64, enter int64) Event {
	return Event{Enter: enter, Leave: enter + 10, Sequence: sequence, Collective: true, Weight: 1}
}

// all copies the operations of a run.
func all(run *Run) []Operation {
	var list []Operation
	for op := range Operations(run) {
		c := *op
		c.Arrivals, c.Completions = slices.Clone(op.Arrivals), slices.Clone(op.Completions)
		list = append(list, c)
	}
	return list
}

func TestOperationsByArrival(t *testing.T) {
	run := &Run{Ranks: []Rank{
		rankOf(0, 3, collective(0, 5), collective(1, 20)),
		rankOf(1, 3, collective(0, 9), collective(1, 22)),
		rankOf(2, 3, collective(0, 7), collective(1, 22)),
	}}
	ops := all(run)
	require.Len(t, ops, 2)
	first := &ops[0]
	assert.True(t, first.Complete)
	assert.Equal(t, uint64(7), first.CommID)
	assert.Equal(t, []Arrival{{0, 0, 0, 5, 15}, {2, 2, 0, 7, 17}, {1, 1, 0, 9, 19}}, first.Arrivals)
	assert.Equal(t, 0, first.First().Rank)
	assert.Equal(t, 1, first.Last().Rank)
	assert.Equal(t, int64(4), first.Spread())
	assert.Equal(t, "MPI_Barrier", first.Function.Name)
	assert.Equal(t, 2, ops[1].Last().Rank, "of two at once, the higher rank counts as later")
}

func TestOperationsThatMissSomebody(t *testing.T) {
	ops := all(&Run{Ranks: []Rank{
		rankOf(0, 2, collective(0, 5), collective(2, 50)),
		rankOf(1, 2, collective(1, 20), collective(2, 60)),
	}})
	require.Len(t, ops, 3)
	assert.Equal(t, []bool{false, false, true}, []bool{ops[0].Complete, ops[1].Complete, ops[2].Complete})
	assert.Equal(t, []uint64{0, 1, 2}, []uint64{ops[0].Sequence, ops[1].Sequence, ops[2].Sequence})
}

func TestOperationsThatDisagree(t *testing.T) {
	twice := all(&Run{Ranks: []Rank{rankOf(0, 2, collective(0, 5), collective(0, 6)), rankOf(1, 3)}})
	require.Len(t, twice, 1)
	assert.False(t, twice[0].Complete, "one rank twice")

	other := collective(0, 7)
	other.Account = ibarrierAccount
	ops := all(&Run{Ranks: []Rank{rankOf(0, 2, collective(0, 5)), rankOf(1, 2, other)}})
	assert.False(t, ops[0].Complete, "two functions")

	ops = all(&Run{Ranks: []Rank{rankOf(0, 2, collective(0, 5)), rankOf(1, 3, collective(0, 6))}})
	assert.False(t, ops[0].Complete, "two sizes")
}

func TestOperationsThatAreNotBlocking(t *testing.T) {
	begin, end := collective(4, 5), collective(4, 30)
	begin.Account, end.Account = ibarrierAccount, waitAccount
	late := collective(4, 12)
	late.Account = ibarrierAccount
	lone := collective(5, 40)
	lone.Account = waitAccount
	ops := all(&Run{Ranks: []Rank{rankOf(0, 2, begin, end, lone), rankOf(1, 2, late)}})
	require.Len(t, ops, 1, "a wait alone is no operation")
	assert.True(t, ops[0].Complete)
	assert.Equal(t, int64(7), ops[0].Spread())
	assert.Equal(t, []Arrival{{0, 0, 1, 30, 40}}, ops[0].Completions)
	assert.Equal(t, AllToAll, ops[0].Function.Needs())
}

// What is no collective operation, or cannot be matched, is left out.
func TestOperationsLeaveOut(t *testing.T) {
	message := collective(0, 5)
	message.Account = sendAccount
	plain := collective(0, 5)
	plain.Collective = false
	backwards := Event{Enter: 9, Leave: 5, Collective: true}
	nowhere := []Event{{Collective: true, Comm: 1}, {Collective: true, Comm: -1}, {Collective: true, Account: 9}, {Collective: true, Account: -1}}
	rest := rankOf(1, 1, collective(0, 5))
	rest.Comms[0].Other = true
	run := &Run{Ranks: []Rank{rankOf(0, 1, append(nowhere, message, plain, backwards)...), rest}}
	assert.Empty(t, all(run))
}

func TestOperationsOfIntercommunicator(t *testing.T) {
	var ranks []Rank
	for r, place := range []int{0, 0, 1} {
		rank := rankOf(place, 3, collective(0, int64(r)))
		rank.Comms[0].Inter = true
		ranks = append(ranks, rank)
	}
	ops := all(&Run{Ranks: ranks})
	require.Len(t, ops, 1)
	assert.True(t, ops[0].Complete)
	assert.True(t, ops[0].Inter)
}

func TestOperationsStop(t *testing.T) {
	run := &Run{Ranks: []Rank{rankOf(0, 1, collective(0, 1), collective(1, 2), collective(2, 3))}}
	seen := 0
	for range Operations(run) {
		seen++
		break
	}
	assert.Equal(t, 1, seen)
}

func TestNeeds(t *testing.T) {
	for name, want := range map[string]Class{
		"MPI_Ibarrier": AllToAll, "MPI_Iallreduce": AllToAll, "MPI_Ibcast": FromRoot, "MPI_Iscatterv": FromRoot,
		"MPI_Ireduce": ToRoot, "MPI_Ireduce_scatter": AllToAll, "MPI_Igatherv": ToRoot, "MPI_Iexscan": Prefix,
		"MPI_Ineighbor_alltoallw": Neighbour,
	} {
		assert.Equal(t, want, Function{Name: name, Class: Begin}.Needs(), name)
	}
	assert.Equal(t, ToRoot, Function{Name: "MPI_Reduce", Class: ToRoot}.Needs())
}

// Whatever of their operations the ranks kept, in whatever order the events
// stand: each is found once, complete if all kept it, in order of arrival.
func TestOperationsOfAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks, comms := rapid.IntRange(1, 6).Draw(t, "ranks"), rapid.IntRange(1, 3).Draw(t, "comms")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		run := &Run{}
		for r := range ranks {
			rank := Rank{Task: Task{1, r}, Accounts: []Account{testBarrier}}
			for c := range comms {
				rank.Comms = append(rank.Comms, Comm{ID: uint64(c), Size: ranks, Rank: r})
			}
			run.Ranks = append(run.Ranks, rank)
		}
		type key struct{ comm, sequence uint64 }
		kept := map[key]int{}
		for sequence := range uint64(rapid.IntRange(0, 40).Draw(t, "operations")) {
			for c := range comms {
				for r := range ranks {
					if rng.IntN(4) == 0 {
						continue
					}
					e := collective(sequence, rng.Int64N(1000))
					e.Comm = c
					run.Ranks[r].Events = append(run.Ranks[r].Events, e)
					kept[key{uint64(c), sequence}]++
				}
			}
		}
		for r := range run.Ranks {
			events := run.Ranks[r].Events
			rng.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })
		}
		found := 0
		for op := range Operations(run) {
			found++
			require.Len(t, op.Arrivals, kept[key{op.CommID, op.Sequence}])
			require.Equal(t, len(op.Arrivals) == ranks, op.Complete)
			before := int64(math.MinInt64)
			for _, a := range op.Arrivals {
				e := run.Ranks[a.Rank].Events[a.Event]
				require.Equal(t, op.Sequence, e.Sequence)
				require.Equal(t, e.Enter, a.Enter)
				require.LessOrEqual(t, before, a.Enter)
				before = a.Enter
			}
		}
		require.Len(t, kept, found)
	})
}
