/* calls.c - every call of MPI 3.1, and of MPI 4 where there is it, that waits, moves data or makes a
 * communicator, from C, with checked results; prints how often each was made.
 *
 *	mpirun -np 4 calls
 */
#include "calls.h"

int rank, size;

int main(int argc, char **argv)
{
	CALL(MPI_Init, &argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	EXPECT(size >= 2);

	CALL(MPI_Pcontrol, 1);
	point_to_point();
	completion();
	probing();
	persistent();
	collectives();
	nonblocking_collectives();
	neighbourhoods();
	communicators();
	windows();
	files();
	newer();

	counted_finalize();
	return 0;
}
