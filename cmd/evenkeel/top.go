package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
	"github.com/rivo/tview"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
	"evenkeel/runtime/report"
	"evenkeel/runtime/symbols"
)

// newTopCommand is `evenkeel top [JOB]`.
func newTopCommand() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "top [JOB]",
		Short: "Watch a running job: what share of its time each rank is in MPI, and who is waited for",
		Long: `Watch a running job on this host, until q is typed or the job ends: for every rank
the share of its time in MPI since the last look, the call that it is in, and the rank
that the others wait for; of windows of global shared memory what goes through them
each second.

Nothing is asked of the ranks: a job that hangs can be seen. For a job on several
hosts run it on each of them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if every < 10*time.Millisecond {
				return usage("--every %s: two looks must be 10ms apart at least", every)
			}
			if out, ok := c.OutOrStdout().(interface{ Fd() uintptr }); !ok || !term.IsTerminal(int(out.Fd())) {
				return usage("top needs a terminal to show its screen: use evenkeel status, or evenkeel status --json")
			}
			name, err := oneJob(strings.Join(args, ""))
			if err != nil {
				return err
			}
			t := newTop(name, lookAt)
			if err := t.show(nil, every); err != nil {
				return err
			}
			if t.ended {
				fmt.Fprintf(c.OutOrStdout(), "Job %s has ended.\n", name)
			}
			return nil
		},
	}
	c.Flags().DurationVar(&every, "every", time.Second, "time between two looks")
	return c
}

// oneJob is the name of the job that is meant: that one, or the only one.
func oneJob(name string) (string, error) {
	live, err := job.Find(name)
	if err != nil {
		return "", err
	}
	var names []string
	for _, l := range live {
		names = append(names, l.Job())
		l.Close()
	}
	names = slices.Compact(names)
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", usage("several jobs run on this host, name one of %s", strings.Join(names, ", "))
	case name != "":
		return "", noJob(name)
	}
	return "", errors.New("no job runs on this host under evenkeel (of this user)")
}

// sight is a job at a time; without a status it has ended.
type sight struct {
	at     time.Time
	status *job.Status
}

func lookAt(name string) (sight, error) {
	live, err := job.Find(name)
	defer func() {
		for _, l := range live {
			l.Close()
		}
	}()
	if err != nil || len(live) == 0 {
		return sight{}, err
	}
	status, err := job.Look(live)
	return sight{time.Now(), status}, err
}

// order is how the ranks are ordered on the screen.
type order int

const (
	byRank order = iota
	byMPI
	byWait
	orders
)

func (o order) String() string {
	return [...]string{"rank", "share in MPI", "time in this call"}[o]
}

// top is the screen: what was seen at the last two looks, and how it is shown.
type top struct {
	job      string
	look     func(job string) (sight, error)
	resolver *symbols.Resolver

	before, last sight
	order        order
	paused       bool
	ended        bool

	app        *tview.Application
	body, keys *tview.TextView
}

func newTop(name string, look func(string) (sight, error)) *top {
	t := &top{job: name, look: look, resolver: symbols.NewResolver(symbols.DebugRoot), app: tview.NewApplication(),
		body: tview.NewTextView().SetWrap(false), keys: tview.NewTextView().SetWrap(false)}
	t.keys.SetTextStyle(tcell.StyleDefault.Reverse(true)).SetBackgroundColor(tcell.ColorDefault)
	t.body.SetTextStyle(tcell.StyleDefault).SetBackgroundColor(tcell.ColorDefault)
	t.app.SetRoot(tview.NewFlex().SetDirection(tview.FlexRow).AddItem(t.body, 0, 1, true).AddItem(t.keys, 1, 0, false), true)
	t.app.SetInputCapture(t.key)
	return t
}

// show shows the job on a screen, or on the terminal if that is nil, until the user quits or the job has ended.
func (t *top) show(screen tcell.Screen, every time.Duration) error {
	type end struct {
		ended bool
		err   error
	}
	last, quit := make(chan end, 1), make(chan struct{})
	go func() {
		for {
			seen, err := t.look(t.job)
			if err != nil || seen.status == nil {
				last <- end{err == nil, err}
				t.app.QueueUpdate(t.app.Stop)
				return
			}
			t.app.QueueUpdateDraw(func() { t.take(seen) })
			select {
			case <-quit:
				return
			case <-time.After(every):
			}
		}
	}()
	if screen != nil {
		t.app.SetScreen(screen)
	}
	err := t.app.Run()
	close(quit)
	if err != nil {
		return errors.Wrap(err, "cannot show the screen")
	}
	select {
	case e := <-last:
		t.ended, err = e.ended, e.err
	default: // the user quits
	}
	return err
}

// take takes a look at the job in.
func (t *top) take(seen sight) {
	if !t.paused {
		t.before, t.last = t.last, seen
	}
	t.draw()
}

// key does what a key asks for; others scroll.
func (t *top) key(event *tcell.EventKey) *tcell.EventKey {
	switch {
	case event.Rune() == 'q' || event.Key() == tcell.KeyEscape || event.Key() == tcell.KeyCtrlC:
		t.app.Stop()
	case event.Rune() == 'p' || event.Rune() == ' ':
		t.paused = !t.paused
	case event.Rune() == 'o':
		t.order = (t.order + 1) % orders
	default:
		return event
	}
	t.draw()
	return nil
}

func (t *top) draw() {
	t.body.SetText(t.text())
	if t.paused {
		t.keys.SetText("paused: p goes on · q quits")
	} else {
		t.keys.SetText(fmt.Sprintf("q quits · arrows scroll · o orders by another (now by %s) · p pauses", t.order))
	}
}

func (t *top) text() string {
	s := t.last.status
	if s == nil {
		return "looking at job " + t.job + " …"
	}
	var b strings.Builder
	shares, seconds := t.shares()
	fmt.Fprintf(&b, "job %s · %s here", s.Job, report.Plural(int64(len(s.Ranks)), "rank"))
	if s.Absent > 0 {
		fmt.Fprintf(&b, ", %d on other hosts", s.Absent)
	}
	if len(shares) > 0 {
		sum := 0.0
		for _, share := range shares {
			sum += share
		}
		fmt.Fprintf(&b, " · in MPI %s of the last %s", report.Percent(sum/float64(len(shares))), report.Seconds(seconds))
	}
	fmt.Fprintf(&b, "\n\n%s\n\n%s", t.ranks(shares), waitedFor(s.WaitedFor))
	b.WriteString(circles(s.Cycles))
	if w := t.windows(seconds); w.Length() > 0 {
		fmt.Fprintf(&b, "\nWindows of global shared memory, a second, as of their last fences:\n%s\n", w.Render())
	}
	return b.String()
}

// shares is what part of the time between the last two looks, which lasted so many seconds, each rank that runs
// was in MPI.
func (t *top) shares() (map[history.Task]float64, float64) {
	seconds := t.last.at.Sub(t.before.at).Seconds()
	if t.before.status == nil || seconds <= 0 {
		return nil, 0
	}
	before := map[history.Task]float64{}
	for _, r := range t.before.status.Ranks {
		before[r.Task] = r.MPI
	}
	shares := map[history.Task]float64{}
	for _, r := range t.last.status.Ranks {
		if was, known := before[r.Task]; known && (r.State == job.Computing || r.State == job.InMPI) {
			shares[r.Task] = min(max((r.MPI-was)/seconds, 0), 1)
		}
	}
	return shares, seconds
}

func (t *top) ranks(shares map[history.Task]float64) string {
	ranks := slices.Clone(t.last.status.Ranks)
	slices.SortStableFunc(ranks, func(a, b job.RankStatus) int {
		switch t.order {
		case byMPI:
			return cmp.Compare(shares[b.Task], shares[a.Task])
		case byWait:
			return cmp.Compare(b.For, a.For)
		}
		return 0 // as they come: by world and rank
	})
	rows := plainTable("rank", "host", "pid", "in MPI", "in", "for", "waits for", "called from")
	for _, r := range ranks {
		share := ""
		if part, known := shares[r.Task]; known {
			share = bar(part) + " " + report.Percent(part)
		}
		appendRank(rows, table.Row{name(r.Task), r.Host, r.PID, share}, r, t.resolver)
	}
	return rows.Render()
}

// bar draws a share of one in ten cells, each in eighths.
func bar(share float64) string {
	const cells, eighths = 10, " ▏▎▍▌▋▊▉"
	n := int(math.Round(share * cells * 8))
	s := strings.Repeat("█", n/8)
	if n%8 > 0 {
		s += string([]rune(eighths)[n%8])
	}
	return s + strings.Repeat("·", cells-(n+7)/8)
}

// windows is what went through each window a second, of those where something did.
func (t *top) windows(seconds float64) table.Writer {
	type key struct {
		task        history.Task
		job, number int
	}
	before := map[key]job.WindowStatus{}
	if t.before.status != nil {
		for _, r := range t.before.status.Ranks {
			for _, w := range r.Windows {
				before[key{r.Task, w.Job, w.Number}] = w
			}
		}
	}
	rows := plainTable("rank", "job", "window", "PUTs", "bytes", "GETs", "bytes", "atomics", "refused", "fences")
	for _, r := range t.last.status.Ranks {
		for _, w := range r.Windows {
			was, known := before[key{r.Task, w.Job, w.Number}]
			if !known || w == was {
				continue
			}
			rate := func(now, then int64) string { return fmt.Sprintf("%.3g", float64(now-then)/seconds) }
			rows.AppendRow(table.Row{name(r.Task), w.Job, w.Number, rate(w.Puts, was.Puts), rate(w.PutBytes, was.PutBytes),
				rate(w.Gets, was.Gets), rate(w.GetBytes, was.GetBytes), rate(w.Atomics, was.Atomics),
				rate(w.Refused, was.Refused), rate(w.Fences, was.Fences)})
		}
	}
	return rows
}
