/* room.h - the shadow buffers of a node, which are Open MPI's own.
 *
 * What is said here of Open MPI is of its `vader` transport, which version 5 calls
 * `sm`, under the `ob1` engine. To each peer of the node leads a ring of 4096 bytes (its
 * "fast box"), of which a message takes an entry of 32 bytes or more; data that
 * are not in the entry itself lie in a fragment, a buffer in the sender's part
 * of the shared memory. That is an injection FIFO with its shadow buffers, but
 * MPI_Send does not use it so: above 256 bytes it waits until the receiver has
 * given the fragment back, since the transport says that it sends from where the
 * data lie (the flag "inplace"). Without that flag ob1 copies the message into
 * the fragment, or a derived type by its program, and is done.
 *
 * So that is asked for in MPI_Init, by Open MPI's parameters, with an eager limit
 * of EVENKEEL_SHADOW_LIMIT, EVENKEEL_SHADOW_SLOTS fragments and memory for them.
 * All of it concerns the sender alone: other ranks need not do the same, and
 * matching, order and statuses are MPI's. What happens when a ring is full is in
 * ring.h.
 */
#ifndef EK_ROOM_H
#define EK_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/* Before MPI_Init: asks for it, unless the user has set one of the parameters
 * or /dev/shm is too small. `slots` messages of up to `limit` bytes. `when` is
 * EK_SHADOW_ROOM_AUTO, _0 or _1; by the first not where ranks have to share processors:
 * there a send that waits for its receiver lets another rank compute meanwhile, and
 * keeps the ranks together. Without that wait some run ahead, until all have to wait
 * for one that has fallen behind. */
void ek_room_ask(int when, long slots, size_t limit);

/* Before MPI_Init: asks for more fragments of one long message under way than Open
 * MPI's three, unless the user has set how many. That is where data of derived
 * datatypes, which no rank can fetch from another's memory, are packed into and
 * unpacked from: with three, sender and receiver wait for each other in turns. */
void ek_room_ask_depth(bool wanted);

/* After MPI_Init: leaves the environment as it was. */
void ek_room_asked(void);

/* After MPI_Init: whether messages to ranks of this node are copied by MPI, up to
 * its eager limit, and their senders go on. */
bool ek_room_given(void);

/* The value of one of Open MPI's parameters, where it is kept; null if there is
 * none of that name. */
const void *ek_room_parameter(const char *name);

#endif
