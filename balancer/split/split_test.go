package split

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTwiceAsFastRunsTwoTasks(t *testing.T) {
	p, err := New(300, []Rank{{1, 1}, {2, 2}}, Default)
	require.NoError(t, err)
	assert.Equal(t, Plan{Tasks: []Task{{0, 100, 0}, {100, 200, 1}, {200, 300, 1}}, Begin: []int{0, 1, 3}, Concurrent: []int{1, 2}, Delta: 1, Spread: 1}, p)
}

func TestEqualRanksHaveATaskEach(t *testing.T) {
	p, err := New(10, []Rank{{3, 8}, {3, 8}, {3, 8}}, Default)
	require.NoError(t, err)
	assert.Equal(t, []Task{{0, 3, 0}, {3, 7, 1}, {7, 10, 2}}, p.Tasks)
	assert.Zero(t, p.Delta)
}

func TestRelations(t *testing.T) {
	table := Table{{0.1, 0.5}, {1, 2}}
	require.NoError(t, table.Check())
	for _, one := range []struct {
		relation Relation
		spread   float64
		want     int
	}{
		{Default, 0, 0}, {Default, 1, 4}, {Default, 100, 56}, {Linear{1, 0}, 5, 0}, {Linear{0.25, 8}, 1, 2}, {Linear{1, 0.35}, 5, 2},
		{table, 0.09, 0}, {table, 0.1, 4}, {table, 0.99, 4}, {table, 7, 16}, {Table{}, 7, 0},
	} {
		assert.Equal(t, one.want, one.relation.Delta(one.spread, 8), "%v", one)
	}
	assert.EqualError(t, Table{{1, 1}, {1, 2}}.Check(), "point 1 of the table has the spread 1, which must be above the 1 before it")
	assert.EqualError(t, Table{{0, -1}}.Check(), "point 0 of the table is (0, -1): a spread from 0, and up to 1024 tasks more for each rank")
	assert.Error(t, Table{{math.NaN(), 1}}.Check())
	assert.NoError(t, Table{{0, 1024}}.Check())
	assert.Error(t, Table{{0, 1025}}.Check())
}

// fixed is a relation that always says the same.
type fixed int

func (f fixed) Delta(float64, int) int { return int(f) }

// Of ranks whose tasks are equally large, the one of the lowest number gets another task.
func TestTiesGoToTheLowestRank(t *testing.T) {
	p, err := New(40, []Rank{{1, 8}, {1, 8}, {1, 8}, {1, 8}}, fixed(2))
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2, 4, 5, 6}, p.Begin)
}

// As many tasks as there may be, and rates whose sum is no number any more.
func TestExtremes(t *testing.T) {
	p, err := New(1<<20, []Rank{{1, 1}, {1, 1}}, fixed(2<<10))
	require.NoError(t, err)
	assert.Equal(t, 2<<10, p.Delta)
	p, err = New(10, []Rank{{1.5e308, 1}, {1.5e308, 1}, {1.5e308, 1}}, fixed(1))
	require.NoError(t, err)
	at := int64(0)
	for _, task := range p.Tasks {
		assert.Equal(t, at, task.First)
		assert.Greater(t, task.End, at)
		at = task.End
	}
	assert.Equal(t, int64(10), at)
}

// TestPlans: the tasks divide the work, in order; faster ranks have no less work
// and no fewer tasks; δ is as asked unless there is too little work; and no task
// could be made smaller by giving a rank one task instead of another.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		work := rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, 1<<53)).Draw(t, "work")
		ranks := make([]Rank, rapid.IntRange(1, 20).Draw(t, "ranks"))
		for r := range ranks {
			ranks[r] = Rank{Rate: rapid.Float64Range(0.01, 100).Draw(t, "rate"), Cores: rapid.IntRange(1, 8).Draw(t, "cores")}
		}
		delta := rapid.IntRange(0, 100).Draw(t, "delta")
		p, err := New(work, ranks, fixed(delta))
		require.NoError(t, err)

		at, most, last := int64(0), int64(0), int64(0)
		for i, task := range p.Tasks {
			require.Equal(t, at, task.First)
			require.Greater(t, task.End, task.First)
			require.LessOrEqual(t, p.Begin[task.Rank], i)
			require.Less(t, i, p.Begin[task.Rank+1])
			if size := task.End - task.First; i > 0 && p.Tasks[i-1].Rank == task.Rank {
				require.Contains(t, []int64{0, 1}, last-size, "a rank begins with its larger tasks")
			}
			last = task.End - task.First
			at, most = task.End, max(most, task.End-task.First)
		}
		require.Equal(t, work, at)
		require.Equal(t, len(p.Tasks), p.Begin[len(ranks)])
		require.Equal(t, len(p.Tasks)-len(ranks), p.Delta)
		shares, counts := make([]int64, len(ranks)), make([]int, len(ranks))
		empty, single := 0, true
		for _, task := range p.Tasks {
			shares[task.Rank] += task.End - task.First
			counts[task.Rank]++
			single = single && task.End-task.First == 1
		}
		for r := range ranks {
			require.Equal(t, min(counts[r], ranks[r].Cores), p.Concurrent[r])
			if shares[r] == 0 {
				empty++
			}
			for other := range ranks {
				if ranks[r].Rate > ranks[other].Rate {
					require.GreaterOrEqual(t, shares[r], shares[other]-1, "but for rounding")
				}
				if shares[r] > shares[other] {
					require.GreaterOrEqual(t, counts[r], counts[other])
				}
			}
		}
		if !single {
			require.Equal(t, delta-empty, p.Delta)
		}
		for r, count := range counts {
			// One task fewer on r would make tasks larger than the largest.
			if count > 1 {
				require.GreaterOrEqual(t, shares[r]/int64(count-1)+1, most)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := []Rank{{1, 1}, {1, 1}}
	for want, one := range map[string]struct {
		work     int64
		ranks    []Rank
		relation Relation
	}{
		"a job of 0 items: give from 1 to 2^53":                                              {0, good, Default},
		"a job of 9007199254740993 items: give from 1 to 2^53":                               {1<<53 + 1, good, Default},
		"a job over 0 ranks: at least one is needed":                                         {1, nil, Default},
		"the rate of rank 1 is 0: it must be a number above 0":                               {1, []Rank{{1, 1}, {0, 1}}, Default},
		"the rate of rank 0 is NaN: it must be a number above 0":                             {1, []Rank{{math.NaN(), 1}}, Default},
		"rank 0 has 0 cores: at least one is needed":                                         {1, []Rank{{1, 0}}, Default},
		"the relation gives δ = -1 for the spread 0 of 2 ranks: it must be from 0 to 2048":   {1, good, fixed(-1)},
		"the relation gives δ = 2049 for the spread 0 of 2 ranks: it must be from 0 to 2048": {1, good, fixed(2049)},
	} {
		_, err := New(one.work, one.ranks, one.relation)
		assert.EqualError(t, err, want)
	}
}
