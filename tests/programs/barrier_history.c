/* barrier_history.c - whether all ranks hold the same arrival times of barriers,
 * and the true ones.
 *
 *	mpirun -np N barrier_history ROUNDS
 *	mpirun -np N barrier_history none
 *
 * In each round some ranks are late, all meet on the world, on its halves, on a
 * copy with the ranks in reverse, in pairs and with two thirds of them; then they
 * compare what the library knows of the last barriers on each. A rank arrived after it called MPI_Barrier and before
 * that returned, as the clock that all hosts of one machine share has it. With none,
 * they see that nothing is known.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* KEPT are known in any case, GONE is so far back that it is known in no case. */
enum { RANKS = 64, KEPT = 30, GONE = 32, SLACK_NS = 2000000, COMMS = 5 };

static bool (*arrivals)(MPI_Comm, uint64_t, uint64_t *);
static uint64_t (*passed)(MPI_Comm);
static int world_rank;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Read where nothing came between the two clocks: the closest of many. */
static int64_t realtime_after_monotonic(void)
{
	uint64_t closest = UINT64_MAX;
	int64_t after = 0;

	for (int i = 0; i < 100; i++) {
		uint64_t before = now(CLOCK_MONOTONIC);
		uint64_t real = now(CLOCK_REALTIME);
		uint64_t took = now(CLOCK_MONOTONIC) - before;
		if (took < closest) {
			closest = took;
			after = (int64_t)(real - before);
		}
	}
	return after;
}

static void expect(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "rank %d: %s\n", world_rank, what);
		MPI_Abort(MPI_COMM_WORLD, 7);
	}
}

struct met {
	MPI_Comm comm;
	int rank, size;
	uint64_t count;
	uint64_t enter[KEPT], leave[KEPT]; /* of the last ones, CLOCK_REALTIME */
};

static void meet(struct met *m, unsigned random)
{
	struct timespec late = {0, 100000 + (long)(random % 1000) * 1000};

	if (random >> 16 & 1)
		nanosleep(&late, NULL);
	m->enter[m->count % KEPT] = now(CLOCK_REALTIME);
	MPI_Barrier(m->comm);
	m->leave[m->count++ % KEPT] = now(CLOCK_REALTIME);
}

/* All members know the same of one barrier, and of each other the truth. */
static void compare(struct met *m, uint64_t number, int64_t shift)
{
	uint64_t mine[RANKS], all[RANKS * RANKS];

	expect(arrivals(m->comm, number, mine), "a barrier is not known");
	PMPI_Allgather(mine, m->size, MPI_UINT64_T, all, m->size, MPI_UINT64_T, m->comm);
	for (int i = 0; i < m->size; i++)
		expect(memcmp(mine, all + i * m->size, (size_t)m->size * sizeof *mine) == 0, "ranks know different arrivals");
	uint64_t own = mine[m->rank] + (uint64_t)shift;
	expect(own + SLACK_NS >= m->enter[number % KEPT], "it arrived before it came");
	expect(own <= m->leave[number % KEPT] + SLACK_NS, "it arrived after it left");
	for (int i = 0; i < m->size; i++)
		expect(mine[i] + (uint64_t)shift <= m->leave[number % KEPT] + SLACK_NS, "it left before another arrived");
}

/* Others may be in the next barrier when one is asked for. */
static void forget(struct met *m)
{
	const struct timespec moment = {0, 1000000};
	uint64_t times[RANKS];

	expect(!arrivals(m->comm, m->count, times), "a barrier of the future is known");
	if (m->count < GONE)
		return;
	PMPI_Barrier(m->comm);
	expect(!arrivals(m->comm, m->count - GONE, times), "an old barrier is known");
	PMPI_Barrier(m->comm);
	if (m->rank == 0) {
		nanosleep(&moment, NULL); /* the others are in the next one */
		expect(arrivals(m->comm, m->count - KEPT, times), "a barrier is forgotten");
	}
	meet(m, 0);
}

/* So that no communicator is the first one at its place. */
static void use_places(void)
{
	MPI_Comm comms[COMMS];

	for (int i = 0; i < COMMS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
		for (int k = 0; k < 7; k++)
			MPI_Barrier(comms[i]);
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
}

static void know_nothing(void)
{
	uint64_t times[RANKS];

	MPI_Barrier(MPI_COMM_WORLD);
	expect(passed(MPI_COMM_WORLD) == 0 && !arrivals(MPI_COMM_WORLD, 0, times), "something is known");
}

int main(int argc, char **argv)
{
	struct met met[COMMS] = {{.comm = MPI_COMM_WORLD}};
	int size, rounds = atoi(argv[1]);
	int64_t shift;
	long compared = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	*(void **)&arrivals = dlsym(RTLD_DEFAULT, "ek_barrier_arrivals");
	*(void **)&passed = dlsym(RTLD_DEFAULT, "ek_barrier_passed");
	expect(arrivals && passed, "the library has no history");
	rounds ? use_places() : know_nothing();
	MPI_Comm_split(MPI_COMM_WORLD, world_rank * 2 / size, 0, &met[1].comm);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &met[2].comm);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank / 2, 0, &met[3].comm);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3 == 0, 0, &met[4].comm);
	for (int i = 0; i < COMMS; i++) {
		MPI_Comm_rank(met[i].comm, &met[i].rank);
		MPI_Comm_size(met[i].comm, &met[i].size);
	}
	/* From node 0's CLOCK_MONOTONIC, on which times are, to what all hosts share. */
	shift = realtime_after_monotonic();
	PMPI_Bcast(&shift, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
	srand((unsigned)world_rank + 1);
	for (int round = 1; round <= rounds; round++) {
		for (int i = 0; i < COMMS; i++)
			for (int k = round % 5; k >= 0; k--)
				meet(&met[i], (unsigned)rand());
		for (int i = 0; i < COMMS; i++) {
			if (met[i].size == 1)
				continue;
			expect(passed(met[i].comm) == met[i].count, "barriers are not counted");
			for (uint64_t n = met[i].count > KEPT ? met[i].count - KEPT : 0; n < met[i].count; n++, compared++)
				compare(&met[i], n, shift);
		}
	}
	for (int i = 0; i < COMMS; i++)
		if (met[i].size > 1 && rounds)
			forget(&met[i]);
	for (int i = 1; i < COMMS; i++)
		MPI_Comm_free(&met[i].comm);
	if (world_rank == 0)
		printf("compared %ld\n", compared);
	MPI_Finalize();
	return 0;
}
