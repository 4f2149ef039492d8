/* truth.h - what truth.c measured, for truth_write.c. */
#ifndef TRUTH_H
#define TRUTH_H

#include <mpi.h>

enum pattern { BALANCED, CONSTANT, DRIFT, RANDOM, P2P, ROOTED };
#define TRUTH_PATTERNS {"balanced", "constant", "drift", "random", "p2p", "rooted", NULL}

enum kind { TO_ALL, FROM_ROOT, TO_ROOT, SEND, RECEIVE };

/* The clock before and after one call, seconds. */
struct reading {
	double enter, leave;
};

struct truth {
	enum pattern pattern;
	unsigned long seed;
	int cycles;
	int calls; /* of each rank */
	int ranks;
	const char *path;
	struct reading *readings; /* those of rank 0, then those of rank 1, ... */
	double *life;             /* of each rank, from MPI_Init to the end, seconds */
};

/* The kind of each rank's call of this number, and its root if it has one. */
enum kind truth_kind(const struct truth *t, int call);
int truth_root(const struct truth *t, int call);

/* Writes the truth to t->path as JSON; 0, or -1 with a message on stderr. */
int truth_write(const struct truth *t);

#endif
