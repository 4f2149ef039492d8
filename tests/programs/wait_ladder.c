/* wait_ladder.c - the ladder of waiting (c/ladder.c) in virtual time.
 *
 *	wait_ladder SEED PLACES
 *
 * At each place a hundred waits come one after the other, of a length and a noise
 * that are drawn, and with a latency of waking up that is drawn: the same rules
 * run that a rank's waits run by. Checked at every place: how much later than
 * their ends the waits are noticed, in all; how much processor time they take,
 * where lengths hardly differ; that no sleep is longer than MPI may be left
 * alone; that a thread that others count on sleeps no more than a hundredth of what
 * it has waited. Of single steps it is checked when the wait is expected to end, and how
 * they sleep where waits always do, or others need the processor. Prints the worst figures.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ladder.h"

enum { WAITS = 100, ROUND_NS = 500, SLEEP_COST_NS = 22000 };

/* The shortest sleeps, and from where on a rank that will be woken leaves the processor to others. */
enum { SHORTEST_NS = 20000, SHORTEST_CROWDED_NS = 50000, WOKEN_CROWDED_NS = 200000 };

static uint64_t state;

static double random_unit(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(state >> 11) * 0x1p-53;
}

struct sum {
	double waited, late, used;
};

static void fail(const char *what, int place, double figure)
{
	printf("place %d: %s: %g\n", place, what, figure);
	exit(1);
}

static void wait_once(const struct ek_ladder *ladder, struct ek_waits *waits, double length, bool woken, int place, struct sum *sum)
{
	double now = 0;
	while (now < length) {
		struct ek_step step = ek_ladder_step(ladder, waits, (uint64_t)now, woken);
		if (step.sleep_ns > EK_LADDER_LONGEST_NS)
			fail("a sleep is too long", place, (double)step.sleep_ns);
		if (ladder->shared && step.rung == EK_RUNG_SLEEP && (double)step.sleep_ns > now / 100)
			fail("sleeps for too long though others count on it", place, now);
		if (step.rung != EK_RUNG_SLEEP) {
			now += ROUND_NS;
			sum->used += ROUND_NS;
			continue;
		}
		double until = now + (double)step.sleep_ns;
		now = (woken && until > length ? length : until) + (double)ladder->latency_ns;
		sum->used += SLEEP_COST_NS;
	}
	sum->waited += length;
	sum->late += now - length;
	ek_ladder_remember(waits, (uint64_t)now);
}

/* A step anywhere in a wait, after some waits of any length. */
static void check_step(int place)
{
	struct ek_ladder ladder = {.always = random_unit() < 0.3, .crowded = random_unit() < 0.7, .shared = random_unit() < 0.2,
	                           .latency_ns = 30000};
	struct ek_waits waits = {.count = 0}, none = {.count = 0};
	uint64_t waited = (uint64_t)(1e3 * pow(10, 4 * random_unit()));
	bool woken = random_unit() < 0.5, hurried = ladder.always || ladder.crowded;
	uint64_t left = UINT64_MAX; /* by the shortest of the last waits that was longer than this one */
	int before = (int)(2 * EK_WAITS * random_unit());
	for (int i = 0; i < before; i++) {
		uint64_t ns = (uint64_t)pow(10, 4 * random_unit()) * 1000;
		ek_ladder_remember(&waits, ns);
		if (before > 1 && i >= before - EK_WAITS && ns > waited && ns - waited < left)
			left = ns - waited;
	}
	struct ek_step step = ek_ladder_step(&ladder, &waits, waited, woken);
	if (step.left_ns != (left < UINT64_MAX ? left : waited))
		fail("expects another end", place, (double)step.left_ns);
	bool sleeps = step.rung == EK_RUNG_SLEEP;
	if (waited < EK_LADDER_SPIN_NS && step.rung != (hurried ? EK_RUNG_YIELD : EK_RUNG_SPIN))
		fail("a wrong beginning", place, step.rung);
	if (waited >= EK_LADDER_SPIN_NS && step.rung == EK_RUNG_SPIN)
		fail("spins for too long", place, (double)waited);
	if (sleeps && (step.sleep_ns < SHORTEST_NS || step.sleep_ns > EK_LADDER_LONGEST_NS))
		fail("a sleep is too short or too long", place, (double)step.sleep_ns);
	if (ladder.shared && step.sleep_ns != ek_ladder_step(&ladder, &none, waited, woken).sleep_ns)
		fail("sleeps by what is remembered though others count on it", place, (double)step.sleep_ns);
	if (waited < EK_LADDER_SPIN_NS)
		return;
	if (ladder.always && !sleeps)
		fail("does not sleep", place, (double)waited);
	if (ladder.crowded && !ladder.always && sleeps && step.sleep_ns < SHORTEST_CROWDED_NS)
		fail("a sleep is too short where others need the processor", place, (double)step.sleep_ns);
	if (ladder.crowded && !ladder.always && !ladder.shared && woken && sleeps != (waited >= WOKEN_CROWDED_NS))
		fail("leaves the processor to others too soon or too late", place, (double)waited);
}

int main(int argc, char **argv)
{
	int places = argc > 2 ? atoi(argv[2]) : 1000;
	double most_late = 0, most_used = 0;
	state = argc > 1 ? strtoull(argv[1], 0, 10) : 1;
	for (int place = 0; place < places; place++)
		check_step(place);
	for (int place = 0; place < places; place++) {
		double mean = 1e3 * pow(10, 5 * random_unit()), noise = 0.5 * random_unit() * random_unit();
		bool woken = random_unit() < 0.5, shared = random_unit() < 0.1;
		struct ek_ladder ladder = {.shared = shared, .latency_ns = (uint64_t)(5000 + 95000 * random_unit())};
		struct ek_waits waits = {.count = 0};
		struct sum sum = {0, 0, 0};
		for (int i = 0; i < WAITS; i++)
			wait_once(&ladder, &waits, mean * (1 + noise * (2 * random_unit() - 1)), woken, place, &sum);
		double late = sum.late / sum.waited, used = sum.used / sum.waited;
		/* A memory that is wrong by the noise delays by a third of that at most. */
		if (late > 0.012 + noise / 3 && sum.late > WAITS * ROUND_NS)
			fail("waits end too late", place, late);
		if (!shared && noise < 0.02 && mean > 1e7 && used > 0.15)
			fail("too much processor time", place, used);
		if (noise < 0.02 && sum.late > WAITS * ROUND_NS)
			most_late = late > most_late ? late : most_late;
		if (!shared && noise < 0.02 && mean > 1e7)
			most_used = used > most_used ? used : most_used;
	}
	printf("late by %.4f, used %.4f at most\n", most_late, most_used);
	return 0;
}
