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

static void open_flags(const char *path)
{
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
	for (int i = 0; i < 50000; i++) {
		if (atomic_load(&flags[flag]))
			return 1;
		nanosleep(&moment, 0);
	}
	return 0;
}

#endif
