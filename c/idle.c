#define _GNU_SOURCE
#include "idle.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evenkeel.h"
#include "lend.h"
#include "load.h"
#include "record.h"
#include "wait.h"

static uint64_t ns_since(uint64_t ticks)
{
	return (ek_ticks() - ticks) * 1000 / ek_ticks_per_us;
}

/* ---- hooks --------------------------------------------------------------- */

enum { HOOKS = 16, OVERRUNS = 3 };

struct hook {
	int (*call)(void *);
	void *argument;
	uint64_t declared_ns;
	unsigned overruns;
	uint64_t wait; /* in which it was called last */
	char name[EK_NAME_LEN];
};

static struct hook hooks[HOOKS];
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER; /* over them */
static uint64_t wait_number; /* counts waits that are used */

static struct hook *find_hook(int (*call)(void *), void *argument)
{
	for (int i = 0; i < HOOKS; i++)
		if (hooks[i].call == call && hooks[i].argument == argument)
			return &hooks[i];
	return 0;
}

EK_EXPORT int ek_idle_hook(const char *name, int (*call)(void *), void *argument, long declared_us)
{
	if (!name || !call || declared_us <= 0)
		return EK_REFUSED;
	if (!ek_wait_climbs)
		return EK_INACTIVE;
	pthread_mutex_lock(&hooks_lock);
	struct hook *hook = find_hook(call, argument);
	if (!hook)
		hook = find_hook(0, 0);
	if (hook) {
		*hook = (struct hook){call, argument, (uint64_t)declared_us * 1000, 0, hook->wait, ""};
		snprintf(hook->name, sizeof hook->name, "%s", name);
	}
	pthread_mutex_unlock(&hooks_lock);
	return hook ? EK_OK : EK_REFUSED;
}

EK_EXPORT int ek_idle_unhook(int (*call)(void *), void *argument)
{
	pthread_mutex_lock(&hooks_lock);
	struct hook *hook = call ? find_hook(call, argument) : 0;
	if (hook)
		memset(hook, 0, sizeof *hook);
	pthread_mutex_unlock(&hooks_lock);
	return hook ? EK_OK : EK_REFUSED;
}

/* A hook that has not been called in this wait and has the time; its slot in
 * `place`. */
static bool next_hook(uint64_t left_ns, struct hook *found, int *place)
{
	bool any = false;
	if (pthread_mutex_trylock(&hooks_lock) != 0)
		return false;
	for (int i = 0; i < HOOKS && !any; i++) {
		if (!hooks[i].call || hooks[i].wait == wait_number || hooks[i].declared_ns > left_ns)
			continue;
		hooks[i].wait = wait_number;
		*found = hooks[i];
		*place = i;
		any = true;
	}
	pthread_mutex_unlock(&hooks_lock);
	return any;
}

static void drop(struct hook *hook, const char *why)
{
	fprintf(stderr, "evenkeel: rank %d: the idle hook %s %s; it is not called any more\n", ek.world_rank, hook->name, why);
	memset(hook, 0, sizeof *hook);
}

static void call_hook(const struct hook *called, int place)
{
	char why[96];
	uint64_t begun = ek_ticks();
	int result = called->call(called->argument);
	uint64_t took = ns_since(begun);
	bool overrun = took > called->declared_ns;
	ek_count(EK_FAST_HOOKS, 1);
	ek_count(EK_FAST_HOOKS_OVERRUN, overrun);
	pthread_mutex_lock(&hooks_lock);
	struct hook *hook = &hooks[place];
	/* It may have been taken back, or declared anew, meanwhile. */
	bool same = hook->call == called->call && hook->argument == called->argument && hook->declared_ns == called->declared_ns;
	if (same && result != 0) {
		snprintf(why, sizeof why, "failed (%d)", result);
		drop(hook, why);
	} else if (same && overrun && ++hook->overruns == OVERRUNS) {
		snprintf(why, sizeof why, "took longer than declared %d times, now %llu us instead of %llu", OVERRUNS,
		         (unsigned long long)took / 1000, (unsigned long long)called->declared_ns / 1000);
		drop(hook, why);
	}
	pthread_mutex_unlock(&hooks_lock);
}

/* ---- our own housekeeping ------------------------------------------------ */

enum { TRIM_US = 5000 }; /* at first */
#define TRIM_EVERY_NS 1000000000ull

/* malloc_trim takes as long as there is to give back: what it took decides how
 * long a wait must be for the next time. */
