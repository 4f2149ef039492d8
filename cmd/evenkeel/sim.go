package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/montanaflynn/stats"
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"evenkeel/balancer"
	"evenkeel/balancer/simulate"
	"evenkeel/cmd/evenkeel/sim"
	"evenkeel/runtime/job"
	"evenkeel/runtime/profile"
	"evenkeel/runtime/report"
)

// simFlags are the flags of `evenkeel sim`.
type simFlags struct {
	load, cause      string
	ranks, cycles    int
	items            int64
	amplitude, noise float64
	period           int
	cycle            time.Duration
	seed             uint64
	policies         []string
	k                int
	threshold        float64
	minItems         int64
	itemCost, cost   time.Duration
	horizon          bool
	tell             bool
	json             bool
	html             string
}

// newSimCommand is `evenkeel sim`.
func newSimCommand(documents string) *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim [DIRECTORY | PROFILE.json | JOB]",
		Short: "Tell what balancing would gain, before the program is touched",
		Long: `Tell what a program would gain if its partitions were balanced: of a job that
was recorded, by replaying what its ranks computed, or of a load that is
described by flags. The decisions are those that a real run would make.

A replay begins and ends cycles where all ranks meet and wait most, and takes even
ranges for what the job had. Whether its items cost differently or its ranks are of
different speed a recording does not tell: --cause says which.

` + filepath.Join(documents, "balancing.md") + ` says what the policies do
and how to read the result.`,
		Example: `  evenkeel sim evenkeel.1234
  evenkeel sim evenkeel.1234 --cause ranks --policy pairwise,proportional
  evenkeel sim --load drifting --ranks 64 --amplitude 0.8 --html sim.html
  evenkeel sim --ranks 1000000 --items 100000000 --cycles 10`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.simulate(c, args)
			if err != nil {
				return err
			}
			if f.html != "" {
				if err := profile.Replace(f.html, func(w io.Writer) error { return sim.Page(w, s) }); err != nil {
					return err
				}
			}
			switch {
			case f.json:
				return errors.Wrap(json.NewEncoder(c.OutOrStdout()).Encode(s), "cannot write what was simulated")
			case f.html != "":
				return nil
			}
			return sim.Text(c.OutOrStdout(), s)
		},
	}
	f.add(c)
	return c
}

func (f *simFlags) add(c *cobra.Command) {
	var shapes []string
	for _, s := range simulate.Shapes() {
		shapes = append(shapes, string(s))
	}
	flags := c.Flags()
	flags.StringVar(&f.load, "load", string(simulate.Constant), "how a described load changes: "+strings.Join(shapes, ", "))
	flags.StringVar(&f.cause, "cause", string(simulate.Items), "what makes it uneven: items that cost differently, or ranks of different speed")
	flags.IntVar(&f.ranks, "ranks", 4, "how many ranks; of a recording, as many as it had")
	flags.Int64Var(&f.items, "items", 0, "how many items are divided (1000 for each rank)")
	flags.IntVar(&f.cycles, "cycles", 100, "how many cycles; of a recording, as many as it has")
	flags.Float64Var(&f.amplitude, "amplitude", 0.5, "by how much the slowest rank exceeds the mean, about; of a noisy load, the standard deviation")
	flags.Float64Var(&f.noise, "noise", 0.01, "standard deviation of each time, as a share of it")
	flags.IntVar(&f.period, "period", 100, "how many cycles a drifting load takes to come around")
	flags.DurationVar(&f.cycle, "cycle-time", 10*time.Millisecond, "mean time of a rank in a cycle")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of what is random")
	flags.StringSliceVar(&f.policies, "policy", []string{"auto"}, "policies, with commas between, or all: "+strings.Join(balancer.PolicyNames(), ", "))
	flags.IntVar(&f.k, "k", 0, "to how many ranks the k-fastest policies give; 0: to all that are faster than the mean")
	flags.Float64Var(&f.threshold, "threshold", 0.02, "least share of a cycle worth saving")
	flags.Int64Var(&f.minItems, "min-items", 0, "least number of items of a rank")
	flags.DurationVar(&f.itemCost, "item-cost", 100*time.Nanosecond, "time that a rank needs for each item that it gives or takes")
	flags.DurationVar(&f.cost, "move-cost", 100*time.Microsecond, "time that each move takes besides")
	flags.BoolVar(&f.horizon, "known-end", false, "the balancer knows how many cycles there will be")
	flags.BoolVar(&f.tell, "tell-costs", false, "the program tells the balancer what its items cost")
	flags.BoolVar(&f.json, "json", false, "write everything as JSON")
	flags.StringVar(&f.html, "html", "", "write a page with pictures to `FILE`, which needs nothing else")
}

// loader makes a load anew for each policy, so that all meet the same.
type loader func() (simulate.Load, error)

