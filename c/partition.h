/* partition.h - a partition as its parts know it: partition.c decides on ranges,
 * move.c moves what lives on them, array.c is that for arrays, early.c gets it ready
 * in waits, halo.c copies items of others.
 */
#ifndef EK_PARTITION_H
#define EK_PARTITION_H

#include <stdbool.h>

#include "agree.h"
#include "evenkeel.h"
#include "ground.h"

/* Barriers whose history can be read: EK_BARRIER_HISTORY - 2. */
enum { EK_BARRIER_KEPT = 30 };

enum { EK_CHUNK = 1 << 30 }; /* bytes in a message at most: counts of MPI are ints */

/* Nonblocking messages that are begun together and awaited together. */
struct ek_messages {
	MPI_Comm comm;
	MPI_Request *requests;
	int begun;
	int64_t expected, room;
	int result; /* of MPI */
};

/* Makes room for a message that will be begun before the next ones are awaited. */
void ek_messages_expect(struct ek_messages *messages, int64_t bytes, struct ek_outcome *outcome);

/* Begins messages, in chunks that a count of MPI can say. */
void ek_messages_send(struct ek_messages *messages, int tag, int peer, const void *data, int64_t bytes);
void ek_messages_receive(struct ek_messages *messages, int tag, int peer, void *data, int64_t bytes);

/* Waits for all of them. */
void ek_messages_complete(struct ek_messages *messages, struct ek_outcome *outcome);

/* A range of items that goes from one rank to another. */
struct ek_piece {
	int peer;
	int64_t first, count;
};

/* What a move has to do on this rank. */
struct ek_move {
	int64_t old_first, old_count, new_first, new_count;
	struct ek_piece *out, *in; /* not this rank's own */
	int outs, ins;
	int64_t kept_first, kept_count; /* owned before and after */
	int64_t used; /* messages that were received early */
	struct ek_messages messages;
};

/* Something that lives on a partition and moves with its items. A move calls
 * these in their order, on all tenants each, and on all ranks together. The first
 * three may fail; then `end` undoes the move. */
struct ek_tenant {
	struct ek_tenant *next;
	int tag; /* of its first messages; of its second ones the next, so that no receive that was begun early takes another's */
	/* Gets memory, packs what goes, and begins messages whose length both sides know.
	 * May be null, both. */
	void (*prepare)(struct ek_tenant *, struct ek_move *, struct ek_outcome *);
	void (*first)(struct ek_tenant *, struct ek_move *);
	/* May be null: what follows from what those brought. */
	void (*second)(struct ek_tenant *, struct ek_move *, struct ek_outcome *);
	void (*send_second)(struct ek_tenant *, struct ek_move *);
	/* May be null. */
	void (*unpack)(struct ek_tenant *, struct ek_move *, struct ek_outcome *);
	void (*end)(struct ek_tenant *, const struct ek_move *, bool done); /* may be null */
	void (*free)(struct ek_tenant *);
	/* Gets memory for a move that may come, and begins receives of it: how many. May be
	 * null; may fail without a word. */
	int64_t (*expect)(struct ek_tenant *, const struct ek_move *foreseen);
};

struct ek_partition {
	MPI_Comm program; /* the program's own, whose barriers are the history */
	MPI_Comm comm;    /* a copy for our messages */
	int rank, ranks;
	int64_t items;
	int64_t *bounds;  /* ranks + 1 */
	int64_t *next;    /* of the next cycle, if `pending` */
	bool pending, set; /* set: by the program, not by the controller */
	uint64_t generation; /* of the ranges: what follows from them is made anew */
	struct ek_tenant *tenants;
	int tags;
	uint64_t descriptions; /* of halos, so far */

	/* The cycle that runs. */
	const struct ek_balancer *balancer; /* null: stays even */
	uint64_t controller;  /* 0: the partition stays as it is */
	struct ek_balancer_start start;
	int measure;          /* enum ek_measure */
	bool waits;           /* ranks wait for each other inside a cycle, in halo exchanges or gathers */
	bool by_arrivals;     /* of barriers, which all ranks can read */
	uint64_t barriers;    /* how many of `program` there were when it began, */
	uint64_t all_came_ns; /* and when the last rank came to the last of them */
	bool counted;         /* the collectives of `program`, on all ranks, */
	uint64_t collectives; /* and how many there were then */
	uint64_t begun_ns;    /* on this rank's own clock */
	uint64_t waited_ns;   /* since then, in halo exchanges */
	uint64_t worked_ns, work_began_ns;
	double *useful, *coming; /* ranks */
	double *gathered;     /* ranks: `useful` of the cycles that the controller has yet to see, */
	int64_t cycles;       /* of which there are so many, and so many before that it will not see, */
	int64_t left_out;
	int windows_left_out; /* in so many decisions */
	double steady;        /* seconds since the ranges were new */
	uint64_t *arrived;    /* ranks */
	double *costs;        /* of regions, summed over the ranks, if `costed` */
	int64_t regions;
	bool costed;
	/* What is got ready in the wait. */
	bool overlaps;
	int (*ready)(void *context, int64_t first, int64_t count);
	void *ready_context;
	double ready_seconds;
	int64_t ready_first, ready_count; /* that it was last called for since the ranges are new; of 0 items: not */
	int ready_failed;     /* what it returned, until a move told all ranks */
	struct ek_overlapped overlapped;
	bool known;           /* `useful` is that of the last cycle, on the same ranges */
	double moved_seconds; /* what the last move took, until the controller knows */
	char reason[EK_BALANCER_TEXT];
};

/* A new cycle begins. Collective: a barrier. */
int ek_cycle_begin(struct ek_partition *partition);

/* ek_partition_set; where the outcome is an error already, this rank takes part with it and
 * its bounds are not read. */
int ek_ranges_set(struct ek_partition *partition, const int64_t *bounds, struct ek_outcome *outcome);

/* The ranges are not what the controller decided on: it begins anew from them. */
void ek_controller_restart(struct ek_partition *partition);

/* Adds a tenant, if all ranks could make theirs, and alike: `same` is one of these, or a
 * hash of more; else frees it. */
enum { EK_TENANT_VARIABLE = 1, EK_TENANT_HOOKS, EK_TENANT_HALO };
int ek_tenant_add(struct ek_partition *partition, struct ek_tenant *tenant, struct ek_outcome *outcome, uint64_t same);

/* Tells the others what this rank computed, and learns it of them; in between it gets
 * ready, if it is early. Collective. */
int ek_early_step(struct ek_partition *partition, double useful);

/* What this rank would have to do for ranges of these bounds. To be freed by
 * ek_move_free, also after an error. */
void ek_move_plan(const struct ek_partition *partition, const int64_t *bounds, struct ek_move *move, struct ek_outcome *outcome);
void ek_move_free(struct ek_move *move);

/* Takes over a receive that has been begun already. */
void ek_move_adopt(struct ek_move *move, MPI_Request request);

/* What halo.c needs of arrays: where they live; bytes of an item, 0 if they are of any
 * length; room for copies behind this rank's items, which the array is then said to
 * have, of one size for the description of that number, or of these lengths. */
const struct ek_partition *ek_array_partition(const ek_array *array);
size_t ek_array_item(const ek_array *array);
uint64_t ek_array_described(const ek_array *array);
bool ek_array_room(ek_array *array, int64_t copies, uint64_t description, struct ek_outcome *outcome);
bool ek_array_room_variable(ek_array *array, int64_t copies, const int64_t lengths[], struct ek_outcome *outcome);

#endif
