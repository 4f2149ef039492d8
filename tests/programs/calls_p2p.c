/* Point-to-point calls. Messages go round a ring: to the next rank, from the
 * previous one, each carrying its sender's number. */
#include "calls.h"

#include <stdlib.h>

static int next(void)
{
	return (rank + 1) % size;
}

static int previous(void)
{
	return (rank + size - 1) % size;
}

static void receive_number(int tag)
{
	int got = -1;
	MPI_Status status;

	CALL(MPI_Recv, &got, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
	EXPECT(got == previous() && status.MPI_SOURCE == previous());
}

/* A ready send may only follow its receive: the receiver says so first. */
static void await_ready(void)
{
	CALL(MPI_Sendrecv, NULL, 0, MPI_INT, previous(), 1, NULL, 0, MPI_INT, next(), 1,
	     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void blocking_modes(void)
{
	int got = -1;
	MPI_Request request;

	CALL(MPI_Send, &rank, 1, MPI_INT, next(), 10, MPI_COMM_WORLD);
	receive_number(10);
	CALL(MPI_Bsend, &rank, 1, MPI_INT, next(), 11, MPI_COMM_WORLD);
	receive_number(11);

	CALL(MPI_Irecv, &got, 1, MPI_INT, previous(), 12, MPI_COMM_WORLD, &request);
	CALL(MPI_Ssend, &rank, 1, MPI_INT, next(), 12, MPI_COMM_WORLD);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(got == previous());

	CALL(MPI_Irecv, &got, 1, MPI_INT, previous(), 13, MPI_COMM_WORLD, &request);
	await_ready();
	CALL(MPI_Rsend, &rank, 1, MPI_INT, next(), 13, MPI_COMM_WORLD);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(got == previous());
}

static void nonblocking_modes(void)
{
	int got[4] = {-1, -1, -1, -1};
	MPI_Request requests[8];

	for (int i = 0; i < 4; i++)
		CALL(MPI_Irecv, &got[i], 1, MPI_INT, previous(), 20 + i, MPI_COMM_WORLD,
		     &requests[i]);
	await_ready();
	CALL(MPI_Isend, &rank, 1, MPI_INT, next(), 20, MPI_COMM_WORLD, &requests[4]);
	CALL(MPI_Ibsend, &rank, 1, MPI_INT, next(), 21, MPI_COMM_WORLD, &requests[5]);
	CALL(MPI_Issend, &rank, 1, MPI_INT, next(), 22, MPI_COMM_WORLD, &requests[6]);
	CALL(MPI_Irsend, &rank, 1, MPI_INT, next(), 23, MPI_COMM_WORLD, &requests[7]);
	CALL(MPI_Waitall, 8, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 4; i++)
		EXPECT(got[i] == previous());
}

static void exchanges(void)
{
	int got = -1, both = rank;

	CALL(MPI_Sendrecv, &rank, 1, MPI_INT, next(), 30, &got, 1, MPI_INT, previous(), 30,
	     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	EXPECT(got == previous());
	CALL(MPI_Sendrecv_replace, &both, 1, MPI_INT, next(), 31, previous(), 31,
	     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	EXPECT(both == previous());
	CALL(MPI_Send, &rank, 1, MPI_INT, MPI_PROC_NULL, 32, MPI_COMM_WORLD);
	CALL(MPI_Recv, &got, 1, MPI_INT, MPI_PROC_NULL, 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	EXPECT(got == previous());
}

void point_to_point(void)
{
	int length = 4096 + 4 * MPI_BSEND_OVERHEAD;
	void *buffer = malloc((size_t)length), *detached;

	EXPECT(buffer != NULL);
	MPI_Buffer_attach(buffer, length);
	blocking_modes();
	nonblocking_modes();
	exchanges();
	CALL(MPI_Buffer_detach, &detached, &length);
	EXPECT(detached == buffer);
	free(buffer);
}

enum { PARTS = 3 };

/* Begins PARTS sends and as many receives of the sender's number. */
static void begin(int *got, MPI_Request *requests)
{
	for (int i = 0; i < PARTS; i++) {
		got[i] = -1;
		CALL(MPI_Irecv, &got[i], 1, MPI_INT, previous(), 40 + i, MPI_COMM_WORLD,
		     &requests[i]);
	}
	for (int i = 0; i < PARTS; i++)
		CALL(MPI_Isend, &rank, 1, MPI_INT, next(), 40 + i, MPI_COMM_WORLD,
		     &requests[PARTS + i]);
}

static void check(const int *got)
{
	for (int i = 0; i < PARTS; i++)
		EXPECT(got[i] == previous());
}

static void wait_calls(int *got, MPI_Request *requests)
{
	int index, done, indices[2 * PARTS];
	MPI_Status status, statuses[2 * PARTS];

	begin(got, requests);
	for (int i = 0; i < 2 * PARTS; i++)
		CALL(MPI_Wait, &requests[i], &status);
	check(got);

	begin(got, requests);
	CALL(MPI_Waitall, 2 * PARTS, requests, statuses);
	check(got);

	begin(got, requests);
	for (int i = 0; i < 2 * PARTS; i++) {
		CALL(MPI_Waitany, 2 * PARTS, requests, &index, &status);
		EXPECT(index != MPI_UNDEFINED);
	}
	check(got);

	begin(got, requests);
	for (int left = 2 * PARTS; left > 0; left -= done)
		CALL(MPI_Waitsome, 2 * PARTS, requests, &done, indices, statuses);
	check(got);
}

static void test_calls(int *got, MPI_Request *requests)
{
	int flag, index, done, indices[2 * PARTS];
	MPI_Status status, statuses[2 * PARTS];

	begin(got, requests);
	for (int i = 0; i < 2 * PARTS; i++)
		do
			CALL(MPI_Test, &requests[i], &flag, &status);
		while (!flag);
	check(got);

	begin(got, requests);
	do
		CALL(MPI_Testall, 2 * PARTS, requests, &flag, statuses);
	while (!flag);
	check(got);

	begin(got, requests);
	for (int left = 2 * PARTS; left > 0; left -= flag)
		CALL(MPI_Testany, 2 * PARTS, requests, &index, &flag, &status);
	check(got);

	begin(got, requests);
	for (int left = 2 * PARTS; left > 0; left -= done)
		CALL(MPI_Testsome, 2 * PARTS, requests, &done, indices, statuses);
	check(got);
}

static void other_ends(int *got, MPI_Request *requests)
{
	int flag;
	MPI_Status status;

	begin(got, requests);
	do
		CALL(MPI_Request_get_status, requests[0], &flag, &status);
	while (!flag);
	CALL(MPI_Waitall, 2 * PARTS, requests, MPI_STATUSES_IGNORE);
	check(got);

	CALL(MPI_Isend, &rank, 1, MPI_INT, next(), 50, MPI_COMM_WORLD, &requests[0]);
	CALL(MPI_Request_free, &requests[0]);
	receive_number(50);

	CALL(MPI_Irecv, got, 1, MPI_INT, previous(), 51, MPI_COMM_WORLD, &requests[0]);
	CALL(MPI_Cancel, &requests[0]);
	CALL(MPI_Wait, &requests[0], &status);
	MPI_Test_cancelled(&status, &flag);
	EXPECT(flag);
}

void completion(void)
{
	int got[PARTS];
	MPI_Request requests[2 * PARTS];

	wait_calls(got, requests);
	test_calls(got, requests);
	other_ends(got, requests);
}

void probing(void)
{
	int flag, count, got = -1;
	MPI_Status status;
	MPI_Message message;
	MPI_Request request;

	for (int tag = 60; tag < 64; tag++)
		CALL(MPI_Send, &rank, 1, MPI_INT, next(), tag, MPI_COMM_WORLD);

	CALL(MPI_Probe, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	EXPECT(count == 1 && status.MPI_SOURCE == previous());
	receive_number(60);

	do
		CALL(MPI_Iprobe, previous(), 61, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	while (!flag);
	receive_number(61);

	CALL(MPI_Mprobe, previous(), 62, MPI_COMM_WORLD, &message, &status);
	CALL(MPI_Mrecv, &got, 1, MPI_INT, &message, &status);
	EXPECT(got == previous());

	do
		CALL(MPI_Improbe, previous(), 63, MPI_COMM_WORLD, &flag, &message, &status);
	while (!flag);
	got = -1;
	CALL(MPI_Imrecv, &got, 1, MPI_INT, &message, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(got == previous());
}

void persistent(void)
{
	enum { MODES = 4, ROUNDS = 3 };
	int got[MODES], length = 4096 + MPI_BSEND_OVERHEAD;
	MPI_Request receives[MODES], sends[MODES];
	void *buffer = malloc((size_t)length);

	EXPECT(buffer != NULL);
	MPI_Buffer_attach(buffer, length);
	for (int i = 0; i < MODES; i++)
		CALL(MPI_Recv_init, &got[i], 1, MPI_INT, previous(), 70 + i, MPI_COMM_WORLD,
		     &receives[i]);
	CALL(MPI_Send_init, &rank, 1, MPI_INT, next(), 70, MPI_COMM_WORLD, &sends[0]);
	CALL(MPI_Bsend_init, &rank, 1, MPI_INT, next(), 71, MPI_COMM_WORLD, &sends[1]);
	CALL(MPI_Ssend_init, &rank, 1, MPI_INT, next(), 72, MPI_COMM_WORLD, &sends[2]);
	CALL(MPI_Rsend_init, &rank, 1, MPI_INT, next(), 73, MPI_COMM_WORLD, &sends[3]);

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < MODES; i++)
			got[i] = -1;
		CALL(MPI_Startall, MODES, receives);
		await_ready();
		for (int i = 0; i < MODES; i++)
			CALL(MPI_Start, &sends[i]);
		CALL(MPI_Waitall, MODES, sends, MPI_STATUSES_IGNORE);
		CALL(MPI_Waitall, MODES, receives, MPI_STATUSES_IGNORE);
		for (int i = 0; i < MODES; i++)
			EXPECT(got[i] == previous());
	}

	for (int i = 0; i < MODES; i++) {
		CALL(MPI_Request_free, &receives[i]);
		CALL(MPI_Request_free, &sends[i]);
	}
	CALL(MPI_Buffer_detach, &buffer, &length);
	free(buffer);
}
