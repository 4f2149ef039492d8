/* grid.c - communicators that are parts of others: ranks in two rows, with a
 * communicator for each row and each column, all with names.
 *
 *	mpirun -np 4 grid
 *
 * The last rank of each row, and the first of each column, comes to each
 * operation after the others. Prints the counts, as calls.c does.
 */
#include "counted.h"

#include <stdio.h>

enum { ROWS = 2, COLUMNS = 2, ROW_BARRIERS = 30, COLUMN_SUMS = 20 };

/* Comes back on `late` when the other rank of the communicator has come by here,
 * and some time later. What is said between them goes past tools. */
static void come_late(MPI_Comm comm, int late)
{
	double since;
	int me;

	PMPI_Comm_rank(comm, &me);
	if (me != late) {
		PMPI_Send(NULL, 0, MPI_INT, late, 0, comm);
		return;
	}
	PMPI_Recv(NULL, 0, MPI_INT, 1 - late, 0, comm, MPI_STATUS_IGNORE);
	since = MPI_Wtime();
	while (MPI_Wtime() < since + 2e-3)
		;
}

int main(int argc, char **argv)
{
	int rank, size, one = 1, sum;
	char name[32];
	MPI_Comm row, column;

	CALL(MPI_Init, &argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	EXPECT(size == 4);

	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank / COLUMNS, rank, &row);
	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % COLUMNS, rank, &column);
	snprintf(name, sizeof name, "row %d", rank / COLUMNS);
	CALL(MPI_Comm_set_name, row, name);
	snprintf(name, sizeof name, "column %d", rank % COLUMNS);
	CALL(MPI_Comm_set_name, column, name);

	for (int i = 0; i < ROW_BARRIERS; i++) {
		come_late(row, 1);
		CALL(MPI_Barrier, row);
	}
	for (int i = 0; i < COLUMN_SUMS; i++) {
		come_late(column, 0);
		CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, column);
		EXPECT(sum == ROWS);
	}
	CALL(MPI_Comm_free, &row);
	CALL(MPI_Comm_free, &column);
	counted_finalize();
	return 0;
}
