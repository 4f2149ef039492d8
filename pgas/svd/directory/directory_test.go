package directory

import (
	"context"
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"evenkeel/collectives"
	"evenkeel/collectives/carrier"
	"evenkeel/pgas/svd"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/fabrictest"
	"evenkeel/runtime/fabric/shm"
	"evenkeel/runtime/fabric/udp"
)

// The fabrics that a directory runs over, for so many tasks of this process.
var joins = map[string]func(fabric.Meeting) (fabric.Fabric, error){
	"udp": func(m fabric.Meeting) (fabric.Fabric, error) { return udp.Join(m, udp.Options{Address: "127.0.0.1"}) },
	"shm": func(m fabric.Meeting) (fabric.Fabric, error) { return shm.Join(m, shm.Options{}) },
}

// memory is the shared memory of a job: words, each with the object that it belongs to.
type memory struct {
	lock  sync.Mutex
	words []atomic.Uint64
	free  []uint64
}

func newMemory(words int) *memory {
	m := &memory{words: make([]atomic.Uint64, words)}
	for w := range words {
		m.free = append(m.free, uint64(w))
	}
	return m
}

// take returns a free word, one that was given back last.
func (m *memory) take() (uint64, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(m.free) == 0 {
		return 0, false
	}
	w := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	return w, true
}

func (m *memory) give(r svd.Range) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for w := r.Address; w < r.Address+r.Size; w++ {
		m.words[w].Store(0)
		m.free = append(m.free, w)
	}
}

