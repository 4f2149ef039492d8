package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/pgas/dgsp"
)

// stridedFigures are those of bench/programs/strided.c, and of the same layouts from Go.
type stridedFigures struct {
	layouts []layoutFigures
	fromGo  []float64 // ns
}

// Places of the figures that bench/programs/strided.c prints.
const stridedCopy, stridedHand, stridedProgram, stridedPut = 0, 1, 2, 3

// measureDGSP measures how fast blocks at equal steps are written into another rank's memory, and how
// long programs are.
func measureDGSP(ctx context.Context, b bench) (string, error) {
	j := job{2, []string{filepath.Join(b.build, "bench", "strided")}}
	shared, err := sharedMemory(16 << 20)
	if err != nil {
		return "", err
	}
	defer unix.Munmap(shared)
	var runs []stridedFigures
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: %s, round %d of %d\n", j, round+1, b.rounds)
		printed, _, err := b.launcher.run(ctx, alone, j)
		if err != nil {
			return "", err
		}
		f := stridedFigures{}
		if f.layouts, err = parseLayouts(printed, 4); err != nil {
			return "", err
		}
		for _, l := range f.layouts {
			taken, err := scatterFromGo(shared, l)
			if err != nil {
				return "", err
			}
			f.fromGo = append(f.fromGo, taken)
		}
		runs = append(runs, f)
	}
	speeds, err := stridedTable(runs)
	if err != nil {
		return "", err
	}
	sizes, err := programSizes()
	if err != nil {
		return "", err
	}
	return speeds + "\n\n" + fmt.Sprintf("Medians (first–third quartile) of %d runs, in each of which the ways of C take turns and Go follows. "+
		"Command: `%s`; made by `%s`.\n\n%s\n\nWhat travels ahead of the data:\n\n", b.rounds, j, b.command("dgsp"), b.machine) + sizes, nil
}

// sharedMemory is mapped as that of another task is.
func sharedMemory(bytes int) ([]byte, error) {
	file, err := unix.MemfdCreate("evenkeel-bench", 0)
	if err != nil {
		return nil, errors.Wrap(err, "memory to share")
	}
	defer unix.Close(file)
	if err := unix.Ftruncate(file, int64(bytes)); err != nil {
		return nil, errors.Wrap(err, "memory to share")
	}
	memory, err := unix.Mmap(file, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Wrap(err, "memory to share")
	}
	for i := range memory {
		memory[i] = 1 // its pages are there
	}
	return memory, nil
}

// scatterFromGo takes the median of some turns, in ns.
func scatterFromGo(shared []byte, l layoutFigures) (float64, error) {
	const turns = 15
	var width, stride int
	if _, err := fmt.Sscanf(l.name, "%d of %d bytes", &width, &stride); err != nil {
		return 0, errors.Wrapf(err, "the layout in %q", l.name)
	}
	program, err := dgsp.Compile(dgsp.Strided(l.bytes/width, width, stride))
	if err != nil {
		return 0, err
	}
	data := make([]byte, l.bytes)
	times := 4 << 20 / l.bytes
	var taken []float64
	for turn := range turns + 1 {
		begin := time.Now()
		for range times {
			if err := program.Scatter(shared, 0, data, 0); err != nil {
				return 0, err
			}
		}
		if turn > 0 {
			taken = append(taken, float64(time.Since(begin).Nanoseconds())/float64(times))
		}
	}
	slices.Sort(taken)
	return taken[turns/2], nil
}

func stridedTable(runs []stridedFigures) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"GB/s", "memcpy, no gaps", "loop by hand", "program, from C", "program, from Go", "MPI_Put and flush", "program : MPI_Put"})
	for i, l := range runs[0].layouts {
		if len(l.figures) != 4 {
			return "", errors.Errorf("%d figures of %q", len(l.figures), l.name)
		}
		of := func(at func(stridedFigures) float64) (string, error) {
			var all []float64
			for _, r := range runs {
				all = append(all, at(r))
			}
			s, err := summarise(all)
			return s.format("%.1f"), err
		}
		speed := func(at int) func(stridedFigures) float64 {
			return func(r stridedFigures) float64 { return float64(l.bytes) / r.layouts[i].figures[at] }
		}
		row := table.Row{l.name}
		for _, at := range []func(stridedFigures) float64{
			speed(stridedCopy), speed(stridedHand), speed(stridedProgram),
			func(r stridedFigures) float64 { return float64(l.bytes) / r.fromGo[i] },
			speed(stridedPut),
			func(r stridedFigures) float64 {
				return r.layouts[i].figures[stridedPut] / r.layouts[i].figures[stridedProgram]
			},
		} {
			shown, err := of(at)
			if err != nil {
				return "", err
			}
			row = append(row, shown)
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}

// programSizes shows how programs grow with what they describe.
func programSizes() (string, error) {
	irregular := func(n int) dgsp.Layout {
		at := make([]int, n)
		for i, place := 0, 0; i < n; i++ {
			at[i] = place
			place += 8 * (2 + i*i%7)
		}
		return dgsp.IndexedOf(dgsp.Block(8), at)
	}
	record := dgsp.Struct(dgsp.Field{At: 0, Layout: dgsp.Block(4)}, dgsp.Field{At: 8, Layout: dgsp.Block(8)})
	t := table.NewWriter()
	t.AppendHeader(table.Row{"layout", "blocks", "bytes on the way", "bytes of memory"})
	for _, c := range []struct {
		name string
		of   func(n int) dgsp.Layout
	}{
		{"8 of 16 bytes", func(n int) dgsp.Layout { return dgsp.Strided(n, 8, 16) }},
		{"records of 4 and 8 bytes", func(n int) dgsp.Layout { return dgsp.Repeat(record, n/2, 24) }},
		{"three dimensions of 8 of 16 bytes", func(n int) dgsp.Layout {
			return dgsp.Repeat(dgsp.Repeat(dgsp.Strided(n/100, 8, 16), 10, 1<<20), 10, 1<<30)
		}},
		{"listed places", irregular},
	} {
		for _, n := range []int{1000, 1000000} {
			p, err := dgsp.Compile(c.of(n))
			if err != nil {
				return "", err
			}
			t.AppendRow(table.Row{c.name, n, len(p.Wire()), p.Memory() - len(p.Wire())})
		}
	}
	return strings.TrimSpace(t.RenderMarkdown()), nil
}
