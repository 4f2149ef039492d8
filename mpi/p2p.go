package mpi

// #include "calls.h"
import "C"

// Send sends the elements of buf to rank dest. It returns when buf may be changed again, which can
// be before the message is received.
func Send[T Datatype](c *Comm, buf []T, dest, tag int) error {
	comm, err := c.live("MPI_Send")
	if err != nil {
		return err
	}
	return check("MPI_Send",
		C.ek_send(address(buf), cint(len(buf)), datatypeOf[T](), cint(dest), cint(tag), comm))
}

// Ssend is a Send that returns only when the receiver has begun to receive.
func Ssend[T Datatype](c *Comm, buf []T, dest, tag int) error {
	comm, err := c.live("MPI_Ssend")
	if err != nil {
		return err
	}
	return check("MPI_Ssend",
		C.ek_ssend(address(buf), cint(len(buf)), datatypeOf[T](), cint(dest), cint(tag), comm))
}

// Recv receives one message into buf. The message may be shorter than buf (see Count); a longer one
// is an error, ErrTruncate. source may be AnySource, tag AnyTag.
func Recv[T Datatype](c *Comm, buf []T, source, tag int) (Status, error) {
	comm, err := c.live("MPI_Recv")
	if err != nil {
		return Status{}, err
	}
	o := C.ek_recv(address(buf), cint(len(buf)), datatypeOf[T](), cint(source), cint(tag), comm)
	return Status{o.status}, check("MPI_Recv", o.code)
}

// Sendrecv sends one message and receives another, in no order that could lock ranks up which do
// the same. The two buffers must not overlap.
func Sendrecv[S, R Datatype](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	comm, err := c.live("MPI_Sendrecv")
	if err != nil {
		return Status{}, err
	}
	o := C.ek_sendrecv(
		address(send), cint(len(send)), datatypeOf[S](), cint(dest), cint(sendTag),
		address(recv), cint(len(recv)), datatypeOf[R](), cint(source), cint(recvTag), comm)
	return Status{o.status}, check("MPI_Sendrecv", o.code)
}

// Isend begins a Send. buf must stay as it is until the request is complete.
func Isend[T Datatype](c *Comm, buf []T, dest, tag int) (*Request, error) {
	comm, err := c.live("MPI_Isend")
	if err != nil {
		return nil, err
	}
	r := newRequest()
	pin(&r.pins, buf)
	return r.started("MPI_Isend", C.ek_isend(address(buf), cint(len(buf)), datatypeOf[T](),
		cint(dest), cint(tag), comm, &r.handle))
}

// Irecv begins a Recv. buf must not be touched until the request is complete.
func Irecv[T Datatype](c *Comm, buf []T, source, tag int) (*Request, error) {
	comm, err := c.live("MPI_Irecv")
	if err != nil {
		return nil, err
	}
	r := newRequest()
	pin(&r.pins, buf)
	return r.started("MPI_Irecv", C.ek_irecv(address(buf), cint(len(buf)), datatypeOf[T](),
		cint(source), cint(tag), comm, &r.handle))
}
