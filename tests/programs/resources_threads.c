/* resources_threads.c - what a rank shows of its resources, read while it shows it anew.
 *
 *	resources_threads TIMES
 *
 * One thread shows it so many times, others read it all the time, as ranks in other
 * processes do. Each reading must be of one moment.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "resources.h"

enum { READERS = 2 };

static struct ek_presence presence;
static uint64_t now_ns = 1; /* only the first thread reads this clock */
static bool over;
static int64_t torn, all;

uint64_t ek_ground_now(void)
{
	return now_ns++;
}

static void *look(void *unused)
{
	int64_t bad = 0, looks = 0;
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		struct ek_shown shown = ek_presence_read(&presence);
		bad += shown.usage.when_ns != 0 && shown.usage.when_ns != shown.before.when_ns + 1;
		looks++;
	}
	__atomic_fetch_add(&torn, bad, __ATOMIC_RELAXED);
	__atomic_fetch_add(&all, looks, __ATOMIC_RELAXED);
	return unused;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t readers[READERS];
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&readers[i], 0, look, 0) != 0)
			abort();
	for (int i = 0; i < times; i++)
		ek_presence_renew(&presence);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], 0);
	printf("looks %lld torn %lld\n", (long long)all, (long long)torn);
	return torn != 0;
}
