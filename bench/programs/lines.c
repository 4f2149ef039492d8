/* lines.c - the least that a barrier of two processes can take: each writes a word
 * on a cache line of its own, and waits for the other's.
 *
 *	lines [ROUNDS]
 *
 * The processes run on two processors. Prints nanoseconds per round.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		perror("sched_setaffinity");
}

static void meet(uint64_t *own, const uint64_t *other, uint64_t number)
{
	__atomic_store_n(own, number, __ATOMIC_RELEASE);
	while (__atomic_load_n(other, __ATOMIC_ACQUIRE) < number)
		;
}

int main(int argc, char **argv)
{
	enum { PAGE = 4096 };
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, number = 0;
	char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = shared == MAP_FAILED ? -1 : fork();
	double begin;

	if (child < 0) {
		perror("lines");
		return 1;
	}
	uint64_t *own = (uint64_t *)(shared + (child ? 0 : PAGE)), *other = (uint64_t *)(shared + (child ? PAGE : 0));
	run_on(child ? 0 : 1);
	while (number < rounds / 10 + 1) /* to warm up */
		meet(own, other, ++number);
	begin = now();
	for (uint64_t i = 0; i < rounds; i++)
		meet(own, other, ++number);
	if (child) {
		printf("%.2f\n", (now() - begin) / (double)rounds);
		waitpid(child, NULL, 0);
	}
	return 0;
}
