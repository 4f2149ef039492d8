// Package lossy is a network in virtual time that loses, repeats and reorders
// packets by a seed, for tests of protocol cores that return their packets as
// values.
package lossy

import (
	"container/heap"
	"math/rand"
	"slices"
	"time"

	"evenkeel/runtime/fabric"
)

// Network holds the packets on their way, of up to millions of tasks. Its fields may
// be changed at any time.
type Network struct {
	Loss      float64 // chance that a packet is lost
	Duplicate float64 // chance that a packet comes twice
	// Delay is the least that a packet takes, and Jitter the most that is added to
	// it: with jitter, packets overtake each other.
	Delay, Jitter time.Duration

	Now     time.Duration
	Packets int // that were sent
	Bytes   int

	Dead map[fabric.Task]bool // Step brings them no packet, and does not wake them

	random *rand.Rand
	queue  queue
	count  int
	wake   map[fabric.Task]time.Duration
}

// New makes a network without faults on which a packet takes a microsecond.
func New(seed int64) *Network {
	return &Network{Delay: time.Microsecond, Dead: map[fabric.Task]bool{}, random: rand.New(rand.NewSource(seed)),
		wake: map[fabric.Task]time.Duration{}}
}

// Packet is one on its way.
type Packet struct {
	From, To fabric.Task
	Data     []byte
	at       time.Duration
	order    int
}

// Send takes a packet, and copies it.
func (n *Network) Send(from, to fabric.Task, data []byte) {
	n.Packets++
	n.Bytes += len(data)
	copies := 1
	if n.random.Float64() < n.Duplicate {
		copies++
	}
	for range copies {
		if n.random.Float64() < n.Loss {
			continue
		}
		at := n.Now + n.Delay
		if n.Jitter > 0 {
			at += time.Duration(n.random.Int63n(int64(n.Jitter)))
		}
		n.count++
		heap.Push(&n.queue, Packet{from, to, slices.Clone(data), at, n.count})
	}
}

// Next is when the next packet arrives.
func (n *Network) Next() (time.Duration, bool) {
	if len(n.queue) == 0 {
		return 0, false
	}
	return n.queue[0].at, true
}

// Receive brings the time to the next packet's arrival and returns it.
func (n *Network) Receive() Packet {
	p := heap.Pop(&n.queue).(Packet)
	n.Now = p.at
	return p
}

// Wake has Step wake a task at this time, or not, if it waits for nothing.
func (n *Network) Wake(task fabric.Task, at time.Duration, waits bool) {
	if waits {
		n.wake[task] = at
	} else {
		delete(n.wake, task)
	}
}

// Step does what happens next: receive gets the packet that arrives, or wake the task whose time has come. It
// returns false if nothing will happen any more. Where 100 tasks wait they are looked at now and then, or when
// nothing else happens: they wake later.
func (n *Network) Step(receive func(Packet), wake func(fabric.Task)) bool {
	arrival, arrives := n.Next()
	due, dueAt := fabric.Task(0), time.Duration(-1)
	if !arrives || len(n.wake) < 100 || n.Packets%(len(n.wake)/10) == 0 {
		for task, at := range n.wake {
			if !n.Dead[task] && (dueAt < 0 || at < dueAt || at == dueAt && task < due) {
				due, dueAt = task, at
			}
		}
	}
	switch {
	case arrives && (dueAt < 0 || arrival <= dueAt):
		if p := n.Receive(); !n.Dead[p.To] {
			receive(p)
		}
	case dueAt >= 0:
		n.Now = max(n.Now, dueAt)
		wake(due)
	default:
		return false
	}
	return true
}

type queue []Packet

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(Packet)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
