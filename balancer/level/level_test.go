package level

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const all = Cores | Quota | Others | Nice

// quiet is a rank with so many cores for itself.
func quiet(cores int) Snapshot { return Snapshot{Seen: all, Cores: cores, Quota: math.Inf(1)} }

func TestCapacity(t *testing.T) {
	busy := quiet(2)
	busy.Others = 2 // one on each core
	limited := quiet(4)
	limited.Quota = 1.5
	nicer := busy
	nicer.Nice = 5
	urgent := busy
	urgent.Nice = -5
	for want, s := range map[float64]Snapshot{3: quiet(3), 1: busy, 1.5: limited, 2 / (1 + math.Pow(1.25, 5)): nicer,
		2 / (1 + math.Pow(1.25, -5)): urgent} {
		assert.InDelta(t, want, s.Capacity(), 1e-12)
	}
	assert.Equal(t, 1.0, Snapshot{Cores: 9, Quota: 0.1}.Capacity(), "what was not seen does not count")
}

func TestCompare(t *testing.T) {
	limited, nicer, crowded, blind := quiet(2), quiet(2), quiet(2), quiet(2)
	limited.Quota = 1
	nicer.Nice, nicer.Others = 10, 0
	crowded.Others = 2
	blind.Seen = Others
	for _, one := range []struct {
		name          string
		before, after []Snapshot
		resplit       bool
		rank          int
		reason        string
	}{
		{"nothing", []Snapshot{quiet(1), quiet(2)}, []Snapshot{quiet(1), quiet(2)}, false, 0, ""},
		{"a core is freed", []Snapshot{quiet(1), quiet(1)}, []Snapshot{quiet(1), quiet(2)}, true, 1, "rank 1 has 2 cores instead of 1"},
		{"a core is taken", []Snapshot{quiet(2), quiet(2)}, []Snapshot{quiet(1), quiet(2)}, true, 0, "rank 0 has 1 cores instead of 2"},
		{"a core of many is freed", []Snapshot{quiet(20), quiet(20)}, []Snapshot{quiet(20), quiet(22)}, false, 1, "rank 1 has 22 cores instead of 20"},
		{"some of many are freed", []Snapshot{quiet(20), quiet(20)}, []Snapshot{quiet(20), quiet(23)}, true, 1, "rank 1 has 23 cores instead of 20"},
		{"a limit is set", []Snapshot{quiet(2), quiet(2)}, []Snapshot{limited, quiet(2)}, true, 0, "the control group of rank 0 allows 1 cores instead of all cores"},
		{"a limit is lifted", []Snapshot{quiet(2), limited}, []Snapshot{quiet(2), quiet(2)}, true, 1, "the control group of rank 1 allows all cores instead of 1 cores"},
		{"all lose alike", []Snapshot{quiet(2), quiet(2)}, []Snapshot{limited, limited}, false, 0, "the control group of rank 0 allows 1 cores instead of all cores"},
		{"of both half is left, or a little more", []Snapshot{quiet(100), quiet(100)}, []Snapshot{quiet(50), quiet(57)}, true, 0, "rank 0 has 50 cores instead of 100"},
		{"of both half is left, or hardly more", []Snapshot{quiet(100), quiet(100)}, []Snapshot{quiet(50), quiet(54)}, false, 0, "rank 0 has 50 cores instead of 100"},
		{"others come", []Snapshot{quiet(2), quiet(2)}, []Snapshot{quiet(2), crowded}, true, 1, "rank 1 shares its cores with 2 threads of others instead of 0"},
		{"nice without others", []Snapshot{quiet(2), quiet(2)}, []Snapshot{nicer, quiet(2)}, false, 0, "rank 0 has the niceness 10 instead of 0"},
		{"what was not seen before", []Snapshot{blind, quiet(2)}, []Snapshot{limited, quiet(2)}, false, 0, ""},
	} {
		v, err := Compare(one.before, one.after, 0.1)
		require.NoError(t, err)
		assert.Equal(t, one.resplit, v.Resplit, one.name)
		assert.Equal(t, one.reason, v.Reason, one.name)
		assert.Equal(t, one.rank, v.Rank, one.name)
		assert.Len(t, v.Factors, 2)
	}
	v, err := Compare([]Snapshot{quiet(2), quiet(2)}, []Snapshot{limited, quiet(3)}, 0.1)
	require.NoError(t, err)
	assert.Equal(t, []float64{0.5, 1.5}, v.Factors)
}

func TestCompareRefuses(t *testing.T) {
	one := []Snapshot{quiet(1)}
	for want, bad := range map[string]Snapshot{
		"rank 0: 0 cores in the affinity mask: at least one is needed":     {Seen: Cores},
		"rank 0: a quota of 0 cores: it must be above 0, or +Inf for none": {Seen: Quota},
		"rank 0: -1 threads of others: a number, not negative, is needed":  {Seen: Others, Others: -1},
		"rank 0: a niceness of 20: it is from -20 to 19":                   {Seen: Nice, Nice: 20},
		"rank 0: NaN threads of others: a number, not negative, is needed": {Seen: Others, Others: math.NaN()},
	} {
		_, err := Compare(one, []Snapshot{bad}, 0.1)
		assert.EqualError(t, err, want)
		_, err = Compare([]Snapshot{bad}, one, 0.1)
		assert.EqualError(t, err, want)
	}
	_, err := Compare(one, nil, 0.1)
	assert.EqualError(t, err, "1 ranks before and 0 after: the same ranks are needed, at least one")
	_, err = Compare(one, one, 0)
	assert.EqualError(t, err, "a threshold of 0: it must be above 0")
}
