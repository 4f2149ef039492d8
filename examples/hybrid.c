/* hybrid.c - frames of a Julia set by MPI and OpenMP, one rank with twice the work.
 *
 *	OMP_NUM_THREADS=1 mpirun -np 2 --bind-to core hybrid [FRAMES [ROWS [COLUMNS [even|uneven [BLOCK]]]]]
 *
 * Each rank computes a band of every frame, block after block of rows, the rows of
 * a block (8, or BLOCK) by the threads of a parallel region; the last rank's band is twice as
 * high, and all points lie in the set, so that every row costs the same. At the end
 * of a frame all ranks meet. So the others wait for the last one half of the time,
 * on cores that it could use: what EVENKEEL_LEND is for. With "even" all bands are of
 * the same height, which is the best that lending could come to. Nothing here depends on how
 * many threads there are, and the sum that is printed is always the same.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 300 };

/* How often z -> z^2 + c is done before z leaves the circle of radius 2. */
static int escape(double x, double y, double a, double b)
{
	int i = 0;
	for (; i < LIMIT && x * x + y * y < 4; i++) {
		double next = x * x - y * y + a;
		y = 2 * x * y + b;
		x = next;
	}
	return i;
}

static uint64_t row_sum(int row, int rows, int columns, double a, double b)
{
	uint64_t sum = 0;
	for (int column = 0; column < columns; column++)
		sum += (uint64_t)escape(0.5 * column / columns, 0.5 * row / rows, a, b) * (uint64_t)(row + column + 1);
	return sum;
}

static uint64_t band(int first, int last, int height, int rows, int columns, double a, double b)
{
	uint64_t sum = 0;
	for (int block = first; block < last; block += height) {
		int end = block + height < last ? block + height : last;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
		for (int row = block; row < end; row++)
			sum += row_sum(row, rows, columns, a, b);
	}
	return sum;
}

int main(int argc, char **argv)
{
	int rank, size, provided;
	int frames = argc > 1 ? atoi(argv[1]) : 20, rows = argc > 2 ? atoi(argv[2]) : 600, columns = argc > 3 ? atoi(argv[3]) : 400;
	int even = argc > 4 && strcmp(argv[4], "even") == 0, block = argc > 5 && atoi(argv[5]) > 0 ? atoi(argv[5]) : 8;
	uint64_t sum = 0, all = 0;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int share = rows / (even ? size : size + 1);
	int first = rank * share, last = rank == size - 1 ? rows : first + share;
	MPI_Barrier(MPI_COMM_WORLD);
	double begun = MPI_Wtime();
	for (int frame = 0; frame < frames; frame++) {
		sum += band(first, last, block, rows, columns, -0.12 - 0.0001 * frame, 0.2);
		MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0) {
		printf("sum %llu\n", (unsigned long long)all);
		printf("seconds %.3f\n", MPI_Wtime() - begun);
	}
	MPI_Finalize();
	return 0;
}
