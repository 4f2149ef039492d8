/* pcontrol.c - MPI_Pcontrol(1) as programs call it that mean "recording on" and
 * give no name: with whatever an earlier call left in the argument's register.
 *
 *	mpirun -np 2 pcontrol
 *
 * Ten barriers in all are to be recorded on each rank, and 5 are not.
 */
#include <mpi.h>
#include <stdint.h>

/* MPI_Pcontrol(1), with `left` where a second argument would be. */
static void on_after(uintptr_t left)
{
	MPI_Pcontrol(1, left);
}

static void barriers(int n)
{
	while (n-- > 0)
		MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const int number = 65; /* in memory: the letter A, and an end */
	static const char text[] = "left over from an earlier call";

	MPI_Init(&argc, &argv);
	on_after(0);
	on_after(1);
	on_after((uintptr_t)&number);
	on_after((uintptr_t)on_after);
	on_after(UINTPTR_MAX);
	barriers(5);
	MPI_Pcontrol(0);
	barriers(5);
	on_after((uintptr_t)text);
	barriers(3);
	on_after((uintptr_t)text);
	barriers(2);
	MPI_Finalize();
	return 0;
}
