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

// fabricRow is a way of bench/programs/message.c, away.c or bench/programs/fabric,
// and what it is compared with in the same run.
type fabricRow struct {
	title, unit string
	program     string
	way, base   string
	goal        string
}

var fabricRows = []fabricRow{
	{"a line of 56 bytes and a word, each way, from C", "ns", "message", "line", "", "the limit"},
	{"active message on a node, from C", "ns", "message", "message", "line", "≤ 1.10"},
	{"MPI_Send and MPI_Recv of 48 bytes, each way", "ns", "message", "mpi", "line", ""},
	{"a line of 56 bytes and a word, each way, from Go", "ns", "fabric", "line", "", "the limit"},
	{"active message on a node, from Go", "ns", "fabric", "node-message", "line", "≤ 1.23"},
	{"bare echo over UDP", "ns", "fabric", "udp-echo", "", "the limit"},
	{"active message over UDP", "ns", "fabric", "udp-message", "udp-echo", "≤ 1.3"},
	{"PUT of 8 bytes over UDP", "ns", "fabric", "udp-put", "udp-echo", "≤ 1.3"},
	{"the same with losses of 1 %", "ns", "fabric", "udp-put-loss", "udp-put", "≤ 30 µs"},
	{"bare echo over UDP, from C", "ns", "away", "echo", "", "the limit"},
	{"PUT of 8 bytes over UDP, from C", "ns", "away", "put", "echo", "≤ 1.3"},
	{"one of 64 such PUTs before a fence", "ns", "away", "started", "echo", ""},
	{"active message over UDP, from C, and its reply as another", "ns", "away", "message", "echo", ""},
	{"one stream over TCP", "MB/s", "fabric", "tcp-stream", "", "the limit"},
	{"one stream over TLS (AES-GCM)", "MB/s", "fabric", "tls-stream", "tcp-stream", ""},
	{"the same system calls over UDP, without a protocol", "MB/s", "fabric", "udp-bare", "tcp-stream", "the limit"},
	{"and with a tag for each packet (AES-GMAC)", "MB/s", "fabric", "udp-bare-sealed", "tcp-stream", "the limit"},
	{"PUTs of 1 MiB over UDP", "MB/s", "fabric", "udp-stream", "tcp-stream", "≥ 0.8"},
	{"the same with losses of 1 %", "MB/s", "fabric", "udp-stream-loss", "udp-stream", "≥ 0.5"},
}

// apart are the rows that there are between hosts, too.
func apart() []fabricRow {
	var rows []fabricRow
	for _, r := range fabricRows {
		if r.program == "fabric" && (strings.HasPrefix(r.way, "udp-") || strings.HasSuffix(r.way, "-stream")) {
			rows = append(rows, r)
		}
	}
	return rows
}

// measureFabric measures messages and remote writes beside what they can take at
// least, on a node and between two hosts.
func measureFabric(ctx context.Context, b bench) (string, error) {
	here, err := fabricTable(ctx, b, 0, fabricRows)
	if err != nil {
		return "", err
	}
	between, err := fabricTable(ctx, b, 2, apart())
	if err != nil {
		return "", err
	}
	return here + "\n\nBetween two hosts, whose ranks share the cores of this machine as before, but reach each other by a bridge:\n\n" + between + "\n\n" +
		fmt.Sprintf("Median (first–third quartile) of %d runs of each program, of which each alternates its ways "+
			"nine times; ratios are within a run. Losses are made at the receiver. Commands: `mpirun -np 2 --bind-to core message`, "+
			"`mpirun -np 2 --bind-to core fabric`, `mpirun -np 2 --bind-to core away`; made by `%s`.\n\n%s", b.rounds, b.command("fabric"), b.machine), nil
}

// fabricTable measures rows on so many hosts, or 0: on this machine as it is.
func fabricTable(ctx context.Context, b bench, hosts int, rows []fabricRow) (string, error) {
	run, end, err := b.launcher.on(hosts, 1)
	if err != nil {
		return "", err
	}
	defer end()
	var programs []string
	for _, r := range rows {
		if !slices.Contains(programs, r.program) {
			programs = append(programs, r.program)
		}
	}
	taken := map[string]map[string][]float64{}
	random := rand.New(rand.NewSource(b.seed))
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: fabric, %d hosts, round %d of %d\n", max(1, hosts), round+1, b.rounds)
		for _, i := range random.Perm(len(programs)) {
			name := programs[i]
			printed, err := run(ctx, alone, job{2, []string{filepath.Join(b.build, "bench", name)}})
			if err != nil {
				return "", err
			}
			printedFigures, err := parseFigures(printed)
			if err != nil {
				return "", errors.WithMessage(err, name)
			}
			if taken[name] == nil {
				taken[name] = map[string][]float64{}
			}
			for way, figure := range printedFigures {
				taken[name][way] = append(taken[name][way], figure)
			}
		}
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"round trip, or stream", "", "ratio", "to", "goal"})
	for _, r := range rows {
		row, err := r.row(taken[r.program])
		if err != nil {
			return "", err
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}

func (r fabricRow) row(taken map[string][]float64) (table.Row, error) {
	figures := taken[r.way]
	figure, err := summarise(figures)
	if err != nil {
		return nil, errors.WithMessagef(err, "%s %s", r.program, r.way)
	}
	row := table.Row{r.title, figure.format("%.0f") + " " + r.unit, "", "", r.goal}
	if r.base == "" {
		return row, nil
	}
	base := taken[r.base]
	if len(base) != len(figures) {
		return nil, errors.Errorf("%s: %d runs of %s, %d of %s", r.program, len(figures), r.way, len(base), r.base)
	}
	var ratios []float64
	for i := range figures {
		ratios = append(ratios, figures[i]/base[i])
	}
	ratio, err := summarise(ratios)
	if err != nil {
		return nil, err
	}
	row[2], row[3] = ratio.format("%.2f"), r.base
	return row, nil
}
