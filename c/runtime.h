/* runtime.h - where C and the Go runtime meet: one versioned table.
 *
 * libevenkeel.so opens libevenkeel-runtime.so inside MPI_Init and takes its
 * table by the name ek_runtime; a Go program that imports evenkeel/runtime/attach
 * registers the same table itself, so that a process never has two Go
 * runtimes. Nothing that runs per message goes through here.
 */
#ifndef EK_RUNTIME_H
#define EK_RUNTIME_H

#include <stdint.h>

#include "segment.h"

#define EK_RUNTIME_VERSION 2

/* What the runtime is told of its process; valid until the process ends. */
struct ek_runtime_process {
	void *segment;
	uint64_t segment_size;
	uint32_t local_rank; /* its rank area */
	uint32_t world_rank;
	/* Reads the node's ticks and CLOCK_MONOTONIC at the same moment. */
	struct ek_clock_anchor (*anchor)(void);
	/* To be asked before the first write to these bytes of the history; 0:
	 * /dev/shm has no room for them, and a write would be a SIGBUS. */
	int (*reserve)(const void *at, uint64_t bytes);
};

struct ek_runtime {
	uint32_t version; /* EK_RUNTIME_VERSION */
	uint32_t size;    /* sizeof(struct ek_runtime) */
	/* Begins to drain this process's rings. 0, or it does nothing at all. */
	int (*start)(const struct ek_runtime_process *process);
	/* Drains what is left and stops. Once. */
	void (*stop)(void);
	/* An image of the node's segment, to be released; its length, or -1. */
	int64_t (*image)(void **bytes);
	void (*release)(void *bytes);
	/* World rank 0: begins to make the profile out of its own node's segment and
	 * the other nodes' images, which stay as they are until `published` returns:
	 * when the profile is written, or can't be, and the summary is shown. */
	void (*publish)(void *const *images, const int64_t *lengths, int count);
	void (*published)(void);
	/* A table of functions that a part of the runtime offers beside the
	 * recording, by the name that its own header says; null: not in this runtime. */
	const void *(*service)(const char *name);
};

/* For Go programs: called before MPI_Init. */
void ek_register_runtime(const struct ek_runtime *runtime);

#endif
