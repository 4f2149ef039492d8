/* shadow_burst.c - a burst of messages to a receiver that is busy, in which
 * neither side waits for the other inside MPI.
 *
 *	mpirun -np 2 shadow_burst FILE send|isend|vector BYTES COUNT TAG [alone|together]
 *
 * The receiver stays outside MPI until the sender has come out of its last
 * call. The sender then stays outside MPI until the receiver has all messages
 * (`alone`), or calls MPI again (`together`). A call that waits for the other
 * side would wait for ever: the program then prints what waited, and ends by
 * MPI_Abort. Prints "done" else. Its first messages tell MPI of the peer.
 * With `vector` the sender has each second byte of its memory sent, by MPI_Send.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shadow_flag.h"

enum { SENT, RECEIVED };

static void meet(int rank)
{
	int word = 0;
	for (int i = 0; i < 40; i++) {
		if (rank == 0)
			MPI_Ssend(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void check_flag(int flag, const char *waits)
{
	if (await_flag(flag))
		return;
	printf("%s waits\n", waits);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 4);
}

static void send_burst(const char *call, int bytes, int count, int tag, int alone)
{
	unsigned char *data = malloc(2 * (size_t)bytes);
	MPI_Request *requests = malloc((size_t)count * sizeof *requests);
	MPI_Datatype each_second;
	MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &each_second);
	MPI_Type_commit(&each_second);
	for (int i = 0; i < count; i++) {
		memset(data, i & 255, 2 * (size_t)bytes);
		if (strcmp(call, "vector") == 0) {
			for (int at = 1; at < 2 * bytes; at += 2)
				data[at] = 254;
			MPI_Send(data, 1, each_second, 1, tag, MPI_COMM_WORLD);
		} else if (strcmp(call, "isend") == 0) {
			MPI_Isend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]);
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		} else {
			MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
		}
		memset(data, 255, 2 * (size_t)bytes); /* it is ours again */
	}
	MPI_Type_free(&each_second);
	raise_flag(SENT);
	if (alone)
		check_flag(RECEIVED, "receiver");
	free(requests);
	free(data);
}

static void receive_burst(int bytes, int count, int tag)
{
	unsigned char *data = malloc((size_t)bytes);
	check_flag(SENT, "sender");
	for (int i = 0; i < count; i++) {
		MPI_Status status;
		int got;
		MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		for (int at = 0; at < bytes; at++)
			if (data[at] != (i & 255) || got != bytes || status.MPI_TAG != tag || status.MPI_SOURCE != 0) {
				printf("message %d is wrong at %d\n", i, at);
				MPI_Abort(MPI_COMM_WORLD, 5);
			}
	}
	raise_flag(RECEIVED);
	free(data);
}

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	if (argc < 6)
		MPI_Abort(MPI_COMM_WORLD, 2);
	open_flags(argv[1]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	meet(rank);
	if (rank == 0)
		send_burst(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]),
		           argc > 6 && strcmp(argv[6], "alone") == 0);
	else
		receive_burst(atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("done\n");
	MPI_Finalize();
	return 0;
}
