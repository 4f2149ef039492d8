/* idle.c - ranks that wait for each other, for the section `idle`.
 *
 *	mpirun -np N idle uneven HOW MS CYCLES FACTOR
 *	mpirun -np N idle ring BYTES CYCLES US
 *	mpirun -np 2 idle pingpong BYTES COUNT
 *
 * uneven: in each cycle every rank computes about MS milliseconds, the last one
 * FACTOR times as long, and then all meet: HOW is barrier, allreduce, recv (the
 * last one sends to all others) or wait (of nonblocking receives).
 * ring: in each cycle a rank computes about US microseconds and exchanges a
 * message with its neighbours.
 * pingpong: half a round trip.
 *
 * Prints the nanoseconds of a cycle, and the nanoseconds of processor time that
 * rank 0 used in one.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

static double clock_ns(clockid_t which)
{
	struct timespec now;
	clock_gettime(which, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The same work on every machine and in every run: a chain of multiplications,
 * of about a nanosecond each. */
static volatile double result;

static void compute(double us)
{
	double x = 1;
	for (long i = 0; i < (long)(us * 1000); i++)
		x = x * 1.0000000001;
	result = x;
}

static void meet(const char *how)
{
	int last = size - 1, word = 0, sum;
	MPI_Request request = MPI_REQUEST_NULL;
	if (strcmp(how, "barrier") == 0) {
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (strcmp(how, "allreduce") == 0) {
		MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	} else if (rank == last) {
		for (int i = 0; i < last; i++)
			MPI_Send(&word, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
	} else if (strcmp(how, "recv") == 0) {
		MPI_Recv(&word, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Irecv(&word, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

static void uneven(const char *how, double ms, int cycles, double factor)
{
	for (int i = 0; i < cycles; i++) {
		compute(ms * 1000 * (rank == size - 1 ? factor : 1));
		meet(how);
	}
}

static void ring(int bytes, int cycles, double us)
{
	char *out = calloc(1, (size_t)bytes + 1), *in = calloc(1, (size_t)bytes + 1);
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	for (int i = 0; i < cycles; i++) {
		compute(us);
		MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, in, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	free(out);
	free(in);
}

static void pingpong(int bytes, int count)
{
	char *buffer = calloc(1, (size_t)bytes + 1);
	for (int i = 0; i < count; i++) {
		if (rank == 0)
			MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
	free(buffer);
}

static int wrong(void)
{
	if (rank == 0)
		fputs("idle: uneven HOW MS CYCLES FACTOR | ring BYTES CYCLES US | pingpong BYTES COUNT\n", stderr);
	MPI_Finalize();
	return 2;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 4)
		return wrong();
	int cycles = atoi(argv[strcmp(argv[1], "uneven") == 0 ? 4 : 3]);
	MPI_Barrier(MPI_COMM_WORLD);
	double begun = clock_ns(CLOCK_MONOTONIC), used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (strcmp(argv[1], "uneven") == 0 && argc == 6)
		uneven(argv[2], atof(argv[3]), cycles, atof(argv[5]));
	else if (strcmp(argv[1], "ring") == 0 && argc == 5)
		ring(atoi(argv[2]), cycles, atof(argv[4]));
	else if (strcmp(argv[1], "pingpong") == 0)
		pingpong(atoi(argv[2]), cycles), cycles *= 2;
	else
		return wrong();
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.1f %.1f\n", (clock_ns(CLOCK_MONOTONIC) - begun) / cycles, used / cycles);
	MPI_Finalize();
	return 0;
}
