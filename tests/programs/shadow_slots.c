/* shadow_slots.c - as many messages under way as there are slots, received in
 * any order.
 *
 *	mpirun -np 3 shadow_slots FILE BYTES SLOTS [gaps]
 *
 * Rank 0 sends BYTES of its memory, with `gaps` each third time of a type that
 * has some, to the others, which receive the oldest of
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

/* 8 bytes of memory: a short, 2 bytes that are not sent, and an integer; or 8 characters. */
static MPI_Datatype type_of(int number, int *count)
{
	int gaps = with_gaps && number % 3 == 0;
	*count = gaps ? bytes / 8 : bytes;
	return gaps ? MPI_SHORT_INT : MPI_CHAR;
}

static void send(int to, int number, int step)
{
	int count;
	MPI_Datatype type = type_of(number, &count);
	char *data = malloc((size_t)bytes);
	memset(data, number, (size_t)bytes);
	expect(MPI_Send(data, count, type, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "sending", step);
	free(data);
}

static void receive(int number, int step)
{
	int count, right = 0;
	MPI_Datatype type = type_of(number, &count);
	char *data = malloc((size_t)bytes);
	memset(data, ~number, (size_t)bytes);
	MPI_Recv(data, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	while (right < bytes && data[right] == (char)(type == MPI_CHAR || right % 8 / 2 != 1 ? number : ~number))
		right++;
	expect(right == bytes, "data", step);
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
