package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/pgas/gsm/credential"
	. "evenkeel/pgas/gsm/engine"
	"evenkeel/pgas/gsm/engine/enginetest"
	"evenkeel/pgas/gsm/epoch"
	"evenkeel/pgas/gsm/wire"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/relay"
	"evenkeel/runtime/fabric/route"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

const window = enginetest.Window

// task is one of a job in this process.
type task struct {
	*Engine
	store    *enginetest.Store
	handlers *Handlers
}

// weave makes the fabric of one task; called by a goroutine for each.
type weave func(m fabric.Meeting) (fabric.Fabric, error)

func overUDP(o udp.Options) weave {
	o.Address = "127.0.0.1"
	return func(m fabric.Meeting) (fabric.Fabric, error) {
		return udp.Join(m, o)
	}
}

func overRelay(r *relay.Relay) weave {
	return func(m fabric.Meeting) (fabric.Fabric, error) {
		return udp.Join(r.Meeting(m), udp.Options{Address: "127.0.0.1", MTU: 1400})
	}
}

// overBoth has even tasks reach each other over memory, as those of a node do,
// and odd ones too; all others over UDP.
func overBoth(t *testing.T) weave {
	directories := [2]string{t.TempDir(), t.TempDir()}
	return func(m fabric.Meeting) (fabric.Fabric, error) {
		s, err := shm.Join(m, shm.Options{Directory: directories[m.Self()%2]})
		if err != nil {
			return nil, err
		}
		u, err := udp.Join(m, udp.Options{Address: "127.0.0.1"})
		if err != nil {
			return nil, err
		}
		return route.New(20*time.Microsecond, route.Way{Name: "shm", Fabric: s, Reaches: s.Reaches}, route.Way{Name: "udp", Fabric: u})
	}
}

const storeBytes = 1 << 20

// job starts the engines of so many tasks.
func job(t testing.TB, tasks int, w weave, change func(*Config)) []*task {
	secret, err := credential.Generate()
	require.NoError(t, err)
	fabrics, errs := make([]fabric.Fabric, tasks), make([]error, tasks)
	var all sync.WaitGroup
	for i, m := range fabrictest.Meetings(tasks) {
		all.Add(1)
		go func() {
			defer all.Done()
			fabrics[i], errs[i] = w(m)
		}()
	}
	all.Wait()
	var job []*task
	for i := range tasks {
		require.NoError(t, errs[i])
		one := &task{store: enginetest.NewStore(storeBytes), handlers: &Handlers{}}
		one.Engine, err = enginetest.New(fabrics[i], secret, one.store, one.handlers, change)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, one.Close()) })
		job = append(job, one)
	}
	return job
}

func put(peer fabric.Task, offset int, data []byte) *Operation {
	return &Operation{Command: epoch.Command{Op: wire.Put, Peer: peer, Window: window, Offset: uint64(offset), Data: data}}
}

func get(peer fabric.Task, offset int, into []byte) *Operation {
	return &Operation{Command: epoch.Command{Op: wire.Get, Peer: peer, Window: window, Offset: uint64(offset), Data: into}}
}

func add(peer fabric.Task, offset int, n uint64) *Operation {
	return &Operation{Command: epoch.Command{Op: wire.FetchAndAdd, Peer: peer, Window: window, Offset: uint64(offset), Width: 8, Operand: n}}
}

func message(peer fabric.Task, h wire.Handler, data []byte) *Operation {
	return &Operation{Command: epoch.Command{Op: wire.Message, Peer: peer, Handler: h, Data: data}}
}

// weaves are the networks that the tests run over.
func weaves(t *testing.T) map[string]weave {
	bad := relay.New(netip.MustParseAddr("127.0.0.1"), 1, relay.Impairments{Loss: 0.02, Duplication: 0.02, Corruption: 0.02,
		Truncation: 0.02, Reordering: 0.1, Delay: 2 * time.Millisecond})
	t.Cleanup(bad.Close)
	return map[string]weave{"udp": overUDP(udp.Options{}), "two paths": overUDP(udp.Options{Paths: 2, Spin: 20 * time.Microsecond}),
		"both": overBoth(t), "a bad network": overRelay(bad)}
}

