/* shadow.h - shadow buffers: small MPI_Send and MPI_Isend that return at once.
 *
 * A process has a fixed set of buffers, each tied to one slot. A message of a
 * class that is configured is copied into the buffer of a free slot and handed
 * to MPI from there, with the same type, destination, tag and communicator, and
 * the call returns complete: the program never waits for a busy receiver, and
 * never tracks the transfer. Since MPI gets it in the call itself, it keeps its
 * place among all that the program sends, and the receiver sees no difference.
 *
 *   free -- a send takes it --> in flight -- MPI has sent it --> free
 *
 * Slots in flight stand in the injection FIFO, oldest first. MPI moves them on
 * whenever the program calls MPI; they are given back when another one is
 * needed. Without a free slot a message takes the plain path, MPI's own.
 *
 * By default (EVENKEEL_SHADOW_ROUTE=auto) only messages go this way
 *   - that need it: MPI itself copies what is not above EK_SHADOW_INLINE bytes
 *     and does not wait, as long as the ring to the receiver has room;
 *   - that reach their receiver without the sender's further help, since a
 *     sender that computes would hold it up otherwise: room.h;
 *   - and, above MPI's eager limit, where the copy costs more than it saves if
 *     the receiver is never late, to ranks that were late not long ago.
 */
#ifndef EK_SHADOW_H
#define EK_SHADOW_H

/* In MPI_Init, after everything else is known: MPI_Send and MPI_Isend go
 * through here from now on, if the settings want it and there is memory. */
void ek_shadow_start(void);

/* In MPI_Finalize, when MPI_Send is MPI's own again: waits until what went to
 * other nodes is sent. What went to this node has arrived once all its ranks
 * have come to MPI_Finalize and so have received what they were to receive. */
void ek_shadow_stop(void);

#endif
