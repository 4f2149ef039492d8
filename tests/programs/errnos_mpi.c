/* errnos_mpi.c - MPI as errnos.c wants it: see there. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "errnos.h"

#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void enter(const char *function)
{
	if (errno == ERRNO_OF_PROGRAM)
		return;
	printf("errno is %d when %s is entered\n", errno, function);
	fflush(stdout);
	_Exit(1);
}

#define LEAVE(call)                 \
	do {                        \
		int result = call;  \
		errno = ERRNO_OF_MPI; \
		return result;      \
	} while (0)

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	enter(__func__);
	LEAVE(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
	enter(__func__);
	LEAVE(PMPI_Finalize());
}

int MPI_Pcontrol(const int level, ...)
{
	enter(__func__);
	LEAVE(PMPI_Pcontrol(level));
}

int MPI_Barrier(MPI_Comm comm)
{
	enter(__func__);
	LEAVE(PMPI_Barrier(comm));
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	enter(__func__);
	LEAVE(PMPI_Allreduce(send, receive, count, type, op, comm));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
	enter(__func__);
	LEAVE(PMPI_Comm_dup(comm, copy));
}

int MPI_Comm_free(MPI_Comm *comm)
{
	enter(__func__);
	LEAVE(PMPI_Comm_free(comm));
}

int MPI_Type_commit(MPI_Datatype *type)
{
	enter(__func__);
	LEAVE(PMPI_Type_commit(type));
}

/* What a tool asks of a datatype may change errno, too. */
int PMPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner)
{
	static int (*next)(MPI_Datatype, int *, int *, int *, int *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Type_get_envelope");
	int result = next(type, integers, addresses, types, combiner);
	errno = EIO;
	return result;
}
