/* regions.c - parts of a program marked by MPI_Pcontrol, in the conventions
 * that tools know.
 *
 *	mpirun -np 2 regions named|numbered|onoff
 *
 * named     MPI_Pcontrol(1, "NAME") enters, MPI_Pcontrol(-1, "NAME") leaves
 * numbered  MPI_Pcontrol(10) enters region 10, MPI_Pcontrol(-10) leaves it
 * onoff     MPI_Pcontrol(0) turns recording off, MPI_Pcontrol(1) on
 *
 * Each cycle works outside all regions, in an outer one, in an inner one
 * inside it, and again in the outer one. Printed for each part, summed over
 * ranks: "region NAME entries N calls N seconds S", without the parts inside
 * it. NAME is outside, outer or inner; in "numbered" outer is 10 and inner 20;
 * in "onoff" outer is the time with recording off, and there is no inner.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum part { OUTSIDE, OUTER, INNER, PARTS };

static struct {
	const char *name;
	int number;
	long entries, calls;
	double seconds;
} parts[PARTS] = {
	{.name = "outside"},
	{.name = "outer", .number = 10},
	{.name = "inner", .number = 20},
};

static const char *convention;
static enum part current = OUTSIDE;
static double since;

static int is(const char *name)
{
	return strcmp(convention, name) == 0;
}

/* Books the time since the last change on the part that ends or pauses now. */
static void change_to(enum part next)
{
	double now = MPI_Wtime();

	parts[current].seconds += now - since;
	since = now;
	current = next;
}

static void enter(enum part part)
{
	parts[part].entries++;
	if (is("named"))
		MPI_Pcontrol(1, parts[part].name);
	else if (is("numbered"))
		MPI_Pcontrol(parts[part].number);
	else
		MPI_Pcontrol(0);
	change_to(part);
}

static void leave(enum part part, enum part back_to)
{
	if (is("named"))
		MPI_Pcontrol(-1, parts[part].name);
	else if (is("numbered"))
		MPI_Pcontrol(-parts[part].number);
	else
		MPI_Pcontrol(1);
	change_to(back_to);
}

static void work(int rank, int barriers)
{
	double end = MPI_Wtime() + 5e-4 * (rank + 1);

	while (MPI_Wtime() < end)
		;
	for (int i = 0; i < barriers; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	parts[current].calls += barriers;
}

static void print(int rank)
{
	if (is("numbered")) {
		parts[OUTER].name = "10";
		parts[INNER].name = "20";
	}
	for (int i = 0; i < PARTS; i++) {
		long counts[2] = {parts[i].entries, parts[i].calls}, all[2];
		double seconds;

		PMPI_Reduce(counts, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
		PMPI_Reduce(&parts[i].seconds, &seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("region %s entries %ld calls %ld seconds %.6f\n", parts[i].name,
			       all[0], all[1], seconds);
	}
}

int main(int argc, char **argv)
{
	int rank;

	convention = argc > 1 ? argv[1] : "";
	if (!is("named") && !is("numbered") && !is("onoff")) {
		fprintf(stderr, "usage: regions named|numbered|onoff\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	since = MPI_Wtime();
	for (int cycle = 0; cycle < 100; cycle++) {
		work(rank, 1);
		enter(OUTER);
		work(rank, 2);
		if (!is("onoff")) {
			enter(INNER);
			work(rank, 3);
			leave(INNER, OUTER);
		}
		work(rank, 1);
		leave(OUTER, OUTSIDE);
	}
	change_to(OUTSIDE);
	print(rank);
	MPI_Finalize();
	return 0;
}
