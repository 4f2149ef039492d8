/* clock.h - ticks: what time costs little to read on this node.
 *
 * The invariant time-stamp counter where the kernel itself trusts it (7 ns),
 * else CLOCK_MONOTONIC (16 ns). Ticks of one node compare with each other;
 * ek_clock_anchor ties them to CLOCK_MONOTONIC, ek_clock_sync to other nodes.
 */
#ifndef EK_CLOCK_H
#define EK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "next.h"
#include "segment.h"

extern bool ek_clock_is_tsc;
extern uint64_t ek_ticks_per_us; /* about; exact times come from anchors */

static inline uint64_t ek_monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ek_ticks(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(ek_clock_is_tsc, 1))
		return __builtin_ia32_rdtsc();
#endif
	return ek_monotonic_ns();
}

/* Chooses the source of ticks for this process; all processes of a node
 * choose alike. */
void ek_clock_choose(void);

/* Reads both clocks at the same moment: the tightest of a few tries. */
struct ek_clock_anchor ek_clock_anchor_now(void);

/* Measures this node's CLOCK_MONOTONIC against that of rank 0 of `leaders`,
 * the communicator of one rank per node. Collective over `leaders`; about
 * 30 round trips per level of a binomial tree. */
struct ek_clock_sync ek_clock_sync_now(MPI_Comm leaders);

#endif
