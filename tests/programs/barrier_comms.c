/* barrier_comms.c - barriers on many communicators, which come and go.
 *
 *	mpirun -np N barrier_comms FILE STEPS LIVE [SEED]
 *
 * In each of STEPS a random one of LIVE rows gets a new communicator in place of
 * the one that it has: a copy of the world or of another one, halves of it, or a
 * group of neighbours. Its members, and those of another row, then meet some
 * times. All ranks take the same steps. Now and then a rank is late. Rank 0 prints
 * how many barriers there were on all ranks.
 */
#include "barrier_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, size;
static long barriers;

static MPI_Comm group_of(int first, int count)
{
	MPI_Group world, group;
	MPI_Comm comm;
	int range[1][3] = {{first, first + count - 1, 1}};

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	return comm;
}

static MPI_Comm make(uint64_t random)
{
	int kind = (int)(random % 4), way = (int)(random >> 8 & 0xff);
	MPI_Comm comm;

	if (kind == 0)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	else if (kind == 1)
		MPI_Comm_split(MPI_COMM_WORLD, rank * 2 / size, way % 2 ? rank : -rank, &comm);
	else if (kind == 2)
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == way % 2 ? 0 : MPI_UNDEFINED, rank, &comm);
	else
		comm = group_of(way % size, 1 + (int)(random >> 16) % (size - way % size) % size);
	return comm;
}

static void meet(struct order *order, long times, uint64_t random)
{
	if (order->comm == MPI_COMM_NULL)
		return;
	if ((int)(random % (uint64_t)(8 * size)) == rank) {
		struct timespec late = {0, 200000};
		nanosleep(&late, NULL);
	}
	for (long i = 0; i < times; i++)
		order_meet(order);
	barriers += times;
}

int main(int argc, char **argv)
{
	struct order rows[ORDER_ROWS];
	long steps = atol(argv[2]), all;
	int live = atoi(argv[3]);
	uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	order_open(argv[1]);
	for (int i = 0; i < live; i++)
		rows[i].comm = MPI_COMM_NULL;
	for (long step = 1; step <= steps; step++) {
		int row = (int)(order_random(&seed) % (uint64_t)live);
		int other = (int)(order_random(&seed) % (uint64_t)live);
		uint64_t kind = order_random(&seed), late = order_random(&seed);

		if (rows[row].comm != MPI_COMM_NULL)
			MPI_Comm_free(&rows[row].comm);
		rows[row].comm = make(kind & INT32_MAX);
		if (rows[row].comm != MPI_COMM_NULL)
			rows[row] = order_of(rows[row].comm, (uint64_t)step, row);
		meet(&rows[row], 1 + (long)(late >> 16) % 20, late);
		meet(&rows[other], 1 + (long)(late >> 24) % 20, late >> 32);
	}
	PMPI_Reduce(&barriers, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("barriers %ld\n", all);
	for (int i = 0; i < live; i++)
		if (rows[i].comm != MPI_COMM_NULL)
			MPI_Comm_free(&rows[i].comm);
	MPI_Finalize();
	return 0;
}
