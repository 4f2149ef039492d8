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
struct ek_presence {
	cpu_set_t mask;
	struct ek_usage usage, before;
};

/* Reads the counters of this process, and the mask of its first thread; what was there
 * becomes `before`. */
void ek_presence_renew(struct ek_presence *presence);

/* What rank `self` of a node's ranks can count on: of a core that several ranks may
 * use, a share; and of others, who kept these cores busy between the two readings. */
struct ek_balancer_resources ek_resources(const struct ek_presence *const ranks[], int count, int self);

#endif
