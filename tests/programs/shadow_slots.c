/* shadow_slots.c - as many messages under way as there are slots, received in
 * any order.
 *
 *	mpirun -np 3 shadow_slots FILE BYTES SLOTS [gaps]
 *
 * Rank 0 sends BYTES of its memory, with `gaps` two of three times of a type that
 * has some, or is a derived one, to the others, which receive the oldest of
 * theirs when it is their turn, and are outside MPI else. Whose turn it is all
 * ranks draw alike; never more than SLOTS messages are under way, so no send
 * waits. Prints "wrong: " and what, and "done" on each rank that finds nothing.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "shadow_flag.h"

enum { STEPS = 600, OTHERS = 2 };

static int rank, bytes, with_gaps, wrong;

static void expect(int holds, const char *what, int step)
{
	if (holds)
		return;
	printf("wrong: %s in step %d of rank %d\n", what, step, rank);
	fflush(stdout);
	wrong = 1;
}

/* What a message is made of: so many of a type, each `pitch` bytes of memory. */
struct content {
	MPI_Datatype type;
	int count, pitch;
	int derived;
};

/* With gaps: a short, 2 bytes that are not sent, and an integer; characters; or 8 of them by
 * a datatype that lasts as long as its message, each second time with 8 bytes between. */
static struct content content_of(int number)
{
	struct content c = {MPI_CHAR, bytes, 1, 0};
	if (with_gaps && number % 3 == 0)
		c = (struct content){MPI_SHORT_INT, bytes / 8, 8, 0};
	if (with_gaps && number % 3 == 1) {
		MPI_Datatype eight;
		c = (struct content){MPI_DATATYPE_NULL, bytes / 8, 8 << number % 2, 1};
		MPI_Type_contiguous(8, MPI_CHAR, &eight);
		MPI_Type_create_resized(eight, 0, c.pitch, &c.type);
		MPI_Type_commit(&c.type);
		MPI_Type_free(&eight);
	}
	return c;
}

static int is_data(const struct content *c, int at)
{
	int within = at % c->pitch;
	return at / c->pitch < c->count && within < 8 && !(c->type == MPI_SHORT_INT && within / 2 == 1);
}

static void send(int to, int number, int step)
{
	struct content c = content_of(number);
	char *data = malloc(2 * (size_t)bytes);
	memset(data, number, 2 * (size_t)bytes);
	expect(MPI_Send(data, c.count, c.type, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "sending", step);
	if (c.derived)
		MPI_Type_free(&c.type);
	free(data);
}

static void receive(int number, int step)
{
	struct content c = content_of(number);
	int right = 0;
	char *data = malloc(2 * (size_t)bytes);
	memset(data, ~number, 2 * (size_t)bytes);
	MPI_Recv(data, c.count, c.type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	while (right < 2 * bytes && data[right] == (char)(is_data(&c, right) ? number : ~number))
		right++;
	expect(right == 2 * bytes, "data", step);
	if (c.derived)
		MPI_Type_free(&c.type);
	free(data);
}

/* The messages to each rank that it has not received yet: their numbers. */
static int queue[OTHERS][STEPS], first[OTHERS], last[OTHERS];

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	open_flags(argc > 3 ? argv[1] : "");
	bytes = atoi(argv[2]);
	with_gaps = argc > 4;
	for (int step = 0, under_way = 0, number = 1; step < STEPS;) {
		int other = (int)draw(OTHERS), sends = draw(2) && under_way < atoi(argv[3]);
		if (!sends && first[other] == last[other])
			continue;
		int turn = sends ? 0 : other + 1;
		if (turn == rank && step > 0 && !await_flag(step - 1)) {
			expect(0, "somebody waits", step - 1);
			MPI_Abort(MPI_COMM_WORLD, 4);
		}
		if (sends)
			queue[other][last[other]++] = number;
		if (turn == rank && sends)
			send(other + 1, number, step);
		else if (turn == rank)
			receive(queue[other][first[other]], step);
		under_way += sends ? 1 : -1;
		number += sends;
		first[other] += !sends;
		if (turn == rank)
			raise_flag(step);
		step++;
	}
	while (rank > 0 && first[rank - 1] < last[rank - 1])
		receive(queue[rank - 1][first[rank - 1]++], STEPS);
	MPI_Finalize();
	if (!wrong)
		printf("done\n");
	return wrong;
}
