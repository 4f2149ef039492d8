/* idle_guest.c - an idle program: says how it is run, then computes without end
 * and says, about every 10 ms of processor time, how many it has used.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	volatile double x = 1;
	struct timespec used;
	cpu_set_t cpus;
	sched_getaffinity(0, sizeof cpus, &cpus);
	printf("idle %d\ncpus %d\n", sched_getscheduler(0) == SCHED_IDLE, CPU_COUNT(&cpus));
	for (;;) {
		for (int i = 0; i < 10000000; i++)
			x = x * 1.0000001;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		printf("%ld\n", used.tv_sec * 1000 + used.tv_nsec / 1000000);
		fflush(stdout);
	}
}
