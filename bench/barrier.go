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

	"evenkeel/tests/hosts"
)

// meeting is a place where ranks meet in barriers.
type meeting struct {
	title string
	ranks int
	hosts int // 0: this machine as it is
	count int // of barriers
}

var meetings = []meeting{
	{"2 ranks on 2 cores", 2, 0, 300000},
	{"4 ranks on 2 cores", 4, 0, 40000},
	{"8 ranks on 2 cores", 8, 0, 20000},
	{"2 hosts of 1 rank", 2, 2, 10000},
	{"2 hosts of 2 ranks", 4, 2, 5000},
}

func (m meeting) command(build string) []string {
	return []string{filepath.Join(build, "bench", "meet"), fmt.Sprint(m.count)}
}

// met is what one barrier took: nanoseconds, and of processor time on all ranks.
type met struct {
	time, processor float64
}

func timeOf(m met) float64      { return m.time }
func processorOf(m met) float64 { return m.processor }

// measureBarrier measures barriers under Open MPI alone and with evenkeel; and,
// in the same rounds, what a library that does nothing makes of them and the
// least that two processes need to meet.
func measureBarrier(ctx context.Context, b bench) (string, error) {
	random := rand.New(rand.NewSource(b.seed))
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "Open MPI, ns", "evenkeel, ns", "ratio", "Open MPI, ns of processor", "evenkeel, ns of processor", "ratio"})
	var limit string
	var commands []string
	for _, m := range meetings {
		taken, err := meet(ctx, b, m, random)
		if err != nil {
			return "", err
		}
		row, err := meetingRow(m, taken)
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
		if m.hosts == 0 {
			commands = append(commands, "`"+job{m.ranks, m.command(b.build)}.String()+"`")
		}
		if taken[rawLines] != nil {
			if limit, err = limitText(taken); err != nil {
				return "", err
			}
		}
	}
	return t.RenderMarkdown() + "\n\n" + limit + "\n\n" + b.provenance("barrier", commands), nil
}

// The ways to meet besides those of the table, where there are two ranks.
const (
	doesNothing = "wrapper that does nothing"
	rawLines    = "cache lines"
)

// meet measures one row, in rounds whose order is shuffled.
func meet(ctx context.Context, b bench, m meeting, random *rand.Rand) (map[string][]met, error) {
	once, closeHosts, err := m.prepare(ctx, b)
	if err != nil {
		return nil, err
	}
	defer closeHosts()
	ways := []variant{alone}
	for _, v := range b.variants {
		if v.name == evenkeelName || v.name == doesNothing && m.ranks == 2 && m.hosts == 0 {
			ways = append(ways, v)
		}
	}
	if m.ranks == 2 && m.hosts == 0 {
		ways = append(ways, variant{name: rawLines})
	}
	taken := map[string][]met{}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: barrier, %s, round %d of %d\n", m.title, round+1, b.rounds)
		for _, i := range random.Perm(len(ways)) {
			figures, err := once(ctx, ways[i])
			if err != nil {
				return nil, err
			}
			taken[ways[i].name] = append(taken[ways[i].name], figures)
		}
	}
	return taken, nil
}

// prepare returns how to measure the row once, and what ends the hosts that it needs.
func (m meeting) prepare(ctx context.Context, b bench) (once func(context.Context, variant) (met, error), end func() error, err error) {
	if m.hosts == 0 {
		return func(ctx context.Context, v variant) (met, error) {
			j := job{m.ranks, m.command(b.build)}
			if v.name == rawLines {
				j = job{1, []string{filepath.Join(b.build, "bench", "lines"), fmt.Sprint(m.count)}}
			}
			printed, _, err := b.launcher.run(ctx, v, j)
			if err != nil {
				return met{}, err
			}
			return parseMet(printed)
		}, func() error { return nil }, nil
	}
	cluster, err := hosts.Start(b.launcher.directory, hosts.Spec{Count: m.hosts, Slots: m.ranks / m.hosts})
	if err != nil {
		return nil, nil, errors.WithMessage(err, "hosts, which only root can make")
	}
	return func(ctx context.Context, v variant) (met, error) {
		command := cluster.Mpirun(ctx, m.ranks, b.launcher.environment(v), m.command(b.build)...)
		command.Dir = b.launcher.directory
		printed, err := command.Output()
		if err != nil {
			return met{}, errors.Wrapf(err, "%s with %s", m.title, v.name)
		}
		return parseMet(string(printed))
	}, cluster.Close, nil
}

func parseMet(printed string) (met, error) {
	words := strings.Fields(printed)
	if len(words) == 1 { // of a program that does not measure its processor time
		words = append(words, words[0])
	}
	if len(words) != 2 {
		return met{}, errors.Errorf("expected two numbers, but the program printed %q", printed)
	}
	time, err := parseFigure(words[0])
	if err != nil {
		return met{}, err
	}
	processor, err := parseFigure(words[1])
	return met{time, processor}, err
}

func meetingRow(m meeting, taken map[string][]met) (table.Row, error) {
	row := table.Row{m.title}
	for _, of := range []func(met) float64{timeOf, processorOf} {
		pairs := pairsOf(taken[alone.name], taken[evenkeelName], of)
		for _, figures := range []struct {
			of   func(pair) float64
			verb string
		}{{aloneOf, "%.0f"}, {underOf, "%.0f"}, {pair.ratio, "%.2f"}} {
			s, err := summarise(each(pairs, figures.of))
			if err != nil {
				return nil, err
			}
			row = append(row, s.format(figures.verb))
		}
	}
	return row, nil
}

// pairsOf joins what was measured in the same rounds.
func pairsOf(alone, under []met, of func(met) float64) []pair {
	var pairs []pair
	for i := range alone {
		pairs = append(pairs, pair{alone: of(alone[i]), under: of(under[i])})
	}
	return pairs
}

// limitText says how far two ranks are from what the machine allows.
func limitText(taken map[string][]met) (string, error) {
	lines, err := summarise(each(pairsOf(taken[rawLines], taken[rawLines], timeOf), underOf))
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("The limit: two processes that exchange cache lines, as they must to meet, need %s ns in the same rounds", lines.format("%.0f"))
	for _, name := range []string{evenkeelName, doesNothing, alone.name} {
		times, err := summarise(each(pairsOf(taken[rawLines], taken[name], timeOf), pair.ratio))
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("; the barrier of two ranks takes %s times that with %s", times.format("%.2f"), name)
	}
	return text + ".", nil
}
