/* ring.h - past a full ring.
 *
 * The ring that leads to a peer of the node (room.h) takes 127 messages. Beyond
 * them Open MPI queues in the sender, where nothing moves on until the sender
 * calls MPI again. But each process also has a list into which all others put
 * fragments, without limit: Open MPI uses it for peers that have no ring (yet).
 * While a ring is full and its receiver takes nothing from it, messages go that
 * way. They may be seen before those in the ring; ob1 numbers messages and
 * matches them in order, as it must where they come by several networks.
 */
#ifndef EK_RING_H
#define EK_RING_H

#include <stdbool.h>

/* While this thread sends what is counted by who has it sent. */
extern __thread bool ek_ring_counts_not;

/* After MPI_Init: from now on, if Open MPI is as it is known here. Also counts
 * the messages that MPI_Send does not wait for and would have waited for. */
void ek_ring_start(void);

/* In MPI_Finalize: all is as it was. */
void ek_ring_stop(void);

#endif
