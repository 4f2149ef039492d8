/* transparent.c - call sites in a small function that counts as a part of its callers. */
#include "probe.h"

#define INLINE static inline __attribute__((always_inline))

static volatile int zero;

INLINE __attribute__((artificial)) int transparent(int line, const char *function, const char *inlined)
{
	return probe(__FILE__, line, function, inlined, "") + zero;
}

INLINE int within(const char *inlined)
{
	return transparent(__LINE__, "within", inlined) + 1;
}

int main(void)
{
	zero = transparent(__LINE__, "main", "");
	zero = within(HERE("main"));
}
