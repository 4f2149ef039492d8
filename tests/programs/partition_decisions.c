/* partition_decisions.c - which cycles a partition asks for a decision: it has a
 * balancer of its own, which counts, in place of the one that the runtime offers.
 *
 *	mpirun -np 2 partition_decisions
 *
 * First come cycles in which one rank works and the other hardly does: short ones, and
 * longer ones until the ranges are changed; then such in which both work for as long, with
 * ranges that are young at first; then short uneven ones again, with ranges that are old. Work is sleep, and ranks are taken to be even that differ
 * by much, so that it matters little what else the machine does. Prints how many decisions
 * there were in each, and ends with an error unless the decisions stand for all cycles, and
 * for all the time that these took at least.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "balancer.h"
#include "results.h"
#include "runtime.h"

enum { RANKS = 2, ITEMS = 10 };

/* ---- a balancer that counts ---------------------------------------------- */

static int64_t decisions, cycles_seen;
static double seconds_seen; /* of rank 0 */
static double longest; /* of its cycles since the last decision, seconds */
static int64_t hasty; /* decisions on less than OLD seconds together, of cycles that are all SHORT */
static const double OLD = 0.03, SHORT = 7e-3;
static int change_next;

static uint64_t open_one(const struct ek_balancer_start *start, char *error)
{
	(void)start, (void)error;
	return 1;
}

static void close_one(uint64_t controller)
{
	(void)controller;
}

static int step(uint64_t controller, const struct ek_balancer_cycle *cycle, struct ek_balancer_decision *decision)
{
	(void)controller;
	decision->changed = change_next;
	for (int r = 0; r <= RANKS && change_next; r++)
		decision->bounds[r] = r ? ITEMS : 0;
	change_next = 0;
	decisions++;
	cycles_seen += cycle->cycles;
	seconds_seen += cycle->useful[0];
	hasty += cycle->useful[0] < OLD && longest < SHORT;
	longest = 0;
	return 0;
}

static const void *service(const char *name)
{
	static const struct ek_balancer balancer = {
		.version = EK_BALANCER_VERSION, .size = sizeof balancer, .open = open_one, .close = close_one, .step = step};
	return strcmp(name, "balancer") == 0 ? &balancer : 0;
}

static int start(const struct ek_runtime_process *process)
{
	(void)process;
	return 0;
}

static int64_t image(void **bytes)
{
	(void)bytes;
	return -1;
}

static void release(void *bytes)
{
	(void)bytes;
}

static void publish(void *const *images, const int64_t *lengths, int count)
{
	(void)images, (void)lengths, (void)count;
}

static void nothing(void)
{
}

/* ---- the cycles ----------------------------------------------------------- */

static int rank;

static int total;
static double least; /* seconds */

static void cycles(ek_partition *p, const char *what, int count, long ns)
{
	int64_t before = decisions;
	total += count;
	least += (double)count * (double)ns * 1e-9;
	for (int i = 0; i < count; i++) {
		struct timespec time = {0, ns};
		int changed;
		double begun = MPI_Wtime();
		ek_work_begin(p);
		if (ns > 0)
			nanosleep(&time, 0);
		ek_work_end(p);
		double took = MPI_Wtime() - begun;
		longest = took > longest ? took : longest;
		must(ek_partition_step(p, &changed));
		if (changed)
			must(ek_partition_move(p));
	}
	if (rank == 0)
		printf("%s %lld ", what, (long long)(decisions - before));
}

int main(int argc, char **argv)
{
	static const long SHORT_NS = 200000, LONG_NS = 10000000;
	const struct ek_runtime runtime = {EK_RUNTIME_VERSION, sizeof runtime, start, nothing, image, release, publish, nothing, service};
	struct ek_partition_options options = {.measure = EK_MEASURE_WORK, .threshold = 0.9};
	ek_partition *partition;

	ek_register_runtime(&runtime);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(ek_partition_create(MPI_COMM_WORLD, ITEMS, &options, &partition));
	long uneven_ns = rank == 0 ? LONG_NS : 0;
	cycles(partition, "short", 100, rank == 0 ? SHORT_NS : 0);
	cycles(partition, "uneven", 12, uneven_ns);
	change_next = 1;
	cycles(partition, "changing", 1, uneven_ns);
	cycles(partition, "young", 6, LONG_NS);
	cycles(partition, "even", 42, LONG_NS);
	cycles(partition, "last", 3, uneven_ns);
	hasty = 0;
	cycles(partition, "old", 200, rank == 0 ? SHORT_NS * 5 : 0);
	if (rank == 0)
		printf("hasty %lld ", (long long)hasty);
	cycles(partition, "over", 1, rank == 0 ? 4 * LONG_NS : 0);
	must(ek_partition_free(&partition));
	if (cycles_seen != total || (rank == 0 && seconds_seen < least)) {
		fprintf(stderr, "the decisions stand for %lld cycles of %d, and for %g s of at least %g s\n", (long long)cycles_seen,
		        total, seconds_seen, least);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0)
		printf("\n");
	MPI_Finalize();
	return 0;
}
