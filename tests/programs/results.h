/* results.h - what becomes of the results of evenkeel.h's functions in tests. */
#ifndef RESULTS_H
#define RESULTS_H

#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Ends the program if a call went wrong. */
static inline void must(int result)
{
	int rank;

	if (result == EK_OK)
		return;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "rank %d: %s (%s)\n", rank, ek_strerror(result), ek_error_text());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 0 prints the result of a call and its words; ends the program if they differ between ranks. Collective. */
static inline void show(const char *what, int result)
{
	char mine[512] = "", first[512];
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	snprintf(mine, sizeof mine, "%d %s", result, result == EK_OK ? "" : ek_error_text());
	memcpy(first, mine, sizeof first);
	MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (strcmp(first, mine) != 0) {
		fprintf(stderr, "%s: rank %d has '%s', rank 0 '%s'\n", what, rank, mine, first);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0)
		printf("%s: %s\n", what, mine);
}

#endif
