/* peers.c - calls in which a rank waits for others, and what a tool should know
 * of each: whom it waits for, how many bytes it moves, and which operation of
 * which communicator it is a part of.
 *
 *	mpirun -np 3 peers
 *
 * Rank 0 prints for each of its calls "CALL peers P bytes N", P being ranks of
 * the world, "any", or nothing, with " in COMM" behind it if the call is a part
 * of a collective operation, or " of COMM" if it waits for messages of another
 * communicator than MPI_COMM_WORLD.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int rank;
static char expected[8192];
static MPI_Request done; /* what Open MPI returns for what is complete at once */
static int words[64];

/* Notes what rank 0's last call should look like. */
__attribute__((format(printf, 1, 2))) static void expect(const char *format, ...)
{
	size_t length = strlen(expected);
	va_list rest;

	if (rank != 0)
		return;
	va_start(rest, format);
	vsnprintf(expected + length, sizeof expected - length, format, rest);
	va_end(rest);
}

static void send_to_zero(int from, int tag)
{
	if (rank == from)
		MPI_Send(words, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

/* Waits; a request that was complete at once concerns nobody. */
static void wait_for(MPI_Request request, const char *peers, const char *operation)
{
	int at_once = request == done;

	MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect("MPI_Wait peers %s bytes 0%s\n", at_once ? "" : peers, at_once ? "" : operation);
}

static void to_one_rank(void)
{
	MPI_Request request;

	if (rank == 0) {
		MPI_Isend(words, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &done);
		expect("MPI_Isend peers  bytes 4\n");
		MPI_Send(words, 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
		expect("MPI_Send peers 1 bytes 40\n");
		MPI_Send(words, 10, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
		expect("MPI_Send peers  bytes 40\n");
		MPI_Isend(words, 2, MPI_INT, 2, 2, MPI_COMM_WORLD, &request);
		expect("MPI_Isend peers 2 bytes 8\n");
		wait_for(request, "2", "");
	} else if (rank == 1) {
		MPI_Recv(words, 10, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(words, 2, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void from_one_rank(void)
{
	MPI_Status status;

	for (int tag = 10; tag < 15; tag++)
		send_to_zero(2, tag);
	if (rank != 0)
		return;
	MPI_Recv(words, 1, MPI_INT, 2, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect("MPI_Recv peers 2 bytes 0\n");
	MPI_Recv(words, 1, MPI_INT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &status);
	expect("MPI_Recv peers 2 bytes 0\n");
	MPI_Recv(words, 1, MPI_INT, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect("MPI_Recv peers 2 bytes 0\n");
	MPI_Probe(MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, &status);
	expect("MPI_Probe peers 2 bytes 0\n");
	MPI_Recv(words, 1, MPI_INT, 2, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect("MPI_Recv peers 2 bytes 0\n");
	MPI_Probe(MPI_ANY_SOURCE, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect("MPI_Probe peers 2 bytes 0\n");
	MPI_Recv(words, 1, MPI_INT, 2, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect("MPI_Recv peers 2 bytes 0\n");
}

static void to_one_and_from_another(void)
{
	MPI_Status status;

	send_to_zero(2, 20);
	if (rank == 0) {
		MPI_Sendrecv(words, 3, MPI_INT, 1, 21, words + 8, 1, MPI_INT, MPI_ANY_SOURCE, 20,
			     MPI_COMM_WORLD, &status);
		expect("MPI_Sendrecv peers 1 2 bytes 12\n");
	} else if (rank == 1) {
		MPI_Recv(words, 3, MPI_INT, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void receive_from_any(int tag, MPI_Comm comm, MPI_Request *request)
{
	MPI_Irecv(words + tag % 8, 1, MPI_INT, MPI_ANY_SOURCE, tag, comm, request);
	expect("MPI_Irecv peers any bytes 0\n");
}

/* Whoever sends is known when all have come. */
static void requests_from_any(void)
{
	MPI_Request request[10];
	MPI_Status status, statuses[10];

	for (int tag = 60; tag < 62; tag++)
		send_to_zero(2, tag);
	for (int tag = 62; tag < 65; tag++)
		send_to_zero(tag % 2 + 1, tag);
	for (int tag = 70; tag < 79; tag++)
		send_to_zero(1, tag);
	if (rank != 0)
		return;
	receive_from_any(60, MPI_COMM_WORLD, request);
	MPI_Wait(request, &status);
	expect("MPI_Wait peers 2 bytes 0\n");
	receive_from_any(61, MPI_COMM_WORLD, request);
	MPI_Wait(request, MPI_STATUS_IGNORE);
	expect("MPI_Wait peers 2 bytes 0\n");
	for (int i = 0; i < 3; i++)
		receive_from_any(62 + i, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall(3, request, statuses);
	expect("MPI_Waitall peers 1 2 bytes 0\n");
	for (int i = 0; i < 9; i++)
		receive_from_any(70 + i, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall(9, request, statuses); /* the ninth is not looked at */
	expect("MPI_Waitall peers any 1 bytes 0\n");
}

static void requests(void)
{
	MPI_Request request[3];
	int index;

	if (rank == 0) {
		MPI_Irecv(words, 1, MPI_INT, 1, 30, MPI_COMM_WORLD, &request[0]);
		expect("MPI_Irecv peers 1 bytes 0\n");
		MPI_Irecv(words + 1, 1, MPI_INT, 2, 31, MPI_COMM_WORLD, &request[1]);
		expect("MPI_Irecv peers 2 bytes 0\n");
		MPI_Irecv(words + 2, 1, MPI_INT, MPI_ANY_SOURCE, 32, MPI_COMM_WORLD, &request[2]);
		expect("MPI_Irecv peers any bytes 0\n");
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
		expect("MPI_Waitall peers 1 2 any bytes 0\n");
		for (int i = 0; i < 3; i++) {
			MPI_Irecv(words + i, 1, MPI_INT, i < 2 ? 1 : 2, 34 + i, MPI_COMM_WORLD, &request[i]);
			expect("MPI_Irecv peers %d bytes 0\n", i < 2 ? 1 : 2);
		}
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
		expect("MPI_Waitall peers 1 2 bytes 0\n");
		MPI_Irecv(words, 1, MPI_INT, 2, 33, MPI_COMM_WORLD, &request[0]);
		expect("MPI_Irecv peers 2 bytes 0\n");
		request[1] = MPI_REQUEST_NULL;
		MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
		expect("MPI_Waitany peers 2 bytes 0\n");
	}
	send_to_zero(1, 30);
	send_to_zero(2, 31);
	send_to_zero(1, 32);
	send_to_zero(1, 34);
	send_to_zero(1, 35);
	send_to_zero(2, 36);
	send_to_zero(2, 33);
}

/* The same ranks in the opposite order: 0 is the last of them. */
static void in_another_order(void)
{
	MPI_Request request;
	MPI_Comm backward;

	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backward);
	expect("MPI_Comm_split peers  bytes 0 in MPI_COMM_WORLD\n");
	MPI_Comm_set_name(backward, "backward");
	expect("MPI_Comm_set_name peers  bytes 0\n");
	if (rank == 0) {
		MPI_Send(words, 1, MPI_INT, 0, 40, backward);
		expect("MPI_Send peers 2 bytes 4\n");
		MPI_Irecv(words, 1, MPI_INT, 0, 41, backward, &request);
		expect("MPI_Irecv peers 2 bytes 0\n");
		wait_for(request, "2", " of backward");
		receive_from_any(42, backward, &request);
		wait_for(request, "2", " of backward");
	} else if (rank == 2) {
		MPI_Recv(words, 1, MPI_INT, 2, 40, backward, MPI_STATUS_IGNORE);
		MPI_Send(words, 1, MPI_INT, 2, 41, backward);
		MPI_Send(words, 1, MPI_INT, 2, 42, backward);
	}
	MPI_Bcast(words, 5, MPI_INT, 1, backward);
	expect("MPI_Bcast peers 1 bytes 20 in backward\n");
	MPI_Reduce(words, words + 8, 5, MPI_INT, MPI_SUM, 2, backward);
	expect("MPI_Reduce peers 0 bytes 20 in backward\n");
	MPI_Comm_free(&backward);
	expect("MPI_Comm_free peers  bytes 0 in backward\n");
}

static void collectives(void)
{
	MPI_Request request;

	if (rank == 0)
		MPI_Gather(MPI_IN_PLACE, 7, MPI_DATATYPE_NULL, words, 1, MPI_INT, 0, MPI_COMM_WORLD);
	else
		MPI_Gather(words, 1, MPI_INT, NULL, 7, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	expect("MPI_Gather peers 0 bytes 0 in MPI_COMM_WORLD\n");
	if (rank == 1)
		MPI_Scatter(words, 2, MPI_INT, words + 32, 2, MPI_INT, 1, MPI_COMM_WORLD);
	else
		MPI_Scatter(NULL, 7, MPI_DOUBLE, words + 32, 2, MPI_INT, 1, MPI_COMM_WORLD);
	expect("MPI_Scatter peers 1 bytes 8 in MPI_COMM_WORLD\n");
	MPI_Ibarrier(MPI_COMM_SELF, &request);
	expect("MPI_Ibarrier peers  bytes 0 in MPI_COMM_SELF\n");
	wait_for(request, "", " in MPI_COMM_SELF");
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	expect("MPI_Ibarrier peers  bytes 0 in MPI_COMM_WORLD\n");
	wait_for(request, "", " in MPI_COMM_WORLD");
}

/* Rank 0 on one side, the others on the other one. */
static void between_groups(void)
{
	MPI_Comm side, both;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &side);
	expect("MPI_Comm_split peers  bytes 0 in MPI_COMM_WORLD\n");
	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 50, &both);
	expect("MPI_Intercomm_create peers  bytes 0 in \n");
	if (rank == 0) {
		MPI_Send(words, 1, MPI_INT, 1, 51, both);
		expect("MPI_Send peers 2 bytes 4\n");
	} else if (rank == 2) {
		MPI_Recv(words, 1, MPI_INT, 0, 51, both, MPI_STATUS_IGNORE);
	}
	MPI_Comm_free(&both);
	expect("MPI_Comm_free peers  bytes 0 in \n");
	MPI_Comm_free(&side);
	expect("MPI_Comm_free peers  bytes 0 in \n");
}

static void window(void)
{
	MPI_Win win;

	MPI_Win_create(words, sizeof words, sizeof words[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	expect("MPI_Win_create peers  bytes 0 in MPI_COMM_WORLD\n");
	if (rank == 0) {
		int word = 1;

		MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
		expect("MPI_Win_lock peers 2 bytes 0\n");
		MPI_Put(&word, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
		expect("MPI_Put peers 2 bytes 4\n");
		MPI_Win_unlock(2, win);
		expect("MPI_Win_unlock peers 2 bytes 0\n");
	}
	MPI_Win_free(&win);
	expect("MPI_Win_free peers  bytes 0 in window on MPI_COMM_WORLD\n");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	to_one_rank();
	from_one_rank();
	to_one_and_from_another();
	requests_from_any();
	requests();
	in_another_order();
	collectives();
	between_groups();
	window();
	MPI_Finalize();
	fputs(expected, stdout);
	return 0;
}
