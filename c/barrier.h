/* barrier.h - MPI_Barrier over the node's memory, and the arrival times that it
 * leaves: after a barrier all members of the communicator hold the same ones.
 */
#ifndef EK_BARRIER_H
#define EK_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "next.h"

/* What a rank says of itself where the communicators are set up. */
struct ek_barrier_place {
	MPI_Comm node_comm; /* the ranks of this node; only used during the call */
	int node, nodes;
};

/* From here on MPI_Barrier goes over the node's memory, if all ranks are for it.
 * Collective over MPI_COMM_WORLD, in MPI_Init, after the nodes' clocks were
 * compared. */
void ek_barrier_start(struct ek_barrier_place place);

/* MPI_Barrier is MPI's own again. In MPI_Finalize, on all ranks. */
void ek_barrier_stop(void);

/* How many barriers of the communicator this rank has passed over the node's
 * memory. The same on all members between two barriers. */
uint64_t ek_barrier_passed(MPI_Comm comm);

/* When each rank of the communicator arrived at barrier `number`, of those that
 * ek_barrier_passed counts, from 0: in nanoseconds of the CLOCK_MONOTONIC of the
 * world's node 0, by rank. The same on all members. False: it is not, or no
 * longer, known: the last EK_BARRIER_HISTORY - 2 are. To be called between
 * barriers of the communicator, or by a thread that can live with a false. */
bool ek_barrier_arrivals(MPI_Comm comm, uint64_t number, uint64_t arrived_ns[]);

#endif
