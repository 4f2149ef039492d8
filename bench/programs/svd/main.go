// Command svd measures the shared variable directory. It prints figures in
// nanoseconds, each on a line with its name.
//
//	svd lookup ENTRIES              one process: a lookup, and what it is compared to
//	mpirun -np 2 svd update shm|udp COUNT    from a change at one task until another sees it
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"evenkeel/collectives"
	"evenkeel/mpi"
	"evenkeel/pgas/courier"
	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/pgas/svd"
	"evenkeel/pgas/svd/directory"
	"evenkeel/runtime/fabric"
	fabricmpi "evenkeel/runtime/fabric/mpi"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "svd: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "lookup":
		entries, err := strconv.Atoi(args[1])
		if err != nil || entries < 1 {
			return errors.Errorf("%q entries", args[1])
		}
		return lookup(entries)
	case len(args) == 3 && args[0] == "update":
		count, err := strconv.Atoi(args[2])
		if err != nil || count < 1 {
			return errors.Errorf("%q changes", args[2])
		}
		return update(args[1], count)
	}
	return errors.New("usage: svd lookup ENTRIES | svd update shm|udp COUNT")
}

// network is what schedules are chosen from where only two tasks are.
var network = collectives.Network{Between: collectives.Link{Latency: 1000, Overhead: 500, Gap: 500, PerByte: 0.5}}

// lookup measures random lookups among so many entries: by the directory, by the same
// within a reader's section, by a map that a lock guards, and, as the limit, in a
// slice of the same entries: one cache line each. Where it says chased each entry has the
// handle of the next, so that one look begins when the one before it has ended.
func lookup(entries int) error {
	d, err := directory.New(directory.Config{Send: func(svd.Task, []byte) {}, Config: svd.Config{Tasks: 1, Network: network, Limit: 1400, Retry: time.Second, RetryMax: time.Second}})
	if err != nil {
		return err
	}
	type line struct { // as long as a cache line, like those of the directory
		svd.Entry
		_ [8]byte
	}
	// All entries are one cycle.
	cycle := rand.Perm(entries)
	next := make([]int, entries)
	for k, i := range cycle {
		next[i] = cycle[(k+1)%entries]
	}
	handles := make([]svd.Handle, entries)
	for i := range handles { // as they will be given
		handles[i] = svd.Handle(uint64(i)<<16 | 1)
	}
	slice := make([]line, entries)
	guarded := map[svd.Handle]svd.Entry{}
	var lock sync.RWMutex
	for i, want := range handles {
		spec := svd.Spec{Address: uint64(handles[next[i]]), Size: 8, Blocking: 1, Element: 8}
		h, err := d.Allocate(spec)
		if err != nil {
			return err
		}
		if h != want {
			return errors.Errorf("%s came instead of %s", h, want)
		}
		guarded[h] = svd.Entry{Spec: spec, Version: 1}
		slice[i].Entry = guarded[h]
	}
	const looks, turns = 1 << 19, 5
	order := make([]svd.Handle, looks)
	for i := range order {
		order[i] = handles[rand.Intn(entries)]
	}
	reader := d.NewReader()
	defer reader.Close()
	ways := []struct {
		name string
		look func() uint64
	}{
		{"limit", func() (sum uint64) {
			for _, h := range order {
				sum += slice[h.Index()].Address
			}
			return sum
		}},
		{"lookup", func() (sum uint64) {
			for _, h := range order {
				sum += d.Lookup(h).Address
			}
			return sum
		}},
		{"all", func() (sum uint64) {
			var lines [64]*directory.Line
			for some := range slices.Chunk(order, len(lines)) {
				d.LookupAll(some, lines[:])
				for _, l := range lines[:len(some)] {
					sum += l.Address
				}
			}
			return sum
		}},
		{"section", func() (sum uint64) {
			for _, h := range order {
				reader.Enter()
				sum += d.Lookup(h).Address
				reader.Exit()
			}
			return sum
		}},
		{"guarded", func() (sum uint64) {
			for _, h := range order {
				lock.RLock()
				e := guarded[h]
				lock.RUnlock()
				sum += e.Address
			}
			return sum
		}},
		{"limit-chased", func() uint64 {
			h := handles[0]
			for range looks {
				h = svd.Handle(slice[h.Index()].Address)
			}
			return uint64(h)
		}},
		{"lookup-chased", func() uint64 {
			h := handles[0]
			for range looks {
				h = svd.Handle(d.Lookup(h).Address)
			}
			return uint64(h)
		}},
	}
	took := map[string][]float64{}
	seen := map[bool]uint64{}
	for turn := range 1 + turns { // the first for the caches
		for _, w := range ways {
			begin := time.Now()
			sum := w.look()
			if turn > 0 {
				took[w.name] = append(took[w.name], float64(time.Since(begin))/looks)
			}
			chased := strings.HasSuffix(w.name, "-chased")
			if before, any := seen[chased]; any && before != sum {
				return errors.Errorf("%s found different entries", w.name)
			}
			seen[chased] = sum
		}
	}
	for _, w := range ways {
		slices.Sort(took[w.name])
		fmt.Printf("%s %.3f\n", w.name, took[w.name][turns/2])
	}
	return nil
}

