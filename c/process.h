/* process.h - what this process knows of itself: its settings, its place in
 * the job, and its area of the node segment. Filled in MPI_Init by job.c and
 * constant from then on, but for `mode`.
 */
#ifndef EK_PROCESS_H
#define EK_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ek_settings.h"
#include "segment.h"

/* Words that another thread or process may read while they are written. */
#define EK_LOAD(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define EK_STORE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
#define EK_PUBLISH(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
/* A counter with one writer needs no locked instruction. */
#define EK_ADD(place, value) EK_STORE(place, EK_LOAD(place) + (value))

#define EK_EXPORT __attribute__((visibility("default")))
#define EK_LIKELY(x) __builtin_expect(!!(x), 1)
#define EK_UNLIKELY(x) __builtin_expect(!!(x), 0)

enum ek_mode {
	EK_OFF = 0,      /* before MPI_Init, after MPI_Finalize, in forked children, when something failed */
	EK_RECORDING = 1
};

struct ek_process {
	int mode; /* enum ek_mode */
	struct ek_settings settings;
	pthread_mutex_t lock; /* over the slow paths: new threads, modules, communicators, regions */

	int world_rank, world_size;
	int local_rank;  /* which rank area is ours */
	bool crowded;    /* the ranks of this node have fewer processors than they are */
	bool threads_multiple; /* MPI_THREAD_MULTIPLE: several threads may be inside MPI */
	int fd;          /* of the segment, kept open: its locks say that we live */
	char segment_path[EK_PATH_LEN];

	unsigned char *segment;
	size_t segment_size;
	struct ek_header *header;
	unsigned char *area;     /* our rank area, */
	struct ek_rank *rank;    /* and its parts: see segment.h */
	struct ek_module *modules;
	struct ek_comm *comms;
	uint32_t *members;
	struct ek_region *regions;
	struct ek_window *windows;
};

extern struct ek_process ek;

/* What the Go runtime offers by that name (see runtime.h), from MPI_Init to
 * MPI_Finalize; null on all ranks unless every rank has its runtime. */
const void *ek_service(const char *name);

/* Changes whenever a region begins or ends or a handle is forgotten: what a
 * thread has looked up before may no longer hold. */
extern uint64_t ek_epoch __attribute__((visibility("hidden")));

static inline void ek_epoch_next(void)
{
	__atomic_fetch_add(&ek_epoch, 1, __ATOMIC_RELEASE);
}

/* Counts for the report: the calling process's own, by enum ek_fast_counter.
 * Several threads may count the same thing. */
static inline void ek_count(enum ek_fast_counter counter, uint64_t n)
{
	if (EK_UNLIKELY(ek.threads_multiple))
		__atomic_fetch_add(&ek.rank->fast[counter], n, __ATOMIC_RELAXED);
	else
		EK_ADD(ek.rank->fast[counter], n);
}

/* Makes room for `bytes` at `offset` of the segment now, so that a full
 * /dev/shm is an error here and not a SIGBUS later. False: there is none. */
bool ek_segment_reserve(size_t offset, size_t bytes);

#endif