// start makes the directories of a job's tasks, whose memories are the test's.
func start(t *testing.T, join func(fabric.Meeting) (fabric.Fabric, error), tasks int) ([]*Server, []*memory) {
	servers, memories := make([]*Server, tasks), make([]*memory, tasks)
	var group sync.WaitGroup
	for i, m := range fabrictest.Meetings(tasks) {
		memories[i] = newMemory(64)
		group.Go(func() {
			f, err := join(m)
			if !assert.NoError(t, err) {
				return
			}
			servers[i], err = Serve(carrier.Over(f), Config{Released: memories[i].give, Config: svd.Config{Tasks: tasks,
				Network: collectives.Network{Between: collectives.Link{Latency: 10000, Overhead: 2000, Gap: 1000, PerByte: 1}},
				Retry:   5 * time.Millisecond, RetryMax: 50 * time.Millisecond}})
			assert.NoError(t, err)
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	t.Cleanup(func() {
		for _, s := range servers {
			assert.NoError(t, s.Close())
		}
	})
	return servers, memories
}

func withinAMinute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestOverFabrics: one task's object is found, changed and freed by others, over
// every fabric.
func TestOverFabrics(t *testing.T) {
	for name, join := range joins {
		t.Run(name, func(t *testing.T) {
			servers, memories := start(t, join, 4)
			ctx := withinAMinute(t)
			h, err := servers[0].Allocate(svd.Spec{Address: 7, Size: 2, Blocking: 1, Element: 1})
			require.NoError(t, err)
			for _, s := range servers {
				e, err := s.Find(ctx, h)
				require.NoError(t, err)
				require.Equal(t, uint64(7), e.Address)
			}
			require.NoError(t, servers[0].Move(h, func(e svd.Entry) (_, _, _ uint64) { return 20, e.Size, 0 }))
			for _, s := range servers {
				e, err := s.Find(ctx, h)
				require.NoError(t, err)
				require.Equal(t, uint64(20), e.Address)
			}
			require.NoError(t, servers[3].Free(ctx, h))
			assert.ErrorContains(t, servers[2].Free(ctx, h), "freed before")
			require.Eventually(t, func() bool {
				memories[0].lock.Lock()
				defer memories[0].lock.Unlock()
				return len(memories[0].free) == 64+2+2 // of where it was, and of where it went
			}, 10*time.Second, time.Millisecond)
			for _, s := range servers {
				assert.Nil(t, s.Lookup(h))
			}
		})
	}
}

// TestCollective: all tasks get the same handle, and each is told when its part of the
// memory is free.
func TestCollective(t *testing.T) {
	servers, memories := start(t, joins["shm"], 5)
	ctx := withinAMinute(t)
	handles := make([]svd.Handle, 5)
	var group sync.WaitGroup
	for i, s := range servers {
		group.Go(func() {
			var err error
			handles[i], err = s.AllocateAll(ctx, svd.Spec{Address: 3, Size: 1, Blocking: 1, Element: 1})
			assert.NoError(t, err)
		})
	}
	group.Wait()
	for _, h := range handles {
		require.Equal(t, handles[0], h)
	}
	require.NoError(t, servers[4].Free(ctx, handles[0]))
	for _, m := range memories {
		require.Eventually(t, func() bool {
			m.lock.Lock()
			defer m.lock.Unlock()
			return len(m.free) == 65
		}, 10*time.Second, time.Millisecond)
	}
}

// TestReadersNeverSeeOtherMemory: while objects are allocated, moved and freed in
// memory that is used again at once, readers in all tasks look them up and use their
// addresses, and never meet memory of another object.
func TestReadersNeverSeeOtherMemory(t *testing.T) {
	const tasks, objects = 3, 8
	servers, memories := start(t, joins["shm"], tasks)
	ctx := withinAMinute(t)
	var shared [objects]atomic.Uint64 // handles of task 0's objects
	allocate := func(i int) {
		w, ok := memories[0].take()
		if !ok {
			return // all are waiting for readers
		}
		h, err := servers[0].Allocate(svd.Spec{Address: w, Size: 1, Blocking: 1, Element: 1})
		require.NoError(t, err)
		memories[0].words[w].Store(uint64(h))
		shared[i].Store(uint64(h))
	}
	for i := range objects {
		allocate(i)
	}
	var stop atomic.Bool
	var reads, wrong atomic.Int64
	var group sync.WaitGroup
	for task := range tasks {
		group.Go(func() {
			random := rand.New(rand.NewSource(int64(task)))
			r := servers[task].NewReader()
			defer r.Close()
			for !stop.Load() {
				h := svd.Handle(shared[random.Intn(objects)].Load())
				r.Enter()
				e := servers[task].Lookup(h)
				if e == nil {
					r.Exit()
					_, _ = servers[task].Find(ctx, h) // it may have been freed
					continue
				}
				for range random.Intn(200) { // it is not done at once
					if memories[0].words[e.Address].Load() != uint64(h) {
						wrong.Add(1)
					}
				}
				r.Exit()
				reads.Add(1)
			}
		})
	}
	random := rand.New(rand.NewSource(99))
	for range 1500 {
		i := random.Intn(objects)
		h := svd.Handle(shared[i].Load())
		switch random.Intn(3) {
		case 0:
			w, ok := memories[0].take()
			if !ok {
				continue
			}
			require.NoError(t, servers[0].Move(h, func(e svd.Entry) (_, _, _ uint64) {
				memories[0].words[w].Store(uint64(h))
				return w, e.Size, 0
			}))
		default:
			if err := servers[random.Intn(tasks)].Free(ctx, h); err == nil {
				allocate(i)
			} else {
				allocate(i) // the last time there was no memory
			}
		}
	}
	stop.Store(true)
	group.Wait()
	t.Logf("%d reads", reads.Load())
	assert.Zero(t, wrong.Load(), "reads of memory that belongs to another object")
	assert.Positive(t, reads.Load())
}

// single makes the directory of task 0 of two, whose messages are lost.
func single(t *testing.T) *Directory {
	d, err := New(Config{Send: func(svd.Task, []byte) {}, Config: svd.Config{Tasks: 2, Limit: 1400, Retry: time.Millisecond, RetryMax: time.Second,
		Patience: 1, Network: collectives.Network{Between: collectives.Link{Latency: 1000, Overhead: 500, Gap: 500, PerByte: 0.5}}}})
	require.NoError(t, err)
	return d
}

var word = svd.Spec{Address: 7, Size: 1, Blocking: 1, Element: 1}

// Who looks for an object while it moves finds it where it has moved.
func TestFindWaitsForAMove(t *testing.T) {
	d := single(t)
	h, err := d.Allocate(word)
	require.NoError(t, err)
	found := make(chan error, 1)
	require.NoError(t, d.Move(h, func(svd.Entry) (_, _, _ uint64) {
		assert.Nil(t, d.Lookup(h))
		go func() {
			l, err := d.Find(withinAMinute(t), h)
			if err == nil && l.Address != 20 {
				err = errors.Errorf("it is at %d", l.Address)
			}
			found <- err
		}()
		for waits := false; !waits && len(found) == 0; time.Sleep(time.Microsecond) {
			d.lock.Lock()
			waits = d.settled != nil
			d.lock.Unlock()
		}
		return 20, 1, 1
	}))
	require.NoError(t, <-found)
}

// An object that is freed while its readers are in the way of a move goes nowhere.
func TestFreedWhileItMoves(t *testing.T) {
	d := single(t)
	h, err := d.Allocate(word)
	require.NoError(t, err)
	r := d.NewReader()
	r.Enter()
	moved := make(chan error)
	go func() {
		moved <- d.Move(h, func(svd.Entry) (_, _, _ uint64) {
			t.Error("it is nowhere to be moved to")
			return 20, 1, 1
		})
	}()
	for d.Lookup(h) != nil {
		time.Sleep(time.Microsecond)
	}
	freed := make(chan error)
	go func() { freed <- d.Free(withinAMinute(t), h) }()
	for moving := true; moving; {
		d.lock.Lock()
		_, err := d.replica.Lookup(h)
		d.lock.Unlock()
		var refused *svd.Error
		moving = errors.As(err, &refused) && refused.Reason == svd.IsMoving
	}
	r.Exit()
	require.NoError(t, <-freed)
	require.ErrorContains(t, <-moved, "it was freed before")
	_, err = d.Find(withinAMinute(t), h)
	require.ErrorContains(t, err, "it was freed before")
}

// A home that waits for its users to hear of a change waits for their readers, if the change takes memory away.
func TestHeard(t *testing.T) {
	servers, _ := start(t, joins["shm"], 2)
	ctx := withinAMinute(t)
	wide := word
	wide.Size = 2
	h, err := servers[0].Allocate(wide)
	require.NoError(t, err)
	servers[0].Heard(h) // which nobody else knows
	_, err = servers[1].Find(ctx, h)
	require.NoError(t, err)
	r := servers[1].NewReader()
	r.Enter()
	require.NotNil(t, servers[1].Lookup(h))
	var ended atomic.Bool
	go func() {
		time.Sleep(20 * time.Millisecond) // in which who does not wait comes first
		ended.Store(true)
		r.Exit()
	}()
	require.NoError(t, servers[0].Resize(h, 1, 1))
	servers[0].Heard(h)
	require.True(t, ended.Load())
	servers[0].Heard(h) // there is nothing more to hear
	require.EqualValues(t, 1, servers[1].Lookup(h).Size)
}

// When a free returns no task finds the object any more, nor reads it, whoever has freed it, and also for who has come
// second.
func TestFreeWaitsForUsers(t *testing.T) {
	const tasks = 4
	servers, _ := start(t, joins["shm"], tasks)
	ctx := withinAMinute(t)
	for round := range 100 {
		home := servers[round%tasks]
		h, err := home.Allocate(word)
		require.NoError(t, err)
		var reading [tasks]atomic.Bool
		var group sync.WaitGroup
		for i, s := range servers {
			_, err := s.Find(ctx, h)
			require.NoError(t, err)
			r := s.NewReader()
			r.Enter()
			require.NotNil(t, s.Lookup(h))
			reading[i].Store(true)
			group.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond) // in which who does not wait comes first
				reading[i].Store(false)
				r.Close()
			})
		}
		freed := make([]error, 2)
		for i := range freed {
			group.Go(func() {
				freed[i] = servers[(round/tasks+i)%tasks].Free(ctx, h)
				for j, s := range servers {
					assert.Nil(t, s.Lookup(h))
					assert.False(t, reading[j].Load(), "task %d still reads", j)
				}
			})
		}
		group.Wait()
		if freed[0] != nil {
			freed[0], freed[1] = freed[1], freed[0]
		}
		require.NoError(t, freed[0])
		require.ErrorContains(t, freed[1], "it was freed before")
	}
}

