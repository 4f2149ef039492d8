/* batches.h - the time of something short: the median over batches, so that what
 * interrupts a few of them does not count. */
#ifndef BATCHES_H
#define BATCHES_H

#include <mpi.h>
#include <stdlib.h>

enum { BATCHES = 100 };

static int batch_order(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Seconds of one of `count` repetitions; repeat(n) makes n of them. */
static double time_of_one(void (*repeat)(long n), long count)
{
	double taken[BATCHES];
	long n = count / BATCHES + 1;
	repeat(count / 10 + 1); /* to warm up */
	for (int i = 0; i < BATCHES; i++) {
		double begin = MPI_Wtime();
		repeat(n);
		taken[i] = (MPI_Wtime() - begin) / (double)n;
	}
	qsort(taken, BATCHES, sizeof *taken, batch_order);
	return taken[BATCHES / 2];
}

#endif
