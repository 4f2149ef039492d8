/* turns.h - what something short takes through the library that is preloaded and
 * past it, in turns: a batch of each right after the other, so that whatever the
 * machine is like at that moment, it is so for both. Open MPI's MPI_X is another
 * name of PMPI_X, so without a library both are the same. */
#ifndef TURNS_H
#define TURNS_H

#include <mpi.h>
#include <stdio.h>

enum { BATCHES = 100 };

/* The calls that are measured. */
struct calls {
	int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
	int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	int (*barrier)(MPI_Comm);
};

enum { THROUGH, PAST, WAYS };

static const struct calls calls_of[WAYS] = {
	{MPI_Send, MPI_Recv, MPI_Barrier},
	{PMPI_Send, PMPI_Recv, PMPI_Barrier},
};

/* Nanoseconds of one of `count` repetitions, in each batch and either way;
 * repeat(calls, n) makes n of them. The way that is first changes from batch to
 * batch. */
static inline void take_turns(void (*repeat)(const struct calls *mpi, long n), long count, double taken[BATCHES][WAYS])
{
	long n = count / BATCHES + 1;
	for (int way = 0; way < WAYS; way++)
		repeat(&calls_of[way], count / 10 + 1); /* to warm up */
	for (int i = 0; i < BATCHES; i++) {
		for (int turn = 0; turn < WAYS; turn++) {
			int way = (turn + i) % WAYS;
			double begin = PMPI_Wtime();
			repeat(&calls_of[way], n);
			taken[i][way] = 1e9 * (PMPI_Wtime() - begin) / (double)n;
		}
	}
}

/* A line for each batch: nanoseconds through the library, and past it. */
static inline void print_turns(double taken[BATCHES][WAYS])
{
	for (int i = 0; i < BATCHES; i++)
		printf("%.3f %.3f\n", taken[i][THROUGH], taken[i][PAST]);
}

#endif
