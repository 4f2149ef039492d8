package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// sends is a blocking send.
func sends(enter, leave int64) Event {
	return Event{Enter: enter, Leave: leave, Account: sendAccount, Weight: 1}
}

func TestCycles(t *testing.T) {
	run := &Run{Ranks: []Rank{
		rankOf(0, 2, collective(0, 0), sends(20, 50), collective(1, 110), collective(2, 200), collective(5, 900), collective(6, 1000)),
		rankOf(1, 2, collective(0, 5), collective(1, 60), collective(2, 215), collective(5, 900), collective(6, 960)),
	}}
	assert.Equal(t, []Cycle{
		{Useful: []int64{70, 45}, Length: 105},
		{Useful: []int64{80, 145}, Length: 105},
		{Useful: []int64{90, 50}, Length: 100},
	}, Cycles(run), "without the one in which operations are missing")
}

// TestCyclesEndWhereRanksWait: of two places, at the one to which the ranks come
// furthest apart.
func TestCyclesEndWhereRanksWait(t *testing.T) {
	elsewhere := func(sequence uint64, enter int64) Event {
		e := collective(sequence, enter)
		e.Account = sendAccount + 1
		return e
	}
	other := testBarrier
	other.Offset = 99
	run := &Run{Ranks: []Rank{
		rankOf(0, 2, collective(0, 0), elsewhere(1, 100), collective(2, 200), elsewhere(3, 300)),
		rankOf(1, 2, collective(0, 1), elsewhere(1, 150), collective(2, 201), elsewhere(3, 340)),
	}}
	for r := range run.Ranks {
		run.Ranks[r].Accounts = append(run.Ranks[r].Accounts, other)
	}
	assert.Equal(t, []Cycle{{Useful: []int64{180, 170}, Length: 190}}, Cycles(run))
}

func TestNoCycles(t *testing.T) {
	assert.Empty(t, Cycles(&Run{}))
	assert.Empty(t, Cycles(&Run{Ranks: []Rank{rankOf(0, 2, collective(0, 0)), rankOf(1, 2, collective(0, 0))}}))
	assert.Empty(t, Cycles(&Run{Ranks: []Rank{rankOf(0, 3, collective(0, 0), collective(1, 5)), rankOf(1, 3, collective(0, 0), collective(1, 5))}}), "a member is missing")
}
