package mpi

// #include "calls.h"
// #include <stdlib.h>
import "C"

import "unsafe"

// The special ranks, tags and colours of the standard.
const (
	AnySource = int(C.MPI_ANY_SOURCE) // receive from whichever rank sends
	AnyTag    = int(C.MPI_ANY_TAG)    // receive a message of any tag
	ProcNull  = int(C.MPI_PROC_NULL)  // the rank beyond an edge: transfers with it do nothing
	Undefined = int(C.MPI_UNDEFINED)  // no rank, no count, or the colour of a rank that stays outside
)

// Comm is a communicator: a group of ranks with a message space of its own. Rank and Size may be
// called from any goroutine at any time; for the rest see ThreadLevel. A nil Comm, as the ranks get
// that stay outside a new communicator, is refused by every call with ErrComm.
type Comm struct {
	handle     C.MPI_Comm
	rank, size int
}

var nullComm C.MPI_Comm = C.MPI_COMM_NULL

// World holds every rank of the job, Self the calling rank alone. They are usable between Init and
// Finalize.
var (
	World = &Comm{handle: nullComm, rank: Undefined, size: Undefined}
	Self  = &Comm{handle: nullComm, rank: Undefined, size: Undefined}
)

// adopt makes c the owner of a living communicator, whose errors return from now on.
func (c *Comm) adopt(handle C.MPI_Comm) error {
	var rank, size C.int
	if err := check("MPI_Comm_set_errhandler",
		C.MPI_Comm_set_errhandler(handle, C.MPI_ERRORS_RETURN)); err != nil {
		return err
	}
	if err := check("MPI_Comm_rank", C.MPI_Comm_rank(handle, &rank)); err != nil {
		return err
	}
	if err := check("MPI_Comm_size", C.MPI_Comm_size(handle, &size)); err != nil {
		return err
	}
	*c = Comm{handle: handle, rank: int(rank), size: int(size)}
	return nil
}

// created wraps what a constructor gave back: nil on the ranks that stay outside.
func created(call string, code C.int, handle C.MPI_Comm) (*Comm, error) {
	if err := check(call, code); err != nil || handle == nullComm {
		return nil, err
	}
	c := new(Comm)
	return c, c.adopt(handle)
}

// live returns the handle for a call that the program makes of its caller, or why there is none.
//
//go:noinline
func (c *Comm) live(call string) (C.ek_comm, error) {
	if err := c.Check(call); err != nil {
		return C.ek_comm{}, err
	}
	return C.ek_comm{handle: c.handle, from: place(1)}, nil
}

// Check says why a call of the MPI library on the communicator would be refused; nil: it would not be.
func (c *Comm) Check(call string) error {
	if !running.Load() {
		return notRunning(call)
	}
	if c == nil || c.handle == nullComm {
		return refuse(call, ErrComm, "null communicator: it was freed, or this rank is not in it")
	}
	return nil
}

// Rank returns the calling rank's number in the communicator, from 0, and Undefined when the
// communicator is nil or freed.
func (c *Comm) Rank() int {
	if c == nil {
		return Undefined
	}
	return c.rank
}

// Size returns the number of ranks in the communicator, and Undefined when it is nil or freed.
func (c *Comm) Size() int {
	if c == nil {
		return Undefined
	}
	return c.size
}

// Dup returns a communicator of the same ranks with a message space of its own. Collective.
func (c *Comm) Dup() (*Comm, error) {
	comm, err := c.live("MPI_Comm_dup")
	if err != nil {
		return nil, err
	}
	out := nullComm
	code := C.ek_comm_dup(comm, &out)
	return created("MPI_Comm_dup", code, out)
}

// Split parts the ranks by colour, a number from 0, and orders each part by key, then by old rank.
// A rank of colour Undefined gets nil. Collective.
func (c *Comm) Split(color, key int) (*Comm, error) {
	comm, err := c.live("MPI_Comm_split")
	if err != nil {
		return nil, err
	}
	out := nullComm
	code := C.ek_comm_split(comm, cint(color), cint(key), &out)
	return created("MPI_Comm_split", code, out)
}

// SplitType is what the ranks of a part have in common.
type SplitType int

