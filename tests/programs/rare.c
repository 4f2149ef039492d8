/* rare.c - one long wait among calls that come thick and fast.
 *
 *	mpirun -np 2 rare barrier|pingpong CALLS
 *
 * Halfway, rank 1 sleeps for a second, so that rank 0 waits for it in a call
 * like all the others. Rank 1 prints how long it slept.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank;

static void meet(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void to_and_fro(void)
{
	char word[8] = "";

	if (rank == 0) {
		MPI_Send(word, sizeof word, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
		MPI_Recv(word, sizeof word, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(word, sizeof word, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(word, sizeof word, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
	}
}

static void oversleep(void)
{
	const struct timespec second = {1, 0};
	double began = MPI_Wtime();

	nanosleep(&second, 0);
	printf("slept %f\n", MPI_Wtime() - began);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	void (*way)(void) = argc > 1 && strcmp(argv[1], "pingpong") == 0 ? to_and_fro : meet;
	long calls = argc > 2 ? atol(argv[2]) : 0;

	for (long i = 0; i < calls; i++) {
		if (i == calls / 2 && rank == 1)
			oversleep();
		way();
	}
	MPI_Finalize();
	return 0;
}
