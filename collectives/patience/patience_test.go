package patience

import (
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOrder: what is due comes in the order of deadlines, each time later, and what
// was removed never. What is added again waits as if for the first time.
func TestOrder(t *testing.T) {
	for seed := range int64(200) {
		random := rand.New(rand.NewSource(seed))
		var q Queue
		items := make([]Item, 50)
		waits := map[*Item]time.Duration{}
		next := map[*Item]time.Duration{}
		tries := map[*Item]int{}
		for i := range items {
			wait := time.Duration(1 + random.Intn(100))
			q.Add(0, &items[i], wait)
			waits[&items[i]], next[&items[i]] = wait, wait
		}
		for i := range items {
			if random.Intn(3) == 0 {
				q.Remove(&items[i])
				q.Remove(&items[i])
				delete(next, &items[i])
			}
		}
		require.Equal(t, len(next), q.Len())
		for range 300 {
			at, waits0 := q.Deadline()
			require.Equal(t, len(next) > 0, waits0)
			if !waits0 {
				break
			}
			require.Nil(t, q.Due(at-1, 150))
			i := q.Due(at, 150)
			require.NotNil(t, i)
			require.Equal(t, next[i], at, "seed %d", seed)
			for _, other := range next {
				require.LessOrEqual(t, at, other, "seed %d", seed)
			}
			tries[i]++
			require.Equal(t, tries[i], i.Tries, "seed %d", seed)
			waits[i] = min(2*waits[i], 150)
			next[i] = at + waits[i]
			if again := &items[random.Intn(len(items))]; next[again] > 0 && random.Intn(3) == 0 {
				wait := time.Duration(1 + random.Intn(100))
				q.Add(at, again, wait)
				waits[again], next[again], tries[again] = wait, at+wait, 0
			}
		}
	}
	var q Queue
	_, waits := q.Deadline()
	assert.False(t, waits)
	assert.Nil(t, q.Due(time.Hour, 1))
}
