/* split_last.c - a job whose last parts a slow rank leaves to a fast one, and how many tasks,
 * parts and threads jobs have that ask for it.
 *
 *	mpirun -np 2 split_last
 *
 * A unit takes rank 0 a thousand times as long as rank 1, which a first job tells. In the
 * second one rank 1 would have done everything before rank 0 had done one part. Prints how
 * many parts rank 0 ran in the first and in the second, and the tasks of the second; then in a third,
 * in which rank 1 goes on only when rank 0 has run one; then the tasks of a job by a table, and how many units ran at once on rank 0. Work is sleep, so that it matters
 * little what else the machine does.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "results.h"

enum { UNITS = 20 };

static int rank;

static int run(void *context, int64_t first, int64_t count, void *results)
{
	const struct timespec slow = {1, 0}, fast = {0, 1000000};
	(void)context;
	for (int64_t i = 0; i < count; i++) {
		nanosleep(rank == 0 ? &slow : &fast, NULL);
		((int64_t *)results)[i] = first + i;
	}
	return 0;
}

/* Rank 0 has run a part, in memory that both see. */
static atomic_int *helped;

static int wait_for_help(void *context, int64_t first, int64_t count, void *results)
{
	const struct timespec moment = {0, 1000000};
	(void)context, (void)first, (void)count, (void)results;
	if (rank == 0)
		atomic_store(helped, 1);
	for (int ms = 0; !atomic_load(helped); ms++) {
		if (ms == 60000) {
			fprintf(stderr, "rank 0 has left all to rank 1 for a minute\n");
			return 1;
		}
		nanosleep(&moment, NULL);
	}
	return 0;
}

/* The other rank is not what it was: this one helps all the same. */
static void otherwise(ek_job *job)
{
	MPI_Win window;
	MPI_Aint size;
	int unit;
	int64_t tasks, own, claimed;
	char results[UNITS];
	MPI_Win_allocate_shared(rank == 0 ? sizeof *helped : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &helped, &window);
	MPI_Win_shared_query(window, 0, &size, &unit, &helped);
	if (rank == 0)
		atomic_init(helped, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	must(ek_job_run(job, UNITS, wait_for_help, NULL, results, 1));
	must(ek_job_counts(job, &tasks, &own, &claimed));
	if (rank == 0)
		printf("third %lld\n", (long long)(own + claimed));
	MPI_Win_free(&window);
}

static atomic_int now, most;

static int count_at_once(void *context, int64_t first, int64_t count, void *results)
{
	const struct timespec moment = {0, 50000000};
	int here = atomic_fetch_add(&now, 1) + 1, before = atomic_load(&most);
	(void)context, (void)first, (void)count, (void)results;
	while (here > before && !atomic_compare_exchange_weak(&most, &before, here))
		;
	nanosleep(&moment, NULL);
	atomic_fetch_sub(&now, 1);
	return 0;
}

/* Two tasks more for each rank, by a table that has one point only. */
static void by_table(void)
{
	const double table[] = {0, 2};
	struct ek_job_options options = {.threads = 3, .parts = 4, .table = table, .points = 1};
	ek_job *job;
	int64_t tasks, own, claimed;
	char results[24];
	must(ek_job_create(MPI_COMM_WORLD, &options, &job));
	must(ek_job_run(job, sizeof results, count_at_once, NULL, results, 1));
	must(ek_job_counts(job, &tasks, &own, &claimed));
	if (rank == 0)
		printf("by table %lld\nat once %d\n%s\n", (long long)tasks, atomic_load(&most), ek_job_report(job));
	must(ek_job_free(&job));
}

int main(int argc, char **argv)
{
	struct ek_job_options options = {.threads = 1, .parts = UNITS};
	ek_job *job;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(ek_job_create(MPI_COMM_WORLD, &options, &job));
	for (int i = 0; i < 2; i++) {
		int64_t results[UNITS], tasks, own, claimed;
		must(ek_job_run(job, UNITS, run, NULL, results, sizeof *results));
		for (int k = 0; k < UNITS; k++)
			if (results[k] != k)
				MPI_Abort(MPI_COMM_WORLD, 1);
		must(ek_job_counts(job, &tasks, &own, &claimed));
		if (rank == 0)
			printf("%s %lld\n%s tasks %lld\n", i == 0 ? "first" : "second", (long long)(own + claimed), i == 0 ? "first" : "second",
			       (long long)tasks);
	}
	otherwise(job);
	must(ek_job_free(&job));
	by_table();
	MPI_Finalize();
	return 0;
}
