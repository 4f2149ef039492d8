/* What is new in MPI 4, where there is it: Open MPI 5 has most of it, and calls
 * itself MPI 3.1. */
#include "calls.h"

#if OMPI_MAJOR_VERSION >= 5 || MPI_VERSION >= 4

enum { ROUNDS = 3, PARTITIONS = 4 };

static void both_ways(void)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size, got = -1, own = rank;
	MPI_Request requests[2];

	CALL(MPI_Isendrecv, &rank, 1, MPI_INT, next, 90, &got, 1, MPI_INT, previous, 90, MPI_COMM_WORLD, &requests[0]);
	CALL(MPI_Isendrecv_replace, &own, 1, MPI_INT, next, 91, previous, 91, MPI_COMM_WORLD, &requests[1]);
	CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
	EXPECT(got == previous && own == previous);
}

static void partitioned(void)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size, others[] = {3}, arrived;
	int out[PARTITIONS], in[PARTITIONS];
	MPI_Request requests[2];

	CALL(MPI_Psend_init, out, PARTITIONS, 1, MPI_INT, next, 92, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
	CALL(MPI_Precv_init, in, PARTITIONS, 1, MPI_INT, previous, 92, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PARTITIONS; i++) {
			out[i] = 100 * rank + 10 * round + i;
			in[i] = -1;
		}
		CALL(MPI_Startall, 2, requests);
		CALL(MPI_Pready, 0, requests[0]);
		CALL(MPI_Pready_range, 1, 2, requests[0]);
		CALL(MPI_Pready_list, 1, others, requests[0]);
		CALL(MPI_Parrived, requests[1], 0, &arrived);
		CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
		for (int i = 0; i < PARTITIONS; i++)
			EXPECT(in[i] == 100 * previous + 10 * round + i);
	}
	for (int i = 0; i < 2; i++)
		CALL(MPI_Request_free, &requests[i]);
}

/* Each of them in several rounds, with what the ranks' numbers come to. */
static void persistent_collectives(void)
{
	enum { CALLS = 17, MOST = 64 };
	int sum = size * (size - 1) / 2, before = rank * (rank - 1) / 2, last = size - 1;
	int ones[MOST], places[MOST], bytes[MOST], all[MOST], out[MOST], in[CALLS][MOST];
	MPI_Datatype types[MOST];
	MPI_Request r[CALLS];
	MPI_Comm comm = MPI_COMM_WORLD;

	EXPECT(size <= MOST);
	for (int i = 0; i < size; i++) {
		ones[i] = 1;
		places[i] = i;
		bytes[i] = i * (int)sizeof(int);
		types[i] = MPI_INT;
		all[i] = 1000 * rank + i;
	}
	CALL(MPI_Barrier_init, comm, MPI_INFO_NULL, &r[0]);
	CALL(MPI_Bcast_init, in[1], 1, MPI_INT, last, comm, MPI_INFO_NULL, &r[1]);
	CALL(MPI_Reduce_init, out, in[2], 1, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &r[2]);
	CALL(MPI_Allreduce_init, out, in[3], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[3]);
	CALL(MPI_Gather_init, out, 1, MPI_INT, in[4], 1, MPI_INT, 0, comm, MPI_INFO_NULL, &r[4]);
	CALL(MPI_Gatherv_init, out, 1, MPI_INT, in[5], ones, places, MPI_INT, 0, comm, MPI_INFO_NULL, &r[5]);
	CALL(MPI_Scatter_init, all, 1, MPI_INT, in[6], 1, MPI_INT, last, comm, MPI_INFO_NULL, &r[6]);
	CALL(MPI_Scatterv_init, all, ones, places, MPI_INT, in[7], 1, MPI_INT, last, comm, MPI_INFO_NULL, &r[7]);
	CALL(MPI_Allgather_init, out, 1, MPI_INT, in[8], 1, MPI_INT, comm, MPI_INFO_NULL, &r[8]);
	CALL(MPI_Allgatherv_init, out, 1, MPI_INT, in[9], ones, places, MPI_INT, comm, MPI_INFO_NULL, &r[9]);
	CALL(MPI_Alltoall_init, all, 1, MPI_INT, in[10], 1, MPI_INT, comm, MPI_INFO_NULL, &r[10]);
	CALL(MPI_Alltoallv_init, all, ones, places, MPI_INT, in[11], ones, places, MPI_INT, comm, MPI_INFO_NULL, &r[11]);
	CALL(MPI_Alltoallw_init, all, ones, bytes, types, in[12], ones, bytes, types, comm, MPI_INFO_NULL, &r[12]);
	CALL(MPI_Reduce_scatter_init, all, in[13], ones, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &r[13]);
	CALL(MPI_Reduce_scatter_block_init, all, in[14], 1, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &r[14]);
	CALL(MPI_Scan_init, out, in[15], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[15]);
	CALL(MPI_Exscan_init, out, in[16], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[16]);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CALLS; i++)
			for (int k = 0; k < size; k++)
				in[i][k] = -1;
		out[0] = rank + round;
		in[1][0] = rank + round;
		for (int i = 0; i < CALLS; i++)
			CALL(MPI_Start, &r[i]);
		for (int i = 0; i < CALLS; i++)
			CALL(MPI_Wait, &r[i], MPI_STATUS_IGNORE);
		EXPECT(in[1][0] == last + round && in[3][0] == sum + size * round);
		EXPECT(rank != 0 || in[2][0] == sum + size * round);
		for (int k = 0; k < size; k++) {
			EXPECT(rank != 0 || (in[4][k] == k + round && in[5][k] == k + round));
			EXPECT(in[8][k] == k + round && in[9][k] == k + round);
			EXPECT(in[10][k] == 1000 * k + rank && in[11][k] == 1000 * k + rank && in[12][k] == 1000 * k + rank);
		}
		EXPECT(in[6][0] == 1000 * last + rank && in[7][0] == 1000 * last + rank);
		EXPECT(in[13][0] == 1000 * last + rank && in[14][0] == 1000 * last + rank);
		EXPECT(in[15][0] == before + rank + (rank + 1) * round);
		EXPECT(rank == 0 || in[16][0] == before + rank * round);
	}
	for (int i = 0; i < CALLS; i++)
		CALL(MPI_Request_free, &r[i]);
}

