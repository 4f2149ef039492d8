package job

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/analysis"
	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

const ms = 1_000_000

func TestAssembleBringsNodesOntoOneClock(t *testing.T) {
	const offset = 3_000_000_123
	first := record(t, segment.Header{LocalRanks: 2, WorldSize: 3, Nodes: 2}, 0)
	second := record(t, segment.Header{LocalRanks: 1, WorldSize: 3, Nodes: 2, Node: 1}, 2)
	second.s.Area(0).Rank.InitLeave += offset
	second.s.Header.Anchor[0].Ns, second.s.Header.Anchor[0].Ticks = offset, offset
	first.s.Header.Sync[0] = segment.ClockSync{MonotonicNs: begin}
	second.s.Header.Sync[0] = segment.ClockSync{MonotonicNs: begin + offset, OffsetNs: offset, ErrorNs: 500}
	second.s.Header.Sync[1] = segment.ClockSync{MonotonicNs: begin + offset + 9*ms, OffsetNs: offset, ErrorNs: 700}
	for i := range 2 {
		first.call(i, "MPI_Barrier", begin+uint64(i)*ms, begin+5*ms, 0)
		first.finalize(i, begin+9*ms)
	}
	second.call(0, "MPI_Barrier", begin+offset+4*ms, begin+offset+5*ms, 0)
	second.finalize(0, begin+offset+9*ms)

	run, err := Assemble([]*segment.Segment{second.snapshot(), first.snapshot()}) // in any order
	require.NoError(t, err)
	assert.True(t, run.Complete, run.Notes)
	assert.Equal(t, "4711", run.Job)
	require.Len(t, run.Nodes, 2)
	assert.Equal(t, history.Node{World: 1, Number: 1, Host: "host1", ClockOffset: offset, ClockError: 700, ClockKnown: true}, run.Nodes[1])
	require.Len(t, run.Ranks, 3)
	for i, r := range run.Ranks {
		assert.Equal(t, history.Task{World: 1, Rank: i}, r.Task)
		assert.Equal(t, history.Finalized, r.State)
		assert.Equal(t, int64(begin), r.Start)
		assert.Equal(t, int64(begin+9*ms), r.End)
		require.Len(t, r.Events, 1)
		assert.Equal(t, []int64{begin, begin + ms, begin + 4*ms}[i], r.Events[0].Enter)
		assert.Equal(t, "MPI_Barrier", r.Accounts[r.Events[0].Account].Function.Name)
		assert.Equal(t, "/bin/app", r.Accounts[0].Module)
		assert.Equal(t, []int{0, 1, 2}, r.Comms[1].Members)
		assert.Equal(t, r.Events[0].Sequence+1, r.Comms[1].Next)
		assert.Equal(t, int64(9*ms), r.Regions[0].Time)
	}
	p := analysis.Analyse(run)
	require.Len(t, p.Culprits, 1)
	assert.Equal(t, 2, p.Culprits[0].Rank)
	assert.InDelta(t, 7e-3, p.Culprits[0].Cost, 1e-6)
}

func TestACallThatWasOpenAtTheEndIsPartOfTheRun(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2}, 0)
	for i := range 2 {
		r.call(i, "MPI_Barrier", begin+ms, begin+2*ms, 0)
		rank := r.s.Area(i).Rank
		rank.State, rank.DrainedTicks = segment.RankKilled, begin+12*ms
	}
	r.open(0, "MPI_Barrier", begin+4*ms, 1)

	run, err := Assemble([]*segment.Segment{r.snapshot()})
	require.NoError(t, err)
	assert.False(t, run.Complete)
	assert.Len(t, run.Notes, 1)
	assert.Equal(t, history.Killed, run.Ranks[0].State)
	assert.Equal(t, int64(begin+12*ms), run.Ranks[0].End)
	require.Len(t, run.Ranks[0].Events, 2)
	last := run.Ranks[0].Events[1]
	assert.Equal(t, []int64{begin + 4*ms, begin + 12*ms, 1}, []int64{last.Enter, last.Leave, int64(last.Sequence)})
	assert.True(t, last.Collective)
	assert.Equal(t, int64(9*ms), run.Ranks[0].Accounts[0].Time)
	assert.Equal(t, int64(2), run.Ranks[0].Accounts[0].Timed)
	assert.Equal(t, int64(12*ms), run.Ranks[0].Regions[0].Time, "the open region counts to the end")
	p := analysis.Analyse(run)
	require.NotEmpty(t, p.Culprits)
	assert.Equal(t, 1, p.Culprits[0].Rank)
	assert.InDelta(t, 8e-3, p.Culprits[0].Cost, 1e-6)
}

func TestAWaitForANonblockingCollectiveIsPartOfIt(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 1}, 0)
	r.open(0, "MPI_Wait", begin+ms, 5)
	thread := r.s.Area(0).Threads[0]
	thread.Joined = thread.Current
	rank := r.s.Area(0).Rank
	rank.State, rank.DrainedTicks = segment.RankKilled, begin+2*ms
	run, err := Assemble([]*segment.Segment{r.snapshot()})
	require.NoError(t, err)
	require.Len(t, run.Ranks[0].Events, 1)
	assert.True(t, run.Ranks[0].Events[0].Collective)
	assert.Equal(t, uint64(5), run.Ranks[0].Events[0].Sequence)
}

