package collectives

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var allShapes = []Shape{flat, Binomial, {Knomial, 3}, {Knomial, 4}, {Knomial, 7}, {Knomial, 255}, Chain, {Kary, 2}, {Kary, 3}, {Kary, 255}}

// schedules are those of one level and of two.
func schedules() []Schedule {
	var all []Schedule
	for _, outer := range allShapes {
		for _, inner := range append([]Shape{{}}, allShapes...) {
			all = append(all, Schedule{Outer: outer, Inner: inner})
		}
	}
	return all
}

// reached walks a schedule from its root, and returns how often and after how many
// hops each task has the data.
func reached(s Schedule, root Task, receivers []Task, nodes Nodes) (times, hops map[Task]int) {
	times, hops = map[Task]int{}, map[Task]int{}
	type holder struct {
		task  Task
		below []Task
	}
	for queue := []holder{{root, receivers}}; len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		for child, below := range s.Split(h.task, h.below, nodes) {
			times[child]++
			hops[child] = hops[h.task] + 1
			queue = append(queue, holder{child, below})
		}
	}
	return times, hops
}

// TestEveryTaskOnce: each schedule reaches each member once, from any root, for
// every number of tasks up to 70 and of tasks on a node up to 9.
func TestEveryTaskOnce(t *testing.T) {
	for n := 1; n <= 70; n++ {
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task(3*i + 5)
		}
		for perNode := range 10 {
			var nodes Nodes
			if perNode > 0 {
				nodes = func(t Task) uint32 { return uint32(t) / uint32(3*perNode) }
			}
			g, err := NewGroup(tasks, nodes)
			require.NoError(t, err)
			for _, root := range []Task{tasks[0], tasks[n/3], tasks[n-1]} {
				receivers, err := g.Receivers(root)
				require.NoError(t, err)
				for _, s := range schedules() {
					if nodes == nil && s.Inner.Kind != None {
						continue
					}
					times, _ := reached(s, root, receivers, nodes)
					if len(times) != n-1 || slices.Max(append(values(times), 1)) != 1 || times[root] != 0 {
						t.Fatalf("%v of %d tasks, %d a node, from %d: reached %v", s, n, perNode, root, times)
					}
				}
			}
		}
	}
}

func values(m map[Task]int) []int {
	var v []int
	for _, n := range m {
		v = append(v, n)
	}
	return v
}

// TestPlacesAgree: what a task finds by going down from the root is what its parent
// sends, for every task, root and shape.
func TestPlacesAgree(t *testing.T) {
	for n := 1; n <= 33; n++ {
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task(n - i) // a group need not be sorted
		}
		for _, nodes := range []Nodes{nil, func(t Task) uint32 { return uint32(t) % 4 }} {
			g, err := NewGroup(tasks, nodes)
			require.NoError(t, err)
			for _, s := range schedules() {
				root := tasks[n/2]
				parents := map[Task]Task{}
				for _, task := range tasks {
					p, err := g.Place(s, root, task)
					require.NoError(t, err)
					require.Equal(t, task == root, p.Root)
					for _, child := range p.Children {
						parents[child] = task
					}
				}
				for _, task := range tasks {
					p, _ := g.Place(s, root, task)
					if task != root && parents[task] != p.Parent {
						t.Fatalf("%v of %d: task %d waits for %d, but %d sends", s, n, task, p.Parent, parents[task])
					}
				}
			}
		}
	}
}

// TestPlaceAmongAll: what is found by arithmetic is what the list says.
func TestPlaceAmongAll(t *testing.T) {
	for n := 1; n < 100; n++ {
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task(i)
		}
		g, err := NewGroup(tasks, nil)
		require.NoError(t, err)
		for _, s := range allShapes {
			for _, task := range tasks {
				want, err := g.Place(Schedule{Outer: s}, 0, task)
				require.NoError(t, err)
				got := s.PlaceAmongAll(n, task)
				if !slices.Equal(want.Children, got.Children) || !slices.Equal(want.InOrder, got.InOrder) ||
					want.Root != got.Root || want.Parent != got.Parent || want.Hops != got.Hops {
					t.Fatalf("%v of %d, task %d: %+v, should be %+v", s, n, task, got, want)
				}
			}
		}
	}
}

