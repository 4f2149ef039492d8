/* idle_lend.c - what a rank sees of the cores that another one lends it.
 *
 *	mpirun -np 2 --bind-to core idle_lend
 *
 * Rank 0 waits 8 times for rank 1, which computes for 60 ms each time and looks
 * meanwhile at its affinity, at the cores that it has been lent and at how many
 * threads its parallel regions have; in the second half of the waits it moves to the lent
 * cores alone. When rank 0 is out of its wait, rank 1 looks again. It prints the most that it
 * saw, what was left of it, and whether it is back on its own cores.
 */
#define _GNU_SOURCE
#include <evenkeel.h>
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

enum { WAITS = 8 };

static cpu_set_t own;

static int cores(void)
{
	cpu_set_t mine;
	sched_getaffinity(0, sizeof mine, &mine);
	return CPU_COUNT(&mine);
}

static int astray(void)
{
	cpu_set_t mine;
	sched_getaffinity(0, sizeof mine, &mine);
	return !CPU_EQUAL(&mine, &own);
}

static void move_to_lent(void)
{
	cpu_set_t mine;
	sched_getaffinity(0, sizeof mine, &mine);
	CPU_XOR(&mine, &mine, &own);
	if (ek_lent_cores() > 0 && CPU_COUNT(&mine) > 0)
		sched_setaffinity(0, sizeof mine, &mine);
}

static int team(void)
{
	int threads = 0;
#pragma omp parallel reduction(+ : threads)
	threads += 1;
	return threads;
}

static int greater(int a, int b) { return a > b ? a : b; }

int main(int argc, char **argv)
{
	int rank, widest = 0, lent = 0, largest = 0, left = 0, left_lent = 0, strays = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sched_getaffinity(0, sizeof own, &own);
	int places = omp_get_max_threads();
	for (int i = 0; i < WAITS; i++) {
		if (rank == 1) {
			for (double begun = MPI_Wtime(); MPI_Wtime() - begun < 0.06;) {
				widest = greater(widest, cores());
				lent = greater(lent, ek_lent_cores());
				largest = greater(largest, team());
			}
			if (i >= WAITS / 2)
				move_to_lent();
			MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
			MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			left = greater(left, cores());
			left_lent = greater(left_lent, ek_lent_cores());
			strays += astray();
			MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
		} else {
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
			/* Not in a wait, until the other one has looked. */
			for (int looked = 0; !looked;)
				MPI_Iprobe(1, 3, MPI_COMM_WORLD, &looked, MPI_STATUS_IGNORE);
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	}
	if (rank == 1)
		printf("widest %d\nlent %d\nlargest %d\nplaces %d\nleft %d\nleft lent %d\nastray %d\n", widest, lent, largest, places, left, left_lent,
		       strays);
	MPI_Finalize();
	return 0;
}
