package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

// layoutFigures are the nanoseconds of one layout in one run, by what was done.
type layoutFigures struct {
	name    string
	bytes   int
	figures []float64
}

// parseLayouts reads lines of name|bytes|figure|figure...
func parseLayouts(printed string, count int) ([]layoutFigures, error) {
	var all []layoutFigures
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		fields := strings.Split(line, "|")
		if len(fields) != 2+count {
			return nil, errors.Errorf("expected a name, bytes and %d figures, but the program printed %q", count, line)
		}
		l := layoutFigures{name: fields[0]}
		var err error
		if l.bytes, err = strconv.Atoi(fields[1]); err != nil {
			return nil, errors.Wrapf(err, "the bytes in %q", line)
		}
		for _, field := range fields[2:] {
			figure, err := parseFigure(field)
			if err != nil {
				return nil, errors.WithMessagef(err, "in %q", line)
			}
			l.figures = append(l.figures, figure)
		}
		all = append(all, l)
	}
	return all, nil
}

// layoutRun is a run of the program with evenkeel and one without, right after
// each other.
type layoutRun struct {
	alone, under []layoutFigures
}

// layoutPairs are figure `at` of layout `i` in all runs.
func layoutPairs(runs []layoutRun, i, at int) []pair {
	var pairs []pair
	for _, r := range runs {
		pairs = append(pairs, pair{under: r.under[i].figures[at], alone: r.alone[i].figures[at]})
	}
	return pairs
}

// gain is how many times faster it is with evenkeel.
func (p pair) gain() float64 { return p.alone / p.under }

func takeLayouts(ctx context.Context, b bench, j job, count int) ([]layoutRun, error) {
	under := variant{name: evenkeelName, preload: filepath.Join(b.build, "lib", "libevenkeel.so"),
		env: []string{"EVENKEEL_FAST=datatype", "EVENKEEL_SUMMARY=0"}}
	random := rand.New(rand.NewSource(b.seed))
	once := func(v variant) ([]layoutFigures, error) {
		printed, _, err := b.launcher.run(ctx, v, j)
		if err != nil {
			return nil, err
		}
		return parseLayouts(printed, count)
	}
	var runs []layoutRun
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: %s, round %d of %d\n", j, round+1, b.rounds)
		var r layoutRun
		var err error
		order := []struct {
			v    variant
			into *[]layoutFigures
		}{{alone, &r.alone}, {under, &r.under}}
		if random.Intn(2) == 0 {
			order[0], order[1] = order[1], order[0]
		}
		for _, o := range order {
			if *o.into, err = once(o.v); err != nil {
				return nil, err
			}
		}
		if len(r.alone) != len(r.under) {
			return nil, errors.Errorf("%d layouts without evenkeel, %d with it", len(r.alone), len(r.under))
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// Places of the figures that bench/programs/datatype.c prints.
const (
	handPack, mpiPack, handUnpack, mpiUnpack = 0, 1, 2, 3
	sendOne, sendBoth                        = 0, 1
)

// measureDatatype measures derived datatypes with evenkeel's way of copying
// them and with Open MPI's.
func measureDatatype(ctx context.Context, b bench) (string, error) {
	program := filepath.Join(b.build, "bench", "datatype")
	pack, send := job{1, []string{program, "pack"}}, job{2, []string{program, "send"}}
	packed, err := takeLayouts(ctx, b, pack, 4)
	if err != nil {
		return "", err
	}
	sent, err := takeLayouts(ctx, b, send, 2)
	if err != nil {
		return "", err
	}
	packTable, err := layoutTable(packed, []string{"MPI_Pack", "MPI_Unpack"}, []int{mpiPack, mpiUnpack}, []int{handPack, handUnpack})
	if err != nil {
		return "", err
	}
	sendTable, err := layoutTable(sent, []string{"derived at the sender", "derived at both"}, []int{sendOne, sendBoth}, nil)
	if err != nil {
		return "", err
	}
	return packTable + "\n\nA ping-pong of two ranks on one node, one way:\n\n" + sendTable + "\n\n" +
		fmt.Sprintf("Times in µs: medians over %d pairs of runs, one with evenkeel and one without right before or after it; "+
			"× are medians (first–third quartile) of the ratios within the pairs, above 1 if evenkeel is faster. "+
			"Commands: `%s`, `%s`; made by `%s`.\n\n%s", b.rounds, pack, send, b.command("datatype"), b.machine), nil
}

// layoutTable has, for each layout and each of the operations, what Open MPI and
// evenkeel took, how many times faster evenkeel is, and where there is a
// hand-written loop (in evenkeel's run), what share of its speed that is.
func layoutTable(runs []layoutRun, operations []string, mpi, hand []int) (string, error) {
	t := table.NewWriter()
	header := table.Row{"layout", "bytes"}
	for _, operation := range operations {
		header = append(header, operation+", Open MPI", "evenkeel", "× Open MPI")
		if hand != nil {
			header = append(header, "by hand", "× by hand")
		}
	}
	t.AppendHeader(header)
	for i, l := range runs[0].alone {
		row := table.Row{l.name, l.bytes}
		for k := range operations {
			pairs := layoutPairs(runs, i, mpi[k])
			figures := [][]float64{each(pairs, aloneOf), each(pairs, underOf), each(pairs, pair.gain)}
			verbs := []string{"µs", "µs", ""}
			if hand != nil {
				var loops []pair
				for _, r := range runs {
					loops = append(loops, pair{under: r.under[i].figures[mpi[k]], alone: r.under[i].figures[hand[k]]})
				}
				figures = append(figures, each(loops, aloneOf), each(loops, pair.gain))
				verbs = append(verbs, "µs", "")
			}
			for n, f := range figures {
				s, err := summarise(f)
				if err != nil {
					return "", err
				}
				if verbs[n] == "" {
					row = append(row, s.format("%.2f"))
				} else {
					row = append(row, fmt.Sprintf("%.4g", s.median/1000))
				}
			}
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}
