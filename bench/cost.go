package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// probe is a program that prints the nanoseconds of one operation, in turns.
type probe struct {
	title   string // of its column
	job     job
	compare func(pair) float64
	against string // the title of the comparison
	verb    string // of the comparison
}

func probes(build string) []probe {
	program := func(name string) string { return filepath.Join(build, "bench", name) }
	return []probe{
		{
			title:   "ping-pong, ns per round trip",
			job:     job{2, []string{program("pingpong"), "300000"}},
			compare: pair.ratio, against: "ratio", verb: "%.3f",
		},
		{
			title:   "barrier of one rank, ns",
			job:     job{1, []string{program("barrier"), "5000000", "self"}},
			compare: pair.added, against: "added ns", verb: "%.1f",
		},
		{
			title:   "barrier of two ranks, ns",
			job:     job{2, []string{program("barrier"), "300000"}},
			compare: pair.ratio, against: "ratio", verb: "%.3f",
		},
	}
}

// measureCost measures what the shortest calls of MPI take under each variant.
func measureCost(ctx context.Context, b bench) (string, error) {
	all := probes(b.build)
	taken := make([]probed, len(all))
	var commands []string
	for i, p := range all {
		var err error
		if taken[i], err = takeTurns(ctx, p.title, b, p.compare, p.run); err != nil {
			return "", err
		}
		commands = append(commands, "`"+p.job.String()+"`")
	}
	shown, err := costTable(all, taken, b.variants)
	if err != nil {
		return "", err
	}
	return shown + "\n\n" + b.provenance("cost", commands), nil
}

func (p probe) run(ctx context.Context, b bench, v variant) (string, error) {
	printed, _, err := b.launcher.run(ctx, v, p.job)
	return printed, err
}

// costTable has a row for the program alone, over all pairs, and one for each
// variant.
func costTable(all []probe, taken []probed, variants []variant) (string, error) {
	t := table.NewWriter()
	header := table.Row{"preloaded"}
	first := table.Row{alone.name}
	for i, p := range all {
		header = append(header, p.title, p.against+", in turns", p.against+" of runs")
		var unloaded []float64
		for _, v := range variants {
			unloaded = append(unloaded, each(taken[i].runs[v.name], aloneOf)...)
		}
		own, err := summarise(unloaded)
		if err != nil {
			return "", err
		}
		none, err := summarise(taken[i].compared[alone.name])
		if err != nil {
			return "", err
		}
		first = append(first, own.format("%.1f"), none.format(p.verb), "")
	}
	t.AppendHeader(header)
	t.AppendRow(first)
	for _, v := range variants {
		row := table.Row{v.name}
		for i, p := range all {
			for _, column := range []struct {
				figures []float64
				verb    string
			}{
				{each(taken[i].runs[v.name], underOf), "%.1f"},
				{taken[i].compared[v.name], p.verb},
				{each(taken[i].runs[v.name], p.compare), p.verb},
			} {
				s, err := summarise(column.figures)
				if err != nil {
					return "", err
				}
				row = append(row, s.format(column.verb))
			}
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}

// provenance says how figures were made, and on what.
func (b bench) provenance(section string, commands []string) string {
	return fmt.Sprintf("Median (first–third quartile) of %d pairs: each run with a library has one without right before or after it, "+
		"to which it is compared; the order is shuffled (seed %d). Commands: %s; made by `%s`.\n\n%s",
		b.rounds, b.seed, strings.Join(commands, ", "), b.command(section), b.machine)
}
