// Package sim is a network in virtual time: any number of tasks in one process and one goroutine, with faults as a seed
// says. The same seed and the same calls give the same run.
//
// Time stands still until Step, or the Wait of a task's end, moves it to the next packet that arrives or the next timer
// that is due.
package sim

import (
	"time"

	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/chaos"
)

// Config is a network. The zero value is perfect: it loses nothing, and takes no time.
type Config struct {
	Seed   uint64
	Faults chaos.Faults
	MTU    int // bytes of a packet; 0: 1472, what Ethernet leaves of UDP
	// Rate is how many bytes a second each task's link takes, with so many bytes of Queue before it; what comes when the
	// queue is full is lost. 0: there is no limit.
	Rate  float64
	Queue int
}

// Network is a network and its clock. It is for one goroutine.
type Network struct {
	config Config
	dice   *chaos.Dice
	now    time.Duration
	events events
	order  uint64
	ends   map[fabric.Task]*End
	cut    map[[2]fabric.Task]bool
	free   [][]byte
	lost   uint64
}

// New returns a network without tasks, at time 0.
func New(c Config) (*Network, error) {
	if err := c.Faults.Check(); err != nil {
		return nil, err
	}
	if c.MTU == 0 {
		c.MTU = 1472
	}
	return &Network{
		config: c, dice: chaos.NewDice(c.Seed, c.Faults), ends: map[fabric.Task]*End{}, cut: map[[2]fabric.Task]bool{},
	}, nil
}

// Now is the time since the network began.
func (n *Network) Now() time.Duration { return n.now }

// SetFaults changes what happens to packets that are sent from now on.
func (n *Network) SetFaults(f chaos.Faults) { n.dice.Faults = f }

// Lost is how many packets found a full queue, a cut, or nobody.
func (n *Network) Lost() uint64 { return n.lost }

// Cut loses all packets between two tasks, those under way too, until Heal.
func (n *Network) Cut(a, b fabric.Task) { n.cut[between(a, b)] = true }

// Heal ends a Cut.
func (n *Network) Heal(a, b fabric.Task) { delete(n.cut, between(a, b)) }

func between(a, b fabric.Task) [2]fabric.Task { return [2]fabric.Task{min(a, b), max(a, b)} }

// Join adds a task and returns its end of the network. A task that joins again has started again: its old end is closed.
func (n *Network) Join(task fabric.Task) *End {
	if old := n.ends[task]; old != nil {
		_ = old.Close()
	}
	e := &End{network: n, self: task}
	n.ends[task] = e
	return e
}

// Step moves time to the next event, and says whose it is: a packet has arrived there, or its timer is due. False: there
// is none until the time given, and it is that time now.
func (n *Network) Step(until time.Duration) (fabric.Task, bool) {
	for len(n.events) > 0 && n.events[0].at <= until {
		v := n.events.pop()
		n.now = max(n.now, v.at)
		e := n.ends[v.to]
		switch {
		case v.timer:
			if e != nil && v.order == e.armed && e.rings(v.at) {
				return v.to, true
			}
		case e == nil || n.cut[between(v.from, v.to)]:
			n.drop(v.data)
		default:
			e.inbox = append(e.inbox, fabric.Packet{Peer: v.from, Class: v.class, Path: v.path, Data: v.data})
			return v.to, true
		}
	}
	n.now = max(n.now, until)
	return 0, false
}

func (n *Network) drop(data []byte) {
	n.lost++
	n.free = append(n.free, data)
}

func (n *Network) add(v event) uint64 {
	n.order++
	v.order = n.order
	n.events.push(v)
	return n.order
}

// End is a task's end of the network: a fabric.Fabric for one goroutine.
type End struct {
	network *Network
	self    fabric.Task
	inbox   []fabric.Packet
	read    [][]byte      // what the last Receive returned
	timer   time.Duration // when Step is to stop for it
	armed   uint64        // the order of the event that will look at timer, not after it; 0: none
	armedAt time.Duration
	slow    time.Duration // what everything takes longer
	busy    time.Duration // until when the link is
	woken   bool
	closed  bool
}

