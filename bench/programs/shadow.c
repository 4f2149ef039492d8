/* shadow.c - what small sends take: to a receiver that is busy, to one that is
 * not, and in a program.
 *
 *	mpirun -np 2 shadow burst BYTES COUNT [tcp] [limit]
 *	mpirun -np 2 shadow pingpong BYTES COUNT
 *	mpirun -np 2 shadow stream BYTES COUNT
 *	mpirun -np 2 shadow halo BYTES STEPS
 *
 * burst: nanoseconds per message of COUNT sent one after the other, while the
 * receiver computes for 50 ms; the median of 5 bursts, of more if they are short. With `limit` the program
 * itself copies each message into a buffer of its own and begins MPI_Isend,
 * which is all that must be done. With `tcp`, over TCP on one node.
 * pingpong: nanoseconds per round trip. stream: nanoseconds per message to a
 * receiver that does nothing but receive. Both are lines, a line for each batch:
 * through the preloaded library, and past it in turn (turns.h). halo: nanoseconds per step, in which
 * each rank sends its border, computes its inside for 1 ms and receives the
 * other's border; one of the two, in turn, comes 2 ms late to it. Messages above
 * the eager limit would make it deadlock under MPI alone.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "turns.h"

enum { BURSTS = 5, SHORT_BURSTS = 25, SHORT = 10 };

static char *data, *own;
static MPI_Request *requests;
static int rank, bytes, count;

static int later(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void compute(double seconds)
{
	double begin = MPI_Wtime();
	while (MPI_Wtime() - begin < seconds)
		;
}

static void rally(const struct calls *mpi, long round_trips)
{
	for (long i = 0; i < round_trips; i++) {
		if (rank == 0)
			mpi->send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		mpi->recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			mpi->send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void send_all(int limit)
{
	for (int i = 0; i < count; i++) {
		if (limit) {
			char *slot = own + (size_t)i * (size_t)bytes;
			memcpy(slot, data, (size_t)bytes);
			MPI_Isend(slot, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
		} else {
			MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		}
	}
}

static void receive_all(void)
{
	for (int i = 0; i < count; i++)
		MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double burst(int limit)
{
	double taken[SHORT_BURSTS];
	int bursts = count < SHORT ? SHORT_BURSTS : BURSTS;
	/* The first one is to make memory and connections, in all that is compared. */
	for (int i = -1; i < bursts; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		if (rank == 0) {
			send_all(limit);
			taken[i < 0 ? 0 : i] = MPI_Wtime() - begin;
			if (limit)
				MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
		} else {
			compute(50e-3);
			receive_all();
		}
	}
	qsort(taken, (size_t)bursts, sizeof *taken, later);
	return taken[bursts / 2] / count;
}

/* The answer tells when the last one has been taken. */
static void stream(const struct calls *mpi, long messages)
{
	for (long i = 0; i < messages; i++) {
		if (rank == 0)
			mpi->send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		else
			mpi->recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 0)
		mpi->recv(own, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		mpi->send(own, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

static double halo(void)
{
	double begin = MPI_Wtime();
	for (int step = 0; step < count; step++) {
		if (step % 2 == rank)
			compute(2e-3);
		MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
		compute(1e-3);
		MPI_Recv(own, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return (MPI_Wtime() - begin) / count;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	for (int i = 4; i < argc; i++)
		if (strcmp(argv[i], "tcp") == 0)
			setenv("OMPI_MCA_btl", "tcp,self", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bytes = argc > 3 ? atoi(argv[2]) : 0;
	count = argc > 3 ? atoi(argv[3]) : 0;
	if (bytes <= 0 || count <= 0)
		MPI_Abort(MPI_COMM_WORLD, 2);
	data = calloc(1, (size_t)bytes);
	own = calloc(strcmp(what, "burst") == 0 ? (size_t)count : 1, (size_t)bytes);
	requests = calloc((size_t)count, sizeof *requests);
	if (strcmp(what, "pingpong") == 0 || strcmp(what, "stream") == 0) {
		static double taken[BATCHES][WAYS];
		take_turns(strcmp(what, "stream") == 0 ? stream : rally, count, taken);
		if (rank == 0)
			print_turns(taken);
	} else {
		int limit = strcmp(argv[argc - 1], "limit") == 0;
		double seconds = strcmp(what, "burst") == 0 ? burst(limit) : halo();
		if (rank == 0)
			printf("%.2f\n", 1e9 * seconds);
	}
	MPI_Finalize();
	return 0;
}
