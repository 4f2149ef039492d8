/* linked.c - a program that knows evenkeel: it is linked to it and marks its
 * regions through evenkeel.h.
 *
 *	mpirun -np 2 linked
 *
 * In "solve", 10 times, 2 barriers, and in "exchange" inside it 3. Prints what
 * ek_region_begin said before MPI_Init, between, and after MPI_Finalize.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>

static void barriers(int n)
{
	while (n-- > 0)
		MPI_Barrier(MPI_COMM_WORLD);
}

static const char *said(int result)
{
	return result == EK_OK ? "active" : "inactive";
}

int main(int argc, char **argv)
{
	int before = ek_region_begin("too early"), between = EK_OK;

	MPI_Init(&argc, &argv);
	barriers(1);
	for (int i = 0; i < 10; i++) {
		between |= ek_region_begin("solve");
		barriers(1);
		between |= ek_region_begin("exchange");
		barriers(3);
		between |= ek_region_end();
		barriers(1);
		between |= ek_region_end();
	}
	MPI_Finalize();
	printf("%s, %s, %s\n", said(before), said(between), said(ek_region_begin("too late")));
	return 0;
}
