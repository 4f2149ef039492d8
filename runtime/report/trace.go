package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"evenkeel/runtime/history"
)

// TraceOptions say what a trace holds.
type TraceOptions struct {
	// MaxEvents bounds the number of calls in the trace; 0 for half a million,
	// which is about 100 MB and what viewers open with ease.
	MaxEvents int
	// Site names a place in the program from a module's path and an offset in
	// it; nil for the module's name and the offset.
	Site func(module string, offset uint64) string
}

const defaultTraceEvents = 500_000

// Trace writes what a run recorded in the Trace Event Format (JSON), which
// ui.perfetto.dev and chrome://tracing open. Each rank is a process, each of
// its threads that called MPI a thread, each call a slice. At the last to
// arrive at a collective operation stands a mark, and an arrow leads from it to
// the one that waited longest. Of more than MaxEvents calls, the longest are
// written, and all of some stretches of the run. The order of events is by
// rank, and not by time over all.
func Trace(w io.Writer, run *history.Run, options TraceOptions) error {
	if options.MaxEvents == 0 {
		options.MaxEvents = defaultTraceEvents
	}
	if options.Site == nil {
		options.Site = func(module string, offset uint64) string {
			return path.Base(module) + "+0x" + strconv.FormatUint(offset, 16)
		}
	}
	t := tracer{Writer: bufio.NewWriterSize(w, 1<<16), run: run, options: options, chosen: choose(run, options.MaxEvents), tids: map[thread]int{}, cut: map[callID]int64{}}
	for i := range run.Ranks {
		if i == 0 || run.Ranks[i].Start < t.start {
			t.start = run.Ranks[i].Start
		}
	}
	t.head()
	for i := range run.Ranks {
		t.rank(i)
	}
	t.operations()
	t.WriteString("\n]}\n")
	return errors.Wrap(t.Flush(), "cannot write the trace")
}

// tracer is a trace while it is written. Errors stay in the writer until it is
// flushed.
type tracer struct {
	*bufio.Writer
	run     *history.Run
	options TraceOptions
	chosen  chosen
	start   int64 // time 0 of the trace, ns
	// tids are the numbers of the threads. Viewers want them to be unique in
	// the whole trace, not only in a process.
	tids map[thread]int
	// cut are the calls that end earlier in the trace than they did, with
	// their end there.
	cut     map[callID]int64
	written int
}

// thread is a thread of the rank at an index of Run.Ranks, callID a call of it.
type (
	thread struct{ rank, number int }
	callID struct{ rank, event int }
)

// traceEvent is an entry of the trace, in the words of the format.
type traceEvent struct {
	Name     string  `json:"name"`
	Category string  `json:"cat,omitempty"`
	Phase    string  `json:"ph"`
	Time     micros  `json:"ts"`
	Duration *micros `json:"dur,omitempty"`
	Process  int     `json:"pid"`
	Thread   int     `json:"tid"`
	Scope    string  `json:"s,omitempty"`
	Flow     int     `json:"id,omitempty"`
	Bind     string  `json:"bp,omitempty"`
	Args     any     `json:"args,omitempty"`
}

// micros is a time in nanoseconds, written as the microseconds of the format
// without loss.
type micros int64

// MarshalJSON writes the time as a number with three decimals.
func (m micros) MarshalJSON() ([]byte, error) {
	sign, ns := "", uint64(m)
	if m < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, ns/1000, ns%1000), nil
}

func (t *tracer) emit(event traceEvent) {
	if t.written > 0 {
		t.WriteString(",\n")
	}
	t.written++
	data, err := json.Marshal(event)
	if err != nil {
		panic(err) // there is nothing in an event that JSON cannot hold
	}
	t.Write(data)
}

// head begins the trace and says what it holds.
func (t *tracer) head() {
	about := map[string]string{"made by": "evenkeel", "job": t.run.Job, "calls": t.chosen.words()}
	if len(t.run.Notes) > 0 {
		about["notes"] = strings.Join(t.run.Notes, " ")
	}
	data, err := json.Marshal(about)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(t, `{"displayTimeUnit":"ms","otherData":%s,"traceEvents":[`+"\n", data)
}

// rank writes the names of a rank and its threads, and its calls.
func (t *tracer) rank(i int) {
	rank := &t.run.Ranks[i]
	name := "rank " + strconv.Itoa(rank.Task.Rank)
	if rank.Task.World > 1 {
		name += " of world " + strconv.Itoa(rank.Task.World)
	}
	if rank.Node >= 0 && rank.Node < len(t.run.Nodes) {
		name += " (" + t.run.Nodes[rank.Node].Host + ")"
	}
	t.name("process_name", i, 0, map[string]any{"name": name})
	t.name("process_sort_index", i, 0, map[string]any{"sort_index": i})

	calls := make([]int, 0, len(rank.Events))
	for e := range rank.Events {
		if t.chosen.holds(&rank.Events[e]) {
			calls = append(calls, e)
		}
	}
	// A call that encloses another comes before it.
	slices.SortStableFunc(calls, func(a, b int) int {
		x, y := &rank.Events[a], &rank.Events[b]
		return cmp.Or(cmp.Compare(x.Enter, y.Enter), cmp.Compare(y.Leave, x.Leave))
	})
	open := map[int][]int64{} // by thread: when the calls end that have begun
	for _, e := range calls {
		event := &rank.Events[e]
		leave := event.Leave
		// Viewers draw calls of a thread only if they nest, so one that would
		// overlap, as from a clock that was set right, is cut.
		stack := open[event.Thread]
		for len(stack) > 0 && stack[len(stack)-1] <= event.Enter {
			stack = stack[:len(stack)-1]
		}
		if len(stack) > 0 && leave > stack[len(stack)-1] {
			leave = stack[len(stack)-1]
			t.cut[callID{i, e}] = leave
		}
		open[event.Thread] = append(stack, leave)
		t.call(i, event, leave)
	}
}

