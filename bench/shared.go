package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

// measureShared measures access to shared arrays and locks from Go and from C, beside MPI's one-sided calls.
func measureShared(ctx context.Context, b bench) (string, error) {
	jobs := []job{{2, []string{filepath.Join(b.build, "bench", "shared")}}, {2, []string{filepath.Join(b.build, "bench", "shared_c")}}}
	var runs [][]namedFigure
	for round := range b.rounds {
		var figures []namedFigure
		for _, j := range jobs {
			fmt.Fprintf(os.Stderr, "bench: %s, round %d of %d\n", j, round+1, b.rounds)
			printed, _, err := b.launcher.run(ctx, alone, j)
			if err != nil {
				return "", err
			}
			rows, err := parseRows(printed, "|")
			if err != nil {
				return "", err
			}
			figures = append(figures, rows...)
		}
		runs = append(runs, figures)
	}
	shown, err := namedTable(runs)
	if err != nil {
		return "", err
	}
	return shown + "\n\n" + fmt.Sprintf("Medians (first–third quartile) of %d runs, in each of which the ways take turns; Go's and C's "+
		"runs alternate. Commands: `%s`, `%s`; made by `%s`.\n\n%s", b.rounds, jobs[0], jobs[1], b.command("shared"), b.machine), nil
}

func namedTable(runs [][]namedFigure) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "ns"})
	for i, f := range runs[0] {
		var all []float64
		for _, r := range runs {
			if len(r) != len(runs[0]) || r[i].name != f.name {
				return "", errors.Errorf("one run printed %q, another something else", f.name)
			}
			all = append(all, r[i].figure)
		}
		s, err := summarise(all)
		if err != nil {
			return "", err
		}
		t.AppendRow(table.Row{f.name, s.format("%.4g")})
	}
	return t.RenderMarkdown(), nil
}
