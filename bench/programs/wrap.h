/* wrap.h - the calls that the libraries compared with evenkeel wrap. The file
 * that includes this defines WRAP(number, function, parameters, arguments),
 * which makes one wrapper. */
#include <mpi.h>

/* The same function in the next library. Only for programs linked to MPI. */
#define FIND_NEXT(function, parameters)                                           \
	static int(*next) parameters;                                             \
	if (__builtin_expect(next == NULL, 0))                                    \
		*(void **)&next = dlsym(RTLD_NEXT, #function);

WRAP(1, MPI_Send,
     (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm),
     (buf, count, type, dest, tag, comm))
WRAP(2, MPI_Recv,
     (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
      MPI_Status *status),
     (buf, count, type, source, tag, comm, status))
WRAP(3, MPI_Isend,
     (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
      MPI_Request *request),
     (buf, count, type, dest, tag, comm, request))
WRAP(4, MPI_Irecv,
     (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
      MPI_Request *request),
     (buf, count, type, source, tag, comm, request))
WRAP(5, MPI_Wait, (MPI_Request * request, MPI_Status *status), (request, status))
WRAP(6, MPI_Barrier, (MPI_Comm comm), (comm))
