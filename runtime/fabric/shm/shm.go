// Package shm is the fabric between the tasks of a node: injection FIFOs in
// memory that they share (c/fifo.h).
//
// A packet of up to 56 bytes goes from task to task in one transfer of a cache
// line; a longer one is copied into the shadow buffer of its slot, and received
// from there without a copy. Nothing is lost, repeated or reordered within a
// class, and nobody but the job's own tasks can write there. A shadow buffer has
// as much memory as the longest packet needed that ever went through it.
//
// What happens to a packet: Send copies it into the next slot of the FIFO that
// leads to its receiver, and rings the receiver's doorbell if that sleeps.
// Receive shows the packets where they lie, those of the class Control first; the
// next Receive gives the slots back to the senders.
package shm

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"evenkeel/runtime/fabric"
)

// Fabric is one task's end. It implements fabric.Fabric and fabric.Sleeper.
type Fabric struct {
	fabric.Waiter
	self    fabric.Task
	tasks   []fabric.Task // of the node, by their number on it
	number  int           // our own
	first   fabric.Task
	numbers []int32 // on the node, by task less first; -1: elsewhere
	buffer  int
	slots   int

	area   int // the descriptor
	memory []byte
	bells  []int
	own    *page

	senders   [fabric.Classes][]*sender // by number; nil: nothing was ever sent there
	full      []*sender                 // that had no room when last asked
	known     [maxTasks / 64]uint64     // whose FIFOs are in receivers
	receivers [fabric.Classes][]*receiver
	shown     []*receiver // that Receive has shown packets of
	turn      int         // whose turn it is to be looked at first
}

var (
	_ fabric.Fabric  = (*Fabric)(nil)
	_ fabric.Sleeper = (*Fabric)(nil)
)

func (f *Fabric) attach(o Options) error {
	if _, err := f.header(o); err != nil {
		return err
	}
	f.slots = o.Slots
	f.own = f.page(f.number)
	for class := range f.senders {
		f.senders[class] = make([]*sender, len(f.tasks))
	}
	return nil
}

// Self is the task whose end this is.
func (f *Fabric) Self() fabric.Task { return f.self }

// Tasks are those of the node, in rising order.
func (f *Fabric) Tasks() []fabric.Task { return f.tasks }

// Reaches says whether a task is on this node.
func (f *Fabric) Reaches(peer fabric.Task) bool { return f.numberOf(peer) >= 0 }

func (f *Fabric) numberOf(peer fabric.Task) int {
	if at := peer - f.first; int(at) < len(f.numbers) {
		return int(f.numbers[at])
	}
	return -1
}

// MTU is the size of a shadow buffer.
func (f *Fabric) MTU(fabric.Task) int { return max(f.buffer, inline) }

// Send copies packets into the FIFOs of their receivers, in order, until one is
// full.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	for i := range packets {
		p := &packets[i]
		s, err := f.sender(p)
		if err != nil {
			return i, err
		}
		sent, err := s.send(p.Path, p.Data)
		if err != nil {
			return i, errors.WithMessagef(err, "sending to task %d", p.Peer)
		}
		if !sent {
			f.remember(s)
			return i, nil
		}
	}
	return len(packets), nil
}

func (f *Fabric) sender(p *fabric.Packet) (*sender, error) {
	number := f.numberOf(p.Peer)
	if number < 0 || p.Class >= fabric.Classes {
		return nil, errors.WithMessagef(fabric.ErrPeer, "task %d, class %d, over shared memory", p.Peer, p.Class)
	}
	if len(p.Data) > f.MTU(p.Peer) {
		return nil, errors.WithMessagef(fabric.ErrLength, "%d bytes to task %d, at most %d over shared memory",
			len(p.Data), p.Peer, f.MTU(p.Peer))
	}
	if s := f.senders[p.Class][number]; s != nil {
		return s, nil
	}
	return f.begin(number, int(p.Class))
}