func TestOperations(t *testing.T) {
	for name, w := range weaves(t) {
		t.Run(name, func(t *testing.T) {
			job := job(t, 3, w, nil)
			random := rand.New(rand.NewPCG(1, 2))
			for _, length := range []int{1, 8, 1500, 100_000} {
				for _, peer := range []fabric.Task{1, 2} {
					data := make([]byte, length)
					for i := range data {
						data[i] = byte(random.Uint32())
					}
					into := make([]byte, length)
					require.NoError(t, job[0].Do(put(peer, 16, data)))
					require.NoError(t, job[0].Do(get(peer, 16, into)))
					assert.True(t, bytes.Equal(data, into))
					assert.True(t, bytes.Equal(data, job[peer].store.At(16, length)))
					assert.Equal(t, []byte{0}, job[peer].store.At(16+length, 1))
				}
			}
			o := add(2, 8, 5)
			require.NoError(t, job[1].Do(o))
			assert.EqualValues(t, 0, o.Value())
			require.NoError(t, job[1].Do(o), "an operation can be used again")
			assert.EqualValues(t, 5, o.Value())
		})
	}
}

func TestMessages(t *testing.T) {
	for name, w := range weaves(t) {
		t.Run(name, func(t *testing.T) {
			job := job(t, 3, w, nil)
			for _, one := range job {
				require.NoError(t, one.handlers.Messages(1, func(source fabric.Task, data, reply []byte) ([]byte, error) {
					return append(append(reply, byte(source)), data...), nil
				}))
				require.NoError(t, one.handlers.Messages(2, func(fabric.Task, []byte, []byte) ([]byte, error) {
					return nil, wire.Protection
				}))
			}
			for _, peer := range []fabric.Task{0, 1, 2} {
				for _, length := range []int{0, 7, 40, 41, 900} {
					data := bytes.Repeat([]byte{9}, length)
					o := message(peer, 1, data)
					require.NoError(t, job[0].Do(o), "task %d", peer)
					assert.True(t, bytes.Equal(append([]byte{0}, data...), o.Reply()))
				}
				assert.ErrorIs(t, job[0].Do(message(peer, 2, nil)), wire.Protection)
				err := job[0].Do(message(peer, 9, nil))
				assert.ErrorIs(t, err, wire.NoHandler)
				assert.ErrorContains(t, err, fmt.Sprintf("active message to handler 9 of task %d", peer))
				if peer != 0 {
					assert.ErrorIs(t, job[0].Do(message(peer, 1, make([]byte, job[0].MessageLimit(peer, wire.JobKey)+1))), wire.Length)
					assert.ErrorIs(t, job[0].Do(message(peer, 2, make([]byte, job[0].MessageLimit(peer, wire.JobKey)))), wire.Protection)
				}
			}
		})
	}
}

// trains remembers the types of the packets that are given to the fabric at once.
type trains struct {
	fabric.Fabric
	sent [][]wire.Type
}

func (f *trains) Send(packets []fabric.Packet) (int, error) {
	var train []wire.Type
	for _, p := range packets {
		train = append(train, wire.TypeOf(p.Data))
	}
	f.sent = append(f.sent, train)
	return f.Fabric.Send(packets)
}

