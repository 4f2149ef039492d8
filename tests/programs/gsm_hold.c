/* gsm_hold.c - joins a job of global shared memory, allocates, gives a few
 * commands, and holds all that until it is killed.
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
	struct ek_gsm_window *w;
	void *memory;
	uint64_t word;
	uint64_t bytes = argc > 1 ? strtoull(argv[1], 0, 10) : 4096;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job) != EK_OK)
		return refused(2);
	if (ek_gsm_allocate(job, bytes, &memory) != EK_OK)
		return refused(3);
	memset(memory, 1, bytes);
	if (ek_gsm_open(job, memory, bytes, EK_GSM_ALL, &w) != EK_OK)
		return refused(4);
	for (int i = 0; i <= rank; i++)
		if (ek_gsm_put(w, ek_gsm_address_of(w, 0), "sixteen bytes...", 16) != EK_OK ||
		    ek_gsm_get64(w, ek_gsm_address_of(w, 0), &word) != EK_OK || ek_gsm_add32(w, ek_gsm_address_of(w, 8), 1) != EK_OK ||
		    ek_gsm_put64(w, ek_gsm_address_of(w, bytes), 1) == EK_OK)
			return refused(5);
	if (ek_gsm_fence(w) != EK_OK)
		return refused(6);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("held");
	fflush(stdout);
	pause();
	return 0;
}
