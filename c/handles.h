/* handles.h - communicators, and what belongs to one: windows and files.
 *
 * A handle of C or Fortran leads to the communicator's entry in the segment
 * with one look into a hash table. Communicators enter the table when they
 * are made (all members make them in the same order, which is what gives them
 * the same id everywhere without a message) and leave it when they are freed.
 * A handle that is not there is never looked into, since it may be invalid,
 * and MPI is to say so: it counts for entry 0, "other communicators".
 */
#ifndef EK_HANDLES_H
#define EK_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "next.h"
#include "process.h"

/* Keys: C handles are addresses; Fortran's are numbers, told apart by kind; a
 * communicator's entry may be named by its number too. */
enum { EK_F_COMM = 1, EK_F_WIN = 2, EK_F_FILE = 3, EK_F_REQUEST = 4, EK_ENTRY = 5 };
#define EK_NO_HANDLE 0
#define EK_C_KEY(handle) ((uint64_t)(uintptr_t)(handle))
#define EK_F_KEY(kind, handle) ((uint64_t)(kind) << 56 | (uint32_t)(handle))

enum { EK_COMM_NONE = 0, EK_COMM_WORLD = 1, EK_COMM_SELF = 2 };

/* This process's own view of a communicator. */
struct ek_comm_local {
	struct ek_comm *shared;    /* its entry in the segment */
	uint64_t seed;             /* equal on all members: which operations are timed */
	uint16_t *peers;           /* world rank of each rank that a message may go to */
	unsigned peer_count;
	uint32_t neighbour_room;   /* words that its entry has for neighbours */
	uint16_t index;
};

struct ek_handle {
	uint64_t key; /* 0: free, 1: was used */
	const struct ek_comm_local *comm;
};

enum { EK_HANDLE_BITS = 12 };
extern struct ek_handle ek_handles[1 << EK_HANDLE_BITS];
extern struct ek_comm_local ek_comms_local[EK_COMMS];

static inline uint64_t ek_handle_home(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15ull >> (64 - EK_HANDLE_BITS);
}

const struct ek_comm_local *ek_handle_search(uint64_t key);

static inline const struct ek_comm_local *ek_handle_find(uint64_t key)
{
	struct ek_handle *home = &ek_handles[ek_handle_home(key)];
	if (EK_LIKELY(__atomic_load_n(&home->key, __ATOMIC_ACQUIRE) == key))
		return EK_LOAD(home->comm);
	return ek_handle_search(key);
}

/* The number of the operation that begins now. Collectives on one
 * communicator come one after the other, also from several threads, so one
 * writer at a time is MPI's own rule; entry 0 alone stands for many. */
static inline uint64_t ek_comm_next(const struct ek_comm_local *comm)
{
	uint64_t sequence = EK_LOAD(comm->shared->sequence);
	EK_STORE(comm->shared->sequence, sequence + 1);
	return sequence;
}

static inline uint16_t ek_comm_peer(const struct ek_comm_local *comm, int rank)
{
	/* MPI_PROC_NULL of the wrappers of what has no root: nothing to look up. */
	const bool nobody = __builtin_constant_p(rank) && rank < 0;
	if (!nobody && EK_LIKELY((unsigned)rank < comm->peer_count))
		return comm->peers[rank];
	if (rank == MPI_ANY_SOURCE)
		return EK_ANY_PEER;
	return rank < 0 ? EK_NO_PEER : EK_FAR_PEER;
}

struct ek_call;

/* Sets up entries 0 to 2 and the table; false if memory is short. */
bool ek_handles_start(void);
/* `comm`, which may be MPI_COMM_NULL, was made, and all its members are in the
 * communicator of the call that made it, or not (null). */
void ek_comm_made(const struct ek_call *call, MPI_Comm comm);
void ek_comm_dup(const struct ek_call *call, MPI_Comm comm); /* of the call's communicator, not usable yet */
void ek_comm_named(MPI_Comm comm);
void ek_comm_gone(const struct ek_call *call, MPI_Comm comm); /* that the call was about */
void ek_bind(const struct ek_call *call, uint64_t key, bool file); /* a window or file of the call's communicator */
void ek_unbind(const struct ek_call *call, uint64_t key);

static inline MPI_Comm ek_comm_f2c(MPI_Fint comm)
{
	return ek_mpi.Comm_f2c(comm);
}

#endif
