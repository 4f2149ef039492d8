/* elsewhere.c - another unit, linked in or in a shared library. */
#include "probe.h"

static volatile int zero;

/* Large, and discarded by a linker that collects garbage: what is then left of
 * it in the debug information lies at address 0 and reaches over the others. */
int unused(int n)
{
#define GROW zero += n * zero; zero -= n + zero; zero *= zero + n;
#define GROW8 GROW GROW GROW GROW GROW GROW GROW GROW
	GROW8 GROW8 GROW8 GROW8 GROW8 GROW8 GROW8 GROW8
	GROW8 GROW8 GROW8 GROW8 GROW8 GROW8 GROW8 GROW8
	return zero;
}

__attribute__((noinline)) int elsewhere(void)
{
	return PROBE("elsewhere", "", "") + zero;
}
