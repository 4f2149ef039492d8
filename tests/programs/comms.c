/* comms.c - very many communicators, made and freed, to see that nothing grows.
 *
 *	mpirun -np 2 comms [COMMUNICATORS [AT_ONCE]]
 *
 * AT_ONCE of them, or one, live at the same time. Rank 0 prints its peak memory
 * after a tenth of them, and in the end.
 */
#include "memory.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long comms = argc > 1 ? atol(argv[1]) : 100000, early = 0;
	long at_once = argc > 2 ? atol(argv[2]) : 1;
	MPI_Comm *living = calloc((size_t)at_once, sizeof *living);
	int rank;

	if (living == NULL)
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < comms; i++) {
		MPI_Comm *comm = &living[i % at_once];

		if (i >= at_once)
			MPI_Comm_free(comm);
		MPI_Comm_dup(MPI_COMM_WORLD, comm);
		MPI_Barrier(*comm);
		if (i == comms / 10)
			early = peak_kib();
	}
	for (long i = 0; i < at_once && i < comms; i++)
		MPI_Comm_free(&living[i]);
	free(living);
	if (rank == 0)
		printf("communicators %ld\npeak_kib_at_tenth %ld\npeak_kib_at_end %ld\n", comms,
		       early, peak_kib());
	MPI_Finalize();
	return 0;
}