// TestDefinitions compares the k-nomial tree with its definition by digits, and the
// depths with what they are known to be.
func TestDefinitions(t *testing.T) {
	for k := 2; k <= 9; k++ {
		for n := 1; n <= 300; n++ {
			parent := map[int]int{}
			var walk func(root, receivers int)
			walk = func(root, receivers int) {
				for first, end := range (Shape{Knomial, uint8(k)}).Ranges(receivers) {
					parent[root+1+first] = root
					walk(root+1+first, end-first-1)
				}
			}
			walk(0, n-1)
			for v := 1; v < n; v++ {
				power := 1
				for v/power%k == 0 {
					power *= k
				}
				if want := v - v/power%k*power; parent[v] != want {
					t.Fatalf("%d-nomial tree of %d: the parent of %d is %d, but should be %d", k, n, v, parent[v], want)
				}
			}
		}
	}
	assert.Equal(t, 10, Binomial.Depth(1023))
	assert.Equal(t, 10, Binomial.Degree(1023))
	assert.Equal(t, 1023, Chain.Depth(1023))
	assert.Equal(t, 1, flat.Depth(1023))
	assert.Equal(t, 9, Shape{Kary, 2}.Depth(1022))
}

// TestDepth compares the depth that a shape says it has with a walk.
func TestDepth(t *testing.T) {
	for _, s := range allShapes {
		for n := range 200 {
			receivers := make([]Task, n)
			for i := range receivers {
				receivers[i] = Task(i + 1)
			}
			_, hops := reached(Schedule{Outer: s}, 0, receivers, nil)
			if deepest := slices.Max(append(values(hops), 0)); deepest != s.Depth(n) {
				t.Fatalf("%v with %d receivers says depth %d, but is %d deep", s, n, s.Depth(n), deepest)
			}
			degree := 0
			for range s.Ranges(n) {
				degree++
			}
			require.Equal(t, degree, s.Degree(n), "%v with %d receivers", s, n)
		}
	}
}

// TestManyTasks: random groups of up to 100,000 tasks, with random nodes.
func TestManyTasks(t *testing.T) {
	for seed := range int64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			n := 1 + random.Intn(100000)
			if seed == 0 {
				n = 100000
			}
			tasks := make([]Task, n)
			for i, p := range random.Perm(n) {
				tasks[i] = Task(p * 7)
			}
			nodeOf := map[Task]uint32{}
			count := 1 + random.Intn(n)
			for _, task := range tasks {
				nodeOf[task] = uint32(random.Intn(count))
			}
			g, err := NewGroup(tasks, func(t Task) uint32 { return nodeOf[t] })
			require.NoError(t, err)
			root := tasks[random.Intn(n)]
			receivers, err := g.Receivers(root)
			require.NoError(t, err)
			all := schedules()
			for range 4 {
				s := all[random.Intn(len(all))]
				if s.Outer == Chain || s.Inner == Chain {
					continue // walking it is quadratic
				}
				times, _ := reached(s, root, receivers, g.nodes)
				require.Len(t, times, n-1, "%v", s)
				require.LessOrEqual(t, slices.Max(append(values(times), 1)), 1, "%v", s)
				task := tasks[random.Intn(n)]
				p, err := g.Place(s, root, task)
				require.NoError(t, err)
				require.Equal(t, task == root, p.Root)
			}
		})
	}
}

// TestTwoLevelsCrossOnce: a two-level schedule brings the data to each node once.
func TestTwoLevelsCrossOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "tasks")
		nodeOf := rapid.SliceOfN(rapid.Uint32Range(0, 20), n, n).Draw(t, "nodes")
		nodes := func(t Task) uint32 { return nodeOf[t] }
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task(i)
		}
		s := Schedule{Outer: rapid.SampledFrom(allShapes).Draw(t, "outer"), Inner: rapid.SampledFrom(allShapes).Draw(t, "inner")}
		g, err := NewGroup(tasks, nodes)
		if err != nil {
			t.Fatal(err)
		}
		root := Task(rapid.IntRange(0, n-1).Draw(t, "root"))
		entered := map[uint32]int{nodes(root): 1}
		for _, task := range tasks {
			p, err := g.Place(s, root, task)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Root && nodes(p.Parent) != nodes(task) {
				entered[nodes(task)]++
			}
		}
		for node, times := range entered {
			if times != 1 {
				t.Fatalf("%v: the data came to node %d %d times", s, node, times)
			}
		}
	})
}

func TestRefusedGroups(t *testing.T) {
	_, err := NewGroup(nil, nil)
	assert.Error(t, err)
	_, err = NewGroup([]Task{1, 2, 1}, nil)
	assert.ErrorContains(t, err, "task 1 is twice")
	g, err := NewGroup([]Task{1, 2}, nil)
	require.NoError(t, err)
	_, err = g.Place(Schedule{Outer: Binomial}, 3, 1)
	assert.ErrorContains(t, err, "task 3 is not of the group")
	_, err = g.Place(Schedule{Outer: Binomial}, 1, 3)
	assert.ErrorContains(t, err, "task 3 is not of the group")
	_, err = g.Place(Schedule{Outer: Shape{Knomial, 1}}, 1, 2)
	assert.ErrorContains(t, err, "radix 1")
	_, err = g.Place(Schedule{}, 1, 2)
	assert.Error(t, err)
}
