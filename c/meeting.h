/* meeting.h - what this process knows of a communicator whose members meet in
 * barriers: see barrier.c.
 */
#ifndef EK_MEETING_H
#define EK_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange.h"
#include "next.h"
#include "process.h"

/* How the barriers of a communicator are done. */
enum way {
	PLAIN,     /* by MPI, for good: it has no communicator of one world of ours */
	PLACELESS, /* by MPI: there was no place; tried again at barrier 1, 2, 4, 8... */
	ALONE,     /* there is nobody to wait for */
	EVERYBODY, /* all on this node, each waits for all */
	LEADER,    /* waits for its node, exchanges, releases it */
	MEMBER     /* waits for its leader */
};

/* They are used again and never freed: a thread that looks for another
 * communicator may still look at one. */
struct meeting {
	MPI_Comm comm;            /* first; null: of none */
	enum way way;
	unsigned waited;          /* how many lines there are in `wait_for` */
	uint64_t sequence;        /* number of the last barrier that this rank came to */
	struct ek_barrier *own;
	struct ek_arrivals *arrivals;
	struct ek_barrier **wait_for; /* the other members on this node; of a member, its leader */

	uint64_t base;            /* the number before its first barrier */
	int place;
	uint64_t calls, retry;    /* without a place: barriers so far; when to try again */
	int size, rank, nodes;
	int *members;             /* world ranks, */
	int *node_of;             /* and which of the nodes each is on */
	const struct ek_arrivals **recorded; /* of those on this node */
	/* of several nodes */
	const struct ek_arrivals *leader;
	uint64_t *everywhere;     /* the leader's table: see layout.h */
	struct exchange exchange; /* leaders */
	struct meeting *next;     /* among those of none */
};

enum { EK_MEETING_BITS = 10 };
extern struct meeting *ek_meetings[1 << EK_MEETING_BITS]; /* the last that was looked for, by hash of its handle */

static inline uint64_t ek_meeting_home(MPI_Comm comm)
{
	return (uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15ull >> (64 - EK_MEETING_BITS);
}

/* That of a communicator, which may be invalid: its way is then plain. */
struct meeting *ek_meeting_of(MPI_Comm comm);

/* Tries to find a place for one that has none. Collective over its communicator. */
void ek_meeting_agree(struct meeting *meeting);

/* Collective over MPI_COMM_WORLD; false, on all ranks, if it is not wanted on one,
 * or something is short. */
bool ek_meetings_start(bool wanted, int node);
void ek_meetings_stop(void);

#endif
