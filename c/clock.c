#define _GNU_SOURCE
#include "clock.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool ek_clock_is_tsc;

/* The counter must tick at a constant rate in all states (the CPU says so),
 * and the kernel must not have found it unreliable: it then takes it off its
 * list of clock sources. */
void ek_clock_choose(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	char sources[256] = "";
	FILE *file;
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
		return;
	file = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
	if (!file)
		return;
	char *rest, *source = fgets(sources, sizeof sources, file) ? strtok_r(sources, " \n", &rest) : 0;
	for (; source; source = strtok_r(0, " \n", &rest))
		if (strcmp(source, "tsc") == 0) /* and not hyperv_clocksource_tsc_page */
			ek_clock_is_tsc = true;
	fclose(file);
#endif
}

struct ek_clock_anchor ek_clock_anchor_now(void)
{
	struct ek_clock_anchor best = {0, 0};
	uint64_t tightest = UINT64_MAX;
	for (int i = 0; i < 8; i++) {
		uint64_t before = ek_ticks();
		uint64_t monotonic = ek_monotonic_ns();
		uint64_t width = ek_ticks() - before;
		if (width < tightest) {
			tightest = width;
			best.ticks = before + width / 2;
			best.monotonic_ns = monotonic;
		}
	}
	return best;
}

enum { ROUND_TRIPS = 30, TAG = 4711 };

/* One edge of the tree, seen from the parent: answers with its own time. */
static void serve(MPI_Comm leaders, int child)
{
	uint64_t word;
	for (int i = 0; i < ROUND_TRIPS; i++) {
		ek_mpi.Recv(&word, 1, ek_mpi.type_uint64, child, TAG, leaders, MPI_STATUS_IGNORE);
		word = ek_monotonic_ns();
		ek_mpi.Send(&word, 1, ek_mpi.type_uint64, child, TAG, leaders);
	}
}

/* Seen from the child: in the shortest round trip the parent's time was read
 * somewhere between our sending and our receiving, so the offset is known to
 * half the round trip. */
static struct ek_clock_sync ask(MPI_Comm leaders, int parent)
{
	struct ek_clock_sync sync = {0, 0, UINT64_MAX};
	for (int i = 0; i < ROUND_TRIPS; i++) {
		uint64_t sent = ek_monotonic_ns(), theirs = 0, received;
		ek_mpi.Send(&sent, 1, ek_mpi.type_uint64, parent, TAG, leaders);
		ek_mpi.Recv(&theirs, 1, ek_mpi.type_uint64, parent, TAG, leaders, MPI_STATUS_IGNORE);
		received = ek_monotonic_ns();
		if ((received - sent) / 2 + 1 < sync.error_ns) {
			sync.error_ns = (received - sent) / 2 + 1;
			sync.monotonic_ns = sent + (received - sent) / 2;
			sync.offset_ns = (int64_t)(sync.monotonic_ns - theirs);
		}
	}
	return sync;
}

/* A binomial tree: in the round of distance d, ranks d .. 2d-1 measure against
 * rank - d, which knows its own offset to rank 0 by then. Offsets add up along
 * the path, and so do errors. */
struct ek_clock_sync ek_clock_sync_now(MPI_Comm leaders)
{
	struct ek_clock_sync mine = {ek_monotonic_ns(), 0, 0};
	int rank, size;
	ek_mpi.Comm_rank(leaders, &rank);
	ek_mpi.Comm_size(leaders, &size);
	for (int distance = 1; distance < size; distance *= 2) {
		if (rank < distance && rank + distance < size) {
			uint64_t known[2] = {(uint64_t)mine.offset_ns, mine.error_ns};
			serve(leaders, rank + distance);
			ek_mpi.Send(known, 2, ek_mpi.type_uint64, rank + distance, TAG, leaders);
		} else if (rank >= distance && rank < 2 * distance) {
			uint64_t known[2] = {0, 0};
			mine = ask(leaders, rank - distance);
			ek_mpi.Recv(known, 2, ek_mpi.type_uint64, rank - distance, TAG, leaders,
			            MPI_STATUS_IGNORE);
			mine.offset_ns += (int64_t)known[0];
			mine.error_ns += known[1];
		}
	}
	return mine;
}
