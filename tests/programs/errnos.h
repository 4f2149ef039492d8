/* errnos.h - the values of errno in errnos.c and errnos_mpi.c: none that a
 * system call gives. */
#ifndef ERRNOS_H
#define ERRNOS_H

enum { ERRNO_OF_PROGRAM = 4711, ERRNO_OF_MPI = 4712 };

#endif
