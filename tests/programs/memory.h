/* memory.h - what a process has taken of memory so far. */
#ifndef MEMORY_H
#define MEMORY_H

#include <sys/resource.h>

/* The peak resident set, KiB. */
static inline long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

#endif
