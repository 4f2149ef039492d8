/* halo_random.c - copies of any items of others, while ranges change at random: each
 * is there once, and up to date.
 *
 *	mpirun -np 4 halo_random SEED ROUNDS [ITEMS]
 *
 * What a rank needs, what an item is, and how long, follow from its number and the
 * round. Items are of one size, of any length, and packed by this program. Now and then
 * a function fails on one rank: all get the error, and go on. Prints how many copies
 * were checked, and how many exchanges failed.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "results.h"

static int rank, ranks, round_;
static int64_t items = 300, first, count, checked;
static bool *needed;
static int64_t *came; /* by item: in which round it was unpacked */

static void expect(bool true_, const char *what, int64_t item)
{
	if (true_)
		return;
	fprintf(stderr, "rank %d of [%lld, +%lld), round %d: %s, item %lld\n", rank, (long long)first, (long long)count, round_, what,
	        (long long)item);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

struct wide {
	uint64_t number, round;
};

static int64_t length_of(int64_t item)
{
	return (int64_t)(mix((uint64_t)(item + 1000 * round_)) % 23);
}

static char byte_of(int64_t item, int64_t i)
{
	return (char)mix((uint64_t)(item * 64 + i) + (uint64_t)round_);
}

/* ---- needs ---------------------------------------------------------------- */

enum failure { NOTHING, NEEDS, NO_SUCH_ITEM, SIZE, PACK, UNPACK, FAILURES };
static int failing = -1;
static enum failure how;

static bool fails(enum failure now)
{
	return failing == rank && how == now;
}

static int needs(void *context, ek_halo *halo, int64_t from, int64_t n)
{
	int64_t none[1] = {items};
	expect(context == &first && from == first && n == count, "the range that is asked for", from);
	memset(needed, 0, (size_t)items);
	for (int64_t i = from; i < from + n; i++)
		for (uint64_t k = mix((uint64_t)i) % 4; k > 0; k--) {
			int64_t item = (int64_t)(mix((uint64_t)i * 8 + k + (uint64_t)round_) % (uint64_t)items);
			must(ek_halo_need(halo, &item, 1));
			needed[item] = item < from || item >= from + n;
		}
	/* A rank that has nothing may still need something. */
	int64_t some = items / 3, begin = (int64_t)(mix((uint64_t)(rank + round_)) % (uint64_t)(items - some + 1));
	must(ek_halo_need_range(halo, begin, some));
	for (int64_t i = begin; i < begin + some; i++)
		needed[i] = i < from || i >= from + n;
	if (fails(NO_SUCH_ITEM))
		expect(ek_halo_need(halo, none, 1) == EK_REFUSED, "an item that does not exist", items);
	return fails(NEEDS) ? 3 : 0;
}

/* ---- items that this program packs ----------------------------------------- */

static int64_t size(void *context, int64_t from, int64_t n)
{
	(void)context;
	expect(from >= first && from + n <= first + count && n > 0, "a range to pack", from);
	return fails(SIZE) ? -4 : 8 * n + from % 3;
}

static int pack(void *context, int64_t from, int64_t n, void *buffer, int64_t bytes)
{
	(void)context;
	memset(buffer, 0, (size_t)bytes);
	for (int64_t i = 0; i < n; i++) {
		uint64_t word = mix((uint64_t)(from + i)) + (uint64_t)round_;
		memcpy((char *)buffer + 8 * i, &word, 8);
	}
	return fails(PACK) ? 5 : 0;
}

static int unpack(void *context, int64_t from, int64_t n, const void *buffer, int64_t bytes)
{
	(void)context;
	expect(bytes == 8 * n + from % 3, "the bytes of a range", from);
	for (int64_t i = 0; i < n; i++) {
		uint64_t word;
		memcpy(&word, (const char *)buffer + 8 * i, 8);
		expect(word == mix((uint64_t)(from + i)) + (uint64_t)round_, "a copy that was packed", from + i);
		came[from + i] = round_;
	}
	return fails(UNPACK) ? 6 : 0;
}

/* ---- checks ---------------------------------------------------------------- */

static void fill(ek_array *wide, ek_array *variable)
{
	int64_t *lengths = malloc((size_t)(count + 1) * sizeof *lengths), total = 0;
	for (int64_t i = 0; i < count; i++) {
		((struct wide *)ek_array_data(wide))[i] = (struct wide){(uint64_t)(first + i), (uint64_t)round_};
		total += lengths[i] = length_of(first + i);
	}
	char *bytes = malloc((size_t)total + 1), *at = bytes;
	for (int64_t i = 0; i < count; i++)
		for (int64_t b = 0; b < lengths[i]; b++)
			*at++ = byte_of(first + i, b);
	must(ek_array_assign(variable, lengths, bytes));
	expect(ek_array_copies(variable) == 0, "copies after an assignment", 0);
	free(bytes);
	free(lengths);
}

static void check_places(const ek_halo *halo)
{
	const int64_t *copies;
	int64_t n = ek_halo_copies(halo, &copies), known = 0;
	for (int64_t i = 0; i < items; i++) {
		int64_t expected = i >= first && i < first + count ? i - first : needed[i] ? count + known : -1;
		expect(ek_halo_index(halo, i) == expected, "the place of an item", i);
		if (needed[i])
			expect(known < n && copies[known++] == i, "a copy that is needed", i);
	}
	expect(known == n, "copies that are not needed", n);
	checked += n;
}

static void check_values(const ek_array *wide, const ek_array *variable)
{
	const struct wide *a = ek_array_data(wide);
	const int64_t *offset = ek_array_offsets(variable);
	const char *data = ek_array_data(variable);
	for (int64_t i = 0, at = 0; i < items; i++) {
		bool own = i >= first && i < first + count;
		if (!own && !needed[i])
			continue;
		int64_t place = own ? i - first : count + at++;
		expect(a[place].number == (uint64_t)i && a[place].round == (uint64_t)round_, "an item of one size", i);
		expect(offset[place + 1] - offset[place] == length_of(i), "the length of an item", i);
		for (int64_t b = 0; b < length_of(i); b++)
			expect(data[offset[place] + b] == byte_of(i, b), "the bytes of an item", i);
	}
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void move(ek_partition *partition, int64_t *bounds)
{
	bounds[0] = 0;
	for (int r = 1; r < ranks; r++)
		bounds[r] = draw(4) ? (int64_t)draw((uint64_t)items + 1) : (draw(2) ? items : 0);
	bounds[ranks] = items;
	qsort(bounds, (size_t)ranks + 1, sizeof *bounds, compare);
	must(ek_partition_set(partition, bounds));
	must(ek_partition_move(partition));
	ek_partition_range(partition, &first, &count);
}

static bool same_everywhere(int result)
{
	int worst, best;
	MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&result, &best, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return worst == best;
}

static void errors(ek_partition *partition, ek_halo *halo)
{
	ek_halo *none;
	ek_array *beside;
	int64_t zero = 0;
	expect(ek_halo_create(partition, 0, 0, &none) == EK_REFUSED && !none, "a halo without a function", 0);
	expect(ek_halo_need(halo, &zero, 1) == EK_REFUSED, "an item named too late", 0);
	must(ek_array_create(partition, 8, 2, &beside));
	expect(ek_halo_exchange(halo, beside) == EK_REFUSED, "an array with copies on either side", 0);
	expect(ek_halo_exchange_hooks(halo, &(struct ek_hooks){0}) == EK_REFUSED, "hooks without functions", 0);
}

int main(int argc, char **argv)
{
	ek_partition *partition;
	ek_array *wide, *variable;
	ek_halo *halo;
	struct ek_hooks hooks = {0, size, pack, unpack, 0};
	int rounds = argc > 2 ? atoi(argv[2]) : 50, failed = 0;

	random_state = argc > 1 ? strtoull(argv[1], 0, 10) << 32 : 0;
	items = argc > 3 ? atoll(argv[3]) : items;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	needed = calloc((size_t)items, sizeof *needed);
	came = calloc((size_t)items, sizeof *came);
	int64_t *bounds = calloc((size_t)ranks + 1, sizeof *bounds);
	must(ek_partition_create(MPI_COMM_WORLD, items, 0, &partition));
	must(ek_array_create(partition, sizeof(struct wide), 0, &wide));
	must(ek_array_create_variable(partition, &variable));
	must(ek_halo_create(partition, needs, &first, &halo));
	ek_partition_range(partition, &first, &count);
	for (round_ = 1; round_ <= rounds; round_++) {
		failing = draw(3) ? -1 : (int)draw((uint64_t)ranks);
		how = (enum failure)draw(FAILURES);
		bool moved = draw(2), renewed = !moved || draw(2);
		if (moved)
			move(partition, bounds);
		fill(wide, variable);
		int result = renewed ? ek_halo_renew(halo) : EK_OK;
		result = result == EK_OK ? ek_halo_exchange(halo, wide) : result;
		expect(same_everywhere(result), "another result than on other ranks", result);
		expect(result == EK_OK || how == NEEDS || how == NO_SUCH_ITEM, "the result of an exchange", result);
		if (result != EK_OK) {
			const int64_t *copies;
			expect(ek_halo_copies(halo, &copies) == 0, "copies of a halo that could not be described", 0);
			failing = -1;
			failed++;
		}
		must(ek_halo_exchange_begin(halo, wide));
		expect(ek_halo_exchange(halo, wide) == EK_REFUSED, "two exchanges at once", 0);
		must(ek_halo_exchange_end(halo));
		must(ek_halo_exchange(halo, variable));
		check_places(halo);
		check_values(wide, variable);
		result = ek_halo_exchange_hooks(halo, &hooks);
		expect(same_everywhere(result), "another result than on other ranks", result);
		expect(result == EK_OK || (how >= SIZE && result == EK_HOOK_FAILED), "the result of an exchange by hooks", result);
		failed += result != EK_OK;
		for (int64_t i = 0; i < items && result == EK_OK; i++)
			expect((came[i] == round_) == needed[i], "a copy by hooks", i);
	}
	errors(partition, halo);
	must(ek_partition_free(&partition));
	MPI_Reduce(rank ? &checked : MPI_IN_PLACE, &checked, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("checked %lld failed %d\n", (long long)checked, failed);
	free(needed);
	free(came);
	free(bounds);
	MPI_Finalize();
	return 0;
}
