/* nbody.c - particles that repel each other at short range, in a box that is
 * cut into slabs of equal width, one per rank.
 *
 *	mpirun -np 4 nbody [STEPS]
 *
 * Space is divided evenly, but the particles are not: two thirds of them crowd
 * around one point, most of them in the second of four slabs. Each step ends in
 * an exchange with the neighbours, so the other ranks wait for the one that has
 * the most to do. Nothing here knows of evenkeel.
 *
 * One step: move the particles; hand those that left the slab to the neighbour;
 * exchange a halo of copies as wide as the forces reach; compute the forces by
 * way of a list of cells. Every 50 steps the energy is summed over all ranks.
 * The output depends on STEPS and the number of ranks alone.
 */
#include <assert.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The box is WIDTH by HEIGHT; forces reach as far as 1, the width of a cell. */
enum { WIDTH = 120, HEIGHT = 40, PARTICLES = 20000, MAX_IN_CELL = 256 };
static const double STIFFNESS = 0.2, TIME_STEP = 0.005;
static const double CENTRE_X = 52, CENTRE_Y = 20, RADIUS = 12;

/* Place, velocity and the force on it. */
struct particle {
	double x, y, vx, vy, fx, fy;
};
enum { DOUBLES = sizeof(struct particle) / sizeof(double) };

static int rank, ranks;
static double slab_begin, slab_end;

/* This rank's own particles come first, then the halo of neighbours' ones. */
static struct particle particles[3 * PARTICLES];
static int own, total;

/* What goes to and comes from the neighbour on each side: 0 left, 1 right. */
static int neighbour[2];
static struct particle outgoing[2][PARTICLES], incoming[2][PARTICLES];

/* Which particles are in which cell: those of this slab and a rim around them. */
enum { COLUMNS = WIDTH + 3, ROWS = HEIGHT + 2 };
static int cell_count[COLUMNS][ROWS], cell_members[COLUMNS][ROWS][MAX_IN_CELL];

/* The same sequence on each rank (a 64-bit linear congruential generator). */
static double uniform(void)
{
	static uint64_t state = 42;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) * 0x1p-53;
}

/* Two thirds of the particles lie around the centre, the others anywhere. */
static void make_particles(void)
{
	for (int i = 0; i < PARTICLES; i++) {
		struct particle p = {0};

		p.x = WIDTH * uniform();
		p.y = HEIGHT * uniform();
		p.vx = uniform() - 0.5;
		p.vy = uniform() - 0.5;
		if (i % 3 != 0) {
			double angle = 2 * M_PI * uniform(), distance = RADIUS * sqrt(uniform());

			p.x = CENTRE_X + distance * cos(angle);
			p.y = CENTRE_Y + distance * sin(angle);
		}
		if (p.x >= slab_begin && p.x < slab_end)
			particles[own++] = p;
	}
}

/* Sends each neighbour the own particles that are less than depth away from its
 * slab, or in it, and appends what comes from there. */
static void exchange(double depth)
{
	int doubles, out_count[2] = {0, 0};
	MPI_Request requests[4];
	MPI_Status statuses[4];

	for (int side = 0; side < 2; side++)
		MPI_Irecv(incoming[side], DOUBLES * PARTICLES, MPI_DOUBLE, neighbour[side], 0,
			  MPI_COMM_WORLD, &requests[side]);
	for (int i = 0; i < own; i++) {
		if (particles[i].x < slab_begin + depth)
			outgoing[0][out_count[0]++] = particles[i];
		if (particles[i].x >= slab_end - depth)
			outgoing[1][out_count[1]++] = particles[i];
	}
	for (int side = 0; side < 2; side++)
		MPI_Isend(outgoing[side], DOUBLES * out_count[side], MPI_DOUBLE, neighbour[side],
			  0, MPI_COMM_WORLD, &requests[2 + side]);
	MPI_Waitall(4, requests, statuses);
	total = own;
	for (int side = 0; side < 2; side++) {
		MPI_Get_count(&statuses[side], MPI_DOUBLE, &doubles);
		for (int i = 0; i < doubles / DOUBLES; i++)
			particles[total++] = incoming[side][i];
	}
}

