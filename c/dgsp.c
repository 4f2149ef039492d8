/* dgsp.c - makes data gather/scatter programs: what its functions are given is
 * brought into the shortest form that means the same bytes in the same order.
 */
#include "dgsp.h"

#include <stdlib.h>
#include <string.h>

struct ek_dgsp_chunk {
	struct ek_dgsp_chunk *next;
	max_align_t bytes[];
};

static const struct ek_dgsp_part nothing;

static void *take(struct ek_dgsp_memory *m, size_t count, size_t size)
{
	size_t bytes;
	struct ek_dgsp_chunk *chunk = 0;
	if (!m->failed && !__builtin_mul_overflow(count, size, &bytes) && bytes <= m->limit - m->used)
		chunk = calloc(1, sizeof *chunk + bytes);
	if (!chunk) {
		m->failed = true;
		return 0;
	}
	chunk->next = m->chunks;
	m->chunks = chunk;
	m->used += bytes;
	return chunk->bytes;
}

void ek_dgsp_forget(struct ek_dgsp_memory *m)
{
	while (m->chunks) {
		struct ek_dgsp_chunk *next = m->chunks->next;
		free(m->chunks);
		m->chunks = next;
	}
}

static struct ek_dgsp *make(struct ek_dgsp_memory *m, enum ek_dgsp_kind kind)
{
	struct ek_dgsp *node = take(m, 1, sizeof *node);
	if (node)
		node->kind = kind;
	return node;
}

/* Numbers that a datatype can't have: sums of them must stay in range. */
static bool out_of_range(struct ek_dgsp_memory *m, int64_t number)
{
	const int64_t most = INT64_MAX / 4;
	if (number > most || number < -most)
		m->failed = true;
	return m->failed;
}

/* Bounds that grow from level to level would wrap around, and then a program
 * would seem to touch less memory than it does. */
static bool reaches_out_of_range(struct ek_dgsp_memory *m, const struct ek_dgsp *node)
{
	return out_of_range(m, node->low) || out_of_range(m, node->high);
}

static int64_t times(struct ek_dgsp_memory *m, int64_t a, int64_t b)
{
	int64_t product = 0;
	if (__builtin_mul_overflow(a, b, &product))
		m->failed = true;
	return out_of_range(m, product) ? 0 : product;
}

/* ---- pieces ------------------------------------------------------------- */

struct listing {
	struct ek_dgsp_piece pieces[EK_DGSP_PIECES];
	int count;
};

static void list(struct listing *l, const struct ek_dgsp *node, int64_t at, int64_t offset)
{
	switch (node->kind) {
	case EK_DGSP_BLOCK:
		l->pieces[l->count++] = (struct ek_dgsp_piece){at, (uint32_t)offset, (uint32_t)node->size};
		return;
	case EK_DGSP_LOOP:
	case EK_DGSP_INDEX:
		for (int64_t i = 0; i < node->count; i++)
			list(l, node->child, at + (node->at ? node->at[i] : i * node->stride), offset + i * node->child->size);
		return;
	case EK_DGSP_SEQUENCE:
		for (int64_t i = 0; i < node->count; i++) {
			const struct ek_dgsp_step *s = &node->steps[i];
			if (s->child)
				list(l, s->child, at + s->at, offset + s->offset);
			else
				l->pieces[l->count++] = (struct ek_dgsp_piece){
				        at + s->at, (uint32_t)(offset + s->offset), (uint32_t)(s[1].offset - s->offset)};
		}
	}
}

/* Blocks of more than this are copied fast enough one by one. */
enum { LARGE_BLOCK = 512 };

static void note_pieces(struct ek_dgsp_memory *m, struct ek_dgsp *node)
{
	struct listing l = {.count = 0};
	if (node->blocks > EK_DGSP_PIECES || node->size > node->blocks * LARGE_BLOCK)
		return;
	list(&l, node, 0, 0);
	struct ek_dgsp_piece *pieces = take(m, (size_t)l.count, sizeof *pieces);
	if (!pieces)
		return;
	memcpy(pieces, l.pieces, (size_t)l.count * sizeof *pieces);
	node->pieces = pieces;
}

/* Whether the pieces, of which there are two at least, stay apart modulo the stride: then
 * those of any two children do, however many there are. */
