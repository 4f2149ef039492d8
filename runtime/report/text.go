package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"evenkeel/runtime/profile"
)

// longName is the width at which names are cut in the tables of the text
// report.
const longName = 60

// Text writes everything that a profile holds but its timeline, as tables. Its
// lines are as long as they need to be. With ascii it does without characters
// outside ASCII, but for those in the program's own names.
func Text(w io.Writer, p *profile.Profile, ascii bool) error {
	out := bufio.NewWriter(w)
	t := textReport{out, p, namesOf(p), ascii}
	t.head()
	t.balance()
	t.nodes()
	t.ranks()
	t.culprits()
	t.regions()
	t.communicators()
	t.sites()
	t.operations()
	t.windows()
	t.fast()
	t.idle()
	t.quality()
	t.pairs() // of many ranks the longest by far
	return out.Flush()
}

// textReport is a text report while it is written. Errors stay in the writer
// until it is flushed.
type textReport struct {
	*bufio.Writer
	p     *profile.Profile
	names names
	ascii bool
}

func (t *textReport) line(format string, args ...any) {
	line := fmt.Sprintf(format+"\n", args...)
	if t.ascii {
		line = toASCII.Replace(line)
	}
	t.WriteString(line)
}

func (t *textReport) section(title string) {
	t.line("\n%s\n%s", title, strings.Repeat("=", text.StringWidth(title)))
}

// table writes rows under a title, or nothing if there are none.
func (t *textReport) table(title string, rows []table.Row, columns ...column) {
	if len(rows) == 0 {
		return
	}
	t.section(title)
	for i := range columns {
		if !columns[i].right {
			columns[i].widest = longName
		}
	}
	t.line("%s", grid(columns, rows, true))
}

// splitColumns and splitCells are the columns that a Split fills.
var splitColumns = []column{
	{heading: "useful", right: true}, {heading: "MPI", right: true}, {heading: "late", right: true},
	{heading: "transfer", right: true}, {heading: "own", right: true}, {heading: "unsplit", right: true},
}

func splitCells(s *profile.Split) []any {
	return []any{seconds(s.Useful), seconds(s.MPI), seconds(s.Late), seconds(s.Transfer), seconds(s.Own), seconds(s.Unsplit)}
}

func numbers(headings ...string) []column {
	var columns []column
	for _, heading := range headings {
		columns = append(columns, column{heading: heading, right: true})
	}
	return columns
}

func words(headings ...string) []column {
	var columns []column
	for _, heading := range headings {
		columns = append(columns, column{heading: heading})
	}
	return columns
}

