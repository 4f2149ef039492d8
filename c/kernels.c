#include "kernels.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* One block. A width that the compiler knows becomes plain loads and stores;
 * the others are covered by two halves that overlap, never beyond the block:
 * what lies beside it may be unmapped, or another thread's. */
#define FIXED(width)                                             \
	INLINE void move_##width(char *to, const char *from, size_t any) \
	{                                                        \
		(void)any;                                       \
		memcpy(to, from, width);                         \
	}
#define HALVES(half)                                             \
	INLINE void halves_##half(char *to, const char *from, size_t width) \
	{                                                        \
		memcpy(to, from, half);                          \
		memcpy(to + width - half, from + width - half, half); \
	}

FIXED(1)
FIXED(2)
FIXED(4)
FIXED(8)
FIXED(12)
FIXED(16)
FIXED(24)
FIXED(32)
FIXED(48)
FIXED(64)
FIXED(128)
FIXED(256)
HALVES(2)
HALVES(4)
HALVES(8)
HALVES(16)
HALVES(64)

/* 16 bytes at a time, and the end once more. */
INLINE void lines(char *to, const char *from, size_t width)
{
	for (size_t i = 0; i + 16 <= width; i += 16)
		memcpy(to + i, from + i, 16);
	memcpy(to + width - 16, from + width - 16, 16);
}

/* From here on memcpy is faster, as it may use wider registers than we know of, but for
 * widths that are fixed. */
INLINE void large(char *to, const char *from, size_t width)
{
	memcpy(to, from, width);
}

typedef void move_function(char *to, const char *from, size_t width);

/* Four blocks a turn, so that their places follow from one sum. */
INLINE void strided(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t width, size_t n,
                    move_function *move)
{
	for (; n >= 4; n -= 4) {
		move(to, from, width);
		move(to + to_step, from + from_step, width);
		move(to + 2 * to_step, from + 2 * from_step, width);
		move(to + 3 * to_step, from + 3 * from_step, width);
		to += 4 * to_step;
		from += 4 * from_step;
	}
	for (; n > 0; n--, to += to_step, from += from_step)
		move(to, from, width);
}

INLINE void gather(char *to, ptrdiff_t to_step, const char *from, const int32_t *at, size_t width, size_t n,
                   move_function *move)
{
	for (; n >= 4; n -= 4, at += 4, to += 4 * to_step) {
		move(to, from + at[0], width);
		move(to + to_step, from + at[1], width);
		move(to + 2 * to_step, from + at[2], width);
		move(to + 3 * to_step, from + at[3], width);
	}
	for (; n > 0; n--, at++, to += to_step)
		move(to, from + *at, width);
}

INLINE void scatter(char *to, const int32_t *at, const char *from, ptrdiff_t from_step, size_t width, size_t n,
                    move_function *move)
{
	for (; n >= 4; n -= 4, at += 4, from += 4 * from_step) {
		move(to + at[0], from, width);
		move(to + at[1], from + from_step, width);
		move(to + at[2], from + 2 * from_step, width);
		move(to + at[3], from + 3 * from_step, width);
	}
	for (; n > 0; n--, at++, from += from_step)
		move(to + *at, from, width);
}

/* Two blocks of 8 bytes become one store. */
INLINE void join(char *to, const char *first, const char *second)
{
	typedef uint64_t both __attribute__((vector_size(16)));
	uint64_t a, b;
	memcpy(&a, first, 8);
	memcpy(&b, second, 8);
	memcpy(to, &(both){a, b}, 16);
}

INLINE void strided_joined(char *to, const char *from, ptrdiff_t step, size_t n)
{
	for (; n >= 4; n -= 4, to += 32, from += 4 * step) {
		join(to, from, from + step);
		join(to + 16, from + 2 * step, from + 3 * step);
	}
	for (; n > 0; n--, to += 8, from += step)
		memcpy(to, from, 8);
}

static void gather_joined(char *to, const char *from, const int32_t *at, size_t n)
{
	for (; n >= 4; n -= 4, to += 32, at += 4) {
		join(to, from + at[0], from + at[1]);
		join(to + 16, from + at[2], from + at[3]);
	}
	for (; n > 0; n--, to += 8, at++)
		memcpy(to, from + *at, 8);
}

