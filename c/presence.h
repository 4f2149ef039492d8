/* presence.h - which ranks of MPI_COMM_WORLD run under evenkeel.
 *
 * A rank that was started without us never joins in what the others do together,
 * so it can't be asked through MPI. But inside MPI_Init all processes tell each
 * other through PMIx how they can be reached, and wait until all have: there each
 * rank that has us adds a word, and afterwards looks who has said it. Nothing is
 * sent for it, and nothing of MPI is used that the program could notice.
 */
#ifndef EK_PRESENCE_H
#define EK_PRESENCE_H

#include <stdbool.h>

struct ek_presence {
	bool known;   /* false where MPI starts without a PMIx that is a library of its own */
	bool enabled; /* all that are present are to be recorded */
	int first;    /* present rank, */
	int absent;   /* how many are not, */
	int missing;  /* and the first of these */
};

/* Before MPI_Init: says whether this rank is to be recorded. */
void ek_presence_announce(bool enabled);

/* After MPI_Init: what the ranks, `size` of them, have said. The same on all that
 * are present. */
struct ek_presence ek_presence_look(int size);

#endif
