// Command fabric is one task of a job without MPI, which reaches the memory of
// the others over UDP and keeps account of what must come of it.
//
//	fabric -task N -tasks M -meet DIRECTORY [-address 10.0.0.0/8] [-relay 10.0.0.1 -loss 0.1 ...] [-victim N]
//
// Each task writes, reads, counts and calls at the others, at random by the
// seed. Then it says what it did, as JSON. A victim prints "under way" and goes
// on until it is killed; the others then work on, and must get errors for what
// goes to it, and none else.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/engine/enginetest"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/relay"
	"evenkeel/runtime/fabric/udp"
)

const (
	counter = 0    // offset of the word that all tasks count in
	region  = 4096 // where that of task 0 begins; each has one at each other
	each    = 64 << 10
	depth   = 16 // operations under way
)

type options struct {
	task, tasks, rounds, victim int
	meet, address, relay        string
	seed                        uint64
	silence                     time.Duration
	impairments                 relay.Impairments
}

// account is what a task has to say in the end.
type account struct {
	Task, Operations int
	Added            uint64 // atomics of this task that must have been executed
	Counted          uint64 // what its own counter holds
	Called           uint64 // messages that its handler has executed
	Messages         uint64 // that it had answered
	Notified         int
	Silent           int           // operations that failed because the victim was silent
	Longest          time.Duration // that one of them took
	Sent, Resent     uint64
	Raised           uint64
	Dropped          uint64
	Relayed          uint64
	Impaired         uint64
}

