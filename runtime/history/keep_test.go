package history

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// arbitrary is an event as the rule sees it; most are short, as in real runs.
func arbitrary(t *rapid.T) (collective bool, chance uint32, enter, leave int64) {
	enter = rapid.Int64Range(0, 1e15).Draw(t, "enter")
	length := rapid.OneOf(rapid.Int64Range(0, 1e5), rapid.Int64Range(0, 1e11)).Draw(t, "length")
	return rapid.Bool().Draw(t, "collective"), Chance(rapid.Uint64().Draw(t, "n"), rapid.Uint64().Draw(t, "seed")), enter, enter + length
}

func TestEachLevelKeepsAPartOfTheOneBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		collective, chance, enter, leave := arbitrary(t)
		level := rapid.IntRange(0, 20).Draw(t, "level")
		if KeepEvent(collective, chance, enter, leave, level+1) {
			assert.True(t, KeepEvent(collective, chance, enter, leave, level))
		}
	})
}

func TestLevelZeroKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		collective, chance, enter, leave := arbitrary(t)
		assert.True(t, KeepEvent(collective, chance, enter, leave, 0))
	})
}

func TestAnOperationThatStaysDoesSoWheneverARankWasInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seed, level := rapid.Uint64().Draw(t, "n"), rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 20).Draw(t, "level")
		_, _, enter, leave := arbitrary(t)
		if Kept(Chance(n, seed), level) {
			assert.True(t, KeepEvent(true, Chance(n, seed), enter, leave, level))
		}
	})
}

func TestASliceStaysWithAllThatTouchesIt(t *testing.T) {
	const level = 6
	slice := int64(1)
	for !KeptSlice(slice, level) {
		slice++
	}
	begin, end := slice<<SliceBits, (slice+1)<<SliceBits
	assert.True(t, KeepEvent(false, 0, begin, begin, level))
	assert.True(t, KeepEvent(false, 0, end-1, end-1, level))
	assert.True(t, KeepEvent(false, 0, begin-10, begin, level), "one that ends in it")
	assert.True(t, KeepEvent(false, 0, end-1, end+10, level), "one that begins in it")
	assert.True(t, KeepEvent(false, 0, begin-10, end+10, level), "one around it")
}

func TestLongEventsStay(t *testing.T) {
	for level := range 20 {
		length := int64(LongSlices) << level << SliceBits
		for enter := int64(0); enter < 50<<SliceBits; enter += 7 << SliceBits / 2 {
			assert.True(t, KeepEvent(false, 0, enter, enter+length, level))
		}
	}
}

func TestWhatIsLongGrowsWithTheLevel(t *testing.T) {
	const level, length = 12, int64(LongSlices) << SliceBits
	kept := 0
	for i := range int64(1000) {
		if KeepEvent(false, 0, i*length, (i+1)*length, level) {
			kept++
		}
	}
	assert.Less(t, kept, 20)
}

// As in c/record.h: a call is timed if its chance is not above UINT32_MAX >> k.
func TestALevelIsALimitOfTheRecordingLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance, level := rapid.Uint32().Draw(t, "chance"), rapid.IntRange(0, 32).Draw(t, "level")
		assert.Equal(t, chance <= math.MaxUint32>>level, Kept(chance, level))
	})
}

func TestALevelKeepsItsShare(t *testing.T) {
	const operations = 1 << 18
	for level := range 12 {
		kept, slices := 0, 0
		for n := range uint64(operations) {
			if Kept(Chance(n, 12345), level) {
				kept++
			}
			if KeptSlice(int64(n), level) {
				slices++
			}
		}
		share := operations >> level
		assert.InDelta(t, share, kept, 4+0.02*float64(share), "the golden ratio spreads operations evenly")
		assert.InEpsilon(t, share, slices, 0.3, "level %d", level)
	}
}