// Who forgets an object is told of no changes, and finds it as it is then.
func TestForget(t *testing.T) {
	servers, _ := start(t, joins["shm"], 2)
	ctx := withinAMinute(t)
	h, err := servers[0].Allocate(word)
	require.NoError(t, err)
	_, err = servers[1].Find(ctx, h)
	require.NoError(t, err)
	servers[1].Forget(h)
	require.Nil(t, servers[1].Lookup(h))
	require.NoError(t, servers[0].Resize(h, 2, 2))
	servers[0].Heard(h)
	require.Nil(t, servers[1].Lookup(h))
	l, err := servers[1].Find(ctx, h)
	require.NoError(t, err)
	require.EqualValues(t, 2, l.Size)
}

// Who asks a task that does not answer is told that it is silent, and hears when it is dead.
func TestAskingADeadTask(t *testing.T) {
	d := single(t)
	silent := make(chan svd.Task, 1)
	d.config.Silent = func(task svd.Task) { silent <- task }
	ctx := withinAMinute(t)
	answered := make(chan error)
	theirs := svd.Handle(1<<40 | 1)
	go func() {
		_, err := d.Find(ctx, theirs)
		answered <- err
	}()
	for len(silent) == 0 {
		d.Tick()
		time.Sleep(100 * time.Microsecond)
	}
	require.Equal(t, svd.Task(1), <-silent)
	d.Gone(1)
	require.ErrorContains(t, <-answered, "a task is dead that it needs")
	require.ErrorContains(t, d.Free(ctx, theirs), "a task is dead that it needs")
}

