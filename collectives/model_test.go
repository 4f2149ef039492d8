package collectives

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a discrete simulation of tasks that run a schedule, in which every task
// has a processor and a link to the network, and each message costs what the LogGP
// model says. It knows nothing of the formulas in model.go.
type world struct {
	network Network
	nodes   Nodes
	tasks   map[Task]*player
	events  events
	sizes   []int // of the segments
	reduce  bool
	last    float64
}

type player struct {
	processor float64 // when it is free
	link      float64 // when it takes the next message
	incoming  float64 // when the next message can have come in whole
	sends     []sending
	receipts  []receipt
	children  []Task
	parent    Task
	root      bool
	missing   []int // contributions to each segment of a reduction
}

type sending struct {
	to      Task
	segment int
}

type receipt struct {
	from    Task
	segment int
}

type event struct {
	at    float64
	order int
	task  Task
	got   *receipt // nil: the task looks what there is to do
	whole bool     // it has come in whole
}

type events struct {
	list  []event
	count int
}

func (e *events) Len() int { return len(e.list) }
func (e *events) Less(i, j int) bool {
	a, b := e.list[i], e.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)    { e.list = append(e.list, x.(event)) }
func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

func (w *world) at(time float64, task Task, got *receipt) {
	w.events.count++
	heap.Push(&w.events, event{time, w.events.count, task, got, false})
}

func (w *world) linkTo(a, b Task) Link {
	if w.nodes(a) == w.nodes(b) {
		return w.network.Within
	}
	return w.network.Between
}

// mostSteps is how many steps a simulation may take: what Choose may choose takes some hundred thousand.
const mostSteps = 1 << 24

// play runs a schedule from task 0 in virtual time and returns when it is over.
func play(network Network, s Schedule, n int, nodes Nodes, bytes int, reduce bool) float64 {
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = Task(i)
	}
	g, err := NewGroup(tasks, nodes)
	if err != nil {
		panic(err)
	}
	receivers, _ := g.Receivers(0)
	w := &world{network: network, nodes: nodes, tasks: map[Task]*player{}, reduce: reduce}
	w.sizes = []int{bytes}
	if size := int(s.Segment); size > 0 && bytes > size {
		w.sizes = nil
		for rest := bytes; rest > 0; rest -= size {
			w.sizes = append(w.sizes, min(rest, size))
		}
	}
	w.tree(s, 0, receivers, true, 0)
	for _, task := range tasks {
		p := w.tasks[task]
		if reduce {
			p.missing = make([]int, len(w.sizes))
			for i := range w.sizes {
				p.missing[i] = len(p.children)
				w.forward(p, i)
			}
		} else if p.root {
			for i := range w.sizes {
				w.forward(p, i)
			}
		}
		w.at(0, task, nil)
	}
	// No schedule takes more than a few steps for each message: more is none that ends.
	most := 8 * (len(w.sizes)*n + 1)
	for steps := 0; w.events.Len() > 0; steps++ {
		if steps > most || most > mostSteps {
			panic(fmt.Sprintf("%v of %d bytes in %d pieces to %d tasks takes more than %d steps", s, bytes, len(w.sizes), n, min(steps, most)))
		}
		w.step(heap.Pop(&w.events).(event))
	}
	return w.last
}

func (w *world) tree(s Schedule, task Task, receivers []Task, root bool, parent Task) {
	p := &player{root: root, parent: parent}
	w.tasks[task] = p
	for child, below := range s.Split(task, receivers, w.nodes) {
		p.children = append(p.children, child)
		w.tree(s, child, below, false, task)
	}
}

// forward queues what follows when a task has a segment whole.
func (w *world) forward(p *player, segment int) {
	if !w.reduce {
		for _, child := range p.children {
			p.sends = append(p.sends, sending{child, segment})
		}
	} else if !p.root && p.missing[segment] == 0 {
		p.sends = append(p.sends, sending{p.parent, segment})
	}
}

