/* grid.c - communicators that are parts of others: ranks in two rows, with a
 * communicator for each row and each column, all with names.
 *
 *	mpirun -np 4 grid
 *
 * Before each operation the ranks compute for a time that grows with their
 * number. Prints the counts, as calls.c does.
 */
#include "counted.h"

#include <stdio.h>

enum { ROWS = 2, ROW_BARRIERS = 30, COLUMN_SUMS = 20 };

static void compute(double seconds)
{
	double end = MPI_Wtime() + seconds;

	while (MPI_Wtime() < end)
		;
}

int main(int argc, char **argv)
{
	int rank, size, columns, one = 1, sum;
	char name[32];
	MPI_Comm row, column;

	CALL(MPI_Init, &argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	columns = size / ROWS;
	EXPECT(size == ROWS * columns);

	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank / columns, rank, &row);
	CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % columns, rank, &column);
	snprintf(name, sizeof name, "row %d", rank / columns);
	CALL(MPI_Comm_set_name, row, name);
	snprintf(name, sizeof name, "column %d", rank % columns);
	CALL(MPI_Comm_set_name, column, name);

	for (int i = 0; i < ROW_BARRIERS; i++) {
		compute(1e-3 * (rank + 1));
		CALL(MPI_Barrier, row);
	}
	for (int i = 0; i < COLUMN_SUMS; i++) {
		compute(1e-3 * (size - rank));
		CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, column);
		EXPECT(sum == ROWS);
	}
	CALL(MPI_Comm_free, &row);
	CALL(MPI_Comm_free, &column);
	counted_finalize();
	return 0;
}
