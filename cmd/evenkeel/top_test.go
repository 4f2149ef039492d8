package main

import (
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
)

func newScreen(t *testing.T) tcell.SimulationScreen {
	t.Helper()
	s := tcell.NewSimulationScreen("UTF-8")
	require.NoError(t, s.Init())
	return s
}

// shown is what a screen shows.
type shown struct {
	screen tcell.SimulationScreen
	top    *top
}

func (s shown) text() string {
	var b strings.Builder
	s.top.app.QueueUpdate(func() {
		cells, width, _ := s.screen.GetContents()
		for i, c := range cells {
			b.WriteString(string(c.Runes))
			if i%width == width-1 {
				b.WriteString("\n")
			}
		}
	})
	return b.String()
}

func (s shown) until(t *testing.T, want ...string) string {
	t.Helper()
	text := ""
	require.Eventually(t, func() bool {
		text = s.text()
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond, "%q", want)
	return text
}

// looks are three ranks, a second apart: in between rank 0 was in MPI for all of it, rank 1 for a quarter and
// rank 2 for none.
func looks(number int) sight {
	at := func(rank int, state job.State, inMPI float64) job.RankStatus {
		return job.RankStatus{Task: history.Task{World: 1, Rank: rank}, Host: "here", State: state, MPI: inMPI * float64(number)}
	}
	s := &job.Status{Job: "77", Ranks: []job.RankStatus{at(0, job.InMPI, 1), at(1, job.Computing, 0.25), at(2, job.Computing, 0)}}
	s.Ranks[0].Call, s.Ranks[0].For, s.Ranks[0].WaitsFor = "MPI_Recv", float64(number), []history.Task{{World: 1, Rank: 2}}
	s.Ranks[1].Windows = []job.WindowStatus{{Job: 1, Number: 3, Puts: int64(100 * number), PutBytes: int64(800 * number)}}
	s.WaitedFor = []job.Blocker{{Task: history.Task{World: 1, Rank: 2}, Waiting: []history.Task{{World: 1, Rank: 0}}}}
	return sight{time.Unix(int64(number), 0), s}
}

func TestTopShowsWhatHappenedBetweenTwoLooks(t *testing.T) {
	screen, number := newScreen(t), 0
	top := newTop("77", func(string) (sight, error) { number++; return looks(number), nil })
	done := make(chan error, 1)
	go func() { done <- top.show(screen, 10*time.Millisecond) }()
	shows := shown{screen, top}
	text := shows.until(t, "3 ranks here · in MPI 42% of the last 1.00 s", "MPI_Recv", "Rank 2 is waited for by 0.")
	assert.Regexp(t, `(?m)^ 0 .*█{10} 100%`, text)
	assert.Regexp(t, `(?m)^ 1 .*██▌·{7} 25% +\(computing\)`, text)
	assert.Regexp(t, `(?m)^ 2 .*·{10} 0%`, text)
	assert.Regexp(t, `(?m)^ 1 +1 +3 +100 +800 +0 `, text, "what went through the window in a second")
	assert.Less(t, strings.Index(text, "\n 0 "), strings.Index(text, "\n 1 "))

	screen.InjectKey(tcell.KeyRune, 'p', 0)
	shows.until(t, "paused: p goes on")
	seconds := func() string {
		_, after, _ := strings.Cut(shows.text(), "MPI_Recv")
		return strings.Fields(after)[0]
	}
	stands := seconds()
	time.Sleep(50 * time.Millisecond)
	assert.Equal(t, stands, seconds(), "what is shown stands still")
	screen.InjectKey(tcell.KeyRune, 'p', 0)
	require.Eventually(t, func() bool { return seconds() != stands }, 30*time.Second, time.Millisecond)

	screen.InjectKey(tcell.KeyRune, 'q', 0)
	require.NoError(t, <-done)
	assert.False(t, top.ended)
}

func TestTopOrdersTheRanks(t *testing.T) {
	top := newTop("77", nil)
	reversed := func(number int) sight {
		s := looks(number)
		s.status.Ranks[0], s.status.Ranks[2] = s.status.Ranks[2], s.status.Ranks[0]
		return s
	}
	top.take(reversed(1))
	assert.NotContains(t, top.text(), "in MPI 42%", "one look tells no share")
	top.take(reversed(2))
	first := func() string {
		return strings.Fields(top.text()[strings.Index(top.text(), "CALLED FROM")+len("CALLED FROM"):])[0]
	}
	assert.Equal(t, "2", first(), "as they come")
	for _, want := range []string{"0", "0", "2"} {
		top.key(tcell.NewEventKey(tcell.KeyRune, 'o', 0))
		assert.Equal(t, want, first(), top.order)
	}
}

func TestTopEndsWithTheJob(t *testing.T) {
	for _, gone := range []error{nil, errors.New("no such directory")} {
		number := 0
		top := newTop("77", func(string) (sight, error) {
			if number++; number == 3 {
				return sight{}, gone
			}
			return looks(number), nil
		})
		assert.Equal(t, gone, top.show(newScreen(t), time.Millisecond))
		assert.Equal(t, gone == nil, top.ended)
	}
}

func TestTopNeedsATerminal(t *testing.T) {
	got := invoke(t, nil, "top")
	assert.Equal(t, statusUsage, got.status)
	assert.Contains(t, got.stderr, "use evenkeel status")
}

func TestBarsInEighths(t *testing.T) {
	assert.Equal(t, "··········", bar(0))
	assert.Equal(t, "████▌·····", bar(0.45))
	assert.Equal(t, "██████████", bar(1))
	assert.Equal(t, "▏·········", bar(0.0125))
}
