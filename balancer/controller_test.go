package balancer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func begin(t require.TestingT, items int64, ranks int, change func(*Options)) *Controller {
	p, err := Even(items, ranks)
	require.NoError(t, err)
	o := DefaultOptions(items, ranks)
	if change != nil {
		change(&o)
	}
	c, err := NewController(p, o)
	require.NoError(t, err)
	return c
}

// settle steps until the partition changes, with times by the sizes of ranges.
func settle(t *testing.T, c *Controller, times func(Partition) []float64) Decision {
	for range 10 {
		d, err := c.Step(Cycle{Useful: times(c.Partition())})
		require.NoError(t, err)
		if d.Changed {
			return d
		}
	}
	require.Fail(t, "no decision")
	return Decision{}
}

// TestWorkedExample is the example of the description. Four ranks of 1000 items
// take 1000, 1000, 1000 and 1500 units. By the linear rates, 1 unit an item on
// the fastest and 1.5 on the slowest, both would take 1200 units if 200 items
// moved: the offset of the ending addresses. On the fastest they take 200 units,
// on the slowest they had taken 600, since they were those that no longer fitted
// its cache: 900 units are left. The next step knows both slopes.
func TestWorkedExample(t *testing.T) {
	units := func(p Partition) []float64 {
		last := float64(p.Size(3))
		return []float64{float64(p.Size(0)), float64(p.Size(1)), float64(p.Size(2)),
			1.125*min(last, 800) + 3*max(0, last-800)}
	}
	c := begin(t, 4000, 4, func(o *Options) { o.Policy = Pairwise })
	require.Equal(t, []float64{1000, 1000, 1000, 1500}, units(c.Partition()))

	d := settle(t, c, units)
	assert.Equal(t, Partition{0, 1200, 2200, 3200, 4000}, d.Next)
	assert.Equal(t, []float64{1200, 1000, 1000, 900}, units(d.Next))
	assert.Equal(t, Pairwise, d.Policy)

	changes := 0
	for range 20 {
		d, err := c.Step(Cycle{Useful: units(c.Partition())})
		require.NoError(t, err)
		if d.Changed {
			changes++
		}
	}
	took := units(c.Partition())
	assert.Less(t, slices.Max(took)-meanOf(took), 0.02*slices.Max(took), "steps go on until the wait is below the threshold")
	assert.LessOrEqual(t, changes, 4)
}

func TestPoliciesOfOneSlowRank(t *testing.T) {
	speeds := []float64{1, 1, 0.8, 2} // seconds for 1000 items
	times := func(p Partition) []float64 {
		took := make([]float64, len(speeds))
		for r, s := range speeds {
			took[r] = s * float64(p.Size(r)) / 1000
		}
		return took
	}
	for _, one := range []struct {
		policy Policy
		k      int
		want   []int64
	}{
		{Pairwise, 0, []int64{1000, 1000, 1428, 572}},
		{KFastest, 1, []int64{1000, 1000, 1428, 572}},
		{KFastest, 2, []int64{1200, 1000, 1200, 600}},
		{KFastest, 0, []int64{1142, 1142, 1142, 574}},
		{KFastestWeighted, 0, []int64{1066, 1066, 1333, 535}},
		{Proportional, 0, []int64{1067, 1066, 1334, 533}},
	} {
		c := begin(t, 4000, 4, func(o *Options) { o.Policy, o.K = one.policy, one.k })
		d := settle(t, c, times)
		got := make([]int64, 4)
		for r := range got {
			got[r] = d.Next.Size(r)
		}
		assert.Equal(t, one.want, got, "%v %d", one.policy, one.k)
		assert.Equal(t, one.policy, d.Policy)
		assert.InDelta(t, slices.Max(times(c.Partition())), 2-d.Gain/2, 0.05, "%v foresees what it does", one.policy)
	}
}

