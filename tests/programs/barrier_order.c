#include "barrier_order.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t (*numbers)[ORDER_RANKS];
static int world_rank;

void order_open(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0600);
	size_t length = ORDER_ROWS * sizeof *numbers;

	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	if (file < 0 || ftruncate(file, (off_t)length) != 0 ||
	    (numbers = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) == MAP_FAILED) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	close(file);
	PMPI_Barrier(MPI_COMM_WORLD);
}

struct order order_of(MPI_Comm comm, uint64_t id, int row)
{
	struct order order = {comm, id, row, 0, {0}, 0};
	int own[ORDER_RANKS];
	MPI_Group group, world;

	PMPI_Comm_size(comm, &order.size);
	PMPI_Comm_group(comm, &group);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = 0; i < order.size; i++)
		own[i] = i;
	PMPI_Group_translate_ranks(group, order.size, own, world, order.ranks);
	PMPI_Group_free(&group);
	PMPI_Group_free(&world);
	return order;
}

void order_meet(struct order *order)
{
	uint64_t *row = numbers[order->row], now = order->id << 32 | ++order->number;

	__atomic_store_n(&row[world_rank], now, __ATOMIC_RELAXED);
	if (MPI_Barrier(order->comm) != MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 3);
	for (int i = 0; i < order->size; i++) {
		uint64_t theirs = __atomic_load_n(&row[order->ranks[i]], __ATOMIC_RELAXED);
		/* Who has freed the communicator may have given the row to the next one. */
		int next = theirs >> 32 > order->id;
		if (theirs < now || (!next && theirs > now + 1)) {
			fprintf(stderr, "communicator %llu, barrier %llu: rank %d left it when rank %d was at %llu of %llu\n",
				(unsigned long long)order->id, (unsigned long long)order->number, world_rank,
				order->ranks[i], (unsigned long long)(theirs & UINT32_MAX), (unsigned long long)(theirs >> 32));
			MPI_Abort(MPI_COMM_WORLD, 4);
		}
	}
}

uint64_t order_random(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}
