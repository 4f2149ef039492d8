/* thick.c - calls that come thick and fast, of which a tool can time but a
 * sample.
 *
 *	mpirun -np 2 thick iprobe|self|copy|pingpong|mixed [CALLS]
 *
 * iprobe    MPI_Iprobe that finds nothing
 * self      MPI_Barrier on MPI_COMM_SELF
 * copy      MPI_Sendrecv of 64 KiB with itself, some microseconds, of which several are timed
 *           and several go by
 * pingpong  8 bytes to and fro, CALLS times, between two ranks
 * mixed     MPI_Allreduce over all ranks, before one in 1000 of which rank 0
 *           computes for 100 microseconds, so that the others wait
 *
 * Each rank prints "rank R calls N seconds S busy B", S being the time that its N
 * calls took in all. B leaves out what a rank spent without its core, or waiting
 * for one that had none: it is the processor time of the loop, or, of pingpong
 * and mixed, the time of rounds that took less than a millisecond.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds, busy;

static void begin(void)
{
	seconds = -now(CLOCK_MONOTONIC);
	busy = -now(CLOCK_THREAD_CPUTIME_ID);
}

static void end(void)
{
	seconds += now(CLOCK_MONOTONIC);
	busy += now(CLOCK_THREAD_CPUTIME_ID);
}

static void add_round(double took)
{
	seconds += took;
	busy += took < 1e-3 ? took : 0;
}

static long iprobe(long calls)
{
	int flag;

	begin();
	for (long i = 0; i < calls; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	end();
	return calls;
}

static long self(long calls)
{
	begin();
	for (long i = 0; i < calls; i++)
		MPI_Barrier(MPI_COMM_SELF);
	end();
	return calls;
}

static long copy(long calls)
{
	static char out[65536], in[sizeof out];

	begin();
	for (long i = 0; i < calls; i++)
		MPI_Sendrecv(out, sizeof out, MPI_BYTE, 0, 0, in, sizeof in, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	end();
	return calls;
}

static long pingpong(long calls)
{
	double word = 0;

	for (long i = 0; i < calls; i++) {
		double enter = now(CLOCK_MONOTONIC);

		if (rank == 0)
			MPI_Send(&word, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(&word, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
		add_round(now(CLOCK_MONOTONIC) - enter);
	}
	return 2 * calls;
}

static long mixed(long calls)
{
	int one = 1, sum;

	for (long i = 0; i < calls; i++) {
		double enter = now(CLOCK_MONOTONIC);

		while (rank == 0 && i % 1000 == 999 && now(CLOCK_MONOTONIC) < enter + 100e-6)
			;
		enter = now(CLOCK_MONOTONIC);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		add_round(now(CLOCK_MONOTONIC) - enter);
	}
	return calls;
}

static const struct {
	const char *name;
	long (*run)(long calls);
} ways[] = {{"iprobe", iprobe}, {"self", self}, {"copy", copy}, {"pingpong", pingpong}, {"mixed", mixed}};

int main(int argc, char **argv)
{
	long calls = argc > 2 ? atol(argv[2]) : 1000000;
	size_t way = 0;

	while (way < sizeof ways / sizeof ways[0] && (argc < 2 || strcmp(argv[1], ways[way].name) != 0))
		way++;
	if (way == sizeof ways / sizeof ways[0]) {
		fprintf(stderr, "usage: thick iprobe|self|copy|pingpong|mixed [CALLS]\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	calls = ways[way].run(calls);
	printf("rank %d calls %ld seconds %.9f busy %.9f\n", rank, calls, seconds, busy);
	MPI_Finalize();
	return 0;
}
