/* loss.c - a library that stands before MPI: when it is armed, the next
 * PMPI_Test of a request, PMPI_Testsome or PMPI_Sendrecv says that the operation
 * failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int loss_armed; /* 1: PMPI_Test, 2: PMPI_Testsome, 3: PMPI_Sendrecv */

int PMPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	static int (*next)(MPI_Request *, int *, MPI_Status *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Test");
	if (loss_armed != 1 || *request == MPI_REQUEST_NULL)
		return next(request, done, status);
	loss_armed = 0;
	PMPI_Request_free(request);
	return MPI_ERR_OTHER;
}

int PMPI_Testsome(int n, MPI_Request requests[], int *count, int done[], MPI_Status statuses[])
{
	static int (*next)(int, MPI_Request[], int *, int[], MPI_Status[]);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Testsome");
	if (loss_armed != 2)
		return next(n, requests, count, done, statuses);
	loss_armed = 0;
	PMPI_Request_free(&requests[0]);
	*count = 1;
	done[0] = 0;
	statuses[0].MPI_ERROR = MPI_ERR_OTHER;
	return MPI_ERR_IN_STATUS;
}

/* What it is to receive is left to the one after it. */
int PMPI_Sendrecv(const void *out, int sent, MPI_Datatype sent_type, int to, int sent_tag, void *in, int received,
                  MPI_Datatype received_type, int from, int received_tag, MPI_Comm comm, MPI_Status *status)
{
	static int (*next)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
	                   MPI_Status *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Sendrecv");
	if (loss_armed != 3)
		return next(out, sent, sent_type, to, sent_tag, in, received, received_type, from, received_tag, comm, status);
	loss_armed = 0;
	return MPI_ERR_OTHER;
}
