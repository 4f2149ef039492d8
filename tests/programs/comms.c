/* comms.c - very many communicators, made and freed, to see that nothing grows.
 *
 *	mpirun -np 2 comms [COMMUNICATORS]
 *
 * Rank 0 prints its peak memory after a tenth of them, and in the end.
 */
#include "memory.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long comms = argc > 1 ? atol(argv[1]) : 100000, early = 0;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < comms; i++) {
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Barrier(comm);
		MPI_Comm_free(&comm);
		if (i == comms / 10)
			early = peak_kib();
	}
	if (rank == 0)
		printf("communicators %ld\npeak_kib_at_tenth %ld\npeak_kib_at_end %ld\n", comms,
		       early, peak_kib());
	MPI_Finalize();
	return 0;
}
