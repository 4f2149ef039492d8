/* shadow_loss.c - a library that stands before MPI: when it is armed, the next
 * PMPI_Test of a request says that the operation failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int shadow_loss_armed;

int PMPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	static int (*next)(MPI_Request *, int *, MPI_Status *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Test");
	if (!shadow_loss_armed || *request == MPI_REQUEST_NULL)
		return next(request, done, status);
	shadow_loss_armed = 0;
	PMPI_Request_free(request);
	return MPI_ERR_OTHER;
}
