package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

// application is what bench/programs/apps.c and apps_go run by evenkeel and by MPI.
type application struct{ title, name string }

var applications = []application{
	{"GUPS, M updates/s", "gups"},
	{"hash table, M operations/s", "hash"},
	{"stencil, M cells/s", "stencil"},
	{"sample sort, M keys/s", "sort"},
}

// measureApps measures whole applications over global shared memory and shared objects in C and Go, each beside the same
// over MPI, and in C beside what the processor has.
func measureApps(ctx context.Context, b bench) (string, error) {
	inC := job{2, []string{filepath.Join(b.build, "bench", "apps"), "3"}}
	inGo := job{2, []string{filepath.Join(b.build, "bench", "apps_go"), "3"}}
	// MPI's calls beside ours are not to be recorded.
	quiet := variant{name: "apps", env: []string{"EVENKEEL_ENABLE=0"}}
	random := rand.New(rand.NewSource(b.seed))
	taken := appFigures{figures: map[string][]float64{}, sums: map[string]string{}}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: apps, round %d of %d\n", round+1, b.rounds)
		jobs, prefixes := []job{inC, inGo}, []string{"c.", "go."}
		for _, i := range random.Perm(len(jobs)) {
			printed, _, err := b.launcher.run(ctx, quiet, jobs[i])
			if err != nil {
				return "", err
			}
			if err := taken.add(prefixes[i], printed); err != nil {
				return "", err
			}
		}
	}
	shown, err := taken.table()
	if err != nil {
		return "", err
	}
	return shown + fmt.Sprintf("\n\nMedian (first–third quartile) of %d rounds, in each of which both programs run once, in shuffled "+
		"order (seed %d); within a run the ways take turns, and ratios are of the same run. Each result is compared with a "+
		"sequential program's, and the checksums of all runs are the same. Commands: `%s`, `%s`, with EVENKEEL_ENABLE=0; made by `%s`.\n\n%s",
		b.rounds, b.seed, inC, inGo, b.command("apps"), b.machine), nil
}

// appFigures are the rates of each application and way, and the checksum of each application.
type appFigures struct {
	figures map[string][]float64
	sums    map[string]string
}

// add adds what a program printed: application.way, rate and checksum a line.
func (f appFigures) add(prefix, printed string) error {
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return errors.Errorf("expected a name, a figure and a checksum, but the program printed %q", line)
		}
		figure, err := parseFigure(fields[1])
		if err != nil {
			return errors.WithMessagef(err, "in %q", line)
		}
		name, _, _ := strings.Cut(fields[0], ".")
		if sum, known := f.sums[name]; known && sum != fields[2] {
			return errors.Errorf("%s%s came to %s, and to %s before", prefix, fields[0], fields[2], sum)
		}
		f.sums[name] = fields[2]
		f.figures[prefix+fields[0]] = append(f.figures[prefix+fields[0]], figure)
	}
	return nil
}

func (f appFigures) table() (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "evenkeel, C", "MPI, C", "faster", "direct, C", "of that speed", "evenkeel, Go", "MPI, Go", "faster"})
	for _, a := range applications {
		row := table.Row{a.title}
		for _, of := range []struct{ program, beside string }{{"c.", ".mpi"}, {"c.", ".direct"}, {"go.", ".mpi"}} {
			ours, other := f.figures[of.program+a.name+".ours"], f.figures[of.program+a.name+of.beside]
			if len(ours) != len(other) {
				return "", errors.Errorf("%s%s was measured %d and %d times", of.program, a.name, len(ours), len(other))
			}
			ratios := make([]float64, len(ours))
			for i := range ours {
				ratios[i] = ours[i] / other[i]
			}
			columns := [][]float64{ours, other, ratios}
			if of.beside == ".direct" {
				columns = columns[1:] // ours is there
			}
			for _, figures := range columns {
				s, err := summarise(figures)
				if err != nil {
					return "", errors.WithMessagef(err, "%s%s", of.program, a.name)
				}
				row = append(row, s.format("%.2f"))
			}
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}
