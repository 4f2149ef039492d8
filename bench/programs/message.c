/* message.c - what an active message on a node takes, there and back, in C: over
 * the injection FIFOs of c/fifo.h, beside the least that it can (a line of 56
 * bytes and a word each way) and a message of MPI.
 *
 *	mpirun -np 2 --bind-to core message [ROUNDS]
 *
 * Prints nanoseconds per round trip, one line for each way: the median of nine
 * turns, in which the ways alternate.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "fifo.h"

enum { WAYS = 3, TURNS = 9, SLOTS = 64, BUFFER = 4096, HANDLERS = 8, ARGUMENT = 48 };

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

/* A message is the number of its handler and an argument. */
struct message {
	uint64_t handler;
	uint64_t argument[ARGUMENT / 8];
};

static struct ek_fifo_sender to;
static struct ek_fifo_receiver from;
static uint64_t answers;

static void send_message(uint64_t handler, const uint64_t *argument)
{
	struct message *m;
	while (!(m = ek_fifo_reserve(&to, sizeof *m)))
		;
	m->handler = handler;
	memcpy(m->argument, argument, ARGUMENT);
	ek_fifo_publish(&to, sizeof *m, 0);
}

static void request(const uint64_t *argument) { send_message(2, argument); }

static void answer(const uint64_t *argument)
{
	for (int i = 0; i < ARGUMENT / 8; i++)
		sum += argument[i];
	answers++;
}

static void (*const handlers[HANDLERS])(const uint64_t *) = {[1] = request, [2] = answer};

/* Runs the handler of the next message, if there is one. */
static int poll_messages(void)
{
	uint64_t word;
	struct message *m = ek_fifo_peek(&from, &word);
	if (!m)
		return 0;
	if (m->handler < HANDLERS && handlers[m->handler])
		handlers[m->handler](m->argument);
	ek_fifo_release(&from);
	return 1;
}

static void message_trips(int rounds)
{
	uint64_t argument[ARGUMENT / 8] = {1, 2, 3, 4, 5, 6};
	for (int i = 0; i < rounds; i++) {
		if (rank == 0) {
			uint64_t wanted = answers + 1;
			send_message(1, argument);
			while (answers != wanted)
				poll_messages();
		} else {
			while (!poll_messages())
				;
		}
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
	struct ek_fifo_header shape = {.magic = EK_FIFO_MAGIC, .layout = EK_FIFO_LAYOUT, .tasks = 2, .slots = SLOTS, .buffer = BUFFER};
	if (size != 2) {
		fprintf(stderr, "message: two ranks, not %d\n", size);
		MPI_Abort(world, 1);
	}
	MPI_Aint bytes = rank ? 0 : (MPI_Aint)(2 * EK_FIFO_PAGE + ek_fifo_offset(&shape, 2, 0, 0));
	int unit;
	MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, world, &memory, &window);
	MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
	memory += (EK_FIFO_PAGE - (uintptr_t)memory % EK_FIFO_PAGE) % EK_FIFO_PAGE;
	lines = (struct line *)memory;
	struct ek_fifo_header *area = (struct ek_fifo_header *)(memory + EK_FIFO_PAGE);
	if (rank == 0)
		*area = shape;
	MPI_Barrier(world);
	to = ek_fifo_send_to(area, (uint32_t)(1 - rank), (uint32_t)rank, 0, -1);
	from = ek_fifo_receive_from(area, (uint32_t)rank, (uint32_t)(1 - rank), 0, -1);

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
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
