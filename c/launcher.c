#define _GNU_SOURCE
#include "launcher.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number that is all of the text or ends where `stop` stands; -1: it is none. */
static long number_in(const char *text, char stop)
{
	char *end;
	if (!text || !isdigit((unsigned char)*text))
		return -1;
	long number = strtol(text, &end, 10);
	return *end == 0 || *end == stop ? number : -1;
}

/* Of a process that srun has started, and no batch script: srun speaks PMI to it. */
static const char *slurm_says(const char *name)
{
	return getenv("PMIX_RANK") || getenv("PMI_RANK") ? getenv(name) : 0;
}

/* "4(x2),3": four on each of the first two nodes, three on the next one. */
static int tasks_on(const char *list, long node)
{
	while (list) {
		const char *times = list + strcspn(list, "(,");
		long tasks = number_in(list, *times), nodes = 1;
		if (strncmp(times, "(x", 2) == 0)
			nodes = number_in(times + 2, ')');
		if (tasks < 0 || nodes < 1)
			return 0;
		if (node < nodes)
			return (int)tasks;
		node -= nodes;
		list = strchr(list, ',');
		list += list != 0;
	}
	return 0;
}

int ek_launcher_place(void)
{
	const char *place = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
	return (int)number_in(place ? place : slurm_says("SLURM_LOCALID"), 0);
}

int ek_launcher_places(void)
{
	const char *places = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	long node = number_in(getenv("SLURM_NODEID"), 0);
	if (!places)
		return node < 0 ? 0 : tasks_on(slurm_says("SLURM_STEP_TASKS_PER_NODE"), node);
	long number = number_in(places, 0);
	return number < 0 ? 0 : (int)number;
}

/* Open MPI 5: "prterun-HOST-PROCESS@WORLD". What hands out many jobs, `prte`, has
 * no such name. Where the number of the world stands; null: not that. */
static const char *prterun_world(const char *name_space)
{
	const char *at = name_space && strncmp(name_space, "prterun-", 8) == 0 ? strrchr(name_space, '@') : 0;
	return at && isdigit((unsigned char)at[-1]) && number_in(at + 1, 0) > 0 ? at + 1 : 0;
}

uint32_t ek_launcher_job(char *job, int size)
{
	const char *name_space = getenv("PMIX_NAMESPACE"), *slurm = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
	const char *world = prterun_world(name_space);
	long number = number_in(name_space, 0);
	if (number > 0) { /* Open MPI 4: family << 16 | world */
		snprintf(job, (size_t)size, "%ld", number >> 16);
		return number & 0xffff ? (uint32_t)(number & 0xffff) : 1;
	}
	if (world) {
		const char *process = world - 1;
		while (isdigit((unsigned char)process[-1]))
			process--;
		snprintf(job, (size_t)size, "%.*s", (int)(world - 1 - process), process);
		return (uint32_t)number_in(world, 0);
	}
	if (slurm)
		snprintf(job, (size_t)size, "%.24s.%.24s", slurm, step ? step : "0");
	else
		snprintf(job, (size_t)size, "p%d", (int)getpid());
	return 1;
}