// step: a task with a free processor sends what it has to send, waiting for its
// link, and then receives.
func (w *world) step(e event) {
	p := w.tasks[e.task]
	if e.got != nil {
		if !e.whole { // others may send to this task too
			l := w.linkTo(e.got.from, e.task)
			whole := max(e.at, p.incoming)
			p.incoming = whole + l.Gap + float64(w.sizes[e.got.segment])*l.PerByte
			if whole > e.at {
				w.events.count++
				heap.Push(&w.events, event{whole, w.events.count, e.task, e.got, true})
				return
			}
		}
		p.receipts = append(p.receipts, *e.got)
	}
	if p.processor > e.at {
		return // it will look when it is free
	}
	switch {
	case len(p.sends) > 0 && p.link > e.at:
		return // it will look when the link is free
	case len(p.sends) > 0:
		s := p.sends[0]
		p.sends = p.sends[1:]
		l, bytes := w.linkTo(e.task, s.to), float64(w.sizes[s.segment])
		p.processor = e.at + l.Overhead
		p.link = e.at + max(l.Overhead, l.Gap+bytes*l.PerByte)
		w.at(e.at+l.Overhead+bytes*l.PerByte+l.Latency, s.to, &receipt{e.task, s.segment})
		w.at(p.link, e.task, nil)
	case len(p.receipts) > 0:
		r := p.receipts[0]
		p.receipts = p.receipts[1:]
		p.processor = e.at + w.linkTo(r.from, e.task).Overhead
		if w.reduce {
			p.processor += float64(w.sizes[r.segment]) * w.network.Combine
			p.missing[r.segment]--
		}
		w.forward(p, r.segment)
		w.last = max(w.last, p.processor)
	default:
		return
	}
	w.at(p.processor, e.task, nil)
}

// networks are some that exist: figures of shared memory, fast and slow networks,
// and combinations that are off the beaten track.
var networks = map[string]Network{
	"shared memory and fast network": {Within: Link{100, 50, 20, 0.05}, Between: Link{1000, 300, 200, 0.08}, Combine: 0.1},
	"shared memory and UDP":          {Within: Link{150, 80, 30, 0.1}, Between: Link{15000, 2500, 3000, 0.9}, Combine: 0.2},
	"one kind of link":               {Within: Link{2000, 400, 400, 0.3}, Between: Link{2000, 400, 400, 0.3}},
	"long way, cheap messages":       {Within: Link{200, 20, 10, 0.02}, Between: Link{100000, 300, 200, 0.1}, Combine: 0.05},
	"dear processor":                 {Within: Link{50, 2000, 100, 0.2}, Between: Link{500, 5000, 100, 0.5}, Combine: 1},
	"narrow":                         {Within: Link{100, 100, 100, 0.05}, Between: Link{5000, 1000, 1000, 80}, Combine: 0.1},
	"gap longer than a hop":          {Within: Link{100, 50, 20, 0.05}, Between: Link{100, 50, 3000, 0.1}, Combine: 0.1},
}

type situation struct{ tasks, perNode int }

func (s situation) nodes() Nodes { return func(t Task) uint32 { return uint32(t) / uint32(s.perNode) } }

func (s situation) load(bytes int, reduce bool) Load {
	return Load{Bytes: bytes, Receivers: s.tasks - 1, Nodes: (s.tasks + s.perNode - 1) / s.perNode,
		Fullest: min(s.perNode, s.tasks), Reduce: reduce}
}

// TestModelPredicts: without segments, and with nodes that are all full, the cost
// of a broadcast is what the simulation takes, to the rounding.
func TestModelPredicts(t *testing.T) {
	for name, network := range networks {
		for _, s := range []situation{{1, 1}, {2, 1}, {2, 2}, {8, 1}, {37, 1}, {64, 8}, {60, 4}, {16, 16}} {
			for _, bytes := range []int{0, 8, 5000} {
				l := s.load(bytes, false)
				for _, schedule := range network.candidates(l) {
					if schedule.Segment > 0 {
						continue
					}
					want := play(network, schedule, s.tasks, s.nodes(), bytes, false)
					got := network.Cost(schedule, l)
					if math.Abs(got-want) > 1e-6*want {
						t.Fatalf("%s: %v, %+v, %d bytes: the model says %.0f ns, the simulation %.0f",
							name, schedule, s, bytes, got, want)
					}
				}
			}
		}
	}
}

