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

// remoteWay is an operation that bench/programs/gsm.c and gsm_go measure.
type remoteWay struct {
	title, name string
	rate        bool // the figure is GB/s, not ns
	inGo        bool // Go has it too
}

var remoteWays = []remoteWay{
	{"PUT, 8 bytes, ns", "put", false, true},
	{"GET, 8 bytes, ns", "get", false, true},
	{"FETCH-AND-ADD, ns", "add", false, true},
	{"COMPARE-AND-SWAP, ns", "cas", false, true},
	{"PUT, 1 MiB, GB/s", "large", true, true},
	{"strided PUT, 4096 blocks of 8 bytes every 16, GB/s", "strided", true, false},
}

// measureGsm measures global shared memory on a node from C and Go, beside Open MPI's one-sided calls and the same loops
// without a check.
func measureGsm(ctx context.Context, b bench) (string, error) {
	inC, inGo := job{2, []string{filepath.Join(b.build, "bench", "gsm"), "3"}}, job{2, []string{filepath.Join(b.build, "bench", "gsm_go"), "3"}}
	// The calls of Open MPI beside ours are not to be recorded.
	quiet := variant{name: "gsm", env: []string{"EVENKEEL_ENABLE=0"}}
	random := rand.New(rand.NewSource(b.seed))
	taken := map[string][]float64{}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: gsm, round %d of %d\n", round+1, b.rounds)
		jobs, prefixes := []job{inC, inGo}, []string{"c.", "go."}
		for _, i := range random.Perm(len(jobs)) {
			printed, _, err := b.launcher.run(ctx, quiet, jobs[i])
			if err != nil {
				return "", err
			}
			if err := addFigures(taken, prefixes[i], printed); err != nil {
				return "", err
			}
		}
	}
	return gsmText(taken, b, []string{"`" + inC.String() + "`", "`" + inGo.String() + "`"})
}

// addFigures adds what a program printed.
func addFigures(taken map[string][]float64, prefix, printed string) error {
	printedFigures, err := parseFigures(printed)
	for name, figure := range printedFigures {
		taken[prefix+name] = append(taken[prefix+name], figure)
	}
	return err
}

func gsmText(taken map[string][]float64, b bench, commands []string) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "evenkeel, C", "Open MPI and flush", "faster", "no check, C", "of that speed", "evenkeel, Go", "no check, Go"})
	for _, w := range remoteWays {
		row, err := gsmRow(w, taken)
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
	}
	trip, err := summarise(taken["c.pingpong"])
	if err != nil {
		return "", err
	}
	return t.RenderMarkdown() + fmt.Sprintf("\n\nIn the same runs 8 bytes by MPI_Send and MPI_Recv took %s ns, half a round trip.\n\n", trip.format("%.0f")) +
		fmt.Sprintf("Median (first–third quartile) of %d rounds, in each of which both programs run once, in shuffled order (seed %d); within "+
			"a run all ways take turns, and ratios are of the same run. Commands: %s, with EVENKEEL_ENABLE=0; made by `%s`.\n\n%s",
			b.rounds, b.seed, strings.Join(commands, ", "), b.command("gsm"), b.machine), nil
}

// gsmRow compares one operation within the runs.
func gsmRow(w remoteWay, taken map[string][]float64) (table.Row, error) {
	verb := "%.2f"
	if w.rate {
		verb = "%.1f"
	}
	ours, mpi, raw := taken["c."+w.name+".ours"], taken["c."+w.name+".mpi"], taken["c."+w.name+".raw"]
	if len(mpi) != len(ours) || len(raw) != len(ours) {
		return nil, errors.Errorf("%s was measured %d, %d and %d times", w.name, len(ours), len(mpi), len(raw))
	}
	faster, share := make([]float64, len(ours)), make([]float64, len(ours))
	for i := range ours {
		if faster[i], share[i] = mpi[i]/ours[i], raw[i]/ours[i]; w.rate {
			faster[i], share[i] = 1/faster[i], 1/share[i]
		}
	}
	row := table.Row{w.title}
	for _, column := range []struct {
		figures []float64
		verb    string
	}{{ours, verb}, {mpi, verb}, {faster, "%.2f"}, {raw, verb}, {share, "%.2f"},
		{taken["go."+w.name+".ours"], verb}, {taken["go."+w.name+".raw"], verb}} {
		if len(column.figures) == 0 && !w.inGo {
			row = append(row, "")
			continue
		}
		s, err := summarise(column.figures)
		if err != nil {
			return nil, err
		}
		row = append(row, s.format(column.verb))
	}
	return row, nil
}
