package mpi

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/pkg/errors"
)

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error {
	comm, err := c.live("MPI_Barrier")
	if err != nil {
		return err
	}
	return check("MPI_Barrier", C.ek_barrier(comm))
}

// Ibarrier begins a Barrier: the request is complete when all ranks have begun theirs.
func (c *Comm) Ibarrier() (*Request, error) {
	comm, err := c.live("MPI_Ibarrier")
	if err != nil {
		return nil, err
	}
	r := newRequest()
	return r.started("MPI_Ibarrier", C.ek_ibarrier(comm, &r.handle))
}

// Bcast copies the root's buf into the buf of all ranks; its length is the same on each.
func Bcast[T Datatype](c *Comm, buf []T, root int) error {
	comm, err := c.live("MPI_Bcast")
	if err != nil {
		return err
	}
	return check("MPI_Bcast", C.ek_bcast(address(buf), cint(len(buf)), datatypeOf[T](), cint(root), comm))
}

// Ibcast begins a Bcast. buf must stay as it is until the request is complete.
func Ibcast[T Datatype](c *Comm, buf []T, root int) (*Request, error) {
	comm, err := c.live("MPI_Ibcast")
	if err != nil {
		return nil, err
	}
	r := newRequest()
	pin(&r.pins, buf)
	return r.started("MPI_Ibcast", C.ek_ibcast(address(buf), cint(len(buf)), datatypeOf[T](),
		cint(root), comm, &r.handle))
}

// Gather collects the equally long send of all ranks, in the order of ranks, in the root's recv,
// which is Size() times as long. recv counts only at the root.
func Gather[T Datatype](c *Comm, send, recv []T, root int) error {
	comm, err := c.live("MPI_Gather")
	if err != nil {
		return err
	}
	if c.rank == root {
		if err := needs("MPI_Gather", "recv", len(recv), len(send)*c.size); err != nil {
			return err
		}
	}
	return check("MPI_Gather", C.ek_gather(address(send), cint(len(send)),
		address(recv), cint(len(send)), datatypeOf[T](), cint(root), comm))
}

// Gatherv collects sends of different lengths: counts[i] elements of rank i go to the root's
// recv[displs[i]:]. A nil displs lays them one after the other. recv, counts and displs count only
// at the root.
func Gatherv[T Datatype](c *Comm, send, recv []T, counts, displs []int, root int) error {
	comm, err := c.live("MPI_Gatherv")
	if err != nil {
		return err
	}
	var b blocks
	if c.rank == root {
		if b, err = layOut("MPI_Gatherv", "recv", len(recv), counts, displs, c.size); err != nil {
			return err
		}
		if err := needs("MPI_Gatherv", "send", len(send), counts[root]); err != nil {
			return err
		}
	}
	return check("MPI_Gatherv", C.ek_gatherv(address(send), cint(len(send)),
		address(recv), b.counts(), b.displs(), datatypeOf[T](), cint(root), comm))
}

// Scatter hands the root's send out in equal parts, in the order of ranks, to the recv of all
// ranks. send is Size() times as long as recv and counts only at the root.
func Scatter[T Datatype](c *Comm, send, recv []T, root int) error {
	comm, err := c.live("MPI_Scatter")
	if err != nil {
		return err
	}
	if c.rank == root {
		if err := needs("MPI_Scatter", "send", len(send), len(recv)*c.size); err != nil {
			return err
		}
	}
	return check("MPI_Scatter", C.ek_scatter(address(send), cint(len(recv)),
		address(recv), cint(len(recv)), datatypeOf[T](), cint(root), comm))
}

// Scatterv hands out parts of different lengths: counts[i] elements of the root's send[displs[i]:]
// go to rank i. A nil displs finds them one after the other. send, counts and displs count only at
// the root.
func Scatterv[T Datatype](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	comm, err := c.live("MPI_Scatterv")
	if err != nil {
		return err
	}
	var b blocks
	if c.rank == root {
		if b, err = layOut("MPI_Scatterv", "send", len(send), counts, displs, c.size); err != nil {
			return err
		}
		if err := needs("MPI_Scatterv", "recv", len(recv), counts[root]); err != nil {
			return err
		}
	}
	return check("MPI_Scatterv", C.ek_scatterv(address(send), b.counts(), b.displs(),
		address(recv), cint(len(recv)), datatypeOf[T](), cint(root), comm))
}

// Allgather is a Gather whose result all ranks get.
func Allgather[T Datatype](c *Comm, send, recv []T) error {
	comm, err := c.live("MPI_Allgather")
	if err != nil {
		return err
	}
	if err := needs("MPI_Allgather", "recv", len(recv), len(send)*c.size); err != nil {
		return err
	}
	return check("MPI_Allgather", C.ek_allgather(address(send), cint(len(send)),
		address(recv), cint(len(send)), datatypeOf[T](), comm))
}

