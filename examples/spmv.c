/* spmv.c - a sparse matrix is multiplied with a vector again and again, which finds
 * its largest eigenvalue. A few rows at the top are long, most are short.
 *
 *	mpirun -np 2 spmv [CYCLES] [even|balanced|ROWS]
 *
 * Rows are the items of a partition: an array of items of any length, and the vector
 * beside it. The rank with the long rows gets fewer, unless the partition is to stay
 * even, or rank 0 is to have ROWS throughout and the others as many each; a row costs
 * what its length is. The norm is summed up in the order of the rows
 * on each rank, so the result does not depend on who computed what.
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

enum { ROWS = 20000, LONGEST = 6000, SHORTEST = 60 };

/* Values have 24 bits, so a float holds them. */
struct entry {
	int32_t column;
	float value;
};

static double vector[ROWS];
static double cost[ROWS]; /* of this rank's rows */

static void must(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "spmv: %s (%s)\n", ek_strerror(result), ek_error_text());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Row lengths fall as 1 / (1 + row / 200). */
static int64_t length_of(int64_t row)
{
	return SHORTEST + (int64_t)(LONGEST / (1 + (double)row / 200));
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	return x;
}

static struct entry entry_of(int64_t row, int64_t i)
{
	uint64_t random = mix((uint64_t)row * LONGEST * 4 + (uint64_t)i);

	return (struct entry){(int32_t)(random % ROWS), (float)(random >> 40) * 0x1p-24f};
}

static void fill(ek_array *matrix, int64_t first, int64_t count)
{
	int64_t *length = malloc((size_t)(count + 1) * sizeof *length), total = 0;

	for (int64_t i = 0; i < count; i++)
		total += length[i] = length_of(first + i) * (int64_t)sizeof(struct entry);
	struct entry *entries = malloc((size_t)total + 1), *at = entries;
	for (int64_t i = 0; i < count; i++)
		for (int64_t k = 0; k < length_of(first + i); k++)
			*at++ = entry_of(first + i, k);
	must(ek_array_assign(matrix, length, entries));
	free(entries);
	free(length);
}

static void multiply(const ek_array *matrix, int64_t count, double *result)
{
	const int64_t *offset = ek_array_offsets(matrix);
	const char *data = ek_array_data(matrix);

	for (int64_t i = 0; i < count; i++) {
		const struct entry *entry = (const struct entry *)(const void *)(data + offset[i]);
		const struct entry *end = (const struct entry *)(const void *)(data + offset[i + 1]);
		double sum = 0;

		for (; entry < end; entry++)
			sum += entry->value * vector[entry->column];
		result[i] = sum;
	}
}

/* Rank 0 has so many rows, the others share the rest. */
static void set(ek_partition *partition, int64_t rows)
{
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int64_t *bounds = calloc((size_t)ranks + 1, sizeof *bounds);
	for (int r = 1; r <= ranks; r++)
		bounds[r] = r == ranks ? ROWS : rows + (ROWS - rows) / (ranks - 1) * (r - 1);
	must(ek_partition_set(partition, bounds));
	must(ek_partition_move(partition));
	free(bounds);
}

/* Scales the vector to length 1; returns what its length was. */
static double normalise(void)
{
	double squares = 0;

	for (int i = 0; i < ROWS; i++)
		squares += vector[i] * vector[i];
	for (int i = 0; i < ROWS; i++)
		vector[i] /= sqrt(squares);
	return sqrt(squares);
}

int main(int argc, char **argv)
{
	int count_of_cycles = argc > 1 ? atoi(argv[1]) : 100, rank, changed;
	bool balanced = argc < 3 || strcmp(argv[2], "balanced") == 0;
	struct ek_partition_options options = {.policy = balanced ? EK_POLICY_PROFILED : EK_POLICY_STATIC, .cycles = count_of_cycles};
	ek_partition *partition;
	ek_array *matrix, *result;
	int64_t first, count;
	double eigenvalue = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	must(ek_partition_create(MPI_COMM_WORLD, ROWS, &options, &partition));
	if (!balanced && strcmp(argv[2], "even") != 0)
		set(partition, atoi(argv[2]));
	must(ek_array_create_variable(partition, &matrix));
	must(ek_array_create(partition, sizeof(double), 0, &result));
	must(ek_partition_range(partition, &first, &count));
	fill(matrix, first, count);
	for (int i = 0; i < ROWS; i++)
		vector[i] = 1;
	must(ek_partition_start(partition));
	struct cycles cycles = cycles_begin(count_of_cycles);
	for (int cycle = 0; cycle < count_of_cycles; cycle++) {
		double began = MPI_Wtime();
		eigenvalue = normalise();
		must(ek_partition_range(partition, &first, &count));
		multiply(matrix, count, ek_array_data(result));
		double computed = MPI_Wtime() - began;
		for (int64_t i = 0; i < count; i++)
			cost[i] = (double)length_of(first + i);
		must(ek_partition_costs(partition, cost));
		must(ek_partition_step(partition, &changed));
		must(ek_array_gather(result, vector));
		if (changed)
			must(ek_partition_move(partition));
		cycles_add(&cycles, computed);
	}
	must(ek_partition_range(partition, &first, &count));
	if (rank == 0)
		printf("checksum %.17g\nrank 0 has %lld of %d rows\n", eigenvalue, (long long)count, ROWS);
	cycles_end(&cycles);
	must(ek_partition_free(&partition));
	MPI_Finalize();
	return 0;
}
