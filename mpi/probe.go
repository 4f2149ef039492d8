package mpi

// #include "calls.h"
import "C"

// Probe waits for a message from source with tag, and leaves it to be received. With goroutines
// that receive at the same time use Mprobe, whose message no one else can receive.
func (c *Comm) Probe(source, tag int) (Status, error) {
	comm, err := c.live("MPI_Probe")
	if err != nil {
		return Status{}, err
	}
	o := C.ek_probe(cint(source), cint(tag), comm)
	return Status{o.status}, check("MPI_Probe", o.code)
}

// Iprobe tells whether there is a message from source with tag, without waiting for one.
func (c *Comm) Iprobe(source, tag int) (Status, bool, error) {
	comm, err := c.live("MPI_Iprobe")
	if err != nil {
		return Status{}, false, err
	}
	o := C.ek_iprobe(cint(source), cint(tag), comm)
	return Status{o.status}, o.value != 0, check("MPI_Iprobe", o.code)
}

// Message is a message that a matched probe took out of the queue: only Mrecv can receive it.
type Message struct {
	handle C.MPI_Message
}

var nullMessage C.MPI_Message = C.MPI_MESSAGE_NULL

// Mprobe waits for a message from source with tag and takes it, to be received with Mrecv.
func (c *Comm) Mprobe(source, tag int) (*Message, Status, error) {
	comm, err := c.live("MPI_Mprobe")
	if err != nil {
		return nil, Status{}, err
	}
	m := &Message{nullMessage}
	o := C.ek_mprobe(cint(source), cint(tag), comm, &m.handle)
	if err := check("MPI_Mprobe", o.code); err != nil {
		return nil, Status{}, err
	}
	return m, Status{o.status}, nil
}

// Improbe takes a message from source with tag when there is one, and returns nil when there is
// none.
func (c *Comm) Improbe(source, tag int) (*Message, Status, error) {
	comm, err := c.live("MPI_Improbe")
	if err != nil {
		return nil, Status{}, err
	}
	m := &Message{nullMessage}
	o := C.ek_improbe(cint(source), cint(tag), comm, &m.handle)
	if err := check("MPI_Improbe", o.code); err != nil || o.value == 0 {
		return nil, Status{}, err
	}
	return m, Status{o.status}, nil
}

// Mrecv receives the message of a matched probe, once. A message received before, or the nil of an
// Improbe that found none, is an error.
func Mrecv[T Datatype](m *Message, buf []T) (Status, error) {
	if !running.Load() {
		return Status{}, notRunning("MPI_Mrecv")
	}
	if m == nil || m.handle == nullMessage { // for Open MPI a fatal error
		return Status{}, refuse("MPI_Mrecv", ErrRequest, "null message: it was received, or none was found")
	}
	o := C.ek_mrecv(address(buf), cint(len(buf)), datatypeOf[T](), &m.handle, place(0))
	return Status{o.status}, check("MPI_Mrecv", o.code)
}
