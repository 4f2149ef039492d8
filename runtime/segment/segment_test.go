package segment

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenSharesTheFile(t *testing.T) {
	s := recording(t, 2, 1, 5)
	defer s.Close()
	path := filepath.Join(t.TempDir(), "segment")
	require.NoError(t, os.WriteFile(path, s.memory, 0o600))

	writer, err := Open(path, true)
	require.NoError(t, err)
	reader, err := Open(path, false)
	require.NoError(t, err)
	requireSame(t, s, reader)
	Store(&writer.Area(1).Rank.State, RankAborted)
	assert.Equal(t, uint32(RankAborted), Load(&reader.Area(1).Rank.State))
	require.NoError(t, reader.Close())
	require.NoError(t, writer.Close())
	assert.NoError(t, writer.Close(), "a second Close does nothing")
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	s := recording(t, 1, 1, 6)
	defer s.Close()
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		return filepath.Join(dir, name)
	}
	for problem, path := range map[string]string{
		"no such file or directory":               filepath.Join(dir, "none"),
		"10 bytes are less than its header":       file("short", s.memory[:10]),
		"does not begin with EVENKEEL":            file("foreign", make([]byte, 8192)),
		"a truncated node segment: 8192 bytes of": file("cut", s.memory[:8192]),
	} {
		_, err := Open(path, false)
		assert.ErrorContains(t, err, problem)
	}
}

func TestCountsBeyondTheRoomAreClipped(t *testing.T) {
	s := recording(t, 1, 1, 7)
	defer s.Close()
	rank := s.Area(0).Rank
	rank.Modules, rank.Comms, rank.Regions, rank.Members, rank.Threads = 1<<31, 1<<31, 1<<31, 1<<31, 1<<31
	a := s.Area(0)
	assert.Len(t, a.Modules, maxModules)
	assert.Len(t, a.Comms, maxComms)
	assert.Len(t, a.Regions, maxRegions)
	assert.Len(t, a.Members, 100)
	assert.Len(t, a.Threads, 4)
}

func TestTextEndsAtItsZeroOrItsRoom(t *testing.T) {
	assert.Equal(t, "ab", Text([]int8{'a', 'b', 0, 'c'}))
	assert.Equal(t, "abc", Text([]int8{'a', 'b', 'c'}))
	assert.Equal(t, "", Text(nil))
}

func TestNewestNeverMixesTwoReadings(t *testing.T) {
	var h Header
	h.SetNewest(ClockAnchor{Ticks: 2, Ns: 1})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		for i := uint64(1); i < 1_000_000; i++ {
			h.SetNewest(ClockAnchor{Ticks: 2 * i, Ns: i})
		}
	}()
	for range 1_000_000 {
		a := h.Newest()
		if a.Ticks != 0 { // else it fell back to the first reading
			require.Equal(t, 2*a.Ns, a.Ticks)
		}
	}
	writer.Wait()
}

func TestNewestOfAWriterThatDiedBetweenTwoWords(t *testing.T) {
	h := Header{Anchor: [2]ClockAnchor{{Ticks: 3, Ns: 4}, {Ticks: 5}}}
	assert.Equal(t, ClockAnchor{Ticks: 3, Ns: 4}, h.Newest())
}

func TestReadNeverMixesTwoEvents(t *testing.T) {
	var slot Event
	const numbers = 1_000_000
	var writer sync.WaitGroup
	writer.Add(1)
	go func() { // as leave_event in c/record.c
		defer writer.Done()
		for n := uint64(0); n < numbers; n++ {
			Store(&slot.Stamp, 0)
			Store(&slot.Enter, n)
			Store(&slot.Leave, n)
			Store(&slot.Sequence, n)
			Store(&slot.Bytes, n)
			Store(&slot.Stamp, n+1)
		}
	}()
	read := 0
	for n := uint64(0); n < numbers-1; {
		stamp := Load(&slot.Stamp)
		if stamp == 0 {
			continue
		}
		n = stamp - 1
		if e, whole := slot.Read(n); whole {
			require.Equal(t, [...]uint64{n + 1, n, n, n, n}, [...]uint64{e.Stamp, e.Enter, e.Leave, e.Sequence, e.Bytes})
			read++
		}
	}
	writer.Wait()
	assert.Positive(t, read)
}
