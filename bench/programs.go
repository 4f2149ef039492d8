package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

//go:embed programs/hpccinf.txt
var hpccInput []byte

// program is a real program whose wall time is measured.
type program struct {
	name string
	job  job
}

// programs need the root of the repository as working directory. HPCC finds
// its input in the directory in which it runs.
func programs(b bench) ([]program, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, errors.Wrap(err, "the working directory")
	}
	if err := os.WriteFile(filepath.Join(b.launcher.directory, "hpccinf.txt"), hpccInput, 0o600); err != nil {
		return nil, errors.Wrap(err, "the input of HPCC")
	}
	lammps := func(input string) []string {
		return []string{"lmp", "-log", "none", "-in", filepath.Join(root, "tests", "programs", input)}
	}
	return []program{
		{"LAMMPS, atoms everywhere", job{2, lammps("lammps_balanced.in")}},
		{"LAMMPS, atoms in one corner", job{2, lammps("lammps_corner.in")}},
		{"HPCC", job{2, []string{"hpcc"}}},
		{"mpi4py, k-means", job{2, []string{b.python, filepath.Join(root, "examples", "kmeans.py"), "400"}}},
	}, nil
}

// again is the program without any library in evenkeel's place: what the machine
// alone makes of a ratio.
var again = variant{name: "no library again"}

// measurePrograms measures the wall time of real programs with evenkeel and
// without any library.
func measurePrograms(ctx context.Context, b bench) (string, error) {
	b.variants = slices.DeleteFunc(slices.Clone(b.variants), func(v variant) bool { return v.name != evenkeelName })
	if len(b.variants) == 0 {
		return "", errors.New("evenkeel is not built: run `make`, or measure with -only cost")
	}
	b.variants = append(b.variants, again)
	all, err := programs(b)
	if err != nil {
		return "", err
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"program", "alone, s", "under evenkeel, s", "ratio", "ratio of two runs alone"})
	var commands []string
	for _, p := range all {
		taken, err := takePairs(ctx, p.name, b, func(ctx context.Context, v variant) (float64, error) {
			_, wall, err := b.launcher.run(ctx, v, p.job)
			return wall.Seconds(), err
		})
		if err != nil {
			return "", err
		}
		row, err := programRow(p.name, taken[evenkeelName], taken[again.name])
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
		commands = append(commands, "`"+p.job.String()+"`")
	}
	return t.RenderMarkdown() + "\n\nWall time of mpirun. " + b.provenance("programs", commands), nil
}

func programRow(name string, pairs, control []pair) (table.Row, error) {
	row := table.Row{name}
	for _, figures := range [][]float64{each(pairs, aloneOf), each(pairs, underOf), each(pairs, pair.ratio), each(control, pair.ratio)} {
		figure, err := summarise(figures)
		if err != nil {
			return nil, err
		}
		row = append(row, figure.format("%.3f"))
	}
	return row, nil
}
