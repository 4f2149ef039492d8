package memory_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/memory"
	"evenkeel/pgas/gsm/wire"
)

// node maps the memory of so many tasks, each as a process of its own would.
func node(t testing.TB, tasks int, heap uint64) []*memory.Space {
	t.Helper()
	i, err := memory.Invite(tasks, heap)
	require.NoError(t, err)
	defer i.Uninvite()
	var spaces []*memory.Space
	for self := range tasks {
		s, err := memory.Enter(i, self)
		require.NoError(t, err)
		t.Cleanup(s.Exit)
		spaces = append(spaces, s)
	}
	return spaces
}

func TestTasksOfANodeSeeEachOthersMemory(t *testing.T) {
	spaces := node(t, 3, 1<<20)
	for self, s := range spaces {
		place, err := s.Take(memory.Own, 100)
		require.NoError(t, err)
		copy(s.Self().Bytes(place, 100), bytes.Repeat([]byte{byte(self + 1)}, 100))
		w, err := s.Show(memory.Own, place, 100, memory.All)
		require.NoError(t, err)
		for _, other := range spaces {
			at, why := other.Area(self).Admit(memory.Getting, w, 99, 1)
			require.Equal(t, wire.OK, why)
			assert.Equal(t, byte(self+1), *(*byte)(at))
		}
	}
}

func TestNothingHasANameInSharedMemory(t *testing.T) {
	before, err := os.ReadDir("/dev/shm")
	require.NoError(t, err)
	node(t, 2, 1<<20)
	after, err := os.ReadDir("/dev/shm")
	require.NoError(t, err)
	assert.Len(t, after, len(before))
}

func TestDescriptorsAndMapsAreGivenBack(t *testing.T) {
	count := func() int {
		files, err := filepath.Glob("/proc/self/fd/*")
		require.NoError(t, err)
		return len(files)
	}
	before := count()
	for range 50 {
		i, err := memory.Invite(1, 1<<20)
		require.NoError(t, err)
		s, err := memory.Enter(i, 0)
		require.NoError(t, err)
		i.Uninvite()
		s.Exit()
		_, err = memory.Enter(memory.Invitation{}, 0)
		require.Error(t, err)
	}
	assert.Equal(t, before, count())
}

func TestAnotherFileThanInvitedIsRefused(t *testing.T) {
	i, err := memory.Invite(1, 1<<20)
	require.NoError(t, err)
	i.Uninvite()
	_, err = memory.Enter(i, 0)
	assert.ErrorIs(t, err, memory.ErrNoMemory)
}

func TestReservationsThatCantBe(t *testing.T) {
	for _, heap := range []uint64{0, 1 << 47, 1 << 63, ^uint64(0)} {
		_, err := memory.Invite(2, heap)
		assert.Error(t, err, "%d", heap)
	}
	i, err := memory.Invite(1<<20, 1<<40)
	assert.ErrorIs(t, err, memory.ErrNoMemory)
	assert.ErrorContains(t, err, "EVENKEEL_GSM_RESERVE")
	_, err = memory.Enter(i, 0)
	assert.ErrorIs(t, err, memory.ErrNoMemory, "what the others are told")
}

func TestMemoryIsZeroAlsoWhenItIsUsedAgain(t *testing.T) {
	s := node(t, 1, 1<<20)[0]
	for _, size := range []uint64{1, 64, 100, 4095, 4096, 5000, 70000} {
		for range 3 {
			place, err := s.Take(memory.Own, size)
			require.NoError(t, err)
			assert.Zero(t, place%64)
			if size >= memory.Page {
				assert.Zero(t, place%memory.Page)
			}
			b := s.Self().Bytes(place, size)
			assert.Equal(t, make([]byte, size), b)
			for i := range b {
				b[i] = 0xff
			}
			_, err = s.Show(memory.Own, place, 0, memory.All)
			require.NoError(t, err)
			require.NoError(t, s.Give(place))
		}
	}
	used, released := s.Usage(memory.Own)
	assert.Zero(t, used)
	assert.Zero(t, released, "no window ever showed it")
}

