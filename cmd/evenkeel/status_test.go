package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
	"evenkeel/runtime/symbols"
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

func TestStatusHasALineForEachThread(t *testing.T) {
	other := job.CallStatus{Thread: 2, Call: "MPI_Barrier", Comm: "work", WaitsFor: []history.Task{{World: 1, Rank: 1}}}
	s := &job.Status{Job: "4711", Ranks: []job.RankStatus{{Task: history.Task{World: 1}, Host: "here", State: job.InMPI,
		CallStatus: job.CallStatus{Call: "MPI_Recv", AnyRank: true}, Others: []job.CallStatus{other}}}}
	var b strings.Builder
	require.NoError(t, writeStatus(&b, s, symbols.NewResolver(symbols.DebugRoot)))
	assert.Regexp(t, `(?m)^ *0 .*here.* MPI_Recv .* any rank .*\n *· thread 2 .* MPI_Barrier on work .* 1 `, b.String())
}