// TestChoiceIsFast: what the model chooses takes, in the simulation, hardly longer
// than the best of all candidates.
func TestChoiceIsFast(t *testing.T) {
	regrets := 0.0
	count := 0
	for name, network := range networks {
		for _, s := range []situation{{2, 1}, {5, 1}, {16, 1}, {64, 1}, {12, 12}, {64, 8}, {54, 7}, {200, 16}} {
			for _, bytes := range []int{0, 4096, 1 << 20} {
				for _, reduce := range []bool{false, true} {
					regret := regretOf(t, name, network, s, bytes, reduce)
					regrets += regret
					count++
				}
			}
		}
	}
	mean := regrets / float64(count)
	t.Logf("on average the choice takes %.2f %% longer than the best, in %d cases", 100*mean, count)
	assert.Less(t, mean, 0.01)
}

// TestChoiceIsFastForAnyNetwork does the same for networks out of a hat.
func TestChoiceIsFastForAnyNetwork(t *testing.T) {
	for seed := range int64(80) {
		random := rand.New(rand.NewSource(seed))
		link := func(scale float64) Link {
			figure := func(from, to float64) float64 { return scale * from * math.Pow(to/from, random.Float64()) }
			return Link{figure(50, 2e4), figure(20, 2e3), figure(10, 2e3), figure(0.01, 5)}
		}
		network := Network{Within: link(1), Between: link(1 + 9*random.Float64()), Combine: random.Float64()}
		s := situation{2 + random.Intn(100), 1 + random.Intn(12)}
		bytes := int(math.Pow(2, 20*random.Float64())) - 1
		regretOf(t, fmt.Sprint("seed ", seed), network, s, bytes, random.Intn(2) == 0)
	}
}

// tolerated is how much longer than the best the chosen schedule may take.
const tolerated = 0.10

// regretOf is how much longer the choice takes than the best, as a part.
func regretOf(t *testing.T, name string, network Network, s situation, bytes int, reduce bool) float64 {
	l := s.load(bytes, reduce)
	chosen, _ := network.Choose(l)
	took := play(network, chosen, s.tasks, s.nodes(), bytes, reduce)
	best, least := chosen, took
	for i, schedule := range network.candidates(l) {
		if schedule.Segment > 0 && (i%5 != 0 || bytes/int(schedule.Segment)*s.tasks > 10000) {
			continue // to simulate them all would take minutes
		}
		if network.Cost(schedule, l) > 1.6*took {
			continue // the model is never so wrong: TestModelPredicts
		}
		if time := play(network, schedule, s.tasks, s.nodes(), bytes, reduce); time < least {
			best, least = schedule, time
		}
	}
	regret := took/least - 1
	if regret > tolerated {
		t.Errorf("%s: %d tasks, %d a node, %d bytes, reduce %v: chose %v, which takes %.0f ns (predicted %.0f), but %v takes %.0f (predicted %.0f)",
			name, s.tasks, s.perNode, bytes, reduce, chosen, took, network.Cost(chosen, l), best, least, network.Cost(best, l))
	}
	return regret
}

func TestRefusedNetworks(t *testing.T) {
	require.NoError(t, networks["one kind of link"].Check())
	bad := networks["one kind of link"]
	bad.Between.Gap = -1
	assert.ErrorContains(t, bad.Check(), "between nodes")
	bad = networks["one kind of link"]
	bad.Within.PerByte = math.NaN()
	assert.ErrorContains(t, bad.Check(), "within a node")
}
