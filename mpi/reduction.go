package mpi

// #include "calls.h"
import "C"

// Reduce combines the send of all ranks, element by element, into the root's recv of the same
// length. recv counts only at the root.
func Reduce[T Datatype](c *Comm, send, recv []T, op Op, root int) error {
	comm, err := c.live("MPI_Reduce")
	if err != nil {
		return err
	}
	if c.rank == root {
		if err := needs("MPI_Reduce", "recv", len(recv), len(send)); err != nil {
			return err
		}
	}
	return check("MPI_Reduce", C.ek_reduce(address(send), address(recv), cint(len(send)),
		datatypeOf[T](), op.handle(), cint(root), comm))
}

// ReduceInPlace is a Reduce of buf, which the root finds replaced by the result.
func ReduceInPlace[T Datatype](c *Comm, buf []T, op Op, root int) error {
	comm, err := c.live("MPI_Reduce")
	if err != nil {
		return err
	}
	send := address(buf)
	if c.rank == root {
		send = inPlace
	}
	return check("MPI_Reduce", C.ek_reduce(send, address(buf), cint(len(buf)),
		datatypeOf[T](), op.handle(), cint(root), comm))
}

// Allreduce is a Reduce whose result all ranks get.
func Allreduce[T Datatype](c *Comm, send, recv []T, op Op) error {
	comm, err := c.live("MPI_Allreduce")
	if err != nil {
		return err
	}
	if err := needs("MPI_Allreduce", "recv", len(recv), len(send)); err != nil {
		return err
	}
	return check("MPI_Allreduce", C.ek_allreduce(address(send), address(recv), cint(len(send)),
		datatypeOf[T](), op.handle(), comm))
}

// AllreduceInPlace is an Allreduce of buf, which all ranks find replaced by the result.
func AllreduceInPlace[T Datatype](c *Comm, buf []T, op Op) error {
	comm, err := c.live("MPI_Allreduce")
	if err != nil {
		return err
	}
	return check("MPI_Allreduce", C.ek_allreduce(inPlace, address(buf), cint(len(buf)),
		datatypeOf[T](), op.handle(), comm))
}

// Iallreduce begins an Allreduce. send must stay as it is, and recv not be touched, until the
// request is complete.
func Iallreduce[T Datatype](c *Comm, send, recv []T, op Op) (*Request, error) {
	comm, err := c.live("MPI_Iallreduce")
	if err != nil {
		return nil, err
	}
	if err := needs("MPI_Iallreduce", "recv", len(recv), len(send)); err != nil {
		return nil, err
	}
	r := newRequest()
	pin(&r.pins, send)
	pin(&r.pins, recv)
	return r.started("MPI_Iallreduce", C.ek_iallreduce(address(send), address(recv), cint(len(send)),
		datatypeOf[T](), op.handle(), comm, &r.handle))
}

// IallreduceInPlace begins an AllreduceInPlace. buf must not be touched until the request is
// complete.
func IallreduceInPlace[T Datatype](c *Comm, buf []T, op Op) (*Request, error) {
	comm, err := c.live("MPI_Iallreduce")
	if err != nil {
		return nil, err
	}
	r := newRequest()
	pin(&r.pins, buf)
	return r.started("MPI_Iallreduce", C.ek_iallreduce(inPlace, address(buf), cint(len(buf)),
		datatypeOf[T](), op.handle(), comm, &r.handle))
}

// ReduceScatterBlock is a Reduce whose result is handed out in equal parts, in the order of ranks:
// send is Size() times as long as recv.
func ReduceScatterBlock[T Datatype](c *Comm, send, recv []T, op Op) error {
	comm, err := c.live("MPI_Reduce_scatter_block")
	if err != nil {
		return err
	}
	if err := needs("MPI_Reduce_scatter_block", "send", len(send), len(recv)*c.size); err != nil {
		return err
	}
	return check("MPI_Reduce_scatter_block", C.ek_reduce_scatter_block(address(send), address(recv),
		cint(len(recv)), datatypeOf[T](), op.handle(), comm))
}

