/* shadow_late.c - messages to a receiver that comes late, from a sender that
 * computes for long when it has sent them.
 *
 *	mpirun -np 2 shadow_late FILE send|isend BYTES COUNT THREADS
 *
 * Each of THREADS threads sends COUNT messages of BYTES (4 at least), by MPI_Send, or
 * by MPI_Isend and without waiting for them. The receiver stays outside MPI until
 * all have been sent, or, where MPI_Send waits for it, for a moment. The sender then
 * stays outside MPI until the receiver has all; if they wait in the sender it
 * prints "receiver waits" and ends by MPI_Abort. Prints "done" if all came, those of a
 * thread in order.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shadow_flag.h"

enum { SENT, RECEIVED, THREADS = 8, MEET = 40 };

static int bytes, count, begun;
static MPI_Request *requests;

static void *send_all(void *argument)
{
	int thread = (int)(long)argument;
	char *data = malloc((size_t)bytes * (size_t)(begun ? count : 1)), *message = data;
	for (int i = 0; i < count; i++) {
		memset(message, i & 255, (size_t)bytes);
		memcpy(message, &i, sizeof i);
		if (begun) {
			MPI_Isend(message, bytes, MPI_BYTE, 1, thread, MPI_COMM_WORLD, &requests[thread * count + i]);
			message += bytes;
		} else {
			MPI_Send(message, bytes, MPI_BYTE, 1, thread, MPI_COMM_WORLD);
		}
	}
	return begun ? data : (free(data), (void *)0);
}

static void send_from(int threads)
{
	pthread_t other[THREADS];
	void *kept[THREADS];
	requests = malloc((size_t)(threads * count) * sizeof *requests);
	for (long i = 1; i < threads; i++)
		pthread_create(&other[i], 0, send_all, (void *)i);
	kept[0] = send_all(0);
	for (int i = 1; i < threads; i++)
		pthread_join(other[i], &kept[i]);
	raise_flag(SENT);
	if (!await_flag(RECEIVED)) {
		printf("receiver waits\n");
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, 4);
	}
	if (begun)
		MPI_Waitall(threads * count, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < threads; i++)
		free(kept[i]);
	free(requests);
}

static void receive(int messages)
{
	const struct timespec moment = {0, 100000};
	int next[THREADS] = {0}, number;
	char *data = malloc((size_t)bytes);
	for (int i = 0; i < 3000 && !flags[SENT]; i++)
		nanosleep(&moment, 0);
	for (int i = 0; i < messages; i++) {
		MPI_Status status;
		MPI_Recv(data, bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		memcpy(&number, data, sizeof number);
		int right = number == next[status.MPI_TAG]++;
		for (int at = sizeof number; at < bytes; at++)
			right = right && data[at] == (char)number;
		if (!right) {
			printf("message %d of thread %d is wrong\n", number, status.MPI_TAG);
			fflush(stdout);
			MPI_Abort(MPI_COMM_WORLD, 5);
		}
	}
	raise_flag(RECEIVED);
	free(data);
}

int main(int argc, char **argv)
{
	int rank, provided, word = 0, threads = argc > 5 ? atoi(argv[5]) : 1;
	MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	open_flags(argv[1]);
	begun = strcmp(argv[2], "isend") == 0;
	bytes = atoi(argv[3]), count = atoi(argv[4]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < MEET; i++) /* the first messages tell MPI of the peer */
		rank ? MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
		     : MPI_Ssend(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	rank ? receive(threads * count) : send_from(threads);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("done\n");
	MPI_Finalize();
	return 0;
}
