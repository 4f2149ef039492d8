/* barrier_loss.c - a barrier of several nodes that MPI fails to do.
 *
 *	mpirun -np 2 barrier_loss
 *
 * A rank on each of two nodes, with a library that has their leaders' exchange
 * fail. Prints on rank 0 what the barrier returned and which error handler was
 * called.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int rank;

static void handler(MPI_Comm *comm, int *code, ...)
{
	char name[MPI_MAX_OBJECT_NAME];
	int length;

	MPI_Comm_get_name(*comm, name, &length);
	if (rank == 0)
		printf("handler of %s: %d\n", name, *code);
}

static void meet(MPI_Comm comm)
{
	int result = MPI_Barrier(comm);
	if (rank == 0)
		printf("returned %d\n", result);
}

int main(int argc, char **argv)
{
	MPI_Errhandler ours;
	MPI_Comm copy;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_create_errhandler(handler, &ours);
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Comm_set_name(copy, "copy");
	MPI_Comm_set_errhandler(copy, ours);
	meet(copy);
	*(int *)dlsym(RTLD_DEFAULT, "loss_armed") = 3;
	meet(copy);
	meet(copy);
	MPI_Comm_free(&copy);
	MPI_Errhandler_free(&ours);
	MPI_Finalize();
	return 0;
}
