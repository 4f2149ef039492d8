/* pingpong.c - what a blocking message of 8 bytes and its answer take.
 *
 *	mpirun -np 2 pingpong [ROUND_TRIPS]
 *
 * Prints nanoseconds per round trip, through the preloaded library and past it in
 * turns (turns.h).
 */
#include <mpi.h>
#include <stdlib.h>

#include "turns.h"

static int rank;

static void rally(const struct calls *mpi, long round_trips)
{
	long word = 0;

	for (long i = 0; i < round_trips; i++) {
		if (rank == 0)
			mpi->send(&word, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
		mpi->recv(&word, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			mpi->send(&word, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	long round_trips = argc > 1 ? atol(argv[1]) : 300000;
	static double taken[BATCHES][WAYS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	take_turns(rally, round_trips, taken);
	if (rank == 0)
		print_turns(taken);
	MPI_Finalize();
	return 0;
}
