package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

// computation is an example whose work can be balanced: in the arguments WAY stands
// for what the partition is to do. Of fixed splits that are tried, the one with the least
// time shows what the machine allows.
type computation struct {
	title   string
	command string
	ways    []string // the first one stays even
	splits  []string
}

var computations = []computation{
	{"particles, a quarter of them crowded (C)", "galaxy 60 WAY", []string{"even", "balanced"}, nil},
	{"matrix–vector products, skewed rows (C)", "spmv 150 WAY", []string{"even", "balanced"}, []string{"2200", "2600", "3000", "3400", "3800"}},
	{"stencil, a costly region (Fortran)", "plate 100 WAY", []string{"even", "balanced"}, []string{"276", "284", "292", "300", "308"}},
	{"fractal, a zoom: drifting work (Go)", "fractal -frames 20 -way WAY", []string{"even", "balanced", "split"}, nil},
	{"particles, none crowded: balanced already (C)", "galaxy 400 WAY flat", []string{"even", "balanced"}, nil},
}

const bestSplit = "best fixed split"

// computed is what a run of a computation printed.
type computed struct {
	time, ideal, settled, imbalance float64
	checksum                        string
}

func parseComputed(printed string) (c computed, err error) {
	for line := range strings.Lines(printed) {
		if sum, found := strings.CutPrefix(line, "checksum "); found {
			c.checksum = strings.TrimSpace(sum)
		}
		if strings.HasPrefix(line, "time ") {
			if _, err = fmt.Sscanf(line, "time %f ideal %f settled %f imbalance %f", &c.time, &c.ideal, &c.settled, &c.imbalance); err != nil {
				return c, errors.Wrapf(err, "the line %q", line)
			}
		}
	}
	if c.checksum == "" || c.time == 0 {
		return c, errors.Errorf("no time and checksum in %q", printed)
	}
	return c, nil
}

// measureBalance measures computations with partitions that stay even and with
// partitions that resize.
func measureBalance(ctx context.Context, b bench) (string, error) {
	random := rand.New(rand.NewSource(b.seed))
	t := table.NewWriter()
	t.AppendHeader(table.Row{"2 ranks on 2 cores", "", "even, s", "s", "even / this", "even / ideal", "this / ideal", "longest / mean, second half", "cycles until within 5 % of ideal"})
	for _, c := range computations {
		rows, err := c.rows(ctx, b, random)
		if err != nil {
			return "", err
		}
		t.AppendRows(rows)
	}
	competing, err := measureCompeting(ctx, b, random)
	if err != nil {
		return "", err
	}
	return t.RenderMarkdown() + "\n\n" + competing + "\n\n" +
		b.provenance("balance", []string{"`mpirun -np 2 --bind-to core galaxy 60 balanced` and so on, `… compete`"}), nil
}

// rows measures one computation in rounds, in each of which all ways take their turn.
func (c computation) rows(ctx context.Context, b bench, random *rand.Rand) ([]table.Row, error) {
	taken := map[string][]computed{}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: balance, %s, round %d of %d\n", c.title, round+1, b.rounds)
		tried := append(slices.Clone(c.ways), c.splits...)
		for _, i := range random.Perm(len(tried)) {
			printed, err := b.balanceOnce(ctx, "examples", strings.Replace(c.command, "WAY", tried[i], 1))
			if err != nil {
				return nil, err
			}
			one, err := parseComputed(printed)
			if err != nil {
				return nil, err
			}
			way := tried[i]
			if i >= len(c.ways) {
				way = bestSplit
			}
			switch {
			case len(taken[way]) == round:
				taken[way] = append(taken[way], one)
			case one.time < taken[way][round].time:
				taken[way][round] = one
			}
		}
	}
	ways := c.ways[1:]
	if len(c.splits) > 0 {
		ways = append(slices.Clone(ways), bestSplit)
	}
	var rows []table.Row
	for _, way := range ways {
		var even, here, ratio, evenOfIdeal, ofIdeal, imbalance, settled []float64
		for i, one := range taken[way] {
			static := taken[c.ways[0]][i]
			if one.checksum != static.checksum {
				return nil, errors.Errorf("%s: the checksum is %s when it is %s, and %s when it stays even", c.title, one.checksum, way, static.checksum)
			}
			even, here, ratio = append(even, static.time), append(here, one.time), append(ratio, static.time/one.time)
			evenOfIdeal = append(evenOfIdeal, static.time/static.ideal)
			ofIdeal, imbalance, settled = append(ofIdeal, one.time/one.ideal), append(imbalance, one.imbalance), append(settled, one.settled)
		}
		row, err := formatted(table.Row{c.title, way}, []string{"%.3f", "%.3f", "%.3f", "%.3f", "%.3f", "%.3f", "%.0f"}, even, here, ratio, evenOfIdeal, ofIdeal, imbalance, settled)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// formatted appends the summaries of figures to a row.
func formatted(row table.Row, verbs []string, figures ...[]float64) (table.Row, error) {
	for i, f := range figures {
		s, err := summarise(f)
		if err != nil {
			return nil, err
		}
		row = append(row, s.format(verbs[i]))
	}
	return row, nil
}

// balanceOnce runs a program that is linked to evenkeel.
func (b bench) balanceOnce(ctx context.Context, folder, command string) (string, error) {
	words := strings.Fields(command)
	words[0] = filepath.Join(b.build, folder, words[0])
	v := variant{name: "evenkeel", preload: filepath.Join(b.build, "lib", "libevenkeel.so"), env: []string{"EVENKEEL_SUMMARY=0"}}
	printed, _, err := b.launcher.run(ctx, v, job{2, words})
	return printed, err
}

// measureCompeting measures what a process does that takes a core for a while.
func measureCompeting(ctx context.Context, b bench, random *rand.Rand) (string, error) {
	ways := []string{"even", "balanced", "told"}
	figures := map[string]*[5][]float64{"even": {}, "balanced": {}, "told": {}}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: balance, a competing process, round %d of %d\n", round+1, b.rounds)
		for _, i := range random.Perm(len(ways)) {
			printed, err := b.balanceOnce(ctx, "bench", "compete "+ways[i])
			if err != nil {
				return "", err
			}
			var f [5]float64
			if _, err := fmt.Sscanf(printed, "seconds %f %f %f recovery %f %f", &f[0], &f[1], &f[2], &f[3], &f[4]); err != nil {
				return "", errors.Wrapf(err, "what compete printed: %q", printed)
			}
			for k := range f {
				figures[ways[i]][k] = append(figures[ways[i]][k], f[k])
			}
		}
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"another process on one core for a while", "15 cycles before, s", "while it runs, s", "after it, s", "cycles to recover from its start", "and from its end"})
	for _, way := range ways {
		f := figures[way]
		row, err := formatted(table.Row{way}, []string{"%.3f", "%.3f", "%.3f", "%.0f", "%.0f"}, f[0], f[1], f[2], f[3], f[4])
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}
