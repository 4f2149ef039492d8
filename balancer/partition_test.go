package balancer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEven(t *testing.T) {
	p, err := Even(10, 4)
	require.NoError(t, err)
	assert.Equal(t, Partition{0, 3, 6, 8, 10}, p)
	p, err = Even(2, 4)
	require.NoError(t, err)
	assert.Equal(t, Partition{0, 1, 2, 2, 2}, p)
	for _, bad := range []struct {
		items int64
		ranks int
		want  string
	}{
		{0, 4, "a partition of 0 items: at least one is needed"},
		{-1, 4, "a partition of -1 items: at least one is needed"},
		{4, 0, "a partition over 0 ranks: at least one is needed"},
	} {
		_, err := Even(bad.items, bad.ranks)
		assert.EqualError(t, err, bad.want)
	}
}

func TestCheck(t *testing.T) {
	for want, p := range map[string]Partition{
		"a partition has one bound more than ranks, so at least 2, not 1": {0},
		"the first bound of a partition is 0, not 1":                      {1, 2},
		"rank 1 ends at item 2, before it begins at 3":                    {0, 3, 2, 4},
		"a partition of 0 items: at least one is needed":                  {0, 0},
	} {
		assert.EqualError(t, p.Check(), want)
	}
}

// The bounds of what is refused belong to what is not.
func TestLimits(t *testing.T) {
	assert.NoError(t, checkLimits(maxExact, 1, &Options{}))
	assert.ErrorContains(t, checkLimits(maxExact+1, 1, &Options{}), "more than 2^53")
	assert.NoError(t, checkLimits(100, 4, &Options{MinItems: 25}))
	assert.Error(t, checkLimits(100, 4, &Options{MinItems: 26}))
	assert.NoError(t, checkLimits(100, 2, &Options{MaxItems: []int64{0, 100}}), "a rank may hold nothing")
	assert.Error(t, checkLimits(100, 2, &Options{MaxItems: []int64{-1, 101}}))
	assert.Error(t, checkLimits(100, 2, &Options{MaxItems: []int64{0, 99}}))
}

func TestEqual(t *testing.T) {
	p := Partition{0, 3, 4}
	assert.True(t, p.Equal(Partition{0, 3, 4}))
	for _, other := range []Partition{{0, 2, 4}, {0, 3, 5}, {0, 3}, {0, 3, 4, 4}} {
		assert.False(t, p.Equal(other))
		assert.False(t, other.Equal(p))
	}
}

// partitions draws a partition, in which ranks may be empty.
func partitions(items int64, ranks int) *rapid.Generator[Partition] {
	return rapid.Custom(func(t *rapid.T) Partition {
		p := make(Partition, ranks+1)
		for r := 1; r < ranks; r++ {
			p[r] = rapid.Int64Range(p[r-1], items).Draw(t, "bound")
		}
		p[ranks] = items
		return p
	})
}

// TestMovesMakeTheOther carries out the moves item by item.
func TestMovesMakeTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, ranks := rapid.Int64Range(1, 60).Draw(t, "items"), rapid.IntRange(2, 8).Draw(t, "ranks")
		from, to := partitions(items, ranks).Draw(t, "from"), partitions(items, ranks).Draw(t, "to")
		owner := make([]int, items)
		for i := range owner {
			owner[i] = from.Owner(int64(i))
		}
		count, by := int64(0), make([]int64, ranks)
		var all []Move
		for m := range Moves(from, to) {
			all = append(all, m)
			for i := m.First; i < m.End; i++ {
				require.Equal(t, m.From, owner[i])
				owner[i] = m.To
				count++
				by[m.From]++
				by[m.To]++
			}
		}
		for i := range owner {
			require.Equal(t, to.Owner(int64(i)), owner[i])
			require.LessOrEqual(t, to[owner[i]], int64(i))
			require.Less(t, int64(i), to[owner[i]+1])
		}
		moved, busiest := traffic(from, to)
		require.Equal(t, count, moved)
		require.Equal(t, max(0, maxOf(by)), busiest)
		for r := range ranks {
			var sends, receives []Move
			for _, m := range all {
				if m.From == r {
					sends = append(sends, m)
				}
				if m.To == r {
					receives = append(receives, m)
				}
			}
			require.Equal(t, sends, Sends(from, to, r))
			require.Equal(t, receives, Receives(from, to, r))
		}
	})
}

func maxOf(values []int64) int64 {
	largest := values[0]
	for _, v := range values {
		largest = max(largest, v)
	}
	return largest
}
