package spmd_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/balancer"
	"evenkeel/balancer/spmd"
	"evenkeel/mpi"
)

type cell struct {
	Item  int64
	Twice [2]float32
}

func cellOf(item int) cell {
	return cell{int64(item), [2]float32{float32(item), float32(-item)}}
}

func textOf(item int) []byte {
	return bytes.Repeat([]byte{byte(item)}, item%7)
}

// book is what the program packs itself; on one rank it can be made to fail.
type book struct {
	words map[int]string
	came  map[int]string
	fails string
}

func (b *book) Pack(first, end int) ([]byte, error) {
	if b.fails == "pack" {
		return nil, errors.New("packing was to fail")
	}
	var text bytes.Buffer
	for i := first; i < end; i++ {
		fmt.Fprintf(&text, "%s\n", b.words[i])
	}
	return text.Bytes(), nil
}

func (b *book) Unpack(first, end int, packed []byte) error {
	for i, word := range bytes.Split(bytes.TrimSuffix(packed, []byte("\n")), []byte("\n")) {
		b.came[first+i] = string(word)
	}
	if b.fails == "unpack" {
		return errors.New("unpacking was to fail")
	}
	return nil
}

func (b *book) Finish(first, end int, taken bool) {
	if taken {
		for i := range b.words {
			if i < first || i >= end {
				delete(b.words, i)
			}
		}
		for i, word := range b.came {
			b.words[i] = word
		}
	}
	clear(b.came)
}

func word(item int) string { return fmt.Sprint("word ", item) }

// bounds are the same on all ranks, as the generator is.
func bounds(random *rand.Rand, items int) balancer.Partition {
	p := balancer.Partition{0, int64(items)}
	for len(p) < mpi.World.Size()+1 {
		p = append(p, random.Int63n(int64(items)+1))
	}
	slices.Sort(p)
	return p
}

// tenants are one of each kind.
type tenants struct {
	cells   *spmd.Array[cell]
	texts   *spmd.Strings
	book    *book
	items   int
	p       *spmd.Partition
	halo    int
	checked int
}

func settle(t *testing.T, items, halo int) *tenants {
	p, err := spmd.NewPartition(mpi.World, items, spmd.Options{})
	require.NoError(t, err)
	s := &tenants{items: items, p: p, halo: halo, book: &book{words: map[int]string{}, came: map[int]string{}}}
	s.cells, err = spmd.NewArray[cell](p, halo)
	require.NoError(t, err)
	s.texts, err = spmd.NewStrings(p)
	require.NoError(t, err)
	require.NoError(t, p.Add(s.book))
	first, end := p.Range()
	var texts [][]byte
	for i := first; i < end; i++ {
		s.cells.Own()[i-first] = cellOf(i)
		s.book.words[i] = word(i)
		texts = append(texts, textOf(i))
	}
	require.NoError(t, s.texts.Assign(texts))
	return s
}

func (s *tenants) check(t *testing.T) {
	first, end := s.p.Range()
	require.Len(t, s.book.words, end-first)
	for i := first; i < end; i++ {
		require.Equal(t, cellOf(i), s.cells.Own()[i-first])
		require.True(t, bytes.Equal(textOf(i), s.texts.Item(i-first)), "item %d", i)
		require.Equal(t, word(i), s.book.words[i])
		require.Equal(t, mpi.World.Rank(), s.p.Owner(i))
	}
	require.NoError(t, s.cells.Exchange(false))
	for i, c := range s.cells.WithHalo() {
		if item := first - s.halo + i; end > first && item >= 0 && item < s.items {
			require.Equal(t, cellOf(item), c)
		}
	}
}

func TestItemsGoWhereTheirRangesAre(t *testing.T) {
	const items, seed = 300, 11
	random := rand.New(rand.NewSource(seed))
	s := settle(t, items, 3)
	s.check(t)
	for round := range 40 {
		before, _ := s.p.Range()
		failing := random.Intn(4 * mpi.World.Size())
		s.book.fails = ""
		if failing == mpi.World.Rank() {
			s.book.fails = []string{"pack", "unpack"}[round%2]
		}
		if err := s.p.Set(bounds(random, items)); err != nil {
			require.ErrorIs(t, err, spmd.ErrHook, "seed %d, round %d", seed, round)
			after, _ := s.p.Range()
			require.Equal(t, before, after)
		}
		s.check(t)
	}
	all := make([]cell, items)
	require.NoError(t, s.cells.Gather(all))
	for i, c := range all {
		require.Equal(t, cellOf(i), c)
	}
	require.NoError(t, s.p.Free())
}