func TestStatesAreTold(t *testing.T) {
	for state, expected := range map[uint32]struct {
		state history.State
		note  string
	}{
		segment.RankFinalized:  {history.Finalized, ""},
		segment.RankFinalizing: {history.Finalized, ""},
		segment.RankAborted:    {history.Aborted, "Rank 0 called MPI_Abort(6)."},
		segment.RankExited:     {history.Exited, "Rank 0 left through exit() without MPI_Finalize."},
		segment.RankKilled:     {history.Killed, "Rank 0 ended without MPI_Finalize, killed or crashed."},
	} {
		r := record(t, segment.Header{LocalRanks: 1}, 0)
		rank := r.s.Area(0).Rank
		rank.State, rank.AbortCode = state, 6
		run, err := Assemble([]*segment.Segment{r.s})
		require.NoError(t, err)
		assert.Equal(t, expected.state, run.Ranks[0].State)
		assert.Equal(t, expected.note == "", run.Complete)
		if expected.note != "" {
			assert.Equal(t, []string{expected.note}, run.Notes)
		}
	}
}

// A job of many ranks that is killed is told in few sentences.
func TestEndingsAreToldOnceEach(t *testing.T) {
	for ranks, told := range map[uint32]string{2: "Ranks 0, 1 left", 4: "Ranks 0, 1, 2, 3 left", 64: "Ranks 0, 1, 2, 3 and 60 more left"} {
		r := record(t, segment.Header{LocalRanks: ranks + 1}, 0)
		for i := range ranks {
			r.s.Area(int(i)).Rank.State = segment.RankExited
		}
		r.s.Area(int(ranks)).Rank.State = segment.RankAborted
		run, err := Assemble([]*segment.Segment{r.s})
		require.NoError(t, err)
		assert.Equal(t, []string{told + " through exit() without MPI_Finalize.", fmt.Sprintf("Rank %d called MPI_Abort(0).", ranks)}, run.Notes)
	}
}

func TestWhatIsMissingIsTold(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 2, WorldSize: 3, Nodes: 2, Node: 1, CreatedRealtimeNs: 1}, 1)
	r.s.Area(1).Rank.InitLeave = 0
	r.s.Area(0).Rank.CallsUnrecorded = 5
	run, err := Assemble([]*segment.Segment{r.s})
	require.NoError(t, err)
	assert.False(t, run.Complete)
	require.Len(t, run.Notes, 5)
	assert.Contains(t, run.Notes[0], "had not left MPI_Init")
	assert.Contains(t, run.Notes[1], "The clock of host1 was not measured")
	assert.Contains(t, run.Notes[2], "1 of 2 nodes are missing")
	assert.Contains(t, run.Notes[3], "The job is still running; this is how it stood at")
	assert.Contains(t, run.Notes[4], "5 calls are not recorded: EVENKEEL_THREADS=2 is too few threads at once.")
	assert.Len(t, run.Ranks, 1)
}

func TestAssembleRefuses(t *testing.T) {
	_, err := Assemble(nil)
	assert.ErrorContains(t, err, "no node of the job has left a recording")
	r := record(t, segment.Header{LocalRanks: 1}, 0)
	r.s.Header.TableHash++
	_, err = Assemble([]*segment.Segment{r.s})
	assert.ErrorContains(t, err, "another version of evenkeel")
}

func TestEventsThatAHistoryHoldsTwiceCountOnce(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 1}, 0)
	for n := range uint64(5) {
		r.call(0, "MPI_Barrier", begin+n*ms, begin+n*ms+1000, int(n))
	}
	r.finalize(0, begin+9*ms)
	s := r.snapshot()
	a := s.Area(0)
	copy(a.History[5:], a.History[1:4])
	a.Rank.HistoryCount = 8
	run, err := Assemble([]*segment.Segment{s})
	require.NoError(t, err)
	require.Len(t, run.Ranks[0].Events, 5)
	for n, e := range run.Ranks[0].Events {
		assert.Equal(t, uint64(n), e.Sequence)
	}
}

// damage overwrites words at random places that are in use.
func damage(memory []byte, random *rand.Rand, words int) {
	for range words {
		at := random.IntN(len(memory)/8) * 8
		for range 50 { // rather where something is
			if binary.LittleEndian.Uint64(memory[at:]) != 0 {
				break
			}
			at = random.IntN(len(memory)/8) * 8
		}
		value := [...]uint64{0, 1, random.Uint64(), random.Uint64N(300), 1<<63 - 1, 1 << 63, ^uint64(0), 0x7ff8000000000001}[random.IntN(8)]
		binary.LittleEndian.PutUint64(memory[at:], value)
	}
}

// FuzzAssemble reads recordings with damaged words, which may come from a disk.
func FuzzAssemble(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed*3))
	}
	r := record(f, segment.Header{LocalRanks: 3}, 0)
	for i := range 3 {
		for n := range uint64(20) {
			r.call(i, "MPI_Barrier", begin+n*ms+uint64(i)*1000, begin+n*ms+9000, int(n))
			r.call(i, "MPI_Recv", begin+n*ms+9500, begin+n*ms+9900, -1, (i+1)%3)
		}
		r.open(i, "MPI_Allreduce", begin+30*ms, 20)
		r.s.Area(i).Rank.State = segment.RankKilled
	}
	image := r.image()
	f.Fuzz(func(t *testing.T, seed uint64, words uint8) {
		s, err := segment.Decode(bytes.NewReader(image))
		require.NoError(t, err)
		defer s.Close()
		random := rand.New(rand.NewPCG(seed, 0))
		for i := range int(s.Header.LocalRanks) {
			damage(bytesOf(s, i), random, int(words))
		}
		run, err := Assemble([]*segment.Segment{s})
		if err == nil {
			Describe(analysis.Analyse(run), run, []*segment.Segment{s})
		}
	})
}
