/* barrier_room.c - barriers of several nodes where /dev/shm is full.
 *
 *	mpirun -np N barrier_room
 *
 * A rank on each node takes all that is left of its /dev/shm, which must be
 * small. Then all meet. Prints on rank 0 whether the arrivals are known.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 64, BARRIERS = 40 };

static const char *const file = "/dev/shm/barrier_room";

static void take_all(void)
{
	static char megabyte[1 << 20];
	int room = open(file, O_WRONLY | O_CREAT, 0600);

	while (write(room, megabyte, sizeof megabyte) > 0)
		;
	close(room);
}

int main(int argc, char **argv)
{
	bool (*arrivals)(MPI_Comm, uint64_t, uint64_t *);
	uint64_t times[RANKS];
	int rank, known;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	take_all();
	for (int i = 0; i < BARRIERS; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	*(void **)&arrivals = dlsym(RTLD_DEFAULT, "ek_barrier_arrivals");
	known = arrivals(MPI_COMM_WORLD, BARRIERS - 1, times);
	unlink(file);
	if (rank == 0)
		printf("known %d\nbarriers %d\n", known, BARRIERS * 2);
	MPI_Finalize();
	return 0;
}
