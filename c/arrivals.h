/* arrivals.h - when ranks came to the last barriers: how it is kept, see
 * segment.h; how it is asked for, barrier.h.
 */
#ifndef EK_ARRIVALS_H
#define EK_ARRIVALS_H

#include "clock.h"
#include "meeting.h"

/* How this node's ticks become times, the same on all its ranks. Collective over
 * the communicator of the node. */
void ek_arrivals_start(MPI_Comm node_comm);

/* This rank has come to that barrier, about now. */
static inline void ek_arrivals_record(struct meeting *m, uint64_t number)
{
	EK_STORE(m->arrivals->ticks[number % EK_BARRIER_HISTORY], ek_ticks());
	EK_PUBLISH(m->arrivals->recorded, number);
}

/* Puts the times of this node's members into the leader's exchange, */
void ek_arrivals_collect(struct meeting *meeting, uint64_t number);
/* and keeps those of all that came by it. */
void ek_arrivals_keep(struct meeting *meeting, uint64_t number);

#endif
