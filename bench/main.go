// Package main measures what evenkeel costs a program, beside what any preload
// library costs, and prints it as Markdown.
//
//	make bench                          # build everything, measure, rewrite the document
//	go run ./bench -rounds 15 -seed 1   # measure and print
//
// Each variant (a library that does nothing, one that reads the clock,
// evenkeel) runs in pairs with the program alone, the two right after each
// other and all in an order that the seed shuffles, so that changes of the
// machine meet them alike. Figures are medians with the quartiles; a ratio is
// the median of the ratios within the pairs. What is short is compared within a
// run as well, in turns: see turns.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pkg/errors"
)

type options struct {
	rounds   int
	seed     int64
	build    string
	python   string
	document string
	write    bool
	only     string
	nice     int
}

func parseOptions() options {
	var o options
	flag.IntVar(&o.rounds, "rounds", 15, "rounds, in each of which every variant runs once, with the program alone before or after it")
	flag.Int64Var(&o.seed, "seed", 1, "seed of the order of the runs")
	flag.StringVar(&o.build, "build", "build", "directory that `make` built into")
	flag.StringVar(&o.python, "python", "/usr/bin/python3", "a Python with mpi4py and numpy")
	flag.StringVar(&o.document, "document", "docs/benchmarks.md", "document whose marked sections -write rewrites")
	flag.BoolVar(&o.write, "write", false, "rewrite the marked sections of the document")
	flag.StringVar(&o.only, "only", "", "measure only this section: "+sectionNames())
	flag.IntVar(&o.nice, "nice", 0, "niceness of the ranks; -20, which root may, helps on a machine that others use")
	flag.Parse()
	return o
}

func main() {
	o := parseOptions()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// section is a part of the document and how its text is made.
type section struct {
	name    string
	measure func(context.Context, bench) (string, error)
}

var sections = []section{
	{"cost", measureCost},
	{"barrier", measureBarrier},
	{"shadow", measureShadow},
	{"datatype", measureDatatype},
	{"svd", measureSVD},
	{"gsm", measureGsm},
	{"idle-wait", measureWaiting},
	{"idle-short", measureShort},
	{"idle-crowd", measureCrowd},
	{"idle-run", measureGuest},
	{"idle-lend", measureLending},
	{"dgsp", measureDGSP},
	{"balance", measureBalance},
	{"shared", measureShared},
	{"apps", measureApps},
	{"fabric", measureFabric},
	{"programs", measurePrograms},
	{"balance-decision", measureDecision},
	{"balance-simulated", simulateBalance},
}

func sectionNames() string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func run(ctx context.Context, o options) error {
	b, err := prepare(o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.launcher.directory)
	found := false
	for _, s := range sections {
		if o.only != "" && o.only != s.name {
			continue
		}
		found = true
		text, err := s.measure(ctx, b)
		if err != nil {
			return errors.WithMessagef(err, "measuring %s", s.name)
		}
		fmt.Println(text)
		if o.write {
			if err := rewriteSection(o.document, s.name, text); err != nil {
				return err
			}
		}
	}
	if !found {
		return errors.Errorf("no section %q: -only takes %s", o.only, sectionNames())
	}
	return nil
}

// bench is what all sections need.
type bench struct {
	options
	launcher launcher
	variants []variant
	machine  string
}

// command is how to measure a section again.
func (o options) command(section string) string {
	words := fmt.Sprintf("go run ./bench -rounds %d -seed %d -only %s", o.rounds, o.seed, section)
	if o.nice != 0 {
		words += fmt.Sprintf(" -nice %d", o.nice)
	}
	return words
}

func prepare(o options) (bench, error) {
	if o.rounds < 1 {
		return bench{}, errors.Errorf("-rounds is %d, but at least one is needed", o.rounds)
	}
	build, err := filepath.Abs(o.build)
	if err != nil {
		return bench{}, errors.Wrap(err, "the build directory")
	}
	o.build = build
	variants, missing := builtVariants(build)
	for _, v := range missing {
		fmt.Fprintf(os.Stderr, "bench: %s is left out: %s is not there\n", v.name, v.preload)
	}
	if o.write && len(missing) > 0 {
		return bench{}, errors.New("-write needs all variants: run `make bench`")
	}
	machine, err := describeMachine()
	if err != nil {
		return bench{}, err
	}
	directory, err := os.MkdirTemp("", "evenkeel-bench-")
	if err != nil {
		return bench{}, errors.Wrap(err, "a directory for what the programs write")
	}
	return bench{
		options:  o,
		launcher: launcher{mpirun: "mpirun", directory: directory, nice: o.nice},
		variants: variants,
		machine:  machine,
	}, nil
}
