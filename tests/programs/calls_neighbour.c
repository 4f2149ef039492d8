/* Neighbourhood collectives on a periodic line of ranks: the neighbours of
 * each are the previous and the next one, in this order. */
#include "calls.h"

#include <stddef.h>

static int previous, next;
static MPI_Comm line;

static void blocking(void)
{
	int ones[2] = {1, 1}, places[2] = {0, 1};
	MPI_Aint byte_places[2] = {0, sizeof(int)};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};
	int out[2] = {10 * rank, 10 * rank + 1}, in[2] = {-1, -1};

	CALL(MPI_Neighbor_allgather, &rank, 1, MPI_INT, in, 1, MPI_INT, line);
	EXPECT(in[0] == previous && in[1] == next);
	CALL(MPI_Neighbor_allgatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, line);
	EXPECT(in[0] == 10 * previous && in[1] == 10 * next);
	/* With two ranks both neighbours are the same one, and MPI 3.1 does not
	 * say which of its two words comes first. */
	CALL(MPI_Neighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, line);
	EXPECT(in[0] / 10 == previous && in[1] / 10 == next && in[0] % 10 != in[1] % 10);
	CALL(MPI_Neighbor_alltoallv, out, ones, places, MPI_INT, in, ones, places, MPI_INT, line);
	EXPECT(in[0] / 10 == previous && in[1] / 10 == next && in[0] % 10 != in[1] % 10);
	CALL(MPI_Neighbor_alltoallw, out, ones, byte_places, types, in, ones, byte_places, types,
	     line);
	EXPECT(in[0] / 10 == previous && in[1] / 10 == next && in[0] % 10 != in[1] % 10);
}

static void nonblocking(void)
{
	int ones[2] = {1, 1}, places[2] = {0, 1};
	MPI_Aint byte_places[2] = {0, sizeof(int)};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};
	int out[2] = {10 * rank, 10 * rank + 1}, in[5][2];
	MPI_Request requests[5];

	CALL(MPI_Ineighbor_allgather, out, 1, MPI_INT, in[0], 1, MPI_INT, line, &requests[0]);
	CALL(MPI_Ineighbor_allgatherv, out, 1, MPI_INT, in[1], ones, places, MPI_INT, line,
	     &requests[1]);
	CALL(MPI_Ineighbor_alltoall, out, 1, MPI_INT, in[2], 1, MPI_INT, line, &requests[2]);
	CALL(MPI_Ineighbor_alltoallv, out, ones, places, MPI_INT, in[3], ones, places, MPI_INT,
	     line, &requests[3]);
	CALL(MPI_Ineighbor_alltoallw, out, ones, byte_places, types, in[4], ones, byte_places,
	     types, line, &requests[4]);
	CALL(MPI_Waitall, 5, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 5; i++)
		EXPECT(in[i][0] / 10 == previous && in[i][1] / 10 == next);
}

void neighbourhoods(void)
{
	int periodic = 1;

	CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
	MPI_Cart_shift(line, 0, 1, &previous, &next);
	blocking();
	nonblocking();
	CALL(MPI_Comm_free, &line);
}