// AllgatherInPlace is an Allgather of what each rank has put into its own part of buf.
func AllgatherInPlace[T Datatype](c *Comm, buf []T) error {
	comm, err := c.live("MPI_Allgather")
	if err != nil {
		return err
	}
	part, err := share("MPI_Allgather", "buf", len(buf), c.size)
	if err != nil {
		return err
	}
	return check("MPI_Allgather", C.ek_allgather(inPlace, 0, address(buf), cint(part), datatypeOf[T](), comm))
}

// Allgatherv is a Gatherv whose result all ranks get.
func Allgatherv[T Datatype](c *Comm, send, recv []T, counts, displs []int) error {
	comm, err := c.live("MPI_Allgatherv")
	if err != nil {
		return err
	}
	b, err := layOut("MPI_Allgatherv", "recv", len(recv), counts, displs, c.size)
	if err != nil {
		return err
	}
	if err := needs("MPI_Allgatherv", "send", len(send), counts[c.rank]); err != nil {
		return err
	}
	return check("MPI_Allgatherv", C.ek_allgatherv(address(send), cint(len(send)),
		address(recv), b.counts(), b.displs(), datatypeOf[T](), comm))
}

// Alltoall sends the i-th of Size() equal parts of send to rank i, and receives the part of rank i
// as the i-th of recv. All buffers are equally long.
func Alltoall[T Datatype](c *Comm, send, recv []T) error {
	comm, err := c.live("MPI_Alltoall")
	if err != nil {
		return err
	}
	part, err := share("MPI_Alltoall", "send", len(send), c.size)
	if err != nil {
		return err
	}
	if err := needs("MPI_Alltoall", "recv", len(recv), len(send)); err != nil {
		return err
	}
	return check("MPI_Alltoall", C.ek_alltoall(address(send), address(recv), cint(part), datatypeOf[T](), comm))
}

// AlltoallInPlace is an Alltoall that puts what comes in where it took what went out.
func AlltoallInPlace[T Datatype](c *Comm, buf []T) error {
	comm, err := c.live("MPI_Alltoall")
	if err != nil {
		return err
	}
	part, err := share("MPI_Alltoall", "buf", len(buf), c.size)
	if err != nil {
		return err
	}
	return check("MPI_Alltoall", C.ek_alltoall(inPlace, address(buf), cint(part), datatypeOf[T](), comm))
}

// Alltoallv sends sendCounts[i] elements of send[sendDispls[i]:] to rank i, and receives
// recvCounts[i] elements from it in recv[recvDispls[i]:]. Nil displacements lay the parts one after
// the other.
func Alltoallv[T Datatype](c *Comm, send []T, sendCounts, sendDispls []int,
	recv []T, recvCounts, recvDispls []int) error {
	comm, err := c.live("MPI_Alltoallv")
	if err != nil {
		return err
	}
	out, err := layOut("MPI_Alltoallv", "send", len(send), sendCounts, sendDispls, c.size)
	if err != nil {
		return err
	}
	in, err := layOut("MPI_Alltoallv", "recv", len(recv), recvCounts, recvDispls, c.size)
	if err != nil {
		return err
	}
	return check("MPI_Alltoallv", C.ek_alltoallv(address(send), out.counts(), out.displs(),
		address(recv), in.counts(), in.displs(), datatypeOf[T](), comm))
}

// blocks are the counts and displacements of the parts of a buffer, as C wants them.
type blocks struct {
	c, d []C.int
}

func (b blocks) counts() *C.int { return unsafe.SliceData(b.c) }
func (b blocks) displs() *C.int { return unsafe.SliceData(b.d) }

// layOut refuses parts that do not lie in a buffer of the given length. Without displacements they
// lie one after the other.
func layOut(call, buffer string, length int, counts, displs []int, ranks int) (blocks, error) {
	if err := needs(call, "counts of "+buffer, len(counts), ranks); err != nil {
		return blocks{}, err
	}
	if displs == nil {
		displs = make([]int, ranks)
		for i := 1; i < ranks; i++ {
			displs[i] = displs[i-1] + counts[i-1]
		}
	}
	if err := needs(call, "displs of "+buffer, len(displs), ranks); err != nil {
		return blocks{}, err
	}
	for i, n := range counts {
		if n < 0 || displs[i] < 0 || displs[i] > length-n {
			return blocks{}, errors.Wrapf(ErrLength, "%s: %d elements at %d of rank %d lie outside %s, which has %d",
				call, n, displs[i], i, buffer, length)
		}
	}
	return blocks{cints(counts), cints(displs)}, nil
}

// share returns the length of one of equal parts of a buffer.
func share(call, buffer string, length, ranks int) (int, error) {
	if length%ranks != 0 {
		return 0, errors.Wrapf(ErrLength, "%s: %s has %d elements, which do not part into %d",
			call, buffer, length, ranks)
	}
	return length / ranks, nil
}
