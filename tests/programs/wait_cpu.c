/* wait_cpu.c - what waiting costs the processor.
 *
 *	mpirun -np N wait_cpu HOW MS CYCLES [PAUSE]
 *
 * All ranks but the last wait CYCLES times for the last one, which comes MS
 * milliseconds later each time: in a receive, wait, waitall, waitany, probe,
 * ssend, allreduce, bcast, barrier, fence or lock. What they get is checked, and that a
 * barrier leaves errno, and a thread's waits its timers' slack, as they were.
 * Rank 0 prints the milliseconds of processor time that its thread used, and those
 * that it took in all. Then it is away from MPI for PAUSE milliseconds.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static int rank, size, last;
static MPI_Win window = MPI_WIN_NULL;
static int *shown;

static double ms_of(clockid_t which)
{
	struct timespec now;
	clock_gettime(which, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void expect(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "rank %d: %s\n", rank, what);
		MPI_Abort(MPI_COMM_WORLD, 5);
	}
}

/* The last rank's side of what is not collective. */
static void give(const char *how, int number)
{
	int got;
	for (int to = 0; to < last; to++) {
		if (strcmp(how, "ssend") == 0) {
			MPI_Recv(&got, 1, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			expect(got == number, "wrong number");
		} else {
			MPI_Send(&number, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
		}
	}
}

static void take(const char *how, int number)
{
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	int got = number, index;
	if (strcmp(how, "ssend") == 0) {
		MPI_Ssend(&number, 1, MPI_INT, last, 1, MPI_COMM_WORLD);
		return;
	}
	if (strcmp(how, "probe") == 0)
		MPI_Probe(last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (strcmp(how, "receive") == 0 || strcmp(how, "probe") == 0) {
		MPI_Recv(&got, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Irecv(&got, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &requests[1]);
		if (strcmp(how, "wait") == 0)
			MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
		else if (strcmp(how, "waitall") == 0)
			MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		else
			MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
	}
	expect(got == number, "wrong number");
}

static void meet(const char *how, int number)
{
	int mine = rank == last ? number : 0, sum;
	if (strcmp(how, "allreduce") == 0) {
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		expect(sum == number, "wrong sum");
	} else if (strcmp(how, "bcast") == 0) {
		MPI_Bcast(&mine, 1, MPI_INT, last, MPI_COMM_WORLD);
		expect(mine == number, "wrong word");
	} else if (strcmp(how, "barrier") == 0) {
		errno = EXDEV;
		MPI_Barrier(MPI_COMM_WORLD);
		expect(errno == EXDEV, "another errno");
	} else if (strcmp(how, "fence") == 0) {
		if (rank == last)
			for (int to = 0; to < last; to++)
				MPI_Put(&number, 1, MPI_INT, to, 0, 1, MPI_INT, window);
		MPI_Win_fence(0, window);
		expect(rank == last || *shown == number, "wrong word in the window");
		MPI_Win_fence(0, window);
	} else if (rank == last) {
		give(how, number);
	} else {
		take(how, number);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "receive";
	int ms = argc > 2 ? atoi(argv[2]) : 50, cycles = argc > 3 ? atoi(argv[3]) : 10;
	int away = argc > 4 ? atoi(argv[4]) : 0, slack = prctl(PR_GET_TIMERSLACK);
	const struct timespec pause = {away / 1000, away % 1000 * 1000000};
	const struct timespec late = {ms / 1000, ms % 1000 * 1000000};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	last = size - 1;
	if (strcmp(how, "fence") == 0) {
		MPI_Win_allocate(sizeof *shown, sizeof *shown, MPI_INFO_NULL, MPI_COMM_WORLD, &shown, &window);
		MPI_Win_fence(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	double used = ms_of(CLOCK_THREAD_CPUTIME_ID), begun = ms_of(CLOCK_MONOTONIC);
	for (int i = 0; i < cycles; i++) {
		if (rank == last)
			nanosleep(&late, NULL);
		meet(how, i + 1);
	}
	used = ms_of(CLOCK_THREAD_CPUTIME_ID) - used;
	begun = ms_of(CLOCK_MONOTONIC) - begun;
	expect(prctl(PR_GET_TIMERSLACK) == slack, "the timers' slack is another one");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("used %.0f\ntook %.0f\n", used, begun);
		fflush(stdout);
		nanosleep(&pause, NULL);
	}
	if (window != MPI_WIN_NULL)
		MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
