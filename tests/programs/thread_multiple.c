/* thread_multiple.c - MPI calls from many plain threads at once, from threads
 * that come and go, and an exact count of them.
 *
 *	mpirun -np 2 thread_multiple [THREADS [ROUNDS [MESSAGES]]]
 *
 * In each of ROUNDS, THREADS new threads each copy a communicator of their own,
 * send MESSAGES messages round the ranks on the copy, with a barrier after
 * every tenth, and free it after so many further barriers as the thread's
 * number, from 1, says. None of them ends before all have come so far.
 */
#include "counted.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct task {
	MPI_Comm comm;
	pthread_t thread;
	int number;
};

static int rank, size, messages = 100;
static pthread_barrier_t all_sent;

static void *exchange(void *argument)
{
	struct task *task = argument;
	MPI_Comm comm;

	CALL(MPI_Comm_dup, task->comm, &comm);
	for (int i = 0; i < messages; i++) {
		int out = size * i + rank, in = -1;
		int left = (rank + size - 1) % size, right = (rank + 1) % size;
		MPI_Request request;

		CALL(MPI_Irecv, &in, 1, MPI_INT, left, i, comm, &request);
		CALL(MPI_Send, &out, 1, MPI_INT, right, i, comm);
		CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
		EXPECT(in == size * i + left);
		if (i % 10 == 9)
			CALL(MPI_Barrier, comm);
	}
	for (int i = 0; i < task->number; i++)
		CALL(MPI_Barrier, comm);
	CALL(MPI_Comm_free, &comm);
	pthread_barrier_wait(&all_sent);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided;
	int threads = argc > 1 ? atoi(argv[1]) : 4, rounds = argc > 2 ? atoi(argv[2]) : 20;
	struct task *tasks = calloc((size_t)threads, sizeof *tasks);

	if (argc > 3)
		messages = atoi(argv[3]);
	CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	EXPECT(provided == MPI_THREAD_MULTIPLE && tasks != NULL);
	EXPECT(pthread_barrier_init(&all_sent, NULL, (unsigned)threads) == 0);

	for (int t = 0; t < threads; t++) {
		CALL(MPI_Comm_dup, MPI_COMM_WORLD, &tasks[t].comm);
		tasks[t].number = t + 1;
	}
	for (int round = 0; round < rounds; round++) {
		for (int t = 0; t < threads; t++)
			EXPECT(pthread_create(&tasks[t].thread, NULL, exchange, &tasks[t]) == 0);
		for (int t = 0; t < threads; t++)
			EXPECT(pthread_join(tasks[t].thread, NULL) == 0);
	}
	for (int t = 0; t < threads; t++)
		CALL(MPI_Comm_free, &tasks[t].comm);
	free(tasks);
	counted_finalize();
	return 0;
}
