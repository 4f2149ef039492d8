package collectives

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"
)

// Group is some tasks that communicate among themselves, each once.
type Group struct {
	tasks []Task
	nodes Nodes
}

// NewGroup makes a group of tasks, in the order in which a reduction combines them.
// nodes may be nil.
func NewGroup(tasks []Task, nodes Nodes) (Group, error) {
	if len(tasks) == 0 {
		return Group{}, errors.New("a group of no tasks")
	}
	sorted := slices.Clone(tasks)
	slices.Sort(sorted)
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return Group{}, errors.Errorf("task %d is twice in a group", sorted[i])
		}
	}
	return Group{tasks: slices.Clone(tasks), nodes: nodes}, nil
}

// Tasks are the members, in the group's order. The caller leaves them as they are.
func (g Group) Tasks() []Task { return g.tasks }

// Nodes says where the members run; nil if that is not known.
func (g Group) Nodes() Nodes { return g.nodes }

// Size counts the members, and the nodes that they are on (1 if not known) with the
// members of the fullest.
func (g Group) Size() (tasks, nodes, fullest int) {
	if g.nodes == nil {
		return len(g.tasks), 1, len(g.tasks)
	}
	members := map[uint32]int{}
	for _, t := range g.tasks {
		members[g.nodes(t)]++
		fullest = max(fullest, members[g.nodes(t)])
	}
	return len(g.tasks), len(members), fullest
}

// Receivers are all members but the root, in the order that Split wants. In a
// group whose nodes are not known that is the group's order from the root on,
// around its end.
func (g Group) Receivers(root Task) ([]Task, error) {
	i := slices.Index(g.tasks, root)
	if i < 0 {
		return nil, errors.Errorf("task %d is not of the group", root)
	}
	receivers := append(slices.Clone(g.tasks[i+1:]), g.tasks[:i]...)
	Arrange(root, receivers, g.nodes)
	return receivers, nil
}

// Arrange brings receivers into the order that a two-level schedule needs: those on
// the root's node first, then node by node. Without nodes it leaves them.
func Arrange(root Task, receivers []Task, nodes Nodes) {
	if nodes == nil {
		return
	}
	own := nodes(root)
	slices.SortStableFunc(receivers, func(a, b Task) int {
		// Nodes are ordered as on a ring that begins at the root's.
		return cmp.Compare(nodes(a)-own, nodes(b)-own)
	})
}

// Place is a task's part in a schedule: whom it has data from, and whom it gives it
// to. In a reduction the data goes the other way.
type Place struct {
	Root     bool
	Parent   Task   // of all but the root
	Children []Task // in sending order
	InOrder  []Task // the children in the order of the root's receivers
	Hops     int    // from the root
}

// Place finds the place of a task in a schedule from root, by going down from the
// root: as many steps as the task has forerunners.
func (g Group) Place(s Schedule, root, task Task) (Place, error) {
	if err := s.Check(); err != nil {
		return Place{}, err
	}
	receivers, err := g.Receivers(root)
	if err != nil {
		return Place{}, err
	}
	at := slices.Index(receivers, task)
	if at < 0 && task != root {
		return Place{}, errors.Errorf("task %d is not of the group", task)
	}
	p, here := Place{Root: true}, root
	for here != task {
		for child, below := range s.Split(here, receivers, g.nodes) {
			if child != task && !slices.Contains(below, task) {
				continue
			}
			p.Root, p.Parent, p.Hops = false, here, p.Hops+1
			here, receivers = child, below
			break
		}
	}
	for child := range s.Split(task, receivers, g.nodes) {
		p.Children = append(p.Children, child)
	}
	p.InOrder = p.Children
	if len(p.Children) > 1 {
		at := make(map[Task]int, len(receivers))
		for i, t := range receivers {
			at[t] = i
		}
		p.InOrder = slices.SortedFunc(slices.Values(p.Children), func(a, b Task) int { return at[a] - at[b] })
	}
	return p, nil
}

// PlaceAmongAll is the place of a task in a shape over all tasks of a job from task
// 0, without a list of them.
func (s Shape) PlaceAmongAll(tasks int, task Task) Place {
	p, here, receivers := Place{Root: true}, 0, tasks-1
	for here != int(task) {
		for first, end := range s.Ranges(receivers) {
			if child := here + 1 + first; child <= int(task) && int(task) < here+1+end {
				p = Place{Parent: Task(here), Hops: p.Hops + 1}
				here, receivers = child, end-first-1
				break
			}
		}
	}
	for first := range s.Ranges(receivers) {
		p.Children = append(p.Children, Task(here+1+first))
	}
	p.InOrder = slices.Sorted(slices.Values(p.Children))
	return p
}
