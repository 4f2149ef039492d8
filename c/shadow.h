/* shadow.h - shadow buffers: small MPI_Send and MPI_Isend that return at once.
 *
 * A process has a fixed set of buffers, each tied to one slot of an injection
 * FIFO. A message of a class that is configured is copied once into the next free
 * one, and the call returns complete: the program never waits for a busy receiver,
 * and never tracks the transfer. Matching, order and statuses are MPI's, so the
 * receiver sees no difference.
 *
 * On a node Open MPI has such buffers, and is made to use them: room.h and ring.h.
 * Between nodes, and for what is named as control traffic, there are slots here.
 * A message is copied into the buffer of a free slot and handed to MPI from there,
 * with the same type, destination, tag and communicator, in the call itself, so
 * that it keeps its place among all that the program sends:
 *
 *   free -- a send takes it --> in flight -- MPI has sent it --> free
 *
 * Slots in flight stand in the injection FIFO, oldest first. MPI moves them on
 * whenever the program calls MPI; they are given back when another one is
 * needed. Without a free slot a message takes the plain path, MPI's own. So does, by
 * EVENKEEL_SHADOW_ROUTE=history, one to a rank to which MPI sends at once.
 */
#ifndef EK_SHADOW_H
#define EK_SHADOW_H

/* In MPI_Init, after everything else is known: MPI_Send and MPI_Isend go
 * through slots from now on if the settings want it and there is memory. */
void ek_shadow_start(void);

/* In MPI_Finalize, when MPI_Send is MPI's own again: waits until what went to
 * other nodes is sent. What went to this node has arrived once all its ranks
 * have come to MPI_Finalize and so have received what they were to receive. */
void ek_shadow_stop(void);

#endif
