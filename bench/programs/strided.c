/* What writing blocks at equal steps into another rank's memory takes.
 *
 *   strided     2 ranks on one node; rank 0 writes into a window of rank 1
 *
 * Prints a line for each layout: its name, its bytes and nanoseconds: of a copy
 * without gaps, of a loop written by hand, of the data gather/scatter program,
 * and of MPI_Put with a derived type and MPI_Win_flush. The four take turns; the
 * figure is the median of the turns.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dgsp.h"

enum { TURNS = 15, WAYS = 4, SPACE = 16 << 20 };

static char *source, *target;
static MPI_Win window;
static long width, stride, blocks;
static MPI_Datatype type;
static struct ek_dgsp_run run;

static void contiguous(void)
{
	memcpy(target, source, (size_t)(width * blocks));
}

static void by_hand(void)
{
	if (width == 8)
		for (long i = 0; i < blocks; i++)
			memcpy(target + i * stride, source + i * 8, 8);
	else
		for (long i = 0; i < blocks; i++)
			memcpy(target + i * stride, source + i * width, (size_t)width);
}

static void program(void)
{
	ek_dgsp_unpack(&run, target, source, 0, width * blocks);
}

static void put(void)
{
	MPI_Put(source, (int)(width * blocks), MPI_BYTE, 1, 0, 1, type, window);
	MPI_Win_flush(1, window);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(const char *name)
{
	static void (*const ways[WAYS])(void) = {contiguous, by_hand, program, put};
	double taken[WAYS][TURNS];
	struct ek_dgsp_memory memory = {.limit = 1 << 20};
	struct ek_dgsp_part part = ek_dgsp_loop(&memory, ek_dgsp_block(&memory, width), blocks, stride);
	long times = (4 << 20) / (width * blocks);
	run = (struct ek_dgsp_run){part.node, part.at, 0, false};
	MPI_Type_create_hvector((int)blocks, (int)width, stride, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	for (int turn = -1; turn < TURNS; turn++) /* the first is not counted */
		for (int w = 0; w < WAYS; w++) {
			double begin = now();
			for (long i = 0; i < times; i++) {
				ways[w]();
				__asm__ volatile("" ::: "memory");
			}
			if (turn >= 0)
				taken[w][turn] = (now() - begin) / (double)times;
		}
	printf("%s|%ld", name, width * blocks);
	for (int w = 0; w < WAYS; w++) {
		qsort(taken[w], TURNS, sizeof taken[w][0], by_size);
		printf("|%.1f", taken[w][TURNS / 2]);
	}
	printf("\n");
	MPI_Type_free(&type);
	ek_dgsp_forget(&memory);
}

int main(int argc, char **argv)
{
	int rank, unit;
	MPI_Aint size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_allocate_shared(rank ? SPACE : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &target, &window);
	MPI_Win_shared_query(window, 1, &size, &unit, &target);
	MPI_Win_lock_all(0, window);
	if (rank)
		memset(target, 1, SPACE); /* its pages are its own */
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		static const struct {
			const char *name;
			long width, stride, bytes;
		} layouts[] = {
			{"8 of 16 bytes, 64 KiB", 8, 16, 64 << 10},   {"8 of 64 bytes, 64 KiB", 8, 64, 64 << 10},
			{"64 of 128 bytes, 64 KiB", 64, 128, 64 << 10}, {"8 of 16 bytes, 1 MiB", 8, 16, 1 << 20},
			{"8 of 64 bytes, 1 MiB", 8, 64, 1 << 20},     {"64 of 128 bytes, 1 MiB", 64, 128, 1 << 20},
		};
		source = malloc(SPACE);
		memset(source, 2, SPACE);
		for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
			width = layouts[i].width;
			stride = layouts[i].stride;
			blocks = layouts[i].bytes / width;
			measure(layouts[i].name);
		}
		free(source);
	}
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}