// What goes back for a message waits for who answers it by another, and leaves
// behind that one: the longer packet first, as the kernel cuts sends up.
func TestAnswersLeaveWithReplies(t *testing.T) {
	const request, reply = 1, 2
	var replies atomic.Int32
	var of *trains
	tasks := job(t, 2, func(m fabric.Meeting) (fabric.Fabric, error) {
		f, err := overUDP(udp.Options{})(m)
		if m.Self() == 1 && err == nil {
			of = &trains{Fabric: f}
			return of, nil
		}
		return f, err
	}, func(c *Config) { c.Yield = time.Hour }) // the engine's goroutine stays out of the way
	require.NoError(t, tasks[1].handlers.Messages(request, func(_ fabric.Task, _, reply []byte) ([]byte, error) { return reply, nil }))
	require.NoError(t, tasks[0].handlers.Messages(reply, func(_ fabric.Task, _, to []byte) ([]byte, error) {
		replies.Add(1)
		return to, nil
	}))
	together := false
	for range 100 { // the engine's goroutine may have been first for some
		done := make(chan error, 1)
		go func() { done <- tasks[0].Do(message(1, request, make([]byte, 8))) }()
		held := false
		for len(done) == 0 && !held {
			held = tasks[1].PollHolding()
		}
		if held {
			require.Empty(t, done, "the answer has left")
			o := message(0, reply, make([]byte, 40))
			before := replies.Load()
			require.NoError(t, tasks[1].Start(o))
			for !o.Finished() {
				tasks[1].Poll()
				tasks[0].Poll()
			}
			require.Equal(t, before+1, replies.Load())
		}
		require.NoError(t, <-done)
	}
	tasks[1].Stop()
	for _, train := range of.sent {
		if len(train) == 2 && train[0] == wire.TypeMessage && train[1] == wire.TypeAnswer {
			together = true
		}
	}
	tasks[1].Go()
	require.True(t, together, "no answer left behind a reply: %v", of.sent)
}

func TestRefusals(t *testing.T) {
	job := job(t, 2, overUDP(udp.Options{}), nil)
	for why, o := range map[wire.Reason]*Operation{
		wire.Range:     put(1, storeBytes-3, make([]byte, 4)),
		wire.NoWindow:  {Command: epoch.Command{Op: wire.Get, Peer: 1, Window: 99, Data: make([]byte, 8)}},
		wire.Alignment: add(1, 3, 1),
		wire.Operation: {Command: epoch.Command{Op: 77, Peer: 1}},
	} {
		err := job[0].Do(o)
		assert.ErrorIs(t, err, why)
		assert.ErrorContains(t, err, "task 1")
	}
	o := put(1, 0, make([]byte, 8))
	o.Pend()
	fresh := put(1, 0, make([]byte, 8))
	assert.ErrorContains(t, job[0].Start(fresh, o), "not ended")
	assert.NoError(t, job[0].Do(fresh), "nothing was started with it")
	require.NoError(t, job[0].Close())
	assert.ErrorIs(t, job[0].Start(put(1, 0, nil)), ErrClosed)
	assert.Error(t, (&Handlers{}).Messages(1, nil))
	assert.ErrorContains(t, (&Handlers{}).KeyedMessages(1, nil), "handler 1 is nil")
	assert.Error(t, (&Handlers{}).Arrivals(1, nil))
	assert.Error(t, (&Handlers{}).Messages(wire.None, func(fabric.Task, []byte, []byte) ([]byte, error) { return nil, nil }))
	assert.Error(t, (&Handlers{}).Messages(MostHandlers, func(fabric.Task, []byte, []byte) ([]byte, error) { return nil, nil }))
}

// A handler and a notification may start operations.
func TestOperationsFromHandlers(t *testing.T) {
	for name, w := range weaves(t) {
		t.Run(name, func(t *testing.T) {
			job := job(t, 3, w, nil)
			all := make(chan error, 20)
			for _, peer := range []fabric.Task{1, 2} {
				require.NoError(t, job[peer].handlers.Messages(1, func(source fabric.Task, data, reply []byte) ([]byte, error) {
					back := put(source, int(data[0])*8, []byte{data[0]})
					back.Done = func(o *Operation) { all <- o.Err() }
					return nil, job[peer].Start(back)
				}))
			}
			for i := range byte(10) {
				o := message(fabric.Task(1+i%2), 1, []byte{i})
				o.Done = func(o *Operation) {
					more := add(fabric.Task(1+i%2), 1<<10, 1)
					more.Done = func(o *Operation) { all <- o.Err() }
					if err := job[0].Start(more); err != nil {
						all <- err
					}
				}
				require.NoError(t, job[0].Start(o))
			}
			for range 20 {
				require.NoError(t, <-all)
			}
			for i := range byte(10) {
				assert.Equal(t, []byte{i}, job[0].store.At(8*int(i), 1))
			}
			assert.Equal(t, []byte{5}, job[1].store.At(1<<10, 1))
		})
	}
}

