package spmd_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"

	"evenkeel/balancer/spmd"
	"evenkeel/mpi"
)

// notes are items that the program packs itself, a line each.
type notes struct {
	came  map[int]string
	fails bool
}

func (n *notes) Pack(first, end int) ([]byte, error) {
	var text strings.Builder
	for i := first; i < end; i++ {
		fmt.Fprintf(&text, "%s\n", word(i))
	}
	return []byte(text.String()), nil
}

func (n *notes) Unpack(first, end int, packed []byte) error {
	for i, line := range strings.SplitN(strings.TrimSuffix(string(packed), "\n"), "\n", end-first) {
		n.came[first+i] = line
	}
	if n.fails {
		return errors.New("unpacking was to fail")
	}
	return nil
}

// Copies of any items are there, and up to date, whoever has these items.
func TestHalosOfAnyItems(t *testing.T) {
	const items = 60
	s := settle(t, items, 0)
	needed, fails := map[int]bool{}, false
	halo, err := spmd.NewHalo(s.p, func(first, end int) ([]int, error) {
		var needs []int
		clear(needed)
		for i := first; i < end; i++ {
			for _, item := range []int{items - 1 - i, i * i % items, i} {
				needs = append(needs, item)
				if item < first || item >= end {
					needed[item] = true
				}
			}
		}
		if fails {
			return nil, errors.New("naming was to fail")
		}
		return needs, nil
	})
	require.NoError(t, err)
	random := rand.New(rand.NewSource(3))
	for range 20 {
		require.NoError(t, s.p.Set(bounds(random, items)))
		require.NoError(t, halo.Exchange(s.cells))
		require.NoError(t, halo.ExchangeBegin(s.texts))
		require.NoError(t, halo.ExchangeEnd())
		copied := &notes{came: map[int]string{}}
		require.NoError(t, halo.ExchangePacked(copied))
		copies := halo.Copies()
		require.Len(t, copies, len(needed))
		require.Len(t, copied.came, len(needed))
		first, end := s.p.Range()
		require.Len(t, s.cells.WithCopies(), end-first+len(copies))
		for k, item := range copies {
			require.True(t, needed[item])
			require.Equal(t, end-first+k, halo.Index(item))
			require.Equal(t, cellOf(item), s.cells.WithCopies()[halo.Index(item)])
			require.Equal(t, string(textOf(item)), string(s.texts.Item(halo.Index(item))))
			require.Equal(t, word(item), copied.came[item])
		}
		s.check(t)
	}
	fails = mpi.World.Rank() == mpi.World.Size()-1
	require.ErrorIs(t, halo.Renew(), spmd.ErrHook)
	require.ErrorIs(t, halo.Exchange(s.cells), spmd.ErrHook)
	fails = false
	require.NoError(t, s.p.Set(bounds(random, items)))
	err = halo.ExchangePacked(&notes{map[int]string{}, mpi.World.Rank() == 0})
	asked := []int{len(needed)}
	require.NoError(t, mpi.Bcast(mpi.World, asked, 0))
	if asked[0] > 0 {
		require.ErrorIs(t, err, spmd.ErrHook)
	}
	require.NoError(t, s.p.Free())
}
