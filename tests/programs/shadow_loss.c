/* shadow_loss.c - a library that stands before MPI: when it is armed, the next
 * PMPI_Test of a request, or PMPI_Testsome, says that the operation failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int shadow_loss_armed; /* 1: PMPI_Test, 2: PMPI_Testsome */

int PMPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	static int (*next)(MPI_Request *, int *, MPI_Status *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Test");
	if (shadow_loss_armed != 1 || *request == MPI_REQUEST_NULL)
		return next(request, done, status);
	shadow_loss_armed = 0;
	PMPI_Request_free(request);
	return MPI_ERR_OTHER;
}

int PMPI_Testsome(int n, MPI_Request requests[], int *count, int done[], MPI_Status statuses[])
{
	static int (*next)(int, MPI_Request[], int *, int[], MPI_Status[]);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Testsome");
	if (shadow_loss_armed != 2)
		return next(n, requests, count, done, statuses);
	shadow_loss_armed = 0;
	PMPI_Request_free(&requests[0]);
	*count = 1;
	done[0] = 0;
	statuses[0].MPI_ERROR = MPI_ERR_OTHER;
	return MPI_ERR_IN_STATUS;
}