// Many goroutines of each task write, read, count and call at once. Every memory
// image is right in the end, every atomic and every message has been executed
// once, and every operation notified once.
func TestEverythingAtOnce(t *testing.T) {
	const tasks, workers, rounds = 3, 3, 60
	for name, w := range weaves(t) {
		t.Run(name, func(t *testing.T) {
			job := job(t, tasks, w, nil)
			var called, notified [tasks]atomic.Int64
			for i, one := range job {
				require.NoError(t, one.handlers.Messages(1, func(_ fabric.Task, data, reply []byte) ([]byte, error) {
					called[i].Add(1)
					return append(reply, data...), nil
				}))
			}
			const counter, region, each = 0, 4096, 9000
			var all sync.WaitGroup
			errs := make(chan error, tasks*workers)
			images := make([][]byte, tasks*workers)
			for self := range tasks {
				for worker := range workers {
					all.Add(1)
					go func() {
						defer all.Done()
						number := self*workers + worker
						r := rand.New(rand.NewPCG(17, uint64(number)))
						peer := fabric.Task((self + 1 + worker%2) % tasks)
						image := make([]byte, each)
						images[number] = image
						for round := range rounds {
							from := r.IntN(each)
							part := image[from : from+r.IntN(each-from)]
							for i := range part {
								part[i] = byte(r.Uint32())
							}
							ops := []*Operation{put(peer, region+number*each+from, part), add(peer, counter, 1), message(peer, 1, []byte{byte(round)})}
							for _, o := range ops {
								o.Done = func(*Operation) { notified[self].Add(1) }
							}
							err := job[self].Do(ops...)
							if err == nil && (len(ops[2].Reply()) != 1 || ops[2].Reply()[0] != byte(round)) {
								err = fmt.Errorf("a reply of %v", ops[2].Reply())
							}
							into := make([]byte, len(part))
							if err == nil && round%8 == 0 {
								err = job[self].Do(get(peer, region+number*each+from, into))
								if err == nil && !bytes.Equal(into, part) {
									err = fmt.Errorf("round %d: what was read is not what was written", round)
								}
							}
							if err != nil {
								errs <- err
								return
							}
						}
					}()
				}
			}
			all.Wait()
			close(errs)
			for err := range errs {
				require.NoError(t, err)
			}
			var counts, calls uint64
			for i, one := range job {
				counts += binary.LittleEndian.Uint64(one.store.At(counter, 8))
				calls += uint64(called[i].Load())
				assert.EqualValues(t, workers*rounds*3, notified[i].Load())
			}
			assert.EqualValues(t, tasks*workers*rounds, counts)
			assert.EqualValues(t, tasks*workers*rounds, calls)
			for number, image := range images {
				peer := (number/workers + 1 + number%workers%2) % tasks
				assert.True(t, bytes.Equal(image, job[peer].store.At(region+number*each, each)), "image %d", number)
			}
		})
	}
}

// Who waits by Await has what is under way go on, however long the engine's
// goroutine would leave the driving to others.
func TestAwait(t *testing.T) {
	job := job(t, 2, overUDP(udp.Options{}), func(c *Config) { c.Yield = time.Hour })
	for range 1000 { // so that the goroutine leaves the driving to this one
		job[0].Poll()
	}
	done := make(chan struct{})
	o := put(1, 0, []byte{1})
	o.Done = func(*Operation) { close(done) }
	require.NoError(t, job[0].Start(o))
	job[0].Await(func() {
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("nobody has driven the engine")
		}
	})
	assert.NoError(t, o.Err())
}