/* A loop for each width: LOOP(width, move). */
#define EVERY_WIDTH(LOOP)                                        \
	do {                                                     \
		switch (width) {                                         \
		case 1: LOOP(1, move_1); return;                         \
		case 2: LOOP(2, move_2); return;                         \
		case 4: LOOP(4, move_4); return;                         \
		case 8: LOOP(8, move_8); return;                         \
		case 12: LOOP(12, move_12); return;                      \
		case 16: LOOP(16, move_16); return;                      \
		case 24: LOOP(24, move_24); return;                      \
		case 32: LOOP(32, move_32); return;                      \
		case 48: LOOP(48, move_48); return;                      \
		case 64: LOOP(64, move_64); return;                      \
		case 128: LOOP(128, move_128); return;                   \
		case 256: LOOP(256, move_256); return;                   \
		}                                                        \
		if (width < 4)                                           \
			LOOP(width, halves_2);                           \
		else if (width < 8)                                      \
			LOOP(width, halves_4);                           \
		else if (width < 16)                                     \
			LOOP(width, halves_8);                           \
		else if (width < 32)                                     \
			LOOP(width, halves_16);                          \
		else if (width <= 96)                                    \
			LOOP(width, lines);                              \
		else if (width <= 128)                                   \
			LOOP(width, halves_64);                          \
		else                                                     \
			LOOP(width, large);                              \
	} while (0)

void ek_copy_strided(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t width, size_t n)
{
/* Where one side has no gaps, its step is known with the width. */
#define LOOP(size, move)                                                           \
	do {                                                                       \
		if (to_step == (ptrdiff_t)(size))                                  \
			strided(to, size, from, from_step, size, n, move);         \
		else if (from_step == (ptrdiff_t)(size))                           \
			strided(to, to_step, from, size, size, n, move);           \
		else                                                               \
			strided(to, to_step, from, from_step, size, n, move);      \
	} while (0)
	if (width == 8 && to_step == 8)
		strided_joined(to, from, from_step, n);
	else
		EVERY_WIDTH(LOOP);
#undef LOOP
}

void ek_copy_gather(char *to, ptrdiff_t to_step, const char *from, const int32_t *at, size_t width, size_t n)
{
#define LOOP(size, move) gather(to, to_step, from, at, size, n, move)
	if (width == 8 && to_step == 8)
		gather_joined(to, from, at, n);
	else
		EVERY_WIDTH(LOOP);
#undef LOOP
}

void ek_copy_scatter(char *to, const int32_t *at, const char *from, ptrdiff_t from_step, size_t width, size_t n)
{
#define LOOP(size, move) scatter(to, at, from, from_step, size, n, move)
	EVERY_WIDTH(LOOP);
#undef LOOP
}

INLINE void pairs(char *to, ptrdiff_t to_step, ptrdiff_t to_second, const char *from, ptrdiff_t from_step,
                  ptrdiff_t from_second, size_t n, move_function *move_first, move_function *move_second)
{
	for (; n > 0; n--, to += to_step, from += from_step) {
		move_first(to, from, 0);
		move_second(to + to_second, from + from_second, 0);
	}
}

bool ek_copy_pairs(char *to, ptrdiff_t to_step, ptrdiff_t to_second, const char *from, ptrdiff_t from_step,
                   ptrdiff_t from_second, size_t first, size_t second, size_t n)
{
/* The places of the packed side are known with the widths. */
#define PAIR(a, b)                                                                                      \
	if (first == a && second == b) {                                                                \
		if (to_step == a + b && to_second == a)                                                 \
			pairs(to, a + b, a, from, from_step, from_second, n, move_##a, move_##b);       \
		else                                                                                    \
			pairs(to, to_step, to_second, from, a + b, a, n, move_##a, move_##b);           \
		return true;                                                                            \
	}
	PAIR(4, 4)
	PAIR(4, 8)
	PAIR(4, 16)
	PAIR(8, 4)
	PAIR(8, 8)
	PAIR(8, 16)
	PAIR(16, 4)
	PAIR(16, 8)
	PAIR(16, 16)
#undef PAIR
	return false;
}

/* Within a group the turns of four of `strided`. */
INLINE void nested(char *to, ptrdiff_t to_group, ptrdiff_t to_step, const char *from, ptrdiff_t from_group,
                   ptrdiff_t from_step, size_t width, size_t count, size_t n, move_function *move)
{
	for (; n > 0; n--, to += to_group, from += from_group)
		strided(to, to_step, from, from_step, width, count, move);
}

static void nested_joined(char *to, ptrdiff_t to_group, const char *from, ptrdiff_t from_group, ptrdiff_t from_step,
                          size_t count, size_t n)
{
	for (; n > 0; n--, to += to_group, from += from_group)
		strided_joined(to, from, from_step, count);
}

bool ek_copy_nested(char *to, ptrdiff_t to_group, ptrdiff_t to_step, const char *from, ptrdiff_t from_group,
                    ptrdiff_t from_step, size_t width, size_t count, size_t n)
{
#define NESTED(size)                                                                                         \
	case size:                                                                                           \
		if (to_step == size)                                                                         \
			nested(to, to_group, size, from, from_group, from_step, size, count, n, move_##size); \
		else                                                                                         \
			nested(to, to_group, to_step, from, from_group, size, size, count, n, move_##size);   \
		return true;
	if (width == 8 && to_step == 8) {
		nested_joined(to, to_group, from, from_group, from_step, count, n);
		return true;
	}
	switch (width) {
		NESTED(4)
		NESTED(8)
		NESTED(16)
	}
#undef NESTED
	return false;
}
