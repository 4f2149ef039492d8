/* Every way to make a communicator, each proved by a sum over its members. */
#include "calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_size(MPI_Comm comm, int members)
{
	int one = 1, sum = 0;

	CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
	EXPECT(sum == members);
}

static void expect_and_free(MPI_Comm *comm, int members)
{
	expect_size(*comm, members);
	CALL(MPI_Comm_free, comm);
	EXPECT(*comm == MPI_COMM_NULL);
}

static void copies(void)
{
	MPI_Comm comm;
	MPI_Request request;

	CALL(MPI_Comm_dup, MPI_COMM_WORLD, &comm);
	CALL(MPI_Comm_set_name, comm, "a copy of the world");
	expect_and_free(&comm, size);
	CALL(MPI_Comm_dup_with_info, MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
	expect_and_free(&comm, size);
	CALL(MPI_Comm_idup, MPI_COMM_WORLD, &comm, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	expect_size(comm, size);
	CALL(MPI_Comm_disconnect, &comm);
	EXPECT(comm == MPI_COMM_NULL);
}

static void parts(void)
{
	int even = size - size / 2;
	MPI_Comm comm;
	MPI_Group world, half;
	int range[1][3] = {{0, size - 1, 2}};

	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, -rank, &comm);
	expect_and_free(&comm, rank % 2 == 0 ? even : size / 2);
	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, 0, &comm);
	EXPECT((comm == MPI_COMM_NULL) == (rank == 0));
	if (rank != 0)
		expect_and_free(&comm, size - 1);
	CALL(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
	CALL(MPI_Barrier, comm);
	CALL(MPI_Comm_free, &comm);

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &half);
	CALL(MPI_Comm_create, MPI_COMM_WORLD, half, &comm);
	EXPECT((comm != MPI_COMM_NULL) == (rank % 2 == 0));
	if (comm != MPI_COMM_NULL)
		expect_and_free(&comm, even);
	if (rank % 2 == 0) {
		CALL(MPI_Comm_create_group, MPI_COMM_WORLD, half, 5, &comm);
		expect_and_free(&comm, even);
	}
	MPI_Group_free(&half);
	MPI_Group_free(&world);
}

static void topologies(void)
{
	int dims[2] = {size, 1}, periods[2] = {1, 0}, keep[2] = {1, 0};
	int previous = (rank + size - 1) % size, next = (rank + 1) % size;
	int degree = 1, weight = 1, ends[64], ring[64];
	MPI_Comm grid, comm;

	CALL(MPI_Cart_create, MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	CALL(MPI_Cart_sub, grid, keep, &comm);
	expect_and_free(&comm, size);
	expect_and_free(&grid, size);

	EXPECT(size <= 64);
	for (int i = 0; i < size; i++) {
		ends[i] = i + 1;
		ring[i] = (i + 1) % size;
	}
	CALL(MPI_Graph_create, MPI_COMM_WORLD, size, ends, ring, 0, &comm);
	expect_and_free(&comm, size);
	/* MPI_UNWEIGHTED would do, but gcc warns of its address. */
	CALL(MPI_Dist_graph_create, MPI_COMM_WORLD, 1, &rank, &degree, &next, &weight,
	     MPI_INFO_NULL, 0, &comm);
	expect_and_free(&comm, size);
	CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &previous, &weight, 1,
	     &next, &weight, MPI_INFO_NULL, 0, &comm);
	expect_and_free(&comm, size);
}

/* Even ranks on one side, odd ones on the other. */
static void between_groups(void)
{
	int even = size - size / 2, mine = rank % 2 == 0 ? even : size / 2, sum = 0, one = 1;
	MPI_Comm side, both, merged;

	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, rank, &side);
	CALL(MPI_Intercomm_create, side, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &both);
	CALL(MPI_Barrier, both);
	CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, both);
	EXPECT(sum == size - mine);
	if (rank < 2) {
		int other = -1;

		CALL(MPI_Sendrecv, &rank, 1, MPI_INT, 0, 3, &other, 1, MPI_INT, 0, 3, both,
		     MPI_STATUS_IGNORE);
		EXPECT(other == 1 - rank);
	}
	CALL(MPI_Intercomm_merge, both, rank % 2, &merged);
	expect_and_free(&merged, size);
	CALL(MPI_Comm_free, &both);
	CALL(MPI_Comm_free, &side);
}

/* The even ranks open a port, the odd ones connect to it. */
static void ports(void)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm side, both, merged;

	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, rank, &side);
	if (rank == 0)
		MPI_Open_port(MPI_INFO_NULL, port);
	CALL(MPI_Bcast, port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank % 2 == 0)
		CALL(MPI_Comm_accept, port, MPI_INFO_NULL, 0, side, &both);
	else
		CALL(MPI_Comm_connect, port, MPI_INFO_NULL, 0, side, &both);
	if (rank == 0)
		MPI_Close_port(port);
	CALL(MPI_Intercomm_merge, both, rank % 2, &merged);
	expect_and_free(&merged, size);
	CALL(MPI_Comm_disconnect, &both);
	CALL(MPI_Comm_free, &side);
}

/* Ranks 0 and 1 join over a connected socket. */
static void sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	int door, end, other = -1;
	MPI_Comm both;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (rank > 1)
		return;
	door = socket(AF_INET, SOCK_STREAM, 0);
	if (rank == 0) {
		EXPECT(bind(door, (struct sockaddr *)&address, length) == 0);
		EXPECT(listen(door, 1) == 0);
		EXPECT(getsockname(door, (struct sockaddr *)&address, &length) == 0);
		CALL(MPI_Send, &address.sin_port, 1, MPI_UINT16_T, 1, 4, MPI_COMM_WORLD);
		end = accept(door, NULL, NULL);
		close(door);
	} else {
		CALL(MPI_Recv, &address.sin_port, 1, MPI_UINT16_T, 0, 4, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
		EXPECT(connect(door, (struct sockaddr *)&address, length) == 0);
		end = door;
	}
	EXPECT(end >= 0);
	CALL(MPI_Comm_join, end, &both);
	CALL(MPI_Sendrecv, &rank, 1, MPI_INT, 0, 5, &other, 1, MPI_INT, 0, 5, both,
	     MPI_STATUS_IGNORE);
	EXPECT(other == 1 - rank);
	CALL(MPI_Comm_disconnect, &both);
	close(end);
}

static void parents(void)
{
	MPI_Comm parent;

	CALL(MPI_Comm_get_parent, &parent);
	EXPECT(parent == MPI_COMM_NULL);
}

void communicators(void)
{
	copies();
	parts();
	topologies();
	between_groups();
	ports();
	sockets();
	parents();
}
