/* truth.c - a program of known, seeded imbalance that measures its own waiting,
 * for comparison with what a tool says of it.
 *
 *	mpirun -np 2 truth [-r] PATTERN SEED CYCLES OUT.json [MICROSECONDS]
 *
 * PATTERN
 *	balanced   every rank computes for equally long
 *	constant   always the same ranks are slow
 *	drift      who is slow changes once around over the run
 *	random     who is slow changes with every cycle
 *	p2p        as random, and each rank waits for its left neighbour only
 *	rooted     as random, with broadcasts from and reductions to changing roots
 * With -DSHARED all wait for all in barriers of evenkeel_shared.h, whole and split.
 * MICROSECONDS  mean time of computing per cycle, 2000 unless given
 * -r  read CLOCK_REALTIME, the one clock that hosts in time namespaces of one
 *     machine share, rather than CLOCK_MONOTONIC
 *
 * A rank computes for a chosen time by its clock, so the imbalance is as chosen
 * also where ranks share cores. It reads the clock around each call; in the
 * end all readings are gathered through PMPI, which tools do not see, and
 * rank 0 writes the truth after MPI_Finalize. See truth_write.c for what the
 * figures mean.
 */
#include "truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef SHARED
#include "evenkeel_shared.h"
static struct ek_upc *world;
#endif

static clockid_t clock_id = CLOCK_MONOTONIC;
static struct truth truth;
static struct reading *mine;

static double now(void)
{
	struct timespec t;

	clock_gettime(clock_id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		;
}

/* Uniform in [0, 1), the same for the same four numbers (SplitMix64). */
static double uniform(unsigned long a, unsigned long b, unsigned long c)
{
	unsigned long x = truth.seed * 0x9e3779b97f4a7c15ul + a * 0xbf58476d1ce4e5b9ul +
			  b * 0x94d049bb133111ebul + c + 1;

	for (int i = 0; i < 2; i++) {
		x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
		x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
		x ^= x >> 31;
	}
	return (double)(x >> 11) * 0x1p-53;
}

/* How long this rank computes in a cycle, relative to the mean. */
static double load(int rank, int cycle)
{
	double turn = (double)cycle / truth.cycles + (double)rank / truth.ranks;

	switch (truth.pattern) {
	case BALANCED:
		return 1;
	case CONSTANT:
		return 0.5 + uniform(1, (unsigned long)rank, 0);
	case DRIFT:
		return 1 + 0.5 * sin(2 * acos(-1) * (turn + uniform(2, 0, 0)));
	default:
		return 0.5 + uniform(3, (unsigned long)rank, (unsigned long)cycle);
	}
}

/* The kind of the i-th call, the same on all ranks. */
enum kind truth_kind(const struct truth *t, int call)
{
	if (call == t->calls - 1)
		return TO_ALL; /* all end together */
	if (t->pattern == P2P)
		return call % 2 == 0 ? SEND : RECEIVE;
	if (t->pattern == ROOTED)
		return call % 2 == 0 ? FROM_ROOT : TO_ROOT;
	return TO_ALL;
}

int truth_root(const struct truth *t, int call)
{
	return call / 2 % t->ranks;
}

static void make_call(int rank, int call)
{
	int left = (rank + truth.ranks - 1) % truth.ranks, right = (rank + 1) % truth.ranks;
	int root = truth_root(&truth, call), in = 0, out = 1;

	mine[call].enter = now();
	switch (truth_kind(&truth, call)) {
	case SEND:
		MPI_Send(&out, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
		break;
	case RECEIVE:
		MPI_Recv(&in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		break;
	case FROM_ROOT:
		MPI_Bcast(&in, 1, MPI_INT, root, MPI_COMM_WORLD);
		break;
	case TO_ROOT:
		MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
		break;
	case TO_ALL:
#ifdef SHARED
		if (call % 2 == 0) {
			ek_upc_barrier(world, 0);
		} else {
			ek_upc_notify(world, 0);
			ek_upc_wait(world);
		}
#else
		if (call % 2 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
		else
			MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
		break;
	}
	mine[call].leave = now();
}

static void run(int rank, double mean)
{
	for (int call = 0; call < truth.calls - 1; call++) {
		int cycle = truth.pattern == P2P ? call / 2 : call;

		if (truth_kind(&truth, call) != RECEIVE)
			compute(mean * load(rank, cycle));
		make_call(rank, call);
	}
	make_call(rank, truth.calls - 1);
}

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (memory == NULL) {
		perror("truth");
		exit(1);
	}
	return memory;
}

static void usage(void)
{
	fprintf(stderr, "usage: truth [-r] balanced|constant|drift|random|p2p|rooted "
			"SEED CYCLES OUT.json [MICROSECONDS]\n");
	exit(2);
}

static double parse(int argc, char **argv)
{
	static const char *const names[] = TRUTH_PATTERNS;
	int option;

	while ((option = getopt(argc, argv, "r")) != -1) {
		if (option != 'r')
			usage();
		clock_id = CLOCK_REALTIME;
	}
	if (argc - optind < 4)
		usage();
	while (strcmp(argv[optind], names[truth.pattern]) != 0)
		if (names[++truth.pattern] == NULL)
			usage();
	truth.seed = strtoul(argv[optind + 1], NULL, 10);
	truth.cycles = atoi(argv[optind + 2]);
	truth.path = argv[optind + 3];
	if (truth.cycles < 1)
		usage();
	/* Two calls in a cycle of sends and receives; in a rooted one, the cycles
	 * are alternately a broadcast and a reduction. One barrier at the end. */
	truth.calls = (truth.pattern == P2P ? 2 * truth.cycles : truth.cycles) + 1;
	return 1e-6 * (argc - optind > 4 ? atof(argv[optind + 4]) : 2000);
}

int main(int argc, char **argv)
{
	int rank;
	double begin, life, mean = parse(argc, argv);

	MPI_Init(&argc, &argv);
#ifdef SHARED
	MPI_Pcontrol(0); /* the truth is about what follows */
	ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 1 << 20, &world);
	MPI_Pcontrol(1);
#endif
	begin = now();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &truth.ranks);
	mine = allocate((size_t)truth.calls, sizeof *mine);
	truth.readings = allocate((size_t)truth.calls * (size_t)truth.ranks, sizeof *mine);
	truth.life = allocate((size_t)truth.ranks, sizeof(double));

	run(rank, mean);

	PMPI_Gather(mine, 2 * truth.calls, MPI_DOUBLE, truth.readings, 2 * truth.calls, MPI_DOUBLE,
		    0, MPI_COMM_WORLD);
	life = now() - begin;
#ifdef SHARED
	MPI_Pcontrol(0);
	ek_upc_end(world);
#endif
	PMPI_Gather(&life, 1, MPI_DOUBLE, truth.life, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0 && truth_write(&truth) != 0)
		return 1;
	return 0;
}
