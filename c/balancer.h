/* balancer.h - the decisions of package balancer as C functions: the service
 * "balancer" of the Go runtime (see runtime.h). Pure functions of what they are
 * given: the same history gives the same decision on every rank. Called once in a
 * cycle at most.
 */
#ifndef EK_BALANCER_H
#define EK_BALANCER_H

#include <stdint.h>

#define EK_BALANCER_VERSION 3
#define EK_BALANCER_TEXT 256 /* bytes of a text, with its end */

/* What a controller is told at its start: see ek_partition_options. */
struct ek_balancer_start {
	int32_t ranks;
	int32_t policy, fastest, weighted;
	double threshold, threshold_seconds;
	int64_t minimum, maximum;
	int64_t cycles;
	const int64_t *bounds; /* ranks + 1 */
};

/* One cycle of all ranks, or some short ones added up. */
struct ek_balancer_cycle {
	int64_t cycles;        /* how many */
	const double *useful;  /* seconds, by rank, in all of them */
	const double *costs;   /* of that many parts of equal size of the items, in any unit */
	int64_t regions;       /* 0: no costs are known */
	double moved_seconds;  /* what the last move took, if there was one since the last cycle */
};

struct ek_balancer_decision {
	int64_t *bounds;       /* ranks + 1, filled: of the next cycle */
	int32_t changed;
	char reason[EK_BALANCER_TEXT];
};

/* A job of `work` units over ranks of which this is known. */
struct ek_balancer_job {
	int32_t ranks;
	int64_t work;
	const double *rates;   /* units per second of each rank */
	const int32_t *cores;  /* how many tasks each can run at once */
	double slope, most;    /* the relation between spread and delta: see package split, */
	const double *table;   /* or, if not null, `points` pairs of a spread and tasks more per rank */
	int64_t points;
};

struct ek_balancer_plan {
	int64_t tasks;         /* N + delta */
	int64_t *end;          /* of each task: units; task 0 begins at 0. Room for `room` tasks */
	int64_t room;
	int64_t *begin;        /* ranks + 1: rank r has the tasks [begin[r], begin[r + 1]) */
	int32_t *concurrent;   /* ranks: how many it runs at once */
};

/* What a rank has to compute with. Negative, or a niceness of 100: it can't be
 * seen; a quota of 0: there is none. */
struct ek_balancer_resources {
	double cores, quota, others, nice;
};

struct ek_balancer {
	uint32_t version; /* EK_BALANCER_VERSION */
	uint32_t size;    /* sizeof(struct ek_balancer) */
	/* A controller; 0, and why in error[EK_BALANCER_TEXT]. */
	uint64_t (*open)(const struct ek_balancer_start *start, char *error);
	void (*close)(uint64_t controller);
	/* 0; or not, and why in decision->reason. */
	int (*step)(uint64_t controller, const struct ek_balancer_cycle *cycle, struct ek_balancer_decision *decision);
	/* 0; or not, and why in error. */
	int (*plan)(const struct ek_balancer_job *job, struct ek_balancer_plan *plan, char *error);
	/* Whether resources changed so much that the ranks' rates must be taken times
	 * factors[], and a job split anew: 1 or 0, and how they changed in reason; -1:
	 * they can't be true. */
	int (*compare)(int32_t ranks, const struct ek_balancer_resources *before, const struct ek_balancer_resources *after,
	               double threshold, double *factors, char *reason);
};

#endif
