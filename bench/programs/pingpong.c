/* pingpong.c - what a blocking message of 8 bytes and its answer take.
 *
 *	mpirun -np 2 pingpong [ROUND_TRIPS]
 *
 * Prints nanoseconds per round trip.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "batches.h"

static int rank;

static void rally(long round_trips)
{
	long word = 0;

	for (long i = 0; i < round_trips; i++) {
		if (rank == 0)
			MPI_Send(&word, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(&word, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	long round_trips = argc > 1 ? atol(argv[1]) : 300000;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double seconds = time_of_one(rally, round_trips);
	if (rank == 0)
		printf("%.2f\n", 1e9 * seconds);
	MPI_Finalize();
	return 0;
}
