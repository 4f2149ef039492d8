package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/cmd/evenkeel/sim"
	"evenkeel/runtime/profile"
)

// replayed writes the profile of a job of four ranks and ten bins of 100 ms, of
// which rank 1 computes all the time and the others half of it, but for the first
// bin, in which rank 3 had not begun.
func replayed(t *testing.T) string {
	p := &profile.Profile{Format: profile.Format, Version: profile.Version, Job: "77", Command: "./solver", Complete: true,
		Total: profile.Scope{Elapsed: 1, Ranks: 4}, Nodes: []profile.Node{{World: 1, Host: "here", Ranks: 4}},
		Timeline: profile.Timeline{BinWidth: 0.1, Group: 1}}
	for r := range 4 {
		p.Ranks = append(p.Ranks, profile.Rank{World: 1, Rank: r, State: "finalized", Elapsed: 1})
		row := make([]float64, 10)
		for b := range row {
			if r != 1 {
				row[b] = 0.5
			}
		}
		if r == 3 {
			row[0] = -1
		}
		late := make([]float64, 10)
		p.Timeline.MPI, p.Timeline.Late = append(p.Timeline.MPI, row), append(p.Timeline.Late, late)
	}
	p.Timeline.Efficiency, p.Timeline.LoadBalance = make([]float64, 10), make([]float64, 10)
	path := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, profile.Write(path, p))
	return path
}

func simulated(t *testing.T, args ...string) sim.Simulation {
	t.Helper()
	got := invoke(t, nil, append([]string{"sim", "--json"}, args...)...)
	require.Zero(t, got.status, got.stderr)
	var s sim.Simulation
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &s))
	return s
}

func TestSimReplays(t *testing.T) {
	path := replayed(t)
	for _, cause := range []string{"items", "ranks"} {
		s := simulated(t, path, "--cause", cause, "--policy", "static,auto")
		assert.Equal(t, 4, s.Ranks)
		assert.Equal(t, 9, s.Cycles, "the first bin lacks a rank")
		assert.InDelta(t, 0, s.Besides, 1e-9)
		require.Len(t, s.Runs, 2)
		assert.InDelta(t, 0.9, s.Runs[0].Time, 1e-9)
		auto := s.Runs[1]
		assert.InDelta(t, 0.9, auto.Static, 1e-9)
		last := auto.Cycles[8]
		ideal := 0.25 / 4
		if cause == "ranks" {
			ideal = 0.25 / (4 * (3/0.8 + 1/1.6) / 4)
		}
		assert.InDelta(t, ideal, last.Ideal, 1e-9)
		assert.Less(t, last.Time, 1.05*ideal)
	}
	s := simulated(t, path, "--ranks", "16")
	assert.Equal(t, 16, s.Ranks)
	assert.InDelta(t, 0.1/4, s.Runs[0].Cycles[0].Static, 1e-9, "a quarter of the items of rank 1")
}

func TestSimDescribes(t *testing.T) {
	for _, load := range []string{"constant", "drifting", "random-walk", "bursty", "noisy"} {
		s := simulated(t, "--load", load, "--policy", "all", "--ranks", "8", "--cycles", "50", "--amplitude", "0.4", "--item-cost", "1us")
		require.Len(t, s.Runs, 7)
		for _, r := range s.Runs {
			assert.Len(t, r.Cycles, 50)
			assert.Equal(t, s.Runs[0].Static, r.Static, "all policies meet the same load")
			if r.Moves > 0 {
				assert.Positive(t, r.Moving)
			}
		}
	}
	one, same, other := simulated(t, "--seed", "5"), simulated(t, "--seed", "5"), simulated(t, "--seed", "6")
	assert.Equal(t, one.Runs[0].Result, same.Runs[0].Result)
	assert.NotEqual(t, one.Runs[0].Result, other.Runs[0].Result)
}

