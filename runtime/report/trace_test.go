package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/runtime/history"
	"evenkeel/runtime/report/draw"
)

// recording is a made-up run: in each cycle the ranks compute, a ring of
// messages goes round, and all meet in a reduction for which rank 2 is late.
func recording(ranks, cycles int) *history.Run {
	run := &history.Run{Job: "1234", Complete: true, Nodes: []history.Node{{World: 1, Host: "node01"}, {World: 1, Number: 1, Host: "node02"}}}
	for r := range ranks {
		rank := history.Rank{Task: history.Task{World: 1, Rank: r}, Node: r * 2 / ranks, Start: 1_000_000, Threads: 1,
			Accounts: []history.Account{
				{Function: history.Function{Name: "MPI_Allreduce", Class: history.AllToAll}, Module: "/home/me/particles", Offset: 0x1a40},
				{Function: history.Function{Name: "MPI_Recv", Class: history.Recv}, Region: 1, Module: "/home/me/particles", Offset: 0x1b00},
			},
			Comms:   []history.Comm{{ID: 77, Name: "MPI_COMM_WORLD", Size: ranks, Rank: r}},
			Regions: []history.Region{{Name: "whole run"}, {Name: "exchange"}},
		}
		for c := range cycles {
			begin := int64(1_000_000 + c*100_000)
			rank.Events = append(rank.Events, history.Event{Enter: begin + 20_000 + int64(r), Leave: begin + 25_000, Account: 1, Sequence: 7, Weight: 1, Bytes: 64, Peers: []history.Peer{history.Peer((r + 1) % ranks), history.AnyPeer}})
			enter := begin + 50_000 + int64(r)*10
			if r == 2 {
				enter = begin + 90_000
			}
			rank.Events = append(rank.Events, history.Event{Enter: enter, Leave: begin + 91_000 + int64(c%7)*100, Account: 0, Sequence: uint64(c), Collective: true, Weight: 4, Bytes: 8})
		}
		rank.End = rank.Events[len(rank.Events)-1].Leave
		run.Ranks = append(run.Ranks, rank)
	}
	return run
}

// viewed is a trace as a viewer reads it.
type viewed struct {
	DisplayTimeUnit string            `json:"displayTimeUnit"`
	OtherData       map[string]string `json:"otherData"`
	TraceEvents     []entry           `json:"traceEvents"`

	slices map[int][]slice // by thread
}

// entry is an entry of a trace.
type entry struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat"`
	Phase string         `json:"ph"`
	Time  *json.Number   `json:"ts"`
	Dur   *json.Number   `json:"dur"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s"`
	ID    int            `json:"id"`
	Bind  string         `json:"bp"`
	Args  map[string]any `json:"args"`
}

// slice is a call in a trace, in nanoseconds.
type slice struct {
	name     string
	from, to int64
}

// nanoseconds reads a time of the trace exactly.
func nanoseconds(t require.TestingT, micros *json.Number) int64 {
	require.NotNil(t, micros)
	f, err := micros.Float64()
	require.NoError(t, err)
	return int64(math.Round(f * 1000))
}

