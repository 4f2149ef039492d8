/* meet.c - what a barrier takes, in time and in processor time.
 *
 *	mpirun -np N meet [BARRIERS]
 *
 * Prints nanoseconds per barrier on MPI_COMM_WORLD, and of processor time on all
 * ranks.
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double processor_time(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return seconds(used.ru_utime) + seconds(used.ru_stime);
}

int main(int argc, char **argv)
{
	long barriers = argc > 1 ? atol(argv[1]) : 20000;
	double begin, time, own, all;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < barriers / 10 + 1; i++) /* to warm up */
		MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	own = processor_time();
	for (long i = 0; i < barriers; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	time = MPI_Wtime() - begin;
	own = processor_time() - own;
	MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.2f %.2f\n", 1e9 * time / (double)barriers, 1e9 * all / (double)barriers);
	MPI_Finalize();
	return 0;
}
