#define _GNU_SOURCE
#include "sites.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

static void name_module(struct ek_module *module, const struct link_map *map)
{
	const char *path = map->l_name;
	char program[EK_PATH_LEN];
	if (!*path) { /* the main program has no name there */
		ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
		program[length > 0 ? length : 0] = 0;
		path = program;
	}
	snprintf(module->path, sizeof module->path, "%s", path);
	EK_STORE(module->base, map->l_addr);
}

uint64_t ek_module_of(uint64_t address, uint64_t *offset)
{
	Dl_info info;
	struct link_map *map = 0;
	uint32_t i, used;

	*offset = address;
	if (!dladdr1((void *)(uintptr_t)address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return 0; /* code made at run time */
	*offset = address - map->l_addr;

	pthread_mutex_lock(&ek.lock);
	used = EK_LOAD(ek.rank->modules);
	for (i = 1; i < used; i++)
		if (ek.modules[i].base == map->l_addr)
			break;
	if (i >= used) {
		if (used == EK_MODULES) {
			i = 0;
		} else {
			name_module(&ek.modules[i], map);
			EK_PUBLISH(ek.rank->modules, used + 1);
		}
	}
	pthread_mutex_unlock(&ek.lock);
	return i;
}
