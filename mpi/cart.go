package mpi

// #include "calls.h"
import "C"

import "unsafe"

// Cart is a communicator whose ranks form a Cartesian grid. Its Comm goes where a communicator is
// wanted; the embedded Rank, Size and Free are the grid's.
type Cart struct {
	*Comm
	dims     []int
	periodic []bool
}

// Dims spreads ranks over a grid as evenly as it can: an entry of 0 in fixed is chosen, any other
// one is kept. The length of fixed is the number of dimensions.
func Dims(ranks int, fixed ...int) ([]int, error) {
	if !running.Load() {
		return nil, notRunning("MPI_Dims_create")
	}
	dims := cints(fixed)
	if err := check("MPI_Dims_create",
		C.MPI_Dims_create(cint(ranks), cint(len(dims)), unsafe.SliceData(dims))); err != nil {
		return nil, err
	}
	return goInts(dims), nil
}

// Cart lays the ranks of c out as a grid of the given extents, which wraps around in the periodic
// dimensions. With reorder, MPI may number the ranks anew. Ranks beyond the grid get nil.
// Collective.
func (c *Comm) Cart(dims []int, periodic []bool, reorder bool) (*Cart, error) {
	comm, err := c.live("MPI_Cart_create")
	if err != nil {
		return nil, err
	}
	if err := needs("MPI_Cart_create", "periodic", len(periodic), len(dims)); err != nil {
		return nil, err
	}
	out := nullComm
	code := C.ek_cart_create(comm, cint(len(dims)), unsafe.SliceData(cints(dims)),
		unsafe.SliceData(flags(periodic)), flag(reorder), &out)
	return newCart("MPI_Cart_create", code, out)
}

// Sub cuts the grid into grids of the dimensions to keep; each rank gets the one it lies in.
// Collective.
func (g *Cart) Sub(keep []bool) (*Cart, error) {
	comm, err := g.live("MPI_Cart_sub")
	if err != nil {
		return nil, err
	}
	if err := needs("MPI_Cart_sub", "keep", len(keep), len(g.dims)); err != nil {
		return nil, err
	}
	out := nullComm
	code := C.ek_cart_sub(comm, unsafe.SliceData(flags(keep)), &out)
	return newCart("MPI_Cart_sub", code, out)
}

func newCart(call string, code C.int, handle C.MPI_Comm) (*Cart, error) {
	comm, err := created(call, code, handle)
	if comm == nil || err != nil {
		return nil, err
	}
	var n C.int
	if err := check("MPI_Cartdim_get", C.MPI_Cartdim_get(handle, &n)); err != nil {
		return nil, err
	}
	dims, periods, coords := make([]C.int, n), make([]C.int, n), make([]C.int, n)
	if err := check("MPI_Cart_get", C.MPI_Cart_get(handle, n,
		unsafe.SliceData(dims), unsafe.SliceData(periods), unsafe.SliceData(coords))); err != nil {
		return nil, err
	}
	periodic := make([]bool, n)
	for i, p := range periods {
		periodic[i] = p != 0
	}
	return &Cart{Comm: comm, dims: goInts(dims), periodic: periodic}, nil
}

// live refuses the nil grid of a rank that lies outside.
//
//go:noinline
func (g *Cart) live(call string) (C.ek_comm, error) {
	if g == nil {
		return (*Comm)(nil).live(call)
	}
	comm, err := g.Comm.live(call)
	comm.from = place(1)
	return comm, err
}

// Dims returns the extent of each dimension.
func (g *Cart) Dims() []int {
	return append([]int(nil), g.dims...)
}

// Periodic tells for each dimension whether it wraps around.
func (g *Cart) Periodic() []bool {
	return append([]bool(nil), g.periodic...)
}

// Coords returns the place of a rank in the grid, one coordinate per dimension, from 0.
func (g *Cart) Coords(rank int) ([]int, error) {
	comm, err := g.live("MPI_Cart_coords")
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= g.size { // Open MPI 4.1 gives rank Size() a place
		return nil, refuse("MPI_Cart_coords", ErrRank, "the grid has no rank %d", rank)
	}
	coords := make([]C.int, len(g.dims))
	if err := check("MPI_Cart_coords", C.MPI_Cart_coords(comm.handle, cint(rank),
		cint(len(coords)), unsafe.SliceData(coords))); err != nil {
		return nil, err
	}
	return goInts(coords), nil
}

// RankAt returns the rank at a place in the grid. Coordinates beyond the edge are folded back in
// periodic dimensions and refused in others.
func (g *Cart) RankAt(coords ...int) (int, error) {
	comm, err := g.live("MPI_Cart_rank")
	if err != nil {
		return Undefined, err
	}
	if err := needs("MPI_Cart_rank", "coords", len(coords), len(g.dims)); err != nil {
		return Undefined, err
	}
	rank := C.int(C.MPI_UNDEFINED)
	err = check("MPI_Cart_rank", C.MPI_Cart_rank(comm.handle, unsafe.SliceData(cints(coords)), &rank))
	return int(rank), err
}

// Shift returns the partners of a transfer by steps along a dimension: the rank to receive from
// and the rank to send to, ProcNull beyond an edge.
func (g *Cart) Shift(dimension, steps int) (source, dest int, err error) {
	comm, err := g.live("MPI_Cart_shift")
	if err != nil {
		return ProcNull, ProcNull, err
	}
	if dimension < 0 || dimension >= len(g.dims) { // Open MPI 4.1 looks beyond the last one
		return ProcNull, ProcNull, refuse("MPI_Cart_shift", ErrDims, "the grid has no dimension %d", dimension)
	}
	var from, to C.int
	if err := check("MPI_Cart_shift",
		C.MPI_Cart_shift(comm.handle, cint(dimension), cint(steps), &from, &to)); err != nil {
		return ProcNull, ProcNull, err
	}
	return int(from), int(to), nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func flags(bs []bool) []C.int {
	out := make([]C.int, len(bs))
	for i, b := range bs {
		out[i] = flag(b)
	}
	return out
}
