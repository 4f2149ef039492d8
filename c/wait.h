/* wait.h - EVENKEEL_WAIT: blocking calls that give up the processor while there is
 * nothing to do.
 *
 * All blocking calls of Open MPI wait in loops around one function of its
 * libopen-pal, opal_progress. A preloaded definition comes first; ours calls
 * Open MPI's and, when that had nothing to do, goes on along the ladder
 * (ladder.h) if the thread is inside a blocking call. So receives, waits,
 * collectives and one-sided calls are served in one place, what completes when
 * stays Open MPI's, and MPI gets on with its own at least once a millisecond.
 * Under EVENKEEL_WAIT=spin ours only passes on.
 */
#ifndef EK_WAIT_H
#define EK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "ladder.h"

/* From here on waits climb, if EVENKEEL_WAIT asks for it and Open MPI waits as it
 * is known to. In MPI_Init; `nodes` of the job. */
void ek_wait_start(int nodes);

/* Waits spin again, as Open MPI's do. */
void ek_wait_stop(void);

/* Whether waits climb. */
extern bool ek_wait_climbs;

/* One round of a wait for `*word` to become `number` or more: MPI gets on with its
 * own, then the next step of the ladder. Who raises the word calls ek_wait_wake
 * if there are sleepers on it. Only while waits climb. */
void ek_wait_round(const uint64_t *word, uint64_t number, uint32_t *sleepers);

/* Wakes all that sleep on the word. */
void ek_wait_wake(const uint64_t *word);

/* The call in which the thread has been waiting is over. */
void ek_wait_over(void);

/* A thread's memory of its waits, when it ends. */
void ek_wait_forget(void);

#endif
