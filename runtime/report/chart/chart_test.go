package chart

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

func texts(ticks []Tick) (all []string) {
	for _, t := range ticks {
		all = append(all, t.Text)
	}
	return all
}

func TestTimeTicksAreRound(t *testing.T) {
	for largest, want := range map[float64][]string{
		48:       {"0 s", "10 s", "20 s", "30 s", "40 s"},
		0.0021:   {"0 ms", "0.5 ms", "1 ms", "1.5 ms", "2 ms"},
		1.1e-7:   {"0 ns", "25 ns", "50 ns", "75 ns", "100 ns"},
		1200:     {"0 min", "5 min", "10 min", "15 min", "20 min"},
		9 * 3600: {"0 h", "2 h", "4 h", "6 h", "8 h"},
		0:        {"0 ns"},
	} {
		ticks := TimeTicks(largest, 5)
		assert.Equal(t, want, texts(ticks), largest)
		for _, tick := range ticks {
			assert.LessOrEqual(t, tick.At, largest*1.001)
		}
	}
	assert.Equal(t, 600.0, TimeTicks(1200, 5)[2].At)
}

// However senseless the length of an axis, there are few ticks.
func TestTicksAreFew(t *testing.T) {
	for _, largest := range []float64{-1, 5e-324, 1e-300, 0.3, 1e9, math.MaxFloat64, math.Inf(1), math.NaN()} {
		ticks := RoundTicks(largest, 4, func(x float64) string { return fmt.Sprint(x) })
		assert.NotEmpty(t, ticks, largest)
		assert.Less(t, len(ticks), 12, largest)
		assert.NotEmpty(t, TimeTicks(largest, 4))
	}
}

func TestRowsAreLabelledWhereThereIsRoom(t *testing.T) {
	var labels []string
	for i := range 64 {
		labels = append(labels, strconv.Itoa(i))
	}
	assert.Len(t, RowTicks(labels, 64*20, 15), 64)
	assert.Equal(t, []string{"0", "16", "32", "48"}, texts(RowTicks(labels, 64, 15)))
	assert.Equal(t, Tick{63.5, "0"}, RowTicks(labels, 64, 15)[0], "the first row is on top")
	assert.Equal(t, []string{"0"}, texts(RowTicks(labels, 1, 15)))
	assert.Empty(t, RowTicks(nil, 100, 15))
}
