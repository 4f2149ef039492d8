/* shadow_room.c - what Open MPI's parameters are after MPI_Init, which evenkeel
 * asks for by environment variables, and whether these are there still.
 *
 *	mpirun -np N shadow_room NAME...
 *
 * Each rank prints a line of its rank, the parameters' values, and how many of
 * them are in its environment.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that is asked for are numbers, of 4 or of 8 bytes. */
static unsigned long long value_of(const char *name)
{
	MPI_T_cvar_handle handle;
	MPI_Datatype type;
	int index, count, size;
	unsigned long long value = 0;
	unsigned narrow = 0;
	if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
	    MPI_T_cvar_get_info(index, 0, 0, 0, &type, 0, 0, 0, 0, 0) != MPI_SUCCESS ||
	    MPI_T_cvar_handle_alloc(index, 0, &handle, &count) != MPI_SUCCESS)
		return 0;
	MPI_Type_size(type, &size);
	if (size == sizeof narrow) {
		MPI_T_cvar_read(handle, &narrow);
		value = narrow;
	} else {
		MPI_T_cvar_read(handle, &value);
	}
	MPI_T_cvar_handle_free(&handle);
	return value;
}

int main(int argc, char **argv)
{
	char line[1024], variable[128];
	int rank, provided, left = 0, length;
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	length = snprintf(line, sizeof line, "%d:", rank);
	for (int i = 1; i < argc; i++) {
		snprintf(variable, sizeof variable, "OMPI_MCA_%s", argv[i]);
		left += getenv(variable) != 0;
		length += snprintf(line + length, sizeof line - (size_t)length, " %llu", value_of(argv[i]));
	}
	snprintf(line + length, sizeof line - (size_t)length, " %d", left);
	puts(line);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
