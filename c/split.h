/* split.h - a job that is split, in the parts that ek_job_run is made of. Go uses
 * them by themselves, since its tasks run on goroutines.
 */
#ifndef EK_SPLIT_H
#define EK_SPLIT_H

#include "evenkeel.h"

/* Plans a job and makes its parts free to be claimed. *concurrent: how many of them
 * this rank is to run at once. Collective. */
int ek_job_begin(ek_job *job, int64_t work, size_t bytes, int *concurrent);

/* Claims a part: from any thread. `results` is where those of its units belong.
 * 0: there is nothing left. */
int ek_job_claim(ek_job *job, int64_t *first, int64_t *count, void **results);

/* What the program's function said of a part: from any thread. */
void ek_job_ran(ek_job *job, int failed);

/* A thread will claim no more. */
void ek_job_left(ek_job *job);

/* Whether the calling thread must be in ek_job_serve while others run parts. */
int ek_job_serves(const ek_job *job);

/* Fetches parts from other nodes, and hands out parts to them, until `threads`
 * threads have left here and there is nothing left anywhere. */
void ek_job_serve(ek_job *job, int threads);

/* Brings the results together. Collective. */
int ek_job_end(ek_job *job, void *results);

#endif