// TestCostsOfRegions: the program says that half of the items cost three times as
// much. As the times of the first cycle say the same, it is enough; that one of the
// ranks is twice as slow besides, where it is, the second shows again.
func TestCostsOfRegions(t *testing.T) {
	for _, one := range []struct {
		slowness []float64
		cycles   int
		off      float64
	}{{[]float64{1, 1}, 1, 0.002}, {[]float64{2, 1}, 2, 0.01}} {
		work := Work{Costs: []float64{3, 1}, Slowness: one.slowness}
		c := begin(t, 1000, 2, func(o *Options) { o.Policy = Profiled })
		for range one.cycles {
			took, _, err := work.Times(c.Partition())
			require.NoError(t, err)
			_, err = c.Step(Cycle{Useful: took, Costs: work.Costs})
			require.NoError(t, err)
		}
		took, ideal, err := work.Times(c.Partition())
		require.NoError(t, err)
		assert.InDelta(t, ideal, slices.Max(took), one.off*ideal, "slowness %v", one.slowness)
	}
}

// TestCostsAgainstTimes: what the program says of costs alone changes nothing after
// one cycle, nor do times alone, which the first cycle may have made.
func TestCostsAgainstTimes(t *testing.T) {
	for _, took := range [][]float64{{1, 1}, {1, 2}} {
		c := begin(t, 1000, 2, func(o *Options) { o.Policy = Profiled })
		d, err := c.Step(Cycle{Useful: took, Costs: []float64{3, 1}})
		require.NoError(t, err)
		assert.False(t, d.Changed, "%v: %s", took, d.Reason)
	}
}

// TestMovesTeach: what moves are expected to take is a line through those that were
// of different size; one that was disturbed does not count.
func TestMovesTeach(t *testing.T) {
	m := moving{perItem: 1}
	m.learn(100, 2)
	assert.InDelta(t, 2, m.of(100), 1e-12)
	assert.InDelta(t, 1.2, m.of(20), 1e-12, "half may be for the move itself")
	m.learn(20, 0.5+20*0.015)
	assert.InDelta(t, 0.5+10*0.015, m.of(10), 1e-12)
	m.learn(50, 9)
	assert.InDelta(t, 0.5+10*0.015, m.of(10), 1e-12)
	for range pastMoves {
		m.learn(40, 4)
	}
	assert.InDelta(t, 4, m.of(40), 1e-12, "what was long ago is forgotten")
}

// TestMovesThatTakeLong: after a move that took longer than it can save, there is no
// other.
func TestMovesThatTakeLong(t *testing.T) {
	for seconds, changes := range map[float64]int{0: 2, 100: 1} {
		c, changed := begin(t, 2000, 2, func(o *Options) { o.Horizon, o.Policy = 40, Proportional }), 0
		slow := 2.0
		for k := range 20 {
			if k == 10 {
				slow = 1
			}
			d, err := c.Step(Cycle{Useful: []float64{slow * float64(c.Partition().Size(0)), float64(c.Partition().Size(1))}})
			require.NoError(t, err)
			require.NoError(t, c.Moved(2000*seconds))
			if d.Changed {
				changed++
			}
		}
		assert.Equal(t, changes, changed, "%v s", seconds)
	}
}

func TestMovingMustPay(t *testing.T) {
	times := func(p Partition) []float64 { return []float64{1.5e-3 * float64(p.Size(0)), 1e-3 * float64(p.Size(1))} }
	for _, one := range []struct {
		horizon int
		item    float64
		changes bool
	}{
		{1000, 1e-3, true},
		{1000, 2, false}, // 167 s a cycle and rank, to save 0.25 s in each
		{3, 1e-3, true},
		{3, 1e-2, false},
		{2, 0, false}, // there is no cycle to come
	} {
		c := begin(t, 2000, 2, func(o *Options) { o.Horizon, o.CostPerItem = one.horizon, one.item })
		changed := false
		for range min(one.horizon, 10) {
			d, err := c.Step(Cycle{Useful: times(c.Partition())})
			require.NoError(t, err)
			changed = changed || d.Changed
		}
		assert.Equal(t, one.changes, changed, "%v", one)
	}
}

