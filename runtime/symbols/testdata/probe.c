/* probe.c - prints module, offset of the return address in it, and what the
 * caller expects there: file, line, function, inlined; between tabs. */
#define _GNU_SOURCE
#include "probe.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

static void where(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
		abort();
	printf("%s\t%lx\t", info.dli_fname, (unsigned long)address - map->l_addr);
}

__attribute__((noinline)) int probe(const char *file, int line, const char *function, const char *inlined, const char *more)
{
	where(__builtin_return_address(0));
	printf("%s\t%d\t%s\t%s %s\n", file, line, function, inlined, more);
	return 0;
}

__attribute__((noinline)) void probe_last(const char *file, int line, const char *function)
{
	where(__builtin_return_address(0));
	printf("%s\t%d\t%s\t\n", file, line, function);
	exit(0);
}

/* For Fortran, whose compiler passes the lengths of strings behind the rest. */
int probe_fortran_(const char *file, const int *line, const char *function, size_t file_length,
		   size_t function_length)
{
	where(__builtin_return_address(0));
	printf("%.*s\t%d\t%.*s\t\n", (int)file_length, file, *line, (int)function_length, function);
	return 0;
}