// The kinds of parts.
const (
	Shared SplitType = C.MPI_COMM_TYPE_SHARED // memory: the ranks of a node
	None   SplitType = C.MPI_UNDEFINED        // nothing: the rank stays outside
)

// SplitType parts the ranks by what they share, each part ordered by key, then by old rank. A rank
// that asks for None gets nil. Collective.
func (c *Comm) SplitType(kind SplitType, key int) (*Comm, error) {
	comm, err := c.live("MPI_Comm_split_type")
	if err != nil {
		return nil, err
	}
	out := nullComm
	code := C.ek_comm_split_type(comm, cint(int(kind)), cint(key), &out)
	return created("MPI_Comm_split_type", code, out)
}

// Create returns a communicator of the given ranks of c, in that order, and nil on all others.
// Collective over c, with the same ranks everywhere.
func (c *Comm) Create(ranks ...int) (*Comm, error) {
	comm, err := c.live("MPI_Comm_create")
	if err != nil {
		return nil, err
	}
	var all, chosen C.MPI_Group
	if err := check("MPI_Comm_group", C.MPI_Comm_group(comm.handle, &all)); err != nil {
		return nil, err
	}
	defer C.MPI_Group_free(&all)
	if err := check("MPI_Group_incl",
		C.MPI_Group_incl(all, cint(len(ranks)), unsafe.SliceData(cints(ranks)), &chosen)); err != nil {
		return nil, err
	}
	defer C.MPI_Group_free(&chosen)
	out := nullComm
	code := C.ek_comm_create(comm, chosen, &out)
	return created("MPI_Comm_create", code, out)
}

// Free gives the communicator back; it is null afterwards. World and Self cannot be freed.
// Collective.
func (c *Comm) Free() error {
	comm, err := c.live("MPI_Comm_free")
	if err != nil {
		return err
	}
	if err := check("MPI_Comm_free", C.ek_comm_free(comm)); err != nil {
		return err
	}
	*c = Comm{handle: nullComm, rank: Undefined, size: Undefined}
	return nil
}

// Name returns the name that error messages and tools show.
func (c *Comm) Name() (string, error) {
	comm, err := c.live("MPI_Comm_get_name")
	if err != nil {
		return "", err
	}
	var name [C.MPI_MAX_OBJECT_NAME]C.char
	var n C.int
	if err := check("MPI_Comm_get_name", C.MPI_Comm_get_name(comm.handle, &name[0], &n)); err != nil {
		return "", err
	}
	return C.GoStringN(&name[0], n), nil
}

// SetName names the communicator on this rank. MPI keeps as many bytes as it has room for.
func (c *Comm) SetName(name string) error {
	comm, err := c.live("MPI_Comm_set_name")
	if err != nil {
		return err
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return check("MPI_Comm_set_name", C.ek_comm_set_name(comm, text))
}

// Comparison says how much two communicators have in common.
type Comparison int

// From the same to nothing.
const (
	Ident     = Comparison(C.MPI_IDENT)     // the same communicator
	Congruent = Comparison(C.MPI_CONGRUENT) // the same ranks in the same order
	Similar   = Comparison(C.MPI_SIMILAR)   // the same ranks in another order
	Unequal   = Comparison(C.MPI_UNEQUAL)   // other ranks
)

// Compare tells what two communicators have in common.
func Compare(a, b *Comm) (Comparison, error) {
	left, err := a.live("MPI_Comm_compare")
	if err != nil {
		return Unequal, err
	}
	right, err := b.live("MPI_Comm_compare")
	if err != nil {
		return Unequal, err
	}
	result := C.int(C.MPI_UNEQUAL)
	err = check("MPI_Comm_compare", C.MPI_Comm_compare(left.handle, right.handle, &result))
	return Comparison(result), err
}

// Abort ends the whole job at once with an exit status. It returns only when it fails.
func (c *Comm) Abort(status int) error {
	comm, err := c.live("MPI_Abort")
	if err != nil {
		return err
	}
	return check("MPI_Abort", C.MPI_Abort(comm.handle, cint(status)))
}

// Pointer is the communicator's handle for other C libraries in the process, which may not free it.
func (c *Comm) Pointer() unsafe.Pointer {
	if c == nil {
		return nil
	}
	return unsafe.Pointer(c.handle)
}
