/* shadow_burst.c - a burst of messages to a receiver that is busy, in which
 * neither side waits for the other inside MPI.
 *
 *	mpirun -np 2 shadow_burst FILE send|isend|issend|vector|both|answered|learned BYTES COUNT TAG [alone|together]
 *
 * The receiver stays outside MPI until the sender has come out of its last
 * call. The sender then stays outside MPI until the receiver has all messages
 * (`alone`), or calls MPI again (`together`). A call that waits for the other
 * side would wait for ever: the program then prints what waited, and ends by
 * MPI_Abort. Prints "done" else. Its first messages tell MPI of the peer.
 * With `vector` the sender has each second byte of its memory sent, by MPI_Send;
 * with `both` a burst by MPI_Issend is followed by one of messages of 8 bytes by
 * MPI_Send. With `answered` the receiver takes 10 messages when all 10 are sent,
 * and answers before the next 10. With `learned` there is such a burst by MPI_Send before,
 * in which the sender may wait, as the receiver takes it after 50 ms, and afterwards
 * 4000 messages, each of which is answered.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shadow_flag.h"

enum { SENT, RECEIVED, FLAGS, BATCH = 10 };

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

static void send_burst(const char *call, int bytes, int count, int tag, int alone, int flags_before)
{
	int kept = strcmp(call, "issend") == 0; /* the messages' memory, until they are received */
	unsigned char *memory = malloc(2 * (size_t)bytes * (size_t)(kept ? count : 1)), *data = memory;
	MPI_Request *requests = malloc((size_t)count * sizeof *requests);
	MPI_Datatype each_second;
	MPI_Type_vector(bytes, 1, 2, MPI_BYTE, &each_second);
	MPI_Type_commit(&each_second);
	for (int i = 0; i < count; i++) {
		memset(data, i & 255, 2 * (size_t)bytes);
		if (kept) {
			MPI_Issend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]);
			data += 2 * bytes;
			continue;
		}
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
	raise_flag(flags_before + SENT);
	if (alone)
		check_flag(flags_before + RECEIVED, "receiver");
	if (kept)
		MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	free(requests);
	free(memory);
}

static void receive_burst(int bytes, int count, int tag, int flags_before)
{
	unsigned char *data = malloc((size_t)bytes);
	check_flag(flags_before + SENT, "sender");
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
	raise_flag(flags_before + RECEIVED);
	free(data);
}

/* Messages in batches that the receiver takes when all are sent. */
static void answer(int rank, int bytes, int count, int tag)
{
	char *data = calloc(1, (size_t)bytes);
	for (int batch = 0; batch < count / BATCH; batch++) {
		if (rank == 1)
			check_flag(batch, "sender");
		for (int i = 0; i < BATCH; i++)
			if (rank == 0)
				MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
			else
				MPI_Recv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 0) {
			raise_flag(batch);
			MPI_Recv(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Send(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
		}
	}
	free(data);
}

/* A burst that the receiver takes a while later, wherever the sender is. */
static void late_burst(int rank, int bytes, int count, int tag)
{
	char *data = calloc(1, (size_t)bytes);
	if (rank == 1)
		nanosleep(&(struct timespec){0, 50000000}, 0);
	for (int i = 0; i < count; i++)
		if (rank == 0)
			MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
		else
			MPI_Recv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	free(data);
}

/* Messages that never have to wait. */
static void rally(int rank, int tag)
{
	char word[8] = "";
	for (int i = 0; i < 4000; i++) {
		if (rank == 0)
			MPI_Send(word, sizeof word, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
		MPI_Recv(word, sizeof word, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(word, sizeof word, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
	}
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
	const char *call = argv[2];
	int bytes = atoi(argv[3]), count = atoi(argv[4]), tag = atoi(argv[5]);
	int alone = argc > 6 && strcmp(argv[6], "alone") == 0, both = strcmp(call, "both") == 0;
	int learned = strcmp(call, "learned") == 0;
	if (learned)
		late_burst(rank, bytes, count, tag);
	if (strcmp(call, "answered") == 0)
		answer(rank, bytes, count, tag);
	else if (rank == 0)
		send_burst(both ? "issend" : call, bytes, count, tag, alone, 0);
	else
		receive_burst(bytes, count, tag, 0);
	if (both && rank == 0)
		send_burst("send", 8, count, tag, alone, FLAGS);
	else if (both)
		receive_burst(8, count, tag, FLAGS);
	if (learned)
		rally(rank, tag);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("done\n");
	MPI_Finalize();
	return 0;
}
