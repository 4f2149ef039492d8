/* neighbours.c - neighbourhood collectives to which the last rank comes late, on
 * communicators with topologies of each kind.
 *
 *	mpirun -np 4 neighbours line|graph|kinds
 *
 *	line   one on a line of all ranks, of which each has those beside it
 *	graph  one on a directed ring: each rank receives from the next one
 *	kinds  none, but communicators with names: see the program
 */
#include <mpi.h>
#include <string.h>
#include <time.h>

static int rank, size;

static MPI_Comm line(MPI_Comm of)
{
	MPI_Comm comm;
	int open = 0;

	MPI_Cart_create(of, 1, &size, &open, 0, &comm);
	return comm;
}

/* Each receives from the rank that is so many places on. */
static MPI_Comm ring(MPI_Comm of, int step)
{
	MPI_Comm comm;
	int source = (rank + step) % size, destination = (rank + size - step) % size;
	int weight = 1; /* MPI_UNWEIGHTED would do, but gcc warns of its address. */

	MPI_Dist_graph_create_adjacent(of, 1, &source, &weight, 1, &destination, &weight, MPI_INFO_NULL, 0, &comm);
	return comm;
}

/* All are neighbours of rank 0, and it of them. */
static MPI_Comm star(MPI_Comm of)
{
	MPI_Comm comm;
	int index[] = {3, 4, 5, 6}, edges[] = {1, 2, 3, 0, 0, 0};

	MPI_Graph_create(of, 4, index, edges, 0, &comm);
	return comm;
}

static void gather(MPI_Comm comm)
{
	struct timespec late = {.tv_nsec = 400000000};
	int mine = rank, theirs[2];

	PMPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		nanosleep(&late, NULL);
	MPI_Neighbor_allgather(&mine, 1, MPI_INT, theirs, 1, MPI_INT, comm);
	PMPI_Barrier(MPI_COMM_WORLD);
}

static void kinds(void)
{
	MPI_Comm comm, copy, parent, backward;
	MPI_Request request;

	comm = line(MPI_COMM_WORLD);
	MPI_Comm_set_name(comm, "line");
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_set_name(copy, "copy");
	MPI_Comm_idup(comm, &copy, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_set_name(copy, "late copy");
	comm = ring(MPI_COMM_WORLD, 1);
	MPI_Comm_set_name(comm, "ring");
	comm = star(MPI_COMM_WORLD);
	MPI_Comm_set_name(comm, "star");
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backward);
	MPI_Comm_set_name(backward, "no topology");
	comm = line(backward);
	MPI_Comm_set_name(comm, "backwards");

	/* These take up the entry of the one that was freed before. */
	MPI_Comm_dup(MPI_COMM_WORLD, &parent);
	for (int i = 0; i < 100; i++) {
		comm = ring(parent, 1);
		MPI_Comm_set_name(comm, "same again");
		MPI_Comm_free(&comm);
		MPI_Comm_dup(parent, &comm);
		MPI_Comm_free(&comm);
	}
	for (int i = 0; i < 100; i++) {
		comm = i % 2 ? line(backward) : ring(backward, 1 + i % 3);
		MPI_Comm_set_name(comm, "others");
		MPI_Comm_free(&comm);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1 && strcmp(argv[1], "line") == 0)
		gather(line(MPI_COMM_WORLD));
	else if (argc > 1 && strcmp(argv[1], "graph") == 0)
		gather(ring(MPI_COMM_WORLD, 1));
	else
		kinds();
	MPI_Finalize();
	return 0;
}
