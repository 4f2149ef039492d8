/* mandelbrot.c - a zoom into the Mandelbrot set, each frame cut into blocks of
 * rows of equal height, one per rank.
 *
 *	mpirun -np 4 mandelbrot [FRAMES]
 *
 * Points of the set take LIMIT iterations and the others few, so ranks whose
 * rows meet the set compute for long, and rank 0 waits for them to gather the
 * frame. As the zoom goes on, it is others. Prints for each frame how many
 * points are in the set, and the last frame in characters.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 480, LIMIT = 1000 };
static const double CENTRE_X = -0.7436, CENTRE_Y = 0.1318;

/* Iterations of z -> z^2 + c from 0 until |z| > 2, at most LIMIT. */
static int iterations(double cx, double cy)
{
	double x = 0, y = 0;
	int count = 0;

	while (count < LIMIT && x * x + y * y <= 4) {
		double next = x * x - y * y + cx;

		y = 2 * x * y + cy;
		x = next;
		count++;
	}
	return count;
}

/* Computes rows of a frame whose pixels are this far apart. */
static void compute(int *counts, int first, int rows, int height, double pixel)
{
	for (int row = 0; row < rows; row++) {
		double cy = CENTRE_Y - (first + row - height / 2) * pixel;

		for (int column = 0; column < WIDTH; column++)
			counts[row * WIDTH + column] =
				iterations(CENTRE_X + (column - WIDTH / 2) * pixel, cy);
	}
}

static void print_frame(int frame, const int *counts, int height)
{
	long inside = 0, sum = 0;

	for (int i = 0; i < height * WIDTH; i++) {
		inside += counts[i] == LIMIT;
		sum += counts[i];
	}
	printf("frame %2d  in the set %6ld  iterations %ld\n", frame, inside, sum);
}

static void print_picture(const int *counts, int height)
{
	enum { COLUMNS = 80, LINES = 24 };
	static const char shades[] = " .:-=+*%#@";

	for (int line = 0; line < LINES; line++) {
		for (int column = 0; column < COLUMNS; column++) {
			int count = counts[line * height / LINES * WIDTH + column * WIDTH / COLUMNS];
			int shade = 0;

			while (count > 3 && shade < 9) {
				count /= 2;
				shade++;
			}
			putchar(shades[shade]);
		}
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 16, rank, ranks, rows, height;
	int *mine, *all = NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rows = 320 / ranks;
	height = rows * ranks;
	mine = malloc((size_t)rows * WIDTH * sizeof *mine);
	if (rank == 0)
		all = malloc((size_t)height * WIDTH * sizeof *all);
	if (mine == NULL || (rank == 0 && all == NULL)) {
		perror("mandelbrot");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}

	for (int frame = 0; frame < frames; frame++) {
		compute(mine, rank * rows, rows, height, 3.0 / WIDTH * pow(0.7, frame));
		MPI_Gather(mine, rows * WIDTH, MPI_INT, all, rows * WIDTH, MPI_INT, 0,
			   MPI_COMM_WORLD);
		if (rank == 0)
			print_frame(frame, all, height);
	}
	if (rank == 0)
		print_picture(all, height);
	free(mine);
	free(all);
	MPI_Finalize();
	return 0;
}