// TestAutoMovesLess: where the best ranges cost more than they save over a step between two
// ranks, that is taken.
func TestAutoMovesLess(t *testing.T) {
	for perItem, policy := range map[float64]Policy{1e-6: Proportional, 1e-3: Pairwise} {
		c := begin(t, 8000, 8, func(o *Options) { o.CostPerItem, o.Horizon = perItem, 3 })
		c.models.alike = true
		d := settle(t, c, func(Partition) []float64 { return []float64{2, 0.9, 1, 1, 1, 1, 1, 1} })
		assert.Equal(t, policy, d.Policy, "%v s an item: %s", perItem, d.Reason)
	}
}

func TestThresholds(t *testing.T) {
	times := func(Partition) []float64 { return []float64{1, 1.2} }
	for _, one := range []struct {
		relative, absolute float64
		changes            bool
	}{{0.01, 0, true}, {0.1, 0, false}, {0.01, 0.2, false}, {0.01, 0.05, true}} {
		c := begin(t, 2000, 2, func(o *Options) { o.Threshold, o.ThresholdSeconds = one.relative, one.absolute })
		for range 2 {
			d, err := c.Step(Cycle{Useful: times(c.Partition())})
			require.NoError(t, err)
			if c.cycles == 2 {
				assert.Equal(t, one.changes, d.Changed, "%v: %s", one, d.Reason)
			}
		}
	}
}

// TestCaution: it grows with each change that made things worse, to a bound, and falls with
// each that kept its promise; more of it takes more of a gain.
func TestCaution(t *testing.T) {
	c := begin(t, 2000, 2, func(o *Options) { o.Policy = Proportional })
	settle(t, c, func(Partition) []float64 { return []float64{1, 1.5} })
	c.promised = 0.2
	for _, one := range []struct {
		took    []float64
		caution int
	}{
		{[]float64{2, 1}, firstCaution + 1}, {[]float64{2, 1}, mostCaution}, {[]float64{2, 1}, mostCaution},
		{[]float64{1.2, 1.2}, mostCaution - 1}, {[]float64{1.4, 1.18}, mostCaution - 1},
	} {
		c.review(one.took)
		assert.Equal(t, one.caution, c.caution, "%v", one.took)
	}
	for caution, changes := range map[int]bool{firstCaution: true, firstCaution + 1: false} {
		c := begin(t, 2000, 2, func(o *Options) { o.Threshold = 0.07 })
		c.caution = caution
		for range 2 {
			d, err := c.Step(Cycle{Useful: []float64{1, 1.25}})
			require.NoError(t, err)
			if c.cycles == 2 {
				assert.Equal(t, changes, d.Changed, "caution %d: %s", caution, d.Reason)
			}
		}
	}
}

// TestServes: a change serves to the end of the run, or for as long as it has run; where
// changes had to be made anew, for as long as they lasted.
func TestServes(t *testing.T) {
	for _, one := range []struct{ cycles, horizon, age, lasting, serves int }{
		{100, 0, 1, 0, 100}, {100, 130, 1, 0, 30}, {100, 90, 1, 0, 0}, {100, 0, 1, 7, 7}, {100, 0, 9, 7, 9}, {5, 0, 9, 7, 5},
	} {
		c := begin(t, 2000, 2, func(o *Options) { o.Horizon = one.horizon })
		c.cycles, c.age, c.lasting = one.cycles, one.age, one.lasting
		assert.Equal(t, float64(one.serves), c.serves(), "%v", one)
	}
}

// TestLasting: a change of half as much as the one before, or more, says that the load was
// not steady for longer than that one served; a smaller one only refines it.
func TestLasting(t *testing.T) {
	for moved, lasting := range map[int64]int{49: 0, 50: 7, 300: 7} {
		c := begin(t, 2000, 2, func(o *Options) { o.Policy = Proportional })
		settle(t, c, func(Partition) []float64 { return []float64{1, 1.5} })
		c.lastMoved, c.age, c.lasting = 100, 7, 0
		c.change(&Decision{Next: c.now, Moved: moved, kind: byRank})
		assert.Equal(t, lasting, c.lasting, "%d items moved", moved)
		assert.Zero(t, c.age)
	}
}

