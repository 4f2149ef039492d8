/* compete.c - two ranks on a core each; for a while another process keeps the core
 * of rank 1 busy.
 *
 *	mpirun -np 2 --bind-to core compete [even|balanced|told]
 *
 * Each cycle is 2000 items of equal work, some 20 ms of both ranks, which is longer than
 * a scheduler lets a process run; the competitor runs in cycles 30 to 59 of 90. Told,
 * the ranges are those that an oracle would choose, from the very cycle on: half a core
 * for rank 1, and then a whole one. Prints the seconds of the cycles 15 to 29, 45 to 59 and 75 to 89 together, and
 * how many cycles it took after the start and the end of the competitor until one was
 * as short as the median of its 15 within 10 %.
 */
#define _GNU_SOURCE
#include <evenkeel.h>
#include <mpi.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ITEMS = 2000, WORK = 12000, TOLD = ITEMS * 2 / 3, CYCLES = 90, START = 30, END = 60, STEADY = 15 };

extern char **environ;

static double took[CYCLES];
static volatile double sink;

static void compute(int64_t items)
{
	double x = 1;
	for (int64_t i = 0; i < items * WORK; i++)
		x = x * 0.999999 + 1e-7;
	sink = x;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of the STEADY cycles before `end`. */
static double median(int end)
{
	double sorted[STEADY];
	memcpy(sorted, took + end - STEADY, sizeof sorted);
	qsort(sorted, STEADY, sizeof *sorted, by_size);
	return sorted[STEADY / 2];
}

static int recovery(int from, int end)
{
	double steady = median(end);
	int cycle = from;
	while (cycle < end && took[cycle] > 1.1 * steady)
		cycle++;
	return cycle - from;
}

static double sum(int end)
{
	double seconds = 0;
	for (int i = end - STEADY; i < end; i++)
		seconds += took[i];
	return seconds;
}

static int set(ek_partition *partition, int64_t first_rank)
{
	int64_t bounds[] = {0, first_rank, ITEMS};
	int status = ek_partition_set(partition, bounds);
	return status == EK_OK ? ek_partition_move(partition) : status;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "balanced";
	int told = strcmp(way, "told") == 0;
	struct ek_partition_options options = {.policy = told || strcmp(way, "even") == 0 ? EK_POLICY_STATIC : EK_POLICY_AUTO};
	ek_partition *partition;
	int64_t first, count;
	int rank, changed = 0, status = EK_OK;
	pid_t competitor = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ek_partition_create(MPI_COMM_WORLD, ITEMS, &options, &partition) != EK_OK)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int cycle = 0; cycle < CYCLES && status == EK_OK; cycle++) {
		if (rank == 1 && cycle == START) {
			char *loop[] = {"sh", "-c", "while :; do :; done", 0};
			if (posix_spawn(&competitor, "/bin/sh", 0, 0, loop, environ) != 0)
				MPI_Abort(MPI_COMM_WORLD, 1);
		}
		if (rank == 1 && cycle == END) {
			kill(competitor, SIGKILL);
			waitpid(competitor, 0, 0);
		}
		double began = MPI_Wtime();
		if (told && (cycle == START || cycle == END))
			status = set(partition, cycle == START ? TOLD : ITEMS / 2);
		ek_partition_range(partition, &first, &count);
		compute(count);
		if (status == EK_OK)
			status = ek_partition_step(partition, &changed);
		if (changed)
			status = ek_partition_move(partition);
		took[cycle] = MPI_Wtime() - began;
	}
	if (status != EK_OK)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (rank == 0)
		printf("seconds %.6f %.6f %.6f recovery %d %d\n", sum(START), sum(END), sum(CYCLES), recovery(START, END),
		       recovery(END, CYCLES));
	ek_partition_free(&partition);
	MPI_Finalize();
	return 0;
}