// Operations on a task that falls silent end within the configured time, those
// on other tasks are not touched, and a closed engine ends its own.
func TestSilence(t *testing.T) {
	for name, w := range weaves(t) {
		t.Run(name, func(t *testing.T) {
			const silence = 300 * time.Millisecond
			job := job(t, 4, w, func(c *Config) { c.Protocol.Silence = silence })
			answer := func(_ fabric.Task, _, reply []byte) ([]byte, error) { return reply, nil }
			for _, one := range job {
				require.NoError(t, one.handlers.Messages(1, answer))
			}
			require.NoError(t, job[0].Do(put(3, 0, []byte("alive")), message(2, 1, nil), put(1, 0, []byte("alive"))))
			// Task 3, on another node in all jobs, and 2, on this one in some, never drive their engines again.
			job[2].Stop()
			job[3].Stop()
			defer job[2].Go()
			defer job[3].Go()
			lost := []*Operation{put(3, 0, make([]byte, 5000)), add(3, 8, 1), get(3, 0, make([]byte, 10)), message(3, 1, nil),
				message(2, 1, nil)}
			require.NoError(t, job[0].Start(lost...))
			for range 20 {
				require.NoError(t, job[0].Do(put(1, 0, []byte("others are well")), message(1, 1, nil)))
			}
			for _, o := range lost {
				assert.ErrorIs(t, job[0].Wait(o), wire.Silent)
			}
			last := []*Operation{put(3, 0, []byte("again")), message(2, 1, nil)}
			require.NoError(t, job[0].Start(last...))
			require.NoError(t, job[0].Close())
			for _, o := range last {
				assert.ErrorIs(t, job[0].Wait(o), wire.Closed)
			}
		})
	}
}

// A direct message is given up when it has been under way for the configured silence, and not before.
func TestADirectMessageIsGivenUpInTime(t *testing.T) {
	const silence = time.Minute
	begin := time.Now()
	job := job(t, 3, overBoth(t), func(c *Config) { c.Protocol.Silence = silence })
	job[2].Stop()
	defer job[2].Go()
	o := message(2, 1, nil)
	require.NoError(t, job[0].Start(o))
	job[0].Stop()
	assert.False(t, job[0].Sweep(1), "from now on at the latest it is known to be under way")
	assert.False(t, job[0].Sweep(silence-1))
	assert.False(t, o.Finished())
	assert.True(t, job[0].Sweep(time.Since(begin)+silence))
	assert.True(t, o.Finished())
	assert.ErrorIs(t, o.Err(), wire.Silent)
	job[0].Go()
}

// closedWay is a fabric that sends nothing: for an error, or where there is none for want of room.
type closedWay struct {
	fabric.Fabric
	err error
}

func (w closedWay) Send([]fabric.Packet) (int, error) { return 0, w.err }

// closedNode is one to tasks of the node.
type closedNode struct{ closedWay }

func (closedNode) Lossless(fabric.Task) bool { return true }

// Packets that can't leave are counted, whatever they are kept by.
func TestPacketsThatCantLeaveAreCounted(t *testing.T) {
	noKey := put(1, 0, []byte{1})
	noKey.Key = 77
	for name, c := range map[string]struct {
		way  func(f fabric.Fabric) fabric.Fabric
		lost *Operation
		end  wire.Reason // OK: it is sent again
	}{
		"refused by the network": {func(f fabric.Fabric) fabric.Fabric { return closedWay{f, fabric.ErrPeer} }, put(1, 0, nil), wire.Dead},
		"refused by the node":    {func(f fabric.Fabric) fabric.Fabric { return closedNode{closedWay{f, fabric.ErrPeer}} }, message(1, 1, nil), wire.Dead},
		"no room":                {func(f fabric.Fabric) fabric.Fabric { return closedWay{f, nil} }, put(1, 0, nil), wire.OK},
		"no key":                 {func(f fabric.Fabric) fabric.Fabric { return f }, noKey, wire.OK},
	} {
		t.Run(name, func(t *testing.T) {
			join := overUDP(udp.Options{})
			job := job(t, 2, func(m fabric.Meeting) (fabric.Fabric, error) {
				f, err := join(m)
				return c.way(f), err
			}, nil)
			require.NoError(t, job[0].Start(c.lost))
			if c.end == wire.OK {
				assert.Eventually(t, func() bool { return job[0].Counters().Lost > 0 }, 10*time.Second, time.Millisecond)
				job[0].Fail(1)
			}
			assert.ErrorIs(t, job[0].Wait(c.lost), wire.Dead)
			if c.end != wire.OK {
				assert.EqualValues(t, 1, job[0].Counters().Lost)
			}
		})
	}
}

