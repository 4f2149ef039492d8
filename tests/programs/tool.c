/* tool.c - a profiling tool as there are many: it counts some MPI calls and
 * passes them on, and says in MPI_Finalize how many it saw, in all ranks:
 * "tool MPI_Barrier N".
 *
 * Built three times: a library that passes on to the next definition of the
 * same name (-DCHAIN), one that calls PMPI as the MPI standard proposes, and
 * the same as a part of a program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARRIER, ALLREDUCE, SEND, COMM_DUP, FUNCTIONS };

static const char *const names[FUNCTIONS] = {"MPI_Barrier", "MPI_Allreduce", "MPI_Send", "MPI_Comm_dup"};
static long calls[FUNCTIONS];

#ifdef CHAIN
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL) {
		fprintf(stderr, "tool: no %s behind this one\n", name);
		abort();
	}
	return found;
}
#define PASS_ON(name, type) ((type)next("MPI_" #name))
#else
#define PASS_ON(name, type) ((type)P##MPI_##name)
#endif

int MPI_Barrier(MPI_Comm comm)
{
	calls[BARRIER]++;
	return PASS_ON(Barrier, int (*)(MPI_Comm))(comm);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	calls[ALLREDUCE]++;
	return PASS_ON(Allreduce, int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))(
		send, receive, count, type, op, comm);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	calls[SEND]++;
	return PASS_ON(Send, int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm))(
		buffer, count, type, to, tag, comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
	calls[COMM_DUP]++;
	return PASS_ON(Comm_dup, int (*)(MPI_Comm, MPI_Comm *))(comm, copy);
}

int MPI_Finalize(void)
{
	long all[FUNCTIONS];
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Reduce(calls, all, FUNCTIONS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < FUNCTIONS; i++)
		printf("tool %s %ld\n", names[i], all[i]);
	fflush(stdout);
	return PASS_ON(Finalize, int (*)(void))();
}
