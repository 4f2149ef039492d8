/* plain.c - call sites in C: in functions, in functions copied into others, in
 * another unit, and at the very end of a function. */
#include "probe.h"

int elsewhere(void);

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

static volatile int zero;

INLINE int leaf(const char *inlined, const char *more)
{
	return PROBE("leaf", inlined, more) + zero;
}

INLINE int middle(int n, const char *more)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		int twice = 2 * i;

		sum += leaf(HERE("middle"), more) + twice;
	}
	return sum;
}

NOINLINE static int hidden(void)
{
	return leaf(HERE("hidden"), "") + zero;
}

NOINLINE int visible(void)
{
	return PROBE("visible", "", "") + zero;
}

/* The call is the last instruction: its return address lies behind the
 * function, in the next one. */
NOINLINE static void ending(void)
{
	probe_last(__FILE__, __LINE__, "ending");
}

int main(int argc, char **argv)
{
	(void)argv;
	zero = middle(argc, HERE("main"));
	zero += hidden();
	zero += visible();
	zero += elsewhere();
	zero += PROBE("main", "", "");
	ending();
}
