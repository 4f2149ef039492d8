/* inits.c - the ways to start MPI.
 *
 *	mpirun -np 2 inits none|single|funneled|serialized|multiple [thread]
 *
 * "none" is MPI_Init, the others are levels of MPI_Init_thread. With "thread" another
 * thread calls MPI too, while the main one waits for it.
 */
#include "counted.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *look_for_a_message(void *unused)
{
	int found;

	CALL(MPI_Iprobe, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	EXPECT(!found);
	return unused;
}

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
	if (argc > 2) {
		pthread_t other;

		EXPECT(pthread_create(&other, NULL, look_for_a_message, NULL) == 0);
		pthread_join(other, NULL);
	}
	counted_finalize();
	return 0;
}