func TestWhatWasShownIsUsedAgainOnlyAfterAFence(t *testing.T) {
	s := node(t, 1, 1<<16)[0]
	place, err := s.Take(memory.Own, 1<<16)
	require.NoError(t, err)
	w, err := s.Show(memory.Own, place+8, 8, memory.All)
	require.NoError(t, err)
	assert.ErrorIs(t, s.Give(place), memory.ErrInUse)
	require.NoError(t, s.Hide(w))
	early := s.Mark()
	require.NoError(t, s.Give(place))
	assert.ErrorIs(t, s.Give(place), memory.ErrNotMemory, "twice")
	s.Settle(early)
	_, err = s.Take(memory.Own, 1)
	assert.ErrorIs(t, err, memory.ErrNoMemory, "it was given back after that fence had begun")
	assert.ErrorContains(t, err, "65536 wait for a global fence")
	s.Settle(s.Mark())
	again, err := s.Take(memory.Own, 1<<16)
	require.NoError(t, err)
	assert.Equal(t, place, again)
	assert.Equal(t, make([]byte, 1<<16), s.Self().Bytes(again, 1<<16))
}

func TestWindowNumbersNeverReturn(t *testing.T) {
	s := node(t, 1, 1<<16)[0]
	seen := map[wire.Window]bool{}
	for range 4 {
		var open []wire.Window
		for {
			w, err := s.Show(memory.Own, 0, 0, 0)
			if err != nil {
				assert.ErrorIs(t, err, memory.ErrNoMemory)
				break
			}
			require.False(t, seen[w])
			seen[w] = true
			open = append(open, w)
		}
		assert.Len(t, open, 512)
		for _, w := range open {
			require.NoError(t, s.Hide(w))
			assert.ErrorIs(t, s.Hide(w), wire.NoWindow)
		}
		_, err := s.Show(memory.Own, 0, 0, 0)
		assert.ErrorIs(t, err, memory.ErrNoMemory, "not before a fence")
		s.Settle(s.Mark())
	}
	assert.ErrorIs(t, s.Hide(0), wire.NoWindow)
}

// A page is closed to some commands while others go on, and those that cross into it are refused.
func TestProtectionIsForPages(t *testing.T) {
	s := node(t, 1, 1<<20)[0]
	place, err := s.Take(memory.Own, 4*memory.Page)
	require.NoError(t, err)
	w, err := s.Show(memory.Own, place, 4*memory.Page, memory.Put|memory.Get)
	require.NoError(t, err)
	inner, err := s.Show(memory.Own, place+3*memory.Page, memory.Page, memory.All)
	require.NoError(t, err)
	require.NoError(t, s.Guard(place+memory.Page, memory.Page, memory.Get))
	a := s.Self()
	for _, c := range []struct {
		kind          memory.Kind
		window        wire.Window
		offset, bytes uint64
		want          wire.Reason
	}{
		{memory.Putting, w, 0, memory.Page, wire.OK},
		{memory.Putting, w, memory.Page, 1, wire.Protection},
		{memory.Putting, w, memory.Page - 1, 2, wire.Protection},
		{memory.Putting, w, 2*memory.Page - 1, 1, wire.Protection},
		{memory.Putting, w, 2 * memory.Page, 2 * memory.Page, wire.OK},
		{memory.Putting, w, 0, 4 * memory.Page, wire.Protection},
		{memory.Getting, w, 0, 4 * memory.Page, wire.OK},
		{memory.Updating, w, 0, 8, wire.Protection},
		{memory.Updating, inner, 0, 8, wire.OK},
		{memory.Putting, w, 4 * memory.Page, 0, wire.OK},
		{memory.Putting, w, 4 * memory.Page, 1, wire.Range},
	} {
		_, why := a.Admit(c.kind, c.window, c.offset, c.bytes)
		assert.Equal(t, c.want, why, "%+v", c)
	}
	assert.Equal(t, unsafe.Pointer(nil), a.Word(memory.Putting, w, 0, 3), "a limit holds for all pages")
	require.NoError(t, s.Guard(place+memory.Page, memory.Page, memory.All))
	assert.NotNil(t, a.Word(memory.Putting, w, memory.Page, 3))

	for _, bad := range [][2]uint64{{place + 1, memory.Page}, {place, 1}, {place, 0}} {
		assert.ErrorIs(t, s.Guard(bad[0], bad[1], memory.All), wire.Length)
	}
	assert.ErrorIs(t, s.Guard(place, 5*memory.Page, memory.All), memory.ErrNotMemory)
	assert.ErrorIs(t, s.Guard(place, memory.Page, 8), wire.Operation)
}

