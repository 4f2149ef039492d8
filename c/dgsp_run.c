/* dgsp_run.c - executes data gather/scatter programs. Each function stands for
 * both directions: `unpack` is constant where it is called from, and the
 * compiler makes two of each.
 */
#include "dgsp.h"
#include "kernels.h"

#include <string.h>

/* Deep inlining ends at these: they call themselves. */
static void part_packed(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to);
static void part_unpacked(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to);
static void whole_packed(const struct ek_dgsp *node, char *memory, char *packed);
static void whole_unpacked(const struct ek_dgsp *node, char *memory, char *packed);

#define INLINE static inline __attribute__((always_inline))

INLINE void part_of(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to, bool unpack)
{
	(unpack ? part_unpacked : part_packed)(node, memory, packed, from, to);
}

INLINE void whole(const struct ek_dgsp *node, char *memory, char *packed, bool unpack)
{
	(unpack ? whole_unpacked : whole_packed)(node, memory, packed);
}

INLINE void copy(char *memory, char *packed, int64_t length, bool unpack)
{
	if (unpack)
		memcpy(memory, packed, (size_t)length);
	else
		memcpy(packed, memory, (size_t)length);
}

INLINE void strided(char *memory, int64_t stride, char *packed, int64_t step, int64_t width, int64_t n, bool unpack)
{
	if (unpack)
		ek_copy_strided(memory, stride, packed, step, (size_t)width, (size_t)n);
	else
		ek_copy_strided(packed, step, memory, stride, (size_t)width, (size_t)n);
}

/* Some of a loop's children, if they are of two blocks and there is a loop for
 * these. */
INLINE bool pairs_of(const struct ek_dgsp *child, int64_t stride, char *memory, char *packed, int64_t n, bool unpack)
{
	const struct ek_dgsp_piece *p = child->pieces;
	if (child->blocks != 2)
		return false;
	memory += p[0].at;
	return unpack ? ek_copy_pairs(memory, stride, p[1].at - p[0].at, packed, child->size, p[1].offset, p[0].length,
	                              p[1].length, (size_t)n)
	              : ek_copy_pairs(packed, child->size, p[1].offset, memory, stride, p[1].at - p[0].at, p[0].length,
	                              p[1].length, (size_t)n);
}

/* Some of a loop's children, if they are loops over a few blocks and there is a loop for these.
 * Of four small blocks and of fewer, pieces are faster; of many, a call for each child is. */
INLINE bool groups_of(const struct ek_dgsp *child, int64_t stride, char *memory, char *packed, int64_t n, bool unpack)
{
	enum { LEAST = 5, MOST = 16, SMALL = 4 };
	if (child->kind != EK_DGSP_LOOP || child->child->kind != EK_DGSP_BLOCK || child->count > MOST)
		return false;
	int64_t width = child->child->size;
	if (child->count < (width > SMALL ? LEAST - 1 : LEAST))
		return false;
	return unpack ? ek_copy_nested(memory, stride, child->stride, packed, child->size, width, (size_t)width,
	                               (size_t)child->count, (size_t)n)
	              : ek_copy_nested(packed, child->size, width, memory, stride, child->stride, (size_t)width,
	                               (size_t)child->count, (size_t)n);
}

/* Some of a loop's children, by their pieces: a tile of them that fits the
 * first cache, one piece after the other. */
INLINE void pieces_of(const struct ek_dgsp *child, int64_t stride, char *memory, char *packed, int64_t n, bool unpack)
{
	enum { TILE_BYTES = 16384, LINE = 64, LEAST = 16, MOST = 512 };
	int64_t lines = child->blocks * LINE, step = stride < 0 ? -stride : stride;
	int64_t tile = TILE_BYTES / (child->size + (step < lines ? step : lines));
	tile = tile < LEAST ? LEAST : tile > MOST ? MOST : tile;
	for (int64_t i = 0; i < n; i += tile) {
		int64_t now = n - i < tile ? n - i : tile;
		for (const struct ek_dgsp_piece *p = child->pieces; p < child->pieces + child->blocks; p++)
			strided(memory + i * stride + p->at, stride, packed + i * child->size + p->offset, child->size, p->length, now,
			        unpack);
	}
}

/* n whole children of a loop. */
INLINE void loop_whole(const struct ek_dgsp *child, int64_t stride, bool any_order, char *memory, char *packed, int64_t n,
                       bool unpack)
{
	enum { FEW = 4 };
	if (child->kind == EK_DGSP_BLOCK) {
		strided(memory, stride, packed, child->size, child->size, n, unpack);
	} else if (child->pieces && pairs_of(child, stride, memory, packed, n, unpack)) {
		return;
	} else if (groups_of(child, stride, memory, packed, n, unpack)) {
		return;
	} else if (child->pieces && n >= FEW && (any_order || !unpack)) {
		pieces_of(child, stride, memory, packed, n, unpack);
	} else if (child->kind == EK_DGSP_LOOP && child->child->kind == EK_DGSP_BLOCK) {
		for (int64_t i = 0; i < n; i++)
			strided(memory + i * stride, child->stride, packed + i * child->size, child->child->size,
			        child->child->size, child->count, unpack);
	} else {
		for (int64_t i = 0; i < n; i++)
			whole(child, memory + i * stride, packed + i * child->size, unpack);
	}
}