static int trim(void *unused)
{
	static uint64_t last;
	(void)unused;
	if (last && ns_since(last) < TRIM_EVERY_NS)
		return 0;
	uint64_t begun = ek_ticks();
	malloc_trim(0);
	last = ek_ticks();
	long took_us = (long)(ns_since(begun) / 1000);
	ek_idle_hook("malloc_trim", trim, 0, took_us > TRIM_US / 2 ? 2 * took_us : TRIM_US);
	return 0;
}

/* ---- the idle program ---------------------------------------------------- */

enum { RUN_NS = 1000000, GONE_MS = 2000 }; /* the shortest wait to run it in; to be gone in */

static struct {
	int told;      /* by `evenkeel idle`: its process group; -1: there is none */
	pid_t group;   /* 0: not told yet */
	uint64_t since; /* ticks: let run; 0: stopped */
} guest = {.told = -1};

static void start_guest(void)
{
	char rank[16], cpus[CPU_SETSIZE * 5] = "", log[EK_OUT_LEN + 32];
	size_t length = 0;
	cpu_set_t mine;
	snprintf(rank, sizeof rank, "%d", ek.local_rank);
	snprintf(log, sizeof log, "%s.idle.%d", ek.header->out, ek.world_rank);
	if (sched_getaffinity(0, sizeof mine, &mine) == 0)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &mine))
				length += (size_t)snprintf(cpus + length, sizeof cpus - length, "%s%d", length ? "," : "", i);
	char *arguments[] = {ek.segment_path, rank, cpus, log, (char *)(uintptr_t)ek.settings.idle_run, 0};
	guest.told = ek_guest_start(arguments);
	if (guest.told < 0 && ek.local_rank == 0)
		fputs("evenkeel: EVENKEEL_IDLE_RUN: the command `evenkeel`, which runs the idle program, is not beside "
		      "libevenkeel.so (../bin/evenkeel); it is not run\n", stderr);
}

/* Its group, once it is there, and until it has ended. */
static pid_t guest_group(void)
{
	char line[16] = "";
	if (guest.told < 0)
		return 0;
	ssize_t got = read(guest.told, line, sizeof line - 1);
	if (got > 0) {
		guest.group = (pid_t)atoi(line);
	} else if (got == 0) {
		close(guest.told);
		guest.told = -1;
		guest.group = 0;
	}
	return guest.group;
}

static void let_guest_run(void)
{
	pid_t group = guest_group();
	if (group > 0 && kill(-group, SIGCONT) == 0) {
		guest.since = ek_ticks();
		ek_count(EK_FAST_IDLE_RUNS, 1);
	}
}

static void stop_guest(void)
{
	if (!guest.since)
		return;
	kill(-guest.group, SIGSTOP);
	ek_count(EK_FAST_IDLE_RAN_NS, ns_since(guest.since));
	guest.since = 0;
}

/* It is gone when whoever runs it is. */
static void end_guest(void)
{
	const struct timespec moment = {0, 1000000};
	bool killed = false;
	stop_guest();
	for (int i = 0; i < GONE_MS && guest.told >= 0; i++) {
		pid_t group = guest_group();
		if (group > 0 && !killed)
			killed = kill(-group, SIGKILL) == 0;
		if (guest.told >= 0)
			nanosleep(&moment, 0);
	}
}

/* ---- waits --------------------------------------------------------------- */

static bool used; /* the wait under way is */

bool ek_idle_step(uint64_t left_ns)
{
	struct hook hook;
	int place;
	if (!used) {
		used = true;
		wait_number++;
	}
	if (next_hook(left_ns, &hook, &place)) {
		call_hook(&hook, place);
		return true;
	}
	if (guest.told >= 0 && !guest.since && left_ns >= RUN_NS)
		let_guest_run();
	ek_lend_step(left_ns);
	return false;
}

void ek_idle_over(void)
{
	if (!used)
		return;
	used = false;
	ek_lend_over();
	stop_guest();
}

void ek_idle_start(MPI_Comm node_comm)
{
	ek_lend_start(node_comm);
	if (ek_wait_climbs) {
		if (ek.settings.idle_trim)
			ek_idle_hook("malloc_trim", trim, 0, TRIM_US);
		if (ek.settings.idle_run[0])
			start_guest();
	} else if (ek.world_rank == 0 && (ek.settings.idle_run[0] || ek.settings.idle_trim || ek.settings.lend)) {
		fputs("evenkeel: waits are used (EVENKEEL_IDLE_RUN, EVENKEEL_IDLE_TRIM, EVENKEEL_LEND) only under "
		      "EVENKEEL_WAIT=adaptive or EVENKEEL_WAIT=sleep\n", stderr);
	}
}

void ek_idle_stop(void)
{
	ek_idle_over();
	end_guest();
}
