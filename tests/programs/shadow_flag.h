/* shadow_flag.h - how two ranks of a node tell each other something without
 * MPI: while one of them waits here, it is as busy as in a computation. */
#ifndef SHADOW_FLAG_H
#define SHADOW_FLAG_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static atomic_int *flags; /* shared by the ranks; zero at first */
static int patience_ms = 8000;

/* PATIENCE_MS shortens the wait where somebody is to be stuck. */
static void open_flags(const char *path)
{
	if (getenv("PATIENCE_MS"))
		patience_ms = atoi(getenv("PATIENCE_MS"));
	int file = open(path, O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, 4096) != 0)
		exit(3);
	flags = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (flags == MAP_FAILED)
		exit(3);
	close(file);
}

static void raise_flag(int flag)
{
	atomic_store(&flags[flag], 1);
}

/* False if nobody raises it: whoever should is stuck. */
static int await_flag(int flag)
{
	const struct timespec moment = {0, 100000};
	struct timespec now, begun;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		if (atomic_load(&flags[flag]))
			return 1;
		nanosleep(&moment, 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < patience_ms);
	return 0;
}

#endif