/* n whole children of an index. */
INLINE void index_whole(const struct ek_dgsp *child, const int32_t *at, char *memory, char *packed, int64_t n, bool unpack)
{
	if (child->kind != EK_DGSP_BLOCK)
		for (int64_t i = 0; i < n; i++)
			whole(child, memory + at[i], packed + i * child->size, unpack);
	else if (unpack)
		ek_copy_scatter(memory, at, packed, child->size, (size_t)child->size, (size_t)n);
	else
		ek_copy_gather(packed, child->size, memory, at, (size_t)child->size, (size_t)n);
}

/* Steps [first, end) of a sequence; `packed` is the first one's. */
INLINE void steps_whole(const struct ek_dgsp_step *first, const struct ek_dgsp_step *end, char *memory, char *packed,
                        bool unpack)
{
	for (const struct ek_dgsp_step *s = first; s < end; s++) {
		char *at = packed + (s->offset - first->offset);
		if (s->child)
			whole(s->child, memory + s->at, at, unpack);
		else
			copy(memory + s->at, at, s[1].offset - s->offset, unpack);
	}
}

INLINE void whole_of(const struct ek_dgsp *node, char *memory, char *packed, bool unpack)
{
	switch (node->kind) {
	case EK_DGSP_BLOCK:
		copy(memory, packed, node->size, unpack);
		return;
	case EK_DGSP_LOOP:
		loop_whole(node->child, node->stride, node->any_order, memory, packed, node->count, unpack);
		return;
	case EK_DGSP_INDEX:
		index_whole(node->child, node->at, memory, packed, node->count, unpack);
		return;
	case EK_DGSP_SEQUENCE:
		steps_whole(node->steps, node->steps + node->count, memory, packed, unpack);
	}
}

/* Bytes [from, to) of children that are all alike: the end of one, whole ones,
 * the beginning of one. */
struct alike {
	const struct ek_dgsp *child;
	const int32_t *at; /* null: every `stride` bytes */
	int64_t stride;
	bool any_order;
};

INLINE char *place(const struct alike *a, char *memory, int64_t i)
{
	return memory + (a->at ? a->at[i] : i * a->stride);
}

INLINE void part_of_alike(const struct alike *a, char *memory, char *packed, int64_t from, int64_t to, bool unpack)
{
	int64_t size = a->child->size, i = from / size, inside = from - i * size;
	if (inside) {
		int64_t rest = size - inside < to - from ? size - inside : to - from;
		part_of(a->child, place(a, memory, i), packed, inside, inside + rest, unpack);
		packed += rest;
		from += rest;
		i++;
	}
	int64_t n = (to - from) / size;
	if (n) {
		if (a->at)
			index_whole(a->child, a->at + i, memory, packed, n, unpack);
		else
			loop_whole(a->child, a->stride, a->any_order, memory + i * a->stride, packed, n, unpack);
		packed += n * size;
		from += n * size;
		i += n;
	}
	if (from < to)
		part_of(a->child, place(a, memory, i), packed, 0, to - from, unpack);
}

/* The step that holds a byte. */
static int64_t step_of(const struct ek_dgsp *node, int64_t byte)
{
	int64_t low = 0, high = node->count;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (node->steps[middle].offset <= byte)
			low = middle;
		else
			high = middle;
	}
	return low;
}

INLINE void part_of_sequence(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to, bool unpack)
{
	for (int64_t i = step_of(node, from); from < to; i++) {
		const struct ek_dgsp_step *s = &node->steps[i];
		int64_t end = s[1].offset < to ? s[1].offset : to;
		if (s->child)
			part_of(s->child, memory + s->at, packed, from - s->offset, end - s->offset, unpack);
		else
			copy(memory + s->at + (from - s->offset), packed, end - from, unpack);
		packed += end - from;
		from = end;
	}
}

INLINE void part(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to, bool unpack)
{
	if (from == 0 && to == node->size) {
		whole(node, memory, packed, unpack);
		return;
	}
	struct alike alike = {node->child, node->at, node->stride, node->any_order};
	if (node->kind == EK_DGSP_BLOCK)
		copy(memory + from, packed, to - from, unpack);
	else if (node->kind == EK_DGSP_SEQUENCE)
		part_of_sequence(node, memory, packed, from, to, unpack);
	else
		part_of_alike(&alike, memory, packed, from, to, unpack);
}

static void part_packed(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to)
{
	part(node, memory, packed, from, to, false);
}

static void part_unpacked(const struct ek_dgsp *node, char *memory, char *packed, int64_t from, int64_t to)
{
	part(node, memory, packed, from, to, true);
}

static void whole_packed(const struct ek_dgsp *node, char *memory, char *packed)
{
	whole_of(node, memory, packed, false);
}

static void whole_unpacked(const struct ek_dgsp *node, char *memory, char *packed)
{
	whole_of(node, memory, packed, true);
}

void ek_dgsp_pack(const struct ek_dgsp_run *run, const char *buffer, char *packed, int64_t from, int64_t to)
{
	struct alike types = {run->type, 0, run->extent, run->any_order};
	part_of_alike(&types, (char *)buffer + run->at, packed, from, to, false);
}

void ek_dgsp_unpack(const struct ek_dgsp_run *run, char *buffer, const char *packed, int64_t from, int64_t to)
{
	struct alike types = {run->type, 0, run->extent, run->any_order};
	part_of_alike(&types, buffer + run->at, (char *)packed, from, to, true);
}