/* Hands over the particles that left the slab, and takes those that came. */
static void migrate(void)
{
	exchange(0);
	own = 0;
	for (int i = 0; i < total; i++)
		if (particles[i].x >= slab_begin && particles[i].x < slab_end)
			particles[own++] = particles[i];
}

static int column_of(const struct particle *p)
{
	return (int)floor(p->x - slab_begin) + 1;
}

static void fill_cells(void)
{
	memset(cell_count, 0, sizeof cell_count);
	for (int i = 0; i < total; i++) {
		int column = column_of(&particles[i]), row = (int)particles[i].y + 1;

		assert(cell_count[column][row] < MAX_IN_CELL);
		cell_members[column][row][cell_count[column][row]++] = i;
	}
}

/* The members of a cell repel a particle like springs. Returns half of their
 * energy: the other half is counted with the other particles. */
static double repel(struct particle *p, int column, int row)
{
	double energy = 0;

	for (int i = 0; i < cell_count[column][row]; i++) {
		const struct particle *other = &particles[cell_members[column][row][i]];
		double dx = p->x - other->x, dy = p->y - other->y, squared = dx * dx + dy * dy;

		if (squared < 1 && squared > 0) {
			double distance = sqrt(squared), overlap = 1 - distance;

			p->fx += STIFFNESS * overlap * dx / distance;
			p->fy += STIFFNESS * overlap * dy / distance;
			energy += 0.25 * STIFFNESS * overlap * overlap;
		}
	}
	return energy;
}

/* Sets the forces on the own particles; returns their potential energy. */
static double compute_forces(void)
{
	double energy = 0;

	fill_cells();
	for (struct particle *p = particles; p < particles + own; p++) {
		int column = column_of(p), row = (int)p->y + 1;

		p->fx = p->fy = 0;
		for (int c = column - 1; c <= column + 1; c++)
			for (int r = row - 1; r <= row + 1; r++)
				energy += repel(p, c, r);
	}
	return energy;
}

/* Half a step's change of velocity; returns the kinetic energy after it. */
static double kick(void)
{
	double energy = 0;

	for (struct particle *p = particles; p < particles + own; p++) {
		p->vx += 0.5 * TIME_STEP * p->fx;
		p->vy += 0.5 * TIME_STEP * p->fy;
		energy += 0.5 * (p->vx * p->vx + p->vy * p->vy);
	}
	return energy;
}

/* Moves a coordinate, and reflects it at the walls 0 and limit. */
static void move(double *at, double *velocity, double limit)
{
	*at += TIME_STEP * *velocity;
	if (*at < 0 || *at >= limit) {
		*velocity = -*velocity;
		*at = *at < 0 ? 0 : nextafter(limit, 0);
	}
}

static void drift(void)
{
	for (struct particle *p = particles; p < particles + own; p++) {
		move(&p->x, &p->vx, WIDTH);
		move(&p->y, &p->vy, HEIGHT);
	}
}

/* Sums over all ranks; the checksum changes with any particle's place. */
static void print_sums(int step, double energy)
{
	double mine[2] = {energy, 0}, all[2];

	for (int i = 0; i < own; i++)
		mine[1] += 3 * particles[i].x + particles[i].y;
	MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("step %4d  energy %.8e  checksum %.8e\n", step, all[0], all[1]);
}

static void run(int steps)
{
	exchange(1);
	compute_forces();
	for (int step = 1; step <= steps; step++) {
		kick();
		drift();
		migrate();
		exchange(1);
		double potential = compute_forces(), kinetic = kick();
		if (step % 50 == 0)
			print_sums(step, potential + kinetic);
	}
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 250;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	slab_begin = (double)WIDTH * rank / ranks;
	slab_end = (double)WIDTH * (rank + 1) / ranks;
	neighbour[0] = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	neighbour[1] = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
	make_particles();
	if (rank == 0)
		printf("%d particles on %d ranks, %d steps\n", PARTICLES, ranks, steps);
	run(steps);
	MPI_Finalize();
	return 0;
}