// Others change a word between a try to swap it and the look at what is there instead: who is told by a compare-and-swap
// that the word was as compared has changed it, and an exclusive-or turns the bits that the one before has left.
func TestAtomicsThatTryAgain(t *testing.T) {
	const elsewhere = 7
	for _, c := range []struct {
		before, between []uint64 // each try, and each look after one in vain
		want, last      uint64
		tries           int
	}{
		{[]uint64{2}, nil, 2, 5, 1},
		{[]uint64{elsewhere}, []uint64{elsewhere}, elsewhere, elsewhere, 1},
		{[]uint64{elsewhere, 2}, []uint64{2}, 2, 5, 2},
		{[]uint64{elsewhere, elsewhere, 2}, []uint64{2, 2}, 2, 5, 3},
		{[]uint64{elsewhere, elsewhere}, []uint64{2, elsewhere}, elsewhere, elsewhere, 2},
	} {
		w := &contended{before: c.before, between: c.between}
		assert.Equal(t, c.want, memory.CompareAndSwapBy(w.swap, 2, 5), "%+v", c)
		assert.Equal(t, c.last, w.word, "%+v", c)
		assert.Equal(t, c.tries, w.tries, "%+v", c)
	}
	for _, c := range []struct {
		before, between  []uint64
		first, old, last uint64
	}{
		{[]uint64{6}, nil, 6, 6, 5},
		{[]uint64{8, 4}, []uint64{4}, 6, 4, 7},
		{[]uint64{8, 8, 4}, []uint64{4, 4}, 6, 4, 7},
	} {
		w := &contended{before: c.before, between: c.between}
		assert.Equal(t, c.old, memory.ExclusiveOrBy(w.swap, c.first, 3), "%+v", c)
		assert.Equal(t, c.last, w.word, "%+v", c)
	}
}

// contended is a word that others write right before each try to swap it, and right before each look at what is there
// instead.
type contended struct {
	word            uint64
	before, between []uint64
	tries           int
}

func (w *contended) swap(old, new uint64) (bool, uint64) {
	w.word = w.before[w.tries]
	w.tries++
	if w.word == old {
		w.word = new
		return true, old
	}
	w.word = w.between[w.tries-1]
	return false, w.word
}

// Two threads change one word at once, by the atomics that Go has no instruction for: who is told by a compare-and-swap
// that the word was as compared has changed it, and every exclusive-or finds what the one before has left.
func TestAtomicsAtOnce(t *testing.T) {
	const rounds, mark = 1_000_000, 2
	for _, width := range []int{4, 8} {
		word := make([]byte, width)
		marked, found := 0, 0
		bothAtOnce(func() {
			for i := range uint64(rounds) {
				if memory.Apply(wire.Swap, word, i%mark, 0) == mark {
					found++
				}
			}
		}, func() {
			if memory.Apply(wire.CompareAndSwap, word, mark, 0) == 0 {
				marked++
			}
		})
		if memory.Apply(wire.Swap, word, 0, 0) == mark {
			found++
		}
		assert.Equal(t, marked, found, "%d bytes", width)

		var zeros, ones [2]int
		turn := func(who int) {
			if memory.Apply(wire.FetchAndXor, word, 1, 0) == 0 {
				zeros[who]++
			} else {
				ones[who]++
			}
		}
		bothAtOnce(func() {
			for range rounds {
				turn(0)
			}
		}, func() { turn(1) })
		last := int(memory.Apply(wire.Swap, word, 0, 0))
		assert.Equal(t, zeros[0]+zeros[1], ones[0]+ones[1]+last, "%d bytes", width)
	}
}

// bothAtOnce runs a function once, and another one again and again meanwhile.
func bothAtOnce(once, again func()) {
	var over atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		once()
		over.Store(true)
	})
	for !over.Load() {
		again()
	}
	other.Wait()
}

// A process lives that maps the memory; not one that has ended, whether or not anybody has asked how, or that does
// something else.
func TestWhoLives(t *testing.T) {
	s := node(t, 2, 1<<20)[0]
	assert.True(t, s.Lives(s.Self()))
	assert.True(t, s.Lives(s.Area(1)))
	memory.SetProcess(s.Area(1), os.Getppid())
	assert.False(t, s.Lives(s.Area(1)))
	other := exec.Command("true")
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	memory.SetProcess(s.Area(1), other.Process.Pid)
	_, err = io.ReadAll(out) // until it has ended
	require.NoError(t, err)
	assert.False(t, s.Lives(s.Area(1)))
	require.NoError(t, other.Wait())
	assert.False(t, s.Lives(s.Area(1)))
}
