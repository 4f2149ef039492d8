package relay

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"evenkeel/collectives"
	"evenkeel/collectives/lossy"
)

// job is the relays of some tasks on a simulated network. Those of tasks that
// nothing has come to yet are made when it does.
type job struct {
	network *lossy.Network
	config  Config
	relays  map[Task]*Relay
	confirm func(Task, Delivery) bool // says whether to confirm at once

	delivered map[Task][]Delivery
	completed map[Task][]Broadcast
	reduced   map[Task][]Reduced
	silent    map[Task]int
	longest   int // bytes of a message
}

func newJob(seed int64, tasks int) *job {
	return &job{network: lossy.New(seed),
		config: Config{Tasks: tasks, Limit: 1400, Retry: 10 * time.Microsecond, RetryMax: time.Millisecond},
		relays: map[Task]*Relay{}, confirm: func(Task, Delivery) bool { return true },
		delivered: map[Task][]Delivery{}, completed: map[Task][]Broadcast{}, reduced: map[Task][]Reduced{},
		silent: map[Task]int{}}
}

func (j *job) relay(t Task) *Relay {
	if j.relays[t] == nil {
		c := j.config
		c.Self = t
		r, err := New(c)
		if err != nil {
			panic(err)
		}
		j.relays[t] = r
	}
	return j.relays[t]
}

// flush carries a task's effects out.
func (j *job) flush(t Task) {
	r := j.relay(t)
	for {
		e := r.Take()
		for _, m := range e.Messages {
			j.longest = max(j.longest, len(m.Data))
			j.network.Send(t, m.To, m.Data)
		}
		j.completed[t] = append(j.completed[t], e.Completed...)
		j.reduced[t] = append(j.reduced[t], e.Reduced...)
		for _, s := range e.Silent {
			j.silent[s]++
		}
		for _, d := range e.Deliveries {
			j.delivered[t] = append(j.delivered[t], d)
			if j.confirm(t, d) {
				r.Confirm(d.Broadcast)
			}
		}
		if len(e.Deliveries) == 0 {
			break
		}
	}
	at, waits := r.Deadline()
	j.network.Wake(t, at, waits)
}

// step does what happens next, and says whether there was anything.
func (j *job) step(t require.TestingT) bool {
	return j.network.Step(func(p lossy.Packet) {
		require.NoError(t, j.relay(p.To).Receive(j.network.Now, p.From, p.Data))
		clear(p.Data) // the network's memory
		j.flush(p.To)
	}, func(due Task) {
		j.relay(due).Tick(j.network.Now)
		j.flush(due)
	})
}

func (j *job) run(t require.TestingT) {
	for steps := 0; j.step(t); steps++ {
		if steps > 20_000_000 {
			require.FailNow(t, "the job does not come to rest")
		}
	}
}

// checkRest: when nothing happens any more, nothing is kept but what was delivered.
func (j *job) checkRest(t require.TestingT) {
	require.LessOrEqual(t, j.longest, j.config.Limit)
	for task, r := range j.relays {
		if !j.network.Dead[task] && !r.Idle() {
			require.FailNow(t, fmt.Sprintf("task %d still has %d passages and %d unfinished broadcasts", task, len(r.passages), len(r.partial)))
		}
	}
}

var shapes = []collectives.Shape{{Kind: collectives.Flat}, collectives.Binomial, {Kind: collectives.Knomial, Radix: 4}, collectives.Chain, {Kind: collectives.Kary, Radix: 3}}

