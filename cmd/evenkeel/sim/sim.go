// Package sim shows what simulated runs came to: as text, as JSON, and as a page
// with pictures.
package sim

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/pkg/errors"

	"evenkeel/balancer/simulate"
	"evenkeel/runtime/report"
)

// Simulation is one load under one or several policies.
type Simulation struct {
	// Load is what was simulated, in words.
	Load   string `json:"load"`
	Ranks  int    `json:"ranks"`
	Items  int64  `json:"items"`
	Cycles int    `json:"cycles"`
	Runs   []Run  `json:"runs"`
	// Notes say what to bear in mind, a sentence each.
	Notes []string `json:"notes"`
	// Besides is time that the program spends in each run however its items are
	// divided, in seconds, as far as a recording tells.
	Besides float64 `json:"besides"`
}

// Run is the load under one policy.
type Run struct {
	Policy string `json:"policy"`
	// Decision is the median time of a decision, in seconds, on this machine.
	Decision float64 `json:"decision"`
	*simulate.Result
}

// Text writes a table of the policies and, of the first, what happened in the
// cycles.
func Text(w io.Writer, s *Simulation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "evenkeel sim: %s\n%s, %s, %s\n\n", report.Clean(s.Load), report.Plural(int64(s.Ranks), "rank"), report.Plural(s.Items, "item"), report.Plural(int64(s.Cycles), "cycle"))
	for _, line := range Verdict(s) {
		fmt.Fprintln(&b, wrap(line))
	}
	fmt.Fprintf(&b, "\n%s\n", policies(s))
	if len(s.Runs) > 0 {
		fmt.Fprintf(&b, "\nThe cycles under %s\n%s\n", s.Runs[0].Policy, cycles(&s.Runs[0]))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "\n%s\n", wrap(note))
	}
	_, err := io.WriteString(w, b.String())
	return errors.Wrap(err, "cannot write what was simulated")
}

var blanksAtEnd = regexp.MustCompile(`(?m) +$`)

// wrap breaks a sentence into lines.
func wrap(sentence string) string {
	return blanksAtEnd.ReplaceAllString(text.WrapSoft(sentence, 80), "")
}

// Verdict says in a sentence for each policy what the user would gain.
func Verdict(s *Simulation) []string {
	besides := ""
	if s.Besides > 0 {
		besides = fmt.Sprintf(", of which %s are besides the cycles", report.Seconds(s.Besides))
	}
	var lines []string
	for _, r := range s.Runs {
		saved := (r.Static - r.Time) / (r.Static + s.Besides)
		times := fmt.Sprintf("%s instead of %s%s", report.Seconds(r.Time+s.Besides), report.Seconds(r.Static+s.Besides), besides)
		switch {
		case r.Moves == 0:
			lines = append(lines, fmt.Sprintf("%s: you would gain nothing; it would not change the ranges.", r.Policy))
		case saved < 0:
			lines = append(lines, fmt.Sprintf("%s: you would lose %s: %s.", r.Policy, report.Percent(-saved), times))
		default:
			lines = append(lines, fmt.Sprintf("%s: you would save %s of the time: %s.", r.Policy, report.Percent(saved), times))
		}
	}
	return lines
}

// grid sets rows in columns; all but the first are numbers.
func grid(heading table.Row, rows []table.Row, words int) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Format = table.FormatOptions{}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	var configs []table.ColumnConfig
	for i := range heading {
		if i+1 != words {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(heading)
	t.AppendRows(rows)
	return t.Render()
}

func policies(s *Simulation) string {
	var rows []table.Row
	line := func(name string, time float64, static float64) table.Row {
		return table.Row{name, report.Seconds(time), report.Percent(ratio(time, static))}
	}
	for i, r := range s.Runs {
		if i == 0 {
			rows = append(rows, append(line("even ranges", r.Static, r.Static), "", "", "", "", ""))
		}
		rows = append(rows, append(line(r.Policy, r.Time, r.Static), report.Percent(ratio(r.Time, r.Ideal)-1), report.Percent(r.OfOracle()),
			report.Count(int64(r.Moves)), report.Count(r.Moved), report.Seconds(r.Decision)))
	}
	if len(s.Runs) > 0 {
		r := &s.Runs[0]
		rows = append(rows, append(line("oracle", r.Oracle, r.Static), report.Percent(ratio(r.Oracle, r.Ideal)-1), "", "", "", ""))
		rows = append(rows, append(line("ideal", r.Ideal, r.Static), "", "", "", "", ""))
	}
	return grid(table.Row{"ranges", "time", "of even", "above ideal", "of oracle's gain", "changes", "items moved", "a decision"}, rows, 1)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// mostRows is how many cycles the text tells of.
const mostRows = 24

// cycles tells of the first cycles singly, and of the others in groups.
func cycles(r *Run) string {
	var rows []table.Row
	for _, g := range groups(len(r.Cycles)) {
		var sum simulate.Cycle
		changes, policy := 0, ""
		n := float64(g.end - g.first)
		for _, c := range r.Cycles[g.first:g.end] {
			sum.Static += c.Static / n
			sum.Time += c.Time / n
			sum.Ideal += c.Ideal / n
			sum.Before += c.Before / n
			sum.After += c.After / n
			sum.Moving += c.Moving
			sum.Moved += c.Moved
			if c.Changed {
				changes++
				policy = c.Policy
			}
		}
		name := fmt.Sprint(g.first)
		if g.end > g.first+1 {
			name = fmt.Sprintf("%d–%d", g.first, g.end-1)
			policy = ""
			if changes > 0 {
				policy = report.Plural(int64(changes), "change")
			}
		}
		rows = append(rows, table.Row{name, report.Seconds(sum.Static), report.Seconds(sum.Time), report.Seconds(sum.Ideal),
			report.Percent(sum.Before), report.Percent(sum.After), report.Count(sum.Moved), report.Seconds(sum.Moving), policy})
	}
	return grid(table.Row{"cycle", "even", "balanced", "ideal", "imbalance, even", "balanced", "items moved", "moving", "by"}, rows, 9)
}

// group is cycles [first, end).
type group struct{ first, end int }

func groups(cycles int) []group {
	var all []group
	const single = mostRows / 2
	for k := range min(cycles, single) {
		all = append(all, group{k, k + 1})
	}
	rest := cycles - single
	rows := min(rest, mostRows-single)
	for k := range max(0, rows) {
		all = append(all, group{single + k*rest/rows, single + (k+1)*rest/rows})
	}
	return all
}
