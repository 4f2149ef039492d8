/* own_binding.h - recording the waits in functions of evenkeel's own that are not in
 * libevenkeel.so: those of Go packages, by way of mpi/own. They look for the symbol
 * ek_own_binding, which is there if the library is preloaded.
 *
 * A call begins and ends on the same thread. What the thread calls meanwhile of MPI, or
 * of such functions, is a part of it.
 */
#ifndef EK_OWN_BINDING_H
#define EK_OWN_BINDING_H

#include <mpi.h>
#include <stdint.h>

/* One operation of a communicator, as the rank knows it; null: none is recorded. */
struct ek_own_operation {
	const void *comm;
	uint64_t sequence;
};

struct ek_own_binding {
	uint64_t size;
	/* The number of a function that mpi.table names; -1: it does not. */
	int (*function)(const char *name);
	/* It was called from `site`, and waits for the communicator, or for one rank of it. */
	void (*begin)(int function, uintptr_t site, MPI_Comm comm, int rank);
	void (*end)(void);
	/* Which operation the open call is; and that it completes an earlier one. */
	struct ek_own_operation (*operation)(void);
	void (*join)(struct ek_own_operation operation);
};

#endif