// view writes a trace and reads it by the rules of the Trace Event Format.
func view(t require.TestingT, run *history.Run, options TraceOptions) viewed {
	var out bytes.Buffer
	require.NoError(t, Trace(&out, run, options))
	var v viewed
	require.NoError(t, json.Unmarshal(out.Bytes(), &v), "%.300s", out.String())
	require.Equal(t, "ms", v.DisplayTimeUnit)
	v.slices = map[int][]slice{}
	process := map[int]int{}
	for _, e := range v.TraceEvents {
		require.NotEmpty(t, e.Name)
		require.Positive(t, e.PID, "viewers take process 0 for the idle one")
		if e.TID != 0 {
			if known, ok := process[e.TID]; ok {
				require.Equal(t, known, e.PID, "thread %d stands in two processes", e.TID)
			}
			process[e.TID] = e.PID
		}
		switch e.Phase {
		case "X":
			from, length := nanoseconds(t, e.Time), nanoseconds(t, e.Dur)
			require.GreaterOrEqual(t, length, int64(0))
			v.slices[e.TID] = append(v.slices[e.TID], slice{e.Name, from, from + length})
		case "M":
			require.Contains(t, []string{"process_name", "process_sort_index", "thread_name", "thread_sort_index"}, e.Name)
			require.Len(t, e.Args, 1)
		case "i":
			require.Equal(t, "t", e.Scope)
		case "s", "f":
			require.Positive(t, e.ID)
			require.Equal(t, e.Phase == "f", e.Bind == "e")
		default:
			require.Fail(t, "a phase that this trace should not have", e.Phase)
		}
	}
	v.checkNesting(t)
	v.checkFlows(t)
	return v
}

func (v *viewed) checkNesting(t require.TestingT) {
	for tid, all := range v.slices {
		var open []int64
		for _, s := range all {
			for len(open) > 0 && open[len(open)-1] <= s.from {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				require.LessOrEqual(t, s.to, open[len(open)-1], "slices of thread %d overlap at %s", tid, s.name)
			}
			open = append(open, s.to)
		}
	}
}

func (v *viewed) checkFlows(t require.TestingT) {
	ends := map[int]string{}
	for _, e := range v.TraceEvents {
		if e.Phase != "s" && e.Phase != "f" {
			continue
		}
		ends[e.ID] += e.Phase
		at := nanoseconds(t, e.Time)
		inside := slices.ContainsFunc(v.slices[e.TID], func(s slice) bool { return s.from <= at && at < s.to })
		require.True(t, inside, "the end of an arrow at %d lies in no slice of thread %d", at, e.TID)
	}
	for id, phases := range ends {
		require.Equal(t, "sf", phases, "arrow %d", id)
	}
}

// calls counts the slices of a trace.
func (v *viewed) calls() int {
	n := 0
	for _, all := range v.slices {
		n += len(all)
	}
	return n
}

func TestTraceHoldsEveryCall(t *testing.T) {
	run := recording(4, 50)
	v := view(t, run, TraceOptions{Site: func(module string, offset uint64) string { return "energy (forces.c:212)" }})
	assert.Equal(t, 4*50*2, v.calls())
	names := map[int]any{}
	arrows, marks := 0, 0
	for _, e := range v.TraceEvents {
		switch {
		case e.Name == "process_name":
			names[e.PID] = e.Args["name"]
		case e.Phase == "s":
			assert.Equal(t, 3, e.PID, "an arrow leads from rank 2, which was late")
			arrows++
		case e.Phase == "i":
			assert.Equal(t, "last of 4 at MPI_Allreduce, 40.0 µs after rank 0", e.Name)
			marks++
		}
	}
	assert.Equal(t, map[int]any{1: "rank 0 (node01)", 2: "rank 1 (node01)", 3: "rank 2 (node02)", 4: "rank 3 (node02)"}, names)
	assert.Equal(t, 50, arrows)
	assert.Equal(t, 50, marks)

	call := v.TraceEvents[slices.IndexFunc(v.TraceEvents, func(e entry) bool { return e.Phase == "X" })]
	assert.Equal(t, "MPI_Recv", call.Name)
	assert.Equal(t, "20.000", call.Time.String())
	assert.Equal(t, map[string]any{"site": "energy (forces.c:212)", "communicator": "MPI_COMM_WORLD", "region": "exchange", "tag": 7.0, "bytes": 64.0, "peers": "1, any"}, call.Args)
	assert.Equal(t, "all 400 calls that were kept are here", v.OtherData["calls"])
}

