package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"evenkeel/c/tables"
	"evenkeel/runtime/segment"
)

// Ticks are nanoseconds here. MPI_Init returns at begin.
const begin = 1_000_000

// recorder records into a segment as the ranks of a node do from C.
type recorder struct {
	t         testing.TB
	s         *segment.Segment
	functions []tables.Function
}

// record makes the segment of a node on which nothing has been called yet. Its
// ranks are numbered from `first`.
func record(t testing.TB, h segment.Header, first int) recorder {
	functions, _, err := tables.MPI()
	require.NoError(t, err)
	h.TableHash = tables.Hash(functions)
	h.ThreadSlots, h.Accounts, h.RingEvents, h.HistoryEvents, h.Members = 2, 16, 64, 64, 64
	h.Anchor = [2]segment.ClockAnchor{{Ticks: 1000, Ns: 1000}, {Ticks: 1 << 40, Ns: 1 << 40}}
	h.World, h.Nodes = max(h.World, 1), max(h.Nodes, 1)
	h.WorldSize = max(h.WorldSize, h.LocalRanks)
	copy(text(h.Job[:]), "4711")
	copy(text(h.Host[:]), fmt.Sprintf("host%d", h.Node))
	s, err := segment.Blank(h)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	r := recorder{t, s, functions}
	for i := range int(h.LocalRanks) {
		rank := s.Area(i).Rank
		rank.Rank, rank.Pid, rank.State = uint32(first+i), uint32(os.Getpid()), segment.RankRunning
		rank.InitLeave, rank.BinTicks, rank.Threads = begin, 1_000_000, 2
		rank.Modules, rank.Comms, rank.Regions = 2, 3, 2
		a := s.Area(i)
		copy(text(a.Modules[1].Path[:]), "/bin/app")
		copy(text(a.Regions[0].Name[:]), "whole run")
		copy(text(a.Comms[1].Name[:]), "MPI_COMM_WORLD")
		a.Comms[1].Id, a.Comms[1].Size, a.Comms[1].Rank, a.Comms[1].MemberCount = 77, h.WorldSize, rank.Rank, h.WorldSize
		rank.Members = h.WorldSize
		a = s.Area(i)
		for m := range a.Members {
			a.Members[m] = uint32(m)
		}
	}
	return r
}

// text is a C string's bytes.
func text(c []int8) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&c[0])), len(c)) }

func (r recorder) function(name string) int {
	i := slices.IndexFunc(r.functions, func(f tables.Function) bool { return f.Name == name })
	require.GreaterOrEqual(r.t, i, 0, name)
	return i
}

// account is that of a function on MPI_COMM_WORLD in a thread: its number.
func (r recorder) account(i, thread int, name string) int {
	accounts := r.s.Area(i).Threads[thread].Accounts
	key := uint64(r.function(name)) | 1<<16
	for n := 1; ; n++ {
		if a := &accounts[n]; a.Site == 0 || a.Key == key {
			a.Site, a.Key, a.Module, a.Offset = 0x1000+uint64(n), key, 1, uint64(n)
			return n
		}
	}
}

// call is a finished call; sequence is that of a collective operation, or -1.
func (r recorder) call(i int, name string, enter, leave uint64, sequence int, peers ...int) {
	n := r.account(i, 0, name)
	t := r.s.Area(i).Threads[0]
	a := &t.Accounts[n]
	a.Calls, a.Timed, a.Ticks = a.Calls+1, a.Timed+1, a.Ticks+leave-enter
	a.Longest = max(a.Longest, leave-enter)
	if a.Shortest = min(a.Shortest, leave-enter); a.Timed == 1 {
		a.Shortest = leave - enter
	}
	e := segment.Event{Enter: enter, Leave: leave, Account: uint16(n), Comm: 1, Function: uint16(r.function(name)), Peer: peerWords(peers)}
	if sequence >= 0 {
		e.Sequence, e.Weight = uint64(sequence), segment.EventCollective
		r.s.Area(i).Comms[1].Sequence = uint64(sequence) + 1
	}
	e.Stamp = t.RingHead + 1
	t.Ring[t.RingHead%64] = e
	t.RingHead++
}

// open is a call that has not ended, timed if enter is not 0.
func (r recorder) open(i int, name string, enter uint64, sequence int, peers ...int) {
	r.openIn(i, 0, name, enter, sequence, peers...)
}

func (r recorder) openIn(i, thread int, name string, enter uint64, sequence int, peers ...int) {
	n := r.account(i, thread, name)
	t := r.s.Area(i).Threads[thread]
	t.Accounts[n].Calls++
	t.Current = t.Accounts[n].Calls<<segment.CurrentCalls | uint64(n) + 1
	if enter != 0 {
		t.CurrentEnter = enter
		t.Current |= segment.CurrentTimed
	}
	t.CurrentPeer = peerWords(peers)
	if sequence >= 0 {
		t.CurrentSequence = uint64(sequence)
		r.s.Area(i).Comms[1].Sequence = uint64(sequence) + 1
	}
}

func peerWords(peers []int) [8]uint16 {
	var words [8]uint16
	for i := range words {
		words[i] = segment.NoPeer
		if i < len(peers) {
			words[i] = uint16(peers[i])
		}
	}
	return words
}

// finalize is the end of a rank.
func (r recorder) finalize(i int, at uint64) {
	rank := r.s.Area(i).Rank
	rank.FinalizeEnter, rank.State = at, segment.RankFinalized
	r.s.Area(i).Regions[0].Ticks = at - rank.InitLeave
}

// live puts the segment into a file, as if its ranks were alive: they are this
// process, which has the file mapped.
func (r recorder) live() Live {
	path := filepath.Join(r.t.TempDir(), "segment")
	memory := unsafe.Slice((*byte)(unsafe.Pointer(r.s.Header)), r.s.Header.SegmentSize)
	require.NoError(r.t, os.WriteFile(path, memory, 0o600))
	s, err := segment.Open(path, true)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { s.Close() })
	return Live{path, s}
}

// snapshot is the segment drained, as Assemble wants it.
func (r recorder) snapshot() *segment.Segment {
	s, err := r.live().Snapshot()
	require.NoError(r.t, err)
	r.t.Cleanup(func() { s.Close() })
	return s
}

// image is the segment as it is kept on disk.
func (r recorder) image() []byte {
	var b bytes.Buffer
	require.NoError(r.t, r.snapshot().Encode(&b))
	return b.Bytes()
}

// bytesOf is the memory of a rank's area.
func bytesOf(s *segment.Segment, i int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(s.Area(i).Rank)), s.Header.RankAreaSize)
}