func (f *simFlags) simulate(c *cobra.Command, args []string) (*sim.Simulation, error) {
	s := &sim.Simulation{Notes: []string{}}
	var load loader
	var err error
	if len(args) == 1 {
		load, err = f.recorded(c, args[0], s)
	} else {
		load, err = f.described(s)
	}
	if err != nil {
		return nil, err
	}
	s.Ranks, s.Items, s.Cycles = f.ranks, f.items, f.cycles
	names := f.policies
	if len(names) == 1 && names[0] == "all" {
		names = balancer.PolicyNames()
	}
	for _, name := range names {
		run, err := f.run(name, load)
		if err != nil {
			return nil, err
		}
		s.Runs = append(s.Runs, run)
	}
	return s, nil
}

func (f *simFlags) run(name string, load loader) (sim.Run, error) {
	policy, err := balancer.ParsePolicy(name)
	if err != nil {
		return sim.Run{}, usageError{err}
	}
	l, err := load()
	if err != nil {
		return sim.Run{}, err
	}
	o := balancer.DefaultOptions(f.items, max(1, f.ranks))
	o.Policy, o.K, o.Threshold = policy, f.k, f.threshold
	o.MinItems = max(o.MinItems, f.minItems)
	o.CostPerItem, o.CostOfMove = f.itemCost.Seconds(), f.cost.Seconds()
	if f.horizon {
		o.Horizon = f.cycles
	}
	var took []float64
	watch := func(decide func()) {
		start := time.Now()
		decide()
		took = append(took, time.Since(start).Seconds())
	}
	result, err := simulate.Run(simulate.Setup{Items: f.items, Ranks: f.ranks, Cycles: f.cycles, Options: o, Tell: f.tell, Watch: watch}, l)
	if err != nil {
		return sim.Run{}, usageError{err}
	}
	median, err := stats.Median(took)
	return sim.Run{Policy: name, Decision: median, Result: result}, errors.Wrap(err, "the median of what the decisions took")
}

func (f *simFlags) described(s *sim.Simulation) (loader, error) {
	if f.ranks < 1 {
		return nil, usage("%d ranks: at least one is needed", f.ranks)
	}
	if f.items == 0 {
		f.items = 1000 * int64(f.ranks)
	}
	d := simulate.Description{Shape: simulate.Shape(f.load), Cause: simulate.Cause(f.cause), Amplitude: f.amplitude, Noise: f.noise,
		Seconds: f.cycle.Seconds(), Period: f.period, Seed: f.seed}
	s.Load = fmt.Sprintf("a %s load, since %s differ, amplitude %s, noise %s, seed %d", f.load, f.cause, report.Percent(f.amplitude), report.Percent(f.noise), f.seed)
	if f.load == string(simulate.Noisy) {
		s.Load = fmt.Sprintf("a balanced load with noise of %s, seed %d", report.Percent(f.amplitude), f.seed)
	}
	return func() (simulate.Load, error) {
		l, err := simulate.Describe(d, f.items, f.ranks)
		if err != nil {
			return nil, usageError{err}
		}
		return l, nil
	}, nil
}

func (f *simFlags) recorded(c *cobra.Command, name string, s *sim.Simulation) (loader, error) {
	for _, flag := range []string{"load", "amplitude", "noise", "period", "cycle-time", "seed"} {
		if c.Flags().Changed(flag) {
			return nil, usage("--%s describes a load, but %s is one that was recorded: give one of both", flag, name)
		}
	}
	p, err := findProfile(name)
	if err != nil {
		return nil, err
	}
	times, besides := cycleTimes(name)
	cycle := "A cycle is what the ranks computed between two operations in which all took part, where they waited most."
	if len(times) < sim.FewestCycles {
		if times, besides, err = sim.BinTimes(p); err != nil {
			return nil, errors.WithMessage(err, name)
		}
		cycle = fmt.Sprintf("A cycle is a bin of the timeline, %s, since the operations that end cycles are not known: where these are further apart, the gain is not what it seems.", report.Seconds(p.Timeline.BinWidth))
	}
	if !c.Flags().Changed("ranks") {
		f.ranks = p.Total.Ranks
	}
	if !c.Flags().Changed("cycles") {
		f.cycles = len(times)
		s.Besides = besides
	}
	if f.items == 0 {
		f.items = 1000 * int64(f.ranks)
	}
	s.Load = fmt.Sprintf("job %s, %s", p.Job, p.Command)
	s.Notes = append(s.Notes, cycle+fmt.Sprintf(" It is taken that the job's ranges were even and that its %s differ.", f.cause))
	if f.ranks != p.Total.Ranks {
		s.Besides = 0
		s.Notes = append(s.Notes, fmt.Sprintf("The job had %s; what these computed is done by %s here, and what it did besides computing is left out.", report.Plural(int64(p.Total.Ranks), "rank"), report.Count(int64(f.ranks))))
	}
	return func() (simulate.Load, error) {
		l, err := simulate.Record(times, simulate.Cause(f.cause), f.ranks)
		if err != nil {
			return nil, usageError{err}
		}
		return l, nil
	}, nil
}

// cycleTimes are those of the job that a name stands for, as far as its recording
// tells of cycles.
func cycleTimes(name string) (times [][]float64, besides float64) {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		name = filepath.Dir(name) // of the profile.json
	}
	run, nodes, err := job.Load(name)
	if err != nil {
		return nil, 0 // the profile alone is known
	}
	defer job.CloseAll(nodes)
	return sim.CycleTimes(run)
}
