package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/runtime/history"
	"evenkeel/runtime/job"
	"evenkeel/runtime/symbols"
)

// newStatusCommand is `evenkeel status [JOB]`.
func newStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Show in which MPI call each rank of a running job is, and who is waited for",
		Long: `Show, for every rank of a running job on this host, the MPI call that it is in,
since when, and from where, and the rank that the others wait for. Where several
threads of a rank are in MPI, each has its line, and all count for who is waited for.

Nothing is asked of the ranks: a job that hangs can be seen. For a job on
several hosts run it on each of them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			live, err := job.Find(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if len(live) == 0 && len(args) == 1 {
				return noJob(args[0])
			}
			if len(live) == 0 && !asJSON {
				fmt.Fprintln(c.OutOrStdout(), "No job runs on this host under evenkeel.")
			}
			resolver := symbols.NewResolver(symbols.DebugRoot)
			for len(live) > 0 {
				n := 1
				for n < len(live) && live[n].Job() == live[0].Job() {
					n++
				}
				status, err := job.Look(live[:n])
				if err != nil {
					return err
				}
				status.Locate(resolver)
				if asJSON {
					err = json.NewEncoder(c.OutOrStdout()).Encode(status)
				} else {
					err = writeStatus(c.OutOrStdout(), status, resolver)
				}
				if err != nil {
					return err
				}
				live = live[n:]
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as one line of JSON for each job")
	return c
}

// noJob is the error for a name that no running job has.
func noJob(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return errors.Errorf("%s is a directory and not a job that runs: evenkeel report shows what a job left", name)
	}
	return errors.Errorf("no job %s runs on this host under evenkeel (of this user)", name)
}

func writeStatus(w io.Writer, s *job.Status, resolver *symbols.Resolver) error {
	t := plainTable("rank", "host", "pid", "in", "for", "waits for", "called from")
	for _, r := range s.Ranks {
		appendRank(t, table.Row{name(r.Task), r.Host, r.PID}, r, resolver)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %s\n%s\n", s.Job, t.Render())
	if w := windows(s); w.Length() > 0 {
		fmt.Fprintf(&b, "\nWindows of global shared memory, each as of its last fence:\n%s\n", w.Render())
	}
	if s.Absent > 0 {
		fmt.Fprintf(&b, "%d more ranks are on other hosts: run evenkeel status there too.\n", s.Absent)
	}
	b.WriteString(waitedFor(s.WaitedFor))
	b.WriteString(circles(s.Cycles))
	_, err := io.WriteString(w, b.String())
	return errors.Wrap(err, "cannot write the status")
}

func plainTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.AppendHeader(header)
	return t
}

// appendRank appends a rank's row: what identifies it, and then the call that it is in, since when, for whom it waits
// and from where it calls. Calls of its other threads have rows of their own.
func appendRank(t table.Writer, identity table.Row, r job.RankStatus, resolver *symbols.Resolver) {
	switch r.State {
	case job.Done:
		t.AppendRow(append(identity, "MPI_Finalize", "", "", ""))
	case job.Computing, job.Gone:
		t.AppendRow(append(identity, fmt.Sprintf("(%s)", r.State), "", "", ""))
	}
	for i, c := range r.Calls() {
		if i > 0 {
			identity = make(table.Row, len(identity))
			for k := range identity {
				identity[k] = ""
			}
			identity[0] = fmt.Sprintf("· thread %d", c.Thread)
		}
		t.AppendRow(append(identity, callOf(c), since(c), waitsFor(c), place(resolver, c.Module, c.Offset)))
	}
}

func circles(cycles [][]history.Task) string {
	var b strings.Builder
	for _, cycle := range cycles {
		fmt.Fprintf(&b, "Ranks %s wait for each other in a circle: if that lasts, it is a deadlock.\n", list(cycle))
	}
	return b.String()
}

// mostBlockers is how many lines tell who is waited for.
const mostBlockers = 8

// waitedFor names those whom others wait for, the most waited for first, in one line those whom the same ranks wait for.
func waitedFor(blockers []job.Blocker) string {
	var b strings.Builder
	for line := 0; len(blockers) > 0; line++ {
		if line == mostBlockers {
			fmt.Fprintf(&b, "%d more ranks are waited for: --json names them.\n", len(blockers))
			break
		}
		var same []history.Task
		waiting := blockers[0].Waiting
		for len(blockers) > 0 && slices.Equal(blockers[0].Waiting, waiting) {
			same = append(same, blockers[0].Task)
			blockers = blockers[1:]
		}
		subject := "Rank %s is"
		if len(same) > 1 {
			subject = "Ranks %s are"
		}
		fmt.Fprintf(&b, subject+" waited for by %s.\n", list(same), list(waiting))
	}
	return b.String()
}

// windows are those of global shared memory through which something went out.
func windows(s *job.Status) table.Writer {
	t := plainTable("rank", "job", "window", "PUTs", "bytes", "GETs", "bytes", "atomics", "refused", "fences")
	for _, r := range s.Ranks {
		for _, w := range r.Windows {
			if w.Puts+w.Gets+w.Atomics+w.Refused > 0 {
				t.AppendRow(table.Row{name(r.Task), w.Job, w.Number, w.Puts, w.PutBytes, w.Gets, w.GetBytes, w.Atomics, w.Refused, w.Fences})
			}
		}
	}
	return t
}

// name is a rank's number, with its world if that is a spawned one.
func name(t history.Task) string {
	if t.World == 1 {
		return fmt.Sprint(t.Rank)
	}
	return fmt.Sprintf("%d.%d", t.World, t.Rank)
}

// list names up to eight ranks.
func list(tasks []history.Task) string {
	var names []string
	for i, t := range tasks {
		if i == 8 {
			names = append(names, fmt.Sprintf("%d more", len(tasks)-i))
			break
		}
		names = append(names, name(t))
	}
	return strings.Join(names, ", ")
}

func callOf(c *job.CallStatus) string {
	if c.Comm == "" || c.Comm == "other" {
		return c.Call
	}
	return c.Call + " on " + c.Comm
}

func since(c *job.CallStatus) string {
	text := time.Duration(c.For * float64(time.Second)).Round(time.Millisecond).String()
	if c.AtLeast {
		return "≥ " + text
	}
	return text
}

func waitsFor(c *job.CallStatus) string {
	if c.AnyRank {
		return "any rank"
	}
	return list(c.WaitsFor)
}
