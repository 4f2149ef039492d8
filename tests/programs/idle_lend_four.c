/* idle_lend_four.c - whom ranks that wait lend to: ranks 0 and 1 have one core, 2 and 3 another.
 *
 *	mpirun -np 4 --bind-to none sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK / 2)) idle_lend_four'
 *
 * Rank 0 waits at once and rank 1 a while later, as long as rank 2 computes; rank 3 computes
 * half of that, and then waits too. Prints how many cores ranks 2 and 3 were lent at most.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static void compute(double seconds, int *lent)
{
	for (double begun = MPI_Wtime(); MPI_Wtime() - begun < seconds;)
		*lent = ek_lent_cores() > *lent ? ek_lent_cores() : *lent;
}

int main(int argc, char **argv)
{
	const struct timespec later = {0, 200000000};
	int rank, lent = 0, all[4];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank >= 2)
		compute(rank == 2 ? 1.6 : 0.8, &lent);
	if (rank == 1)
		nanosleep(&later, NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Gather(&lent, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("rank 2 %d\nrank 3 %d\n", all[2], all[3]);
	MPI_Finalize();
	return 0;
}
