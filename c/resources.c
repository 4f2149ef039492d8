#define _GNU_SOURCE
#include "resources.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ground.h"

/* ---- counters ----------------------------------------------------------- */

/* Of the cores of the mask, from /proc/stat: user, nice, system, irq, softirq. */
static double busy_seconds(const cpu_set_t *mask)
{
	FILE *file = fopen("/proc/stat", "re");
	char line[512];
	double sum = 0;
	int found = 0;
	while (file && fgets(line, sizeof line, file)) {
		unsigned cpu;
		unsigned long long t[7];
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6]) != 8 ||
		    cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, mask))
			continue;
		sum += (double)(t[0] + t[1] + t[2] + t[5] + t[6]);
		found = 1;
	}
	if (file)
		fclose(file);
	return found ? sum / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double own_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ek_presence_renew(struct ek_presence *p)
{
	cpu_set_t mask;
	if (sched_getaffinity(getpid(), sizeof mask, &mask) != 0)
		CPU_ZERO(&mask);
	uint64_t shown = __atomic_load_n(&p->shown, __ATOMIC_RELAXED);
	const struct ek_shown *last = &p->places[shown & 1];
	struct ek_shown *next = &p->places[~shown & 1];
	/* Who still reads this place must find that something newer is shown elsewhere. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	next->before = last->usage;
	if (!CPU_EQUAL(&mask, &last->mask))
		next->before.when_ns = 0; /* the counters were those of other cores */
	next->mask = mask;
	next->usage = (struct ek_usage){ek_ground_now(), busy_seconds(&mask), own_seconds()};
	__atomic_store_n(&p->shown, shown + 1, __ATOMIC_RELEASE);
}

struct ek_shown ek_presence_read(const struct ek_presence *p)
{
	for (;;) {
		uint64_t shown = __atomic_load_n(&p->shown, __ATOMIC_ACQUIRE);
		struct ek_shown copy = p->places[shown & 1];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&p->shown, __ATOMIC_RELAXED) == shown)
			return copy;
	}
}

/* ---- the control group -------------------------------------------------- */

/* The cores' worth of time that a file of version 2 ("max 100000" or "50000
 * 100000") allows; 0: no limit. */
static double limit_of(const char *path)
{
	FILE *file = fopen(path, "re");
	double quota = 0, period = 0;
	int read = file ? fscanf(file, "%lf %lf", &quota, &period) : 0;
	if (file)
		fclose(file);
	return read == 2 && period > 0 ? quota / period : 0;
}

static double number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	double number = 0;
	if (!file || fscanf(file, "%lf", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

static double limit_of_version_1(const char *directory)
{
	char path[1200];
	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
	double quota = number_in(path);
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
	double period = number_in(path);
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* The tightest limit of a group and those around it; what is not there limits nothing. */
static double tightest(const char *root, char *group, double (*limit)(const char *), const char *file)
{
	double least = 0;
	for (;;) {
		char path[1200];
		snprintf(path, sizeof path, "%s%s%s", root, group, file);
		double here = limit(path);
		if (here > 0 && (least == 0 || here < least))
			least = here;
		char *slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

/* Whether "cpu" is one of these, between commas: "cpuset" and "cpuacct" are others. */
static bool limits_time(const char *controllers)
{
	for (const char *at = controllers; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : 0)
		if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == 0))
			return true;
	return false;
}

/* 0: there is none; negative: it can't be seen. */
static double quota(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[1024];
	double least = -1;
	while (file && fgets(line, sizeof line, file)) {
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : 0;
		if (!group)
			continue;
		*group++ = 0;
		controllers++;
		group[strcspn(group, "\n")] = 0;
		double here;
		if (*controllers == 0 && access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0)
			here = tightest("/sys/fs/cgroup", group, limit_of, "/cpu.max");
		else if (limits_time(controllers) && access("/sys/fs/cgroup/cpu", R_OK) == 0)
			here = tightest("/sys/fs/cgroup/cpu", group, limit_of_version_1, "");
		else
			continue;
		if (least < 0 || (here > 0 && (least == 0 || here < least)))
			least = here;
	}
	if (file)
		fclose(file);
	return least;
}

/* ---- what a rank can count on ------------------------------------------- */

static int sharing(const struct ek_shown ranks[], int count, int cpu)
{
	int n = 0;
	for (int i = 0; i < count; i++)
		n += CPU_ISSET((size_t)cpu, &ranks[i].mask) != 0;
	return n;
}

/* For how many seconds of each the ranks computed on the cores of one of them. */
static double ranks_on(const struct ek_shown ranks[], int count, const cpu_set_t *cores)
{
	double busy = 0;
	for (int i = 0; i < count; i++) {
		cpu_set_t common;
		CPU_AND(&common, cores, &ranks[i].mask);
		double between = (double)(ranks[i].usage.when_ns - ranks[i].before.when_ns) * 1e-9;
		if (CPU_COUNT(&ranks[i].mask) > 0 && ranks[i].before.when_ns)
			busy += (ranks[i].usage.own - ranks[i].before.own) / between * CPU_COUNT(&common) / CPU_COUNT(&ranks[i].mask);
	}
	return busy;
}

struct ek_balancer_resources ek_resources(const struct ek_presence *const presences[], int count, int self)
{
	struct ek_balancer_resources r = {-1, quota(), -1, 100};
	struct ek_shown *ranks = calloc((size_t)count, sizeof *ranks);
	if (!ranks)
		return r; /* nothing can be seen without memory */
	for (int i = 0; i < count; i++)
		ranks[i] = ek_presence_read(presences[i]);
	const struct ek_shown *mine = &ranks[self];
	double share = 0, seconds = (double)(mine->usage.when_ns - mine->before.when_ns) * 1e-9;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &mine->mask))
			share += 1.0 / sharing(ranks, count, cpu);
	if (CPU_COUNT(&mine->mask) > 0)
		r.cores = share < 1 ? 1 : (double)(int)(share + 0.001);
	if (mine->before.when_ns && mine->usage.busy >= 0 && mine->before.busy >= 0 && seconds > 0.05) {
		double others = (mine->usage.busy - mine->before.busy) / seconds - ranks_on(ranks, count, &mine->mask);
		r.others = others < 0.05 ? 0 : others; /* below what the kernel's ticks can tell */
	}
	int nice = getpriority(PRIO_PROCESS, (id_t)getpid());
	if (nice >= -20 && nice <= 19)
		r.nice = nice;
	free(ranks);
	return r;
}
