// Package messages is the fabric over MPI's messages, whoever calls MPI: package evenkeel/mpi in Go programs
// (runtime/fabric/mpi), libevenkeel.so in all others (pgas/gsm/service). It is for networks that only MPI can drive.
//
// Packets are short messages, which MPI passes on without asking the receiver
// first; one tag for each class, so that Control packets are found before Bulk
// ones. Send copies a packet into a free slot and starts a nonblocking send from
// there. Nothing is lost, repeated, or reordered within a class.
//
// MPI can't wake a task that sleeps. Wait sleeps for short times and looks in
// between.
package messages

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/runtime/fabric"
)

const (
	// Longest is the most bytes of a message: below the length from which Open MPI's transports ask the receiver first.
	Longest = 3072
	// Slots is how many sends are under way, for each class.
	Slots = 64

	held = 64 // packets that one Receive shows, at most
)

// MPI is what the fabric asks of it, over a communicator that nobody else uses. It is called by one goroutine at a time, from
// any thread, while the program calls MPI too. A message is a packet's path, then its data; its tag is the class.
type MPI interface {
	Self() fabric.Task
	Tasks() int
	// Send begins to send a message of at most Longest bytes from a slot whose last one has been sent. The data may change
	// when it returns.
	Send(class fabric.Class, slot int, to fabric.Task, path uint8, data []byte) error
	// Sent says whether the last message of a slot has been sent.
	Sent(class fabric.Class, slot int) (bool, error)
	// Find looks for a message, which nobody else finds then, and says how many bytes it has.
	Find(class fabric.Class) (source fabric.Task, length int, found bool, err error)
	// Receive receives the message that was found last; the buffer is as long.
	Receive(buffer []byte) error
}

// Fabric is one task's end. It implements fabric.Fabric, fabric.Sleeper and
// fabric.Lossless.
type Fabric struct {
	fabric.Waiter
	mpi     MPI
	sending [fabric.Classes][Slots]bool
	oldest  [fabric.Classes]int
	buffers [held][]byte
	found   bool         // a message that is not received yet:
	class   fabric.Class // its class,
	source  fabric.Task  // where it is from,
	length  int          // and how many bytes it has
	err     error        // that Arrived met
}

var (
	_ fabric.Fabric   = (*Fabric)(nil)
	_ fabric.Sleeper  = (*Fabric)(nil)
	_ fabric.Lossless = (*Fabric)(nil)
)

// New makes the task's end, which looks for packets for a time before it sleeps.
func New(m MPI, spin time.Duration) (*Fabric, error) {
	f := &Fabric{mpi: m}
	if err := f.Open(spin, f); err != nil {
		return nil, err
	}
	return f, nil
}

// Self is the rank in the communicator.
func (f *Fabric) Self() fabric.Task { return f.mpi.Self() }

// MTU is the same for all tasks.
func (f *Fabric) MTU(fabric.Task) int { return Longest - 1 }

// Lossless is true of all tasks: MPI is.
func (f *Fabric) Lossless(peer fabric.Task) bool { return int64(peer) < int64(f.mpi.Tasks()) }

// Send starts to send packets, as long as there are slots.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	for i := range packets {
		p := &packets[i]
		if !f.Lossless(p.Peer) || p.Class >= fabric.Classes {
			return i, errors.WithMessagef(fabric.ErrPeer, "task %d, class %d, of %d over MPI", p.Peer, p.Class, f.mpi.Tasks())
		}
		if len(p.Data) > f.MTU(p.Peer) {
			return i, errors.WithMessagef(fabric.ErrLength, "%d bytes to task %d, at most %d over MPI",
				len(p.Data), p.Peer, f.MTU(p.Peer))
		}
		slot, free, err := f.slot(p.Class)
		if !free || err != nil {
			return i, err
		}
		if err := f.mpi.Send(p.Class, slot, p.Peer, p.Path, p.Data); err != nil {
			return i, errors.WithMessage(err, "sending over MPI")
		}
		f.sending[p.Class][slot] = true
	}
	return len(packets), nil
}

// slot is a free one. They are used in turn, and so become free.
func (f *Fabric) slot(class fabric.Class) (slot int, free bool, err error) {
	slot = f.oldest[class]
	if f.sending[class][slot] {
		sent, err := f.mpi.Sent(class, slot)
		if err != nil || !sent {
			return 0, false, errors.WithMessage(err, "sending over MPI")
		}
		f.sending[class][slot] = false
	}
	f.oldest[class] = (slot + 1) % Slots
	return slot, true, nil
}

// Receive receives what has arrived.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if f.Closed() {
		return 0, fabric.ErrClosed
	}
	n := 0
	for n < min(len(packets), held) && f.Arrived() {
		if f.err != nil {
			err := f.err
			f.err = nil
			return n, err
		}
		if cap(f.buffers[n]) < f.length {
			f.buffers[n] = make([]byte, Longest)
		}
		buffer := f.buffers[n][:f.length]
		f.found = false
		if err := f.mpi.Receive(buffer); err != nil {
			return n, errors.WithMessage(err, "receiving over MPI")
		}
		packets[n] = fabric.Packet{Peer: f.source, Class: f.class, Path: buffer[0], Data: buffer[1:]}
		n++
	}
	return n, nil
}

// Arrived says whether there is something to receive: a packet, or an error.
func (f *Fabric) Arrived() bool {
	if f.found || f.err != nil {
		return true
	}
	for class := range fabric.Class(fabric.Classes) {
		source, length, found, err := f.mpi.Find(class)
		if err == nil && !found {
			continue
		}
		if err == nil && (length < 1 || length > Longest) {
			err = errors.Errorf("a message of %d bytes is no packet", length)
		}
		f.found, f.class, f.source, f.length = found, class, source, length
		f.err = errors.WithMessage(err, "receiving over MPI")
		return true
	}
	return false
}

// Arm looks once more; nothing can wake the caller for what comes later.
func (f *Fabric) Arm() bool { return !f.Arrived() }

// Disarm has nothing to end.
func (f *Fabric) Disarm() {}

// Descriptors are none.
func (f *Fabric) Descriptors() []int { return nil }

// Close stops sending and receiving, once MPI has passed on what was sent; for
// tasks that may be dead it waits a second. The communicator stays until MPI
// ends: freeing it would have to wait for them all.
func (f *Fabric) Close() error {
	if f.Closed() {
		return nil
	}
	for end := time.Now().Add(time.Second); f.busy() && time.Now().Before(end); {
		time.Sleep(fabric.Nap)
	}
	return f.Waiter.Close()
}

// busy says whether MPI still has something to send.
func (f *Fabric) busy() (some bool) {
	for class := range f.sending {
		for slot, sending := range f.sending[class] {
			if !sending {
				continue
			}
			if sent, err := f.mpi.Sent(fabric.Class(class), slot); sent || err != nil {
				f.sending[class][slot] = false
			} else {
				some = true
			}
		}
	}
	return some
}
