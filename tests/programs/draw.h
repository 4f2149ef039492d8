/* draw.h - random numbers that follow from a seed, the same on all ranks that draw alike. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

static uint64_t random_state;

static inline uint64_t draw(uint64_t below)
{
	return mix(random_state++) % below;
}

#endif
