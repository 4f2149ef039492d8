package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/pkg/errors"
)

// idleVariants are the ways to wait; peers are Open MPI's own.
func (b bench) idleVariants() []variant {
	library := filepath.Join(b.build, "lib", "libevenkeel.so")
	var list []variant
	for _, way := range []string{"spin", "adaptive", "sleep"} {
		env := []string{"EVENKEEL_SUMMARY=0", "EVENKEEL_WAIT=" + way}
		list = append(list, variant{name: way, preload: library, env: env})
	}
	return list
}

// yielding is Open MPI with its own setting for ranks that share cores.
func yielding(yield string) variant {
	return variant{name: "yield " + yield, env: []string{"OMPI_MCA_mpi_yield_when_idle=" + yield}}
}

// waited is what a cycle of bench/programs/idle.c took, in ns: of time, and of rank
// 0's processor.
type waited struct{ wall, used float64 }

func (b bench) idleOnce(ctx context.Context, v variant, ranks int, command string) (waited, error) {
	words := append([]string{filepath.Join(b.build, "bench", "idle")}, strings.Fields(command)...)
	printed, _, err := b.launcher.run(ctx, v, job{ranks, words})
	if err != nil {
		return waited{}, err
	}
	fields := strings.Fields(printed)
	if len(fields) != 2 {
		return waited{}, errors.Errorf("idle printed %q instead of two numbers", printed)
	}
	wall, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return waited{}, errors.Wrap(err, "time of a cycle")
	}
	used, err := strconv.ParseFloat(fields[1], 64)
	return waited{wall, used}, errors.Wrap(err, "processor time of a cycle")
}

// idleWays chooses from the variants of waiting.
func (b bench) idleWays(names ...string) []variant {
	return slices.DeleteFunc(b.idleVariants(), func(v variant) bool { return !slices.Contains(names, v.name) })
}

// measureWaiting: two ranks on two cores, one twice as slow. The processor time of
// a wait is what rank 0 used in a cycle beyond its own computation, which a run
// with nobody to wait for tells.
func measureWaiting(ctx context.Context, b bench) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"one rank twice as slow, 2 ranks on 2 cores", "way", "cycle, ms", "time against Open MPI alone", "processor time of a wait, ms", "of Open MPI's"})
	for _, c := range []struct{ how, ms, cycles string }{
		{"recv", "1.2", "200"}, {"recv", "20", "20"}, {"barrier", "20", "20"},
	} {
		how, ms, cycles := c.how, c.ms, c.cycles
		title := fmt.Sprintf("%s, %s ms of work", how, ms)
		work, err := b.idleOnce(ctx, alone, 1, fmt.Sprintf("uneven barrier %s %s 1", ms, cycles))
		if err != nil {
			return "", err
		}
		b.variants = b.idleWays("adaptive", "sleep")
		used := map[string][]float64{}
		taken, err := takePairs(ctx, title, b, func(ctx context.Context, v variant) (float64, error) {
			w, err := b.idleOnce(ctx, v, 2, fmt.Sprintf("uneven %s %s %s 2", how, ms, cycles))
			used[v.name] = append(used[v.name], max(w.used-work.used, 0)/1e6)
			return w.wall / 1e6, err
		})
		if err != nil {
			return "", err
		}
		spun, err := summarise(used[alone.name])
		if err != nil {
			return "", err
		}
		t.AppendRow(table.Row{title, "Open MPI alone", "", "1", spun.format("%.3f"), "100 %"})
		for _, v := range b.variants {
			wall, err := summarise(each(taken[v.name], underOf))
			if err != nil {
				return "", err
			}
			ratio, err := summarise(each(taken[v.name], pair.ratio))
			if err != nil {
				return "", err
			}
			cost, err := summarise(used[v.name])
			if err != nil {
				return "", err
			}
			t.AppendRow(table.Row{title, v.name, wall.format("%.2f"), ratio.format("%.4f"), cost.format("%.3f"),
				fmt.Sprintf("%.1f %%", 100*cost.median/spun.median)})
		}
	}
	return t.RenderMarkdown() + "\n\n" + b.provenance("idle-wait", []string{"`mpirun -np 2 --bind-to core idle uneven recv 20 20 2` and so on"}), nil
}

