/* barrier_order.h - whether barriers hold: nobody leaves one before all members
 * have come to it.
 *
 * Before a barrier each rank writes its number into a file that all map, also
 * ranks on other hosts, and after it looks at what the other members wrote: they
 * must have come to this barrier, and cannot have come to the one after the next.
 */
#ifndef BARRIER_ORDER_H
#define BARRIER_ORDER_H

#include <mpi.h>
#include <stdint.h>

enum { ORDER_ROWS = 256, ORDER_RANKS = 64 };

/* Maps the file, a new one or one of zeros. Collective over MPI_COMM_WORLD. */
void order_open(const char *path);

/* A communicator under test. */
struct order {
	MPI_Comm comm;
	uint64_t id;      /* grows over the communicators that use a row, the same on all members */
	int row;          /* in the file; of no other communicator at a time */
	int size;
	int ranks[ORDER_RANKS]; /* of its members in MPI_COMM_WORLD */
	uint64_t number;  /* barriers so far */
};

struct order order_of(MPI_Comm comm, uint64_t id, int row);

/* One barrier; ends the job if it does not hold. */
void order_meet(struct order *order);

/* A program's own random numbers, the same everywhere. */
uint64_t order_random(uint64_t *seed);

#endif
