/* One-sided communication: every kind of window and of synchronisation. Each
 * rank writes to the next one and reads from it. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 8 };

static int *memory, next, previous;
static MPI_Win window;

static void clear(void)
{
	memset(memory, 0, WORDS * sizeof *memory);
}

static void fenced(void)
{
	int got = -1;

	clear();
	CALL(MPI_Win_fence, 0, window);
	CALL(MPI_Put, &rank, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	CALL(MPI_Win_fence, 0, window);
	EXPECT(memory[0] == previous);
	CALL(MPI_Get, &got, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	CALL(MPI_Accumulate, &size, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, window);
	CALL(MPI_Win_fence, 0, window);
	EXPECT(got == rank && memory[1] == size);
}

/* Post and start, complete and wait; the second round ends with a test. */
static void posted(void)
{
	MPI_Group world, from, to;
	int flag;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &previous, &from);
	MPI_Group_incl(world, 1, &next, &to);
	clear();
	for (int round = 0; round < 2; round++) {
		CALL(MPI_Win_post, from, 0, window);
		CALL(MPI_Win_start, to, 0, window);
		CALL(MPI_Put, &rank, 1, MPI_INT, next, round, 1, MPI_INT, window);
		CALL(MPI_Win_complete, window);
		if (round == 0)
			CALL(MPI_Win_wait, window);
		else
			do
				CALL(MPI_Win_test, window, &flag);
			while (!flag);
		EXPECT(memory[round] == previous);
	}
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	MPI_Group_free(&world);
}

static void locked(void)
{
	int got = -1, one = 1;

	clear();
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	CALL(MPI_Win_lock, MPI_LOCK_SHARED, next, 0, window);
	CALL(MPI_Put, &rank, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	CALL(MPI_Win_flush_local, next, window);
	CALL(MPI_Win_flush, next, window);
	CALL(MPI_Get, &got, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	CALL(MPI_Win_unlock, next, window);
	EXPECT(got == rank);

	CALL(MPI_Win_lock_all, 0, window);
	for (int to = 0; to < size; to++)
		CALL(MPI_Accumulate, &one, 1, MPI_INT, to, 1, 1, MPI_INT, MPI_SUM, window);
	CALL(MPI_Win_flush_local_all, window);
	CALL(MPI_Win_flush_all, window);
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	CALL(MPI_Win_sync, window);
	EXPECT(memory[0] == previous && memory[1] == size);
	CALL(MPI_Win_unlock_all, window);
}

static void atomics(void)
{
	int one = 1, zero = 0, got = -1;

	clear();
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	CALL(MPI_Win_lock_all, 0, window);
	CALL(MPI_Fetch_and_op, &one, &got, MPI_INT, 0, 0, MPI_SUM, window);
	CALL(MPI_Win_flush, 0, window);
	EXPECT(got >= 0 && got < size);
	CALL(MPI_Compare_and_swap, &one, &zero, &got, MPI_INT, next, 1, window);
	CALL(MPI_Win_flush, next, window);
	EXPECT(got == 0);
	CALL(MPI_Get_accumulate, &one, 1, MPI_INT, &got, 1, MPI_INT, next, 2, 1, MPI_INT, MPI_SUM,
	     window);
	CALL(MPI_Win_flush, next, window);
	EXPECT(got == 0);
	CALL(MPI_Win_unlock_all, window);
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	EXPECT(memory[1] == 1 && memory[2] == 1 && (rank != 0 || memory[0] == size));
}

static void with_requests(void)
{
	int one = 1, got[2] = {-1, -1};
	MPI_Request requests[2];

	clear();
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	CALL(MPI_Win_lock_all, 0, window);
	CALL(MPI_Rput, &rank, 1, MPI_INT, next, 0, 1, MPI_INT, window, &requests[0]);
	CALL(MPI_Raccumulate, &one, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, window,
	     &requests[1]);
	CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
	CALL(MPI_Win_flush_all, window);
	CALL(MPI_Rget, &got[0], 1, MPI_INT, next, 0, 1, MPI_INT, window, &requests[0]);
	CALL(MPI_Rget_accumulate, &one, 1, MPI_INT, &got[1], 1, MPI_INT, next, 1, 1, MPI_INT,
	     MPI_SUM, window, &requests[1]);
	CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
	CALL(MPI_Win_unlock_all, window);
	EXPECT(got[0] == rank && got[1] == 1);
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	EXPECT(memory[0] == previous && memory[1] == 2);
}

static void created(void)
{
	MPI_Alloc_mem(WORDS * sizeof *memory, MPI_INFO_NULL, &memory);
	CALL(MPI_Win_create, memory, WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL,
	     MPI_COMM_WORLD, &window);
	fenced();
	posted();
	locked();
	atomics();
	with_requests();
	CALL(MPI_Win_free, &window);
	EXPECT(window == MPI_WIN_NULL);
	MPI_Free_mem(memory);
}

static void allocated(void)
{
	MPI_Comm node;

	CALL(MPI_Win_allocate, WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL,
	     MPI_COMM_WORLD, &memory, &window);
	fenced();
	CALL(MPI_Win_free, &window);

	CALL(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	CALL(MPI_Win_allocate_shared, WORDS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, node,
	     &memory, &window);
	CALL(MPI_Win_fence, 0, window);
	memory[0] = rank;
	CALL(MPI_Win_fence, 0, window);
	EXPECT(memory[0] == rank);
	CALL(MPI_Win_free, &window);
	CALL(MPI_Comm_free, &node);
}

static void dynamic(void)
{
	int word = -1;
	MPI_Aint mine, theirs;

	CALL(MPI_Win_create_dynamic, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_attach(window, &word, sizeof word);
	MPI_Get_address(&word, &mine);
	CALL(MPI_Sendrecv, &mine, 1, MPI_AINT, previous, 90, &theirs, 1, MPI_AINT, next, 90,
	     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CALL(MPI_Win_fence, 0, window);
	CALL(MPI_Put, &rank, 1, MPI_INT, next, theirs, 1, MPI_INT, window);
	CALL(MPI_Win_fence, 0, window);
	EXPECT(word == previous);
	MPI_Win_detach(window, &word);
	CALL(MPI_Win_free, &window);
}

void windows(void)
{
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	created();
	allocated();
	dynamic();
}
