/* spawn.c - ranks that start other ranks.
 *
 *	mpirun -np 2 --host localhost:16 spawn [multiple]
 *
 * The parents spawn two children of this same program, with "multiple" through
 * MPI_Comm_spawn_multiple, merge with them, and all compute unevenly and meet
 * in barriers: in each world, and in the merged one. Children are slower. Each
 * world prints its own counts, so equal names are to be added up.
 */
#include "counted.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CHILDREN = 2, CYCLES = 50 };

static void compute(double seconds)
{
	struct timespec t;
	double begin, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	begin = now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	while (now < begin + seconds) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	}
}

static void work(MPI_Comm comm, double seconds)
{
	int rank;

	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < CYCLES; i++) {
		compute(seconds * (rank + 1));
		CALL(MPI_Barrier, comm);
	}
}

static void start_children(char *program, int multiple, MPI_Comm *children)
{
	char *commands[CHILDREN] = {program, program};
	int each[CHILDREN] = {1, 1}, errors[CHILDREN];
	MPI_Info infos[CHILDREN] = {MPI_INFO_NULL, MPI_INFO_NULL};

	if (multiple)
		CALL(MPI_Comm_spawn_multiple, CHILDREN, commands, MPI_ARGVS_NULL, each, infos, 0,
		     MPI_COMM_WORLD, children, errors);
	else
		CALL(MPI_Comm_spawn, program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0,
		     MPI_COMM_WORLD, children, errors);
	for (int i = 0; i < CHILDREN; i++)
		EXPECT(errors[i] == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	int size, merged_size, is_child;
	MPI_Comm other, merged;

	CALL(MPI_Init, &argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CALL(MPI_Comm_get_parent, &other);
	is_child = other != MPI_COMM_NULL;
	if (!is_child)
		start_children(argv[0], argc > 1 && strcmp(argv[1], "multiple") == 0, &other);
	CALL(MPI_Intercomm_merge, other, is_child, &merged);
	MPI_Comm_size(merged, &merged_size);
	EXPECT(is_child ? size == CHILDREN && merged_size > CHILDREN
			: merged_size == size + CHILDREN);

	work(MPI_COMM_WORLD, is_child ? 2e-3 : 1e-3);
	work(merged, 1e-3);

	CALL(MPI_Comm_free, &merged);
	CALL(MPI_Comm_disconnect, &other);
	counted_finalize();
	return 0;
}
