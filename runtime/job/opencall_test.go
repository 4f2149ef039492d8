package job

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/segment"
)

// A call that is only counted names its peer as a rank of its communicator,
// and whoever looks finds which rank of the world that is.
func TestOpenCallFindsThePeerOfACountedCall(t *testing.T) {
	r := record(t, segment.Header{LocalRanks: 1, WorldSize: 4}, 0)
	area := r.s.Area(0)
	comm := &area.Comms[1]
	members := []uint32{3, 1, 2, 0}
	comm.Members = area.Rank.Members
	comm.MemberCount = uint32(len(members))
	area.Rank.Members += comm.MemberCount
	copy(r.s.Area(0).Members[comm.Members:], members)
	r.open(0, "MPI_Recv", 0, -1)
	area.Threads[0].Current |= segment.CurrentRank

	for _, c := range []struct {
		rank  int32
		peers []history.Peer
	}{
		{0, []history.Peer{3}}, {2, []history.Peer{2}}, {3, []history.Peer{0}},
		{4, []history.Peer{history.FarPeer}}, {math.MaxInt32, []history.Peer{history.FarPeer}},
		{-1, []history.Peer{history.AnyPeer}}, {-2, nil}, {math.MinInt32, nil},
	} {
		area.Threads[0].CurrentSequence = uint64(uint32(c.rank))
		call, ok := OpenCallOf(r.s.Area(0), 0)
		require.True(t, ok)
		assert.Equal(t, c.peers, call.Peers, "rank %d", c.rank)
		assert.Zero(t, call.Sequence)
	}

	area.Threads[0].CurrentSequence = 0
	comm.Flags = segment.CommForeign
	call, _ := OpenCallOf(r.s.Area(0), 0)
	assert.Equal(t, []history.Peer{history.FarPeer}, call.Peers, "a communicator with members of another world")
}
