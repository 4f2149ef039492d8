package report

import (
	"cmp"
	"fmt"
	"strconv"

	"evenkeel/runtime/profile"
)

// tableView is a table of the page: it can be searched, and sorted by any
// column.
type tableView struct {
	ID, Title, Explained string
	Columns              []columnView
	Rows                 [][]cellView
	Left                 int  // rows left out
	Folded               bool // shown only when it is asked for
}

type columnView struct {
	Name   string
	Number bool
}

// cellView is a cell: its text, what it is sorted by, and perhaps the bars of
// a split.
type cellView struct {
	Text string
	Sort string
	Bars []meter
}

// tableRows is the most rows that a table of the page has.
const tableRows = 1000

func tablesOf(p *profile.Profile) []tableView {
	return []tableView{sitesTable(p), regionsTable(p), communicatorsTable(p), ranksTable(p), nodesTable(p), windowsTable(p)}
}

func word(s string) cellView { return cellView{Text: clean(s), Sort: clean(s)} }

func number(text string, value float64) cellView {
	return cellView{Text: text, Sort: strconv.FormatFloat(value, 'g', -1, 64)}
}

func span(t float64) cellView    { return number(seconds(t), t) }
func whole(n int64) cellView     { return number(count(n), float64(n)) }
func portion(x float64) cellView { return number(percent(x), x) }

// metricCell is an efficiency; what is unknown is sorted below all else.
func metricCell(x *float64) cellView {
	if x == nil {
		return number("unknown", -1)
	}
	return portion(*x)
}

// splitCell draws a split, sorted by the time in MPI.
func splitCell(s *profile.Split) cellView {
	return cellView{Sort: number("", s.MPI).Sort, Bars: sharesOf(s).meters()}
}

// add appends a row, or counts it when there are enough.
func (t *tableView) add(cells ...cellView) {
	if len(t.Rows) == tableRows {
		t.Left++
		return
	}
	t.Rows = append(t.Rows, cells)
}

func sitesTable(p *profile.Profile) tableView {
	t := tableView{ID: "sites", Title: "Call sites", Explained: "The places in the program that call MPI, over all ranks.", Columns: []columnView{
		{"Call", false}, {"In", false}, {"Waiting", true}, {"In MPI", true}, {"What it was", false}, {"Calls", true}, {"Longest", true}, {"Data", true}}}
	for i := range p.CallSites {
		c := &p.CallSites[i]
		mpi := c.Split
		mpi.Useful = 0
		t.add(word(c.Call), word(place(c)), span(c.Late), span(c.MPI), splitCell(&mpi), whole(c.Calls), span(c.Longest), number(volume(c.Bytes), float64(c.Bytes)))
	}
	return t
}

func regionsTable(p *profile.Profile) tableView {
	t := tableView{ID: "regions", Title: "Regions", Explained: "The marked parts of the program; “whole run” is the rest.", Columns: []columnView{
		{"Region", false}, {"Within", false}, {"Elapsed", true}, {"What it was", false}, {"Waiting", true}, {"Efficiency", true}, {"Load balance", true}, {"Communication", true}, {"Entries", true}}}
	for i := range p.Regions {
		r := &p.Regions[i]
		e := &r.Efficiencies
		t.add(word(r.Name), word(r.Parent), span(r.Elapsed), splitCell(&r.Split), span(r.Late), metricCell(e.Parallel), metricCell(e.LoadBalance), metricCell(e.Communication), whole(r.Entries))
	}
	return t
}

func communicatorsTable(p *profile.Profile) tableView {
	t := tableView{ID: "communicators", Title: "Communicators", Explained: "Spread is the median time between the first and the last to arrive at an operation.", Columns: []columnView{
		{"Communicator", false}, {"Size", true}, {"Waiting", true}, {"In MPI", true}, {"What it was", false}, {"Spread", true}, {"Often last", true}, {"In", true}, {"Calls", true}}}
	for i := range p.Communicators {
		c := &p.Communicators[i]
		mpi := c.Split
		mpi.Useful = 0
		t.add(word(cmp.Or(c.Name, c.ID)), whole(int64(c.Size)), span(c.Late), span(c.MPI), splitCell(&mpi), span(c.Spread), number(lastRank(c), float64(c.LastRank)), portion(c.LastShare), whole(c.Calls))
	}
	return t
}

func ranksTable(p *profile.Profile) tableView {
	n := namesOf(p)
	t := tableView{ID: "ranks", Title: "Ranks", Folded: true, Explained: "“Caused” is the core time that others waited for the rank; “last” counts the operations to which it came last.", Columns: []columnView{
		{"Rank", true}, {"Host", false}, {"State", false}, {"Elapsed", true}, {"Useful", true}, {"Waiting", true}, {"What it was", false}, {"Caused", true}, {"Last", true}, {"First", true}, {"Calls", true}, {"Data", true}}}
	for i := range p.Ranks {
		r := &p.Ranks[i]
		t.add(number(n.short(r.World, r.Rank), float64(i)), word(p.Nodes[r.Node].Host), word(r.State), span(r.Elapsed), span(r.Useful), span(r.Late), splitCell(&r.Split), span(r.Caused), whole(r.Last), whole(r.First), whole(r.Calls), number(volume(r.Bytes), float64(r.Bytes)))
	}
	return t
}

func nodesTable(p *profile.Profile) tableView {
	t := tableView{ID: "nodes", Title: "Nodes", Folded: true, Explained: "Clock offsets are against the first node.", Columns: []columnView{
		{"Node", true}, {"Host", false}, {"World", true}, {"Ranks", true}, {"Clock offset", true}, {"Within", true}}}
	for _, node := range p.Nodes {
		t.add(whole(int64(node.Number)), word(node.Host), whole(int64(node.World)), whole(int64(node.Ranks)), clockCell("", node.ClockOffset), clockCell("±", node.ClockError))
	}
	return t
}

func windowsTable(p *profile.Profile) tableView {
	n := namesOf(p)
	t := tableView{ID: "windows", Title: "Windows of global shared memory", Folded: true,
		Explained: "What went out through each window, as of its last fence. “Refused” were not issued, or failed.", Columns: []columnView{
			{"Rank", true}, {"Window", false}, {"PUTs", true}, {"Data", true}, {"GETs", true}, {"Data", true}, {"Atomics", true}, {"Refused", true}, {"Fences", true}}}
	for i := range p.Windows {
		w := &p.Windows[i]
		t.add(number(n.short(w.World, w.Rank), float64(i)), word(windowName(w)), whole(w.Puts), number(volume(w.PutBytes), float64(w.PutBytes)),
			whole(w.Gets), number(volume(w.GetBytes), float64(w.GetBytes)), whole(w.Atomics), whole(w.Refused), whole(w.Fences))
	}
	return t
}

// windowName names a window among those of its rank.
func windowName(w *profile.Window) string {
	switch {
	case w.Number == 0:
		return "others"
	case w.Job > 1:
		return fmt.Sprintf("%d of job %d", w.Number, w.Job)
	}
	return fmt.Sprint(w.Number)
}

// clockCell is a time that may not have been measured.
func clockCell(sign string, t *float64) cellView {
	if t == nil {
		return number("unknown", 0)
	}
	return number(sign+seconds(*t), *t)
}
