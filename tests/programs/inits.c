/* inits.c - the ways to start MPI.
 *
 *	mpirun -np 2 inits none|single|funneled|serialized|multiple
 *
 * "none" is MPI_Init, the others are levels of MPI_Init_thread.
 */
#include "counted.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
	static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED,
				     MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
	const char *name = argc > 1 ? argv[1] : "none";
	int level = 0, provided, queried, initialized, finalized, one = 1, sum = 0, size;

	MPI_Initialized(&initialized);
	EXPECT(!initialized);
	if (strcmp(name, "none") == 0) {
		CALL(MPI_Init, NULL, NULL);
	} else {
		while (level < 4 && strcmp(name, names[level]) != 0)
			level++;
		if (level == 4) {
			fprintf(stderr, "inits: unknown level %s\n", name);
			return 2;
		}
		CALL(MPI_Init_thread, &argc, &argv, levels[level], &provided);
		MPI_Query_thread(&queried);
		EXPECT(provided >= levels[level] && queried == provided);
	}
	MPI_Initialized(&initialized);
	MPI_Finalized(&finalized);
	EXPECT(initialized && !finalized);

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT(sum == size);
	counted_finalize();
	return 0;
}
