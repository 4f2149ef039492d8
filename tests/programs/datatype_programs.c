/* Random data gather/scatter programs without MPI: made of any numbers, also of
 * such as no datatype has, and executed in parts cut anywhere, beside a plain
 * list of the same blocks.
 *
 *   datatype_programs SEED CASES     to be built with c/dgsp*.c and c/kernels.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dgsp.h"

enum { MOST = 4000, SIDE = 1 << 18 };

struct list {
	int64_t at[MOST], length[MOST];
	int n;
	int64_t bytes;
	bool whole; /* it has all the blocks */
};

static uint64_t state;
static long seed, now;

static void fail(void)
{
	printf("wrong bytes: seed %ld case %ld\n", seed, now);
	exit(1);
}

static int between(int low, int high)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return low + (int)((z >> 33) % (uint64_t)(high - low + 1));
}

/* Mostly small, at times as large as numbers get. */
static int64_t number(int low, int high)
{
	static const int64_t extremes[] = {INT64_MAX, INT64_MIN, INT64_MAX / 4, INT64_MIN / 4, INT32_MAX, INT32_MIN, 1ll << 40};
	return between(0, 400) == 0 ? extremes[between(0, 6)] : between(low, high);
}

static void add(struct list *l, int64_t at, int64_t length)
{
	if (length > 0 && (l->n == MOST || length > SIDE || at > SIDE || at < -SIDE))
		l->whole = false; /* nothing to be executed */
	if (!l->whole || length <= 0)
		return;
	l->at[l->n] = at;
	l->length[l->n++] = length;
	l->bytes += length;
}

static void add_list(struct list *l, const struct list *child, int64_t at)
{
	l->whole &= child->whole;
	for (int i = 0; i < child->n && l->whole; i++)
		add(l, (int64_t)((uint64_t)at + (uint64_t)child->at[i]), child->length[i]);
}

static struct ek_dgsp_part program(struct ek_dgsp_memory *m, struct list *l, int depth)
{
	struct list *child = calloc(1, sizeof *child);
	struct ek_dgsp_part made;
	int64_t at[40], length[40];
	int n = between(0, 9) ? between(0, 5) : between(6, 40);
	child->whole = true;
	switch (depth ? between(0, 4) : 0) {
	case 0:
		length[0] = number(-1, between(0, 3) ? 40 : 700);
		made = ek_dgsp_block(m, length[0]);
		add(l, 0, length[0]);
		break;
	case 1: {
		int64_t count = number(0, n), stride = number(-300, 500);
		made = ek_dgsp_loop(m, program(m, child, depth - 1), count, stride);
		for (int64_t i = 0; i < count && i <= MOST; i++)
			add_list(l, child, (int64_t)((uint64_t)i * (uint64_t)stride));
		l->whole &= count <= MOST;
		break;
	}
	case 2:
		for (int i = 0; i < n; i++)
			at[i] = number(-900, 900);
		made = ek_dgsp_index(m, program(m, child, depth - 1), at, n);
		for (int i = 0; i < n; i++)
			add_list(l, child, at[i]);
		break;
	case 3:
		for (int i = 0, place = 0; i < n; i++) {
			at[i] = number(place, place + 9);
			length[i] = number(-1, 30) / 8 * 8;
			place += length[i] > 0 && length[i] < 99 ? (int)length[i] : 0;
			add(l, at[i], length[i]);
		}
		made = ek_dgsp_blocks(m, at, length, n);
		break;
	default: {
		struct ek_dgsp_part parts[40];
		for (int i = 0; i < n; i++) {
			int64_t place = number(-700, 700);
			child->n = 0;
			child->bytes = 0;
			parts[i] = program(m, child, depth - 1);
			parts[i].at = (int64_t)((uint64_t)parts[i].at + (uint64_t)place);
			add_list(l, child, place);
		}
		made = ek_dgsp_sequence(m, parts, n);
	}
	}
	free(child);
	return made;
}

static char source[2 * SIDE], target[2 * SIDE], expected[2 * SIDE], packed[MOST * 1000];

static bool reaches(const struct list *l, int64_t extent, int count)
{
	for (int i = 0; i < l->n; i++)
		for (int k = 0; k < 2; k++) {
			int64_t at = l->at[i] + (k ? (count - 1) * extent : 0);
			if (at < -SIDE || at + l->length[i] > SIDE)
				return false;
		}
	return l->bytes > 0 && l->bytes * count <= (int64_t)sizeof packed;
}

static void execute(const struct ek_dgsp_run *run, const struct list *l, int count)
{
	char *to = packed;
	memcpy(expected, target, sizeof target);
	for (int k = 0; k < count; k++)
		for (int i = 0; i < l->n; to += l->length[i++])
			memcpy(to, source + SIDE + k * run->extent + l->at[i], (size_t)l->length[i]);
	to = packed;
	for (int k = 0; k < count; k++)
		for (int i = 0; i < l->n; to += l->length[i++])
			memcpy(expected + SIDE + k * run->extent + l->at[i], to, (size_t)l->length[i]);
	int64_t all = l->bytes * count;
	for (int64_t from = 0, end; from < all; from = end) {
		end = from + between(1, between(0, 3) ? 100000 : 50);
		end = end < all ? end : all;
		char *part = malloc((size_t)(end - from)); /* no byte more */
		ek_dgsp_pack(run, source + SIDE, part, from, end);
		if (memcmp(part, packed + from, (size_t)(end - from)) != 0)
			fail();
		ek_dgsp_unpack(run, target + SIDE, part, from, end);
		free(part);
	}
	if (memcmp(target, expected, sizeof target) != 0)
		fail();
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? atol(argv[1]) : 1;
	long cases = argc > 2 ? atol(argv[2]) : 1000, executed = 0;
	struct list *l = malloc(sizeof *l);
	for (size_t i = 0; i < sizeof source; i++) {
		source[i] = (char)between(0, 255);
		target[i] = (char)between(0, 255);
	}
	for (long i = 0; i < cases; i++) {
		struct ek_dgsp_memory m = {.limit = 1 << 20};
		state = (uint64_t)(seed * 1000003 + i);
		memset(l, 0, sizeof *l);
		l->whole = true;
		struct ek_dgsp_part part = program(&m, l, between(0, 4));
		int count = between(1, 5);
		struct ek_dgsp_run run = {part.node, part.at, between(-3000, 3000), false};
		now = i;
		if (!m.failed && l->whole && part.node && reaches(l, run.extent, count)) {
			run.any_order = ek_dgsp_any_order(run.type, run.extent);
			if (part.node->size != l->bytes)
				fail();
			execute(&run, l, count);
			executed++;
		}
		ek_dgsp_forget(&m);
	}
	free(l);
	printf("%ld of %ld executed\n", executed, cases);
	return executed < cases / 4;
}
