package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"evenkeel/collectives"
	"evenkeel/collectives/lossy"
	"evenkeel/pgas/svd"
)

// svdCase is a way to call bench/programs/svd. In each run it measures what the
// table compares, one after the other.
type svdCase struct {
	title   string
	command string
	ranks   int
	hosts   int // 0: this machine as it is
}

var lookupCases = []svdCase{
	{"1,000 objects", "lookup 1000", 1, 0},
	{"1,000,000 objects", "lookup 1000000", 1, 0},
}

var updateCases = []svdCase{
	{"on a node", "update shm 10000", 2, 0},
	{"between two hosts", "update udp 2000", 2, 2},
}

// measureSVD measures the shared variable directory.
func measureSVD(ctx context.Context, b bench) (string, error) {
	random := rand.New(rand.NewSource(b.seed))
	taken := map[string][]figures{}
	cases := append(append([]svdCase(nil), lookupCases...), updateCases...)
	once := map[string]func(context.Context) (string, error){}
	for _, c := range cases {
		run, end, err := b.launcher.on(c.hosts, c.ranks/max(1, c.hosts))
		if err != nil {
			return "", err
		}
		defer end()
		once[c.title] = func(ctx context.Context) (string, error) {
			return run(ctx, alone, job{c.ranks, append([]string{filepath.Join(b.build, "bench", "svd")}, strings.Fields(c.command)...)})
		}
	}
	for round := range b.rounds {
		fmt.Fprintf(os.Stderr, "bench: directory, round %d of %d\n", round+1, b.rounds)
		for _, i := range random.Perm(len(cases)) {
			printed, err := once[cases[i].title](ctx)
			if err != nil {
				return "", err
			}
			f, err := parseFigures(printed)
			if err != nil {
				return "", err
			}
			taken[cases[i].title] = append(taken[cases[i].title], f)
		}
	}
	lookups, err := svdTable(lookupCases, taken, "lookup", "a lookup, ns", []svdColumn{
		{"limit", "in a slice"}, {"all", "64 at once"}, {"section", "in a reader's section"}, {"guarded", "in a map behind a lock"}})
	if err != nil {
		return "", err
	}
	chased, err := svdTable(lookupCases, taken, "lookup-chased", "each by the one before, ns", []svdColumn{{"limit-chased", "in a slice"}})
	if err != nil {
		return "", err
	}
	updates, err := svdTable(updateCases, taken, "directory", "until a change is seen, ns", []svdColumn{
		{"fabric", "a packet"}, {"MPI", "an MPI message"}})
	if err != nil {
		return "", err
	}
	costs, err := changeTable()
	if err != nil {
		return "", err
	}
	return lookups + "\n\n" + chased + "\n\n" + updates + "\n\nA change in a job of 100,000 tasks, in virtual time, where a packet takes as long whatever else is on its way:\n\n" + costs + "\n\n" +
		fmt.Sprintf("Medians (first–third quartile) of %d runs in an order that seed %d shuffles; ratios are of figures of the same run. "+
			"Commands: `svd lookup 1000000`, `mpirun -np 2 --bind-to core svd update shm 10000`; made by `%s`.\n\n%s",
			b.rounds, b.seed, b.command("svd"), b.machine), nil
}

type svdColumn struct{ name, title string }

// svdTable has a row for each case: what is measured, and what it is compared to,
// each with how many times as long ours takes.
func svdTable(cases []svdCase, taken map[string][]figures, ours, title string, peers []svdColumn) (string, error) {
	t := table.NewWriter()
	header := table.Row{"", title}
	for _, p := range peers {
		header = append(header, p.title, "ratio")
	}
	t.AppendHeader(header)
	for _, c := range cases {
		var own []float64
		for _, f := range taken[c.title] {
			own = append(own, f[ours])
		}
		s, err := summarise(own)
		if err != nil {
			return "", err
		}
		row := table.Row{c.title, s.format("%.4g")}
		for _, p := range peers {
			var figures, ratios []float64
			for _, f := range taken[c.title] {
				figures = append(figures, f[p.name])
				ratios = append(ratios, f[ours]/f[p.name])
			}
			s, err := summarise(figures)
			if err != nil {
				return "", err
			}
			r, err := summarise(ratios)
			if err != nil {
				return "", err
			}
			row = append(row, s.format("%.4g"), r.format("%.2f"))
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown(), nil
}

// changeTable says what a change costs for so many users: it is counted, not timed.
func changeTable() (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"users", "schedule", "packets", "bytes", "packets in a row until all see it"})
	for _, users := range []int{1, 4, 16, 64, 256, 1024, 4096} {
		c, err := change(100000, users)
		if err != nil {
			return "", err
		}
		t.AppendRow(table.Row{users, c.schedule, c.packets, c.bytes, c.hops})
	}
	return t.RenderMarkdown(), nil
}

type changeCost struct {
	schedule             collectives.Schedule
	packets, bytes, hops int
}

// change has so many random tasks use an object and its home change it.
func change(tasks, users int) (changeCost, error) {
	network := lossy.New(1)
	replicas := map[svd.Task]*svd.Replica{}
	seen := time.Duration(0)
	flush := func(t svd.Task) {
		e := replicas[t].Take()
		for _, m := range e.Messages {
			network.Send(t, m.To, m.Data)
		}
		if len(e.Changes) > 0 {
			seen = network.Now
		}
	}
	join := func(t svd.Task) error {
		var err error
		replicas[t], err = svd.New(svd.Config{Self: t, Tasks: tasks, Limit: 1400, Retry: time.Second, RetryMax: time.Second,
			Network: collectives.Network{Between: collectives.Link{Latency: 15000, Overhead: 2500, Gap: 3000, PerByte: 0.9}}})
		return err
	}
	settle := func() error {
		for {
			if _, any := network.Next(); !any {
				return nil
			}
			p := network.Receive()
			if err := replicas[p.To].Receive(network.Now, p.From, p.Data); err != nil {
				return err
			}
			flush(p.To)
		}
	}
	if err := join(0); err != nil {
		return changeCost{}, err
	}
	h, err := replicas[0].Allocate(0, svd.Spec{Address: 1 << 20, Size: 4096, Blocking: 64, Elements: 512, Element: 8, Kind: svd.Array})
	if err != nil {
		return changeCost{}, err
	}
	flush(0)
	for _, t := range rand.New(rand.NewSource(1)).Perm(tasks - 1)[:users] {
		user := svd.Task(t + 1)
		if err := join(user); err != nil {
			return changeCost{}, err
		}
		replicas[user].Use(network.Now, h)
		flush(user)
	}
	if err := settle(); err != nil {
		return changeCost{}, err
	}
	begin := network.Now
	network.Packets, network.Bytes = 0, 0
	if err := replicas[0].Resize(begin, h, 8192, 1024); err != nil {
		return changeCost{}, err
	}
	flush(0)
	if err := settle(); err != nil {
		return changeCost{}, err
	}
	schedule, _ := replicas[0].Header(h)
	return changeCost{schedule, network.Packets, network.Bytes, int((seen - begin) / network.Delay)}, nil
}