// TestBroadcasts: many broadcasts at once, from and to arbitrary tasks, over a bad
// network: each is delivered once to each receiver and to nobody else, with its
// data, and completes once everyone has confirmed.
func TestBroadcasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 64).Draw(t, "tasks")
		j := newJob(rapid.Int64().Draw(t, "seed"), tasks)
		j.config.Limit = rapid.SampledFrom([]int{MinLimit, 300, 1400}).Draw(t, "limit")
		j.network.Loss = rapid.Float64Range(0, 0.5).Draw(t, "loss")
		j.network.Duplicate = rapid.Float64Range(0, 0.3).Draw(t, "duplication")
		j.network.Jitter = time.Duration(rapid.IntRange(0, 30).Draw(t, "jitter")) * time.Microsecond
		if perNode := rapid.IntRange(0, 8).Draw(t, "tasks per node"); perNode > 0 {
			j.config.Nodes = func(t Task) uint32 { return uint32(t) / uint32(perNode) }
		}
		type sent struct {
			receivers []Task
			data      []byte
		}
		broadcasts := map[Broadcast]sent{}
		for i := range rapid.IntRange(1, 20).Draw(t, "broadcasts") {
			origin := Task(rapid.IntRange(0, tasks-1).Draw(t, "origin"))
			all := rapid.SliceOfNDistinct(rapid.IntRange(0, tasks-1), 0, tasks, rapid.ID[int]).Draw(t, "receivers")
			var receivers []Task
			for _, r := range all {
				if Task(r) != origin {
					receivers = append(receivers, Task(r))
				}
			}
			s := collectives.Schedule{
				Outer:   rapid.SampledFrom(shapes).Draw(t, "outer"),
				Inner:   rapid.SampledFrom(append(shapes, collectives.Shape{})).Draw(t, "inner"),
				Segment: uint32(rapid.SampledFrom([]int{0, 0, 10, 100}).Draw(t, "segment")),
			}
			data := bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, 500).Draw(t, "bytes"))
			collectives.Arrange(origin, receivers, j.config.Nodes)
			b, err := j.relay(origin).Broadcast(j.network.Now, s, receivers, data)
			if err != nil {
				t.Fatal(err)
			}
			j.flush(origin)
			broadcasts[b] = sent{receivers, data}
			for range rapid.IntRange(0, 30).Draw(t, "steps between") {
				j.step(t)
			}
		}
		j.run(t)
		j.checkRest(t)
		got := map[Broadcast]map[Task]int{}
		for task, deliveries := range j.delivered {
			for _, d := range deliveries {
				if got[d.Broadcast] == nil {
					got[d.Broadcast] = map[Task]int{}
				}
				got[d.Broadcast][task]++
				if !bytes.Equal(d.Data, broadcasts[d.Broadcast].data) {
					t.Fatalf("task %d got %d bytes of %v, not its %d", task, len(d.Data), d.Broadcast, len(broadcasts[d.Broadcast].data))
				}
			}
		}
		completed := map[Broadcast]int{}
		for _, list := range j.completed {
			for _, b := range list {
				completed[b]++
			}
		}
		for b, s := range broadcasts {
			if completed[b] != 1 {
				t.Fatalf("%v completed %d times", b, completed[b])
			}
			if len(got[b]) != len(s.receivers) {
				t.Fatalf("%v was for %d tasks, but %d got it", b, len(s.receivers), len(got[b]))
			}
			for _, r := range s.receivers {
				if got[b][r] != 1 {
					t.Fatalf("%v was delivered %d times to task %d", b, got[b][r], r)
				}
			}
		}
	})
}

// TestCompletionWaits: a broadcast is complete only when the last receiver has
// confirmed it, whatever is lost and repeated meanwhile.
func TestCompletionWaits(t *testing.T) {
	for seed := range int64(200) {
		j := newJob(seed, 20)
		j.network.Loss, j.network.Duplicate, j.network.Jitter = 0.2, 0.2, 20*time.Microsecond
		random := rand.New(rand.NewSource(seed))
		late := Task(1 + random.Intn(19))
		var kept Delivery
		j.confirm = func(t Task, d Delivery) bool {
			if t == late {
				kept = d
			}
			return t != late
		}
		var receivers []Task
		for i := 1; i < 20; i++ {
			receivers = append(receivers, Task(i))
		}
		_, err := j.relay(0).Broadcast(0, collectives.Schedule{Outer: shapes[random.Intn(len(shapes))]}, receivers, []byte("x"))
		require.NoError(t, err)
		j.flush(0)
		for j.network.Now < 20*time.Millisecond && j.step(t) {
		}
		require.Empty(t, j.completed[0], "seed %d: complete although task %d has not confirmed", seed, late)
		j.relay(late).Confirm(kept.Broadcast)
		j.flush(late)
		j.run(t)
		require.Len(t, j.completed[0], 1, "seed %d", seed)
	}
}

