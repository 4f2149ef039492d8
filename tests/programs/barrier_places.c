/* barrier_places.c - barriers of a communicator for which there is no place at
 * first.
 *
 *	mpirun -np N barrier_places
 *
 * Others take up all places; then one of them is freed. Prints on rank 0 how many
 * barriers of all ranks should have been MPI's, which are those before the eighth
 * on the communicator that came late, and how many there were.
 */
#include <mpi.h>
#include <stdio.h>

enum { PLACES = 64, FREED_AFTER = 5, PLAIN = 7, ALL = 12 };

int main(int argc, char **argv)
{
	MPI_Comm comms[PLACES], late;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < PLACES; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
		MPI_Barrier(comms[i]);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &late);
	for (int i = 1; i <= ALL; i++) {
		MPI_Barrier(late);
		if (i == FREED_AFTER)
			MPI_Comm_free(&comms[PLACES / 2]);
	}
	for (int i = 0; i < PLACES; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
	MPI_Comm_free(&late);
	if (rank == 0)
		printf("plain %d\nbarriers %d\n", PLAIN * size, (PLACES + ALL) * size);
	MPI_Finalize();
	return 0;
}
