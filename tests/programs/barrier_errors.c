/* barrier_errors.c - barriers that are wrong, or are none of evenkeel's.
 *
 *	mpirun -np 4 barrier_errors
 *
 * Prints on rank 0 what each call returned and which error handler was called
 * how, to be compared with what the program prints without evenkeel.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;
static unsigned char nothing[4096];

static void say(const char *what, int result)
{
	char text[MPI_MAX_ERROR_STRING];
	int length, class;

	MPI_Error_class(result, &class);
	MPI_Error_string(result, text, &length);
	if (rank == 0)
		printf("%s: class %d, %s\n", what, class, text);
}

static void handler(MPI_Comm *comm, int *code, ...)
{
	char name[MPI_MAX_OBJECT_NAME];
	int length;

	MPI_Comm_get_name(*comm, name, &length);
	if (rank == 0)
		printf("handler of %s called with %d\n", name, *code);
}

int main(int argc, char **argv)
{
	MPI_Errhandler ours;
	MPI_Comm half, inter, merged, copy;
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_create_errhandler(handler, &ours);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, ours);

	memset(nothing, 0xff, sizeof nothing);
	for (int i = 0; i < 3; i++) {
		say("no communicator", MPI_Barrier((MPI_Comm)(void *)nothing));
		say("MPI_COMM_NULL", MPI_Barrier(MPI_COMM_NULL));
		say("no pointer", MPI_Barrier(NULL));
		say("the world", MPI_Barrier(MPI_COMM_WORLD));
		say("the rank itself", MPI_Barrier(MPI_COMM_SELF));
	}
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
	MPI_Intercomm_merge(inter, rank % 2, &merged);
	for (int i = 0; i < 20; i++) {
		say("an intercommunicator", MPI_Barrier(inter));
		say("a merged one", MPI_Barrier(merged));
		say("a half", MPI_Barrier(half));
	}
	MPI_Comm_dup(half, &copy);
	say("a copy", MPI_Barrier(copy));
	MPI_Comm_free(&copy);
	say("a freed one", MPI_Barrier(copy));
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Errhandler_free(&ours);
	MPI_Finalize();
	return 0;
}