// TestReductions: values are combined in the receivers' order, whatever the shape,
// the root and the network, in several reductions of several groups at once.
func TestReductions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 40).Draw(t, "tasks")
		j := newJob(rapid.Int64().Draw(t, "seed"), tasks)
		j.network.Loss = rapid.Float64Range(0, 0.5).Draw(t, "loss")
		j.network.Duplicate = rapid.Float64Range(0, 0.3).Draw(t, "duplication")
		j.network.Jitter = 30 * time.Microsecond
		members := rapid.SliceOfNDistinct(rapid.IntRange(0, tasks-1), 1, tasks, rapid.ID[int]).Draw(t, "members")
		var group []Task
		for _, m := range members {
			group = append(group, Task(m))
		}
		var nodes collectives.Nodes
		if rapid.Bool().Draw(t, "nodes known") {
			nodes = func(t Task) uint32 { return uint32(t) / 3 }
		}
		g, err := collectives.NewGroup(group, nodes)
		if err != nil {
			t.Fatal(err)
		}
		type call struct {
			schedule collectives.Schedule
			root     Task
		}
		var calls []call
		for range rapid.IntRange(1, 6).Draw(t, "reductions") {
			calls = append(calls, call{
				collectives.Schedule{Outer: rapid.SampledFrom(shapes).Draw(t, "outer"), Inner: rapid.SampledFrom(append(shapes, collectives.Shape{})).Draw(t, "inner")},
				rapid.SampledFrom(group).Draw(t, "root"),
			})
		}
		order := rapid.Permutation(group).Draw(t, "order of beginning")
		joined := func(a, b []byte) []byte { return slices.Concat(a, b) }
		for _, task := range order {
			for i, c := range calls {
				value := []byte(fmt.Sprintf("%d.%d ", task, i)) // which is the caller's again at once
				place, err := g.Place(c.schedule, c.root, task)
				if err != nil {
					t.Fatal(err)
				}
				j.relay(task).Reduce(j.network.Now, 7, place, value, joined)
				clear(value)
			}
			j.flush(task)
			for range rapid.IntRange(0, 20).Draw(t, "steps between") {
				j.step(t)
			}
		}
		j.run(t)
		j.checkRest(t)
		for i, c := range calls {
			receivers, _ := g.Receivers(c.root)
			want := fmt.Sprintf("%d.%d ", c.root, i)
			for _, r := range receivers {
				want += fmt.Sprintf("%d.%d ", r, i)
			}
			for _, task := range group {
				ends := 0
				for _, red := range j.reduced[task] {
					if red.Sequence != uint64(i) {
						continue
					}
					ends++
					if red.Root != (task == c.root) || red.Root && string(red.Value) != want {
						t.Fatalf("reduction %d at task %d: root %v, value %q, should be %q", i, task, red.Root, red.Value, want)
					}
				}
				if ends != 1 {
					t.Fatalf("reduction %d ended %d times at task %d", i, ends, task)
				}
			}
		}
		for _, r := range j.relays {
			if m := r.groups[7]; m != nil && len(m.open) > 0 {
				t.Fatalf("%d reductions are still open", len(m.open))
			}
		}
	})
}

// TestRoutesFit: receivers far from each other take long routes, which are cut so that every message fits.
func TestRoutesFit(t *testing.T) {
	j := newJob(1, 100000)
	j.config.Limit = MinLimit
	var receivers []Task
	for i := range Task(60) {
		receivers = append(receivers, 1499*(i+1))
	}
	_, err := j.relay(0).Broadcast(0, collectives.Schedule{Outer: collectives.Chain}, receivers, make([]byte, 20))
	require.NoError(t, err)
	j.flush(0)
	j.run(t)
	j.checkRest(t)
	require.Len(t, j.completed[0], 1)
	require.Len(t, j.delivered, 60)
}

// TestFinishedIsForgotten: what a receiver remembers of an origin's broadcasts does not grow with their number, and an origin
// has nothing left of them.
func TestFinishedIsForgotten(t *testing.T) {
	j := newJob(1, 3)
	j.network.Loss = 0.1
	origin := j.relay(0)
	for range 200 {
		for _, receivers := range [][]Task{{1, 2}, {}, {1}} {
			_, err := origin.Broadcast(j.network.Now, collectives.Schedule{Outer: collectives.Chain}, receivers, []byte("x"))
			require.NoError(t, err)
			j.flush(0)
			j.run(t)
		}
	}
	require.Len(t, j.completed[0], 600)
	assert.Len(t, j.relay(1).origins[0].finished, 1)
	assert.Len(t, j.relay(2).origins[0].finished, 1)
	assert.Empty(t, origin.open)
	assert.Equal(t, origin.next, origin.floor)
}

