package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// shadowVariants are evenkeel without shadow buffers and with them, and, where it
// can, the program that does by itself what must be done at least.
func shadowVariants(build string, limited bool) []variant {
	library := filepath.Join(build, "lib", "libevenkeel.so")
	variants := []variant{
		{name: "none", preload: library, env: []string{"EVENKEEL_FAST=none", "EVENKEEL_SUMMARY=0"}},
		{name: "shadow", preload: library, env: []string{"EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0"}},
	}
	if limited {
		variants = append(variants, variant{name: "limit"})
	}
	return variants
}

// shadowCase is a way to call bench/programs/shadow.c.
type shadowCase struct {
	title   string
	command string
	limited bool // the program knows how to show its limit
	inTurns bool // it compares within the run, as its batches take turns
}

var shadowCases = []shadowCase{
	{"busy receiver, 1000 × 8 B", "burst 8 1000", true, false},
	{"busy receiver, 1 × 1 KiB", "burst 1024 1", true, false},
	{"busy receiver, 1000 × 1 KiB", "burst 1024 1000", true, false},
	{"busy receiver, 500 × 4000 B", "burst 4000 500", true, false},
	{"busy receiver, 64 × 32 KiB", "burst 32768 64", true, false},
	{"TCP, busy receiver, 1000 × 1 KiB", "burst 1024 1000 tcp", true, false},
	{"TCP, busy receiver, 64 × 32 KiB", "burst 32768 64 tcp", true, false},
	{"halo exchange of 2 KiB, late in turn, a step", "halo 2048 100", false, false},
	{"ping-pong, 8 B", "pingpong 8 200000", false, true},
	{"ping-pong, 1 KiB", "pingpong 1024 100000", false, true},
	{"ping-pong, 32 KiB", "pingpong 32768 20000", false, true},
	{"stream, 8 B", "stream 8 1000000", false, true},
	{"stream, 1 KiB", "stream 1024 400000", false, true},
	{"stream, 32 KiB", "stream 32768 20000", false, true},
}

// measureShadow measures small sends with and without shadow buffers.
func measureShadow(ctx context.Context, b bench) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"µs a message", "Open MPI alone", "EVENKEEL_FAST=none", "ratio of runs", "in turns",
		"EVENKEEL_FAST=shadow", "ratio of runs", "in turns", "copy and MPI_Isend"})
	for _, c := range shadowCases {
		b.variants = shadowVariants(b.build, c.limited)
		taken, err := c.measure(ctx, b)
		if err != nil {
			return "", err
		}
		row, err := shadowRow(c, taken)
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown() + "\n\n" + b.provenance("shadow", []string{"`mpirun -np 2 --bind-to core shadow burst 1024 1000` and so on"}), nil
}

// run returns what the program prints.
func (c shadowCase) run(ctx context.Context, b bench, v variant) (string, error) {
	command := append([]string{filepath.Join(b.build, "bench", "shadow")}, strings.Fields(c.command)...)
	if v.name == "limit" {
		command = append(command, "limit")
	}
	printed, _, err := b.launcher.run(ctx, v, job{2, command})
	return printed, err
}

// measure returns nanoseconds of the runs, and ratios within them where ways take
// turns.
func (c shadowCase) measure(ctx context.Context, b bench) (probed, error) {
	if c.inTurns {
		return takeTurns(ctx, c.title, b, pair.ratio, c.run)
	}
	runs, err := takePairs(ctx, c.title, b, func(ctx context.Context, v variant) (float64, error) {
		printed, err := c.run(ctx, b, v)
		if err != nil {
			return 0, err
		}
		return parseFigure(printed)
	})
	return probed{runs: runs}, err
}

func shadowRow(c shadowCase, taken probed) (table.Row, error) {
	var unloaded []float64
	for _, name := range []string{"none", "shadow"} {
		unloaded = append(unloaded, each(taken.runs[name], aloneOf)...)
	}
	row := table.Row{c.title}
	columns := []struct {
		figures []float64
		scale   float64
		verb    string
	}{
		{unloaded, 1e-3, "%.3f"},
		{each(taken.runs["none"], underOf), 1e-3, "%.3f"},
		{each(taken.runs["none"], pair.ratio), 1, "%.3f"}, {taken.compared["none"], 1, "%.3f"},
		{each(taken.runs["shadow"], underOf), 1e-3, "%.3f"},
		{each(taken.runs["shadow"], pair.ratio), 1, "%.4f"}, {taken.compared["shadow"], 1, "%.3f"},
		{each(taken.runs["limit"], underOf), 1e-3, "%.3f"},
	}
	for _, column := range columns {
		if len(column.figures) == 0 { // there are no turns, or no limit to show
			row = append(row, "")
			continue
		}
		s, err := summarise(column.figures)
		if err != nil {
			return nil, err
		}
		s = summary{s.median * column.scale, s.first * column.scale, s.last * column.scale}
		row = append(row, s.format(column.verb))
	}
	return row, nil
}