// begin makes the memory of the FIFOs to a task, without their shadow buffers, and
// tells the task of it.
func (f *Fabric) begin(number, class int) (*sender, error) {
	// Both classes are looked at once either is used; memory that nobody has
	// written reads as zeros, and an empty FIFO is all zeros.
	var both [fabric.Classes]*sender
	for class := range both {
		s := &sender{line: f.line(number, f.number, class, number), limit: uint64(f.slots), area: f.area,
			backed: make([]uint32, f.slots)}
		begin := f.offset(s.fifo)
		s.shadows = begin + int64(uintptr(s.buffers)-uintptr(unsafe.Pointer(s.fifo)))
		if err := reserve(f.area, begin, s.shadows-begin); err != nil {
			return nil, errors.WithMessagef(err, "sending to task %d", f.tasks[number])
		}
		both[class] = s
	}
	for class, s := range both {
		f.senders[class][number] = s
	}
	atomic.OrUint64((*uint64)(&both[0].page.senders[f.number/64]), 1<<(f.number%64))
	return both[class], nil
}

func (f *Fabric) remember(s *sender) {
	for _, other := range f.full {
		if other == s {
			return
		}
	}
	f.full = append(f.full, s)
}

// Receive shows what has arrived, where it lies.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	for _, r := range f.shown {
		r.release()
	}
	f.shown = f.shown[:0]
	f.meet()
	n := 0
	for class := range f.receivers {
		receivers := f.receivers[class]
		for i := range receivers {
			r := receivers[(f.turn+i)%len(receivers)]
			before := n
			for n < len(packets) && r.receive(&packets[n], fabric.Class(class)) {
				n++
			}
			if n > before {
				f.shown = append(f.shown, r)
			}
		}
	}
	if n > 0 {
		f.turn++
	}
	return n, nil
}

// meet takes up the FIFOs of those who send for the first time.
func (f *Fabric) meet() {
	for i := 0; i <= (len(f.tasks)-1)/64; i++ {
		now := atomic.LoadUint64((*uint64)(&f.own.senders[i]))
		if now == f.known[i] {
			continue
		}
		for fresh := now &^ f.known[i]; fresh != 0; fresh &= fresh - 1 {
			number := i*64 + bits.TrailingZeros64(fresh)
			if number >= len(f.tasks) {
				break // nobody has such a number
			}
			for class := range f.receivers {
				f.receivers[class] = append(f.receivers[class],
					&receiver{line: f.line(f.number, number, class, number), peer: f.tasks[number]})
			}
		}
		f.known[i] = now
	}
}

// Arrived says whether there is something to receive, or room again where there
// was none.
func (f *Fabric) Arrived() bool {
	f.meet()
	for class := range f.receivers {
		for _, r := range f.receivers[class] {
			if _, full := r.word(); full {
				return true
			}
		}
	}
	for i, s := range f.full {
		if s.came() {
			f.full = append(f.full[:i], f.full[i+1:]...)
			return true
		}
	}
	return false
}

// Arm has senders ring our doorbell.
func (f *Fabric) Arm() bool {
	atomic.StoreUint32((*uint32)(&f.own.asleep), 1) // before the last look, as senders do it the other way round
	return !f.Arrived()
}

// Disarm ends that.
func (f *Fabric) Disarm() {
	atomic.StoreUint32((*uint32)(&f.own.asleep), 0)
	var rings [256]byte
	unix.Read(f.bells[f.number], rings[:])
}

// Descriptors are our doorbell's.
func (f *Fabric) Descriptors() []int { return []int{f.bells[f.number]} }

// Close unmaps the memory: what Receive has shown is gone.
func (f *Fabric) Close() error {
	if f.Closed() {
		return nil
	}
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	keep(f.Waiter.Close())
	if f.memory != nil {
		keep(errors.Wrap(unix.Munmap(f.memory), "unmapping shared memory"))
	}
	if f.area >= 0 {
		keep(errors.Wrap(unix.Close(f.area), "closing shared memory"))
	}
	for _, bell := range f.bells {
		keep(errors.Wrap(unix.Close(bell), "closing a doorbell"))
	}
	return first
}

// Lossless is true of the tasks of the node.
func (f *Fabric) Lossless(peer fabric.Task) bool { return f.Reaches(peer) }