// measureShort: what is over before it could sleep.
func measureShort(ctx context.Context, b bench) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"short waits, 2 ranks on 2 cores", "way", "ns", "against Open MPI alone"})
	for _, c := range []struct{ title, command string }{
		{"ping-pong, 8 B, half a round trip", "pingpong 8 300000"},
		{"ping-pong, 64 KiB, half a round trip", "pingpong 65536 10000"},
	} {
		b.variants = b.idleWays("spin", "adaptive")
		taken, err := takePairs(ctx, c.title, b, func(ctx context.Context, v variant) (float64, error) {
			w, err := b.idleOnce(ctx, v, 2, c.command)
			return w.wall, err
		})
		if err != nil {
			return "", err
		}
		if err := ratioRows(t, c.title, "%.0f", b.variants, taken); err != nil {
			return "", err
		}
	}
	return t.RenderMarkdown() + "\n\n" + b.provenance("idle-short", []string{"`mpirun -np 2 --bind-to core idle pingpong 8 300000` and so on"}), nil
}

// ratioRows adds a row for each variant: its figure, and the ratio within pairs.
func ratioRows(t table.Writer, title, verb string, variants []variant, taken map[string][]pair) error {
	for _, v := range variants {
		figure, err := summarise(each(taken[v.name], underOf))
		if err != nil {
			return err
		}
		ratio, err := summarise(each(taken[v.name], pair.ratio))
		if err != nil {
			return err
		}
		t.AppendRow(table.Row{title, v.name, figure.format(verb), ratio.format("%.3f")})
	}
	return nil
}

// workAlone is what a crowd's cycle takes at least: its work on as many ranks as there are
// cores, each of which has one to itself, and nobody waits; but for a rank whose own work
// takes longer than that.
var workAlone = variant{name: "the work alone, divided between 2 ranks"}

// measureCrowd: more ranks than cores, in one interleaved run of all ways.
func measureCrowd(ctx context.Context, b bench) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"8 ranks on 2 cores", "way", "cycle, ms", "time against Open MPI alone with mpi_yield_when_idle=1"})
	for _, c := range []struct{ title, command, work string }{
		{"one rank twice as slow, barrier", "uneven barrier 2 60 2", "uneven barrier 9 60 1"},
		{"one rank eight times as slow, allreduce", "uneven allreduce 2 40 8", "uneven barrier 16 40 1"},
		{"ring of 1 KiB, 0.2 ms of work", "ring 1024 200 200", "uneven barrier 0.8 200 1"},
	} {
		b.variants = append([]variant{yielding("0"), workAlone}, b.idleWays("adaptive")...)
		adaptive := b.variants[len(b.variants)-1]
		for _, setting := range []string{"EVENKEEL_SHADOW_ROOM=1", "EVENKEEL_FAST=none"} {
			b.variants = append(b.variants, variant{adaptive.name + ", " + setting, adaptive.preload, append(slices.Clone(adaptive.env), setting)})
		}
		taken, err := takePairs(ctx, c.title, b, func(ctx context.Context, v variant) (float64, error) {
			ranks, command := 8, c.command
			switch v.name {
			case alone.name:
				v = yielding("1")
			case workAlone.name:
				ranks, command = 2, c.work
			}
			w, err := b.idleOnce(ctx, v, ranks, command)
			return w.wall / 1e6, err
		})
		if err != nil {
			return "", err
		}
		if err := ratioRows(t, c.title, "%.2f", b.variants, taken); err != nil {
			return "", err
		}
	}
	return t.RenderMarkdown() + "\n\n" + b.provenance("idle-crowd", []string{"`mpirun -np 8 --oversubscribe --bind-to none idle uneven barrier 2 60 2` and so on"}), nil
}

