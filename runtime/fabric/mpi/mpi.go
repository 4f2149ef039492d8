// Package mpi has Go programs use the fabric over MPI's messages (runtime/fabric/messages), by calls of package evenkeel/mpi
// on a communicator of its own. It also lets tasks that are ranks of a communicator meet.
package mpi

import (
	"time"

	"github.com/pkg/errors"

	"evenkeel/mpi"
	"evenkeel/runtime/fabric"
	"evenkeel/runtime/fabric/messages"
)

// Join makes a fabric of the ranks of a communicator, of which it takes a copy.
// Collective. MPI must allow calls from several threads at once, since the
// program goes on calling it.
func Join(c *mpi.Comm, spin time.Duration) (*messages.Fabric, error) {
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
	return messages.New(&calls{comm: comm}, spin)
}

// calls is a messages.MPI.
type calls struct {
	comm    *mpi.Comm
	sends   [fabric.Classes][messages.Slots]send
	arrived *mpi.Message
}

// send is a slot.
type send struct {
	buffer  []byte
	request *mpi.Request
}

func (c *calls) Self() fabric.Task { return fabric.Task(c.comm.Rank()) }
func (c *calls) Tasks() int        { return c.comm.Size() }

func (c *calls) Send(class fabric.Class, slot int, to fabric.Task, path uint8, data []byte) (err error) {
	s := &c.sends[class][slot]
	s.buffer = append(append(s.buffer[:0], path), data...)
	s.request, err = mpi.Isend(c.comm, s.buffer, int(to), int(class))
	return err
}

func (c *calls) Sent(class fabric.Class, slot int) (bool, error) {
	_, done, err := c.sends[class][slot].request.Test()
	return done, err
}

func (c *calls) Find(class fabric.Class) (source fabric.Task, length int, found bool, err error) {
	m, status, err := c.comm.Improbe(mpi.AnySource, int(class))
	if err != nil || m == nil {
		return 0, 0, false, err
	}
	c.arrived = m
	length, err = mpi.Count[byte](status)
	return fabric.Task(status.Source()), length, true, err
}

func (c *calls) Receive(buffer []byte) error {
	_, err := mpi.Mrecv(c.arrived, buffer)
	return err
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