// update measures half of what it takes two tasks to answer each other's changes: by
// the directory, by single packets of the fabric below, and by MPI.
func update(kind string, count int) error {
	runtime.GOMAXPROCS(2) // the engine's goroutine sleeps in a thread of its own while this one drives
	if err := mpi.Init(); err != nil {
		return err
	}
	meeting := fabricmpi.Meet(mpi.World)
	if meeting.Tasks() != 2 {
		return errors.Errorf("%d tasks, but the figures are for 2", meeting.Tasks())
	}
	if kind != "shm" && kind != "udp" {
		return errors.Errorf("no fabric %q: there are shm and udp", kind)
	}
	join := func() (fabric.Fabric, error) {
		if kind == "shm" {
			return shm.Join(meeting, shm.Options{})
		}
		return udp.Join(meeting, udp.Options{})
	}
	for _, way := range []struct {
		name    string
		measure func(func() (fabric.Fabric, error), fabric.Meeting, int) (time.Duration, error)
	}{{"directory", changes}, {"fabric", packets}, {"MPI", messages}} {
		took, err := way.measure(join, meeting, count)
		if err != nil {
			return errors.WithMessage(err, way.name)
		}
		if meeting.Self() == 0 {
			fmt.Printf("%s %.1f\n", way.name, float64(took)/float64(2*count))
		}
	}
	return mpi.Finalize()
}

// turns has two tasks take turns: task 0 sends and waits, task 1 waits and sends, so
// many times after a tenth more. It returns how long that took.
func turns(m fabric.Meeting, count int, send func(turn int) error, wait func(turn int) error) (time.Duration, error) {
	steps := []func(int) error{send, wait}
	if m.Self() == 1 {
		steps = []func(int) error{wait, send}
	}
	warm := count / 10
	begin := time.Now()
	for turn := 1; turn <= warm+count; turn++ {
		if turn == warm+1 {
			begin = time.Now()
		}
		for _, step := range steps {
			if err := step(turn); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(begin), nil
}

// changes has two tasks resize an object of theirs in turn, each when it has seen the
// other's change.
func changes(join func() (fabric.Fabric, error), m fabric.Meeting, count int) (time.Duration, error) {
	e, handlers, err := start(join, m)
	if err != nil {
		return 0, err
	}
	d, err := directory.Serve(courier.New(e, handlers, 1, nil), directory.Config{Config: svd.Config{Tasks: 2, Network: network, Retry: time.Second, RetryMax: time.Second}})
	if err != nil {
		return 0, err
	}
	own, err := d.Allocate(svd.Spec{Size: 8, Blocking: 1, Element: 1})
	if err != nil {
		return 0, err
	}
	heard, err := m.Exchange(fmt.Appendf(nil, "%d", own))
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(string(heard[1-m.Self()]), 10, 64)
	if err != nil {
		return 0, err
	}
	other := svd.Handle(number)
	if _, err := d.Find(context.Background(), other); err != nil {
		return 0, err
	}
	if _, err := m.Exchange(nil); err != nil {
		return 0, err
	}
	took, err := turns(m, count, func(turn int) error { return d.Resize(own, 8+uint64(turn), 0) }, func(turn int) error {
		for d.Lookup(other).Size < 8+uint64(turn) {
			e.Poll()
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if _, err := m.Exchange(nil); err != nil {
		return 0, err
	}
	if err := d.Close(); err != nil {
		return 0, err
	}
	return took, e.Close()
}

// start starts a task's engine over a fabric.
func start(join func() (fabric.Fabric, error), m fabric.Meeting) (*engine.Engine, *engine.Handlers, error) {
	f, err := join()
	if err != nil {
		return nil, nil, err
	}
	secret, err := credential.Generate()
	if err != nil {
		return nil, nil, err
	}
	heard, err := m.Exchange(secret[:])
	if err != nil {
		return nil, nil, err
	}
	copy(secret[:], heard[0])
	life, err := credential.NewLife()
	if err != nil {
		return nil, nil, err
	}
	c := engine.Config{Protocol: epoch.Default(), Fabric: f, Handlers: &engine.Handlers{}}
	c.Protocol.Job, c.Protocol.Life = 1, life
	c.Protocol.Memory = func(fabric.Task, wire.Key) epoch.Memory { return nil }
	if c.Credential, err = credential.New(1, m.Self(), life, secret); err != nil {
		return nil, nil, err
	}
	e, err := engine.New(c)
	return e, c.Handlers, err
}

// packets has two tasks send each other packets of the length of a change.
func packets(join func() (fabric.Fabric, error), m fabric.Meeting, count int) (time.Duration, error) {
	f, err := join()
	if err != nil {
		return 0, err
	}
	var in [4]fabric.Packet
	out := [1]fabric.Packet{{Peer: 1 - m.Self(), Data: make([]byte, 32)}}
	took, err := turns(m, count, func(int) error {
		for {
			if n, err := f.Send(out[:]); n > 0 || err != nil {
				return err
			}
		}
	}, func(int) error {
		for {
			if n, err := f.Receive(in[:]); n > 0 || err != nil { // without sleep, as the others look
				return err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	if _, err := m.Exchange(nil); err != nil {
		return 0, err
	}
	return took, f.Close()
}

// messages does the same with MPI_Send and MPI_Recv.
func messages(_ func() (fabric.Fabric, error), m fabric.Meeting, count int) (time.Duration, error) {
	buffer := make([]byte, 32)
	other := int(1 - m.Self())
	return turns(m, count,
		func(int) error { return mpi.Send(mpi.World, buffer, other, 1) },
		func(int) error { _, err := mpi.Recv(mpi.World, buffer, other, 1); return err })
}
