/* away.c - what commands of C programs to a task on another node take, over UDP,
 * beside the least that two tasks can: an echo between spinning sockets, by the
 * system calls of the fabric.
 *
 *	mpirun -np 2 --bind-to core away [ROUNDS]
 *
 * Prints nanoseconds, one line for each way: an echo, a PUT of 8 bytes that is
 * waited for, one of 64 that are started before a fence, and an active message
 * and its reply. The median of nine turns, in which the ways alternate.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { WAYS = 4, TURNS = 9, STARTED = 64, BYTES = 112 };

static int rank, own;
static struct sockaddr_in other;
static struct ek_gsm *job;
static struct ek_gsm_array array;
static uint64_t requests, answers;

static void check(int result)
{
	if (result == EK_OK)
		return;
	fprintf(stderr, "away: %s\n", ek_gsm_error());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void echoes(int rounds)
{
	char packet[BYTES] = "";
	struct iovec whole = {packet, BYTES};
	struct mmsghdr out = {.msg_hdr = {.msg_name = &other, .msg_namelen = sizeof other, .msg_iov = &whole, .msg_iovlen = 1}};
	struct mmsghdr in = {.msg_hdr = {.msg_iov = &whole, .msg_iovlen = 1}};
	for (int i = 0; i < rounds; i++) {
		if (rank == 0)
			sendmmsg(own, &out, 1, MSG_DONTWAIT);
		while (recvmmsg(own, &in, 1, MSG_DONTWAIT, 0) < 1)
			;
		if (rank == 1)
			sendmmsg(own, &out, 1, MSG_DONTWAIT);
	}
}

static struct ek_gsm_address there(uint64_t offset)
{
	struct ek_gsm_address address = ek_gsm_address_of(array.window, offset);
	address.task = (uint32_t)(1 - rank);
	return address;
}

/* Task 1 looks for messages meanwhile. */
static void serve(uint64_t until)
{
	while (__atomic_load_n((uint64_t *)array.local, __ATOMIC_RELAXED) != until)
		check(ek_gsm_am_poll(job));
}

static void puts_that_wait(int rounds)
{
	static uint64_t turn;
	turn++;
	for (int i = 0; i < rounds && rank == 0; i++)
		check(ek_gsm_put64(array.window, there(i + 1 < rounds ? 64 : 0), turn));
	if (rank == 1)
		serve(turn);
}

static void puts_that_are_started(int rounds)
{
	static uint64_t turn = (uint64_t)1 << 32, values[STARTED];
	turn++;
	for (int i = 0; i < rounds && rank == 0; i += STARTED) {
		for (int k = 0; k < STARTED; k++)
			check(ek_gsm_start_put(array.window, there(64 + 8 * (uint64_t)k), &values[k], 8, 0));
		check(ek_gsm_fence(array.window));
	}
	if (rank == 0)
		check(ek_gsm_put64(array.window, there(0), turn));
	else
		serve(turn);
}

static void request(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *unused)
{
	(void)unused;
	requests++;
	check(ek_gsm_am_reply(message, 2, data, bytes));
}

static void answer(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *unused)
{
	(void)message;
	(void)data;
	(void)bytes;
	(void)unused;
	answers++;
}

static void messages(int rounds)
{
	const char argument[40] = "";
	uint64_t *wanted = rank ? &requests : &answers, before = *wanted;
	for (int i = 1; i <= rounds; i++) {
		if (rank == 0)
			check(ek_gsm_am_request(job, 1, 1, argument, sizeof argument));
		while (*wanted < before + (uint64_t)i)
			check(ek_gsm_am_poll(job));
	}
}

static void connect_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	own = socket(AF_INET, SOCK_DGRAM, 0);
	if (own < 0 || bind(own, (struct sockaddr *)&address, length) != 0 ||
	    getsockname(own, (struct sockaddr *)&address, &length) != 0)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Sendrecv_replace(&address, sizeof address, MPI_BYTE, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	other = address;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct { const char *name; void (*run)(int); double took[TURNS]; } ways[WAYS] = {
		{"echo", echoes, {0}}, {"put", puts_that_wait, {0}}, {"started", puts_that_are_started, {0}}, {"message", messages, {0}}};
	int rounds = argc > 1 ? atoi(argv[1]) : 2048, ranks;
	setenv("EVENKEEL_GSM_APART", "1", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "away: two ranks, not %d\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	connect_sockets();
	check(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job));
	check(ek_gsm_all_allocate(job, 2 * 4096, 4096, EK_GSM_ALL, &array));
	check(ek_gsm_am_register(job, 1, request, 0));
	check(ek_gsm_am_register(job, 2, answer, 0));
	for (int turn = -1; turn < TURNS; turn++) /* the first one warms up */
		for (int w = 0; w < WAYS; w++) {
			MPI_Barrier(MPI_COMM_WORLD);
			double begin = MPI_Wtime();
			ways[w].run(rounds);
			if (turn >= 0)
				ways[w].took[turn] = (MPI_Wtime() - begin) * 1e9 / rounds;
		}
	for (int w = 0; w < WAYS && rank == 0; w++) {
		qsort(ways[w].took, TURNS, sizeof(double), ascending);
		printf("%s %.1f\n", ways[w].name, ways[w].took[TURNS / 2]);
	}
	check(ek_gsm_leave(job));
	MPI_Finalize();
	return 0;
}