bool ek_dgsp_any_order(const struct ek_dgsp *child, int64_t stride)
{
	int64_t step = stride < 0 ? -stride : stride;
	if (!child->pieces || step == 0)
		return false;
	for (int64_t i = 0; i < child->blocks; i++) {
		const struct ek_dgsp_piece *a = &child->pieces[i];
		for (int64_t j = 0; j < i; j++) {
			const struct ek_dgsp_piece *b = &child->pieces[j];
			int64_t apart = (a->at - b->at) % step;
			if (apart < 0)
				apart += step; /* a begins so far behind b, in a circle of `step` bytes */
			if (apart < b->length || step - apart < a->length)
				return false; /* so too where one is longer than the stride */
		}
	}
	return true;
}

/* ---- instructions ------------------------------------------------------- */

struct ek_dgsp_part ek_dgsp_block(struct ek_dgsp_memory *m, int64_t length)
{
	if (length <= 0 || out_of_range(m, length))
		return nothing;
	struct ek_dgsp *node = make(m, EK_DGSP_BLOCK);
	if (!node)
		return nothing;
	node->size = node->high = length;
	node->blocks = node->count = 1;
	return (struct ek_dgsp_part){0, node};
}

static int64_t blocks_of(int64_t count, const struct ek_dgsp *child)
{
	int64_t blocks;
	return __builtin_mul_overflow(count, child->blocks, &blocks) ? INT64_MAX / 4 : blocks;
}

struct ek_dgsp_part ek_dgsp_loop(struct ek_dgsp_memory *m, struct ek_dgsp_part child, int64_t count, int64_t stride)
{
	const struct ek_dgsp *c = child.node;
	if (!c || count <= 0)
		return nothing;
	if (count == 1)
		return child;
	int64_t size = times(m, count, c->size), last = times(m, count - 1, stride);
	if (m->failed)
		return nothing;
	if (c->kind == EK_DGSP_BLOCK && stride == c->size) {
		struct ek_dgsp_part whole = ek_dgsp_block(m, size);
		whole.at = child.at;
		return whole;
	}
	if (c->kind == EK_DGSP_LOOP && stride == c->count * c->stride)
		return ek_dgsp_loop(m, (struct ek_dgsp_part){child.at, c->child}, count * c->count, c->stride);
	struct ek_dgsp *node = make(m, EK_DGSP_LOOP);
	if (!node)
		return nothing;
	node->size = size;
	node->low = c->low + (last < 0 ? last : 0);
	node->high = c->high + (last > 0 ? last : 0);
	if (reaches_out_of_range(m, node))
		return nothing;
	node->blocks = blocks_of(count, c);
	node->count = count;
	node->stride = stride;
	node->child = c;
	node->any_order = ek_dgsp_any_order(c, stride);
	note_pieces(m, node);
	return (struct ek_dgsp_part){child.at, node};
}

static bool equal_steps(const int64_t *at, int64_t count)
{
	for (int64_t i = 2; i < count; i++)
		if (at[i] - at[i - 1] != at[1] - at[0])
			return false;
	return true;
}

/* A sequence as it stands. */
static struct ek_dgsp_part sequence(struct ek_dgsp_memory *m, const struct ek_dgsp_part *parts, int64_t count)
{
	struct ek_dgsp *node = make(m, EK_DGSP_SEQUENCE);
	struct ek_dgsp_step *steps = take(m, (size_t)count + 1, sizeof *steps);
	if (!node || !steps)
		return nothing;
	node->low = INT64_MAX;
	node->high = INT64_MIN;
	for (int64_t i = 0; i < count; i++) {
		const struct ek_dgsp *c = parts[i].node;
		int64_t low = parts[i].at + c->low, high = parts[i].at + c->high;
		steps[i] = (struct ek_dgsp_step){parts[i].at, node->size, c->kind == EK_DGSP_BLOCK ? 0 : c};
		node->low = low < node->low ? low : node->low;
		node->high = high > node->high ? high : node->high;
		node->size += c->size;
		if (__builtin_add_overflow(node->blocks, c->blocks, &node->blocks) || out_of_range(m, node->size))
			return m->failed = true, nothing;
	}
	if (reaches_out_of_range(m, node))
		return nothing;
	steps[count].offset = node->size;
	node->count = count;
	node->steps = steps;
	note_pieces(m, node);
	return (struct ek_dgsp_part){0, node};
}

/* The same child at places too far from each other for an index. */
static struct ek_dgsp_part far_index(struct ek_dgsp_memory *m, struct ek_dgsp_part child, const int64_t *at, int64_t count)
{
	struct ek_dgsp_part *parts = malloc((size_t)count * sizeof *parts);
	if (!parts)
		return m->failed = true, nothing;
	for (int64_t i = 0; i < count; i++)
		parts[i] = (struct ek_dgsp_part){child.at + at[i], child.node};
	struct ek_dgsp_part made = sequence(m, parts, count);
	free(parts);
	return made;
}

