package mpi

// #include "calls.h"
import "C"

// Op is a predefined operation of a reduction or of a one-sided update.
type Op int

// The operations of the standard. Sum and Prod take every Number; Min and Max integers and floats;
// Land, Lor and Lxor bools and integers; Band, Bor and Bxor integers; MinLoc and MaxLoc Located.
// Replace and NoOp are for windows only: Accumulate becomes a Put, FetchAndOp a Get.
const (
	Sum Op = iota
	Prod
	Min
	Max
	Land
	Lor
	Lxor
	Band
	Bor
	Bxor
	MinLoc
	MaxLoc
	Replace
	NoOp
)

var ops = [...]C.MPI_Op{
	Sum: C.MPI_SUM, Prod: C.MPI_PROD, Min: C.MPI_MIN, Max: C.MPI_MAX,
	Land: C.MPI_LAND, Lor: C.MPI_LOR, Lxor: C.MPI_LXOR,
	Band: C.MPI_BAND, Bor: C.MPI_BOR, Bxor: C.MPI_BXOR,
	MinLoc: C.MPI_MINLOC, MaxLoc: C.MPI_MAXLOC,
	Replace: C.MPI_REPLACE, NoOp: C.MPI_NO_OP,
}

var nullOp C.MPI_Op = C.MPI_OP_NULL

// handle returns MPI's name for the operation; MPI refuses the null one with ErrOp.
func (op Op) handle() C.MPI_Op {
	if op < 0 || int(op) >= len(ops) {
		return nullOp
	}
	return ops[op]
}