// TestOneDisturbedCycle: it changes nothing; a lasting change is followed after
// two cycles, in both directions.
func TestOneDisturbedCycle(t *testing.T) {
	c := begin(t, 4000, 4, nil)
	slow := 1.0
	step := func() Decision {
		took := make([]float64, 4)
		for r := range took {
			took[r] = float64(c.Partition().Size(r)) / 1000
		}
		took[2] *= slow
		d, err := c.Step(Cycle{Useful: took})
		require.NoError(t, err)
		return d
	}
	for range 6 {
		require.False(t, step().Changed)
	}
	slow = 5
	require.False(t, step().Changed, "the first cycle may be an accident")
	slow = 1
	for range 6 {
		require.False(t, step().Changed, "it was")
	}
	for _, slow = range []float64{2, 1} {
		changed := 0
		for k := range 20 {
			if step().Changed {
				changed++
				require.GreaterOrEqual(t, k, 1)
			}
			if k == 3 {
				took := make([]float64, 4)
				for r := range took {
					took[r] = float64(c.Partition().Size(r)) / 1000
				}
				took[2] *= slow
				require.Less(t, slices.Max(took), 1.05*4/(3+1/slow), "recovered within 3 cycles from slowness %v", slow)
			}
		}
		require.LessOrEqual(t, changed, 3)
	}
}

// TestWorkThatGrows: how much there is to do in a cycle does not matter for how it
// is divided.
func TestWorkThatGrows(t *testing.T) {
	c := begin(t, 4000, 4, nil)
	for k := range 8 {
		took := make([]float64, 4)
		for r := range took {
			took[r] = float64(c.Partition().Size(r)) * []float64{1, 7, 0.3, 2}[k%4]
		}
		took[1] *= 2
		_, err := c.Step(Cycle{Useful: took})
		require.NoError(t, err)
	}
	assert.InDelta(t, 4000/3.5/2, c.Partition().Size(1), 5)
}

// histories draws cycles of times that obey no law.
func histories(ranks int) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 10), rapid.SampledFrom([]float64{0, 1e-300, 1e15, 1})), ranks, ranks)
}

// TestAnyHistory: whatever times come, under whatever terms, the ranges divide
// the items and keep the limits, two ranks decide alike, and what was promised
// of a change is true of it.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 9).Draw(t, "ranks")
		items := rapid.Int64Range(1, 500).Draw(t, "items")
		o := DefaultOptions(items, ranks)
		o.Policy = Policy(rapid.IntRange(0, len(policyNames)-1).Draw(t, "policy"))
		o.K = rapid.IntRange(0, max(0, ranks-1)).Draw(t, "k")
		o.Threshold = rapid.SampledFrom([]float64{0, 0.02, 0.5}).Draw(t, "threshold")
		o.Horizon = rapid.IntRange(0, 20).Draw(t, "horizon")
		o.CostPerItem = rapid.SampledFrom([]float64{0, 1e-3}).Draw(t, "cost")
		o.MinItems = rapid.Int64Range(0, items/int64(ranks)).Draw(t, "least")
		if rapid.Bool().Draw(t, "limited") {
			o.MaxItems = make([]int64, ranks)
			for r := range o.MaxItems {
				o.MaxItems[r] = rapid.Int64Range((items+int64(ranks)-1)/int64(ranks), items).Draw(t, "most")
			}
		}
		start, err := Even(items, ranks)
		require.NoError(t, err)
		one, err := NewController(start, o)
		require.NoError(t, err)
		other, err := NewController(start, o)
		require.NoError(t, err)
		for range rapid.IntRange(1, 25).Draw(t, "cycles") {
			h := Cycle{Useful: histories(ranks).Draw(t, "times")}
			if rapid.IntRange(0, 4).Draw(t, "costs known") == 0 {
				h.Costs = rapid.SliceOfN(rapid.Float64Range(0, 5), 0, int(items)).Draw(t, "costs")
			}
			before := one.Partition()
			d, err := one.Step(h)
			require.NoError(t, err)
			twin, err := other.Step(Cycle{Useful: slices.Clone(h.Useful), Costs: slices.Clone(h.Costs)})
			require.NoError(t, err)
			require.Equal(t, d, twin)

			require.NoError(t, d.Next.Check())
			require.Equal(t, items, d.Next.Items())
			require.Equal(t, ranks, d.Next.Ranks())
			for r := range ranks {
				require.GreaterOrEqual(t, d.Next.Size(r), o.MinItems)
				if o.MaxItems != nil {
					require.LessOrEqual(t, d.Next.Size(r), o.MaxItems[r])
				}
			}
			require.Equal(t, !before.Equal(d.Next), d.Changed)
			moved, _ := traffic(before, d.Next)
			require.Equal(t, moved, d.Moved)
			require.NotEmpty(t, d.Reason)
			require.False(t, math.IsNaN(d.Gain) || math.IsNaN(d.Cost))
			if d.Changed {
				require.Greater(t, d.Gain, d.Cost)
			}
		}
	})
}

