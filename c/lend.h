/* lend.h - EVENKEEL_LEND: a rank that waits lends its cores to a slower rank of its
 * node, and takes them back when its wait is over.
 *
 * The owner does all of it: it widens the affinity of the borrower's threads by
 * its own cores, and narrows it again. So a borrower that computes without a call
 * of MPI gets them at once, and the owner never waits for an answer.
 */
#ifndef EK_LEND_H
#define EK_LEND_H

#include <stdbool.h>
#include <stdint.h>

#include "next.h"

/* Learns which cores the ranks of the node have. Collective over `node_comm`, in
 * MPI_Init: before anybody can lend. */
void ek_lend_start(MPI_Comm node_comm);

/* This rank waits, and its wait may last `left_ns` yet. */
void ek_lend_step(uint64_t left_ns);

/* Its wait is over: it has its cores back when this returns. */
void ek_lend_over(void);

#endif
