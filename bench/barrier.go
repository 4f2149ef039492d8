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

// met is what one run found of barriers.
type met struct {
	time, processor comparison // nanoseconds, past the library: of PMPI_Barrier
	lines           comparison // time beside the exchange of cache lines, where two ranks share a node
}

// measureBarrier measures barriers under Open MPI alone and with evenkeel; and
// what a library that does nothing makes of them and the least that two processes
// need to meet.
func measureBarrier(ctx context.Context, b bench) (string, error) {
	random := rand.New(rand.NewSource(b.seed))
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "Open MPI, ns", "evenkeel, ns", "ratio, in turns", "ratio of runs",
		"Open MPI, ns of processor", "evenkeel, ns of processor", "ratio, in turns", "ratio of runs"})
	var limit string
	var commands []string
	for i, m := range meetings {
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
		if i == 0 {
			if limit, err = limitText(taken); err != nil {
				return "", err
			}
		}
	}
	return t.RenderMarkdown() + "\n\n" + limit + "\n\n" + b.provenance("barrier", commands), nil
}

// doesNothing is the variant that is measured besides, where there are two ranks.
const doesNothing = "wrapper that does nothing"

// meet measures one row, in rounds whose order is shuffled.
func meet(ctx context.Context, b bench, m meeting, random *rand.Rand) (map[string][]met, error) {
	run, end, err := b.launcher.on(m.hosts, m.ranks/max(1, m.hosts))
	if err != nil {
		return nil, err
	}
	defer end()
	ways := []variant{alone}
	for _, v := range b.variants {
		if v.name == evenkeelName || v.name == doesNothing && m.ranks == 2 && m.hosts == 0 {
			ways = append(ways, v)
		}
	}
	taken := map[string][]met{}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: barrier, %s, round %d of %d\n", m.title, round+1, b.rounds)
		for _, i := range random.Perm(len(ways)) {
			printed, err := run(ctx, ways[i], job{m.ranks, m.command(b.build)})
			if err != nil {
				return nil, err
			}
			found, err := parseMet(printed)
			if err != nil {
				return nil, err
			}
			taken[ways[i].name] = append(taken[ways[i].name], found)
		}
	}
	return taken, nil
}

// parseMet reads a line for each batch: time and processor time through the library,
// both past it, and where two ranks share a node what cache lines take.
func parseMet(printed string) (met, error) {
	var time, processor, lines turns
	for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		var batch []float64
		for _, word := range strings.Fields(line) {
			figure, err := parseFigure(word)
			if err != nil {
				return met{}, err
			}
			batch = append(batch, figure)
		}
		if len(batch) != 4 && len(batch) != 5 {
			return met{}, errors.Errorf("expected four or five numbers in each line, but the program printed %q", line)
		}
		time = append(time, pair{under: batch[0], alone: batch[2]})
		processor = append(processor, pair{under: batch[1], alone: batch[3]})
		if len(batch) == 5 {
			lines = append(lines, pair{under: batch[0], alone: batch[4]})
		}
	}
	m := met{time: time.compare(pair.ratio), processor: processor.compare(pair.ratio)}
	if lines != nil {
		m.lines = lines.compare(pair.ratio)
	}
	return m, nil
}

func meetingRow(m meeting, taken map[string][]met) (table.Row, error) {
	row := table.Row{m.title}
	for _, of := range []func(met) comparison{
		func(m met) comparison { return m.time }, func(m met) comparison { return m.processor },
	} {
		var runs []pair
		var inTurns []float64
		for i, under := range taken[evenkeelName] {
			runs = append(runs, pair{under: of(under).under, alone: of(taken[alone.name][i]).under})
			inTurns = append(inTurns, of(under).compared)
		}
		for _, column := range []struct {
			figures []float64
			verb    string
		}{{each(runs, aloneOf), "%.0f"}, {each(runs, underOf), "%.0f"}, {inTurns, "%.2f"}, {each(runs, pair.ratio), "%.2f"}} {
			s, err := summarise(column.figures)
			if err != nil {
				return nil, err
			}
			row = append(row, s.format(column.verb))
		}
	}
	return row, nil
}

// limitText says how far two ranks are from what the machine allows.
func limitText(taken map[string][]met) (string, error) {
	var text string
	for _, name := range []string{evenkeelName, doesNothing, alone.name} {
		var need, times []float64
		for _, m := range taken[name] {
			need = append(need, m.lines.alone)
			times = append(times, m.lines.compared)
		}
		lines, err := summarise(need)
		if err != nil {
			return "", err
		}
		ratio, err := summarise(times)
		if err != nil {
			return "", err
		}
		if text == "" {
			text = fmt.Sprintf("The limit: the two processes, which exchange cache lines in turn with their barriers as they must to meet, need %s ns for it",
				lines.format("%.0f"))
		}
		text += fmt.Sprintf("; the barrier of two ranks takes %s times that with %s", ratio.format("%.2f"), name)
	}
	return text + ".", nil
}
