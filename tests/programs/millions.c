/* millions.c - very many barriers, to see that memory does not grow.
 *
 *	mpirun -np 2 millions [BARRIERS]
 *
 * Rank 0 prints its peak memory after a tenth of them, and in the end.
 */
#include "memory.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long barriers = argc > 1 ? atol(argv[1]) : 1000000, early = 0;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < barriers; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (i == barriers / 10)
			early = peak_kib();
	}
	if (rank == 0)
		printf("barriers %ld\npeak_kib_at_tenth %ld\npeak_kib_at_end %ld\n", barriers,
		       early, peak_kib());
	MPI_Finalize();
	return 0;
}
