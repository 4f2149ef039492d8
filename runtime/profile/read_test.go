package profile

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// example is a small profile in which every list has an entry.
func example() *Profile {
	half, micro := 0.5, 1e-6
	efficiencies := Efficiencies{&half, &half, &half, &half, nil}
	split := Split{Useful: 2, MPI: 2, Late: 1, Transfer: 0.5, Own: 0.25, Unsplit: 0.25, Error: 0.01, LateError: 0.02}
	scope := Scope{Elapsed: 2, Ranks: 2, Split: split, Efficiencies: efficiencies, Calls: 10}
	return &Profile{
		Format: Format, Version: Version, Job: "1", Command: "./app", Created: "2026-03-14T15:09:26Z",
		Complete: false, Notes: []string{"rank 1 was killed"},
		Total:         scope,
		Nodes:         []Node{{World: 1, Host: "a", Ranks: 2, ClockOffset: &micro, ClockError: &micro}},
		Ranks:         []Rank{{World: 1, State: "finalized", Elapsed: 2, Split: split}, {World: 1, Rank: 1, State: "killed", Elapsed: 2, Split: split}},
		Regions:       []Region{{Name: "whole run", Entries: 1, Scope: scope}},
		Communicators: []Communicator{{ID: "1f", Name: "MPI_COMM_WORLD", Size: 2, Split: split}},
		CallSites:     []CallSite{{Call: "MPI_Barrier", Module: "app", Offset: "0x10", Function: "main", File: "a.c", Line: 3, Split: split}},
		Culprits:      []Culprit{{World: 1, Rank: 1, Cost: 1, Share: 1, Times: 3}},
		WaitsFor:      []Pair{{World: 1, Waiter: 0, Culprit: 1, Cost: 1, Times: 3}},
		Worst:         []Operation{{Call: "MPI_Barrier", Sequence: math.MaxUint64, Arrivals: []Arrival{{0, 0}, {1, 0.5}}}},
		Balance:       Balance{Kind: "constant", Constant: 1, Advice: "repartition", Slowest: []int{1}},
		Timeline: Timeline{BinWidth: 1, Group: 1, MPI: [][]float64{{0, 1}, {-1, 1}}, Late: [][]float64{{0, 1}, {-1, 0}},
			Efficiency: []float64{1, 0}, LoadBalance: []float64{1, 0}},
		Quality: Quality{Calls: 10, TimedCalls: 9},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, Write(path, example()))
	read, err := Read(path)
	require.NoError(t, err)
	assert.Equal(t, example(), read)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode())
}

func TestReadNamesTheFile(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "nothing.json"))
	assert.ErrorContains(t, err, "nothing.json")
	path := filepath.Join(t.TempDir(), "profile.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	_, err = Read(path)
	assert.ErrorContains(t, err, path)
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	whole, err := json.Marshal(example())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		data string
		says []string
	}{
		"empty":       {" \n", []string{"empty", "run it again"}},
		"text":        {"evenkeel", []string{"not JSON at line 1, column 1", "name a profile.json"}},
		"line":        {"{\n \"format\": oh}", []string{"line 2, column 12"}},
		"NaN":         {`{"format": "evenkeel-profile", "version": 1, "total": {"elapsed": NaN}}`, []string{"not JSON at line 1", "'N'"}},
		"truncated":   {string(whole[:len(whole)/2]), []string{"breaks off after", "run the job again"}},
		"array":       {"[1]", []string{"JSON array, not a profile"}},
		"foreign":     {`{"traceEvents": []}`, []string{"no evenkeel profile", "has no format"}},
		"of others":   {`{"format": "trace"}`, []string{"no evenkeel profile", `format is "trace"`}},
		"newer":       {`{"format": "evenkeel-profile", "version": 7, "total": "quite different"}`, []string{"version 7", "reads up to 1", "newer"}},
		"versionless": {`{"format": "evenkeel-profile"}`, []string{"version as 0"}},
		"kind":        {`{"format": "evenkeel-profile", "version": 1, "total": {"calls": "many"}}`, []string{`"total.calls"`, "string", "int64"}},
		"overflow":    {`{"format": "evenkeel-profile", "version": 1, "total": {"elapsed": 1e999}}`, []string{`"total.elapsed"`, "1e999"}},
		"trailing":    {string(whole) + "{}", []string{"not JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Decode([]byte(c.data))
			require.Error(t, err)
			assert.Nil(t, p)
			for _, words := range c.says {
				assert.ErrorContains(t, err, words)
			}
		})
	}
}

