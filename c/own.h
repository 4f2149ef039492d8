/* own.h - recording the waits in functions of evenkeel's own as the wrappers record
 * those in MPI's. Which functions, and what they wait for: `own` in mpi.table.
 *
 * What a recorded function calls of MPI, or of the others, is a part of it. So a
 * function that makes or frees communicators can't be one.
 */
#ifndef EK_OWN_H
#define EK_OWN_H

#include "record.h"

/* Who waits: the function that the program called, and from where. */
struct ek_caller {
	uint64_t site;
	uint16_t function;
};
#define EK_CALLER(name) ((struct ek_caller){EK_SITE, EK_##name})

/* A call under way; or none, where nothing is recorded. */
struct ek_own {
	struct ek_call call;
	bool begun;
};

/* `rank` of the communicator that the handle belongs to is whom it waits for;
 * MPI_PROC_NULL if there is none. */
void ek_own_begin(struct ek_own *own, struct ek_caller by, uint64_t handle, int rank, uintptr_t frame);
/* A null handle: nothing is recorded. */
void ek_own_end(struct ek_own *own);

/* The rest of the block is a call by that caller. */
#define EK_OWN(by, handle, rank)                                              \
	__attribute__((cleanup(ek_own_end))) struct ek_own ek_own_call;       \
	ek_own_begin(&ek_own_call, by, handle, rank, EK_FRAME)

#endif
