#include "ladder.h"

enum {
	PART = 100,        /* of what has been waited may be slept */
	PART_LEFT = 3,     /* of what the shortest remembered wait still lasts */
	PART_CROWDED = 32, /* of what has been waited, where to stay awake delays others; */
	PART_LEFT_CROWDED = 2,
	PART_ALWAYS = 8,
	SHORTEST_NS = 20000, /* sleep; shorter ones cost more than they save */
	SHORTEST_CROWDED_NS = 50000,
	WOKEN_CROWDED_NS = 200000 /* waits from here on last longer than the turn of another rank */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* How long the shortest of the remembered waits lasted that lasted longer than
 * this one has; 0: none did. Two at least must be remembered. */
static uint64_t expected(const struct ek_waits *waits, uint64_t waited_ns)
{
	uint64_t shortest = 0;
	uint32_t known = waits->count < EK_WAITS ? waits->count : EK_WAITS;
	for (uint32_t i = 0; i < known && known > 1; i++) {
		uint64_t ns = waits->us[i] * 1000ull;
		if (ns > waited_ns && (!shortest || ns < shortest))
			shortest = ns;
	}
	return shortest;
}

/* How long to sleep; 0, or less than pays: not at all. */
static uint64_t sleep_for(const struct ek_ladder *ladder, uint64_t waited_ns, uint64_t left_ns, bool woken)
{
	uint64_t latency = ladder->latency_ns, by_left, by_waited;
	if (ladder->always)
		return woken ? EK_LADDER_LONGEST_NS : most(waited_ns / PART_ALWAYS, SHORTEST_NS);
	if (ladder->crowded && woken)
		return waited_ns >= WOKEN_CROWDED_NS ? EK_LADDER_LONGEST_NS : 0;
	if (ladder->crowded) {
		by_left = most(left_ns / PART_LEFT_CROWDED, waited_ns / PART_CROWDED);
		return by_left >= SHORTEST_CROWDED_NS ? by_left : 0;
	}
	if (woken) {
		/* Awake again before the end, if that is known; else wherever waking up
		 * is little beside the wait. */
		by_left = left_ns > 2 * latency ? left_ns - 2 * latency : 0;
		by_waited = waited_ns / PART >= latency ? EK_LADDER_LONGEST_NS : 0;
		return by_left ? by_left : by_waited;
	}
	by_left = left_ns / PART_LEFT >= 2 * latency ? left_ns / PART_LEFT : 0;
	by_waited = waited_ns / PART >= 2 * latency ? waited_ns / PART - latency : 0;
	return most(by_left, by_waited);
}

struct ek_step ek_ladder_step(const struct ek_ladder *ladder, const struct ek_waits *waits, uint64_t waited_ns, bool woken)
{
	bool hurried = ladder->always || ladder->crowded;
	uint64_t whole = expected(waits, waited_ns), left = whole ? whole - waited_ns : 0, ns;
	/* What is not known lasts as long again. */
	struct ek_step step = {EK_RUNG_YIELD, 0, whole ? left : waited_ns};
	if (waited_ns < EK_LADDER_SPIN_NS) {
		step.rung = hurried ? EK_RUNG_YIELD : EK_RUNG_SPIN;
		return step;
	}
	if (ladder->shared)
		left = 0;
	ns = sleep_for(ladder, waited_ns, left, woken && !ladder->shared);
	if (ns >= SHORTEST_NS) {
		step.rung = EK_RUNG_SLEEP;
		step.sleep_ns = least(ns, EK_LADDER_LONGEST_NS);
	}
	return step;
}

void ek_ladder_remember(struct ek_waits *waits, uint64_t waited_ns)
{
	uint64_t us = waited_ns / 1000;
	waits->us[waits->count++ % EK_WAITS] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}
