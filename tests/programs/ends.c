/* ends.c - the ways in which a job ends, or does not.
 *
 *	mpirun -np 2 ends WAY [NUMBER]
 *
 * All ranks compute and meet in 100 barriers, and then
 *	finalize     end as they should
 *	reduce       add up their numbers in nonblocking reductions, and end as they should
 *	abort N      rank 0 calls MPI_Abort with N, the others are in a barrier
 *	exit N       all call exit(N) without MPI_Finalize
 *	leave R      rank R calls exit(9) without MPI_Finalize, the others are in a barrier
 *	_exit N      all call _exit(N)
 *	segfault R   rank R writes through a null pointer, the others are in a barrier
 *	kill R       rank R sends itself SIGKILL
 *	terminate R  rank R sends itself SIGTERM
 *	hang R       rank R never enters the barrier in which the others wait
 *	deadlock     each rank receives from the next, and none sends
 *	exec         each rank becomes another program, which ends with status 0
 *	system       each rank runs a command of the shell, and then goes on
 *	fork-exit    each rank has a child that calls exit, and then goes on
 *	fork-leave   each rank has a child that ends its only thread, and then goes on
 *	fork-run     each rank has a child that outlives it by a second or so
 * What would not end by itself is ended by SIGALRM after two minutes.
 */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, size, number;

/* About rank + 1 tenths of a millisecond. */
static void compute(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec <
	       100000 * (rank + 1));
}

static void meet(void)
{
	for (int i = 0; i < 100; i++) {
		compute();
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void wait_for_others(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void finalize(void)
{
	MPI_Finalize();
}

static void reduce(void)
{
	for (int i = 0; i < 100; i++) {
		int mine = rank + i, sum = -1;
		MPI_Request request;

		MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (sum != size * (size - 1) / 2 + i * size) {
			fprintf(stderr, "ends: reduction %d gives %d\n", i, sum);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Finalize();
}

static void abort_job(void)
{
	if (rank == 0)
		MPI_Abort(MPI_COMM_WORLD, number);
	wait_for_others();
}

static void exit_at_once(void)
{
	exit(number);
}

static void leave(void)
{
	if (rank == number)
		exit(9);
	wait_for_others();
}

static void exit_without_handlers(void)
{
	_exit(number);
}

static void segfault(void)
{
	if (rank == number) {
		volatile int *volatile nowhere = NULL;

		*nowhere = 1;
	}
	wait_for_others();
}

static void kill_self(void)
{
	if (rank == number)
		raise(SIGKILL);
	wait_for_others();
}

static void terminate_self(void)
{
	if (rank == number)
		raise(SIGTERM);
	wait_for_others();
}

static void hang(void)
{
	while (rank == number)
		pause();
	wait_for_others();
}

static void deadlock(void)
{
	int in;

	MPI_Recv(&in, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void become_another(void)
{
	execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
	perror("ends: /bin/sh");
	exit(1);
}

static void run_command(void)
{
	if (system("exit 3") != 3 << 8)
		MPI_Abort(MPI_COMM_WORLD, 1);
	meet();
	MPI_Finalize();
}

/* The child has ended with this status: goes on without it. */
static void go_on_after(pid_t child, int expected)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != expected)
		MPI_Abort(MPI_COMM_WORLD, 1);
	meet();
	MPI_Finalize();
}

static void fork_exit(void)
{
	pid_t child = fork();

	if (child == 0) {
		MPI_Pcontrol(1, "in the child");
		exit(7);
	}
	go_on_after(child, 7);
}

static void fork_leave(void)
{
	pid_t child = fork();

	if (child == 0)
		pthread_exit(NULL);
	go_on_after(child, 0);
}

static void fork_run(void)
{
	pid_t child = fork();

	if (child == 0) {
		sleep(1);
		_exit(0);
	}
	if (child < 0)
		MPI_Abort(MPI_COMM_WORLD, 1);
	meet();
	MPI_Finalize();
}

static const struct {
	const char *name;
	void (*end)(void);
} ways[] = {
	{"finalize", finalize},
	{"reduce", reduce},
	{"abort", abort_job},
	{"exit", exit_at_once},
	{"leave", leave},
	{"_exit", exit_without_handlers},
	{"segfault", segfault},
	{"kill", kill_self},
	{"terminate", terminate_self},
	{"hang", hang},
	{"deadlock", deadlock},
	{"exec", become_another},
	{"system", run_command},
	{"fork-exit", fork_exit},
	{"fork-leave", fork_leave},
	{"fork-run", fork_run},
};

int main(int argc, char **argv)
{
	size_t way = 0, count = sizeof ways / sizeof ways[0];

	while (way < count && (argc < 2 || strcmp(argv[1], ways[way].name) != 0))
		way++;
	if (way == count) {
		fprintf(stderr, "ends: the first argument is none of the ways to end\n");
		return 2;
	}
	number = argc > 2 ? atoi(argv[2]) : 0;

	alarm(120);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	meet();
	if (rank == 0) {
		printf("met\n");
		fflush(stdout);
	}
	ways[way].end();
	return 0;
}