// When the home of everyone's objects dies, they are not known any more, and who waits for one to have moved is told.
func TestTheHomeOfEveryonesObjectsDies(t *testing.T) {
	servers, _ := start(t, joins["shm"], 2)
	ctx := withinAMinute(t)
	var objects [2]svd.Handle
	for i := range objects {
		var err error
		objects[i], err = servers[0].AllocateGlobal(ctx, word)
		require.NoError(t, err)
		_, err = servers[1].Find(ctx, objects[i])
		require.NoError(t, err)
	}
	r := servers[1].NewReader()
	r.Enter() // the move does not get on
	go servers[0].Move(objects[0], func(svd.Entry) (_, _, _ uint64) { return 20, 1, 1 })
	for servers[1].Lookup(objects[0]) != nil {
		time.Sleep(time.Microsecond)
	}
	found := make(chan error)
	go func() {
		_, err := servers[1].Find(ctx, objects[0])
		found <- err
	}()
	for waits := false; !waits; {
		servers[1].lock.Lock()
		waits = servers[1].settled != nil
		servers[1].lock.Unlock()
	}
	servers[1].Gone(0)
	require.ErrorContains(t, <-found, "a task is dead that it needs")
	r.Exit()
	for _, h := range objects {
		require.Nil(t, servers[1].Lookup(h))
		_, err := servers[1].Find(ctx, h)
		require.ErrorContains(t, err, "a task is dead that it needs")
		require.ErrorContains(t, servers[1].Free(ctx, h), "a task is dead that it needs")
	}
}

