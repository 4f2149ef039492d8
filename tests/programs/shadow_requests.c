/* shadow_requests.c - what can be done with the request of an MPI_Isend whose
 * receiver is busy, and what becomes of messages at the end.
 *
 *	mpirun -np 2 shadow_requests FILE requests|disconnect|finalize|full|errors
 *	mpirun -np 3 shadow_requests FILE lost
 *
 * requests: each call that completes or looks at a request; the receiver is
 *           outside MPI all the while
 * disconnect: the sender leaves the communicator before the receiver takes
 *           anything from it
 * finalize: the sender is in MPI_Finalize before the receiver takes anything,
 *           and one message is never received
 * full:     more messages than there are slots
 * lost:     with a library that has MPI say that the first message to each other rank
 *           failed, after its call has returned
 * errors:   wrong arguments; prints the class of each error
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shadow_flag.h"

enum { SENT, INTS = 250, CALLS = 10 };

static int wrong;

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	printf("wrong: %s\n", what);
	wrong = 1;
}

static MPI_Request isend(int number)
{
	static int data[INTS];
	MPI_Request request = MPI_REQUEST_NULL;
	for (int i = 0; i < INTS; i++)
		data[i] = number;
	expect(MPI_Isend(data, INTS, MPI_INT, 1, number, MPI_COMM_WORLD, &request) == MPI_SUCCESS, "isend");
	expect(request != MPI_REQUEST_NULL, "a request");
	data[0] = -1; /* the message has left */
	return request;
}

