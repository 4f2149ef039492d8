package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// shadowVariants are evenkeel without shadow buffers and with them, and the
// program that does by itself what must be done at least.
func shadowVariants(build string) []variant {
	library := filepath.Join(build, "lib", "libevenkeel.so")
	return []variant{
		{name: "none", preload: library, env: []string{"EVENKEEL_FAST=none", "EVENKEEL_SUMMARY=0"}},
		{name: "shadow", preload: library, env: []string{"EVENKEEL_FAST=shadow", "EVENKEEL_SUMMARY=0"}},
		{name: "limit"},
	}
}

// shadowCase is a way to call bench/programs/shadow.c.
type shadowCase struct {
	title   string
	command string
	limited bool // the program knows how to show its limit
}

var shadowCases = []shadowCase{
	{"busy receiver, 1000 × 8 B", "burst 8 1000", true},
	{"busy receiver, 1 × 1 KiB", "burst 1024 1", true},
	{"busy receiver, 1000 × 1 KiB", "burst 1024 1000", true},
	{"busy receiver, 500 × 4000 B", "burst 4000 500", true},
	{"busy receiver, 64 × 32 KiB", "burst 32768 64", true},
	{"TCP, busy receiver, 1000 × 1 KiB", "burst 1024 1000 tcp", true},
	{"TCP, busy receiver, 64 × 32 KiB", "burst 32768 64 tcp", true},
	{"halo exchange of 2 KiB, late in turn, a step", "halo 2048 100", false},
	{"ping-pong, 8 B", "pingpong 8 200000", false},
	{"ping-pong, 1 KiB", "pingpong 1024 100000", false},
	{"ping-pong, 32 KiB", "pingpong 32768 20000", false},
	{"stream, 8 B", "stream 8 1000000", false},
	{"stream, 1 KiB", "stream 1024 400000", false},
	{"stream, 32 KiB", "stream 32768 20000", false},
}

// measureShadow measures small sends with and without shadow buffers.
func measureShadow(ctx context.Context, b bench) (string, error) {
	b.variants = shadowVariants(b.build)
	t := table.NewWriter()
	t.AppendHeader(table.Row{"µs a message", "Open MPI alone", "EVENKEEL_FAST=none", "ratio", "EVENKEEL_FAST=shadow", "ratio", "copy and MPI_Isend"})
	for _, c := range shadowCases {
		taken, err := takePairs(ctx, c.title, b, func(ctx context.Context, v variant) (float64, error) {
			return b.shadowOnce(ctx, v, c)
		})
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

// shadowOnce is µs; where there is no limit to be shown, that variant is not run.
func (b bench) shadowOnce(ctx context.Context, v variant, c shadowCase) (float64, error) {
	command := append([]string{filepath.Join(b.build, "bench", "shadow")}, strings.Fields(c.command)...)
	if v.name == "limit" {
		if !c.limited {
			return 1, nil
		}
		command = append(command, "limit")
	}
	printed, _, err := b.launcher.run(ctx, v, job{2, command})
	if err != nil {
		return 0, err
	}
	ns, err := parseFigure(printed)
	return ns / 1000, err
}

func shadowRow(c shadowCase, taken map[string][]pair) (table.Row, error) {
	var unloaded []float64
	for _, name := range []string{"none", "shadow"} {
		unloaded = append(unloaded, each(taken[name], aloneOf)...)
	}
	row := table.Row{c.title}
	for _, column := range []struct {
		figures []float64
		verb    string
	}{
		{unloaded, "%.3f"},
		{each(taken["none"], underOf), "%.3f"}, {each(taken["none"], pair.ratio), "%.3f"},
		{each(taken["shadow"], underOf), "%.3f"}, {each(taken["shadow"], pair.ratio), "%.4f"},
		{each(taken["limit"], underOf), "%.3f"},
	} {
		figure, err := summarise(column.figures)
		if err != nil {
			return nil, err
		}
		row = append(row, figure.format(column.verb))
	}
	if !c.limited {
		row[len(row)-1] = ""
	}
	return row, nil
}
