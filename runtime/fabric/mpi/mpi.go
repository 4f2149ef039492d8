// Package mpi is the fabric over a communicator of its own: for networks that
// only MPI can drive. It also lets tasks that are ranks of a communicator meet.
//
// Packets are short messages, which MPI passes on without asking the receiver
// first; one tag for each class, so that Control packets are found before Bulk
// ones. Send copies a packet into a free slot and starts a nonblocking send from
// there. Nothing is lost, repeated, or reordered within a class.
//
// MPI can't wake a task that sleeps. Wait sleeps for short times and looks in
// between.
package mpi

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/runtime/fabric"
)

const (
	mtu   = 3072 // below the length from which Open MPI's transports ask the receiver first
	slots = 64   // sends under way, for each class
	held  = 64   // packets that one Receive shows, at most
	nap   = 200 * time.Microsecond
)

// Fabric is one task's end. It implements fabric.Fabric, fabric.Sleeper and
// fabric.Lossless.
type Fabric struct {
	comm    *mpi.Comm
	sends   [fabric.Classes][slots]send
	oldest  [fabric.Classes]int
	buffers [held][]byte
	arrived *mpi.Message // found, and not received yet
	class   fabric.Class // its class,
	source  int          // and where it is from
	length  int
	err     error // that Arrived met
	waiter  *fabric.Waiter
	closed  bool
}

// send is a slot: a packet that MPI is sending.
type send struct {
	buffer  []byte
	request *mpi.Request // nil: free
}

var (
	_ fabric.Fabric   = (*Fabric)(nil)
	_ fabric.Sleeper  = (*Fabric)(nil)
	_ fabric.Lossless = (*Fabric)(nil)
)

// Join makes a fabric of the ranks of a communicator, of which it takes a copy.
// Collective. MPI must allow calls from several threads at once, since the
// program goes on calling it.
func Join(c *mpi.Comm, spin time.Duration) (*Fabric, error) {
	level, err := mpi.QueryThread()
	if err != nil {
		return nil, errors.WithMessage(err, "the MPI fabric")
	}
	if level < mpi.ThreadMultiple {
		return nil, errors.New("the MPI fabric needs mpi.InitThread(mpi.ThreadMultiple), and an MPI library that grants it")
	}
	comm, err := c.Dup()
	if err != nil {
		return nil, errors.WithMessage(err, "the MPI fabric")
	}
	f := &Fabric{comm: comm}
	if f.waiter, err = fabric.NewWaiter(spin, f); err != nil {
		return nil, err
	}
	f.waiter.Nap = nap
	return f, nil
}

// Self is the rank in the communicator.
func (f *Fabric) Self() fabric.Task { return fabric.Task(f.comm.Rank()) }

// MTU is the same for all tasks.
func (f *Fabric) MTU(fabric.Task) int { return mtu - 1 }

// Lossless is true of all tasks: MPI is.
func (f *Fabric) Lossless(peer fabric.Task) bool { return int64(peer) < int64(f.comm.Size()) }

// Send starts to send packets, as long as there are slots.
func (f *Fabric) Send(packets []fabric.Packet) (int, error) {
	if f.closed {
		return 0, fabric.ErrClosed
	}
	for i := range packets {
		p := &packets[i]
		if !f.Lossless(p.Peer) || p.Class >= fabric.Classes {
			return i, errors.WithMessagef(fabric.ErrPeer, "task %d, class %d, of %d over MPI", p.Peer, p.Class, f.comm.Size())
		}
		if len(p.Data) > f.MTU(p.Peer) {
			return i, errors.WithMessagef(fabric.ErrLength, "%d bytes to task %d, at most %d over MPI",
				len(p.Data), p.Peer, f.MTU(p.Peer))
		}
		s, err := f.slot(p.Class)
		if s == nil || err != nil {
			return i, err
		}
		s.buffer = append(append(s.buffer[:0], p.Path), p.Data...)
		s.request, err = mpi.Isend(f.comm, s.buffer, int(p.Peer), int(p.Class))
		if err != nil {
			return i, err
		}
	}
	return len(packets), nil
}

