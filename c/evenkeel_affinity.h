/* evenkeel_affinity.h - which thread each element of a shared array has affinity
 * to, where it lies there, and how one counts on from a pointer to shared: the
 * arithmetic of the UPC language specification 1.3, and nothing that has memory.
 * evenkeel_shared.h includes this.
 *
 * Numbers are of elements unless a name says bytes. What the makers of layouts
 * and tilings let through, the rest takes without a check.
 */
#ifndef EVENKEEL_AFFINITY_H
#define EVENKEEL_AFFINITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The block of UPC's [] and [0]: all elements have affinity to one thread. */
enum { EK_UPC_INDEFINITE = 0 };

/* Division of numbers below 2^63 by one that stays the same, as a multiplication:
 * the factor is 2^(63 + shift) / value rounded up, the shift what the value takes
 * in bits (T. Granlund, P. L. Montgomery: Division by invariant integers using
 * multiplication, PLDI 1994). */
struct ek_upc_divisor {
	uint64_t value, factor;
	uint32_t shift;
};

__extension__ typedef unsigned __int128 ek_upc_wide;

static inline uint64_t ek_upc_divide(uint64_t number, const struct ek_upc_divisor *by)
{
	return (uint64_t)((ek_upc_wide)(2 * number) * by->factor >> 64) >> by->shift;
}

/* `shared [block] T a[elements]` over so many threads, T of `size` bytes. Blocks
 * are dealt out in turn: block b belongs to thread b % threads, and lies there
 * behind that thread's blocks before it. */
struct ek_upc_layout {
	int64_t threads;
	int64_t block; /* EK_UPC_INDEFINITE: one block, of thread 0 */
	int64_t elements;
	int64_t size; /* bytes of an element */
	struct ek_upc_divisor by_block, by_threads;
};

/* EK_UPC_LAYOUT: threads or size below one, block or elements below zero, or more
 * bytes than memory has (2^62). A layout for pointers alone may have no elements. */
int ek_upc_layout(int64_t threads, int64_t block, int64_t elements, int64_t size, struct ek_upc_layout *layout);

/* The block of [*]: as much as it takes for each thread to have one. */
static inline int64_t ek_upc_pure(int64_t threads, int64_t elements)
{
	return elements > 0 ? (elements - 1) / threads + 1 : 1;
}

/* Where an element is: its thread, and its number among those of that thread. */
struct ek_upc_place {
	int64_t thread, local;
};

static inline struct ek_upc_place ek_upc_locate(const struct ek_upc_layout *l, int64_t i)
{
	uint64_t block = ek_upc_divide((uint64_t)i, &l->by_block), round = ek_upc_divide(block, &l->by_threads);
	struct ek_upc_place place = {(int64_t)(block - round * l->by_threads.value),
	                             (int64_t)((uint64_t)i - (block - round) * l->by_block.value)};
	return place;
}

/* The place of element i in its block; in indefinite blocks it is always 0. */
static inline int64_t ek_upc_phase(const struct ek_upc_layout *l, int64_t i)
{
	return l->block == EK_UPC_INDEFINITE ? 0 : i % l->block;
}

/* The element at a place: the inverse of ek_upc_locate. */
static inline int64_t ek_upc_element(const struct ek_upc_layout *l, struct ek_upc_place at)
{
	if (l->block == EK_UPC_INDEFINITE)
		return at.local;
	return (at.local / l->block * l->threads + at.thread) * l->block + at.local % l->block;
}

/* upc_affinitysize: of an object of so many bytes in blocks of so many, those with
 * affinity to a thread. Blocks of 0 bytes: one, of thread 0. */
static inline int64_t ek_upc_affinitysize(int64_t bytes, int64_t block_bytes, int64_t threads, int64_t thread)
{
	if (thread < 0 || thread >= threads)
		return 0;
	if (block_bytes == 0)
		return thread == 0 ? bytes : 0;
	int64_t blocks = bytes / block_bytes, rounds = blocks / threads, rest = blocks % threads;
	return rounds * block_bytes + (thread < rest ? block_bytes : thread == rest ? bytes % block_bytes : 0);
}

/* How many elements have affinity to a thread. */
static inline int64_t ek_upc_local_elements(const struct ek_upc_layout *l, int64_t thread)
{
	return ek_upc_affinitysize(l->elements, l->block, l->threads, thread);
}

/* How many elements from element i on, at most n, lie one behind the other in one
 * thread's memory. */
static inline int64_t ek_upc_run(const struct ek_upc_layout *l, int64_t i, int64_t n)
{
	int64_t run = l->elements - i;
	if (l->block != EK_UPC_INDEFINITE && l->threads > 1 && run > l->block - i % l->block)
		run = l->block - i % l->block;
	return n < run ? n : run;
}

/* ---- pointers to shared -----------------------------------------------------
 *
 * UPC's triple. The address counts bytes from where a thread's part of the object
 * begins, which is at the same offset on all threads: of itself a pointer says
 * neither which object it points into, nor what type it has. */
