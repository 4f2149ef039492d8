/* late_fortran.c - a C program that loads a Fortran library, and with it the
 * Fortran side of MPI, after MPI_Init, as Python modules do.
 *
 *	mpirun -np 2 late_fortran
 */
#include "counted.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { BARRIERS = 10 };

int main(int argc, char **argv)
{
	void (*barriers)(int);
	void *library;

	CALL(MPI_Init, &argc, &argv);
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	library = dlopen("liblate_fortran.so", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "late_fortran: %s\n", dlerror());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	*(void **)&barriers = dlsym(library, "late_barriers");
	EXPECT(barriers != NULL);
	barriers(BARRIERS);
	for (int i = 0; i < BARRIERS; i++)
		counted("MPI_Barrier", MPI_SUCCESS, __FILE__, __LINE__);
	counted_finalize();
	return 0;
}
