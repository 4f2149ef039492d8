/* meet.c - what a barrier takes, in time and in processor time.
 *
 *	mpirun -np N meet [BARRIERS]
 *
 * Prints a line for each batch: nanoseconds per barrier on MPI_COMM_WORLD and of
 * processor time on all ranks, through the preloaded library, then past it; batches
 * of both take turns (turns.h). Two ranks of one node also meet by nothing but
 * cache lines, in turn with these: each writes a word on a line of its own and waits
 * for the other's, which is the least that a barrier of two processes can take. The
 * line then ends with the nanoseconds of that.
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "turns.h"

enum { LINES = WAYS, KINDS, PAGE = 4096 };

static int rank;
static uint64_t *own, *other; /* the lines of both ranks, null where they share no node */

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double processor_time(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return seconds(used.ru_utime) + seconds(used.ru_stime);
}

static void share_lines(void)
{
	MPI_Comm node;
	int on_node, in_world;

	MPI_Comm_size(MPI_COMM_WORLD, &in_world);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &on_node);
	if (on_node == 2 && in_world == 2) {
		MPI_Win window;
		MPI_Aint size;
		int unit;

		MPI_Win_allocate_shared(2 * PAGE, 1, MPI_INFO_NULL, node, &own, &window);
		MPI_Win_shared_query(window, 1 - rank, &size, &unit, &other);
		*own = 0;
	}
	MPI_Barrier(node);
}

/* A processor that looks all the time is slower to see the other's store. */
static void look_less(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static void meet(int kind, long count)
{
	static uint64_t met;

	for (long i = 0; i < count; i++) {
		if (kind == LINES) {
			__atomic_store_n(own, ++met, __ATOMIC_RELEASE);
			while (__atomic_load_n(other, __ATOMIC_ACQUIRE) < met)
				look_less();
		} else {
			calls_of[kind].barrier(MPI_COMM_WORLD);
		}
	}
}

int main(int argc, char **argv)
{
	long barriers = argc > 1 ? atol(argv[1]) : 20000, n = barriers / BATCHES + 1;
	static double time[BATCHES][KINDS], used[BATCHES][KINDS], all[BATCHES][KINDS];
	int kinds;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	share_lines();
	kinds = other ? KINDS : WAYS;
	for (int kind = 0; kind < kinds; kind++)
		meet(kind, barriers / 10 + 1); /* to warm up */
	for (int i = 0; i < BATCHES; i++) {
		for (int turn = 0; turn < kinds; turn++) {
			int kind = (turn + i) % kinds;
			double begin = PMPI_Wtime(), processor = processor_time();
			meet(kind, n);
			used[i][kind] = 1e9 * (processor_time() - processor) / (double)n;
			time[i][kind] = 1e9 * (PMPI_Wtime() - begin) / (double)n;
		}
	}
	MPI_Reduce(used, all, BATCHES * KINDS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int i = 0; i < BATCHES && rank == 0; i++) {
		printf("%.2f %.2f %.2f %.2f", time[i][THROUGH], all[i][THROUGH], time[i][PAST], all[i][PAST]);
		if (other)
			printf(" %.2f", time[i][LINES]);
		printf("\n");
	}
	MPI_Finalize();
	return 0;
}
