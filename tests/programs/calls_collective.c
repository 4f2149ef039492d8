/* Collectives, blocking and nonblocking: each call and its nonblocking twin work
 * on the same buffers and must leave the same results. */
#include "calls.h"

#include <stdlib.h>

/* Buffers of one int per rank, and the counts, places and types of the
 * variants that take them. Rank r's word for rank s is 100 r + s. */
static int *out, *in, *ones, *places;
static MPI_Datatype *types;
static int *byte_places;

static void *allocate(size_t bytes)
{
	void *memory = calloc((size_t)size, bytes);

	EXPECT(memory != NULL);
	return memory;
}

static void make_buffers(void)
{
	out = allocate(sizeof *out);
	in = allocate(sizeof *in);
	ones = allocate(sizeof *ones);
	places = allocate(sizeof *places);
	byte_places = allocate(sizeof *byte_places);
	types = allocate(sizeof(MPI_Datatype));
	for (int i = 0; i < size; i++) {
		out[i] = 100 * rank + i;
		ones[i] = 1;
		places[i] = i;
		byte_places[i] = i * (int)sizeof *out;
		types[i] = MPI_INT;
	}
}

static void free_buffers(void)
{
	free(out);
	free(in);
	free(ones);
	free(places);
	free(byte_places);
	free(types);
}

static void clear(void)
{
	for (int i = 0; i < size; i++)
		in[i] = -1;
}

/* in[i] is what rank i put there for this rank, or for rank 0. */
static void expect_from_all(int to)
{
	for (int i = 0; i < size; i++)
		EXPECT(in[i] == 100 * i + to);
	clear();
}

static void expect_one(int value)
{
	EXPECT(in[0] == value);
	clear();
}

/* The sum over ranks of 100 r + place. */
static int sum_at(int ranks, int place)
{
	return 100 * ranks * (ranks - 1) / 2 + ranks * place;
}

static void data_calls(void)
{
	in[0] = rank == 0 ? 7 : -1;
	CALL(MPI_Bcast, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
	expect_one(7);
	CALL(MPI_Gather, out, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0)
		expect_from_all(0);
	CALL(MPI_Gatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0)
		expect_from_all(0);
	CALL(MPI_Scatter, out, 1, MPI_INT, in, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	expect_one(100 * (size - 1) + rank);
	CALL(MPI_Scatterv, out, ones, places, MPI_INT, in, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	expect_one(100 * (size - 1) + rank);
	CALL(MPI_Allgather, out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	expect_from_all(0);
	CALL(MPI_Allgatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD);
	expect_from_all(0);
	CALL(MPI_Alltoall, out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	expect_from_all(rank);
	CALL(MPI_Alltoallv, out, ones, places, MPI_INT, in, ones, places, MPI_INT,
	     MPI_COMM_WORLD);
	expect_from_all(rank);
	CALL(MPI_Alltoallw, out, ones, byte_places, types, in, ones, byte_places, types,
	     MPI_COMM_WORLD);
	expect_from_all(rank);
}

static void reductions(void)
{
	CALL(MPI_Reduce, out, in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		expect_one(sum_at(size, 0));
	CALL(MPI_Allreduce, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect_one(sum_at(size, 0));
	CALL(MPI_Reduce_scatter, out, in, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect_one(sum_at(size, rank));
	CALL(MPI_Reduce_scatter_block, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect_one(sum_at(size, rank));
	CALL(MPI_Scan, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect_one(sum_at(rank + 1, 0));
	CALL(MPI_Exscan, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank > 0)
		expect_one(sum_at(rank, 0));
}

static void in_place(void)
{
	in[0] = rank;
	CALL(MPI_Allreduce, MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	expect_one(size * (size - 1) / 2);
	in[rank] = 100 * rank;
	CALL(MPI_Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_INT, MPI_COMM_WORLD);
	expect_from_all(0);
}

void collectives(void)
{
	make_buffers();
	clear();
	CALL(MPI_Barrier, MPI_COMM_WORLD);
	CALL(MPI_Barrier, MPI_COMM_SELF);
	data_calls();
	reductions();
	in_place();
	free_buffers();
}

static MPI_Request request;

static void wait(void)
{
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
}

static void nonblocking_data_calls(void)
{
	in[0] = rank == 0 ? 7 : -1;
	CALL(MPI_Ibcast, in, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
	wait();
	expect_one(7);
	CALL(MPI_Igather, out, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
	wait();
	if (rank == 0)
		expect_from_all(0);
	CALL(MPI_Igatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, 0, MPI_COMM_WORLD,
	     &request);
	wait();
	if (rank == 0)
		expect_from_all(0);
	CALL(MPI_Iscatter, out, 1, MPI_INT, in, 1, MPI_INT, size - 1, MPI_COMM_WORLD, &request);
	wait();
	expect_one(100 * (size - 1) + rank);
	CALL(MPI_Iscatterv, out, ones, places, MPI_INT, in, 1, MPI_INT, size - 1, MPI_COMM_WORLD,
	     &request);
	wait();
	expect_one(100 * (size - 1) + rank);
	CALL(MPI_Iallgather, out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &request);
	wait();
	expect_from_all(0);
	CALL(MPI_Iallgatherv, out, 1, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD,
	     &request);
	wait();
	expect_from_all(0);
	CALL(MPI_Ialltoall, out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &request);
	wait();
	expect_from_all(rank);
	CALL(MPI_Ialltoallv, out, ones, places, MPI_INT, in, ones, places, MPI_INT,
	     MPI_COMM_WORLD, &request);
	wait();
	expect_from_all(rank);
	CALL(MPI_Ialltoallw, out, ones, byte_places, types, in, ones, byte_places, types,
	     MPI_COMM_WORLD, &request);
	wait();
	expect_from_all(rank);
}

static void nonblocking_reductions(void)
{
	CALL(MPI_Ireduce, out, in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
	wait();
	if (rank == 0)
		expect_one(sum_at(size, 0));
	CALL(MPI_Iallreduce, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	wait();
	expect_one(sum_at(size, 0));
	CALL(MPI_Ireduce_scatter, out, in, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	wait();
	expect_one(sum_at(size, rank));
	CALL(MPI_Ireduce_scatter_block, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	wait();
	expect_one(sum_at(size, rank));
	CALL(MPI_Iscan, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	wait();
	expect_one(sum_at(rank + 1, 0));
	CALL(MPI_Iexscan, out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	wait();
	if (rank > 0)
		expect_one(sum_at(rank, 0));
}

/* Two at once, completed together with the other kinds of wait. */
static void overlapping(void)
{
	int sum = 0, largest = -1, flag;
	MPI_Request both[2];

	CALL(MPI_Iallreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &both[0]);
	CALL(MPI_Iallreduce, &rank, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &both[1]);
	CALL(MPI_Waitall, 2, both, MPI_STATUSES_IGNORE);
	EXPECT(sum == size * (size - 1) / 2 && largest == size - 1);

	CALL(MPI_Ibarrier, MPI_COMM_WORLD, &request);
	do
		CALL(MPI_Test, &request, &flag, MPI_STATUS_IGNORE);
	while (!flag);
}

void nonblocking_collectives(void)
{
	make_buffers();
	clear();
	nonblocking_data_calls();
	nonblocking_reductions();
	overlapping();
	free_buffers();
}