// slot is a free one, or nil. They are used in turn, and so become free.
func (f *Fabric) slot(class fabric.Class) (*send, error) {
	s := &f.sends[class][f.oldest[class]]
	if s.request != nil {
		_, done, err := s.request.Test()
		if err != nil {
			return nil, errors.WithMessage(err, "sending over MPI")
		}
		if !done {
			return nil, nil
		}
		s.request = nil
	}
	f.oldest[class] = (f.oldest[class] + 1) % slots
	return s, nil
}

// Receive receives what has arrived.
func (f *Fabric) Receive(packets []fabric.Packet) (int, error) {
	if f.closed {
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
			f.buffers[n] = make([]byte, mtu)
		}
		buffer := f.buffers[n][:f.length]
		m := f.arrived
		f.arrived = nil
		if _, err := mpi.Mrecv(m, buffer); err != nil {
			return n, errors.WithMessage(err, "receiving over MPI")
		}
		packets[n] = fabric.Packet{Peer: fabric.Task(f.source), Class: f.class, Path: buffer[0], Data: buffer[1:]}
		n++
	}
	return n, nil
}

// Arrived says whether there is something to receive: a packet, or an error.
func (f *Fabric) Arrived() bool {
	if f.arrived != nil || f.err != nil {
		return true
	}
	for class := range fabric.Class(fabric.Classes) {
		m, status, err := f.comm.Improbe(mpi.AnySource, int(class))
		if err == nil && m == nil {
			continue
		}
		if err == nil {
			f.length, err = mpi.Count[byte](status)
		}
		if err == nil && (f.length < 1 || f.length > mtu) {
			err = errors.Errorf("a message of %d bytes is no packet", f.length)
		}
		f.arrived, f.class, f.err = m, class, errors.WithMessage(err, "receiving over MPI")
		if err == nil {
			f.source = status.Source()
		}
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

// Wait looks for a short time, then sleeps for one; it returns early.
func (f *Fabric) Wait(timeout time.Duration) {
	if !f.closed {
		f.waiter.Wait(timeout)
	}
}

// Wake ends a Wait.
func (f *Fabric) Wake() { f.waiter.Wake() }

// Close stops sending and receiving, once MPI has passed on what was sent; for
// tasks that may be dead it waits a second. The communicator stays until MPI
// ends: freeing it would have to wait for them all.
func (f *Fabric) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	for end := time.Now().Add(time.Second); f.sending() && time.Now().Before(end); {
		time.Sleep(nap)
	}
	return f.waiter.Close()
}

func (f *Fabric) sending() (some bool) {
	for class := range f.sends {
		for i := range f.sends[class] {
			s := &f.sends[class][i]
			if s.request == nil {
				continue
			}
			if _, done, err := s.request.Test(); done || err != nil {
				s.request = nil
			} else {
				some = true
			}
		}
	}
	return some
}

// Meet has the ranks of a communicator meet.
func Meet(c *mpi.Comm) fabric.Meeting { return meeting{c} }

type meeting struct{ comm *mpi.Comm }

func (m meeting) Self() fabric.Task { return fabric.Task(m.comm.Rank()) }
func (m meeting) Tasks() int        { return m.comm.Size() }

func (m meeting) Exchange(mine []byte) ([][]byte, error) {
	lengths := make([]int64, m.comm.Size())
	if err := mpi.Allgather(m.comm, []int64{int64(len(mine))}, lengths); err != nil {
		return nil, errors.WithMessage(err, "the tasks' meeting")
	}
	counts, displacements, total := make([]int, len(lengths)), make([]int, len(lengths)), 0
	for task, n := range lengths {
		counts[task], displacements[task] = int(n), total
		total += int(n)
	}
	all := make([]byte, total)
	if err := mpi.Allgatherv(m.comm, mine, all, counts, displacements); err != nil {
		return nil, errors.WithMessage(err, "the tasks' meeting")
	}
	said := make([][]byte, len(lengths))
	for task := range said {
		said[task] = all[displacements[task]:][:counts[task]:counts[task]]
	}
	return said, nil
}
