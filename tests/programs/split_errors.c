/* split_errors.c - what is asked wrongly of jobs, or fails in them, on all ranks or on
 * one: each rank gets the same error, results stay as they were, and all go on.
 *
 *	mpirun -np 4 split_errors
 *
 * Prints, for each case, the result and its words; fails if they differ between
 * ranks, if the results were touched, or if tasks are begun after one has failed.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "results.h"

enum { UNITS = 40, PARTS = 100 };

static int rank;
static enum { WELL, RUN_FAILS, CUT_FAILS, CUT_BACKWARDS, CUT_SHORT, CUT_OTHERWISE } how;

static int run(void *context, int64_t first, int64_t count, void *results)
{
	(void)context;
	for (int64_t i = 0; i < count; i++)
		((int64_t *)results)[i] = first + i;
	return how == RUN_FAILS && first + count == UNITS ? 21 : 0; /* on whichever rank has the last unit */
}

static int cut(void *context, int64_t first, int64_t count, int parts, int64_t end[])
{
	(void)context;
	for (int i = 0; i < parts; i++)
		end[i] = first + count * (i + 1) / parts;
	if (how == CUT_BACKWARDS && rank == 1)
		end[0] = first - 1;
	if (how == CUT_SHORT && rank == 1)
		end[parts - 1] = first + count - 1;
	if (how == CUT_OTHERWISE && rank == 1)
		end[0] = first; /* its units are the next part's */
	return how == CUT_FAILS && rank == 1 ? 22 : 0;
}

static void create(const char *what, struct ek_job_options options)
{
	ek_job *job;
	show(what, ek_job_create(MPI_COMM_WORLD, &options, &job));
	show("free", ek_job_free(&job));
}

static void try(const char *what, ek_job *job, int64_t units, size_t bytes)
{
	int64_t results[UNITS], before[UNITS];
	memset(results, 77, sizeof results);
	memcpy(before, results, sizeof before);
	int result = ek_job_run(job, units, run, 0, results, bytes);
	show(what, result);
	for (int64_t i = 0; i < UNITS; i++)
		if (results[i] != (result == EK_OK ? i : before[i])) {
			fprintf(stderr, "%s: rank %d has another result of unit %lld\n", what, rank, (long long)i);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	how = WELL;
}

/* Rank 0's first unit fails when all others are in one of theirs. */
static int64_t run_here;

static int fail_first(void *failing, int64_t first, int64_t count, void *results)
{
	const struct timespec moment = {0, 5000000};
	int *failed = failing;
	(void)count, (void)results;
	run_here++;
	if (first == 0) {
		__atomic_store_n(failed, 1, __ATOMIC_RELEASE);
		return 23;
	}
	while (!__atomic_load_n(failed, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
	nanosleep(&moment, NULL);
	return 0;
}

static void rest_of_a_failed_job(void)
{
	struct ek_job_options options = {.threads = 1, .parts = PARTS};
	int64_t all;
	int ranks, unit, *failed;
	MPI_Aint bytes;
	MPI_Win window;
	char results[64 * PARTS];
	ek_job *job;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Win_allocate_shared(sizeof *failed, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &failed, &window);
	*failed = 0;
	MPI_Win_shared_query(window, 0, &bytes, &unit, &failed);
	MPI_Barrier(MPI_COMM_WORLD);
	must(ek_job_create(MPI_COMM_WORLD, &options, &job));
	show("the rest of a job that failed", ek_job_run(job, ranks * PARTS, fail_first, failed, results, 1));
	MPI_Allreduce(&run_here, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	if ((rank == 0 && run_here != 1) || all > ranks * PARTS / 2) {
		fprintf(stderr, "rank %d began %lld tasks of a job that had failed, all ranks %lld\n", rank, (long long)run_here, (long long)all);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	must(ek_job_free(&job));
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	const double table[] = {0, 1}, steeper[] = {0, 2}, flat[] = {0, 0};
	ek_job *job;

	int before = ek_job_create(MPI_COMM_WORLD, 0, &job);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	show("before MPI_Init", before);
	show("a null communicator", ek_job_create(MPI_COMM_NULL, 0, &job));
	create("threads below 0 on rank 1", (struct ek_job_options){.threads = rank == 1 ? -1 : 1});
	create("as many threads as there may be", (struct ek_job_options){.threads = 256});
	create("a thread too many", (struct ek_job_options){.threads = 257});
	create("as many parts as there may be", (struct ek_job_options){.parts = 1 << 16});
	create("a part too many", (struct ek_job_options){.parts = (1 << 16) + 1});
	create("parts below 0", (struct ek_job_options){.parts = -1});
	create("a negative slope", (struct ek_job_options){.slope = -1});
	create("a table without points", (struct ek_job_options){.table = table});
	create("other parts on rank 1", (struct ek_job_options){.parts = rank == 1 ? 4 : 8});
	create("another slope on rank 1", (struct ek_job_options){.slope = rank == 1 ? 2 : 1, .most = 4});
	create("another most on rank 1", (struct ek_job_options){.slope = 1, .most = rank == 1 ? 5 : 4});
	create("another table on rank 1", (struct ek_job_options){.table = rank == 1 ? steeper : table, .points = 1});
	create("no table on rank 1", (struct ek_job_options){.table = rank == 1 ? NULL : flat, .points = rank != 1});
	create("a cut on rank 1 alone", (struct ek_job_options){.cut = rank == 1 ? cut : 0});
	show("create", ek_job_create(MPI_COMM_WORLD, &(struct ek_job_options){.cut = cut}, &job));
	try("no units", job, 0, sizeof(int64_t));
	try("more units than can be gathered", job, INT64_C(2200000000), 1);
	try("units below 0 on rank 1", job, rank == 1 ? -UNITS : UNITS, sizeof(int64_t));
	try("more units on rank 1", job, rank == 1 ? UNITS + 1 : UNITS, sizeof(int64_t));
	try("results of no bytes", job, UNITS, 0);
	try("smaller results on rank 1", job, UNITS, rank == 1 ? sizeof(int32_t) : sizeof(int64_t));
	how = RUN_FAILS;
	try("a task that fails on some rank", job, UNITS, sizeof(int64_t));
	how = CUT_FAILS;
	try("a cut that fails on rank 1", job, UNITS, sizeof(int64_t));
	how = CUT_BACKWARDS;
	try("a cut before the task on rank 1", job, UNITS, sizeof(int64_t));
	how = CUT_SHORT;
	try("a cut that leaves units out on rank 1", job, UNITS, sizeof(int64_t));
	how = CUT_OTHERWISE;
	try("a cut elsewhere on rank 1", job, UNITS, sizeof(int64_t));
	try("all is well", job, UNITS, sizeof(int64_t));
	show("free", ek_job_free(&job));
	rest_of_a_failed_job();
	MPI_Finalize();
	return 0;
}
