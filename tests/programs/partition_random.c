/* partition_random.c - ranges that change at random, empty ones too: whatever lives
 * on a partition is whole after each move.
 *
 *	mpirun -np 4 partition_random SEED ROUNDS [ITEMS]
 *
 * On the partition are two arrays of fixed-size items, one with copies of the
 * neighbours' items, one of items of any length, and items that this program packs
 * itself, which now and then fails to do so on one rank. What an item is follows
 * from its number alone. At first rank 0 has almost all of them, so that others soon have
 * more than there is room for where they began. Between the moves there are cycles in which some ranks are
 * slow, so that the others get ready for a move: the one that comes, or another.
 * Prints how many ranges were checked, and how many receives that were begun early
 * were used.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw.h"
#include "results.h"

static int rank, ranks;
static int64_t items = 1000, halo = 7;
static int64_t first, count;
static int64_t checked;

static void expect(bool true_, const char *what, int64_t item)
{
	if (true_)
		return;
	fprintf(stderr, "rank %d: %s, item %lld of [%lld, +%lld)\n", rank, what, (long long)item, (long long)first,
	        (long long)count);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

struct wide {
	uint64_t of_item[3];
};

static int64_t length_of(int64_t item)
{
	return (int64_t)(mix((uint64_t)item) % 5 ? mix((uint64_t)item + 1) % 40 : 0);
}

static char byte_of(int64_t item, int64_t i)
{
	return (char)mix((uint64_t)(item * 64 + i));
}

/* ---- items that the program keeps itself: a word for each --------------- */

static uint64_t *kept;
static int64_t kept_first, kept_count;
static uint64_t *came; /* by item, 0: did not */
static int failing = -1, fail_in;
static int finished;

static int64_t size(void *context, int64_t from, int64_t n)
{
	expect(context == &kept, "the context of a hook", from);
	return rank == failing && fail_in == 0 ? -7 : 8 * n;
}

static int pack(void *context, int64_t from, int64_t n, void *buffer, int64_t bytes)
{
	(void)context;
	expect(bytes == 8 * n, "the bytes to pack", from);
	expect(from >= kept_first && from + n <= kept_first + kept_count, "a range that is not here is to be packed", from);
	memcpy(buffer, kept + (from - kept_first), (size_t)bytes);
	return rank == failing && fail_in == 1 ? 3 : 0;
}

static int unpack(void *context, int64_t from, int64_t n, const void *buffer, int64_t bytes)
{
	(void)context;
	expect(bytes == 8 * n, "the bytes to unpack", from);
	memcpy(came + from, buffer, (size_t)bytes);
	return rank == failing && fail_in == 2 ? 5 : 0;
}

static void finish(void *context, int64_t from, int64_t n, int taken)
{
	(void)context;
	finished++;
	if (taken) {
		uint64_t *now = malloc((size_t)(n + 1) * sizeof *now);
		for (int64_t i = 0; i < n; i++)
			now[i] = from + i >= kept_first && from + i < kept_first + kept_count ? kept[from + i - kept_first] : came[from + i];
		free(kept);
		kept = now;
		kept_first = from;
		kept_count = n;
	}
	expect(from == kept_first && n == kept_count, "the range after a move", from);
	memset(came, 0, (size_t)items * sizeof *came);
}

/* ---- checks ------------------------------------------------------------- */

static void check_variable(ek_array *array)
{
	const int64_t *offset = ek_array_offsets(array);
	const char *data = ek_array_data(array);
	for (int64_t i = 0; i < count; i++) {
		expect(offset[i + 1] - offset[i] == length_of(first + i), "the length of an item", first + i);
		for (int64_t b = 0; b < offset[i + 1] - offset[i]; b++)
			expect(data[offset[i] + b] == byte_of(first + i, b), "the bytes of an item", first + i);
	}
}

static void check_halo(ek_array *array, int periodic)
{
	must(ek_array_exchange(array, periodic));
	const uint64_t *data = ek_array_data(array);
	for (int64_t i = -halo; i < count + halo && count > 0; i++) {
		int64_t item = first + i;
		if (!periodic && (item < 0 || item >= items))
			continue;
		expect(data[i] == mix((uint64_t)((item + items) % items)), periodic ? "a periodic copy" : "a copy", item);
	}
}