// measureGuest: an idle program beside rank 0, which waits for half of the time.
func measureGuest(ctx context.Context, b bench) (string, error) {
	const command, cycles = "uneven recv 40 20 2", 20
	work, err := b.idleOnce(ctx, alone, 1, "uneven barrier 40 20 1")
	if err != nil {
		return "", err
	}
	out := filepath.Join(b.launcher.directory, "profile.idle.0")
	env := []string{"EVENKEEL_SUMMARY=0", "EVENKEEL_WAIT=adaptive",
		"EVENKEEL_IDLE_RUN=exec " + filepath.Join(b.build, "tests", "idle_guest")}
	b.variants = []variant{{name: "idle program", preload: filepath.Join(b.build, "lib", "libevenkeel.so"), env: env}}
	var got []float64
	taken, err := takePairs(ctx, "an idle program", b, func(ctx context.Context, v variant) (float64, error) {
		w, err := b.idleOnce(ctx, v, 2, command)
		if err != nil || v.name == alone.name {
			return w.wall / 1e6, err
		}
		text, err := os.ReadFile(out)
		if err != nil {
			return 0, errors.Wrap(err, "what the idle program says of itself")
		}
		words := strings.Fields(string(text))
		used, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return 0, errors.Wrap(err, "processor time of the idle program")
		}
		got = append(got, used*1e6/cycles/(w.wall-work.used))
		return w.wall / 1e6, nil
	})
	if err != nil {
		return "", err
	}
	wall, err := summarise(each(taken["idle program"], underOf))
	if err != nil {
		return "", err
	}
	ratio, err := summarise(each(taken["idle program"], pair.ratio))
	if err != nil {
		return "", err
	}
	share, err := summarise(got)
	if err != nil {
		return "", err
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"EVENKEEL_IDLE_RUN", "cycle, ms", "time against Open MPI alone", "of the core's idle time that the program got"})
	t.AppendRow(table.Row{"receive, a wait of about 40 ms", wall.format("%.2f"), ratio.format("%.4f"), share.format("%.3f")})
	return t.RenderMarkdown() + "\n\n" + b.provenance("idle-run", []string{"`mpirun -np 2 --bind-to core idle uneven recv 40 20 2`"}), nil
}

// measureLending: the example with twice the work on one rank.
func measureLending(ctx context.Context, b bench) (string, error) {
	libraries := filepath.Join(b.build, "lib", "libevenkeel.so") + ":" + filepath.Join(b.build, "lib", "libevenkeel-openmp.so")
	b.variants = []variant{
		{name: "adaptive", preload: libraries, env: []string{"EVENKEEL_SUMMARY=0", "EVENKEEL_WAIT=adaptive"}},
		{name: "adaptive, EVENKEEL_LEND=1", preload: libraries, env: []string{"EVENKEEL_SUMMARY=0", "EVENKEEL_WAIT=adaptive", "EVENKEEL_LEND=1"}},
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"MPI and OpenMP, one rank with twice the work", "way", "s", "time against Open MPI alone"})
	sums := map[string]bool{}
	for _, rows := range []string{"8", "32"} {
		title := "hybrid, parallel regions of " + rows + " rows, results equal"
		taken, err := takePairs(ctx, title, b, func(ctx context.Context, v variant) (float64, error) {
			command := []string{"env", "OMP_NUM_THREADS=1", filepath.Join(b.build, "examples", "hybrid"), "20", "600", "400", "uneven", rows}
			printed, _, err := b.launcher.run(ctx, v, job{2, command})
			if err != nil {
				return 0, err
			}
			fields := strings.Fields(printed)
			if len(fields) != 4 || fields[2] != "seconds" {
				return 0, errors.Errorf("hybrid printed %q", printed)
			}
			sums[fields[1]] = true
			return strconv.ParseFloat(fields[3], 64)
		})
		if err != nil {
			return "", err
		}
		if err := ratioRows(t, title, "%.3f", b.variants, taken); err != nil {
			return "", err
		}
	}
	if len(sums) != 1 {
		return "", errors.Errorf("the results of hybrid differ: %v", sums)
	}
	return t.RenderMarkdown() + "\n\n" + b.provenance("idle-lend", []string{"`OMP_NUM_THREADS=1 mpirun -np 2 --bind-to core hybrid 20 600 400 uneven 32` and so on"}), nil
}