// TestHardlyAnyTime: an item that took next to nothing, and then as long as anything may.
func TestHardlyAnyTime(t *testing.T) {
	c := begin(t, 1, 5, func(o *Options) { o.Threshold = 0 })
	for _, useful := range [][]float64{{1, 1, 1e15, 1, 1}, {1, 0.125, 1, 0, 0}, {1, 0, 1e-300, 0, 1e15}} {
		d, err := c.Step(Cycle{Useful: useful})
		require.NoError(t, err)
		assert.False(t, math.IsNaN(d.Gain), d.Reason)
	}
}

func TestControllerRefuses(t *testing.T) {
	start, err := Even(100, 4)
	require.NoError(t, err)
	for want, change := range map[string]func(*Options){
		"there is no policy number 99":                                            func(o *Options) { o.Policy = 99 },
		"the 4 fastest of 4 ranks: give from 0 .* to 3":                           func(o *Options) { o.K = 4 },
		"-1 cycles in all: .*":                                                    func(o *Options) { o.Horizon = -1 },
		"a threshold of NaN: .*":                                                  func(o *Options) { o.Threshold = math.NaN() },
		"a threshold of 1: .*":                                                    func(o *Options) { o.Threshold = 1 },
		"the threshold is -1 seconds: .*":                                         func(o *Options) { o.ThresholdSeconds = -1 },
		"the cost per item is \\+Inf seconds: .*":                                 func(o *Options) { o.CostPerItem = math.Inf(1) },
		"the cost of a move is NaN seconds: .*":                                   func(o *Options) { o.CostOfMove = math.NaN() },
		"a minimum of -1 items per rank: it can't be negative":                    func(o *Options) { o.MinItems = -1 },
		"4 ranks can't have at least 26 items each: there are 100":                func(o *Options) { o.MinItems = 26 },
		"limits of 2 ranks were given, but there are 4":                           func(o *Options) { o.MaxItems = []int64{100, 100} },
		"rank 1 may hold at most 0 items, but at least 1":                         func(o *Options) { o.MaxItems = []int64{100, 0, 100, 100} },
		"the ranks may hold at most 99 items together, but there are 100":         func(o *Options) { o.MaxItems = []int64{30, 30, 30, 9} },
		"rank 3 begins with 25 items, but may hold at most 20; begin with .*Best": func(o *Options) { o.MaxItems = []int64{30, 30, 30, 20} },
	} {
		o := DefaultOptions(100, 4)
		change(&o)
		_, err := NewController(start, o)
		require.Error(t, err, want)
		assert.Regexp(t, "^"+want, err.Error())
	}
	_, err = NewController(Partition{0, 5, 3}, DefaultOptions(3, 2))
	assert.EqualError(t, err, "rank 1 ends at item 3, before it begins at 5")
	_, err = NewController(Partition{0, 1 << 60}, DefaultOptions(1<<60, 1))
	assert.EqualError(t, err, "1152921504606846976 items are more than 2^53, the most that can be divided exactly")
}

