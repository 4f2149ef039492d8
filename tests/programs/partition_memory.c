/* partition_memory.c - memory of items that went to another rank is given back.
 *
 *	mpirun -np 2 partition_memory fixed|variable
 *
 * Again and again rank 0 has all items, and then few; rank 1 the others; and all of that
 * twice, with a partition each. Prints how many MiB of memory rank 0 had less each time, at
 * least, when it had given the items away; and how many MiB of memory and of addresses it had
 * more after the second partition than after the first.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results.h"

enum { BYTES = 1024, ITEMS = 32 << 10, FEW = ITEMS / 32, ROUNDS = 4, MIB = 1 << 20 };

/* MiB: of memory, and of addresses. */
static int64_t resident(int64_t *addresses)
{
	long all, pages;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
		abort();
	fclose(file);
	*addresses = all * sysconf(_SC_PAGESIZE) / MIB;
	return pages * sysconf(_SC_PAGESIZE) / MIB;
}

static void give(ek_partition *p, int64_t to_first)
{
	int64_t bounds[] = {0, to_first, ITEMS};
	must(ek_partition_set(p, bounds));
	must(ek_partition_move(p));
}

static void fill(ek_array *array, int64_t count, int fixed)
{
	if (fixed) {
		memset(ek_array_data(array), 7, (size_t)count * BYTES);
		return;
	}
	int64_t *lengths = malloc((size_t)(count + 1) * sizeof *lengths);
	char *bytes = malloc((size_t)count * BYTES + 1);
	for (int64_t i = 0; i < count; i++)
		lengths[i] = BYTES;
	memset(bytes, 7, (size_t)count * BYTES);
	must(ek_array_assign(array, lengths, bytes));
	free(lengths);
	free(bytes);
}

/* Returns how much less memory rank 0 has, at least, when it has given items away. */
static int64_t there_and_back(int fixed)
{
	struct ek_partition_options options = {.policy = EK_POLICY_STATIC};
	int64_t first, count, addresses, least = ITEMS;
	ek_partition *partition;
	ek_array *array;

	must(ek_partition_create(MPI_COMM_WORLD, ITEMS, &options, &partition));
	give(partition, ITEMS);
	must(fixed ? ek_array_create(partition, BYTES, 0, &array) : ek_array_create_variable(partition, &array));
	must(ek_partition_range(partition, &first, &count));
	fill(array, count, fixed);
	for (int round = 0; round < ROUNDS; round++) {
		give(partition, ITEMS);
		int64_t all = resident(&addresses);
		give(partition, FEW);
		int64_t less = all - resident(&addresses);
		least = less < least ? less : least;
	}
	must(ek_partition_range(partition, &first, &count));
	for (int64_t i = 0; i < count * BYTES; i++)
		if (((const char *)ek_array_data(array))[i] != 7)
			MPI_Abort(MPI_COMM_WORLD, 1);
	must(ek_partition_free(&partition));
	return least;
}

int main(int argc, char **argv)
{
	int fixed = argc > 1 && strcmp(argv[1], "fixed") == 0, rank;
	int64_t addresses, before;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int64_t least = there_and_back(fixed), memory = resident(&before), again = there_and_back(fixed);
	memory = resident(&addresses) - memory;
	addresses -= before;
	if (rank == 0)
		printf("gave back %lld memory %lld addresses %lld\n", (long long)(again < least ? again : least),
		       (long long)(memory > 0 ? memory : 0), (long long)(addresses > 0 ? addresses : 0));
	MPI_Finalize();
	return 0;
}
