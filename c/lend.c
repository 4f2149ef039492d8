#define _GNU_SOURCE
#include "lend.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "evenkeel.h"
#include "layout.h"
#include "process.h"
#include "wait.h"

enum {
	NOBODY = -1,
	LEND_NS = 2000000 /* the shortest wait to lend in: the loan costs some 10 us a thread */
};

static int ranks; /* of the node; 0: nothing is lent */
static cpu_set_t *cores; /* of each of them, as they were in MPI_Init */
static size_t area_size;
static int borrower = NOBODY;
static uint64_t since; /* ticks: lent */

static struct ek_rank *rank_of(int local)
{
	return (struct ek_rank *)(ek.segment + EK_PAGE + (size_t)local * area_size);
}

void ek_lend_start(MPI_Comm node_comm)
{
	cpu_set_t mine;
	int able, all = 0;
	ek_mpi.Comm_size(node_comm, &ranks);
	cores = ek.settings.lend && ek_wait_climbs ? calloc((size_t)ranks, sizeof *cores) : 0;
	area_size = ek_layout_of(ek.header).rank_area_size;
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		CPU_ZERO(&mine);
	able = cores != 0;
	if (ek_mpi.Allreduce(&able, &all, 1, ek_mpi.type_int, ek_mpi.op_min, node_comm) != MPI_SUCCESS || !all ||
	    ek_mpi.Allgather(&mine, sizeof mine, ek_mpi.type_byte, cores, sizeof mine, ek_mpi.type_byte, node_comm) != MPI_SUCCESS)
		ranks = 0;
}

/* Whether two ranks have no core in common: else there is nothing to lend. */
static bool apart(int a, int b)
{
	cpu_set_t both;
	CPU_AND(&both, &cores[a], &cores[b]);
	return CPU_COUNT(&cores[a]) > 0 && CPU_COUNT(&cores[b]) > 0 && CPU_COUNT(&both) == 0;
}

/* Which ranks lend to that one, as a number of cores. */
static int lent_to(int local)
{
	int count = 0;
	for (int i = 0; i < ranks; i++)
		if (EK_LOAD(rank_of(i)->lends_to) == (uint32_t)local + 1)
			count += CPU_COUNT(&cores[i]);
	return count;
}

/* A rank that computes and has been lent the least. */
static int choose(void)
{
	int best = NOBODY, best_lent = 0;
	for (int i = 0; i < ranks; i++) {
		struct ek_rank *rank = rank_of(i);
		if (i == ek.local_rank || EK_LOAD(rank->waits) || EK_LOAD(rank->state) != EK_RANK_RUNNING || !apart(i, ek.local_rank))
			continue;
		int lent = lent_to(i);
		if (best == NOBODY || lent < best_lent) {
			best = i;
			best_lent = lent;
		}
	}
	return best;
}

/* Widens, or narrows, the affinity of all threads of that rank by our cores. A
 * thread that would have none left gets its rank's. */
static bool change_threads(int local, bool lend)
{
	char path[64];
	cpu_set_t now;
	bool changed = false;
	snprintf(path, sizeof path, "/proc/%u/task", rank_of(local)->pid);
	DIR *threads = opendir(path);
	if (!threads)
		return false; /* it is gone, or is another user's or container's */
	for (struct dirent *entry; (entry = readdir(threads));) {
		pid_t thread = (pid_t)atoi(entry->d_name);
		if (thread <= 0 || sched_getaffinity(thread, sizeof now, &now) != 0)
			continue;
		cpu_set_t *mine = &cores[ek.local_rank];
		if (lend) {
			CPU_OR(&now, &now, mine);
		} else {
			cpu_set_t common;
			CPU_AND(&common, &now, mine);
			if (CPU_COUNT(&common) == 0)
				continue;
			CPU_XOR(&now, &now, &common);
			if (CPU_COUNT(&now) == 0)
				now = cores[local];
		}
		changed |= sched_setaffinity(thread, sizeof now, &now) == 0;
	}
	closedir(threads);
	return changed;
}

static void take_back(void)
{
	if (borrower == NOBODY)
		return;
	/* First the word: nobody is to begin a larger team for cores that are gone. */
	EK_STORE(ek.rank->lends_to, 0);
	change_threads(borrower, false);
	ek_count(EK_FAST_LENT_NS, (ek_ticks() - since) * 1000 / ek_ticks_per_us);
	borrower = NOBODY;
}

void ek_lend_step(uint64_t left_ns)
{
	if (!ranks)
		return;
	if (borrower != NOBODY && EK_LOAD(rank_of(borrower)->waits))
		take_back(); /* it has come to a wait of its own */
	EK_STORE(ek.rank->waits, 1);
	if (borrower != NOBODY || left_ns < LEND_NS)
		return;
	int to = choose();
	if (to == NOBODY || !change_threads(to, true))
		return;
	borrower = to;
	since = ek_ticks();
	EK_STORE(ek.rank->lends_to, (uint32_t)to + 1);
	ek_count(EK_FAST_LOANS, 1);
}

void ek_lend_over(void)
{
	if (!ranks)
		return;
	EK_STORE(ek.rank->waits, 0);
	take_back();
}

EK_EXPORT int ek_lent_cores(void)
{
	return EK_LOAD(ek.mode) == EK_RECORDING && ranks ? lent_to(ek.local_rank) : 0;
}

EK_EXPORT int ek_lendable_cores(void)
{
	int count = 0;
	if (EK_LOAD(ek.mode) != EK_RECORDING)
		return 0;
	for (int i = 0; i < ranks; i++)
		if (i != ek.local_rank && apart(i, ek.local_rank))
			count += CPU_COUNT(&cores[i]);
	return count;
}