// name writes an entry that names or orders something.
func (t *tracer) name(what string, rank, tid int, args map[string]any) {
	t.emit(traceEvent{Name: what, Phase: "M", Process: rank + 1, Thread: tid, Args: args})
}

// tid is the number of a thread; the thread is named when it is first seen.
func (t *tracer) tid(rank, number int) int {
	key := thread{rank, number}
	tid, known := t.tids[key]
	if !known {
		tid = len(t.tids) + 1
		t.tids[key] = tid
		name := "main"
		if number != 0 {
			name = "thread " + strconv.Itoa(number)
		}
		t.name("thread_name", rank, tid, map[string]any{"name": name})
		t.name("thread_sort_index", rank, tid, map[string]any{"sort_index": number})
	}
	return tid
}

// call writes a call as a slice.
func (t *tracer) call(i int, event *history.Event, leave int64) {
	name, category, args := "unknown call", "MPI", map[string]any{}
	rank := &t.run.Ranks[i]
	if event.Account >= 0 && event.Account < len(rank.Accounts) {
		account := &rank.Accounts[event.Account]
		name, category = account.Function.Name, categories[account.Function.Class]
		args["site"] = t.options.Site(account.Module, account.Offset)
		if account.Region > 0 && account.Region < len(rank.Regions) {
			args["region"] = rank.Regions[account.Region].Name
		}
		switch account.Function.Class {
		case history.Send, history.Recv, history.SendRecv:
			args["tag"] = int64(event.Sequence)
		}
	}
	if event.Comm >= 0 && event.Comm < len(rank.Comms) {
		args["communicator"] = rank.Comms[event.Comm].Name
	}
	if event.Collective {
		args["sequence"] = history.Number(event.Sequence)
	}
	if event.Bytes != 0 {
		args["bytes"] = event.Bytes
	}
	if len(event.Peers) > 0 {
		args["peers"] = peers(event.Peers)
	}
	if event.Weight > 1 {
		args["stands for"] = event.Weight
	}
	duration := micros(leave - event.Enter)
	t.emit(traceEvent{Name: name, Category: category, Phase: "X", Time: micros(event.Enter - t.start), Duration: &duration, Process: i + 1, Thread: t.tid(i, event.Thread), Args: args})
}

// categories are the words by which a viewer filters calls.
var categories = map[history.Class]string{
	history.Local: "local", history.Send: "point-to-point", history.Recv: "point-to-point", history.SendRecv: "point-to-point",
	history.Wait: "completion", history.AllToAll: "collective", history.FromRoot: "collective", history.ToRoot: "collective",
	history.Prefix: "collective", history.Neighbour: "collective", history.Create: "collective", history.Begin: "collective",
	history.Sync: "one-sided", history.Held: "lock", history.Access: "one-sided",
}

// peers are the ranks that a call may wait for, the first 16 of them by number.
func peers(all []history.Peer) string {
	var words []string
	for _, peer := range all[:min(16, len(all))] {
		switch peer {
		case history.AnyPeer:
			words = append(words, "any")
		case history.FarPeer:
			words = append(words, "of another world")
		default:
			words = append(words, strconv.Itoa(int(peer)))
		}
	}
	if more := len(all) - 16; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

// end is where the slice of an arrival ends in the trace.
func (t *tracer) end(a history.Arrival) int64 {
	if end, cut := t.cut[callID{a.Rank, a.Event}]; cut {
		return end
	}
	return a.Leave
}

// operations marks the last to arrive at each collective operation whose calls
// are in the trace.
func (t *tracer) operations() {
	flow := 0
	for o := range history.Operations(t.run) {
		first, last := o.First(), o.Last()
		held := func(a history.Arrival) bool { return t.chosen.holds(&t.run.Ranks[a.Rank].Events[a.Event]) }
		if len(o.Arrivals) < 2 || !held(first) || !held(last) {
			continue
		}
		at := func(a history.Arrival, event traceEvent) {
			event.Time = micros(last.Enter - t.start)
			event.Process, event.Thread = a.Rank+1, t.tid(a.Rank, t.run.Ranks[a.Rank].Events[a.Event].Thread)
			t.emit(event)
		}
		words := fmt.Sprintf("last of %d at %s, %s after rank %d", len(o.Arrivals), o.Function.Name, seconds(float64(o.Spread())/1e9), t.run.Ranks[first.Rank].Task.Rank)
		at(last, traceEvent{Name: words, Category: "late", Phase: "i", Scope: "t"})
		// An arrow begins and ends within a slice: where the clocks of two
		// hosts deny that the first was still waiting, there is none.
		if t.end(first) > last.Enter && t.end(last) > last.Enter {
			flow++
			at(last, traceEvent{Name: "waited for", Category: "late", Phase: "s", Flow: flow})
			at(first, traceEvent{Name: "waited for", Category: "late", Phase: "f", Bind: "e", Flow: flow})
		}
	}
}
