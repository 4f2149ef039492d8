/* deep.c - MPI calls from a position-independent program, from a library of
 * its own, and from functions inlined into others. Prints where each call
 * stands, so that a test can compare it with what a tool made of an address.
 *
 *	mpirun -np 2 deep
 */
#include "deep.h"

static inline __attribute__((always_inline)) int inlined(MPI_Comm comm)
{
	int error = SITE(MPI_Barrier, comm);

	return error == MPI_SUCCESS ? 0 : 1;
}

static inline __attribute__((always_inline)) int inlined_twice(MPI_Comm comm)
{
	return inlined(comm) + 2;
}

static __attribute__((noinline)) int outer(MPI_Comm comm)
{
	return inlined_twice(comm) + 1;
}

static __attribute__((noinline)) int recursive(MPI_Comm comm, int depth)
{
	int sum = 0, one = 1;

	if (depth > 0)
		return recursive(comm, depth - 1) + 1;
	SITE(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, failures = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 10; i++) {
		SITE(MPI_Barrier, MPI_COMM_WORLD);
		failures += outer(MPI_COMM_WORLD) - 3;
		failures += deep_in_library(MPI_COMM_WORLD);
	}
	if (recursive(MPI_COMM_WORLD, 20) < 21)
		failures++;
	if (rank == 0)
		deep_print();
	MPI_Finalize();
	return failures != 0;
}
