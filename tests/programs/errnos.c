/* errnos.c - whether errno comes through MPI calls as MPI left it.
 *
 *	mpirun -np 2 -x LD_PRELOAD=…:libmpi_errno.so errnos
 *
 * The library of errnos_mpi.c stands for MPI: each of its functions finds out
 * whether it is entered with errno as it was in the program, and leaves
 * another one behind, which is to be found in the program. Calls come from new
 * places, on new communicators and from new threads, since what a tool does
 * then may fail inside.
 */
#include "errnos.h"

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static int failures;

#define TRY(call)                                                                       \
	do {                                                                            \
		errno = ERRNO_OF_PROGRAM;                                               \
		call;                                                                   \
		if (errno != ERRNO_OF_MPI) {                                            \
			printf("%s:%d: errno is %d after %s\n", __FILE__, __LINE__, errno, #call); \
			failures++;                                                     \
		}                                                                       \
	} while (0)

static void *in_thread(void *comm)
{
	TRY(MPI_Barrier(*(MPI_Comm *)comm));
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, word = 0;
	MPI_Comm copy;
	MPI_Datatype column;
	pthread_t thread;

	TRY(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	TRY(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = 0; i < 1000; i++)
		TRY(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	TRY(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
	TRY(MPI_Barrier(copy));
	pthread_create(&thread, NULL, in_thread, &copy);
	pthread_join(thread, NULL);
	TRY(MPI_Comm_free(&copy));
	MPI_Type_vector(3, 1, 2, MPI_INT, &column);
	TRY(MPI_Type_commit(&column));
	MPI_Type_free(&column);
	TRY(MPI_Pcontrol(1, "a region"));
	TRY(MPI_Pcontrol(1, (const char *)1));
	TRY(MPI_Pcontrol(-1, "a region"));
	TRY(MPI_Finalize());
	return failures != 0;
}
