/* gsm_hold.c - joins a job of global shared memory, allocates, and holds that
 * until it is killed.
 *
 *	mpirun -np N gsm_hold BYTES
 *
 * Ends with 2 if it can't join, and 3 if it can't allocate; says why on stderr.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refused(int status)
{
	fprintf(stderr, "%s\n", ek_gsm_error());
	MPI_Finalize();
	return status;
}

int main(int argc, char **argv)
{
	struct ek_gsm *job;
	void *memory;
	uint64_t bytes = argc > 1 ? strtoull(argv[1], 0, 10) : 4096;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job) != EK_OK)
		return refused(2);
	if (ek_gsm_allocate(job, bytes, &memory) != EK_OK)
		return refused(3);
	memset(memory, 1, bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("held");
	fflush(stdout);
	pause();
	return 0;
}
