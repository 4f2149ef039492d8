/* shared_affinity.c - which layouts of shared arrays can be (evenkeel_affinity.h):
 * pure. The Go package pgas/shared/affinity has the same rules, and a test compares
 * the two. */
#include "evenkeel_affinity.h"

#include <stdbool.h>

#include "evenkeel_result.h"
#include "shared.h"

/* What a product of numbers that are not negative may come to: half an address
 * space. */
static bool times(int64_t *product, int64_t factor)
{
	const int64_t most = INT64_MAX / 2;
	return !__builtin_mul_overflow(*product, factor, product) && *product <= most;
}

static struct ek_upc_divisor divisor(int64_t value)
{
	uint32_t shift = value > 1 ? 64 - (uint32_t)__builtin_clzll((uint64_t)value - 1) : 0;
	ek_upc_wide power = (ek_upc_wide)1 << (63 + shift);
	return (struct ek_upc_divisor){(uint64_t)value, (uint64_t)((power + (uint64_t)value - 1) / (uint64_t)value), shift};
}

EK_EXPORT int ek_upc_layout(int64_t threads, int64_t block, int64_t elements, int64_t size, struct ek_upc_layout *layout)
{
	int64_t bytes = elements, round = block;
	if (threads < 1)
		return ek_upc_refuse(EK_UPC_LAYOUT, "a shared array over %lld threads: there must be one at least", (long long)threads);
	if (block < 0)
		return ek_upc_refuse(EK_UPC_LAYOUT, "a shared array with blocks of %lld elements: they can't be negative", (long long)block);
	if (elements < 0)
		return ek_upc_refuse(EK_UPC_LAYOUT, "a shared array of %lld elements: their number can't be negative", (long long)elements);
	if (size < 1)
		return ek_upc_refuse(EK_UPC_LAYOUT, "a shared array of elements of %lld bytes: they must have one at least", (long long)size);
	if (!times(&bytes, size))
		return ek_upc_refuse(EK_UPC_LAYOUT, "a shared array of %lld elements of %lld bytes is beyond what memory has",
		                     (long long)elements, (long long)size);
	if (!times(&round, threads) || !times(&round, size))
		return ek_upc_refuse(EK_UPC_LAYOUT, "blocks of %lld elements of %lld bytes on each of %lld threads are beyond what memory has",
		                     (long long)block, (long long)size, (long long)threads);
	/* An indefinite block is one that takes all there is. */
	int64_t dealt = block != EK_UPC_INDEFINITE ? block : elements > 0 ? elements : 1;
	*layout = (struct ek_upc_layout){threads, block, elements, size, divisor(dealt), divisor(threads)};
	return EK_OK;
}

EK_EXPORT int ek_upc_subtract(const struct ek_upc_layout *l, struct ek_upc_pointer p, struct ek_upc_pointer q, int64_t *i)
{
	int64_t bytes = p.address - q.address, unit = l->size;
	bool one = true;
	if (l->block == EK_UPC_INDEFINITE) {
		one = p.thread == q.thread;
	} else {
		bytes -= (p.phase - q.phase) * l->size;
		unit *= l->block;
	}
	if (!one || bytes % unit != 0)
		return ek_upc_refuse(EK_UPC_POINTER, "the pointers {thread %lld, phase %lld, address %lld} and {thread %lld, phase %lld, address %lld} do not "
		                     "point into one array of blocks of %lld elements of %lld bytes", (long long)p.thread,
		                     (long long)p.phase, (long long)p.address, (long long)q.thread, (long long)q.phase,
		                     (long long)q.address, (long long)l->block, (long long)l->size);
	*i = bytes / unit;
	if (l->block != EK_UPC_INDEFINITE)
		*i = (*i * l->threads + p.thread - q.thread) * l->block + p.phase - q.phase;
	return EK_OK;
}

EK_EXPORT int ek_upc_tiling(int dimensions, const int64_t *sizes, const int64_t *tile, struct ek_upc_tiling *tiling)
{
	struct ek_upc_tiling t = {.dimensions = dimensions, .block = 1, .elements = 1};
	bool fits = true;
	if (dimensions < 1 || dimensions > EK_UPC_DIMENSIONS)
		return ek_upc_refuse(EK_UPC_LAYOUT, "an array of %d dimensions: it may have 1 to %d", dimensions, EK_UPC_DIMENSIONS);
	for (int d = 0; d < dimensions; d++) {
		if (tile[d] < 1 || sizes[d] < 0)
			return ek_upc_refuse(EK_UPC_LAYOUT, "dimension %d has %lld elements in blocks of %lld: blocks need one at least", d,
			                     (long long)sizes[d], (long long)tile[d]);
		t.sizes[d] = sizes[d];
		t.tile[d] = tile[d];
		t.tiles[d] = sizes[d] / tile[d] + (sizes[d] % tile[d] > 0);
		fits = fits && times(&t.block, tile[d]) && times(&t.elements, t.tiles[d]);
	}
	if (!fits || !times(&t.elements, t.block))
		return ek_upc_refuse(EK_UPC_LAYOUT, "an array in blocks of %d dimensions: it is beyond what memory has", dimensions);
	*tiling = t;
	return EK_OK;
}
