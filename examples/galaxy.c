/* galaxy.c - particles that repel each other at short range; a quarter of them are
 * crowded in one place, and so have most of the work.
 *
 *	mpirun -np 2 galaxy [CYCLES] [even|balanced [flat]]
 *
 * Particles are the items of a partition, on which their places and velocities live: a
 * rank that has the crowded ones gets fewer of them, unless the partition is to stay
 * even. Each rank sees where all particles are, which is gathered before each cycle. It knows what each particle cost in the
 * last cycle, and says so. Flat, no place is crowded. The forces on a particle are summed
 * up in the order of the particles' numbers, so the checksum does not depend on who
 * computed them.
 */
#include <evenkeel.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycles.h"

enum { PARTICLES = 12000, CELLS = 64 };
static const double SIDE = CELLS, STIFFNESS = 0.05, TIME_STEP = 0.002;

struct vector {
	double x, y;
};

static struct vector all[PARTICLES], velocities[PARTICLES]; /* these only at the begin and the end */
static double cost[PARTICLES]; /* of this rank's, in the last cycle */

/* Lists of the particles in each cell, in the order of their numbers. */
static int begin[CELLS * CELLS + 1], members[PARTICLES];

static void must(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "galaxy: %s (%s)\n", ek_strerror(result), ek_error_text());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* The same for all ranks: a 64-bit linear congruential generator. */
static double uniform(void)
{
	static uint64_t state = 7;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) * 0x1p-53;
}

static void make_particles(bool crowded)
{
	for (int i = 0; i < PARTICLES; i++) {
		double spread = crowded && i < PARTICLES / 4 ? 5 : SIDE;

		all[i] = (struct vector){spread * uniform(), spread * uniform()};
		velocities[i] = (struct vector){uniform() - 0.5, uniform() - 0.5};
	}
}

static int cell_of(const struct vector *p)
{
	return (int)p->x * CELLS + (int)p->y;
}

static void sort_into_cells(void)
{
	memset(begin, 0, sizeof begin);
	for (int i = 0; i < PARTICLES; i++)
		begin[cell_of(&all[i]) + 1]++;
	for (int c = 0; c < CELLS * CELLS; c++)
		begin[c + 1] += begin[c];
	static int next[CELLS * CELLS];
	memcpy(next, begin, sizeof next);
	for (int i = 0; i < PARTICLES; i++)
		members[next[cell_of(&all[i])]++] = i;
}

/* Springs between particles that are less than 1 apart. Returns how many it looked at. */
static int repel(const struct vector *p, int cell, struct vector *force)
{
	for (int i = begin[cell]; i < begin[cell + 1]; i++) {
		const struct vector *other = &all[members[i]];
		double dx = p->x - other->x, dy = p->y - other->y, squared = dx * dx + dy * dy;

		if (squared < 1 && squared > 0) {
			double distance = sqrt(squared), strength = STIFFNESS * (1 - distance) / distance;

			force->x += strength * dx;
			force->y += strength * dy;
		}
	}
	return begin[cell + 1] - begin[cell];
}

static void bounce(double *at, double *velocity)
{
	*at += TIME_STEP * *velocity;
	if (*at < 0 || *at >= SIDE) {
		*velocity = -*velocity;
		*at = *at < 0 ? 0 : nextafter(SIDE, 0);
	}
}

/* Returns what it cost: the particles that it looked at. */
static double advance(struct vector *place, struct vector *velocity)
{
	int column = (int)place->x, row = (int)place->y, looked = 10;
	struct vector force = {0, 0};

	for (int c = column - 1; c <= column + 1; c++)
		for (int r = row - 1; r <= row + 1; r++)
			if (c >= 0 && c < CELLS && r >= 0 && r < CELLS)
				looked += repel(place, c * CELLS + r, &force);
	velocity->x += TIME_STEP * force.x;
	velocity->y += TIME_STEP * force.y;
	bounce(&place->x, &velocity->x);
	bounce(&place->y, &velocity->y);
	return looked;
}

int main(int argc, char **argv)
{
	int count_of_cycles = argc > 1 ? atoi(argv[1]) : 60, rank, changed;
	struct ek_partition_options options = {
		.policy = argc > 2 && strcmp(argv[2], "even") == 0 ? EK_POLICY_STATIC : EK_POLICY_PROFILED,
		.cycles = count_of_cycles};
	ek_partition *partition;
	ek_array *places, *moving;
	int64_t first, count;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	make_particles(argc < 4);
	must(ek_partition_create(MPI_COMM_WORLD, PARTICLES, &options, &partition));
	must(ek_array_create(partition, sizeof(struct vector), 0, &places));
	must(ek_array_create(partition, sizeof(struct vector), 0, &moving));
	must(ek_partition_range(partition, &first, &count));
	memcpy(ek_array_data(places), all + first, (size_t)count * sizeof *all);
	memcpy(ek_array_data(moving), velocities + first, (size_t)count * sizeof *all);
	must(ek_partition_start(partition));
	struct cycles cycles = cycles_begin(count_of_cycles);
	for (int cycle = 0; cycle < count_of_cycles; cycle++) {
		must(ek_array_gather(places, all));
		double began = MPI_Wtime();
		struct vector *place = ek_array_data(places), *velocity = ek_array_data(moving);
		sort_into_cells();
		must(ek_partition_range(partition, &first, &count));
		for (int64_t i = 0; i < count; i++)
			cost[i] = advance(&place[i], &velocity[i]);
		double computed = MPI_Wtime() - began;
		must(ek_partition_costs(partition, cost));
		must(ek_partition_step(partition, &changed));
		if (changed)
			must(ek_partition_move(partition));
		cycles_add(&cycles, computed);
	}
	must(ek_array_gather(places, all));
	must(ek_array_gather(moving, velocities));
	double sum = 0;
	for (int i = 0; i < PARTICLES; i++)
		sum += (i % 7 + 1) * all[i].x + velocities[i].y;
	must(ek_partition_range(partition, &first, &count));
	if (rank == 0)
		printf("checksum %.17g\nrank 0 has %lld of %d particles\n", sum, (long long)count, PARTICLES);
	cycles_end(&cycles);
	must(ek_partition_free(&partition));
	MPI_Finalize();
	return 0;
}