func TestDecodeKnowsEveryTruncation(t *testing.T) {
	whole, err := json.Marshal(example())
	require.NoError(t, err)
	for length := 1; length < len(whole); length++ {
		_, err := Decode(whole[:length])
		require.ErrorContains(t, err, "breaks off", "after %d bytes", length)
	}
}

func TestDecodeFindsContradictions(t *testing.T) {
	for says, spoil := range map[string]func(*Profile){
		"ranks[1].node is 1, and there are 1 nodes":                  func(p *Profile) { p.Ranks[1].Node = 1 },
		"ranks[0].node is -1":                                        func(p *Profile) { p.Ranks[0].Node = -1 },
		"timeline.mpi has 2 rows and timeline.late 1":                func(p *Profile) { p.Timeline.Late = p.Timeline.Late[:1] },
		"timeline.efficiency has 2 bins and timeline.load_balance 1": func(p *Profile) { p.Timeline.LoadBalance = p.Timeline.LoadBalance[:1] },
		"row 1 of timeline.mpi":                                      func(p *Profile) { p.Timeline.MPI[1] = p.Timeline.MPI[1][:1] },
		"row 0 of timeline.mpi and timeline.late has 2 and 1 bins":   func(p *Profile) { p.Timeline.Late[0] = p.Timeline.Late[0][:1] },
		"timeline.bin_width is 0":                                    func(p *Profile) { p.Timeline.BinWidth = 0 },
		"2 rows of 0 ranks each":                                     func(p *Profile) { p.Timeline.Group = 0 },
		"2 rows of 2 ranks each":                                     func(p *Profile) { p.Timeline.Group = 2 },
		"2 rows of 9223372036854775807 ranks each, and there are 2":  func(p *Profile) { p.Timeline.Group = math.MaxInt },
		"timeline.mpi has 257 rows, more than the 256":               func(p *Profile) { p.Timeline.MPI = make([][]float64, 257); p.Timeline.Late = p.Timeline.MPI },
	} {
		t.Run(says, func(t *testing.T) {
			p := example()
			spoil(p)
			data, err := json.Marshal(p)
			require.NoError(t, err)
			_, err = Decode(data)
			assert.ErrorContains(t, err, says)
			assert.ErrorContains(t, err, "contradicts itself")
		})
	}
}

func TestWriteRefusesWhatJSONCannotHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.json")
	for where, spoil := range map[string]func(*Profile, float64){
		"total.late":                         func(p *Profile, x float64) { p.Total.Late = x },
		"nodes[0].clock_error":               func(p *Profile, x float64) { p.Nodes[0].ClockError = &x },
		"timeline.late[1][0]":                func(p *Profile, x float64) { p.Timeline.Late[1][0] = x },
		"regions[0].elapsed":                 func(p *Profile, x float64) { p.Regions[0].Elapsed = x },
		"worst_operations[0].arrivals[1].at": func(p *Profile, x float64) { p.Worst[0].Arrivals[1].At = x },
	} {
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			p := example()
			spoil(p, x)
			err := Write(path, p)
			assert.ErrorContains(t, err, where+" is not finite")
			assert.ErrorContains(t, err, path)
			assert.NoFileExists(t, path)
		}
	}
}

func FuzzDecode(f *testing.F) {
	whole, err := json.Marshal(example())
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/3])
	f.Add([]byte(`{"format":"evenkeel-profile","version":1}`))
	f.Add([]byte(`{"format":"evenkeel-profile","version":1,"ranks":[null],"nodes":[{}]}`))
	f.Add([]byte(`{"format":"evenkeel-profile","version":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			require.Nil(t, p)
			return
		}
		// What was accepted can be written, and is then read as the same.
		path := filepath.Join(t.TempDir(), "profile.json")
		require.NoError(t, Write(path, p))
		again, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
