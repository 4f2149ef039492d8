/* partition_errors.c - what is asked wrongly of partitions, on all ranks or on one:
 * each rank gets the same error, and goes on.
 *
 *	mpirun -np 4 partition_errors
 *
 * Prints, for each case, the result and its words; fails if they differ between
 * ranks.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "results.h"

static int rank, ranks;

static int64_t size(void *context, int64_t first, int64_t count)
{
	(void)context;
	return first + count;
}

static int pack(void *context, int64_t first, int64_t count, void *buffer, int64_t bytes)
{
	memset(buffer, 0, (size_t)bytes);
	return context || first + count < 0;
}

static int unpack(void *context, int64_t first, int64_t count, const void *buffer, int64_t bytes)
{
	return context || !buffer || first + count + bytes < 0;
}

static int needs(void *context, ek_halo *halo, int64_t first, int64_t count)
{
	(void)context;
	return ek_halo_need_range(halo, first, count);
}

static void create(const char *what, int64_t items, struct ek_partition_options options)
{
	ek_partition *partition = 0;
	show(what, ek_partition_create(MPI_COMM_WORLD, items, &options, &partition));
	show(partition ? "it is there, and freed" : "there is none", 0);
	show("free", ek_partition_free(&partition));
}

int main(int argc, char **argv)
{
	struct ek_partition_options usual = {0}, wrong;
	ek_partition *partition;
	ek_array *array;
	ek_halo *halo;
	struct ek_hooks hooks = {0, size, pack, unpack, 0};
	int changed;

	int before = ek_partition_create(MPI_COMM_WORLD, 10, 0, &partition);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	show("before MPI_Init", before);
	create("good", 100, usual);
	create("no items", 0, usual);
	create("negative items", -5, usual);
	create("no items on rank 1", rank == 1 ? 0 : 100, usual);
	create("other items on rank 1", rank == 1 ? 99 : 100, usual);
	create("a minimum that can't be kept", 100, (struct ek_partition_options){.minimum = 60});
	create("no room", 100, (struct ek_partition_options){.maximum = 10});
	create("a policy that does not exist", 100, (struct ek_partition_options){.policy = 77});
	create("a negative threshold", 100, (struct ek_partition_options){.threshold = -1});
#define ANOTHER(option, value)                         \
	wrong = usual;                                 \
	wrong.option = rank == 1 ? (value) : 0;        \
	create("another " #option " on rank 1", 100, wrong)
	ANOTHER(policy, EK_POLICY_PAIRWISE);
	ANOTHER(measure, EK_MEASURE_WALL);
	ANOTHER(fastest, 1);
	ANOTHER(weighted, 1);
	ANOTHER(threshold, 0.5);
	ANOTHER(threshold_seconds, 0.5);
	ANOTHER(minimum, 1);
	ANOTHER(maximum, 100);
	ANOTHER(cycles, 7);
#undef ANOTHER
	create("a minimum that can just be kept", 101, (struct ek_partition_options){.minimum = 101 / ranks});
	create("just room", 101, (struct ek_partition_options){.maximum = (101 + ranks - 1) / ranks});
	create("an item too many", 101, (struct ek_partition_options){.maximum = 101 / ranks});
	show("a null communicator", ek_partition_create(MPI_COMM_NULL, 10, 0, &partition));

	show("create", ek_partition_create(MPI_COMM_WORLD, 100, 0, &partition));
	show("items of no bytes", ek_array_create(partition, 0, 0, &array));
	show("items of no bytes on rank 1", ek_array_create(partition, rank == 1 ? 0 : 8, 0, &array));
	show("a negative halo", ek_array_create(partition, 8, -1, &array));
	show("other sizes", ek_array_create(partition, rank == 1 ? 4 : 8, 0, &array));
	show("hooks without functions", ek_partition_hooks(partition, &(struct ek_hooks){0}));
	show("hooks on rank 0 alone", ek_partition_hooks(partition, rank == 0 ? &hooks : 0));
	show("an array on rank 0, hooks on the others",
	     rank == 0 ? ek_array_create_variable(partition, &array) : ek_partition_hooks(partition, &hooks));
	show("hooks on rank 0, a halo on the others",
	     rank == 0 ? ek_partition_hooks(partition, &hooks) : ek_halo_create(partition, needs, 0, &halo));
	show("a halo that names nothing, on rank 1", ek_halo_create(partition, rank == 1 ? 0 : needs, 0, &halo));
	show("a negative time on rank 1", ek_partition_overlap(partition, 0, 0, rank == 1 ? -1 : 1));
	show("items of any length", ek_array_create_variable(partition, &array));
	int64_t first, count, lengths[100] = {-3};
	ek_partition_range(partition, &first, &count);
	int refused = ek_array_assign(array, lengths, "");
	show("a negative length", refused == EK_REFUSED && strstr(ek_error_text(), "has a length of -3 bytes") ? EK_OK : refused);
	show("a gather of items of any length", ek_array_gather(array, lengths));
	int64_t bounds[65] = {0};
	bounds[ranks] = 100;
	bounds[1] = rank == 1 ? 40 : 50;
	for (int r = 2; r < ranks; r++)
		bounds[r] = 60;
	show("other bounds on rank 1", ek_partition_set(partition, bounds));
	bounds[1] = -5;
	show("bounds out of order", ek_partition_set(partition, bounds));
	bounds[1] = 50;
	bounds[ranks - 1] = 101;
	show("bounds that go back by one item", ek_partition_set(partition, bounds));
	bounds[ranks - 1] = ranks == 2 ? 50 : 60;
	bounds[ranks] = 101;
	show("bounds past the end", ek_partition_set(partition, bounds));
	bounds[ranks] = 100;
	show("good bounds", ek_partition_set(partition, bounds));
	show("a step before the move", ek_partition_step(partition, &changed));
	show("a call of the program's own before the move", ek_partition_stepped(partition, &changed));
	show("move", ek_partition_move(partition));
	show("step", ek_partition_step(partition, &changed));
	show("free", ek_partition_free(&partition));
	show("create", ek_partition_create(MPI_COMM_WORLD, 100, &(struct ek_partition_options){.policy = EK_POLICY_PROFILED}, &partition));
	double costs[100] = {rank == 1 ? -5 : 1};
	show("costs", ek_partition_costs(partition, costs));
	show("a negative cost on rank 1", ek_partition_step(partition, &changed));
	show("a step without costs", ek_partition_step(partition, &changed));
	show("free", ek_partition_free(&partition));
	MPI_Finalize();
	return 0;
}
