/* barrier_clock.h - when this process came to its last shared barrier, and left it, by the
 * clock in C: right before and after what a barrier waits in.
 */
#ifndef BARRIER_CLOCK_H
#define BARRIER_CLOCK_H

#include "../truth.h"

extern struct reading barrier_clock;

#endif
