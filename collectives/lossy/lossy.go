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

	random *rand.Rand
	queue  queue
	count  int
}

// New makes a network without faults on which a packet takes a microsecond.
func New(seed int64) *Network {
	return &Network{Delay: time.Microsecond, random: rand.New(rand.NewSource(seed))}
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