/* An index over a child of few blocks of one width is one over the blocks. */
static const struct ek_dgsp *only_width(struct ek_dgsp_memory *m, const struct ek_dgsp *child)
{
	if (!child->pieces)
		return 0;
	for (int64_t i = 1; i < child->blocks; i++)
		if (child->pieces[i].length != child->pieces[0].length)
			return 0;
	return ek_dgsp_block(m, child->pieces[0].length).node;
}

struct ek_dgsp_part ek_dgsp_index(struct ek_dgsp_memory *m, struct ek_dgsp_part child, const int64_t *at, int64_t count)
{
	const struct ek_dgsp *c = child.node;
	if (!c || count <= 0 || m->failed)
		return nothing;
	int64_t low = at[0], high = at[0];
	for (int64_t i = 0; i < count; i++) {
		if (out_of_range(m, at[i]) || out_of_range(m, child.at + at[i]))
			return nothing;
		low = at[i] < low ? at[i] : low;
		high = at[i] > high ? at[i] : high;
	}
	if (equal_steps(at, count)) {
		struct ek_dgsp_part made = ek_dgsp_loop(m, child, count, count > 1 ? at[1] - at[0] : 0);
		made.at += at[0];
		return made;
	}
	if (high - low + c->high - c->low > INT32_MAX)
		return far_index(m, child, at, count);
	const struct ek_dgsp *width = c->kind == EK_DGSP_BLOCK ? 0 : only_width(m, c);
	int64_t each = width ? c->blocks : 1;
	struct ek_dgsp *node = make(m, EK_DGSP_INDEX);
	int32_t *places = take(m, (size_t)times(m, count, each), sizeof *places);
	int64_t size = times(m, count, c->size);
	if (!node || !places || m->failed)
		return nothing;
	for (int64_t i = 0; i < count; i++)
		for (int64_t j = 0; j < each; j++)
			places[i * each + j] = (int32_t)(at[i] - low + (width ? c->pieces[j].at - c->low : 0));
	node->size = size;
	node->child = width ? width : c;
	node->low = width ? 0 : c->low;
	node->high = high - low + (width ? c->high - c->low : c->high);
	node->blocks = blocks_of(count, c);
	if (reaches_out_of_range(m, node))
		return nothing;
	node->count = count * each;
	node->at = places;
	note_pieces(m, node);
	return (struct ek_dgsp_part){child.at + low + (width ? c->low : 0), node};
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Blocks of few units each are listed unit by unit: a loop over units does not
 * stumble over lengths that can't be foreseen. */
static struct ek_dgsp_part units(struct ek_dgsp_memory *m, const int64_t *at, const int64_t *length, int64_t count,
                                 int64_t unit, int64_t total)
{
	int64_t *places = malloc((size_t)(total / unit) * sizeof *places), n = 0;
	if (!places)
		return m->failed = true, nothing;
	for (int64_t i = 0; i < count; i++)
		for (int64_t j = 0; j < length[i]; j += unit)
			places[n++] = at[i] + j;
	struct ek_dgsp_part made = ek_dgsp_index(m, ek_dgsp_block(m, unit), places, n);
	free(places);
	return made;
}

/* Blocks of different lengths. A sequence keeps no nodes of blocks: these last
 * as long as it takes to make it. */
static struct ek_dgsp_part uneven(struct ek_dgsp_memory *m, const int64_t *at, const int64_t *length, int64_t count)
{
	struct ek_dgsp_part made = nothing, *parts = malloc((size_t)count * sizeof *parts);
	struct ek_dgsp *blocks = calloc((size_t)count, sizeof *blocks);
	if (parts && blocks) {
		for (int64_t i = 0; i < count; i++) {
			blocks[i] = (struct ek_dgsp){.kind = EK_DGSP_BLOCK, .size = length[i], .high = length[i], .blocks = 1, .count = 1};
			parts[i] = (struct ek_dgsp_part){at[i], &blocks[i]};
		}
		made = sequence(m, parts, count);
	} else {
		m->failed = true;
	}
	free(blocks);
	free(parts);
	return made;
}

struct ek_dgsp_part ek_dgsp_blocks(struct ek_dgsp_memory *m, int64_t *at, int64_t *length, int64_t count)
{
	enum { FEW_UNITS = 4, FEW_BLOCKS = 4 };
	int64_t n = 0, unit = 0, total = 0;
	bool even = true;
	for (int64_t i = 0; i < count; i++) {
		if (length[i] <= 0)
			continue;
		if (out_of_range(m, at[i]) || out_of_range(m, length[i]) || out_of_range(m, total += length[i]))
			return nothing;
		if (n > 0 && at[n - 1] + length[n - 1] == at[i]) {
			length[n - 1] += length[i];
			continue;
		}
		at[n] = at[i];
		length[n++] = length[i];
	}
	if (n == 0 || m->failed)
		return nothing;
	for (int64_t i = 0; i < n; i++) {
		unit = common_divisor(length[i], unit);
		even &= length[i] == length[0];
	}
	if (even)
		return ek_dgsp_index(m, ek_dgsp_block(m, length[0]), at, n);
	if (n > FEW_BLOCKS && unit >= 4 && total / unit <= FEW_UNITS * n)
		return units(m, at, length, n, unit, total);
	return uneven(m, at, length, n);
}

static int64_t steps_of(const struct ek_dgsp_part *part)
{
	return !part->node ? 0 : part->node->kind == EK_DGSP_SEQUENCE ? part->node->count : 1;
}

/* Sequences within the sequence become part of it. */
static int64_t flatten(struct ek_dgsp_memory *m, const struct ek_dgsp_part *parts, int64_t count, struct ek_dgsp_part *flat)
{
	int64_t n = 0;
	for (int64_t i = 0; i < count; i++) {
		const struct ek_dgsp *c = parts[i].node;
		if (c && c->kind == EK_DGSP_SEQUENCE) {
			for (const struct ek_dgsp_step *s = c->steps; s < c->steps + c->count; s++) {
				flat[n] = s->child ? (struct ek_dgsp_part){0, s->child} : ek_dgsp_block(m, s[1].offset - s->offset);
				flat[n++].at = parts[i].at + s->at;
			}
		} else if (c) {
			flat[n++] = parts[i];
		}
	}
	return n;
}

static struct ek_dgsp_part all_blocks(struct ek_dgsp_memory *m, const struct ek_dgsp_part *parts, int64_t n)
{
	struct ek_dgsp_part made = nothing;
	int64_t *at = malloc((size_t)n * 2 * sizeof *at), *length = at + n;
	if (!at)
		return m->failed = true, nothing;
	for (int64_t i = 0; i < n; i++) {
		at[i] = parts[i].at;
		length[i] = parts[i].node->size;
	}
	made = ek_dgsp_blocks(m, at, length, n);
	free(at);
	return made;
}

/* Neighbours that are one block become one. */
static int64_t join_blocks(struct ek_dgsp_memory *m, struct ek_dgsp_part *parts, int64_t count)
{
	int64_t n = 0;
	for (int64_t i = 0; i < count; i++) {
		struct ek_dgsp_part *last = &parts[n - 1];
		if (n > 0 && last->node->kind == EK_DGSP_BLOCK && parts[i].node->kind == EK_DGSP_BLOCK &&
		    last->at + last->node->size == parts[i].at) {
			int64_t at = last->at;
			*last = ek_dgsp_block(m, last->node->size + parts[i].node->size);
			last->at = at;
			if (m->failed)
				return 0;
		} else {
			parts[n++] = parts[i];
		}
	}
	return n;
}

struct ek_dgsp_part ek_dgsp_sequence(struct ek_dgsp_memory *m, struct ek_dgsp_part *parts, int64_t count)
{
	int64_t n = 0;
	bool blocks = true;
	for (int64_t i = 0; i < count; i++) {
		n += steps_of(&parts[i]);
		if (parts[i].node && out_of_range(m, parts[i].at))
			return nothing;
	}
	if (n == 0 || m->failed)
		return nothing;
	struct ek_dgsp_part made = nothing, *flat = malloc((size_t)n * sizeof *flat);
	if (!flat)
		return m->failed = true, nothing;
	n = flatten(m, parts, count, flat);
	if (!m->failed)
		n = join_blocks(m, flat, n);
	if (!m->failed) {
		for (int64_t i = 0; i < n; i++)
			blocks &= flat[i].node->kind == EK_DGSP_BLOCK;
		if (n == 1)
			made = flat[0];
		else
			made = blocks ? all_blocks(m, flat, n) : sequence(m, flat, n);
	}
	free(flat);
	return made;
}