// A message under a narrower key is sealed with it also on the node, and its handler learns the key.
func TestHandlersLearnTheKey(t *testing.T) {
	const narrower = wire.Key(3)
	job := job(t, 3, overBoth(t), nil)
	secret, err := credential.Generate()
	require.NoError(t, err)
	for _, one := range job {
		require.NoError(t, one.Credential(func(c *credential.Credential) error { return c.Add(narrower, secret) }))
		require.NoError(t, one.handlers.KeyedMessages(1, func(_ fabric.Task, key wire.Key, _, reply []byte) ([]byte, error) {
			return append(reply, byte(key)), nil
		}))
	}
	for peer, direct := range []uint64{1, 0, 1} {
		for _, key := range []wire.Key{wire.JobKey, narrower} {
			o := message(fabric.Task(peer), 1, nil)
			o.Key = key
			require.NoError(t, job[0].Do(o))
			assert.Equal(t, []byte{byte(key)}, o.Reply())
		}
		if peer > 0 {
			assert.Equal(t, direct, job[peer].Counters().DirectExecuted)
		}
	}
	for _, peer := range []fabric.Task{1, 2} {
		limit := job[0].MessageLimit(peer, narrower)
		o := message(peer, 1, make([]byte, limit+1))
		o.Key = narrower
		assert.ErrorIs(t, job[0].Do(o), wire.Length)
		o.Data = o.Data[:limit]
		assert.NoError(t, job[0].Do(o))
	}
}

// What goes to a task that takes nothing fills its FIFO, and holds up nothing that
// goes to others.
func TestAFullFIFOHoldsUpNobodyElse(t *testing.T) {
	for name, apart := range map[string]bool{"messages": false, "packets of the protocol": true} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			job := job(t, 3, func(m fabric.Meeting) (fabric.Fabric, error) {
				return shm.Join(m, shm.Options{Directory: directory})
			}, func(c *Config) { c.Protocol.Silence = time.Minute })
			for _, one := range job {
				require.NoError(t, one.handlers.Messages(1, func(_ fabric.Task, _, reply []byte) ([]byte, error) { return reply, nil }))
			}
			job[2].Stop()
			defer job[2].Go()
			var held []*Operation
			for range 3000 {
				if apart {
					held = append(held, put(2, 0, make([]byte, 4000)))
				} else {
					held = append(held, message(2, 1, make([]byte, 1000)))
				}
				require.NoError(t, job[0].Start(held[len(held)-1]))
			}
			for range 200 {
				require.NoError(t, job[0].Do(put(1, 0, []byte("others are well")), message(1, 1, nil)))
			}
			require.NoError(t, job[0].Close())
			for _, o := range held[1000:] { // the first may be in memory by now
				require.ErrorIs(t, job[0].Wait(o), wire.Closed, "not silent yet")
			}
		})
	}
}

func TestFailEndsWhatGoesToATask(t *testing.T) {
	job := job(t, 3, overBoth(t), nil)
	for _, one := range job {
		require.NoError(t, one.handlers.Messages(1, func(_ fabric.Task, _, reply []byte) ([]byte, error) { return reply, nil }))
	}
	for _, peer := range []fabric.Task{1, 2} {
		job[peer].Stop()
		defer job[peer].Go()
		var ops []*Operation
		for range 200 { // more than a FIFO holds
			ops = append(ops, message(peer, 1, nil))
		}
		require.NoError(t, job[0].Start(ops...))
		job[0].Fail(peer)
		for _, o := range ops {
			require.ErrorIs(t, job[0].Wait(o), wire.Dead)
		}
	}
}

