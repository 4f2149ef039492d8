/* space.c - Go needs so much address space that it ends a process that may not have it,
 * with pages about its own state. So it is looked before Go begins, in a constructor.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* With the heaps of the C library's threads. */
#define NEEDED_MIB 2048ull

static __attribute__((constructor)) void check_space(void)
{
	struct rlimit space;
	if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY || space.rlim_cur >> 20 >= NEEDED_MIB)
		return;
	fprintf(stderr, "evenkeel: the address space is limited to %llu MiB (ulimit -v), and this command needs %llu: raise the "
	        "limit, or start the program without evenkeel\n", (unsigned long long)space.rlim_cur >> 20, NEEDED_MIB);
	_exit(2);
}