static void check(ek_partition *partition, ek_array *narrow, ek_array *wide, ek_array *variable)
{
	int64_t all = 0;
	ek_partition_range(partition, &first, &count);
	const uint64_t *a = ek_array_data(narrow);
	const struct wide *b = ek_array_data(wide);
	for (int64_t i = 0; i < count; i++) {
		expect(a[i] == mix((uint64_t)(first + i)), "a narrow item", first + i);
		for (int k = 0; k < 3; k++)
			expect(b[i].of_item[k] == mix((uint64_t)(first + i)) + (uint64_t)k, "a wide item", first + i);
		expect(kept[i] == mix((uint64_t)(first + i)) + 9, "an item that the program keeps", first + i);
		expect(ek_partition_owner(partition, first + i) == rank, "the owner of an item", first + i);
	}
	check_variable(variable);
	check_halo(narrow, 0);
	check_halo(narrow, 1);
	MPI_Allreduce(&count, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	expect(all == items, "the items are not all there", all);
	checked++;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Ranges of any size; some empty, some all. */
static void random_bounds(int64_t *bounds)
{
	bounds[0] = 0;
	for (int r = 1; r < ranks; r++)
		bounds[r] = draw(4) ? (int64_t)draw((uint64_t)items + 1) : (draw(2) ? items : 0);
	bounds[ranks] = items;
	qsort(bounds, (size_t)ranks + 1, sizeof *bounds, compare);
}

/* Cycles in which some ranks are slow, until the ranges change or there were enough.
 * Returns whether they did. */
static int cycles(ek_partition *partition)
{
	uint64_t slow = draw((uint64_t)1 << ranks);
	int most = (int)draw(5), changed = 0;
	for (int i = 0; i < most && !changed; i++) {
		struct timespec time = {0, slow >> rank & 1 ? 1000000 : 100000};
		nanosleep(&time, 0);
		must(ek_partition_step(partition, &changed));
	}
	return changed;
}

int main(int argc, char **argv)
{
	ek_partition *partition;
	ek_array *narrow, *wide, *variable;
	struct ek_hooks hooks = {&kept, size, pack, unpack, finish};
	int rounds = argc > 2 ? atoi(argv[2]) : 50, undone = 0;

	random_state = argc > 1 ? strtoull(argv[1], 0, 10) << 32 : 0;
	items = argc > 3 ? atoll(argv[3]) : items;
	halo = items < halo ? items : halo;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(ek_partition_create(MPI_COMM_WORLD, items, 0, &partition));
	int64_t *bounds = malloc((size_t)(ranks + 1) * sizeof *bounds);
	for (int r = 0; r <= ranks; r++)
		bounds[r] = r ? items - (ranks - r) * (items / 300) : 0;
	must(ek_partition_set(partition, bounds));
	must(ek_partition_move(partition));
	must(ek_array_create(partition, sizeof(uint64_t), halo, &narrow));
	must(ek_array_create(partition, sizeof(struct wide), 0, &wide));
	must(ek_array_create_variable(partition, &variable));
	must(ek_partition_hooks(partition, &hooks));
	must(ek_partition_overlap(partition, 0, 0, 0));

	ek_partition_range(partition, &first, &count);
	kept_first = first;
	kept_count = count;
	kept = malloc((size_t)(count + 1) * sizeof *kept);
	came = calloc((size_t)items, sizeof *came);
	int64_t *lengths = malloc((size_t)(count + 1) * sizeof *lengths), total = 0;
	for (int64_t i = 0; i < count; i++) {
		((uint64_t *)ek_array_data(narrow))[i] = mix((uint64_t)(first + i));
		for (int k = 0; k < 3; k++)
			((struct wide *)ek_array_data(wide))[i].of_item[k] = mix((uint64_t)(first + i)) + (uint64_t)k;
		kept[i] = mix((uint64_t)(first + i)) + 9;
		total += lengths[i] = length_of(first + i);
	}
	char *bytes = malloc((size_t)total + 1), *at = bytes;
	for (int64_t i = 0; i < count; i++)
		for (int64_t b = 0; b < lengths[i]; b++)
			*at++ = byte_of(first + i, b);
	must(ek_array_assign(variable, lengths, bytes));
	check(partition, narrow, wide, variable);

	for (int round = 0; round < rounds; round++) {
		int before = finished;
		failing = draw(3) ? -1 : (int)draw((uint64_t)ranks);
		fail_in = (int)draw(3);
		if (!cycles(partition)) {
			random_bounds(bounds);
			must(ek_partition_set(partition, bounds));
		}
		int result = ek_partition_move(partition), worst;
		MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		expect(result == worst, "another result than on other ranks", result);
		expect(result == EK_OK || (failing >= 0 && result == EK_HOOK_FAILED), "the result of a move", result);
		expect(finished == before + 1, "a move is finished once", finished);
		undone += result != EK_OK;
		check(partition, narrow, wide, variable);
	}
	uint64_t *all = malloc((size_t)items * sizeof *all);
	must(ek_array_gather(narrow, all));
	for (int64_t i = 0; i < items; i++)
		expect(all[i] == mix((uint64_t)i), "a gathered item", i);
	struct ek_overlapped overlapped;
	int64_t used = 0;
	must(ek_partition_overlapped(partition, &overlapped));
	MPI_Reduce(&overlapped.used, &used, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	must(ek_partition_free(&partition));
	if (rank == 0)
		printf("checked %lld undone %d used %lld\n", (long long)checked, undone, (long long)used);
	free(all);
	free(bounds);
	free(bytes);
	free(lengths);
	free(kept);
	free(came);
	MPI_Finalize();
	return 0;
}
