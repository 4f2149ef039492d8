/* world_barrier.h - the world's barrier for barrier.go: one call of C for each of Barrier,
 * Notify and Wait, which are recorded as that (own_binding.h).
 */
#ifndef EK_WORLD_BARRIER_H
#define EK_WORLD_BARRIER_H

#include <stdlib.h>

#include "own_binding.h"

struct ek_shared_barrier {
	MPI_Comm comm;
	MPI_Request request;
	uint64_t sent[2], values[2]; /* the value and its complement: of all, the greatest */
	struct ek_own_operation notified;
};

/* Who calls, as mpi/own knows it; a negative function: nothing is recorded. */
struct ek_shared_caller {
	int function;
	uintptr_t site;
};

struct ek_shared_barrier *ek_shared_barrier_new(MPI_Comm comm);

/* All return what MPI says. */
int ek_shared_notify(struct ek_shared_barrier *b, uint64_t value, struct ek_shared_caller by);
int ek_shared_wait(struct ek_shared_barrier *b, struct ek_shared_caller by);
int ek_shared_barrier(struct ek_shared_barrier *b, uint64_t value, struct ek_shared_caller by);

#endif