func TestTraceIsBounded(t *testing.T) {
	run := recording(8, 1000)
	long := &run.Ranks[5].Events[700]
	long.Leave = long.Enter + 95_000
	v := view(t, run, TraceOptions{MaxEvents: 1000})
	assert.LessOrEqual(t, v.calls(), 1000)
	assert.Greater(t, v.calls(), 500)
	longest := int64(0)
	for _, all := range v.slices {
		for _, s := range all {
			longest = max(longest, s.to-s.from)
		}
	}
	assert.Equal(t, int64(95_000), longest, "the longest call is always there")
	assert.Regexp(t, `^[\d,]+ of 16,000 calls that were kept are here: those longer than .* [\d,]+ calls left out$`, v.OtherData["calls"])

	// In the first moment of the run, all that the ranks did is there.
	for tid, all := range v.slices {
		assert.Equal(t, int64(20_000), all[0].from/1000*1000, "thread %d", tid)
	}
}

func TestTraceTellsWhatIsMissing(t *testing.T) {
	run := recording(3, 2)
	run.Notes = []string{"Rank 1 was killed.", "Node 2 is missing."}
	v := view(t, run, TraceOptions{})
	assert.Equal(t, "Rank 1 was killed. Node 2 is missing.", v.OtherData["notes"])
}

func TestTraceNamesWorldsAndThreads(t *testing.T) {
	run := recording(3, 1)
	run.Ranks[1].Task = history.Task{World: 2, Rank: 0}
	run.Ranks[1].Events[0].Thread = 3
	names := map[string]bool{}
	v := view(t, run, TraceOptions{})
	for _, e := range v.TraceEvents {
		if name, ok := e.Args["name"].(string); ok && e.PID == 2 {
			names[name] = true
		}
	}
	assert.Equal(t, map[string]bool{"rank 0 of world 2 (node01)": true, "main": true, "thread 3": true}, names)
}

func TestTraceCutsCallsThatOverlap(t *testing.T) {
	run := recording(3, 1)
	events := run.Ranks[0].Events
	events[0].Leave = events[1].Enter + 5
	v := view(t, run, TraceOptions{})
	assert.Equal(t, 6, v.calls())
}

func TestTraceOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := recording(3, 4)
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 9))
		for range rapid.IntRange(1, 20).Draw(t, "spoilt") {
			rank := &run.Ranks[rapid.IntRange(0, 2).Draw(t, "rank")]
			event := &rank.Events[rapid.IntRange(0, 7).Draw(t, "event")]
			n := number.Draw(t, "number")
			switch rapid.IntRange(0, 11).Draw(t, "field") {
			case 0:
				event.Enter = n
			case 1:
				event.Leave = n
			case 2:
				event.Account = int(n)
			case 3:
				event.Comm = int(n)
			case 4:
				event.Sequence = uint64(n)
			case 5:
				event.Thread = int(n)
			case 6:
				event.Peers = []history.Peer{history.Peer(n), history.FarPeer}
			case 7:
				rank.Node = int(n)
			case 8:
				rank.Start = n
			case 9:
				rank.Accounts[0].Region = int(n)
			case 10:
				rank.Comms[0].Name = rapid.String().Draw(t, "name")
			case 11:
				event.Collective = !event.Collective
			}
		}
		most := rapid.IntRange(1, 30).Draw(t, "most")
		var out bytes.Buffer
		require.NoError(t, Trace(&out, run, TraceOptions{MaxEvents: most}))
		require.True(t, json.Valid(out.Bytes()))
		require.LessOrEqual(t, bytes.Count(out.Bytes(), []byte(`"ph":"X"`)), most)
	})
}

// broken is a disk that is full.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReportsTellThatTheyCannotBeWritten(t *testing.T) {
	assert.EqualError(t, Trace(broken{}, recording(2, 2), TraceOptions{}), "cannot write the trace: no space left")
	assert.ErrorContains(t, HTML(broken{}, small.profile(), draw.SVG), "no space left")
	assert.ErrorContains(t, Text(broken{}, small.profile(), false), "no space left")
	assert.ErrorContains(t, Summary(broken{}, small.profile(), Options{}), "no space left")
}
