/* message.c - what an active message on a node takes, there and back, in C
 * (ek_gsm_am_request, a reply), beside the least that it can (a line of 56 bytes
 * and a word each way) and a message of MPI.
 *
 *	mpirun -np 2 --bind-to core message [ROUNDS]
 *
 * Prints nanoseconds per round trip, one line for each way: the median of nine
 * turns, in which the ways alternate.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAYS = 3, TURNS = 9, ARGUMENT = 48 };

static int rank;
static MPI_Comm world = MPI_COMM_WORLD;

/* ---- a line each way ---- */

struct line {
	uint64_t payload[7];
	uint64_t number;
} __attribute__((aligned(64)));

static struct line *lines; /* one of each task */
static uint64_t sum;       /* of what was received, so that it is read */

static void send_line(uint64_t number)
{
	for (int i = 0; i < 7; i++)
		lines[rank].payload[i] = number + (uint64_t)i;
	__atomic_store_n(&lines[rank].number, number, __ATOMIC_RELEASE);
}

static void receive_line(uint64_t number)
{
	while (__atomic_load_n(&lines[1 - rank].number, __ATOMIC_ACQUIRE) != number)
		;
	for (int i = 0; i < 7; i++)
		sum += lines[1 - rank].payload[i];
}

static void line_trips(int rounds)
{
	static uint64_t number;
	for (int i = 0; i < rounds; i++) {
		number++;
		if (rank == 0) {
			send_line(number);
			receive_line(number);
		} else {
			receive_line(number);
			send_line(number);
		}
	}
}

/* ---- active messages ---- */

static struct ek_gsm *job;
static uint64_t requests, answers;

static void check(int result)
{
	if (result == EK_OK)
		return;
	fprintf(stderr, "message: %s\n", ek_gsm_error());
	MPI_Abort(world, 1);
}

static void request(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *unused)
{
	(void)unused;
	requests++;
	check(ek_gsm_am_reply(message, 2, data, bytes));
}

static void answer(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *unused)
{
	const uint64_t *argument = data;
	(void)message;
	(void)unused;
	for (uint64_t i = 0; i < bytes / 8; i++)
		sum += argument[i];
	answers++;
}

static void message_trips(int rounds)
{
	uint64_t argument[ARGUMENT / 8] = {1, 2, 3, 4, 5, 6};
	uint64_t *wanted = rank ? &requests : &answers, before = *wanted;
	for (int i = 1; i <= rounds; i++) {
		if (rank == 0)
			check(ek_gsm_am_request(job, 1, 1, argument, sizeof argument));
		while (*wanted < before + (uint64_t)i)
			check(ek_gsm_am_poll(job));
	}
}

/* ---- MPI ---- */

static void mpi_trips(int rounds)
{
	char buffer[ARGUMENT] = {0};
	for (int i = 0; i < rounds; i++) {
		if (rank == 0) {
			MPI_Send(buffer, ARGUMENT, MPI_BYTE, 1, 0, world);
			MPI_Recv(buffer, ARGUMENT, MPI_BYTE, 1, 0, world, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buffer, ARGUMENT, MPI_BYTE, 0, 0, world, MPI_STATUS_IGNORE);
			MPI_Send(buffer, ARGUMENT, MPI_BYTE, 0, 0, world);
		}
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct { const char *name; void (*run)(int); double took[TURNS]; } ways[WAYS] = {
		{"line", line_trips, {0}}, {"message", message_trips, {0}}, {"mpi", mpi_trips, {0}}};
	int rounds = argc > 1 ? atoi(argv[1]) : 100000, size;
	MPI_Win window;
	char *memory;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (size != 2) {
		fprintf(stderr, "message: two ranks, not %d\n", size);
		MPI_Abort(world, 1);
	}
	MPI_Aint bytes = rank ? 0 : (MPI_Aint)(3 * sizeof(struct line));
	int unit;
	MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, world, &memory, &window);
	MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
	memory += (sizeof(struct line) - (uintptr_t)memory % sizeof(struct line)) % sizeof(struct line);
	lines = (struct line *)memory;
	check(ek_gsm_join(MPI_Comm_c2f(world), &job));
	check(ek_gsm_am_register(job, 1, request, 0));
	check(ek_gsm_am_register(job, 2, answer, 0));

	for (int turn = -1; turn < TURNS; turn++) /* the first one warms up */
		for (int w = 0; w < WAYS; w++) {
			MPI_Barrier(world);
			double begin = MPI_Wtime();
			ways[w].run(rounds);
			if (turn >= 0)
				ways[w].took[turn] = (MPI_Wtime() - begin) * 1e9 / rounds;
		}
	for (int w = 0; w < WAYS && rank == 0; w++) {
		qsort(ways[w].took, TURNS, sizeof(double), ascending);
		printf("%s %.1f\n", ways[w].name, ways[w].took[TURNS / 2]);
	}
	if (sum == 1)
		puts("never");
	check(ek_gsm_leave(job));
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
