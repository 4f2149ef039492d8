/* barrier_freed.c - whether communicators that met in barriers leave memory behind.
 *
 *	mpirun -np N barrier_freed
 *
 * Prints on rank 0 how many bytes of the heap are in use more after very many of
 * them than after a few, and how many after as many that did not meet.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>

enum { FEW = 100, MANY = 300 };

static long left_by(int count, int meets)
{
	size_t before = mallinfo2().uordblks;

	for (int i = 0; i < count; i++) {
		MPI_Comm comm;
		MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
		if (meets)
			MPI_Barrier(comm);
		MPI_Comm_free(&comm);
	}
	return (long)(mallinfo2().uordblks - before);
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	left_by(FEW, 1);
	long met = left_by(MANY, 1), alone = left_by(MANY, 0);
	if (rank == 0)
		printf("met %ld\nalone %ld\n", met, alone);
	MPI_Finalize();
	return 0;
}
