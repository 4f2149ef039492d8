/* barrier_threads.c - barriers of several threads at once, each on communicators
 * of its own, which come and go.
 *
 *	mpirun -np N barrier_threads FILE THREADS ROUNDS
 *
 * Rank 0 prints how many barriers there were on all ranks.
 */
#include "barrier_order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { EACH = 50 };

struct task {
	MPI_Comm parent;
	pthread_t thread;
	int number, rounds;
	long barriers;
};

static void *meet(void *argument)
{
	struct task *task = argument;
	int rank;

	MPI_Comm_rank(task->parent, &rank);
	for (int round = 1; round <= task->rounds; round++) {
		MPI_Comm comm;
		struct order order;

		if (round % 3 == 0)
			MPI_Comm_split(task->parent, rank % 2, rank, &comm);
		else
			MPI_Comm_dup(task->parent, &comm);
		order = order_of(comm, (uint64_t)round, task->number);
		for (int i = 0; i < EACH; i++)
			order_meet(&order);
		task->barriers += EACH;
		MPI_Comm_free(&comm);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, rank, threads = atoi(argv[2]), rounds = atoi(argv[3]);
	struct task *tasks = calloc((size_t)threads, sizeof *tasks);
	long barriers = 0, all;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (provided != MPI_THREAD_MULTIPLE || tasks == NULL)
		MPI_Abort(MPI_COMM_WORLD, 6);
	order_open(argv[1]);
	for (int t = 0; t < threads; t++) {
		tasks[t].number = t;
		tasks[t].rounds = rounds;
		MPI_Comm_dup(MPI_COMM_WORLD, &tasks[t].parent);
	}
	for (int t = 0; t < threads; t++)
		pthread_create(&tasks[t].thread, NULL, meet, &tasks[t]);
	for (int t = 0; t < threads; t++) {
		pthread_join(tasks[t].thread, NULL);
		MPI_Comm_free(&tasks[t].parent);
		barriers += tasks[t].barriers;
	}
	PMPI_Reduce(&barriers, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("barriers %ld\n", all);
	free(tasks);
	MPI_Finalize();
	return 0;
}