// TestStepRefuses: a cycle that can't be is refused and leaves no trace.
func TestStepRefuses(t *testing.T) {
	c, pure := begin(t, 10, 2, nil), begin(t, 10, 2, nil)
	for want, h := range map[string]Cycle{
		"times of 1 ranks were given, but there are 2":                              {Useful: []float64{1}},
		"rank 1 computed for NaN seconds: a time must be a number from 0 to 1e+15":  {Useful: []float64{1, math.NaN()}},
		"rank 0 computed for -1 seconds: a time must be a number from 0 to 1e+15":   {Useful: []float64{-1, 1}},
		"rank 0 computed for +Inf seconds: a time must be a number from 0 to 1e+15": {Useful: []float64{math.Inf(1), 1}},
		"region 1 costs NaN: a cost must be a number from 0 to 1e+100":              {Useful: []float64{1, 1}, Costs: []float64{1, math.NaN()}},
		"costs of 11 regions were given, but there are only 10 items":               {Useful: []float64{1, 1}, Costs: make([]float64, 11)},
		"-1 cycles were added up: give a number from 1 to 1073741824, or 0 for one": {Useful: []float64{1, 1}, Cycles: -1},
	} {
		_, err := c.Step(h)
		assert.EqualError(t, err, want)
	}
	for range 3 {
		d, err := c.Step(Cycle{Useful: []float64{1, 2}})
		require.NoError(t, err)
		same, err := pure.Step(Cycle{Useful: []float64{1, 2}})
		require.NoError(t, err)
		assert.Equal(t, same, d)
	}
	assert.EqualError(t, c.Moved(math.NaN()), "the time of a move is NaN seconds: it must be a number from 0 to 1e+15")
}

// TestCyclesAddedUp: a controller that is given cycles in pairs decides as if it had
// been given the mean of each, with twice the cycles to come, for twice the cost.
func TestCyclesAddedUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	terms := func(cycles int, cost float64) func(*Options) {
		return func(o *Options) { o.Horizon, o.CostOfMove = cycles, cost }
	}
	single, paired := begin(t, 1000, 2, terms(20, 0.25)), begin(t, 1000, 2, terms(40, 0.5))
	changes := 0
	for k := range 20 {
		slow := []float64{1 + 0.001*random.Float64(), 1 + float64(k/5%2)}
		var took, sum []float64
		for r, s := range slow {
			took = append(took, s*float64(single.Partition().Size(r))/1000)
			sum = append(sum, 2*took[r])
		}
		one, err := single.Step(Cycle{Useful: took})
		require.NoError(t, err)
		both, err := paired.Step(Cycle{Useful: sum, Cycles: 2})
		require.NoError(t, err)
		require.Equal(t, one.Next, both.Next, "cycle %d", k)
		require.InDelta(t, 2*one.Gain, both.Gain, 1e-9, "cycle %d", k)
		if one.Changed {
			changes++
		}
	}
	require.Positive(t, changes)
}

func TestBestRefuses(t *testing.T) {
	for want, w := range map[string]Work{
		"costs of 0 regions were given: at least one is needed":               {},
		"costs of 5 regions were given, but there are only 4 items":           {Costs: make([]float64, 5)},
		"the slowness of 1 ranks was given, but there are 2":                  {Costs: []float64{1}, Slowness: []float64{1}},
		"the slowness of rank 1 is 0: it must be above 0, and 1e+100 at most": {Costs: []float64{1}, Slowness: []float64{1, 0}},
	} {
		_, err := Best(4, 2, w, DefaultOptions(4, 2))
		assert.EqualError(t, err, want)
		_, _, err = w.Times(Partition{0, 2, 4})
		assert.EqualError(t, err, want)
	}
	_, err := Best(0, 2, Work{Costs: []float64{1}}, Options{})
	assert.Error(t, err)
}

func TestPolicyNames(t *testing.T) {
	for _, name := range PolicyNames() {
		p, err := ParsePolicy(name)
		require.NoError(t, err)
		assert.Equal(t, name, p.String())
	}
	_, err := ParsePolicy("fair")
	assert.EqualError(t, err, `there is no policy "fair"; there are auto, static, pairwise, k-fastest, k-fastest-weighted, proportional, profiled`)
	assert.Equal(t, "no policy", Policy(-1).String())
}
