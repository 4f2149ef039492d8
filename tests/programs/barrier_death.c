/* barrier_death.c - a rank that dies inside a barrier, in which others wait too.
 *
 *	mpirun -np N barrier_death WAY
 *
 * After some barriers the last rank waits in one that rank 0 does not come to
 * before it is dead: of SIGKILL, of a fault (WAY segv), by exit or by _exit with
 * status 9. Rank 0 then goes into the barrier as well.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *way;

static void die(int number)
{
	(void)number;
	if (strcmp(way, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(way, "segv") == 0)
		raise(SIGSEGV);
	if (strcmp(way, "exit") == 0)
		exit(9);
	_exit(9);
}

int main(int argc, char **argv)
{
	const struct itimerval moment = {.it_value = {0, 200000}};
	const struct timespec until_dead = {0, 400000000};
	int rank, size;

	way = argv[1];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 1000; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1) {
		signal(SIGALRM, die);
		setitimer(ITIMER_REAL, &moment, NULL);
	}
	if (rank == 0)
		nanosleep(&until_dead, NULL);
	MPI_Barrier(MPI_COMM_WORLD); /* the dead one came to this */
	MPI_Barrier(MPI_COMM_WORLD);
	printf("rank %d passed\n", rank);
	MPI_Finalize();
	return 0;
}