// TestSilentParent: a task that does not take a contribution is reported, once, and only its own answer ends the waiting.
func TestSilentParent(t *testing.T) {
	j := newJob(1, 3)
	j.config.Patience = 3
	r := j.relay(2)
	r.Reduce(0, 7, collectives.Place{Parent: 1}, []byte("x"), nil)
	sent := r.Take().Messages
	require.Len(t, sent, 1)
	require.NoError(t, r.Receive(0, 0, step{7, 0}.append(nil, kindTaken)))
	require.Empty(t, r.Take().Reduced, "taken by somebody else")
	var silent []Task
	for now := time.Duration(0); now < time.Second; now += time.Millisecond {
		r.Tick(now)
		e := r.Take()
		silent = append(silent, e.Silent...)
		for _, m := range e.Messages {
			require.Equal(t, sent[0], m)
		}
	}
	require.Equal(t, []Task{1}, silent)
	require.NoError(t, r.Receive(0, 1, step{7, 0}.append(nil, kindTaken)))
	require.Len(t, r.Take().Reduced, 1)
	require.True(t, r.Idle())
}

// TestHopsAreLogarithmic: a broadcast to 100,000 tasks over binomial and 4-nomial
// trees is passed on as often as the logarithm says, and costs two messages a task.
func TestHopsAreLogarithmic(t *testing.T) {
	const tasks = 100000
	for shape, most := range map[collectives.Shape]int{collectives.Binomial: 16, {Kind: collectives.Knomial, Radix: 4}: 9} {
		j := newJob(1, tasks)
		j.config.Retry, j.config.RetryMax = time.Second, time.Second // nothing is lost
		receivers := make([]Task, tasks-1)
		for i := range receivers {
			receivers[i] = Task(i + 1)
		}
		_, err := j.relay(0).Broadcast(0, collectives.Schedule{Outer: shape}, receivers, []byte("changed"))
		require.NoError(t, err)
		j.flush(0)
		for len(j.completed[0]) == 0 && j.step(t) {
		}
		require.Len(t, j.completed[0], 1)
		hops := 0
		for _, d := range j.delivered {
			require.Len(t, d, 1)
			hops = max(hops, d[0].Hops)
		}
		require.Len(t, j.delivered, tasks-1)
		assert.Equal(t, most, hops, "%v", shape)
		assert.Equal(t, 2*(tasks-1), j.network.Packets)
		assert.Less(t, j.network.Bytes, 40*tasks)
		t.Logf("%v: %d hops, %d packets, %.1f bytes a task", shape, hops, j.network.Packets, float64(j.network.Bytes)/tasks)
	}
}

// TestDeadTask: who has messages from a dead task gets them from its parent, and
// the broadcast completes; before, the task is reported as silent. Those who know
// of its death before the message comes have nothing from it either.
func TestDeadTask(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		j := newJob(seed, 32)
		j.config.Patience = 4
		j.network.Loss, j.network.Jitter = 0.1, 10*time.Microsecond
		var receivers []Task
		for i := 1; i < 32; i++ {
			receivers = append(receivers, Task(i))
		}
		victim := Task(1 + random.Intn(31))
		early, know := seed%2 == 0, map[Task]bool{victim: true}
		if early {
			j.network.Dead[victim] = true
			for task := range Task(32) {
				if task != victim && random.Intn(2) == 0 {
					j.relay(task).Gone(0, victim)
					know[task] = true
				}
			}
		}
		_, err := j.relay(0).Broadcast(0, collectives.Schedule{Outer: shapes[random.Intn(len(shapes))]}, receivers, []byte("x"))
		require.NoError(t, err)
		j.flush(0)
		for range random.Intn(40) {
			j.step(t)
		}
		j.network.Dead[victim] = true
		had := len(j.delivered[victim]) > 0
		for j.network.Now < 50*time.Millisecond && len(j.completed[0]) == 0 && j.step(t) {
		}
		if len(j.completed[0]) == 0 {
			require.True(t, early || j.silent[victim] > 0, "seed %d: nobody misses task %d", seed, victim)
			for task := range Task(32) {
				if !know[task] {
					j.relay(task).Gone(j.network.Now, victim)
					j.flush(task)
				}
			}
			j.run(t)
			j.checkRest(t)
		}
		require.Len(t, j.completed[0], 1, "seed %d, task %d dead", seed, victim)
		for task := Task(1); task < 32; task++ {
			if task != victim || had {
				require.Len(t, j.delivered[task], 1, "seed %d, task %d", seed, task)
			}
		}
	}
}

