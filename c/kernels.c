#include "kernels.h"

#include <string.h>

/* One block. A width that the compiler knows becomes plain loads and stores;
 * the others are covered by two halves that overlap, never beyond the block:
 * what lies beside it may be unmapped, or another thread's. */
#define MOVE(width) memcpy(t, f, width)
#define MOVE_HALVES(half)                                       \
	do {                                                    \
		char a[half], b[half];                          \
		memcpy(a, f, half);                             \
		memcpy(b, f + width - half, half);              \
		memcpy(t, a, half);                             \
		memcpy(t + width - half, b, half);              \
	} while (0)

/* Up to some cache lines: 16 bytes at a time, and the end once more. */
static inline void move_lines(char *t, const char *f, size_t width)
{
	size_t i = 0;
	for (; i + 16 <= width; i += 16)
		memcpy(t + i, f + i, 16);
	memcpy(t + width - 16, f + width - 16, 16);
}

/* The loop over blocks, with a body for each width. TO and FROM give the place
 * of block i. */
#define EACH(TO, FROM, BODY)                                    \
	_Pragma("GCC unroll 4")                                 \
	for (size_t i = 0; i < n; i++) {                        \
		char *t = (TO);                                 \
		const char *f = (FROM);                         \
		BODY;                                           \
	}                                                       \
	return;

#define EVERY_WIDTH(TO, FROM)                                   \
	switch (width) {                                        \
	case 1: EACH(TO, FROM, MOVE(1))                         \
	case 2: EACH(TO, FROM, MOVE(2))                         \
	case 4: EACH(TO, FROM, MOVE(4))                         \
	case 8: EACH(TO, FROM, MOVE(8))                         \
	case 12: EACH(TO, FROM, MOVE(12))                       \
	case 16: EACH(TO, FROM, MOVE(16))                       \
	case 24: EACH(TO, FROM, MOVE(24))                       \
	case 32: EACH(TO, FROM, MOVE(32))                       \
	case 48: EACH(TO, FROM, MOVE(48))                       \
	case 64: EACH(TO, FROM, MOVE(64))                       \
	case 128: EACH(TO, FROM, MOVE(128))                     \
	}                                                       \
	if (width < 4) {                                        \
		EACH(TO, FROM, MOVE_HALVES(2))                  \
	}                                                       \
	if (width < 8) {                                        \
		EACH(TO, FROM, MOVE_HALVES(4))                  \
	}                                                       \
	if (width < 16) {                                       \
		EACH(TO, FROM, MOVE_HALVES(8))                  \
	}                                                       \
	if (width < 32) {                                       \
		EACH(TO, FROM, MOVE_HALVES(16))                 \
	}                                                       \
	if (width < 256) {                                      \
		EACH(TO, FROM, move_lines(t, f, width))         \
	}                                                       \
	EACH(TO, FROM, memcpy(t, f, width))

void ek_copy_strided(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t width, size_t n)
{
	EVERY_WIDTH(to + (ptrdiff_t)i * to_step, from + (ptrdiff_t)i * from_step)
}

void ek_copy_gather(char *to, ptrdiff_t to_step, const char *from, const int32_t *at, size_t width, size_t n)
{
	EVERY_WIDTH(to + (ptrdiff_t)i * to_step, from + at[i])
}

void ek_copy_scatter(char *to, const int32_t *at, const char *from, ptrdiff_t from_step, size_t width, size_t n)
{
	EVERY_WIDTH(to + at[i], from + (ptrdiff_t)i * from_step)
}