static void persistent_neighbourhoods(void)
{
	enum { CALLS = 5 };
	int periodic = 1, previous, next, ones[2] = {1, 1}, places[2] = {0, 1}, out[2], in[CALLS][2];
	MPI_Aint bytes[2] = {0, sizeof(int)};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};
	MPI_Request r[CALLS];
	MPI_Comm line;

	CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, &size, &periodic, 0, &line);
	MPI_Cart_shift(line, 0, 1, &previous, &next);
	CALL(MPI_Neighbor_allgather_init, out, 1, MPI_INT, in[0], 1, MPI_INT, line, MPI_INFO_NULL, &r[0]);
	CALL(MPI_Neighbor_allgatherv_init, out, 1, MPI_INT, in[1], ones, places, MPI_INT, line, MPI_INFO_NULL, &r[1]);
	CALL(MPI_Neighbor_alltoall_init, out, 1, MPI_INT, in[2], 1, MPI_INT, line, MPI_INFO_NULL, &r[2]);
	CALL(MPI_Neighbor_alltoallv_init, out, ones, places, MPI_INT, in[3], ones, places, MPI_INT, line, MPI_INFO_NULL, &r[3]);
	CALL(MPI_Neighbor_alltoallw_init, out, ones, bytes, types, in[4], ones, bytes, types, line, MPI_INFO_NULL, &r[4]);
	for (int round = 0; round < ROUNDS; round++) {
		out[0] = 10 * rank + round;
		out[1] = 10 * rank + round + 5;
		CALL(MPI_Startall, CALLS, r);
		CALL(MPI_Waitall, CALLS, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < CALLS; i++)
			for (int k = 0; k < 2; k++)
				EXPECT(in[i][k] / 10 == (k ? next : previous) && in[i][k] % 5 == round);
	}
	for (int i = 0; i < CALLS; i++)
		CALL(MPI_Request_free, &r[i]);
	CALL(MPI_Comm_free, &line);
}

static void communicator(void)
{
	MPI_Comm copy;
	MPI_Request request;

	CALL(MPI_Comm_idup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &copy, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	CALL(MPI_Barrier, copy);
	CALL(MPI_Comm_free, &copy);
}

void newer(void)
{
	both_ways();
	partitioned();
	persistent_collectives();
	persistent_neighbourhoods();
	communicator();
}

#else

void newer(void)
{
}

#endif
