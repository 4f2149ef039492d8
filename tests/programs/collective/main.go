// Command collective has the ranks of an MPI job broadcast, reduce and meet over a fabric, by every kind of
// schedule and with every root, and checks what each rank gets. Rank 0 says how often, and what was measured.
//
//	mpirun -np 4 collective shm|udp|mpi|auto
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/collectives/carrier"
	"evenkeel/collectives/measure"
	"evenkeel/collectives/run"
	"evenkeel/mpi"
	"evenkeel/runtime/config"
	"evenkeel/runtime/fabric"
	overmpi "evenkeel/runtime/fabric/mpi"
	"evenkeel/runtime/fabric/route"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: collective shm|udp|mpi|auto")
		os.Exit(2)
	}
	if err := operate(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "collective: %v\n", err)
		os.Exit(1)
	}
}

func join(kind string, m fabric.Meeting) (fabric.Fabric, error) {
	overMPI := func() (fabric.Sleeper, error) { return overmpi.Join(mpi.World, 0) }
	settings, _ := config.Load(os.Environ()) // who starts the job says what is wrong with them
	switch kind {
	case "shm":
		return shm.Join(m, shm.Options{})
	case "udp":
		return udp.Join(m, udp.Options{Address: settings.UdpAddress()})
	case "mpi":
		return overmpi.Join(mpi.World, 0)
	case "auto":
		return route.Join(m, route.Options{Settings: settings, MPI: overMPI})
	}
	return nil, errors.Errorf("no fabric %q", kind)
}

func operate(kind string) error {
	if _, err := mpi.InitThread(mpi.ThreadMultiple); err != nil {
		return err
	}
	m := overmpi.Meet(mpi.World)
	f, err := join(kind, m)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	hosts, err := m.Exchange([]byte(host))
	if err != nil {
		return err
	}
	nodes := func(t collectives.Task) uint32 { // the first task on the same host
		for other := range hosts {
			if string(hosts[other]) == string(hosts[t]) {
				return uint32(other)
			}
		}
		return uint32(t)
	}
	network, err := measure.Network(m, f, nodes)
	if err != nil {
		return err
	}
	var schedule collectives.Schedule
	j, err := run.Start(carrier.Over(f), run.Config{Tasks: m.Tasks(), Nodes: nodes, Network: network, Retry: 50 * time.Millisecond,
		RetryMax: time.Second, Choose: func(collectives.Load) collectives.Schedule { return schedule }})
	if err != nil {
		return err
	}
	all := make([]fabric.Task, m.Tasks())
	for t := range all {
		all[t] = fabric.Task(t)
	}
	group, err := collectives.NewGroup(all, nodes)
	if err != nil {
		return err
	}
	team, err := j.Team(1, group)
	if err != nil {
		return err
	}
	flat, pairs := collectives.Shape{Kind: collectives.Flat}, collectives.Shape{Kind: collectives.Kary, Radix: 2}
	schedules := []collectives.Schedule{{Outer: flat}, {Outer: collectives.Binomial}, {Outer: collectives.Shape{Kind: collectives.Knomial, Radix: 4}},
		{Outer: collectives.Chain, Segment: 1000}, {Outer: pairs, Segment: 512}, {Outer: collectives.Binomial, Inner: flat},
		{Outer: collectives.Chain, Inner: collectives.Binomial, Segment: 700}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	count := 0
	for _, schedule = range schedules {
		for _, root := range all {
			if err := once(ctx, team, root, m); err != nil {
				return errors.WithMessagef(err, "task %d: %v, root %d", m.Self(), schedule, root)
			}
			count++
		}
	}
	if _, err := m.Exchange(nil); err != nil { // who has left answers nobody
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	if m.Self() == 0 {
		fmt.Printf("%d times by %d schedules among %d tasks\n", count, len(schedules), m.Tasks())
		fmt.Printf("measured: %+v\n", network)
	}
	return mpi.Finalize()
}

// once broadcasts and reduces some lengths to one root, and meets the others.
func once(ctx context.Context, team *run.Team, root fabric.Task, m fabric.Meeting) error {
	for _, words := range []int{0, 1, 400} {
		want := make([]byte, 8*words)
		for i := range want {
			want[i] = byte(i + int(root))
		}
		var mine []byte
		if m.Self() == root {
			mine = want
		}
		got, err := team.Broadcast(ctx, root, mine)
		if err != nil {
			return err
		}
		if string(got) != string(want) {
			return errors.Errorf("a broadcast of %d bytes came as %d others", len(want), len(got))
		}
		value := make([]byte, 8*words)
		for i := range words {
			binary.LittleEndian.PutUint64(value[8*i:], uint64(int(m.Self())*1000+i))
		}
		sum, err := team.Reduce(ctx, root, value, 8, add)
		if err != nil {
			return err
		}
		if m.Self() != root {
			continue
		}
		tasks := uint64(m.Tasks())
		for i := range words {
			if got, want := binary.LittleEndian.Uint64(sum[8*i:]), tasks*(tasks-1)/2*1000+tasks*uint64(i); got != want {
				return errors.Errorf("word %d of %d is %d, not %d", i, words, got, want)
			}
		}
	}
	if err := history(ctx, team, m); err != nil {
		return err
	}
	return team.Barrier(ctx)
}

// history has all learn when each has come: task t at t*t, so the last one last.
func history(ctx context.Context, team *run.Team, m fabric.Meeting) error {
	s, err := team.Arrivals(ctx, int64(m.Self())*int64(m.Self()))
	if err != nil {
		return err
	}
	last := fabric.Task(m.Tasks() - 1)
	if s.Count != uint64(m.Tasks()) || s.First.Task != 0 || s.Last.Task != last || s.Last.Time != int64(last)*int64(last) {
		return errors.Errorf("the arrivals of %d tasks are summed up as %+v", m.Tasks(), s)
	}
	came := map[fabric.Task]int64{}
	for _, a := range s.Sample {
		came[a.Task] = a.Time
	}
	for t := range m.Tasks() {
		if came[fabric.Task(t)] != int64(t)*int64(t) {
			return errors.Errorf("task %d came at %d, but not in the sketch: %+v", t, t*t, s)
		}
	}
	return nil
}

func add(before, after []byte) []byte {
	for i := 0; i < len(before); i += 8 {
		binary.LittleEndian.PutUint64(before[i:], binary.LittleEndian.Uint64(before[i:])+binary.LittleEndian.Uint64(after[i:]))
	}
	return before
}
