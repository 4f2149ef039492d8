package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeetingsAreComparedInTurnsAndByRounds(t *testing.T) {
	run := func(time, past, processor, processorPast, lines float64) met {
		return met{
			comparison{pair{time, past}, time / past},
			comparison{pair{processor, processorPast}, processor / processorPast},
			comparison{pair{time, lines}, time / lines},
		}
	}
	// The machine was ten times as slow in the second round, but for Open MPI alone.
	taken := map[string][]met{
		alone.name:   {run(100, 100, 200, 200, 25), run(100, 100, 200, 200, 25), run(100, 100, 200, 200, 25)},
		evenkeelName: {run(50, 100, 150, 200, 25), run(500, 1000, 1500, 2000, 250), run(50, 100, 150, 200, 25)},
		doesNothing:  {run(100, 100, 200, 200, 25), run(100, 100, 200, 200, 25), run(100, 100, 200, 200, 25)},
	}
	row, err := meetingRow(meeting{title: "here"}, taken)
	require.NoError(t, err)
	assert.Equal(t, []any{"here", "100 (100–100)", "50 (50–500)", "0.50 (0.50–0.50)", "0.50 (0.50–5.00)",
		"200 (200–200)", "150 (150–1500)", "0.75 (0.75–0.75)", "0.75 (0.75–7.50)"}, []any(row))
	text, err := limitText(taken)
	require.NoError(t, err)
	assert.Contains(t, text, "need 25 (25–250) ns")
	assert.Contains(t, text, "takes 2.00 (2.00–2.00) times that with evenkeel")
	assert.Contains(t, text, "takes 4.00 (4.00–4.00) times that with no library")
}

func TestParseMet(t *testing.T) {
	found, err := parseMet("12 24 24 48\n10 20 20 80\n8 16 16 32\n")
	require.NoError(t, err)
	assert.Equal(t, met{
		time:      comparison{pair{10, 20}, 0.5},
		processor: comparison{pair{20, 48}, 0.5},
	}, found)
	found, err = parseMet("12 24 24 48 6\n")
	require.NoError(t, err)
	assert.Equal(t, comparison{pair{12, 6}, 2}, found.lines)
	for _, bad := range []string{"", "1 2 3", "1 2 3 4 5 6", "x 1 2 3", "1 -1 2 3"} {
		_, err := parseMet(bad)
		assert.Error(t, err, bad)
	}
}
