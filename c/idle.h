/* idle.h - what is done with a rank's time and cores while it waits: hooks, an idle
 * program, and a loan to slower ranks. wait.c tells when a thread is about to
 * sleep, and when its wait is over.
 */
#ifndef EK_IDLE_H
#define EK_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "next.h"

/* From here on waits are used. Collective over `node_comm`, in MPI_Init, after
 * ek_wait_start. */
void ek_idle_start(MPI_Comm node_comm);

/* All that was begun is ended, and the idle program is gone. In MPI_Finalize, or
 * before the job is aborted. */
void ek_idle_stop(void);

/* The calling thread is about to sleep in a wait that may last `left_ns` yet. True:
 * something was done in its stead, so that it is time for MPI to get on. */
bool ek_idle_step(uint64_t left_ns);

/* The wait is over. errno may change. */
void ek_idle_over(void);

#endif
