#define _GNU_SOURCE
#include "arrivals.h"

#include <sched.h>

#include "barrier.h"

static struct ek_clock_anchor anchor;
static double ns_per_tick;
static int64_t offset_ns; /* of this node's clock to that of node 0 */

/* Both clocks at one moment: read again, at most so many times, if the reading was interrupted. */
static struct ek_clock_anchor now(void)
{
	enum { TRIES = 4, INTERRUPTED_NS = 1000 };
	struct ek_clock_anchor read;
	for (int i = 0; i < TRIES; i++) {
		read.ticks = ek_ticks();
		read.monotonic_ns = ek_monotonic_ns();
		if ((double)(ek_ticks() - read.ticks) * ns_per_tick < INTERRUPTED_NS)
			break;
	}
	return read;
}

/* A reading of this millisecond: over that the rate of ticks is known well enough, and
 * the clocks are not read anew in each barrier of a fast series. */
static struct ek_clock_anchor lately(uint64_t ticks)
{
	enum { MOMENT_NS = 1000000 };
	static __thread struct ek_clock_anchor last __attribute__((tls_model("initial-exec")));
	if ((double)(ticks - last.ticks) * ns_per_tick > MOMENT_NS) /* of an earlier time than `last` too */
		last = now();
	return last;
}

/* As all nodes understand them. The processor may read its ticks before it has seen that
 * the last rank arrived: that one's are later then. */
void ek_arrivals_collect(struct meeting *m, uint64_t number)
{
	const struct ek_clock_anchor present = lately(EK_LOAD(m->arrivals->ticks[number % EK_BARRIER_HISTORY]));
	for (int i = 0; i < m->exchange.here; i++) {
		const struct ek_arrivals *a = m->recorded[m->exchange.order[i]];
		uint64_t arrived = EK_LOAD(a->ticks[number % EK_BARRIER_HISTORY]);
		int64_t ago = (int64_t)((double)(int64_t)(present.ticks - arrived) * ns_per_tick);
		m->exchange.times[i] = present.monotonic_ns - (uint64_t)offset_ns - (uint64_t)ago;
	}
}

void ek_arrivals_keep(struct meeting *m, uint64_t number)
{
	if (!m->everywhere)
		return;
	uint64_t *row = m->everywhere + number % EK_BARRIER_HISTORY * (uint64_t)m->size;
	for (int i = 0; i < m->size; i++)
		EK_STORE(row[m->exchange.order[i]], m->exchange.times[i]);
	EK_PUBLISH(m->arrivals->exchanged, number);
}

EK_EXPORT uint64_t ek_barrier_passed(MPI_Comm comm)
{
	if (!ek_meetings[0])
		return 0; /* barriers are MPI's own in this job */
	const struct meeting *m = ek_meeting_of(comm);
	return m->way >= EVERYBODY ? EK_LOAD(m->sequence) - m->base : 0;
}

/* Whether what stood at that number's place when it was read is that number's:
 * it was written, and not overwritten since. */
static bool still(const uint64_t *last, uint64_t number)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	uint64_t now = EK_LOAD(*last);
	return now >= number && now + 1 < number + EK_BARRIER_HISTORY;
}

static bool arrivals_here(const struct meeting *m, uint64_t number, uint64_t arrived_ns[])
{
	for (int rank = 0; rank < m->size; rank++) {
		const struct ek_arrivals *a = m->recorded[rank];
		/* It writes the time right after the word that let us leave. */
		for (int i = 0; i < 1000 && __atomic_load_n(&a->recorded, __ATOMIC_ACQUIRE) < number; i++)
			sched_yield();
		uint64_t ticks = EK_LOAD(a->ticks[number % EK_BARRIER_HISTORY]);
		if (!still(&a->recorded, number))
			return false;
		arrived_ns[rank] = anchor.monotonic_ns + (uint64_t)(int64_t)((double)(int64_t)(ticks - anchor.ticks) * ns_per_tick) -
		                   (uint64_t)offset_ns;
	}
	return true;
}

EK_EXPORT bool ek_barrier_arrivals(MPI_Comm comm, uint64_t number, uint64_t arrived_ns[])
{
	if (number >= ek_barrier_passed(comm))
		return false;
	const struct meeting *m = ek_meeting_of(comm);
	number += m->base + 1;
	if (m->nodes == 1)
		return arrivals_here(m, number, arrived_ns);
	if (!m->everywhere || __atomic_load_n(&m->leader->exchanged, __ATOMIC_ACQUIRE) < number)
		return false;
	for (int rank = 0; rank < m->size; rank++)
		arrived_ns[rank] = EK_LOAD(m->everywhere[number % EK_BARRIER_HISTORY * (uint64_t)m->size + (uint64_t)rank]);
	return still(&m->leader->exchanged, number);
}

void ek_arrivals_start(MPI_Comm node_comm)
{
	struct { struct ek_clock_anchor anchor; double ns_per_tick; int64_t offset_ns; } clock = {ek_clock_anchor_now(), 1, 0};
	const struct ek_clock_anchor *first = &ek.header->anchor[0];
	if (ek_clock_is_tsc && clock.anchor.ticks != first->ticks)
		clock.ns_per_tick = (double)(clock.anchor.monotonic_ns - first->monotonic_ns) / (double)(clock.anchor.ticks - first->ticks);
	clock.offset_ns = ek.header->sync[0].offset_ns;
	ek_mpi.Bcast(&clock, sizeof clock, ek_mpi.type_byte, 0, node_comm);
	anchor = clock.anchor;
	ns_per_tick = clock.ns_per_tick;
	offset_ns = clock.offset_ns;
}
