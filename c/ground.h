/* ground.h - what partitions and split tasks stand on: MPI, the barrier's
 * history, and the decisions, which are made in Go.
 *
 * The sources that include this are compiled twice, into libevenkeel.so and into
 * the Go package balancer/spmd, so they name no symbol of either. In
 * libevenkeel.so MPI is called by way of its own wrappers: a wait inside a step or
 * a halo exchange is in the report like the program's own.
 */
#ifndef EK_GROUND_H
#define EK_GROUND_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "balancer.h"

/* What programs call; nothing of it is exported by a Go program. */
#ifndef EK_EXPORT
#define EK_EXPORT __attribute__((visibility("default")))
#endif

#define EK_GROUND_FUNCTIONS(F)                                                                                       \
	F(Allgather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm))                         \
	F(Allgatherv, (const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm))   \
	F(Allreduce, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))                                    \
	F(Alltoall, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm))                          \
	F(Barrier, (MPI_Comm))                                                                                       \
	F(Bcast, (void *, int, MPI_Datatype, int, MPI_Comm))                                                         \
	F(Cancel, (MPI_Request *))                                                                                    \
	F(Comm_dup, (MPI_Comm, MPI_Comm *))                                                                          \
	F(Comm_free, (MPI_Comm *))                                                                                   \
	F(Comm_rank, (MPI_Comm, int *))                                                                              \
	F(Comm_size, (MPI_Comm, int *))                                                                              \
	F(Comm_set_errhandler, (MPI_Comm, MPI_Errhandler))                                                           \
	F(Comm_split_type, (MPI_Comm, int, int, MPI_Info, MPI_Comm *))                                               \
	F(Comm_test_inter, (MPI_Comm, int *))                                                                        \
	F(Finalized, (int *))                                                                                        \
	F(Iallgather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Request *))         \
	F(Ibarrier, (MPI_Comm, MPI_Request *))                                                                       \
	F(Initialized, (int *))                                                                                      \
	F(Iprobe, (int, int, MPI_Comm, int *, MPI_Status *))                                                         \
	F(Irecv, (void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))                                     \
	F(Isend, (const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))                               \
	F(Recv, (void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *))                                       \
	F(Reduce, (const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm))                                  \
	F(Send, (const void *, int, MPI_Datatype, int, int, MPI_Comm))                                               \
	F(Test, (MPI_Request *, int *, MPI_Status *))                                                                \
	F(Type_commit, (MPI_Datatype *))                                                                             \
	F(Type_contiguous, (int, MPI_Datatype, MPI_Datatype *))                                                      \
	F(Type_free, (MPI_Datatype *))                                                                               \
	F(Waitall, (int, MPI_Request *, MPI_Status *))                                                               \
	F(Win_allocate_shared, (MPI_Aint, int, MPI_Info, MPI_Comm, void *, MPI_Win *))                               \
	F(Win_shared_query, (MPI_Win, int, MPI_Aint *, int *, void *))                                               \
	F(Win_free, (MPI_Win *))

struct ek_ground {
#define EK_GROUND_MEMBER(name, parameters) int (*name) parameters;
	EK_GROUND_FUNCTIONS(EK_GROUND_MEMBER)
#undef EK_GROUND_MEMBER
	/* MPI's constants, which mpi.h names as data symbols. */
	MPI_Comm comm_null;
	MPI_Datatype byte, int64, uint64, real;
	MPI_Op min, sum;
	MPI_Errhandler errors_return;
	MPI_Info info_null;
	MPI_Win win_null;
	/* See barrier.h; null where libevenkeel.so is not loaded. */
	uint64_t (*barrier_passed)(MPI_Comm);
	bool (*barrier_arrivals)(MPI_Comm, uint64_t number, uint64_t arrived_ns[]);
	/* How many collective operations on the communicator were recorded: the same on all
	 * members between two of them; 0: nothing is recorded. Null like those. */
	uint64_t (*collectives)(MPI_Comm);
	/* When this thread came to the last one since then that is known, CLOCK_MONOTONIC, and
	 * how long it was inside those before; 0: none is known. Null like those. */
	uint64_t (*last_collective)(MPI_Comm, uint64_t since_ns, uint64_t *inside_ns);
	/* Counts for the report; null like those. */
	void (*moved)(int64_t early); /* early: messages whose receives were begun before */
	void (*hidden)(uint64_t ns);
	/* The same on all ranks; null: partitions stay even. */
	const struct ek_balancer *(*balancer)(void);
};

/* Null, and the reason as this thread's last error, outside MPI_Init and
 * MPI_Finalize. */
const struct ek_ground *ek_ground(void);

/* libevenkeel.so's own of these, which a Go program looks for. */
uint64_t ek_collectives(MPI_Comm comm);
uint64_t ek_last_collective(MPI_Comm comm, uint64_t since_ns, uint64_t *inside_ns);
void ek_count_moved(int64_t early);
void ek_count_hidden(uint64_t ns);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t ek_ground_now(void);

/* First in a function that programs call, if it calls MPI: what it calls counts as
 * called where the program, not one of these functions, has called it. */
#define EK_FOR_CALLER                                                                                                  \
	__attribute__((cleanup(ek_ground_leave))) const void *ek_before =                                              \
	        ek_ground_enter(__builtin_return_address(0), __builtin_frame_address(0))
/* Where the function was called, and its frame, whose first word is its caller's. */
const void *ek_ground_enter(const void *address, const void *frame);
void ek_ground_leave(const void **before);

#endif
