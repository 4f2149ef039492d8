package job

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

func look1(t *testing.T, r recorder) *Status {
	t.Helper()
	s, err := Look([]Live{r.live()})
	require.NoError(t, err)
	return s
}

func task(rank int) history.Task { return history.Task{World: 1, Rank: rank} }

func tasks(ranks ...int) []history.Task {
	all := []history.Task{}
	for _, r := range ranks {
		all = append(all, task(r))
	}
	return all
}

// sequenceOf is how many operations a rank has begun on MPI_COMM_WORLD.
func (r recorder) sequenceOf(i int, begun uint64) { r.s.Area(i).Comms[1].Sequence = begun }

func TestStatusOfACollectiveThatOneRankHasNotReached(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 4}, 0)
	for i := range 3 {
		r.open(i, "MPI_Allreduce", begin, 6)
	}
	r.sequenceOf(3, 6)
	s := look1(t, r)
	assert.Equal(t, "4711", s.Job)
	for i := range 3 {
		rank := s.Ranks[i]
		assert.Equal(t, InMPI, rank.State)
		assert.Equal(t, "MPI_Allreduce", rank.Call)
		assert.Equal(t, "MPI_COMM_WORLD", rank.Comm)
		assert.Equal(t, uint64(6), *rank.Sequence)
		assert.Equal(t, tasks(3), rank.WaitsFor)
		assert.Equal(t, "/bin/app", rank.Module)
		assert.Positive(t, rank.For)
		assert.False(t, rank.AtLeast)
		assert.Equal(t, os.Getpid(), rank.PID)
	}
	assert.Equal(t, Computing, s.Ranks[3].State)
	assert.Equal(t, []Blocker{{task(3), tasks(0, 1, 2)}}, s.WaitedFor)
	assert.Empty(t, s.Cycles)
}

func TestStatusOfARootedCollective(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 3}, 0)
	r.open(0, "MPI_Bcast", begin, 2, 2) // waits for the root, which is 2
	r.sequenceOf(1, 2)
	r.sequenceOf(2, 2)
	s := look1(t, r)
	assert.Equal(t, tasks(2), s.Ranks[0].WaitsFor)

	r = record(t, segment.Header{LocalRanks: 3}, 0)
	r.open(0, "MPI_Reduce", begin, 2, 0) // is the root
	r.sequenceOf(1, 3)
	r.sequenceOf(2, 2)
	assert.Equal(t, tasks(2), look1(t, r).Ranks[0].WaitsFor)
}

func TestStatusOfAScan(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 4}, 0)
	for i := range 4 {
		copy(r.s.Area(i).Members, []uint32{3, 1, 0, 2}) // ranks of the world in the communicator's order
		r.sequenceOf(i, 5)
	}
	r.open(0, "MPI_Scan", begin, 5)
	r.open(1, "MPI_Exscan", begin, 5)
	s := look1(t, r)
	assert.Equal(t, tasks(3), s.Ranks[0].WaitsFor, "1 has begun it, and 2 is above")
	assert.Equal(t, tasks(3), s.Ranks[1].WaitsFor)
	assert.Equal(t, []Blocker{{task(3), tasks(0, 1)}}, s.WaitedFor)
}

func TestStatusOfANeighbourhoodCollective(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 4}, 0)
	for i := range 4 {
		r.sequenceOf(i, 5)
	}
	r.open(1, "MPI_Neighbor_allgather", begin, 5)
	assert.Empty(t, look1(t, r).Ranks[1].WaitsFor, "its neighbours are not known")
	r.s.Area(1).Rank.Members = 6
	a := r.s.Area(1)
	comm := &a.Comms[1]
	comm.Flags, comm.Neighbours, comm.NeighbourCount = segment.CommTopology|segment.CommTopologies, 4, 2
	copy(a.Members[4:], []uint32{0, 2})
	assert.Equal(t, tasks(0, 2), look1(t, r).Ranks[1].WaitsFor)
	r.open(2, "MPI_Neighbor_allgather", begin, 5)
	assert.Equal(t, tasks(0), look1(t, r).Ranks[1].WaitsFor)
}

func TestStatusTellsTwinsOfACommunicatorApart(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2}, 0)
	const born = 3 << 32
	for i := range 2 {
		comms := r.s.Area(i).Comms
		comms[2] = comms[1] // a later one of the same id
		comms[1].Birth, comms[1].Sequence = 3, born+9
		comms[2].Birth, comms[2].Sequence = 4, 4<<32
	}
	r.open(0, "MPI_Barrier", begin, born+8)
	r.sequenceOf(0, born+9)
	r.sequenceOf(1, born+8)
	s := look1(t, r)
	assert.Equal(t, uint64(8), *s.Ranks[0].Sequence)
	assert.Equal(t, tasks(1), s.Ranks[0].WaitsFor)
}

func TestStatusOfANonblockingCollective(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2}, 0)
	r.open(0, "MPI_Wait", begin, 4)
	thread := r.s.Area(0).Threads[0]
	thread.Joined = thread.Current
	r.sequenceOf(1, 4)
	s := look1(t, r)
	assert.Equal(t, uint64(4), *s.Ranks[0].Sequence)
	assert.Equal(t, tasks(1), s.Ranks[0].WaitsFor)
	thread.Joined = 0 // a request of a message, of which nothing is known
	s = look1(t, r)
	assert.Nil(t, s.Ranks[0].Sequence)
	assert.Empty(t, s.Ranks[0].WaitsFor)
}

