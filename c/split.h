/* split.h - a job that is split, in the parts that ek_job_run is made of. Go uses
 * them by themselves, since its tasks run on goroutines.
 */
#ifndef EK_SPLIT_H
#define EK_SPLIT_H

#include "evenkeel.h"

/* Plans a job and makes its parts free to be claimed. Collective. */
int ek_job_begin(ek_job *job, int64_t work, size_t bytes);

/* Whether one more thread is wanted, which then must claim: to be asked at the begin, and
 * after each claim, as resources may have changed. From any thread. */
int ek_job_join(ek_job *job);

/* Claims a part: from a thread that has joined. `results` is where those of its units
 * belong. 0: there is nothing left, or nothing for this thread; it has left then. */
int ek_job_claim(ek_job *job, int64_t *first, int64_t *count, void **results);

/* What the program's function said of a part: from any thread. */
void ek_job_ran(ek_job *job, int failed);

/* Whether the calling thread must be in ek_job_serve while others run parts. */
int ek_job_serves(const ek_job *job);

/* Fetches parts from other nodes, and hands out parts to them, until all threads have
 * left here and there is nothing left anywhere. */
void ek_job_serve(ek_job *job);

/* Brings the results together. Collective. */
int ek_job_end(ek_job *job, void *results);

#endif