func main() {
	var o options
	flag.IntVar(&o.task, "task", 0, "this task's number")
	flag.IntVar(&o.tasks, "tasks", 2, "tasks of the job")
	flag.IntVar(&o.rounds, "rounds", 1000, "rounds of operations")
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

// worker is a task at work.
type worker struct {
	options
	engine  *engine.Engine
	store   *enginetest.Store
	random  *rand.Rand
	images  [][]byte // of its regions at the others
	account account
}

func run(o options) (account, error) {
	var r *relay.Relay
	var between func(int, [][]byte) ([][]byte, error)
	if o.relay != "" {
		address, err := netip.ParseAddr(o.relay)
		if err != nil {
			return account{}, errors.Wrap(err, "-relay")
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
	f, err := udp.Join(m, udp.Options{Address: o.address, MTU: 1400, Spin: 20 * time.Microsecond})
	if err != nil {
		return account{}, err
	}
	secret, err := credential.Generate()
	if err != nil {
		return account{}, err
	}
	said, err := m.Exchange(secret[:])
	if err != nil {
		return account{}, err
	}
	copy(secret[:], said[0])
	w := &worker{options: o, store: enginetest.NewStore(region + o.tasks*each), random: rand.New(rand.NewPCG(o.seed, uint64(o.task)))}
	handlers := &engine.Handlers{}
	err = handlers.Messages(1, func(_ fabric.Task, data, reply []byte) ([]byte, error) {
		w.account.Called++ // the engine runs one handler at a time
		return append(reply, data...), nil
	})
	if err != nil {
		return account{}, err
	}
	w.engine, err = enginetest.New(f, secret, w.store, handlers, func(c *engine.Config) { c.Protocol.Silence = o.silence })
	if err != nil {
		return account{}, err
	}
	for range o.tasks {
		w.images = append(w.images, make([]byte, each))
	}
	w.account.Task = o.task
	err = w.work(m)
	c := w.engine.Counters()
	w.account.Sent, w.account.Resent, w.account.Raised = c.Sent, c.Resent, c.Raised
	for _, n := range c.Dropped {
		w.account.Dropped += n
	}
	if r != nil {
		w.account.Relayed, w.account.Impaired = r.Counts()
	}
	if err == nil {
		err = w.engine.Close()
	}
	return w.account, err
}

func (w *worker) work(m fabric.Meeting) error {
	if _, err := m.Exchange(nil); err != nil { // all engines run
		return err
	}
	for round := range w.rounds {
		if w.task == w.victim && round == w.rounds/4 {
			fmt.Println("under way")
			for { // until it is killed
				if err := w.round(false); err != nil {
					return err
				}
			}
		}
		if err := w.round(w.victim >= 0); err != nil {
			return errors.WithMessagef(err, "seed %d, round %d", w.seed, round)
		}
	}
	if w.victim >= 0 {
		_, err := w.survivors().Exchange(nil) // until then all answer each other
		return err
	}
	if err := w.verify(); err != nil {
		return errors.WithMessagef(err, "seed %d", w.seed)
	}
	if _, err := m.Exchange(nil); err != nil { // all have done all
		return err
	}
	w.account.Counted = binary.LittleEndian.Uint64(w.store.At(counter, 8))
	return nil
}

// round starts some operations and waits for them.
func (w *worker) round(mayFail bool) error {
	var ops []*engine.Operation
	var from []int
	for range depth / 3 {
		peer := (w.task + 1 + w.random.IntN(w.tasks-1)) % w.tasks
		at := w.random.IntN(each)
		part := make([]byte, w.random.IntN(min(each-at, 1<<w.random.IntN(16))+1))
		for i := range part {
			part[i] = byte(w.random.Uint32())
		}
		// Of writes that overlap and are under way at once, none is the last one.
		overlaps := false
		for i, o := range ops {
			if o.Op == wire.Put && o.Peer == fabric.Task(peer) && from[i] < at+len(part) && at < from[i]+len(o.Data) {
				overlaps = true
			}
		}
		if !overlaps {
			copy(w.images[peer][at:], part)
			ops = append(ops, operation(wire.Put, peer, region+w.task*each+at, part))
			from = append(from, at)
		}
		add := operation(wire.FetchAndAdd, peer, counter, nil)
		add.Width, add.Operand = 8, uint64(w.random.IntN(100))
		call := operation(wire.Message, peer, 0, part[:min(len(part), 1000)])
		call.Handler = 1
		ops = append(ops, add, call)
		from = append(from, 0, 0)
	}
	for _, o := range ops {
		o.Done = func(*engine.Operation) { w.account.Notified++ }
	}
	begin := time.Now()
	if err := w.engine.Start(ops...); err != nil {
		return err
	}
	w.account.Operations += len(ops)
	for _, o := range ops {
		err := w.engine.Wait(o)
		switch {
		case err != nil && mayFail && o.Peer == fabric.Task(w.victim) && errors.Is(err, wire.Silent):
			w.account.Silent++
			w.account.Longest = max(w.account.Longest, time.Since(begin))
		case err != nil:
			return err
		case o.Op == wire.FetchAndAdd:
			w.account.Added += o.Operand
		case o.Op == wire.Message:
			w.account.Messages++
			if !bytes.Equal(o.Reply(), o.Data) {
				return errors.Errorf("task %d replied %d bytes to %d", o.Peer, len(o.Reply()), len(o.Data))
			}
		}
	}
	return nil
}

// survivors is the meeting of all tasks but the victim.
func (w *worker) survivors() fabric.Meeting {
	self := w.task
	if self > w.victim {
		self--
	}
	return fabrictest.Directory(filepath.Join(w.meet, "survivors"), self, w.tasks-1, nil)
}

// verify reads what this task wrote at the others.
func (w *worker) verify() error {
	for peer := range w.tasks {
		if peer == w.task {
			continue
		}
		into := make([]byte, each)
		if err := w.engine.Do(operation(wire.Get, peer, region+w.task*each, into)); err != nil {
			return err
		}
		if !bytes.Equal(into, w.images[peer]) {
			return errors.Errorf("the memory of task %d is not what was written", peer)
		}
	}
	return nil
}

func operation(op wire.Op, peer, offset int, data []byte) *engine.Operation {
	return &engine.Operation{Command: epoch.Command{Op: op, Peer: fabric.Task(peer), Window: enginetest.Window, Offset: uint64(offset), Data: data}}
}
