#define _GNU_SOURCE
#include "sites.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "evenkeel.h"
#include "record.h"

EK_EXPORT void ek_call_from(const void *address)
{
	ek_self.told = address ? (uint64_t)(uintptr_t)address : ek_self.told_all;
}

EK_EXPORT const void *ek_calls_from(const void *address)
{
	const void *before = (const void *)(uintptr_t)ek_self.told_all;
	ek_self.told = ek_self.told_all = (uint64_t)(uintptr_t)address;
	return before;
}

/* Where the module's procedures are, in each program or library that has them. */
static struct {
	const char *begin, *end;
} procedures[8];

/* Called by constructors, one at a time: see fortran/procedures.c. */
EK_EXPORT void ek_fortran_procedures(const void *begin, const void *end)
{
	for (unsigned i = 0; i < sizeof procedures / sizeof *procedures; i++)
		if (!procedures[i].end) {
			procedures[i].begin = begin;
			procedures[i].end = end;
			return;
		}
}

static bool in_procedure(const char *address)
{
	for (unsigned i = 0; i < sizeof procedures / sizeof *procedures && procedures[i].end; i++)
		if (address >= procedures[i].begin && address < procedures[i].end)
			return true;
	return false;
}

/* They are compiled with frame pointers, and may call each other. */
const void *ek_fortran_caller(const void *address, const void *frame)
{
	while (in_procedure(address)) {
		frame = *(const void *const *)frame;
		address = ((const void *const *)frame)[1];
	}
	return address;
}

static void path_of(const struct link_map *map, char *path, size_t size)
{
	if (*map->l_name) {
		snprintf(path, size, "%s", map->l_name);
	} else { /* the main program has no name there */
		ssize_t length = readlink("/proc/self/exe", path, size - 1);
		path[length > 0 ? length : 0] = 0;
	}
}

/* The number of that module; 0 if there is no room for it. */
static uint32_t number_of(uint64_t base, const char path[sizeof ek.modules->path])
{
	uint32_t i, used;
	pthread_mutex_lock(&ek.lock);
	used = EK_LOAD(ek.rank->modules);
	for (i = 1; i < used; i++)
		if (ek.modules[i].base == base && strcmp(ek.modules[i].path, path) == 0)
			break; /* another may have been at that address before, and unloaded */
	if (i >= used) {
		if (used == EK_MODULES) {
			i = 0;
		} else {
			memcpy(ek.modules[i].path, path, sizeof ek.modules->path);
			EK_STORE(ek.modules[i].base, base);
			EK_PUBLISH(ek.rank->modules, used + 1);
		}
	}
	pthread_mutex_unlock(&ek.lock);
	return i;
}

uint64_t ek_module_of(uint64_t address, uint64_t *offset)
{
	Dl_info info;
	struct link_map *map = 0;
	char path[sizeof ek.modules->path];

	*offset = address;
	if (dladdr1((void *)(uintptr_t)address, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
		*offset = address - map->l_addr;
		path_of(map, path, sizeof path);
		return number_of(map->l_addr, path);
	}
	if (ek_python_name(address, path, sizeof path, offset))
		return number_of(0, path);
	return 0; /* code made at run time */
}
