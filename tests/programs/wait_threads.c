/* wait_threads.c - waits of several threads of a process.
 *
 *	mpirun -np 2 wait_threads MS CYCLES
 *
 * On rank 0 a thread waits in a receive for all of the run. Another one waits CYCLES
 * times for rank 1, which comes MS milliseconds later each time, and then exchanges
 * a few messages with it, large ones too. It rests on whichever of them has MPI get on
 * for both. What they get is checked. Rank 1 never waits inside MPI, so all sleep is
 * rank 0's. Rank 0 prints the milliseconds of processor time
 * that its process used, those that it took, and how many messages it got.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 20, WORDS = 1 << 18 };

static int rank, ms, cycles, got;
static int words[WORDS];

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

static void *wait_for_the_end(void *unused)
{
	int number;
	MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect(number == cycles, "another number in the end");
	got++;
	return unused;
}

/* Every fourth message is 1 MiB. */
static int count_of(int message)
{
	return message % 4 == 3 ? WORDS : 1;
}

static void until_done(MPI_Request request)
{
	for (int done = 0; !done;)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void exchange(int cycle)
{
	for (int i = 0; i < MESSAGES; i++) {
		int count = count_of(i);
		if (rank == 1) {
			for (int k = 0; k < count; k++)
				words[k] = cycle + i + k;
			MPI_Request request;
			MPI_Isend(words, count, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
			until_done(request);
			MPI_Irecv(words, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
			until_done(request);
			continue;
		}
		memset(words, 0, sizeof words);
		MPI_Recv(words, count, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int k = 0; k < count; k++)
			expect(words[k] == cycle + i + k, "wrong data");
		MPI_Send(words, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
		got++;
	}
}

int main(int argc, char **argv)
{
	pthread_t waits;
	int provided;
	ms = argc > 1 ? atoi(argv[1]) : 40;
	cycles = argc > 2 ? atoi(argv[2]) : 8;
	const struct timespec late = {ms / 1000, ms % 1000 * 1000000};

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	expect(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	double used = ms_of(CLOCK_PROCESS_CPUTIME_ID), begun = ms_of(CLOCK_MONOTONIC);
	if (rank == 0)
		expect(pthread_create(&waits, NULL, wait_for_the_end, NULL) == 0, "no thread");
	for (int i = 0; i < cycles; i++) {
		if (rank == 1)
			nanosleep(&late, NULL);
		exchange(i);
	}
	if (rank == 1)
		MPI_Send(&cycles, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	else
		pthread_join(waits, NULL);
	used = ms_of(CLOCK_PROCESS_CPUTIME_ID) - used;
	begun = ms_of(CLOCK_MONOTONIC) - begun;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("used %.0f\ntook %.0f\ngot %d\n", used, begun, got);
	MPI_Finalize();
	return 0;
}