static void use_requests(void)
{
	MPI_Request request, two[2];
	MPI_Status status;
	int done = 0, index = -1, indices[2];

	request = isend(0);
	expect(MPI_Wait(&request, &status) == MPI_SUCCESS && request == MPI_REQUEST_NULL, "wait");
	expect(MPI_Test_cancelled(&status, &done) == MPI_SUCCESS && !done, "status of wait");
	request = isend(1);
	expect(MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done && request == MPI_REQUEST_NULL, "test");
	request = isend(2), done = 0;
	expect(MPI_Request_get_status(request, &done, &status) == MPI_SUCCESS && done, "get_status");
	expect(request != MPI_REQUEST_NULL, "get_status keeps the request");
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	request = isend(3);
	expect(MPI_Request_free(&request) == MPI_SUCCESS && request == MPI_REQUEST_NULL, "request_free");
	request = isend(4);
	expect(MPI_Cancel(&request) == MPI_SUCCESS, "cancel");
	MPI_Wait(&request, &status);
	expect(MPI_Test_cancelled(&status, &done) == MPI_SUCCESS && !done, "it was too late to cancel");
	two[0] = MPI_REQUEST_NULL, two[1] = isend(5);
	expect(MPI_Waitany(2, two, &index, &status) == MPI_SUCCESS && index == 1 && two[1] == MPI_REQUEST_NULL, "waitany");
	two[0] = isend(6), two[1] = isend(7);
	expect(two[0] == two[1] || MPI_Wait(&two[0], MPI_STATUS_IGNORE) == MPI_SUCCESS, "two requests");
	expect(MPI_Waitall(2, two, MPI_STATUSES_IGNORE) == MPI_SUCCESS && two[0] == MPI_REQUEST_NULL, "waitall");
	two[0] = isend(8), two[1] = isend(9);
	expect(MPI_Testsome(2, two, &index, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS && index == 2, "testsome");
	raise_flag(SENT);
}

static void receive_numbers(int count)
{
	int data[INTS];
	expect(await_flag(SENT), "the sender waits for its receiver");
	for (int i = 0; i < count; i++) {
		MPI_Recv(data, INTS, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect(data[0] == i && data[INTS - 1] == i, "data");
	}
}

enum { PARTING = 3 };

static void send_and_disconnect(MPI_Comm comm)
{
	int data[INTS];
	for (int i = 0; i < PARTING; i++) {
		data[0] = data[INTS - 1] = i;
		MPI_Send(data, INTS, MPI_INT, 1, i, comm);
	}
	raise_flag(SENT);
	expect(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL, "disconnect");
}

static void receive_and_disconnect(MPI_Comm comm)
{
	int data[INTS];
	expect(await_flag(SENT), "the sender waits for its receiver");
	for (int i = PARTING; i-- > 0;) {
		MPI_Recv(data, INTS, MPI_INT, 0, i, comm, MPI_STATUS_IGNORE);
		expect(data[0] == i && data[INTS - 1] == i, "data");
	}
	MPI_Comm_disconnect(&comm);
}

static void disconnect(int rank)
{
	MPI_Comm comm;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	rank ? receive_and_disconnect(comm) : send_and_disconnect(comm);
	MPI_Barrier(MPI_COMM_WORLD);
}

enum { LAST_SMALL = 200, LAST_LARGE = 8, LARGE = 32768, UNWANTED = 7777 };

static void send_and_leave(void)
{
	char data[LARGE];
	for (int i = 0; i < LAST_SMALL; i++) {
		memset(data, i, 1024);
		MPI_Send(data, 1024, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	}
	for (int i = 0; i < LAST_LARGE; i++) {
		memset(data, i, LARGE);
		MPI_Send(data, LARGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
	}
	MPI_Send(data, LARGE, MPI_CHAR, 1, UNWANTED, MPI_COMM_WORLD);
	raise_flag(SENT);
}

static void receive_late(void)
{
	const struct timespec moment = {0, 100000000};
	char data[LARGE];
	expect(await_flag(SENT), "the sender waits for its receiver");
	nanosleep(&moment, 0); /* it is in MPI_Finalize */
	for (int i = 0; i < LAST_LARGE; i++) {
		MPI_Recv(data, LARGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect(data[0] == (char)i && data[LARGE - 1] == (char)i, "large data");
	}
	for (int i = 0; i < LAST_SMALL; i++) {
		MPI_Recv(data, 1024, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect(data[0] == (char)i && data[1023] == (char)i, "small data");
	}
}

enum { SLOTS = 4, MANY = 40 };

static void send_more_than_slots(void)
{
	char data[1024];
	for (int i = 0; i < MANY; i++) {
		memset(data, i, sizeof data);
		MPI_Send(data, sizeof data, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		if (i == SLOTS - 1)
			raise_flag(SENT);
	}
}

static void receive_all(void)
{
	char data[1024];
	expect(await_flag(SENT), "the sender waits before the slots are full");
	for (int i = 0; i < MANY; i++) {
		MPI_Recv(data, sizeof data, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect(data[0] == (char)i && data[1023] == (char)i, "data");
	}
}

static int told, told_code;

static void tell(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	told++;
	told_code = *code;
}

static int send_number(int to, int number)
{
	char data[1024] = {0};
	return MPI_Send(data, sizeof data, MPI_CHAR, to, number, MPI_COMM_WORLD);
}

static void receive_number(int number)
{
	char data[1024];
	MPI_Recv(data, sizeof data, MPI_CHAR, 0, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* There are two slots. A loss is found where the oldest message is looked at, and, of
 * messages to rank 2, where no slot is free. */
static void lose_messages(void)
{
	MPI_Errhandler handler;
	int *armed = dlsym(RTLD_DEFAULT, "loss_armed");
	MPI_Comm_create_errhandler(tell, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	*armed = 1;
	expect(send_number(1, 0) == MPI_SUCCESS && !told, "it was accepted");
	expect(send_number(1, 1) == MPI_ERR_OTHER, "the next call says it");
	expect(told == 1 && told_code == MPI_ERR_OTHER, "by the error handler");
	for (int i = 2; i < 5; i++)
		expect(send_number(1, i) == MPI_SUCCESS, "the others are sent");
	expect(told == 1, "it is said once");
	expect(send_number(2, 0) == MPI_SUCCESS && send_number(2, 1) == MPI_SUCCESS, "both slots are free again");
	*armed = 2;
	expect(send_number(2, 2) == MPI_ERR_OTHER && told == 2, "it is said to whom the message was");
	raise_flag(SENT);
	expect(send_number(2, 3) == MPI_SUCCESS && told == 2, "once");
	MPI_Errhandler_free(&handler);
}

static void receive_what_is_left(int rank)
{
	if (rank == 2)
		expect(await_flag(SENT), "a slot was lost with its message");
	for (int i = rank == 2 ? 3 : 2; i < (rank == 2 ? 4 : 5); i++)
		receive_number(i);
}

/* Open MPI tells a handler which call it was. */
static void tell_call(MPI_Comm *comm, int *code, ...)
{
	va_list more;
	(void)comm;
	va_start(more, code);
	printf("%s: %d\n", va_arg(more, char *), *code);
	va_end(more);
}

static void print_class(const char *what, int result)
{
	int class = -1;
	MPI_Error_class(result, &class);
	printf("%s %d\n", what, class);
}

static void make_errors(void)
{
	static char data[2000];
	MPI_Request request;
	MPI_Comm comm, freed;
	MPI_Datatype raw;
	MPI_Errhandler handler;
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_create_errhandler(tell_call, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	MPI_Type_contiguous(500, MPI_INT, &raw); /* not committed */
	freed = MPI_COMM_NULL;
#define BOTH(what, ...)                                                         \
	print_class("send " what, MPI_Send(__VA_ARGS__));                       \
	print_class("isend " what, MPI_Isend(__VA_ARGS__, &request))
	BOTH("to no rank", data, 1000, MPI_CHAR, 5, 1, MPI_COMM_WORLD);
	BOTH("to a negative rank", data, 1000, MPI_CHAR, -7, 1, MPI_COMM_WORLD);
	BOTH("with a negative tag", data, 1000, MPI_CHAR, 1, -3, MPI_COMM_WORLD);
	BOTH("with a negative count", data, -1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	BOTH("without type", data, 1000, MPI_DATATYPE_NULL, 1, 1, MPI_COMM_WORLD);
	BOTH("of a raw type", data, 1, raw, 1, 1, MPI_COMM_WORLD);
	BOTH("on no communicator", data, 1000, MPI_CHAR, 1, 1, freed);
	BOTH("beyond a communicator", data, 1000, MPI_CHAR, 1, 1, comm);
	BOTH("without buffer", 0, 1000, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	BOTH("to nobody", data, 1000, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	print_class("isend without request", MPI_Isend(data, 1000, MPI_CHAR, 1, 1, MPI_COMM_WORLD, NULL));
	MPI_Type_free(&raw);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	open_flags(argc > 2 ? argv[1] : "");
	if (strcmp(argv[2], "requests") == 0)
		rank ? receive_numbers(CALLS) : use_requests();
	else if (strcmp(argv[2], "disconnect") == 0)
		disconnect(rank);
	else if (strcmp(argv[2], "finalize") == 0)
		rank ? receive_late() : send_and_leave();
	else if (strcmp(argv[2], "full") == 0)
		rank ? receive_all() : send_more_than_slots();
	else if (strcmp(argv[2], "lost") == 0)
		rank ? receive_what_is_left(rank) : lose_messages();
	else if (rank == 0)
		make_errors();
	MPI_Finalize();
	if (!wrong)
		printf("done\n");
	return wrong;
}
