/* resources.h - what this process has to compute with: its cores, the limit of its
 * control group, how busy others keep those cores, its priority. All of it is read
 * without privileges.
 */
#ifndef EK_RESOURCES_H
#define EK_RESOURCES_H

#include <sched.h>
#include <stdint.h>

#include "balancer.h"

/* A reading of counters, to compare with a later one. */
struct ek_usage {
	uint64_t when_ns;
	double busy;  /* seconds that the cores of the mask were busy since the machine started; negative: not known */
	double own;   /* processor seconds of this process */
};

/* What one rank shows the others of its node. */
struct ek_shown {
	cpu_set_t mask;
	struct ek_usage usage, before;
};

/* It shows that in memory that they read at any time: the newest of what it has shown
 * `shown` times, which is not written to before the next is there to be read. All bytes 0
 * at first. */
struct ek_presence {
	uint64_t shown; /* accessed atomically */
	struct ek_shown places[2]; /* by the lowest bit of that */
};

/* Reads the counters of this process, and the mask of its first thread; what was there
 * becomes `before`. By one thread of its process at a time. */
void ek_presence_renew(struct ek_presence *presence);

/* What it shows, from any process. */
struct ek_shown ek_presence_read(const struct ek_presence *presence);

/* What rank `self` of a node's ranks can count on: of a core that several ranks may
 * use, a share; and of others, who kept these cores busy between the two readings. */
struct ek_balancer_resources ek_resources(const struct ek_presence *const presences[], int count, int self);

#endif
