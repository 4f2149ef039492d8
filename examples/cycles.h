/* cycles.h - what the balanced examples in C print about their cycles. */
#ifndef CYCLES_H
#define CYCLES_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Of each cycle, the seconds that this rank computed, and that the cycle took. */
struct cycles {
	double *computed, *took;
	double began;
	int count, room;
};

static inline struct cycles cycles_begin(int room)
{
	struct cycles c = {calloc((size_t)room, sizeof(double)), calloc((size_t)room, sizeof(double)), 0, 0, room};

	if (c.computed == NULL || c.took == NULL)
		abort();
	MPI_Barrier(MPI_COMM_WORLD);
	c.began = MPI_Wtime();
	return c;
}

/* A cycle has ended, of which so much was computation. */
static inline void cycles_add(struct cycles *c, double computed)
{
	double now = MPI_Wtime();

	c->computed[c->count] = computed;
	c->took[c->count++] = now - c->began;
	c->began = now;
}

/* Prints how long all cycles took, how long they would have if all ranks had computed
 * all the time, after how many of them that was met within 5 %, and the imbalance of
 * the second half of them: the longest over the mean time that ranks computed. */
static inline void cycles_end(struct cycles *c)
{
	double *mean = calloc((size_t)c->room, sizeof *mean), *longest = calloc((size_t)c->room, sizeof *longest);
	double time = 0, ideal = 0, late_longest = 0, late_mean = 0;
	int rank, ranks, settled = 0;

	if (mean == NULL || longest == NULL)
		abort();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Reduce(c->computed, mean, c->count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(c->computed, longest, c->count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	for (int i = 0; i < c->count; i++) {
		time += c->took[i];
		ideal += mean[i] / ranks;
		late_longest += i >= c->count / 2 ? longest[i] : 0;
		late_mean += i >= c->count / 2 ? mean[i] / ranks : 0;
	}
	while (settled < c->count && longest[settled] > 1.05 * mean[settled] / ranks)
		settled++;
	if (rank == 0)
		printf("time %.6f ideal %.6f settled %d imbalance %.6f\n", time, ideal, settled, late_longest / late_mean);
	free(mean);
	free(longest);
	free(c->computed);
	free(c->took);
}

#endif
