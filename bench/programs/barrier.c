/* barrier.c - what a barrier takes.
 *
 *	mpirun -np 2 barrier [BARRIERS [self]]
 *
 * Prints nanoseconds per barrier, through the preloaded library and past it in
 * turns (turns.h): on MPI_COMM_WORLD, or with "self" on MPI_COMM_SELF, where MPI
 * itself has next to nothing to do.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "turns.h"

static MPI_Comm comm;

static void meet(const struct calls *mpi, long barriers)
{
	for (long i = 0; i < barriers; i++)
		mpi->barrier(comm);
}

int main(int argc, char **argv)
{
	long barriers = argc > 1 ? atol(argv[1]) : 300000;
	int self = argc > 2 && strcmp(argv[2], "self") == 0, rank;
	static double taken[BATCHES][WAYS];

	MPI_Init(&argc, &argv);
	comm = self ? MPI_COMM_SELF : MPI_COMM_WORLD;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	take_turns(meet, barriers, taken);
	if (rank == 0)
		print_turns(taken);
	MPI_Finalize();
	return 0;
}