// Ranks whose items take longer get fewer: rank 0's sleep, so it needs no core.
func TestStepsEvenOutTheWork(t *testing.T) {
	const items = 600
	p, err := spmd.NewPartition(mpi.World, items, spmd.Options{Policy: balancer.Proportional})
	require.NoError(t, err)
	owned, err := spmd.NewArray[int64](p, 0)
	require.NoError(t, err)
	first, _ := p.Range()
	for i := range owned.Own() {
		owned.Own()[i] = int64(first + i)
	}
	called := 0
	require.NoError(t, p.Overlap(10*time.Millisecond, func(first, end int) error {
		assert.LessOrEqual(t, 0, first)
		assert.LessOrEqual(t, end, items)
		called++
		return nil
	}))
	require.NoError(t, p.Start())
	for range 12 { // on a busy machine some of them say nothing
		first, end := p.Range()
		each := 100 * time.Microsecond
		if mpi.World.Rank() == 0 {
			each *= 4
		}
		time.Sleep(time.Duration(end-first) * each)
		_, err := p.Step()
		require.NoError(t, err)
	}
	_, end0, err := p.RangeOf(0)
	require.NoError(t, err)
	if n := mpi.World.Size(); n > 1 {
		assert.Less(t, end0, items/n, p.Reason())
	}
	if o := p.Overlapped(); mpi.World.Size() > 1 && mpi.World.Rank() > 0 {
		assert.Positive(t, called)
		assert.GreaterOrEqual(t, o.Times, called)
		assert.Positive(t, o.Hidden)
		assert.Positive(t, o.Posted)
		assert.LessOrEqual(t, o.Used, o.Posted)
		assert.False(t, o.GivenUp)
	}
	first, _ = p.Range()
	for i, v := range owned.Own() {
		assert.Equal(t, int64(first+i), v)
	}
	require.NoError(t, p.Free())
}

func TestWrongPartitionsAreErrorsOnAllRanks(t *testing.T) {
	_, err := spmd.NewPartition(mpi.World, -3, spmd.Options{})
	require.ErrorIs(t, err, spmd.ErrRefused)
	assert.Contains(t, err.Error(), "a partition of -3 items")
	items := 100
	if mpi.World.Rank() == 0 {
		items = 0
	}
	_, err = spmd.NewPartition(mpi.World, items, spmd.Options{})
	require.ErrorIs(t, err, spmd.ErrRefused)
	assert.Contains(t, err.Error(), "rank 0: a partition of 0 items")
	_, err = spmd.NewPartition(mpi.World, 10, spmd.Options{MinItems: 11})
	require.ErrorIs(t, err, spmd.ErrRefused)
	last := mpi.World.Size() - 1
	var policy balancer.Policy
	if mpi.World.Rank() == last {
		policy = 99
	}
	_, err = spmd.NewPartition(mpi.World, 10, spmd.Options{Policy: policy})
	require.ErrorIs(t, err, spmd.ErrRefused)
	assert.Contains(t, err.Error(), fmt.Sprintf("rank %d: there is no policy number 99", last))

	p, err := spmd.NewPartition(mpi.World, 10, spmd.Options{})
	require.NoError(t, err)
	_, err = spmd.NewArray[*int](p, 0)
	assert.ErrorIs(t, err, spmd.ErrRefused)
	_, err = spmd.NewArray[struct{ s []int }](p, 0)
	assert.ErrorIs(t, err, spmd.ErrRefused)
	_, err = spmd.NewArray[int](p, -1)
	assert.ErrorIs(t, err, spmd.ErrRefused)
	bounds := make(balancer.Partition, mpi.World.Size()+1)
	bounds[len(bounds)-1] = 10
	if mpi.World.Rank() == last {
		bounds = bounds[1:]
	}
	err = p.Set(bounds)
	assert.ErrorIs(t, err, spmd.ErrRefused)
	assert.ErrorContains(t, err, fmt.Sprintf("rank %d: %d bounds for %d ranks", last, last+1, last+1))
	array, err := spmd.NewArray[int](p, 0)
	require.NoError(t, err)
	all := make([]int, 10)
	if mpi.World.Rank() == last {
		all = all[:9]
	}
	assert.ErrorContains(t, array.Gather(all), fmt.Sprintf("rank %d: room for 9 items, but there are 10", last))
	require.NoError(t, array.Gather(make([]int, 10)))
	assert.Equal(t, -1, p.Owner(10))
	_, _, err = p.RangeOf(-1)
	assert.ErrorIs(t, err, spmd.ErrRefused)
	if _, err = p.Stepped(); mpi.World.Size() > 1 {
		assert.ErrorIs(t, err, spmd.ErrNoHistory, "no library records the program's calls")
	}
	require.NoError(t, p.Free())
}