struct ek_upc_pointer {
	int64_t thread, phase, address;
};

static inline int64_t ek_upc_threadof(struct ek_upc_pointer p)
{
	return p.thread;
}

static inline int64_t ek_upc_phaseof(struct ek_upc_pointer p)
{
	return p.phase;
}

static inline int64_t ek_upc_addrfield(struct ek_upc_pointer p)
{
	return p.address;
}

/* The same with phase 0, as if a block began there. */
static inline struct ek_upc_pointer ek_upc_resetphase(struct ek_upc_pointer p)
{
	p.phase = 0;
	return p;
}

/* Points at element i. */
static inline struct ek_upc_pointer ek_upc_pointer(const struct ek_upc_layout *l, int64_t i)
{
	struct ek_upc_place at = ek_upc_locate(l, i);
	struct ek_upc_pointer p = {at.thread, ek_upc_phase(l, i), at.local * l->size};
	return p;
}

/* Makes a pointer into one layout one into another: the phase is 0 where block or
 * size differ. */
static inline struct ek_upc_pointer ek_upc_cast(struct ek_upc_pointer p, const struct ek_upc_layout *from,
                                                const struct ek_upc_layout *to)
{
	return from->block == to->block && from->size == to->size ? p : ek_upc_resetphase(p);
}

/* p + i: i elements further, through phases, then threads, then blocks of a
 * thread. i may be negative. */
static inline struct ek_upc_pointer ek_upc_add(const struct ek_upc_layout *l, struct ek_upc_pointer p, int64_t i)
{
	if (l->block == EK_UPC_INDEFINITE) {
		p.phase = 0;
		p.address += i * l->size;
		return p;
	}
	int64_t phase = p.phase + i, blocks = phase / l->block;
	blocks -= phase < blocks * l->block; /* rounds down */
	int64_t thread = p.thread + blocks, rounds = thread / l->threads;
	rounds -= thread < rounds * l->threads;
	struct ek_upc_pointer sum = {thread - rounds * l->threads, phase - blocks * l->block,
	                             p.address + (phase - blocks * l->block - p.phase + rounds * l->block) * l->size};
	return sum;
}

/* p - q: the i with q + i == p. EK_UPC_POINTER: there is none, they don't point into
 * one array of this layout. */
int ek_upc_subtract(const struct ek_upc_layout *layout, struct ek_upc_pointer p, struct ek_upc_pointer q, int64_t *i);

/* ---- blocks of several dimensions -------------------------------------------
 *
 * An array of several dimensions in blocks of as many: tiles are dealt out in turn,
 * in row-major order, and within a tile elements are in row-major order too. Tiles
 * at the edges take as much memory as the others. (C. Barton, C. Cascaval, G.
 * Almasi, R. Garg, J. N. Amaral, M. Farreras: Multidimensional blocking in UPC,
 * LCPC 2007.) */
enum { EK_UPC_DIMENSIONS = 8 };

struct ek_upc_tiling {
	int dimensions;
	int64_t sizes[EK_UPC_DIMENSIONS]; /* elements of each dimension, */
	int64_t tile[EK_UPC_DIMENSIONS];  /* of a tile in each, */
	int64_t tiles[EK_UPC_DIMENSIONS]; /* and tiles in each */
	int64_t block, elements;          /* of a tile, and of all tiles: what the shared array needs */
};

/* EK_UPC_LAYOUT: no dimension, or more than EK_UPC_DIMENSIONS; a tile with less than
 * one element; a size below zero; more elements than memory has bytes. */
int ek_upc_tiling(int dimensions, const int64_t *sizes, const int64_t *tile, struct ek_upc_tiling *tiling);

/* The number in the shared array of the element with these indices, one for each
 * dimension. */
static inline int64_t ek_upc_tiled(const struct ek_upc_tiling *t, const int64_t *indices)
{
	int64_t tile = 0, phase = 0;
	for (int d = 0; d < t->dimensions; d++) {
		tile = tile * t->tiles[d] + indices[d] / t->tile[d];
		phase = phase * t->tile[d] + indices[d] % t->tile[d];
	}
	return tile * t->block + phase;
}

/* The indices of an element of the shared array; 0: it is padding of a tile at the
 * edge. */
static inline int ek_upc_indices(const struct ek_upc_tiling *t, int64_t element, int64_t *indices)
{
	int64_t tile = element / t->block, phase = element % t->block;
	int inside = 1;
	for (int d = t->dimensions - 1; d >= 0; d--) {
		indices[d] = tile % t->tiles[d] * t->tile[d] + phase % t->tile[d];
		inside = inside && indices[d] < t->sizes[d];
		tile /= t->tiles[d];
		phase /= t->tile[d];
	}
	return inside;
}

#ifdef __cplusplus
}
#endif

#endif