// ReduceScatterBlockInPlace leaves the rank's part of the result at the start of buf, and returns
// it.
func ReduceScatterBlockInPlace[T Datatype](c *Comm, buf []T, op Op) ([]T, error) {
	comm, err := c.live("MPI_Reduce_scatter_block")
	if err != nil {
		return nil, err
	}
	part, err := share("MPI_Reduce_scatter_block", "buf", len(buf), c.size)
	if err != nil {
		return nil, err
	}
	return buf[:part], check("MPI_Reduce_scatter_block", C.ek_reduce_scatter_block(inPlace, address(buf),
		cint(part), datatypeOf[T](), op.handle(), comm))
}

// ReduceScatter is a Reduce whose result is handed out in parts of different lengths, in the order
// of ranks: counts[i] elements to rank i. All ranks give the same counts; send is as long as they are
// together, and recv as the rank's own.
func ReduceScatter[T Datatype](c *Comm, send, recv []T, counts []int, op Op) error {
	comm, err := c.live("MPI_Reduce_scatter")
	if err != nil {
		return err
	}
	b, err := handOut("MPI_Reduce_scatter", "send", len(send), counts, c.size)
	if err != nil {
		return err
	}
	if err := needs("MPI_Reduce_scatter", "recv", len(recv), counts[c.rank]); err != nil {
		return err
	}
	return check("MPI_Reduce_scatter", C.ek_reduce_scatter(address(send), address(recv), b.counts(),
		datatypeOf[T](), op.handle(), comm))
}

// ReduceScatterInPlace leaves the rank's part of the result at the start of buf, and returns it.
func ReduceScatterInPlace[T Datatype](c *Comm, buf []T, counts []int, op Op) ([]T, error) {
	comm, err := c.live("MPI_Reduce_scatter")
	if err != nil {
		return nil, err
	}
	b, err := handOut("MPI_Reduce_scatter", "buf", len(buf), counts, c.size)
	if err != nil {
		return nil, err
	}
	return buf[:counts[c.rank]], check("MPI_Reduce_scatter", C.ek_reduce_scatter(inPlace, address(buf),
		b.counts(), datatypeOf[T](), op.handle(), comm))
}

// handOut refuses parts that do not lie one after the other and make up the buffer.
func handOut(call, buffer string, length int, counts []int, ranks int) (blocks, error) {
	b, err := layOut(call, buffer, length, counts, nil, ranks)
	if err != nil {
		return b, err
	}
	all := 0
	for _, n := range counts {
		all += n
	}
	return b, needs(call, buffer, length, all)
}

// Scan combines the send of ranks 0 to the calling one into recv.
func Scan[T Datatype](c *Comm, send, recv []T, op Op) error {
	comm, err := c.live("MPI_Scan")
	if err != nil {
		return err
	}
	if err := needs("MPI_Scan", "recv", len(recv), len(send)); err != nil {
		return err
	}
	return check("MPI_Scan", C.ek_scan(address(send), address(recv), cint(len(send)),
		datatypeOf[T](), op.handle(), comm))
}

// ScanInPlace is a Scan of buf, replaced by the result.
func ScanInPlace[T Datatype](c *Comm, buf []T, op Op) error {
	comm, err := c.live("MPI_Scan")
	if err != nil {
		return err
	}
	return check("MPI_Scan", C.ek_scan(inPlace, address(buf), cint(len(buf)),
		datatypeOf[T](), op.handle(), comm))
}

// Exscan combines the send of the ranks before the calling one into recv. What recv holds on rank 0
// afterwards is undefined.
func Exscan[T Datatype](c *Comm, send, recv []T, op Op) error {
	comm, err := c.live("MPI_Exscan")
	if err != nil {
		return err
	}
	if err := needs("MPI_Exscan", "recv", len(recv), len(send)); err != nil {
		return err
	}
	return check("MPI_Exscan", C.ek_exscan(address(send), address(recv), cint(len(send)),
		datatypeOf[T](), op.handle(), comm))
}

// ExscanInPlace is an Exscan of buf, replaced by the result.
func ExscanInPlace[T Datatype](c *Comm, buf []T, op Op) error {
	comm, err := c.live("MPI_Exscan")
	if err != nil {
		return err
	}
	return check("MPI_Exscan", C.ek_exscan(inPlace, address(buf), cint(len(buf)),
		datatypeOf[T](), op.handle(), comm))
}
