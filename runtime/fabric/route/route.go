// Package route is a task's one fabric over several: each pair of tasks uses the
// one that serves it best.
package route

import (
	"strings"
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

// Way is a fabric that leads to some of the tasks.
type Way struct {
	Name   string
	Fabric fabric.Sleeper
	// Reaches says whether it leads to a task. The answer is the same at both ends,
	// and never changes. nil: to all.
	Reaches func(fabric.Task) bool
}

// Fabric sends each packet by the first way that reaches its task. It
// implements fabric.Fabric and fabric.Lossless.
type Fabric struct {
	fabric.Waiter
	ways   []way
	turn   int
	astray uint64
}

type way struct {
	Way
	fabric   fabric.Fabric
	lossless fabric.Lossless // nil: to nobody
}

var (
	_ fabric.Fabric   = (*Fabric)(nil)
	_ fabric.Lossless = (*Fabric)(nil)
)

// New makes a fabric over ways, the best first, which it closes.
func New(spin time.Duration, ways ...Way) (*Fabric, error) {
	if len(ways) == 0 {
		return nil, errors.New("there is no way to any task")
	}
	f := &Fabric{}
	var sleepers []fabric.Sleeper
	for _, w := range ways {
		below, ok := w.Fabric.(fabric.Fabric)
		if !ok {
			return nil, errors.Errorf("%s is no fabric", w.Name)
		}
		lossless, _ := w.Fabric.(fabric.Lossless)
		f.ways = append(f.ways, way{w, below, lossless})
		sleepers = append(sleepers, w.Fabric)
	}
	if err := f.Open(spin, sleepers...); err != nil {
		return nil, err
	}
	return f, nil
}

// Self is the task whose end this is.
func (f *Fabric) Self() fabric.Task { return f.ways[0].fabric.Self() }

// Way is the name of the way to a task; empty: there is none.
func (f *Fabric) Way(peer fabric.Task) string {
	if w := f.to(peer); w != nil {
		return w.Name
	}
	return ""
}

// String lists the ways.
func (f *Fabric) String() string {
	var names []string
	for _, w := range f.ways {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

func (f *Fabric) to(peer fabric.Task) *way {
	for i := range f.ways {
		if w := &f.ways[i]; w.Reaches == nil || w.Reaches(peer) {
			return w
		}
	}
	return nil
}

// Lossless is what the way to a task says.
func (f *Fabric) Lossless(peer fabric.Task) bool {
	w := f.to(peer)
	return w != nil && w.lossless != nil && w.lossless.Lossless(peer)
}

// Foreign is how many packets came by another way than that of their source, none
// that the source can have sent, and how many the ways dropped.
func (f *Fabric) Foreign() uint64 {
	all := f.astray
	for i := range f.ways {
		if w, counts := f.ways[i].fabric.(fabric.Foreign); counts {
			all += w.Foreign()
		}
	}
	return all
}

// MTU is that of the way to a task.
func (f *Fabric) MTU(peer fabric.Task) int {
	if w := f.to(peer); w != nil {
		return w.fabric.MTU(peer)
	}
	return 0
}

// Send sends packets by their ways, as many at once as go the same way.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	sent := 0
	for sent < len(packets) {
		w := f.to(packets[sent].Peer)
		if w == nil {
			return sent, errors.WithMessagef(fabric.ErrPeer, "task %d by %v", packets[sent].Peer, f)
		}
		end := sent + 1
		for end < len(packets) && f.to(packets[end].Peer) == w {
			end++
		}
		n, err := w.fabric.Send(packets[sent:end])
		sent += n
		if err != nil || sent < end {
			return sent, err
		}
	}
	return sent, nil
}

// Receive takes what has arrived by any way.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	n := 0
	f.turn++
	for i := range f.ways {
		w := &f.ways[(f.turn+i)%len(f.ways)]
		k, err := w.fabric.Receive(packets[n:])
		if err != nil {
			return n, errors.WithMessage(err, w.Name)
		}
		// A packet that claims to come from a task to which another way leads was made
		// by somebody else: what comes by a lossless way is believed.
		kept := n
		for _, p := range packets[n : n+k] {
			if len(f.ways) > 1 && f.to(p.Peer) != w {
				f.astray++
				continue
			}
			packets[kept] = p
			kept++
		}
		n = kept
	}
	return n, nil
}

// Close closes all ways.
func (f *Fabric) Close() error {
	if f.Closed() {
		return nil
	}
	first := f.Waiter.Close()
	for _, w := range f.ways {
		if err := w.fabric.Close(); err != nil && first == nil {
			first = errors.WithMessage(err, w.Name)
		}
	}
	return first
}
