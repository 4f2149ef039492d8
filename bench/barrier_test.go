package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeetingsAreComparedWithinTheirRounds(t *testing.T) {
	taken := map[string][]met{
		alone.name:   {{100, 200}, {1000, 2000}, {100, 200}},
		evenkeelName: {{50, 150}, {400, 1000}, {50, 150}},
		doesNothing:  {{100, 1}, {1000, 1}, {100, 1}},
		rawLines:     {{25, 1}, {200, 1}, {25, 1}},
	}
	row, err := meetingRow(meeting{title: "here"}, taken)
	require.NoError(t, err)
	assert.Equal(t, []any{"here", "100 (100–1000)", "50 (50–400)", "0.50 (0.40–0.50)",
		"200 (200–2000)", "150 (150–1000)", "0.75 (0.50–0.75)"}, []any(row))
	text, err := limitText(taken)
	require.NoError(t, err)
	assert.Contains(t, text, "need 25 (25–200) ns")
	assert.Contains(t, text, "takes 2.00 (2.00–2.00) times that with evenkeel")
	assert.Contains(t, text, "takes 4.00 (4.00–5.00) times that with no library")
}

func TestParseMet(t *testing.T) {
	both, err := parseMet("12.5 25\n")
	require.NoError(t, err)
	assert.Equal(t, met{12.5, 25}, both)
	one, err := parseMet("50\n")
	require.NoError(t, err)
	assert.Equal(t, met{50, 50}, one)
	for _, bad := range []string{"", "1 2 3", "x 1", "1 -1"} {
		_, err := parseMet(bad)
		assert.Error(t, err, bad)
	}
}
