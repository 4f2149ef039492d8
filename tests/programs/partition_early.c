/* partition_early.c - receives of items whose bytes are not known before they come, begun
 * while other ranks still compute.
 *
 *	mpirun -np 2 partition_early variable|packed
 *
 * The items have different lengths in an array, or the program packs them itself. In turns
 * one rank is slow, so that the other one gets ready to take many items of it; then the
 * program has it take fewer. Prints how many receives were begun and used, in how many
 * moves.
 */
#define _POSIX_C_SOURCE 200809L
#include <evenkeel.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "results.h"

enum { ITEMS = 400, MOVES = 10, TAKEN = 30 };

static int rank;
static bool variable;
static ek_array *array;

/* ---- items of different length ------------------------------------------- */

static int64_t length_of(int64_t item)
{
	return item % 50;
}

static void assign(int64_t first, int64_t count)
{
	int64_t length[ITEMS], bytes = 0;
	char data[ITEMS * 50];
	for (int64_t i = 0; i < count; i++)
		for (int64_t b = length[i] = length_of(first + i); b > 0; b--)
			data[bytes++] = (char)(first + i);
	must(ek_array_assign(array, length, data));
}

static bool assigned(int64_t first, int64_t count)
{
	const int64_t *offset = ek_array_offsets(array);
	const char *data = ek_array_data(array);
	bool right = true;
	for (int64_t i = 0; i < count; i++) {
		right = right && offset[i + 1] - offset[i] == length_of(first + i);
		for (int64_t b = offset[i]; b < offset[i + 1]; b++)
			right = right && data[b] == (char)(first + i);
	}
	return right;
}

/* ---- items that the program packs ----------------------------------------- */

static int64_t here[ITEMS]; /* those that are here are their number plus 1 */
static bool wordless; /* that they come says it all: there is nothing to pack */

static int64_t size(void *context, int64_t first, int64_t count)
{
	(void)context, (void)first;
	return wordless ? 0 : count * (int64_t)sizeof *here;
}

static int pack(void *context, int64_t first, int64_t count, void *data, int64_t bytes)
{
	(void)context, (void)count;
	memcpy(data, here + first, (size_t)bytes);
	memset(here + first, 0, (size_t)bytes);
	return 0;
}

static int unpack(void *context, int64_t first, int64_t count, const void *data, int64_t bytes)
{
	(void)context;
	memcpy(here + first, data, (size_t)bytes);
	for (int64_t i = first; i < first + count && wordless; i++)
		here[i] = i + 1;
	return 0;
}

static bool are_here(int64_t first, int64_t count)
{
	bool right = true;
	for (int64_t i = first; i < first + count; i++)
		right = right && here[i] == i + 1;
	return right;
}

/* ---- */

/* Of the first cycle the second knows who is early. */
static void cycles(ek_partition *p, bool slow)
{
	struct timespec time = {0, slow ? 10000000 : 1000000};
	for (int i = 0; i < 2; i++) {
		int changed;
		nanosleep(&time, 0);
		must(ek_partition_step(p, &changed));
	}
}

int main(int argc, char **argv)
{
	struct ek_partition_options options = {.threshold = 0.99}; /* the program decides */
	const struct ek_hooks hooks = {0, size, pack, unpack, 0};
	struct ek_overlapped overlapped;
	ek_partition *partition;
	int64_t first, count, bounds[] = {0, ITEMS / 2, ITEMS};

	variable = argc > 1 && strcmp(argv[1], "variable") == 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(ek_partition_create(MPI_COMM_WORLD, ITEMS, &options, &partition));
	must(variable ? ek_array_create_variable(partition, &array) : ek_partition_hooks(partition, &hooks));
	must(ek_partition_overlap(partition, 0, 0, 0));
	must(ek_partition_range(partition, &first, &count));
	if (variable)
		assign(first, count);
	for (int64_t i = first; i < first + count; i++)
		here[i] = i + 1;
	for (int move = 0; move < MOVES; move++) {
		int slow = move % 2;
		must(ek_partition_start(partition));
		cycles(partition, rank == slow);
		wordless = move == MOVES / 2;
		bounds[1] += slow ? TAKEN : -TAKEN;
		must(ek_partition_set(partition, bounds));
		must(ek_partition_move(partition));
		must(ek_partition_range(partition, &first, &count));
		if (!(variable ? assigned(first, count) : are_here(first, count))) {
			fprintf(stderr, "rank %d: after move %d items are not as they were\n", rank, move);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	must(ek_partition_overlapped(partition, &overlapped));
	int64_t mine[] = {overlapped.posted, overlapped.used}, all[2];
	MPI_Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("posted %lld used %lld moves %d\n", (long long)all[0], (long long)all[1], MOVES);
	must(ek_partition_free(&partition));
	MPI_Finalize();
	return 0;
}
