/* partition_steps.c - cycles in which rank 0 needs four times as long for an item as
 * the others, which the ranges make up for.
 *
 *	mpirun -np 2 partition_steps HOW [CYCLES]
 *
 * HOW: step       the cycle ends in ek_partition_step
 *      barrier    it ends in an MPI_Barrier of the program's own,
 *      allreduce  in an MPI_Allreduce;
 *      both       so, after an MPI_Barrier at the cycle's begin,
 *      last       or with one between the work and the MPI_Allreduce
 *      inside     ranks wait for each other inside the cycle, too, so the program says
 *                 what is work
 *      halo       they wait in a halo exchange at the cycle's end
 *      sparse     35 barriers of the program's in each cycle
 *      static     the partition is to stay even
 *      pairwise   as the ending-address offset says, one pair in a step
 *      profiled   the program says what each item costs
 *      overlap    early ranks get ready in the step, by a function of the program's, too,
 *      limited    the same, where a rank may have 220 items at most,
 *      fails      which fails on one of them,
 *      overruns   or takes longer than declared
 *
 * The work is sleep, so there may be more ranks than cores. Prints how many items rank
 * 0 had on average, which one disturbed cycle says little about, and how many cycles
 * changed the ranges.
 */
#define _POSIX_C_SOURCE 200809L
#include <evenkeel.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "results.h"

enum { ITEMS = 400, LIMIT = 220, NS = 25000 };

static int rank;

static void work(int64_t count)
{
	int64_t ns = count * NS * (rank == 0 ? 4 : 1);
	struct timespec time = {ns / 1000000000, ns % 1000000000};
	nanosleep(&time, 0);
}

/* Of the function that gets ready. */
static int times_ready, fails, overruns;
static int64_t most_ready;

static int ready(void *context, int64_t first, int64_t count)
{
	struct timespec time = {0, overruns ? 5000000 : 1000};
	times_ready++;
	most_ready = count > most_ready ? count : most_ready;
	nanosleep(&time, 0);
	return context != &fails || first < 0 || first + count > ITEMS || fails ? 9 : 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "step";
	int failures = 0, cycles = argc > 2 ? atoi(argv[2]) : 8, changed, changes = 0;
	int64_t first, count, had = 0;
	struct ek_partition_options options = {0};
	ek_partition *partition;
	ek_array *array;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (strcmp(how, "inside") == 0)
		options.measure = EK_MEASURE_WORK;
	bool limited = strcmp(how, "limited") == 0;
	if (limited)
		options.maximum = LIMIT;
	if (strcmp(how, "static") == 0)
		options.policy = EK_POLICY_STATIC;
	if (strcmp(how, "pairwise") == 0)
		options.policy = EK_POLICY_PAIRWISE;
	if (strcmp(how, "profiled") == 0)
		options.policy = EK_POLICY_PROFILED;
	must(ek_partition_create(MPI_COMM_WORLD, ITEMS, &options, &partition));
	must(ek_array_create(partition, sizeof(int64_t), strcmp(how, "halo") == 0, &array));
	must(ek_partition_range(partition, &first, &count));
	for (int64_t i = 0; i < count; i++)
		((int64_t *)ek_array_data(array))[i] = first + i;
	fails = strcmp(how, "fails") == 0;
	overruns = strcmp(how, "overruns") == 0;
	bool overlaps = strcmp(how, "overlap") == 0 || limited || fails || overruns;
	if (overlaps)
		must(ek_partition_overlap(partition, ready, &fails, 1e-3));
	must(ek_partition_start(partition));
	for (int cycle = 0; cycle < cycles; cycle++) {
		int one = 1, all;
		must(ek_partition_range(partition, &first, &count));
		had += count;
		ek_work_begin(partition);
		if (strcmp(how, "sparse") == 0)
			for (int i = 0; i < 35; i++)
				MPI_Barrier(MPI_COMM_WORLD);
		if (strcmp(how, "both") == 0)
			MPI_Barrier(MPI_COMM_WORLD);
		work(count);
		ek_work_end(partition);
		if (strcmp(how, "profiled") == 0) {
			double *cost = malloc((size_t)(count + 1) * sizeof *cost);
			for (int64_t i = 0; i < count; i++)
				cost[i] = rank == 0 ? 4 : 1;
			must(ek_partition_costs(partition, cost));
			free(cost);
		}
		if (strcmp(how, "halo") == 0)
			must(ek_array_exchange(array, 0));
		if (strcmp(how, "inside") == 0)
			MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (strcmp(how, "barrier") == 0) {
			MPI_Barrier(MPI_COMM_WORLD);
			must(ek_partition_stepped(partition, &changed));
		} else if (strcmp(how, "allreduce") == 0 || strcmp(how, "both") == 0 || strcmp(how, "last") == 0) {
			if (strcmp(how, "last") == 0)
				MPI_Barrier(MPI_COMM_WORLD);
			MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			must(ek_partition_stepped(partition, &changed));
		} else {
			must(ek_partition_step(partition, &changed));
		}
		if (rank == 0 && argc > 3)
			fprintf(stderr, "%lld: %s\n", (long long)count, ek_partition_reason(partition));
		changes += changed;
		int moved = changed ? ek_partition_move(partition) : EK_OK;
		if (moved == EK_HOOK_FAILED && fails) {
			failures++;
			fails = 0;
		} else {
			must(moved);
		}
	}
	must(ek_partition_range(partition, &first, &count));
	for (int64_t i = 0; i < count; i++)
		if (((int64_t *)ek_array_data(array))[i] != first + i) {
			fprintf(stderr, "rank %d: item %lld is another one\n", rank, (long long)(first + i));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	if (rank == 0)
		printf("rank 0 had %lld of %d changes %d\n", (long long)had / cycles, ITEMS, changes);
	struct ek_overlapped overlapped;
	must(ek_partition_overlapped(partition, &overlapped));
	int64_t mine[] = {overlapped.times, overlapped.posted, overlapped.used, overlapped.given_up, times_ready}, all[5];
	MPI_Reduce(mine, all, 5, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && overlaps)
		printf("got ready %lld posted %lld used %lld given up %lld called %lld failures %d\n", (long long)all[0],
		       (long long)all[1], (long long)all[2], (long long)all[3], (long long)all[4], failures);
	MPI_Reduce(&most_ready, all, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0 && overlaps)
		printf("ready for at most %lld\n", (long long)all[0]);
	must(ek_partition_free(&partition));
	MPI_Finalize();
	return 0;
}
