/* gsm_counters.h - what went out through windows of global shared memory, and what
 * came that was not a job's, in the node segment, where `evenkeel status` and the
 * report see it.
 *
 * The functions are exported: the Go package pgas/gsm looks for them, and counts
 * the windows of Go programs by them, or by writing into a row that is a window's own.
 */
#ifndef EK_GSM_COUNTERS_H
#define EK_GSM_COUNTERS_H

#include "evenkeel_gsm.h"
#include "segment.h"

/* The row of a window that is opened; null: this run is not recorded. Jobs of the
 * process have numbers from 1. What is beyond EK_WINDOWS shares the last row. */
struct ek_window *ek_gsm_row(uint32_t job, uint32_t window);

/* Has others see counters of a window; `told` is what was shown last, at first all
 * zero. By one thread of a window at a time. */
void ek_gsm_show_row(struct ek_window *row, const struct ek_gsm_counters *now, struct ek_gsm_counters *told);

/* So many more packets were dropped because no task of a job had sent them. By any thread. */
void ek_gsm_show_foreign(uint32_t more);

#endif