// An answer that comes when its message was given up does not end the one that has its place.
func TestALateAnswerEndsNoOtherMessage(t *testing.T) {
	job := job(t, 3, overBoth(t), nil)
	echo := func(_ fabric.Task, data, reply []byte) ([]byte, error) { return append(reply, data...), nil }
	require.NoError(t, job[2].handlers.Messages(1, echo))
	job[2].Stop()
	first, second := message(2, 1, []byte("first")), message(2, 1, []byte("second"))
	require.NoError(t, job[0].Start(first))
	job[0].Fail(2)
	require.ErrorIs(t, job[0].Wait(first), wire.Dead)
	require.NoError(t, job[0].Start(second))
	job[2].Go()
	require.NoError(t, job[0].Wait(second))
	assert.Equal(t, "second", string(second.Reply()))
	assert.EqualValues(t, 1, job[0].Counters().Dropped[wire.Late])
	assert.EqualValues(t, 2, job[0].Counters().Direct)
	assert.EqualValues(t, 2, job[2].Counters().DirectExecuted)
}

// Packets that are not the job's are counted, and told of once when there are so many.
func TestNotice(t *testing.T) {
	for drops, want := range map[uint64]int32{10: 1, 30: 1, 31: 0} {
		told, shown := notices(t, drops)
		assert.Equal(t, want, told, "30 packets, of %d", drops)
		assert.Equal(t, uint64(30*want), shown, "30 packets, of %d", drops)
	}
}

// strangers is a fabric to whose ports others send.
type strangers struct {
	fabric.Fabric
	dropped atomic.Uint64
}

func (s *strangers) Foreign() uint64 { return s.dropped.Load() }

// What the fabric drops itself is told of like what the engine drops.
func TestNoticeOfWhatTheFabricDrops(t *testing.T) {
	var notices atomic.Int32
	var shown atomic.Uint64
	all := make([]strangers, 2)
	udps := overUDP(udp.Options{})
	job := job(t, 2, func(m fabric.Meeting) (fabric.Fabric, error) {
		f, err := udps(m)
		if err != nil {
			return nil, err
		}
		s := &all[m.Self()]
		s.Fabric = f
		return s, nil
	}, func(c *Config) {
		c.Drops = 10
		c.Notice = func(string) { notices.Add(1) }
		c.Foreign = func(more uint64) { shown.Add(more) }
	})
	for _, step := range []struct {
		dropped, shown uint64
		notices        int32
	}{{9, 0, 0}, {10, 10, 1}, {15, 15, 1}} {
		all[1].dropped.Store(step.dropped)
		job[1].Poll()
		job[1].Poll()
		assert.Equal(t, step.notices, notices.Load())
		assert.Equal(t, step.shown, shown.Load())
	}
}

// notices is how often the user is told after 30 such packets, and how many are shown to the report.
func notices(t *testing.T, drops uint64) (told int32, shown uint64) {
	var notices atomic.Int32
	var foreign atomic.Uint64
	job := job(t, 2, overUDP(udp.Options{}), func(c *Config) {
		c.Drops = drops
		c.Notice = func(string) { notices.Add(1) }
		c.Foreign = func(more uint64) { foreign.Add(more) }
	})
	f := job[0].Fabric()
	job[0].Stop()
	for i := range 30 {
		n, err := f.Send([]fabric.Packet{{Peer: 1, Data: bytes.Repeat([]byte{byte(1 + 0x7f*(i%2))}, 100)}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	job[0].Go()
	require.Eventually(t, func() bool {
		c := job[1].Counters()
		total := uint64(0)
		for _, n := range c.Dropped {
			total += n
		}
		return total == 30
	}, 10*time.Second, time.Millisecond)
	assert.Zero(t, job[1].Counters().DirectExecuted, "nobody has a direct message executed over UDP")
	return notices.Load(), foreign.Load()
}
