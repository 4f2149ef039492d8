// Package chaos makes any fabric as bad as a network can be: it loses, repeats, delays, reorders, corrupts and truncates
// packets, and cuts tasks off, as a seed says. What goes through it is for tests.
package chaos

import (
	"container/heap"
	"sync"
	"time"

	"evenkeel/runtime/fabric"
)

// Fabric is a fabric with faults. They happen to what it sends; to have both directions suffer, wrap both ends.
type Fabric struct {
	fabric.Fabric
	now func() time.Duration

	mu   sync.Mutex // for cut alone: whoever breaks the network need not be the one that sends
	cut  map[fabric.Task]bool
	dice *Dice
	held delayed
	sent uint64
	free [][]byte
}

// New wraps a fabric. now is the time on any clock that runs evenly.
func New(f fabric.Fabric, seed uint64, faults Faults, now func() time.Duration) (*Fabric, error) {
	if err := faults.Check(); err != nil {
		return nil, err
	}
	return &Fabric{Fabric: f, now: now, dice: NewDice(seed, faults), cut: map[fabric.Task]bool{}}, nil
}

// Cut loses everything to and from a peer, until Heal. Safe for concurrent use.
func (f *Fabric) Cut(peer fabric.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[peer] = true
}

// Heal ends a Cut. Safe for concurrent use.
func (f *Fabric) Heal(peer fabric.Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cut, peer)
}

func (f *Fabric) isCut(peer fabric.Task) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut[peer]
}

// Send is fabric.Fabric's. Packets that are held up go out with later calls of Send, Receive and Wait. It takes all
// packets: what the network has no room for then is lost.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	now := f.now()
	for n, p := range packets {
		if len(p.Data) > f.MTU(p.Peer) {
			return n, fabric.ErrLength
		}
		if f.isCut(p.Peer) {
			continue
		}
		for range f.dice.Copies() {
			copied := p
			copied.Data = append(f.buffer(), p.Data...)
			copied.Data = f.dice.Damage(copied.Data)
			f.sent++
			heap.Push(&f.held, held{copied, now + f.dice.Delayed(), f.sent})
		}
	}
	return len(packets), f.release(now)
}

func (f *Fabric) buffer() []byte {
	if len(f.free) == 0 {
		return nil
	}
	b := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	return b[:0]
}

// release sends what has been held up for long enough.
func (f *Fabric) release(now time.Duration) error {
	for len(f.held) > 0 && f.held[0].due <= now {
		h := heap.Pop(&f.held).(held)
		_, err := f.Fabric.Send([]fabric.Packet{h.Packet})
		f.free = append(f.free, h.Data)
		if err != nil {
			return err
		}
	}
	return nil
}

// Receive is fabric.Fabric's.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if err := f.release(f.now()); err != nil {
		return 0, err
	}
	n, err := f.Fabric.Receive(packets)
	kept := 0
	for i := range n {
		if !f.isCut(packets[i].Peer) {
			packets[kept], packets[i] = packets[i], packets[kept]
			kept++
		}
	}
	return kept, err
}

// Wait is fabric.Fabric's. It wakes up for packets that are held up.
func (f *Fabric) Wait(timeout time.Duration) {
	now := f.now()
	if len(f.held) > 0 {
		timeout = min(timeout, max(f.held[0].due-now, 0))
	}
	f.Fabric.Wait(timeout)
	// An error comes back with the next Send or Receive.
	_ = f.release(f.now())
}

type held struct {
	fabric.Packet
	due   time.Duration
	order uint64
}

// delayed is a heap by time, and in the order of sending where times are equal.
type delayed []held

func (d delayed) Len() int { return len(d) }
func (d delayed) Less(i, j int) bool {
	return d[i].due < d[j].due || d[i].due == d[j].due && d[i].order < d[j].order
}
func (d delayed) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push is container/heap's.
func (d *delayed) Push(x any) { *d = append(*d, x.(held)) }

// Pop is container/heap's.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	h := (*d)[last]
	(*d)[last] = held{}
	*d = (*d)[:last]
	return h
}