func TestStatusOfReceivesInACircle(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 4}, 0)
	for i := range 3 {
		r.open(i, "MPI_Recv", begin, -1, (i+1)%3)
	}
	r.open(3, "MPI_Recv", begin, -1, 0)
	s := look1(t, r)
	assert.Equal(t, [][]history.Task{tasks(0, 1, 2)}, s.Cycles)
	assert.Empty(t, s.WaitedFor)
}

func TestStatusOfAReceiveFromAnyRank(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2}, 0)
	r.open(0, "MPI_Recv", begin, -1, segment.AnyPeer)
	s := look1(t, r)
	assert.True(t, s.Ranks[0].AnyRank)
	assert.Empty(t, s.Ranks[0].WaitsFor)
}

// The first thread waits for messages from anywhere; what hangs is the second one.
func TestStatusOfSeveralThreads(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 3}, 0)
	for i := range 3 {
		r.open(i, "MPI_Recv", begin, -1, segment.AnyPeer)
	}
	for i := range 2 {
		r.openIn(i, 1, "MPI_Barrier", begin, 6)
	}
	r.sequenceOf(2, 6)
	s := look1(t, r)
	for i := range 2 {
		rank := s.Ranks[i]
		assert.Equal(t, "MPI_Recv", rank.Call)
		assert.True(t, rank.AnyRank)
		assert.Empty(t, rank.WaitsFor)
		require.Len(t, rank.Others, 1)
		other := rank.Others[0]
		assert.Equal(t, 1, other.Thread)
		assert.Equal(t, "MPI_Barrier", other.Call)
		assert.Equal(t, uint64(6), *other.Sequence)
		assert.Equal(t, tasks(2), other.WaitsFor)
		assert.Equal(t, "/bin/app", other.Module)
	}
	assert.Empty(t, s.Ranks[2].Others)
	assert.Equal(t, []Blocker{{task(2), tasks(0, 1)}}, s.WaitedFor)
}

func TestStatusOfACallThatIsNotTimed(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2}, 0)
	r.open(0, "MPI_Barrier", 0, 1)
	thread := r.s.Area(0).Threads[0]
	s := look1(t, r)
	assert.True(t, s.Ranks[0].AtLeast)
	assert.Zero(t, s.Ranks[0].For, "nobody has seen it before")
	thread.SeenCurrent, thread.FirstSeen = thread.Current, begin
	s = look1(t, r)
	assert.True(t, s.Ranks[0].AtLeast)
	assert.Positive(t, s.Ranks[0].For)
}

func TestStatusOfRanksThatAreNotInTheJobAnyMore(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 4, WorldSize: 6, Nodes: 2}, 0)
	for i, state := range []uint32{segment.RankFinalizing, segment.RankAborted, segment.RankRunning, segment.RankEmpty} {
		r.s.Area(i).Rank.State = state
	}
	r.s.Area(2).Rank.Pid = 1 << 30 // nobody's
	s := look1(t, r)
	require.Len(t, s.Ranks, 3)
	assert.Equal(t, Done, s.Ranks[0].State)
	assert.Equal(t, Gone, s.Ranks[1].State)
	assert.Equal(t, Gone, s.Ranks[2].State)
	assert.Equal(t, 3, s.Absent, "two on the other host, one still in MPI_Init")
}

// reaches is what Floyd and Warshall say of who waits, in the end, for whom.
func reaches(ranks []RankStatus) map[[2]int]bool {
	reach := map[[2]int]bool{}
	for _, r := range ranks {
		for _, w := range r.WaitsFor {
			reach[[2]int{r.Rank, w.Rank}] = true
		}
	}
	for k := range ranks {
		for i := range ranks {
			for j := range ranks {
				if reach[[2]int{i, k}] && reach[[2]int{k, j}] {
					reach[[2]int{i, j}] = true
				}
			}
		}
	}
	return reach
}

func TestBlockersAreTheEndsOfTheChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "ranks")
		ranks := make([]RankStatus, n)
		for i := range ranks {
			ranks[i].Task, ranks[i].State = task(i), InMPI
			for _, w := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 3), rapid.ID).Draw(t, fmt.Sprint("waits for ", i)) {
				if w != i {
					ranks[i].WaitsFor = append(ranks[i].WaitsFor, task(w))
				}
			}
		}
		reach := reaches(ranks)
		found, cycles := blockers(ranks)

		waitedFor := map[int][]history.Task{}
		for i, b := range found {
			waitedFor[b.Rank] = b.Waiting
			require.True(t, i == 0 || len(found[i-1].Waiting) >= len(b.Waiting), "the most wanted first")
		}
		inCycle := map[int]int{}
		for c, cycle := range cycles {
			for _, member := range cycle {
				require.NotContains(t, inCycle, member.Rank, "each rank is in one circle")
				inCycle[member.Rank] = c
			}
		}
		for i := range ranks {
			var waiting []history.Task
			for j := range ranks {
				if reach[[2]int{j, i}] && len(ranks[i].WaitsFor) == 0 {
					waiting = append(waiting, task(j))
				}
				if reach[[2]int{i, j}] && reach[[2]int{j, i}] {
					require.Contains(t, inCycle, i)
					require.Equal(t, inCycle[i], inCycle[j])
				}
			}
			require.Equal(t, waiting, waitedFor[i])
			_, circles := inCycle[i]
			require.Equal(t, reach[[2]int{i, i}], circles)
		}
	})
}
