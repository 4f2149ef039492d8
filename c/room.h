/* room.h - how much Open MPI's shared-memory transport takes from a sender
 * that then leaves MPI: whatever is beyond that waits in the sender's own queue
 * until the sender calls MPI again, and holds up the receiver meanwhile.
 *
 * What is said here of Open MPI is of its `vader` transport under the `ob1`
 * engine, versions 3 and 4. To each peer of the node leads a ring (its "fast
 * box", btl_vader_fbox_size, 4096 bytes) of which a message of up to 256 bytes
 * takes its length and 22 bytes, and any other one entry of 32 bytes, beside a
 * fragment in the sender's segment (btl_vader_free_list_max, 512; up to
 * btl_vader_eager_limit, 4096 bytes, with the data in it, above that with the
 * address alone, from where the receiver copies by itself if it may).
 */
#ifndef EK_ROOM_H
#define EK_ROOM_H

#include <stdbool.h>
#include <stddef.h>

struct ek_room {
	int entries;      /* messages to one peer that its ring takes; 0: not known to be autonomous */
	int fragments;    /* messages to all peers */
	size_t eager;     /* up to which length a message's data are in its fragment */
	bool single_copy; /* longer ones are copied by the receiver without the sender */
};

/* Before MPI_Init: asks for a longer ring and more fragments, if all ranks of
 * this job on this node do, since both ends of a ring must know its length. */
void ek_room_ask(bool wanted);

/* After MPI_Init: leaves the environment and /dev/shm as they were. */
void ek_room_asked(void);

/* After MPI_Init: what there is. */
struct ek_room ek_room_look(void);

#endif