// TestRoute: every route is read as it was written, and a run of tasks takes a few
// bytes however long it is.
func TestRoute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		route := rapid.SliceOfDistinct(rapid.Uint32Range(0, 99999), rapid.ID[uint32]).Draw(t, "route")
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(route)
		}
		var tasks []Task
		for _, r := range route {
			tasks = append(tasks, Task(r))
		}
		r := read(appendRoute(nil, tasks))
		got := r.route(100000)
		if r.Bad || len(r.Rest) > 0 || !slices.Equal(got, tasks) {
			t.Fatalf("wrote %v, read %v", tasks, got)
		}
	})
	all := make([]Task, 99999)
	for i := range all {
		all[i] = Task(i + 1)
	}
	assert.LessOrEqual(t, len(appendRoute(nil, all)), 8)
}

func TestRefused(t *testing.T) {
	_, err := New(Config{Tasks: 2, Self: 2, Limit: 1400, Retry: 1, RetryMax: 1})
	assert.ErrorContains(t, err, "task 2 of 2")
	j := newJob(1, 4)
	_, err = j.relay(0).Broadcast(0, collectives.Schedule{}, []Task{1}, nil)
	assert.Error(t, err)
	_, err = j.relay(0).Broadcast(0, collectives.Schedule{Outer: collectives.Binomial, Segment: 1}, []Task{1}, make([]byte, maxParts+1))
	assert.ErrorContains(t, err, "65537 parts")
	part := pass{origin: 1, number: 5, floor: 3, first: 5, parts: 2, schedule: collectives.Schedule{Outer: collectives.Binomial}, data: []byte("x")}
	require.NoError(t, j.relay(0).Receive(0, 1, part.append(nil)))
	for why, change := range map[string]func(*pass){
		"own broadcast back":           func(p *pass) { p.origin = 0 },
		"2 parts in one message and 3": func(p *pass) { p.number, p.parts = 6, 3 },
		"no message of the relay":      func(p *pass) { p.parts = 0 },
		"can't have radix 1":           func(p *pass) { p.schedule.Outer.Radix = 1 },
	} {
		p := part
		change(&p)
		assert.ErrorContains(t, j.relay(0).Receive(0, 1, p.append(nil)), why)
	}
	assert.Len(t, j.relay(0).passages, 1)
}

// FuzzReceive: no packet makes a relay panic, and what it answers to one is bounded.
func FuzzReceive(f *testing.F) {
	p := pass{origin: 1, number: 5, floor: 3, first: 5, parts: 1, schedule: collectives.Schedule{Outer: collectives.Binomial}, route: []Task{2, 3, 7}, data: []byte("x")}
	f.Add(p.append(nil))
	f.Add(key{0, 0}.done(nil))
	f.Add(append(step{1, 0}.append(nil, kindContribution), "value"...))
	f.Add(step{1, 0}.append(nil, kindTaken))
	f.Fuzz(func(t *testing.T, packet []byte) {
		j := newJob(1, 9)
		r := j.relay(0)
		if _, err := r.Broadcast(0, collectives.Schedule{Outer: collectives.Binomial}, []Task{1, 2, 3}, []byte("own")); err != nil {
			t.Fatal(err)
		}
		r.Take()
		if err := r.Receive(0, 1, packet); err != nil {
			return
		}
		if e := r.Take(); len(e.Messages) > 9 {
			t.Fatalf("%d messages in answer to one", len(e.Messages))
		}
		r.Tick(time.Second)
	})
}
