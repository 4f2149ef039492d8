/* split_level.c - a job during which somebody changes what there is to compute with.
 *
 *	mpirun -np 1 split_level UNITS MS [sleep | until FILE | hold FILE | between FILE]
 *
 * Each unit is a part of its own and takes MS milliseconds of a processor, or of sleep; until
 * a FILE is there: those that begin afterwards take none. To hold is to sleep, but rank 0's
 * unit of the time when it has looked, and rank 1's first one, end when the FILE is there. With
 * a FILE between there are two jobs of sleep, of which the second one, of which all that follows
 * is told, begins when it is there; "between" is said before.
 * Says "begun" when the job runs; with a
 * FILE also "looked" when rank 0 must have looked at what it has to compute with, and
 * the newest change that its report tells of. In the end rank 0 prints how many units ran at once at
 * most in the first sixteenth of those that it ran, and in the last, how many each
 * of two ranks ran, and the job's report.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOKED_MS = 600 }; /* in so long it has looked at least twice */

static ek_job *job;
static const char *until, *hold;
static int rank, units, sleeps, looked; /* how many units rank 0 runs until it must have looked */
static long ns;
static atomic_int begun, now;
static int at_once[1 << 16]; /* by the order in which they begin */

static long used(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The newest change that the report tells of; only the thread that adds to it may read it. */
static void tell_news(void)
{
	static char told[1024];
	const char *report = ek_job_report(job), *newest = report, *next;
	if (strcmp(report, told) == 0)
		return;
	snprintf(told, sizeof told, "%s", report);
	while ((next = strstr(newest + 1, "; ")) != NULL)
		newest = next;
	puts(newest);
	fflush(stdout);
}

static void take(int held)
{
	const struct timespec time = {0, ns};
	if (until && access(until, F_OK) == 0)
		return;
	while (held && access(hold, F_OK) != 0)
		nanosleep(&time, 0);
	if (sleeps)
		nanosleep(&time, 0);
	for (long end = used() + ns; !sleeps && used() < end;)
		;
}

static int run(void *context, int64_t first, int64_t count, void *results)
{
	(void)context;
	for (int64_t i = 0; i < count; i++) {
		int number = atomic_fetch_add(&begun, 1);
		at_once[number] = atomic_fetch_add(&now, 1) + 1;
		if (number == 0 && rank == 0) {
			puts("begun");
			fflush(stdout);
		}
		if (number == looked && rank == 0 && (until || hold)) {
			puts("looked");
			fflush(stdout);
		}
		if (rank == 0 && until)
			tell_news();
		take(hold && number == (rank == 0 ? looked : 0));
		atomic_fetch_sub(&now, 1);
		((int64_t *)results)[i] = first + i;
	}
	return 0;
}

static void wait_for(const char *file)
{
	const struct timespec time = {0, ns};
	if (rank == 0) {
		puts("between");
		fflush(stdout);
	}
	while (access(file, F_OK) != 0)
		nanosleep(&time, 0);
}

static int most(int from, int to)
{
	int found = 0;
	for (int i = from; i < to; i++)
		found = at_once[i] > found ? at_once[i] : found;
	return found;
}

int main(int argc, char **argv)
{
	units = argc > 1 ? atoi(argv[1]) : 100;
	ns = argc > 2 ? atol(argv[2]) * 1000000 : 10000000;
	looked = (int)(LOOKED_MS * 1000000l / ns);
	until = argc > 4 && strcmp(argv[3], "until") == 0 ? argv[4] : 0;
	hold = argc > 4 && strcmp(argv[3], "hold") == 0 ? argv[4] : 0;
	const char *between = argc > 4 && strcmp(argv[3], "between") == 0 ? argv[4] : 0;
	sleeps = hold || between || (argc > 3 && strcmp(argv[3], "sleep") == 0);
	const double table[] = {0, 1}; /* two tasks for each rank */
	struct ek_job_options options = {.parts = units, .table = table, .points = 1};
	int64_t *results = calloc((size_t)units, sizeof *results);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int result = ek_job_create(MPI_COMM_WORLD, &options, &job);
	if (result == EK_OK)
		result = ek_job_run(job, units, run, 0, results, sizeof *results);
	if (result == EK_OK && between) {
		wait_for(between);
		atomic_store(&begun, 0);
		result = ek_job_run(job, units, run, 0, results, sizeof *results);
	}
	for (int i = 0; i < units; i++)
		if (result != EK_OK || results[i] != i) {
			fprintf(stderr, "rank %d: unit %d: %s\n", rank, i, ek_error_text());
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	int mine = atomic_load(&begun), other = 0, ranks;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 1)
		MPI_Send(&mine, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	if (rank == 0 && ranks > 1)
		MPI_Recv(&other, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 0)
		printf("first %d last %d own %d other %d\n%s\n", most(0, mine / 16), most(mine - mine / 16, mine), mine, other,
		       ek_job_report(job));
	ek_job_free(&job);
	free(results);
	MPI_Finalize();
	return 0;
}
