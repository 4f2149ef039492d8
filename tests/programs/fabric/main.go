// Command fabric is one task of a job without MPI, which reaches the memory of
// the others over UDP and keeps account of what must come of it.
//
//	fabric -task N -tasks M -meet DIRECTORY [-address 10.0.0.0/8] [-relay 10.0.0.1 -loss 0.1 ...] [-victim N]
//
// Each task writes, reads, updates, counts and calls at the others, at random by
// the seed (work.go). Then it says what it did, as JSON. In a storm the relay's
// impairments change ten times a second, each up to what is given. A victim
// prints "under way" and goes on until it is killed; the others then work on,
// and must get errors for what goes to it, and none else.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/relay"
	"evenkeel/runtime/fabric/udp"
)

type options struct {
	task, tasks, rounds, depth, victim int
	meet, address, relay               string
	seed                               uint64
	silence                            time.Duration
	impairments                        relay.Impairments
	storm                              bool
}

func main() {
	var o options
	flag.IntVar(&o.task, "task", 0, "this task's number")
	flag.IntVar(&o.tasks, "tasks", 2, "tasks of the job")
	flag.IntVar(&o.rounds, "rounds", 1000, "rounds of operations")
	flag.IntVar(&o.depth, "depth", 15, "operations of a round, which are under way at once")
	flag.IntVar(&o.victim, "victim", -1, "the task that is going to be killed")
	flag.StringVar(&o.meet, "meet", "", "a directory that all tasks share")
	flag.StringVar(&o.address, "address", "", "as EVENKEEL_UDP_ADDRESS")
	flag.StringVar(&o.relay, "relay", "", "the address of the relay, which task 0 has beside its own work")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.DurationVar(&o.silence, "silence", 10*time.Second, "after which a task has failed")
	i := &o.impairments
	for name, p := range map[string]*float64{"loss": &i.Loss, "duplication": &i.Duplication, "corruption": &i.Corruption,
		"truncation": &i.Truncation, "reordering": &i.Reordering} {
		flag.Float64Var(p, name, 0, "share of datagrams")
	}
	flag.DurationVar(&i.Delay, "delay", 0, "of those that are reordered, at most")
	flag.BoolVar(&o.storm, "storm", false, "the shares change all the time, up to what is given")
	flag.Parse()
	a, err := run(o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(a)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "task %d: %v\n", o.task, err)
		os.Exit(1)
	}
}

func run(o options) (*account, error) {
	var r *relay.Relay
	var between func(int, [][]byte) ([][]byte, error)
	if o.relay != "" {
		address, err := netip.ParseAddr(o.relay)
		if err != nil {
			return nil, errors.Wrap(err, "-relay")
		}
		r = relay.New(address, o.seed, o.impairments)
		between = func(round int, said [][]byte) ([][]byte, error) {
			if round > 0 {
				return said, nil
			}
			redirected := make([][]byte, len(said))
			for task, card := range said {
				var err error
				if redirected[task], err = r.Redirect(card); err != nil {
					return nil, err
				}
			}
			return redirected, nil
		}
	}
	m := fabrictest.Directory(o.meet, o.task, o.tasks, between)
	f, err := udp.Join(m, udp.Options{Address: o.address, MTU: 1400})
	if err != nil {
		return nil, err
	}
	secret, err := credential.Generate()
	if err != nil {
		return nil, err
	}
	said, err := m.Exchange(secret[:])
	if err != nil {
		return nil, err
	}
	copy(secret[:], said[0])
	if r != nil && o.storm {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go storm(ctx, r, o)
	}
	w, err := newWorker(o, f, secret)
	if err != nil {
		return nil, err
	}
	err = w.work(m)
	w.account.finish(w.engine.Counters())
	if r != nil {
		w.account.Relayed, w.account.Impaired = r.Counts()
	}
	if closed := w.engine.Close(); err == nil {
		err = closed
	}
	if err == nil && w.account.Notified.Load() != uint64(w.account.Operations) {
		err = errors.Errorf("%d operations had %d notifications", w.account.Operations, w.account.Notified.Load())
	}
	return &w.account, err
}

// storm changes the relay's impairments by the seed, until it is over.
func storm(ctx context.Context, r *relay.Relay, o options) {
	random := rand.New(rand.NewPCG(o.seed, 0))
	for most := o.impairments; ctx.Err() == nil; {
		share := func(most float64) float64 { return most * random.Float64() * random.Float64() }
		r.Change(relay.Impairments{
			Loss: share(most.Loss), Duplication: share(most.Duplication), Corruption: share(most.Corruption),
			Truncation: share(most.Truncation), Reordering: share(most.Reordering), Delay: most.Delay,
		})
		time.Sleep(100 * time.Millisecond)
	}
}