// Who drives a directory is told when it has to be called, if that is sooner than was known.
func TestDue(t *testing.T) {
	d := single(t)
	var due []time.Duration
	d.config.Due = func(in time.Duration) { due = append(due, in) }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for generation := range svd.Handle(3) {
		_, err := d.Find(ctx, 1<<40|(1+generation))
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Len(t, due, 1)
	require.LessOrEqual(t, due[0], d.config.Retry)
}

// When a directory is closed nothing is known any more, also to who has kept what it found.
func TestNothingIsKnownAfterTheEnd(t *testing.T) {
	d := single(t)
	handles, lines := make([]svd.Handle, 3), make([]*Line, 3)
	for i := range handles {
		var err error
		handles[i], err = d.Allocate(word)
		require.NoError(t, err)
	}
	require.NoError(t, d.Resize(handles[1], 2, 2))
	d.LookupAll(handles, lines)
	d.close()
	for i, h := range handles {
		require.False(t, lines[i].Current(h))
		require.Nil(t, d.Lookup(h))
		_, err := d.Find(t.Context(), h)
		require.ErrorContains(t, err, "the directory is closed")
	}
	h, err := d.Allocate(word) // by somebody who has not heard of the end
	require.NoError(t, err)
	require.Nil(t, d.Lookup(h))
}

// Who waits for another task, or for readers, when a directory is closed is told that it is.
func TestCloseLetsGoWhoWaits(t *testing.T) {
	d, ctx := single(t), withinAMinute(t)
	var own [2]svd.Handle
	for i := range own {
		var err error
		own[i], err = d.Allocate(word)
		require.NoError(t, err)
	}
	const others = svd.Handle(1<<40 | 1)
	nowhere := func(svd.Entry) (_, _, _ uint64) {
		t.Error("it is not to be moved any more")
		return 20, 1, 1
	}
	r := d.NewReader()
	r.Enter() // a move waits for it
	waits := map[string]func() error{
		"moving":  func() error { return d.Move(own[0], nowhere) },
		"found":   func() error { _, err := d.Find(ctx, own[0]); return err },
		"asking":  func() error { _, err := d.Find(ctx, others); return err },
		"freeing": func() error { return d.Free(ctx, others) },
		"all":     func() error { _, err := d.AllocateAll(ctx, word); return err },
	}
	ends := make(chan error)
	begin := func(what string) {
		go func() { ends <- errors.WithMessage(waits[what](), what) }()
	}
	begin("moving")
	for d.Lookup(own[0]) != nil {
		time.Sleep(time.Microsecond)
	}
	for what := range waits {
		if what != "moving" {
			begin(what)
		}
	}
	select {
	case err := <-ends:
		require.Fail(t, "it is to wait", "%v", err)
	case <-time.After(20 * time.Millisecond): // in which who does not wait comes first
	}
	d.close()
	d.close() // again
	for range waits {
		require.ErrorContains(t, <-ends, "the directory is closed")
	}
	r.Exit()
}

// TestTable compares the table with a map, while it grows and changes, and readers
// find what is there all the time.
func TestTable(t *testing.T) {
	for seed := range int64(6) {
		random := rand.New(rand.NewSource(seed))
		var table table
		table.init()
		want := map[svd.Handle]svd.Entry{}
		handle := func() svd.Handle { // of some partitions and generations; some indices are far away
			index := uint64(random.Intn(300)) << (random.Intn(2) * 6)
			return svd.Handle(uint64(random.Intn(30))<<40 | index<<16 | uint64(1+random.Intn(2)))
		}
		of := map[svd.Handle]svd.Handle{} // who has the index now
		stays := svd.Handle(99<<40 | 1)
		table.put(stays, svd.Entry{})
		var stop atomic.Bool
		var missed atomic.Int64
		var group sync.WaitGroup
		group.Go(func() {
			for last := uint64(0); !stop.Load(); {
				e := table.find(stays)
				if e == nil || e.Version < last || e.Address != e.Version {
					missed.Add(1)
					return
				}
				last = e.Version
			}
		})
		for i := range uint64(20000) {
			h := handle()
			if last := of[h>>16]; last != h {
				table.remove(last)
				delete(want, last)
			}
			of[h>>16] = h
			if random.Intn(3) == 0 {
				table.remove(h)
				delete(want, h)
			} else {
				e := svd.Entry{Version: i}
				table.put(h, e)
				want[h] = e
			}
			before := table.find(stays)
			table.put(stays, svd.Entry{Version: i, Spec: svd.Spec{Address: i}})
			require.False(t, before.Current(stays), "seed %d: who keeps a line sees that it is out of date", seed)
			h = handle()
			e := table.find(h)
			expected, known := want[h]
			require.Equal(t, known, e != nil, "seed %d", seed)
			if known {
				require.Equal(t, expected, e.Entry, "seed %d", seed)
			}
			if i%100 == 0 {
				many := make([]svd.Handle, 200)
				for k := range many {
					many[k] = handle()
				}
				lines := make([]*Line, len(many))
				table.findAll(many, lines)
				for k, h := range many {
					expected, known := want[h]
					require.Equal(t, known, lines[k] != nil, "seed %d", seed)
					require.True(t, !known || lines[k].Entry == expected, "seed %d", seed)
				}
			}
		}
		stop.Store(true)
		group.Wait()
		for h, e := range want {
			require.Equal(t, e, table.find(h).Entry, "seed %d: what was entered last is there", seed)
		}
		for _, h := range of {
			if _, there := want[h]; !there {
				require.Nil(t, table.find(h), "seed %d: what was removed is not there", seed)
			}
		}
		require.Zero(t, missed.Load(), "seed %d: a lookup missed an entry that was there, or saw half of it", seed)
	}
}

// Who looks an object up while it is entered finds nothing, or all of its entry.
func TestEnteredWhole(t *testing.T) {
	const objects = 100000
	var table table
	table.init()
	handle := func(i uint64) svd.Handle { return svd.Handle(i<<16 | 1) }
	var looking atomic.Uint64 // for this object, which is entered then
	halves := 0
	var group sync.WaitGroup
	group.Go(func() {
		for i := range uint64(objects) {
			looking.Store(i + 1)
			l := table.find(handle(i))
			for ; l == nil; l = table.find(handle(i)) {
				runtime.Gosched()
			}
			if l.Version != i+1 || l.Address != i+1 {
				halves++
			}
		}
	})
	for i := range uint64(objects) {
		for looking.Load() <= i {
			runtime.Gosched()
		}
		table.put(handle(i), svd.Entry{Version: i + 1, Spec: svd.Spec{Address: i + 1}})
	}
	group.Wait()
	require.Zero(t, halves)
}

// Who keeps the line of an object while the table makes room for more looks it up again: of changes from then on the kept
// one would not say that it is out of date.
func TestLinesThatMove(t *testing.T) {
	var table table
	table.init()
	handle := func(index uint64) svd.Handle { return svd.Handle(index<<16 | 1) }
	table.put(handle(0), svd.Entry{Version: 1})
	kept := table.find(handle(0))
	table.put(handle(5*fewestLines), svd.Entry{Version: 1})
	table.put(handle(0), svd.Entry{Version: 2})
	require.False(t, kept.Current(handle(0)))
	require.EqualValues(t, 2, table.find(handle(0)).Version)
}

// TestSpread: the pages of the sets that programs use lie close to where they are
// looked for, and others not far away.
func TestSpread(t *testing.T) {
	every := func(count, apart int) (set []svd.Handle) {
		for p := range count {
			set = append(set, svd.Handle(uint64(p*apart)<<40|1))
		}
		return set
	}
	var large []svd.Handle // three partitions with all the pages that there can be
	for page := range 3 << 12 {
		large = append(large, svd.Handle(uint64(page/3<<12)<<16|uint64(page%3)<<40|1))
	}
	random := rand.New(rand.NewSource(1))
	var arbitrary []svd.Handle
	for range 50000 {
		arbitrary = append(arbitrary, svd.Handle(random.Uint64()|1))
	}
	for name, set := range map[string][]svd.Handle{
		"one": every(1, 1), "some": every(100, 1), "all": every(60000, 1), "those of nodes of 16": every(5000, 16),
		"one on each node of 24": every(1000, 24), "one on each of 128": every(1000, 128), "large ones": large, "arbitrary": arbitrary,
	} {
		var table table
		table.init()
		for _, h := range set {
			table.add(keyOf(h), make([]Line, 1))
		}
		p := table.pages.Load()
		looks := 0
		for _, h := range set {
			for i := keyOf(h) * spread >> p.shift; ; i++ {
				looks++
				if p.pages[i&p.mask].key.Load() == keyOf(h) {
					break
				}
			}
		}
		mean := float64(looks) / float64(len(set))
		t.Logf("%s: %.2f pages a lookup", name, mean)
		assert.Less(t, mean, 1.51, name) // as if places were drawn: (1 + 1/(1 - load))/2, the load being up to a half
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, count := range []int{1000, 1000000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var table table
			table.init()
			handles := make([]svd.Handle, count)
			for i := range handles {
				handles[i] = svd.Handle(uint64(i)<<16 | 1)
				table.put(handles[i], svd.Entry{Version: 1, Spec: svd.Spec{Address: uint64(i)}})
			}
			b.ResetTimer()
			for i := range b.N {
				if table.find(handles[i%count]).Version != 1 {
					b.Fatal("no")
				}
			}
		})
	}
}
