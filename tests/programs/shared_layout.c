/* shared_layout.c - the arithmetic of shared arrays, and the books of the shared heap,
 * as C has them: for a comparison with Go's.
 *
 *	shared_layout affinity THREADS BLOCK ELEMENTS SIZE
 *	shared_layout far I BLOCK THREADS
 *	shared_layout tiling SIZE... TILE...
 *	shared_layout heap BYTES < OPERATIONS
 *
 * affinity writes, as int64_t, for up to so many threads and blocks of up to so many: for
 * each element thread, phase, local place, the element at that place, the run from it;
 * its pointer, and the sums and differences with each other element's; for each thread
 * its elements and affinity size. far writes thread and local place of element I. tiling
 * writes block and elements, and for each element whether it is inside, its indices, and
 * its number again. heap executes `a BYTES` and `f OFFSET`, and writes after each its
 * result and offset as text, and at the end the words of the range.
 */
#include <evenkeel.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared_heap.h"

static void say(int64_t number)
{
	fwrite(&number, sizeof number, 1, stdout);
}

static void say_pointer(struct ek_upc_pointer p)
{
	say(ek_upc_threadof(p));
	say(ek_upc_phaseof(p));
	say(ek_upc_addrfield(p));
}

static int affinity(int64_t threads, int64_t block, int64_t elements, int64_t size)
{
	struct ek_upc_layout l;
	if (ek_upc_layout(threads, block, elements, size, &l) != EK_OK)
		return 1;
	for (int64_t i = 0; i < elements; i++) {
		struct ek_upc_place at = ek_upc_locate(&l, i);
		struct ek_upc_pointer p = ek_upc_pointer(&l, i);
		say(at.thread);
		say(ek_upc_phase(&l, i));
		say(at.local);
		say(ek_upc_element(&l, at));
		say(ek_upc_run(&l, i, elements));
		say_pointer(p);
		for (int64_t j = 0; j < elements; j++) {
			int64_t difference = -1;
			if (ek_upc_subtract(&l, ek_upc_pointer(&l, j), p, &difference) != EK_OK)
				return 1;
			say_pointer(ek_upc_add(&l, p, j - i));
			say(difference);
		}
	}
	for (int64_t t = -1; t <= threads; t++) {
		say(ek_upc_local_elements(&l, t));
		say(ek_upc_affinitysize(elements * size + 1, block * size, threads, t));
	}
	return 0;
}

static int all(int64_t threads, int64_t block, int64_t elements, int64_t size)
{
	for (int64_t t = 1; t <= threads; t++)
		for (int64_t b = 0; b <= block; b++)
			if (affinity(t, b, elements, size))
				return 1;
	return 0;
}

static int tiling(int dimensions, const int64_t *sizes, const int64_t *tile)
{
	struct ek_upc_tiling t;
	int64_t indices[EK_UPC_DIMENSIONS];
	if (ek_upc_tiling(dimensions, sizes, tile, &t) != EK_OK)
		return 1;
	say(t.block);
	say(t.elements);
	for (int64_t i = 0; i < t.elements; i++) {
		say(ek_upc_indices(&t, i, indices));
		for (int d = 0; d < dimensions; d++)
			say(indices[d]);
		say(ek_upc_tiled(&t, indices));
	}
	return 0;
}

static int far(int64_t i, int64_t block, int64_t threads)
{
	struct ek_upc_layout l;
	if (ek_upc_layout(threads, block, 1, 1, &l) != EK_OK)
		return 1;
	struct ek_upc_place at = ek_upc_locate(&l, i);
	say(at.thread);
	say(at.local);
	return 0;
}

static uint64_t *words;

static int load(const struct ek_heap *h, uint64_t offset, uint64_t *value)
{
	(void)h;
	*value = words[offset / 8];
	return EK_OK;
}

static int store(const struct ek_heap *h, uint64_t offset, uint64_t value)
{
	(void)h;
	words[offset / 8] = value;
	return EK_OK;
}

static int heap(uint64_t bytes)
{
	const struct ek_heap h = {load, store};
	char what;
	uint64_t number;
	words = calloc(bytes / 8, 8);
	printf("%d\n", ek_heap_format(&h, bytes));
	while (scanf(" %c %" SCNu64, &what, &number) == 2) {
		uint64_t offset = 0;
		int result = what == 'a' ? ek_heap_allocate(&h, number, &offset) : ek_heap_free(&h, number);
		printf("%d %" PRIu64 "\n", result, result == EK_OK ? offset : 0);
	}
	for (uint64_t i = 0; i < bytes / 8; i++)
		printf("%" PRIx64 "\n", words[i]);
	return 0;
}

static int64_t argument(char **argv, int i)
{
	return strtoll(argv[i], 0, 0);
}

int main(int argc, char **argv)
{
	int64_t numbers[2 * EK_UPC_DIMENSIONS];
	int failed = 1, dimensions = (argc - 2) / 2;
	if (argc == 6 && strcmp(argv[1], "affinity") == 0)
		failed = all(argument(argv, 2), argument(argv, 3), argument(argv, 4), argument(argv, 5));
	else if (argc == 5 && strcmp(argv[1], "far") == 0)
		failed = far(argument(argv, 2), argument(argv, 3), argument(argv, 4));
	else if (argc > 3 && dimensions <= EK_UPC_DIMENSIONS && strcmp(argv[1], "tiling") == 0) {
		for (int i = 0; i < 2 * dimensions; i++)
			numbers[i] = argument(argv, i + 2);
		failed = tiling(dimensions, numbers, numbers + dimensions);
	} else if (argc == 3 && strcmp(argv[1], "heap") == 0)
		failed = heap((uint64_t)argument(argv, 2));
	return failed;
}
