/* ladder.h - how to wait: what to do next in a wait of which is known how long it
 * has lasted, and how long the waits at the same place lasted before.
 *
 * The rungs: spin, yield (let another thread have the processor for a moment),
 * sleep. Who sleeps notices the end of the wait late: by half of what it sleeps,
 * and by what waking up takes. So by default sleeps are a hundredth of what has
 * been waited already, or a part of what the shortest remembered wait still has
 * to go: each adds about 1 % to its wait, or a part of what the memory is wrong
 * by. One that gets on for other threads, too, does not know when they will need it:
 * as what it has waited is the time in which nobody did, it sleeps a part of that and
 * no more, so what they wait for is late by no more than that part of the time since
 * then. Pure: no clock, no MPI, no state but what it is given.
 */
#ifndef EK_LADDER_H
#define EK_LADDER_H

#include <stdbool.h>
#include <stdint.h>

enum { EK_WAITS = 8 };

/* The last waits at one place that came to the ladder: those that ended while
 * they still spun say nothing of those that did not. */
struct ek_waits {
	uint32_t us[EK_WAITS];
	uint32_t count; /* ever */
};

enum ek_rung { EK_RUNG_SPIN, EK_RUNG_YIELD, EK_RUNG_SLEEP };

struct ek_ladder {
	bool always;  /* sleep as soon as there is a wait at all, whatever it costs */
	bool crowded; /* others need the processor */
	bool shared;  /* other threads count on this one: a sleep is a part of what has been waited,
	                 whatever is known of this wait */
	uint64_t latency_ns; /* that a sleep lasts longer than was asked for */
};

struct ek_step {
	enum ek_rung rung;
	uint64_t sleep_ns;
	uint64_t left_ns; /* that the wait may be expected to last yet */
};

/* Until here MPI spins as it always does. */
#define EK_LADDER_SPIN_NS 50000u
/* MPI gets on with its own at least that often. */
#define EK_LADDER_LONGEST_NS 1000000u

/* What to do after `waited_ns` of a wait. `woken`: whoever ends the wait wakes
 * the sleeper. */
struct ek_step ek_ladder_step(const struct ek_ladder *ladder, const struct ek_waits *waits, uint64_t waited_ns, bool woken);

/* A wait has ended that came to the ladder. */
void ek_ladder_remember(struct ek_waits *waits, uint64_t waited_ns);

#endif
