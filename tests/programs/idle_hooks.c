/* idle_hooks.c - housekeeping in waits.
 *
 *	mpirun -np 2 idle_hooks hooks|trim
 *
 * Rank 0 waits 8 times for rank 1, which comes 40 ms late.
 * hooks: rank 0 registers a hook that keeps its time, one that fails, one that
 * takes longer than declared, one that takes longer than any wait, and one that registers
 * another in its own place, and says how often each was called; and what is answered to
 * what makes no sense.
 * trim: rank 0 says how many MiB it has in memory after it has freed nearly all,
 * and after the waits.
 */
#define _DEFAULT_SOURCE
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAITS = 8, LATE_US = 40000, BLOCKS = 64000, BLOCK = 1000 };

static int rank, good, failing, slow, taken_back, patient, renewing, renewed;

static int keep_time(void *argument)
{
	++*(int *)argument;
	return 0;
}

static int fail(void *argument)
{
	++*(int *)argument;
	return 7;
}

static int overrun(void *argument)
{
	++*(int *)argument;
	usleep(3000);
	return 0;
}

/* The next one is not to be dropped for what this one did. */
static int renew(void *argument)
{
	++*(int *)argument;
	ek_idle_unhook(renew, argument);
	ek_idle_hook("renewed", keep_time, &renewed, 5000);
	return 7;
}

static void wait_often(void)
{
	for (int i = 0; i < WAITS; i++) {
		if (rank == 1) {
			usleep(LATE_US);
			MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		} else {
			MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	}
}

static void hooks(void)
{
	if (rank == 0) {
		printf("no hook: %s\n", ek_strerror(ek_idle_hook("none", NULL, NULL, 1000)));
		printf("no time: %s\n", ek_strerror(ek_idle_hook("none", keep_time, NULL, 0)));
		printf("unknown: %s\n", ek_strerror(ek_idle_unhook(keep_time, &good)));
		ek_idle_hook("renewing", renew, &renewing, 5000); /* in the first place, which is the next to be free */
		printf("good: %s\n", ek_strerror(ek_idle_hook("good", keep_time, &good, 5000)));
		ek_idle_hook("failing", fail, &failing, 5000);
		ek_idle_hook("slow", overrun, &slow, 1000);
		ek_idle_hook("patient", keep_time, &patient, 1000000000);
		ek_idle_hook("taken back", keep_time, &taken_back, 1000);
		printf("taken back: %s\n", ek_strerror(ek_idle_unhook(keep_time, &taken_back)));
	}
	wait_often();
	if (rank == 0)
		printf("calls %d\nfailures %d\noverruns %d\nafter %d\npatient %d\nrenewing %d\nrenewed %d\n", good, failing, slow, taken_back,
		       patient, renewing, renewed);
}

static long resident_mib(void)
{
	long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
		return -1;
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE) >> 20;
}

/* The last block keeps the heap from shrinking by itself. */
static void trim(void)
{
	static char *blocks[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK);
		memset(blocks[i], 1, BLOCK);
	}
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	if (rank == 0)
		printf("before %ld\n", resident_mib());
	wait_often();
	if (rank == 0)
		printf("after %ld\n", resident_mib());
	free(blocks[BLOCKS - 1]);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "trim") == 0)
		trim();
	else
		hooks();
	MPI_Finalize();
	return 0;
}