// joined puts the parts of a heading or of a row behind each other.
func joined[T any](parts ...[]T) []T {
	var all []T
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func (t *textReport) head() {
	p := t.p
	t.line("evenkeel: job %s, %s", clean(p.Job), clean(p.Created))
	t.line("%s", clean(p.Command))
	t.line("%s on %s, %s, %s\n", plural(int64(p.Total.Ranks), "rank"), plural(int64(len(p.Nodes)), "node"), seconds(p.Total.Elapsed), plural(p.Total.Calls, "MPI call"))
	t.line("%s", verdict(p))
	if !p.Complete {
		t.line("The recording is not complete.")
	}
	for _, note := range p.Notes {
		t.line("! %s", clean(note))
	}

	e, s := &p.Total.Efficiencies, &p.Total.Split
	t.section("Efficiency")
	t.line("%s", grid(joined(words("metric"), numbers("value"), words("meaning")), []table.Row{
		{"parallel efficiency", efficiency(e.Parallel), "load balance × communication efficiency"},
		{"  load balance", efficiency(e.LoadBalance), "mean / largest useful time of the ranks"},
		{"  communication", efficiency(e.Communication), "serialisation × transfer"},
		{"    serialisation", efficiency(e.Serialisation), "what waiting for late ranks leaves"},
		{"    transfer", efficiency(e.Transfer), "what the time of messages on their way leaves"},
	}, true))

	core := coreTime(s)
	row := func(name string, time, deviation float64, meaning string) table.Row {
		return table.Row{name, seconds(time), within(deviation), percent(part(time, core)), meaning}
	}
	t.section("Core time")
	t.line("%s", grid(joined(words("part"), numbers("time", "error", "share"), words("meaning")), []table.Row{
		row("useful", s.Useful, s.Error, "outside MPI"),
		row("MPI", s.MPI, s.Error, "inside MPI, of this:"),
		row("  late", s.Late, s.LateError, "waiting for a rank that had not arrived yet"),
		row("  transfer", s.Transfer, 0, "everybody there, data or notice on its way"),
		row("  own", s.Own, 0, "MPI's own work: what the call takes without any waiting"),
		row("  unsplit", s.Unsplit, 0, "not attributable from what was recorded"),
	}, true))
}

func (t *textReport) balance() {
	b := &t.p.Balance
	t.section("Balance")
	t.line("Imbalance %s (largest / mean useful time - 1): %s.", percent(b.Imbalance), steadiness(b))
	t.line("What helps: %s.", advice(t.p))
	if b.Why != "" {
		t.line("%s", clean(b.Why))
	}
	if len(b.Slowest) > 0 {
		t.line("Most useful time: ranks %s.", strings.Trim(strings.ReplaceAll(fmt.Sprint(b.Slowest), " ", ", "), "[]"))
	}
}

func (t *textReport) nodes() {
	var rows []table.Row
	for _, n := range t.p.Nodes {
		offset, uncertain := "unknown", ""
		if n.ClockOffset != nil {
			offset = seconds(*n.ClockOffset)
		}
		if n.ClockError != nil {
			uncertain = within(*n.ClockError)
		}
		rows = append(rows, table.Row{n.World, n.Number, clean(n.Host), n.Ranks, offset, uncertain})
	}
	t.table("Nodes", rows, joined(numbers("world", "node"), words("host"), numbers("ranks", "clock offset", "error"))...)
}

func (t *textReport) ranks() {
	var rows []table.Row
	for i := range t.p.Ranks {
		r := &t.p.Ranks[i]
		rows = append(rows, joined(
			table.Row{t.names.short(r.World, r.Rank), clean(t.p.Nodes[r.Node].Host), clean(r.State), seconds(r.Elapsed)},
			splitCells(&r.Split),
			table.Row{seconds(r.Caused), count(r.Last), count(r.First), count(r.Operations), count(r.Calls), volume(r.Bytes)}))
	}
	t.table("Ranks", rows, joined(numbers("rank"), words("host", "state"), numbers("elapsed"), splitColumns,
		numbers("made others wait", "last", "first", "of operations", "calls", "data"))...)
}

func (t *textReport) culprits() {
	var rows []table.Row
	for _, c := range t.p.Culprits {
		rows = append(rows, table.Row{t.names.short(c.World, c.Rank), seconds(c.Cost), percent(c.Share), count(c.Times), t.names.short(c.World, c.Victim)})
	}
	t.table("Ranks that others wait for", rows, numbers("rank", "core time", "of all waiting", "times", "who loses most")...)
}

func (t *textReport) pairs() {
	var rows []table.Row
	for _, pair := range t.p.WaitsFor {
		rows = append(rows, table.Row{t.names.short(pair.World, pair.Waiter), t.names.short(pair.World, pair.Culprit), seconds(pair.Cost), count(pair.Times)})
	}
	t.table("Who waits for whom", rows, numbers("waiter", "for rank", "core time", "times")...)
}

func (t *textReport) regions() {
	var rows []table.Row
	for i := range t.p.Regions {
		r := &t.p.Regions[i]
		e := &r.Efficiencies
		rows = append(rows, joined(table.Row{clean(r.Name), clean(r.Parent), count(r.Entries), seconds(r.Elapsed)}, splitCells(&r.Split),
			table.Row{efficiency(e.Parallel), efficiency(e.LoadBalance), efficiency(e.Communication)}))
	}
	t.table("Regions", rows, joined(words("region", "within"), numbers("entries", "elapsed"), splitColumns, numbers("efficiency", "balance", "communication"))...)
}

func (t *textReport) communicators() {
	var rows []table.Row
	for i := range t.p.Communicators {
		c := &t.p.Communicators[i]
		rows = append(rows, joined(table.Row{clean(c.Name), clean(c.ID), c.Size, count(c.Calls)}, splitCells(&c.Split)[1:],
			table.Row{count(c.Operations), seconds(c.Spread), lastRank(c), percent(c.LastShare)}))
	}
	t.table("Communicators", rows, joined(words("communicator", "id"), numbers("size", "calls"), splitColumns[1:],
		numbers("operations", "median spread", "often last", "in"))...)
}

func (t *textReport) sites() {
	var rows []table.Row
	for i := range t.p.CallSites {
		c := &t.p.CallSites[i]
		rows = append(rows, joined(table.Row{clean(c.Call), place(c)}, splitCells(&c.Split)[1:],
			table.Row{within(c.Error), seconds(c.Longest), count(c.Calls), count(c.Timed), volume(c.Bytes)}))
	}
	t.table("Call sites", rows, joined(words("call", "in"), splitColumns[1:], numbers("error of MPI", "longest", "calls", "timed", "data"))...)
}

func (t *textReport) operations() {
	var rows []table.Row
	for i := range t.p.Worst {
		o := &t.p.Worst[i]
		rows = append(rows, table.Row{clean(o.Call), clean(o.Communicator), o.Sequence, seconds(o.Begin), seconds(o.Spread), within(o.Error), o.First, o.Last, seconds(o.Cost)})
	}
	t.table("Operations with the widest spread of arrival", rows, joined(words("call", "communicator"),
		numbers("sequence", "at", "spread", "error", "first", "last", "cost"))...)
}

func (t *textReport) windows() {
	var rows []table.Row
	for i := range t.p.Windows {
		w := &t.p.Windows[i]
		rows = append(rows, table.Row{windowName(w), t.names.short(w.World, w.Rank), count(w.Puts), volume(w.PutBytes), count(w.Gets), volume(w.GetBytes),
			count(w.Atomics), count(w.Refused), count(w.Fences)})
	}
	t.table("Windows of global shared memory", rows, joined(words("window"),
		numbers("of rank", "PUTs", "data", "GETs", "data", "atomics", "refused", "fences"))...)
}

func (t *textReport) fast() {
	f := &t.p.Fast
	if fast(f) == "" && f.BarriersPlain+f.SendsFull+f.TypesPlain == 0 {
		return
	}
	t.section("Done in MPI's place")
	t.line("%s", grid(joined(numbers("count", "data"), words("of")), []table.Row{
		{count(f.Barriers), "", "barriers over the node's memory"},
		{count(f.BarriersPlain), "", "barriers left to MPI"},
		{count(f.Sends), volume(f.SentBytes), "sends that returned with their message in a shadow buffer"},
		{count(f.SendsFull), "", "sends left to MPI as no slot was free"},
		{count(f.Types), "", "derived datatypes compiled"},
		{count(f.TypesPlain), "", "derived datatypes left to MPI"},
		{count(f.Packed), volume(f.PackedBytes), "times that their data was gathered"},
		{count(f.Unpacked), volume(f.UnpackedBytes), "times that it was scattered"},
		{count(f.Moves), "", "times that items of a partition moved"},
		{seconds(float64(f.Hidden) * 1e-9), "", "of set-up for that, hidden in waits"},
		{count(f.Early), "", "receives for that, begun in waits"},
	}, true))
}

func (t *textReport) idle() {
	i := &t.p.Idle
	if idle(i) == "" {
		return
	}
	t.section("Done in waits")
	t.line("%s", grid(joined(numbers("count", "time"), words("of")), []table.Row{
		{count(i.Sleeps), seconds(i.Slept), "sleeps of waiting threads"},
		{count(i.Runs), seconds(i.Ran), "times that an idle program was let run"},
		{count(i.Hooks), "", "hooks and other housekeeping"},
		{count(i.HooksOverrun), "", "of these, took longer than was declared"},
		{count(i.Loans), seconds(i.Lent), "times that a rank lent its cores"},
	}, true))
}

func (t *textReport) quality() {
	q := &t.p.Quality
	t.section("What the figures rest on")
	t.line("%s", grid(joined(numbers("count"), words("of")), []table.Row{
		{count(q.Calls), "MPI calls, all counted"},
		{count(q.TimedCalls), "of them timed"},
		{count(q.EventsSeen), "events seen"},
		{count(q.Events), fmt.Sprintf("of them kept (level %d)", q.SampleLevel)},
		{count(q.EventsLost), "events lost before they were looked at"},
		{count(q.Unrecorded), "calls by threads without room"},
		{count(q.Operations), "operations matched on all their members"},
		{seconds(q.ClockError), "largest error between the clocks of two ranks"},
	}, true))
}