var _ fabric.Fabric = (*End)(nil)

// Slow has everything that the task sends take so much longer: a task that is busy with other things.
func (e *End) Slow(by time.Duration) { e.slow = by }

// Timer has Step stop at that time; there is one timer for each task, and the last call counts.
func (e *End) Timer(at time.Duration) {
	e.timer = at
	if e.armed == 0 || at < e.armedAt {
		e.arm()
	}
}

// arm enters an event for the timer. One that is in the heap for an earlier time does as well: most timers are moved
// ahead again and again, and never ring.
func (e *End) arm() {
	e.armedAt = e.timer
	e.armed = e.network.add(event{at: e.timer, to: e.self, timer: true})
}

// rings says whether the timer is due when its event comes up.
func (e *End) rings(at time.Duration) bool {
	e.armed = 0
	if e.timer > at {
		e.arm()
		return false
	}
	return true
}

// Self is fabric.Fabric's.
func (e *End) Self() fabric.Task { return e.self }

// MTU is fabric.Fabric's.
func (e *End) MTU(fabric.Task) int { return e.network.config.MTU }

// Send is fabric.Fabric's. It takes all packets.
func (e *End) Send(packets []fabric.Packet) (int, error) {
	n := e.network
	for i, p := range packets {
		switch {
		case e.closed:
			return i, fabric.ErrClosed
		case len(p.Data) > n.config.MTU:
			return i, fabric.ErrLength
		}
		start := n.now
		if n.config.Rate > 0 {
			backlog := max(e.busy-n.now, 0)
			if backlog.Seconds()*n.config.Rate+float64(len(p.Data)) > float64(n.config.Queue) {
				n.lost++
				continue
			}
			e.busy = n.now + backlog + time.Duration(float64(len(p.Data))/n.config.Rate*float64(time.Second))
			start = e.busy
		}
		for range n.dice.Copies() {
			data := n.dice.Damage(append(n.buffer(), p.Data...))
			n.add(event{
				at: start + e.slow + n.dice.Delayed(), to: p.Peer, from: e.self, class: p.Class, path: p.Path, data: data,
			})
		}
	}
	return len(packets), nil
}

func (n *Network) buffer() []byte {
	if len(n.free) == 0 {
		return nil
	}
	b := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	return b[:0]
}

// Receive is fabric.Fabric's.
func (e *End) Receive(packets []fabric.Packet) (int, error) {
	if e.closed {
		return 0, fabric.ErrClosed
	}
	e.network.free = append(e.network.free, e.read...)
	e.read = e.read[:0]
	n := copy(packets, e.inbox)
	for _, p := range e.inbox[:n] {
		e.read = append(e.read, p.Data)
	}
	e.inbox = e.inbox[:copy(e.inbox, e.inbox[n:])]
	return n, nil
}

// Waiting is what the next Receive will return: what a third party on the same wire hears.
func (e *End) Waiting() []fabric.Packet { return e.inbox }

// Wait is fabric.Fabric's. It is for a single task that is not driven by Step: what happens to others meanwhile, happens.
func (e *End) Wait(timeout time.Duration) {
	until := e.network.now + timeout
	for len(e.inbox) == 0 && !e.woken && !e.closed {
		if _, any := e.network.Step(until); !any {
			break
		}
	}
	e.woken = false
}

// Wake is fabric.Fabric's, but for the network's one goroutine.
func (e *End) Wake() { e.woken = true }

// Close is fabric.Fabric's. The task is dead: what arrives for it is lost.
func (e *End) Close() error {
	e.closed = true
	if e.network.ends[e.self] == e {
		delete(e.network.ends, e.self)
	}
	return nil
}

type event struct {
	at       time.Duration
	order    uint64
	to, from fabric.Task
	class    fabric.Class
	path     uint8
	timer    bool
	data     []byte
}

// events is a heap by time, and by order where times are equal.
type events []event

func (h events) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

// push and pop are container/heap's without its interface, which would allocate for each packet.
func (h *events) push(v event) {
	*h = append(*h, v)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (h *events) pop() event {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q[last] = event{}
	q = q[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	*h = q
	return first
}
