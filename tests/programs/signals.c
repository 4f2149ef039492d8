/* signals.c - whose signals are whose: a program that sets its own handlers
 * before MPI_Init, after it, and has timers.
 *
 *	mpirun -np 2 signals
 *
 * Rank 0 prints what it finds; a tool under the program must not change a line
 * of it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* libc's own mark on whatever was set through it, also on what was set back. */
#define RESTORER 0x04000000u

static volatile sig_atomic_t seen[NSIG];

static void note(int signal)
{
	seen[signal]++;
}

static void note_info(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	note(signal);
}

/* Which library a handler belongs to, wherever it was loaded to. */
static const char *owner(const struct sigaction *action)
{
	Dl_info info;
	const char *name;

	if (action->sa_handler == SIG_DFL)
		return "default";
	if (action->sa_handler == SIG_IGN)
		return "ignored";
	if (action->sa_sigaction == note_info || action->sa_handler == note)
		return "own";
	if (!dladdr((void *)action->sa_sigaction, &info) || info.dli_fname == NULL)
		return "unknown";
	name = strrchr(info.dli_fname, '/');
	return name != NULL ? name + 1 : info.dli_fname;
}

static void print_actions(const char *when)
{
	for (int s = 1; s < NSIG; s++) {
		struct sigaction action;

		if (sigaction(s, NULL, &action) == 0)
			printf("%s: signal %d: %s, flags %x\n", when, s, owner(&action),
			       (unsigned)action.sa_flags & ~RESTORER);
	}
}

static void print_thread(const char *when)
{
	sigset_t blocked;
	stack_t stack;
	int count = 0;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	sigaltstack(NULL, &stack);
	for (int s = 1; s < NSIG; s++)
		count += sigismember(&blocked, s) == 1;
	printf("%s: %d signals blocked, alternate stack flags %x\n", when, count,
	       (unsigned)stack.ss_flags);
}

/* How many threads of the process would take a signal that is sent to all of
 * it. Which one does is the kernel's choice: MPI's own may be among them. */
static int takers(int signal)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
		char path[300], line[256];
		FILE *status;

		snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
		if (task->d_name[0] == '.' || (status = fopen(path, "r")) == NULL)
			continue;
		while (fgets(line, sizeof line, status) != NULL)
			if (strncmp(line, "SigBlk:", 7) == 0)
				count += !(strtoull(line + 7, NULL, 16) >> (signal - 1) & 1);
		fclose(status);
	}
	if (tasks != NULL)
		closedir(tasks);
	return count;
}

static void handle(int signal)
{
	struct sigaction action = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO};

	sigaction(signal, &action, NULL);
}

static void compute_until(int signal, int times)
{
	volatile double x = 1;

	for (long i = 0; i < 2000000000 && seen[signal] < times; i++)
		x = x * 1.0000001;
}

static void use_timers(void)
{
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &often, NULL);
	compute_until(SIGALRM, 10);
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	compute_until(SIGPROF, 10);
	setitimer(ITIMER_PROF, &never, NULL);
}

int main(int argc, char **argv)
{
	int rank;

	signal(SIGUSR1, note);
	signal(SIGPIPE, SIG_IGN);
	handle(SIGURG);
	handle(SIGFPE);
	handle(SIGALRM);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	handle(SIGPROF);
	if (rank == 0) {
		print_actions("after MPI_Init");
		print_thread("after MPI_Init");
	}
	for (int i = 0; i < 200; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		kill(getpid(), SIGUSR1);
		kill(getpid(), SIGURG);
	}
	use_timers();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("SIGUSR1 %d, SIGURG %d, SIGALRM %s, SIGPROF %s\n", seen[SIGUSR1],
		       seen[SIGURG], seen[SIGALRM] >= 10 ? "came" : "lost",
		       seen[SIGPROF] >= 10 ? "came" : "lost");
		printf("threads that take them: SIGUSR1 %d, SIGURG %d, SIGALRM %d\n",
		       takers(SIGUSR1), takers(SIGURG), takers(SIGALRM));
	}
	MPI_Finalize();
	if (rank == 0) {
		print_actions("after MPI_Finalize");
		print_thread("after MPI_Finalize");
	}
	return 0;
}
