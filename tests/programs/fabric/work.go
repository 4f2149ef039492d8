package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"evenkeel/pgas/gsm/credential"
	"evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/engine/enginetest"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
)

// The memory of a task: a word in which all others count, and for each task a
// part that it alone writes: words for atomics, and bytes. Between them are bytes
// that nobody may change.
const (
	counter = 0
	first   = 4096
	words   = 16
	each    = 64 << 10
	stride  = first + each + first
	guard   = 0xa5
)

// partOf is where a task's words begin, and bytesOf its bytes.
func partOf(task int) int  { return first + task*stride }
func bytesOf(task int) int { return partOf(task) + first }

// The handlers of all tasks.
const (
	called  = 1
	arrived = 2
)

// account is what a task has to say in the end. What was done is counted by who
// wanted it and by who did it, and so are sums that would differ if one thing was
// done twice and another one never.
type account struct {
	Task, Operations     int
	Notified             atomic.Uint64
	Added, Counted       uint64 // by this task's atomics; what its own counter holds
	Messages, Called     uint64 // that were answered; that its handler has executed
	MessageSum, CallSum  uint64
	Announced, Arrived   uint64 // PUTs that name a handler; how often its own handler ran
	AnnounceSum, LandSum uint64
	Silent               int           // operations that failed because the victim was silent
	Longest              time.Duration // that one of them took
	Sent, Resent, Raised uint64
	Dropped              uint64
	Relayed, Impaired    uint64
	PeakEarly, Peak      uint64 // bytes that were resident at most, after a tenth of the rounds and after all
}

func (a *account) finish(c engine.Counters) {
	a.Sent, a.Resent, a.Raised = c.Sent, c.Resent, c.Raised
	for _, n := range c.Dropped {
		a.Dropped += n
	}
	a.Peak = peak()
}

// peak is how many bytes of the process were resident at most.
func peak() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ := strings.Cut(rest, "kB")
	kilobytes, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return kilobytes << 10
}

// MarshalJSON has the notifications as a number.
func (a *account) MarshalJSON() ([]byte, error) {
	type plain account
	return json.Marshal(struct {
		*plain
		Notified uint64
	}{(*plain)(a), a.Notified.Load()})
}

// worker is a task at work.
type worker struct {
	options
	engine  *engine.Engine
	store   *enginetest.Store
	random  *rand.Rand
	peers   []*image // by task
	message uint64   // the number of the last one
	account account
}

// image is what a task's part at another one must hold.
type image struct {
	words [words]uint64
	bytes [each]byte
}

func newWorker(o options, f fabric.Fabric, secret credential.Secret) (*worker, error) {
	w := &worker{options: o, store: enginetest.NewStore(first + o.tasks*stride), random: rand.New(rand.NewPCG(o.seed, uint64(1+o.task)))}
	w.account.Task = o.task
	for range o.tasks {
		w.peers = append(w.peers, &image{})
	}
	err := w.forbidden(func(at, length int) error {
		return w.store.Write(enginetest.Window, uint64(at), bytes.Repeat([]byte{guard}, length))
	})
	if err != nil {
		return nil, err
	}
	handlers := &engine.Handlers{} // the engine runs one at a time
	err = handlers.Messages(called, func(_ fabric.Task, data, reply []byte) ([]byte, error) {
		w.account.Called++
		w.account.CallSum += sum(data)
		return append(reply, data...), nil
	})
	if err == nil {
		err = handlers.Arrivals(arrived, func(source fabric.Task, _ wire.Window, offset, length uint64) {
			w.account.Arrived++
			w.account.LandSum += landing(int(source), offset, length)
		})
	}
	if err != nil {
		return nil, err
	}
	w.engine, err = enginetest.New(f, secret, w.store, handlers, func(c *engine.Config) { c.Protocol.Silence = o.silence })
	return w, err
}

// forbidden goes through the bytes that nobody may change.
func (w *worker) forbidden(f func(at, length int) error) error {
	err := f(counter+8, first-8)
	for task := 0; task < w.tasks && err == nil; task++ {
		if err = f(partOf(task)+8*words, first-8*words); err == nil {
			err = f(bytesOf(task)+each, first)
		}
	}
	return err
}

