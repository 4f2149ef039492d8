package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
)

// However many ranks are late, who is waited for is told in a few lines.
func TestThoseWhoAreWaitedForInFewLines(t *testing.T) {
	ranks := func(first, count int) []history.Task {
		var tasks []history.Task
		for rank := first; rank < first+count; rank++ {
			tasks = append(tasks, history.Task{World: 1, Rank: rank})
		}
		return tasks
	}
	var alike, different []job.Blocker
	for i, rank := range ranks(0, 12) {
		alike = append(alike, job.Blocker{Task: rank, Waiting: ranks(20, 3)})
		different = append(different, job.Blocker{Task: rank, Waiting: ranks(20, 12-i)})
	}
	assert.Equal(t, "Rank 0 is waited for by 20, 21, 22.\n", waitedFor(alike[:1]))
	assert.Equal(t, "Ranks 0, 1, 2, 3, 4, 5, 6, 7, 4 more are waited for by 20, 21, 22.\n", waitedFor(alike))
	assert.Equal(t, "Rank 0 is waited for by 20, 21, 22, 23, 24, 25, 26, 27, 4 more.\nRank 1 is waited for by 20, 21, 22, 23, 24, 25, 26, 27, 3 more.\n", waitedFor(different[:2]))
	text := waitedFor(different)
	assert.Contains(t, text, "Rank 7 is waited for by 20, 21, 22, 23, 24.\n4 more ranks are waited for: --json names them.\n")
	assert.NotContains(t, text, "Rank 8")
}
