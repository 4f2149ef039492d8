package epoch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/pgas/gsm/wire"
)

// A window is a map from the numbers between its ends.
func TestWindowIsAMapOfARange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window[int]
		model := map[uint64]int{}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n := w.base + rapid.Uint64Range(0, 40).Draw(t, "ahead")
				value := rapid.Int().Draw(t, "value")
				*w.reach(n) = value
				model[n] = value
			},
			"advance": func(t *rapid.T) {
				n := w.base + rapid.Uint64Range(0, 50).Draw(t, "by")
				w.advance(n)
				require.Equal(t, n, w.base)
				for k := range model {
					if k < n {
						delete(model, k)
					}
				}
			},
			"": func(t *rapid.T) {
				for n := w.base; n < w.end; n++ {
					require.True(t, w.has(n))
					require.Equal(t, model[n], *w.at(n), "entry %d of [%d,%d)", n, w.base, w.end)
				}
				require.False(t, w.has(w.end) || w.has(w.base-1))
				require.LessOrEqual(t, len(w.slots), 128)
			},
		})
	})
}

// Marks are a set of numbers, of which all below base are in it.
func TestMarksAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m marks
		set := map[uint64]bool{}
		last := rapid.Uint64Range(0, 300).Draw(t, "last")
		for _, n := range rapid.Permutation(upTo(last)).Draw(t, "order") {
			require.Equal(t, set[n], m.get(n))
			if n >= m.base {
				m.set(n)
			}
			set[n] = true
			for k := uint64(0); k < m.base; k++ {
				require.True(t, set[k])
			}
			require.False(t, set[m.base])
			if n%8 != 0 {
				continue
			}
			bitmap := wire.BitmapOf(m.appendFrom(nil))
			for k := range last + 100 {
				require.Equal(t, set[k], m.get(k), "%d", k)
				require.Equal(t, k >= m.base && set[k], k >= m.base && bitmap.Get(k-m.base), "%d of the bitmap from %d", k, m.base)
			}
		}
		require.Equal(t, last, m.base)
		m.reset()
		require.False(t, m.get(0))
	})
}

func upTo(n uint64) (all []uint64) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// The example of RFC 6298, 2.2 and 2.3.
func TestTimeoutsFollowRoundTrips(t *testing.T) {
	c := Config{FirstTimeout: time.Second, LeastTimeout: time.Microsecond, MostTimeout: time.Minute, Silence: time.Hour}
	var m timing
	require.Equal(t, time.Second, m.timeout(&c), "before anything was measured")
	m.measure(100)
	require.Equal(t, time.Microsecond, m.timeout(&c), "not below the least")
	m = timing{}
	m.measure(8 * time.Millisecond)
	require.Equal(t, 24*time.Millisecond, m.timeout(&c), "R + 4 R/2")
	m.measure(16 * time.Millisecond)
	require.Equal(t, 9*time.Millisecond, m.smoothed, "7/8 of 8 and 1/8 of 16")
	require.Equal(t, 5*time.Millisecond, m.variation, "3/4 of 4 and 1/4 of 8")
	require.Equal(t, 29*time.Millisecond, m.timeout(&c))
	m.backoff = 3
	require.Equal(t, 8*29*time.Millisecond, m.timeout(&c))
	m.backoff = 200
	require.Equal(t, time.Minute, m.timeout(&c), "not above the most")
	c.Silence = 80 * time.Second
	require.Equal(t, 10*time.Second, m.timeout(&c), "not above an eighth of the silence")
}