func sum(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

func landing(source int, offset, length uint64) uint64 {
	return sum(fmt.Appendf(nil, "%d %d %d", source, offset, length))
}

func (w *worker) work(m fabric.Meeting) error {
	if _, err := m.Exchange(nil); err != nil { // all engines run
		return err
	}
	for round := range w.rounds {
		if w.task == w.victim && round == w.rounds/4 {
			fmt.Println("under way")
			for { // until it is killed
				if err := w.round(); err != nil {
					return err
				}
			}
		}
		if err := w.round(); err != nil {
			return errors.WithMessagef(err, "seed %d, round %d", w.seed, round)
		}
		if round <= w.rounds/10 {
			w.account.PeakEarly = peak()
		}
	}
	if w.victim >= 0 {
		if _, err := w.survivors().Exchange(nil); err != nil { // until then all answer each other
			return err
		}
		return errors.WithMessagef(w.untouched(), "seed %d", w.seed)
	}
	return errors.WithMessagef(w.verify(m), "seed %d", w.seed)
}

// started is an operation of a round, and what its end must be.
type started struct {
	engine.Operation
	notified atomic.Uint32
	end      func() error
}

// round starts some operations and waits for them.
func (w *worker) round() error {
	all := make([]*started, 0, w.depth)
	for len(all) < w.depth {
		peer := (w.task + 1 + w.random.IntN(w.tasks-1)) % w.tasks
		switch w.random.IntN(5) {
		case 0:
			all = w.put(all, peer)
		case 1:
			all = w.get(all, peer)
		case 2:
			all = w.count(all, peer)
		case 3:
			all = w.update(all, peer)
		default:
			all = w.call(all, peer)
		}
	}
	operations := make([]*engine.Operation, len(all))
	for i, o := range all {
		operations[i] = &o.Operation
		o.Done = func(*engine.Operation) {
			o.notified.Add(1)
			w.account.Notified.Add(1)
		}
	}
	begin := time.Now()
	if err := w.engine.Start(operations...); err != nil {
		return err
	}
	w.account.Operations += len(all)
	for _, o := range all {
		err := w.engine.Wait(&o.Operation)
		if err != nil && int(o.Peer) == w.victim && errors.Is(err, wire.Silent) {
			w.account.Silent++
			w.account.Longest = max(w.account.Longest, time.Since(begin))
			continue
		}
		if err == nil {
			err = o.end()
		}
		if err != nil {
			return err
		}
	}
	for _, o := range all { // a notification may come a moment after Wait has returned
		for o.notified.Load() == 0 {
			time.Sleep(time.Microsecond)
		}
		if n := o.notified.Load(); n != 1 {
			return errors.Errorf("%v to task %d had %d notifications", o.Op, o.Peer, n)
		}
	}
	return nil
}

// some draws a part of the bytes at a peer that no operation of the round uses
// which would leave open what they are; nil: the draw was bad.
func (w *worker) some(all []*started, peer int, op wire.Op) (at int, data []byte) {
	at = w.random.IntN(each)
	length := w.random.IntN(min(each-at, 1<<w.random.IntN(16)) + 1)
	begin := uint64(bytesOf(w.task) + at)
	for _, o := range all {
		if (o.Op == wire.Put || o.Op == wire.Get && op == wire.Put) && int(o.Peer) == peer &&
			o.Offset < begin+uint64(length) && begin < o.Offset+uint64(len(o.Data)) {
			return 0, nil
		}
	}
	return at, make([]byte, length)
}

func (w *worker) put(all []*started, peer int) []*started {
	at, data := w.some(all, peer, wire.Put)
	if data == nil {
		return all
	}
	for i := range data {
		data[i] = byte(w.random.Uint32())
	}
	o := operation(wire.Put, peer, bytesOf(w.task)+at, data)
	if w.random.IntN(2) == 0 {
		o.Handler = arrived
	}
	o.end = func() error {
		copy(w.peers[peer].bytes[at:], data)
		if o.Handler != wire.None {
			w.account.Announced++
			w.account.AnnounceSum += landing(w.task, o.Offset, uint64(len(data)))
		}
		return nil
	}
	return append(all, o)
}

func (w *worker) get(all []*started, peer int) []*started {
	at, into := w.some(all, peer, wire.Get)
	if into == nil {
		return all
	}
	o := operation(wire.Get, peer, bytesOf(w.task)+at, into)
	o.end = func() error {
		if !bytes.Equal(into, w.peers[peer].bytes[at:at+len(into)]) {
			return errors.Errorf("%d bytes at %d of task %d are not what was written", len(into), at, peer)
		}
		return nil
	}
	return append(all, o)
}

// count adds to the word that all tasks count in.
func (w *worker) count(all []*started, peer int) []*started {
	o := operation(wire.FetchAndAdd, peer, counter, nil)
	o.Width, o.Operand = 8, uint64(w.random.IntN(100))
	o.end = func() error {
		w.account.Added += o.Operand
		return nil
	}
	return append(all, o)
}

// update is an atomic on a word of this task's own, which must find what the one before
// it has left: one that was executed twice, or never, is seen by the next.
func (w *worker) update(all []*started, peer int) []*started {
	at := w.random.IntN(words)
	offset := partOf(w.task) + 8*at
	for _, o := range all {
		if o.Op.Atomic() && int(o.Peer) == peer && o.Offset == uint64(offset) {
			return all
		}
	}
	op := wire.Add + wire.Op(w.random.IntN(int(wire.FetchAndXor-wire.Add)+1))
	o := operation(op, peer, offset, nil)
	o.Width, o.Operand = 8, w.random.Uint64()
	word := &w.peers[peer].words[at]
	if op == wire.CompareAndSwap {
		o.Compare = *word - uint64(w.random.IntN(2))
	}
	o.end = func() error {
		was := *word
		*word = op.Apply(8, was, o.Operand, o.Compare)
		if op.Fetches() && o.Value() != was {
			return errors.Errorf("%v at word %d of task %d found %#x, not %#x", op, at, peer, o.Value(), was)
		}
		return nil
	}
	return append(all, o)
}

func (w *worker) call(all []*started, peer int) []*started {
	data := make([]byte, 16+w.random.IntN(1000))
	w.message++
	binary.LittleEndian.PutUint64(data, uint64(w.task))
	binary.LittleEndian.PutUint64(data[8:], w.message)
	o := operation(wire.Message, peer, 0, data)
	o.Handler = called
	o.end = func() error {
		w.account.Messages++
		w.account.MessageSum += sum(data)
		if !bytes.Equal(o.Reply(), data) {
			return errors.Errorf("task %d replied %d bytes to %d", peer, len(o.Reply()), len(data))
		}
		return nil
	}
	return append(all, o)
}

func operation(op wire.Op, peer, offset int, data []byte) *started {
	return &started{Operation: engine.Operation{Command: epoch.Command{Op: op, Peer: fabric.Task(peer), Window: enginetest.Window,
		Offset: uint64(offset), Data: data}}}
}

// survivors is the meeting of all tasks but the victim.
func (w *worker) survivors() fabric.Meeting {
	self := w.task
	if self > w.victim {
		self--
	}
	return fabrictest.Directory(filepath.Join(w.meet, "survivors"), self, w.tasks-1, nil)
}

// untouched looks at the bytes that nobody may change.
func (w *worker) untouched() error {
	return w.forbidden(func(at, length int) error {
		if !bytes.Equal(w.store.At(at, length), bytes.Repeat([]byte{guard}, length)) {
			return errors.Errorf("bytes that nobody may change were changed, between %d and %d", at, at+length)
		}
		return nil
	})
}

// verify compares what each task's memory holds, as itself sees it, with what
// the others have made of it.
func (w *worker) verify(m fabric.Meeting) error {
	if _, err := m.Exchange(nil); err != nil { // all have done all
		return err
	}
	w.account.Counted = binary.LittleEndian.Uint64(w.store.At(counter, 8))
	if err := w.untouched(); err != nil {
		return err
	}
	var digests []byte
	for task := range w.tasks {
		digest := sha256.Sum256(append(w.store.At(partOf(task), 8*words), w.store.At(bytesOf(task), each)...))
		digests = append(digests, digest[:]...)
	}
	said, err := m.Exchange(digests)
	if err != nil {
		return err
	}
	for peer, image := range w.peers {
		if peer == w.task {
			continue
		}
		var packed []byte
		for _, word := range image.words {
			packed = binary.LittleEndian.AppendUint64(packed, word)
		}
		digest := sha256.Sum256(append(packed, image.bytes[:]...))
		if !bytes.Equal(digest[:], said[peer][w.task*sha256.Size:][:sha256.Size]) {
			return errors.Errorf("the memory of task %d is not what was written", peer)
		}
	}
	return nil
}
