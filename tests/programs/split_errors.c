/* split_errors.c - what is asked wrongly of jobs, or fails in them, on all ranks or on
 * one: each rank gets the same error, results stay as they were, and all go on.
 *
 *	mpirun -np 4 split_errors
 *
 * Prints, for each case, the result and its words; fails if they differ between
 * ranks, or if the results were touched.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "results.h"

enum { UNITS = 40 };

static int rank;
static enum { WELL, RUN_FAILS, CUT_FAILS, CUT_BACKWARDS, CUT_SHORT } how;

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

int main(int argc, char **argv)
{
	const double table[] = {0, 1};
	ek_job *job;

	int before = ek_job_create(MPI_COMM_WORLD, 0, &job);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	show("before MPI_Init", before);
	show("a null communicator", ek_job_create(MPI_COMM_NULL, 0, &job));
	create("threads below 0 on rank 1", (struct ek_job_options){.threads = rank == 1 ? -1 : 1});
	create("parts below 0", (struct ek_job_options){.parts = -1});
	create("a negative slope", (struct ek_job_options){.slope = -1});
	create("a table without points", (struct ek_job_options){.table = table});
	create("other parts on rank 1", (struct ek_job_options){.parts = rank == 1 ? 4 : 8});
	create("a cut on rank 1 alone", (struct ek_job_options){.cut = rank == 1 ? cut : 0});
	show("create", ek_job_create(MPI_COMM_WORLD, &(struct ek_job_options){.cut = cut}, &job));
	try("no units", job, 0, sizeof(int64_t));
	try("units below 0 on rank 1", job, rank == 1 ? -UNITS : UNITS, sizeof(int64_t));
	try("more units on rank 1", job, rank == 1 ? UNITS + 1 : UNITS, sizeof(int64_t));
	try("results of no bytes", job, UNITS, 0);
	how = RUN_FAILS;
	try("a task that fails on some rank", job, UNITS, sizeof(int64_t));
	how = CUT_FAILS;
	try("a cut that fails on rank 1", job, UNITS, sizeof(int64_t));
	how = CUT_BACKWARDS;
	try("a cut before the task on rank 1", job, UNITS, sizeof(int64_t));
	how = CUT_SHORT;
	try("a cut that leaves units out on rank 1", job, UNITS, sizeof(int64_t));
	try("all is well", job, UNITS, sizeof(int64_t));
	show("free", ek_job_free(&job));
	MPI_Finalize();
	return 0;
}
