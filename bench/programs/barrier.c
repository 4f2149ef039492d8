/* barrier.c - what a barrier takes.
 *
 *	mpirun -np 2 barrier [BARRIERS [self]]
 *
 * Prints nanoseconds per barrier: on MPI_COMM_WORLD, or with "self" on
 * MPI_COMM_SELF, where MPI itself has next to nothing to do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batches.h"

static MPI_Comm comm;

static void meet(long barriers)
{
	for (long i = 0; i < barriers; i++)
		MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
	long barriers = argc > 1 ? atol(argv[1]) : 300000;
	int self = argc > 2 && strcmp(argv[2], "self") == 0, rank;

	MPI_Init(&argc, &argv);
	comm = self ? MPI_COMM_SELF : MPI_COMM_WORLD;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double seconds = time_of_one(meet, barriers);
	if (rank == 0)
		printf("%.2f\n", 1e9 * seconds);
	MPI_Finalize();
	return 0;
}
