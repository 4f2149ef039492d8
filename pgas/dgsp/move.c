#include "move.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Bytes that stay in the first cache between being gathered and scattered. */
enum { TILE = 8192 };

void ek_dgsp_move(const struct ek_dgsp_run *target, char *to, const struct ek_dgsp_run *source, const char *from,
                  int64_t first, int64_t last)
{
	char tile[TILE];
	if (source->type->kind == EK_DGSP_BLOCK) {
		ek_dgsp_unpack(target, to, from + source->at + first, first, last);
	} else if (target->type->kind == EK_DGSP_BLOCK) {
		ek_dgsp_pack(source, from, to + target->at + first, first, last);
	} else {
		for (int64_t end; first < last; first = end) {
			end = least(first + TILE, last);
			ek_dgsp_pack(source, from, tile, first, end);
			ek_dgsp_unpack(target, to, tile, first, end);
		}
	}
}

/* ---- spans --------------------------------------------------------------- */

struct listing {
	struct ek_dgsp_span *spans;
	int64_t count, most;
};

/* False: there is no room. */
static bool add(struct listing *l, int64_t at, int64_t length)
{
	struct ek_dgsp_span *last = &l->spans[l->count - 1];
	if (l->count > 0 && last->at + last->length == at) {
		last->length += length;
		return true;
	}
	if (l->count == l->most)
		return false;
	l->spans[l->count++] = (struct ek_dgsp_span){at, length};
	return true;
}

/* Lists bytes [from, to) of a node at `at`, and returns up to where. */
static int64_t list(struct listing *l, const struct ek_dgsp *node, int64_t at, int64_t from, int64_t to);

static int64_t list_alike(struct listing *l, const struct ek_dgsp *node, int64_t at, int64_t from, int64_t to)
{
	int64_t size = node->child->size;
	for (int64_t i = from / size; from < to; i++) {
		int64_t place = at + (node->kind == EK_DGSP_INDEX ? node->at[i] : i * node->stride);
		int64_t end = least((i + 1) * size, to), reached = i * size + list(l, node->child, place, from - i * size, end - i * size);
		if (reached < end)
			return reached;
		from = end;
	}
	return to;
}

static int64_t list_sequence(struct listing *l, const struct ek_dgsp *node, int64_t at, int64_t from, int64_t to)
{
	int64_t low = 0;
	for (int64_t high = node->count; high - low > 1;) {
		int64_t middle = low + (high - low) / 2;
		if (node->steps[middle].offset <= from)
			low = middle;
		else
			high = middle;
	}
	for (const struct ek_dgsp_step *s = &node->steps[low]; from < to; s++) {
		int64_t end = least(s[1].offset, to), reached = end;
		if (s->child)
			reached = s->offset + list(l, s->child, at + s->at, from - s->offset, end - s->offset);
		else if (!add(l, at + s->at + (from - s->offset), end - from))
			reached = from;
		if (reached < end)
			return reached;
		from = end;
	}
	return to;
}

static int64_t list(struct listing *l, const struct ek_dgsp *node, int64_t at, int64_t from, int64_t to)
{
	if (node->kind == EK_DGSP_BLOCK)
		return add(l, at + from, to - from) ? to : from;
	return node->kind == EK_DGSP_SEQUENCE ? list_sequence(l, node, at, from, to) : list_alike(l, node, at, from, to);
}

int64_t ek_dgsp_spans(const struct ek_dgsp_run *run, int64_t from, int64_t to, struct ek_dgsp_span *spans, int64_t most,
                      int64_t *count)
{
	struct listing l = {spans, 0, most};
	int64_t reached = list(&l, run->type, run->at, from, to);
	*count = l.count;
	return reached;
}