func TestSimAsText(t *testing.T) {
	got := invoke(t, nil, "sim", replayed(t))
	assert.Zero(t, got.status)
	assert.Empty(t, got.stderr)
	for _, want := range []string{
		`evenkeel sim: job 77, ./solver\n4 ranks, 4,000 items, 9 cycles\n`,
		`auto: you would save \d+% of the time: \d+ ms instead of 900 ms\.`,
		`even ranges +900 ms +100%\n`,
		`\nauto +`, `\noracle +`, `\nideal +562 ms`,
		`\n +1 +100 ms +100 ms +62\.5 ms +60% +60% +625 .*profiled\n`,
		`A cycle is a bin of the timeline, 100 ms, since`,
	} {
		assert.Regexp(t, want, got.stdout)
	}
	assert.NotRegexp(t, `(?m) $`, got.stdout)
	got = invoke(t, nil, "sim", "--load", "noisy", "--amplitude", "0.02")
	assert.Contains(t, got.stdout, "auto: you would gain nothing; it would not change the ranges.")
}

func TestSimAsPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sim.html")
	assert.Equal(t, outcome{}, invoke(t, nil, "sim", "--policy", "auto,pairwise", "--cycles", "3000", "--html", file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Less(t, len(data), 500_000)
	assert.NotContains(t, string(data), "<script")
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAll(data, -1)
	assert.Len(t, pictures, 12, "three for each policy, for wide screens and for narrow ones")
	for _, picture := range pictures {
		assert.NoError(t, xml.Unmarshal(picture, new(any)))
		assert.NotContains(t, string(picture), "NaN")
	}
	got := invoke(t, nil, "sim", "--html", file+"/under")
	assert.Equal(t, 1, got.status)
	assert.Regexp(t, `^evenkeel: cannot write .*\n$`, got.stderr)
}

func TestSimRefuses(t *testing.T) {
	recorded := replayed(t)
	for _, c := range []struct {
		status int
		args   string
		want   string
	}{
		{2, "--ranks 0", `0 ranks: at least one is needed`},
		{2, "--items -5", `-5 items over 4 ranks: at least one of each is needed`},
		{2, "--cycles 0", `0 cycles: at least one is needed`},
		{2, "--load wild", `there is no load "wild"; there are constant, drifting, random-walk, bursty, noisy`},
		{2, "--cause fate", `there is no cause "fate"; there are items and ranks`},
		{2, "--policy best", `there is no policy "best"; there are auto, .*`},
		{2, "--amplitude -1", `an amplitude of -1: give a number from 0 to 1000`},
		{2, "--threshold 1", `a threshold of 1: it is a share of the cycle, from 0 to below 1`},
		{2, "--min-items 1001", `4 ranks can't have at least 1001 items each: there are 4000`},
		{2, "--k 4", `the 4 fastest of 4 ranks: .*`},
		{2, "--item-cost -1s", `the cost per item is -1 seconds: it must be a number from 0 to 1e\+15`},
		{2, recorded + " --load noisy", `--load describes a load, but .* is one that was recorded: give one of both`},
		{2, recorded + " --cause ranks --ranks 8", `8 ranks can't take the place of the 4 that were recorded, .*`},
		{1, "nosuchjob", `nosuchjob is neither the directory of a profile nor a job that runs on this host.*`},
		{1, finished(t), `.*evenkeel.77: the profile has no timeline of two ranks or more: there is nothing to balance`},
	} {
		got := invoke(t, nil, append([]string{"sim"}, strings.Fields(c.args)...)...)
		assert.Equal(t, c.status, got.status, c.args)
		assert.Empty(t, got.stdout)
		assert.Regexp(t, `^evenkeel: `+c.want+`\n$`, got.stderr)
	}
}

func TestSimOfManyRanks(t *testing.T) {
	s := simulated(t, "--ranks", "100000", "--items", "10000000", "--cycles", "6", "--cause", "ranks", "--noise", "0")
	assert.Less(t, s.Runs[0].Cycles[5].Time, 1.05*s.Runs[0].Cycles[5].Ideal)
	assert.Positive(t, s.Runs[0].Decision)
}
