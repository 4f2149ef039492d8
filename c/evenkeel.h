/* evenkeel.h - what a C or C++ program may ask of evenkeel.
 *
 * Link with `pkg-config --libs evenkeel` before MPI (mpicc adds MPI last by
 * itself). A program so linked is recorded without any preload.
 */
#ifndef EVENKEEL_H
#define EVENKEEL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "evenkeel_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a region: what the program does until the matching end is reported
 * under this name (at most 47 characters, copied). Regions nest up to 63 deep;
 * there are at most 254 different ones. For the whole process: to be called
 * from one thread. About 50 ns. */
int ek_region_begin(const char *name);

/* Ends the innermost open region. */
int ek_region_end(void);

/* The next MPI call of this thread counts as made from there: for bindings of other
 * languages, whose own functions stand between the program and MPI. `address` is
 * the return address of the program's call of the binding. It holds for one call;
 * null takes it back. 2 ns. */
void ek_call_from(const void *address);

/* The same of all MPI calls of this thread from now on: for libraries whose functions
 * make several. Null: they count as made where they are again. Returns what held
 * before, to be put back at the function's end. evenkeel's own functions do so: a wait
 * in ek_partition_step is reported where the program steps. */
const void *ek_calls_from(const void *address);

/* Registers housekeeping that is to be done while this rank waits in MPI: under
 * EVENKEEL_WAIT=adaptive or sleep, once in a wait that can be expected to last
 * for `declared_us` microseconds yet, hook(argument) is called by the thread that
 * waits. `name` (at most 47 characters, copied) is for messages. The hook must not
 * call MPI nor leave by a jump. One that returns other than 0, or that takes
 * longer than declared for the third time, is dropped with a line on stderr; it may
 * be registered anew. To register the same hook and argument again changes what
 * was declared. At most 16. EK_INACTIVE: waits spin, so it would never be called. */
int ek_idle_hook(const char *name, int (*hook)(void *argument), void *argument, long declared_us);

/* Takes it back; EK_REFUSED if it is not registered (any more). It may be running
 * in another thread for the last time. */
int ek_idle_unhook(int (*hook)(void *argument), void *argument);

/* How many cores of other ranks this one has been lent at this moment
 * (EVENKEEL_LEND), and how many it may be lent at most: for programs with threads of
 * their own. They may be taken back at any time: its threads then share the
 * rank's cores. */
int ek_lent_cores(void);
int ek_lendable_cores(void);

/* A sentence for a result; never null. */
const char *ek_strerror(int result);

/* What went wrong in this thread's last call of a function below that did not
 * return EK_OK: a sentence with the rank, the numbers and what to do. Never null;
 * it lasts until the next such call. */
const char *ek_error_text(void);

/* ---- partitions that resize ------------------------------------------------
 *
 * A partition divides items 0 .. N-1 into one contiguous range for each rank of a
 * communicator. The program computes in cycles, each rank on its own range. At the
 * end of a cycle it steps, which is the cycle's barrier: by the times at which the
 * ranks came to it all of them reach the same decision on the ranges of the next
 * cycle. Where ranges have changed, the program has the items moved.
 *
 *	ek_partition_create(MPI_COMM_WORLD, items, 0, &partition);
 *	ek_array_create(partition, sizeof(struct particle), 0, &array);
 *	...
 *	for (;;) {
 *		ek_partition_range(partition, &first, &count);
 *		compute(ek_array_data(array), first, count);
 *		ek_partition_step(partition, &changed);
 *		if (changed)
 *			ek_partition_move(partition);
 *	}
 *
 * Collective calls are those that say so: all ranks of the communicator make them
 * in the same order. One thread of a process at a time.
 */
typedef struct ek_partition ek_partition;
typedef struct ek_array ek_array;

enum ek_policy {
	EK_POLICY_AUTO = 0,         /* chooses from what the history shows */
	EK_POLICY_PAIRWISE = 1,     /* the slowest rank gives to the fastest */
	EK_POLICY_FASTEST = 2,      /* the slowest rank gives to the `fastest` fastest */
	EK_POLICY_PROPORTIONAL = 3, /* all ranges by the ranks' measured rates */
	EK_POLICY_PROFILED = 4,     /* by the costs of items: see ek_partition_costs */
	EK_POLICY_STATIC = 5        /* stays as it is */
};

/* How it is known for how long a rank computed in a cycle. */
enum ek_measure {
	EK_MEASURE_AUTO = 0, /* by when the ranks came to the barriers of the cycle; where evenkeel's own
	                        barrier can't be had, or arrays are exchanged or gathered, as by WALL. Where
	                        several phases of a cycle end in barriers, choose WORK or WALL */
	EK_MEASURE_WALL = 1, /* from the cycle's begin to its end without the exchanges and gathers of arrays:
	                        each rank tells the others, in the step */
	EK_MEASURE_WORK = 2  /* the same, but only between ek_work_begin and ek_work_end: for programs whose
	                        ranks wait for each other inside a cycle */
};

/* Zeros, and a null pointer to all of it, mean what stands in brackets. */
struct ek_partition_options {
	int policy;               /* enum ek_policy [auto] */
	int measure;              /* enum ek_measure [auto] */
	int fastest;              /* EK_POLICY_FASTEST: how many ranks get more [all that are faster than the mean] */
	int weighted;             /* the same: not evenly, but by how early they are [evenly] */
	double threshold;         /* nothing moves while (longest - mean) / longest of the useful times is below this [0.02] */
	double threshold_seconds; /* or longest - mean [1e-5] */
	int64_t minimum, maximum; /* items of a rank: never fewer, never more, as its memory allows [1, all] */
	int64_t cycles;           /* how many cycles there will be: a move must earn its cost in those that remain
	                             [unknown: at any time as many as there have been] */
};

/* Divides items evenly among the ranks of an intracommunicator, which must live
 * as long as the partition. The first cycle begins now, or with ek_partition_start.
 * Collective; without the Go runtime the partition stays even.
 * EK_REFUSED: no items, a minimum or maximum that can't be kept, ranks that ask
 * for different things. */
int ek_partition_create(MPI_Comm comm, int64_t items, const struct ek_partition_options *options, ek_partition **partition);

/* Gives back the partition and its arrays; *partition is null afterwards.
 * Collective. */
int ek_partition_free(ek_partition **partition);

/* Begins the first cycle now: what the program did to set up is not counted.
 * Collective, a barrier. */
int ek_partition_start(ek_partition *partition);

/* This rank's items: [*first, *first + *count). */
int ek_partition_range(const ek_partition *partition, int64_t *first, int64_t *count);

/* The items of any rank of the communicator. */
int ek_partition_range_of(const ek_partition *partition, int rank, int64_t *first, int64_t *count);

/* The rank that has an item; -1 if there is no such item. */
int ek_partition_owner(const ek_partition *partition, int64_t item);

/* Ends a cycle: a barrier. *changed: other ranges have been decided on, to be
 * taken over by ek_partition_move before the next step. Collective. */
int ek_partition_step(ek_partition *partition, int *changed);

/* The same after a call of the program's own that ended the cycle: MPI_Barrier, or
 * another collective operation that lets nobody go before all have come, on the
 * partition's communicator. The history of that call is taken, and the time inside
 * others before it on that communicator does not count as computing; it needs
 * libevenkeel.so, preloaded or linked. EK_NO_HISTORY: the call was not recorded. */
int ek_partition_stepped(ek_partition *partition, int *changed);

/* Other ranges by the program's own decision: bounds[r] .. bounds[r + 1] is rank
 * r's; ranks + 1 of them, the same on all ranks, from 0 to N. They are taken over
 * by ek_partition_move. Where a rank has fewer items than the minimum, or more than
 * the maximum, they then stay until they are set again. Collective. */
int ek_partition_set(ek_partition *partition, const int64_t bounds[]);

/* Takes over the ranges that were decided on: moves the items of all arrays of
 * the partition to their new owners. Pointers into the arrays are new afterwards.
 * On an error nothing has changed on any rank. Collective. */
int ek_partition_move(ek_partition *partition);

/* Has ranks that are early get ready for the ranges that may come: in a step in which
 * this rank will wait, by what the last cycle was like, it gets memory for the arrays
 * on the range that it expects to have next, begins to receive the items that would
 * come, and calls `ready` (may be null), while the others still compute. `seconds` is
 * how long that takes at most: it is not called where less time is expected. The
 * expected range may not be the one that comes: receives that are of no use then are
 * cancelled.
 *
 * If it returns anything but 0, the next move is refused on all ranks; if it takes
 * twice as long as declared, and more than a millisecond longer, it is not called
 * again. How much set-up was hidden is in the report. Steps are then measured as by
 * EK_MEASURE_WALL. Collective. */
int ek_partition_overlap(ek_partition *partition, int (*ready)(void *context, int64_t first, int64_t count), void *context,
                         double seconds);

/* What this rank got ready while others computed. */
struct ek_overlapped {
	int64_t times;  /* how often, */
	double seconds; /* and for how long together */
	int64_t posted; /* receives that were begun before the move was decided on, */
	int64_t used;   /* and those of them by which items came */
	int given_up;   /* `ready` took too long */
};
int ek_partition_overlapped(const ek_partition *partition, struct ek_overlapped *overlapped);

/* Why the last step decided as it did, in words; never null. */
const char *ek_partition_reason(const ek_partition *partition);

/* What each of this rank's items cost in the cycle, in any unit, for
 * EK_POLICY_PROFILED: cost[i] of item first + i. Copied. A cycle in which a rank
 * gives none has no costs. Local. */
int ek_partition_costs(ek_partition *partition, const double cost[]);

/* What lies between them is work: see EK_MEASURE_WORK. About 40 ns each. */
int ek_work_begin(ek_partition *partition);
int ek_work_end(ek_partition *partition);

/* ---- what lives on a partition ---- */

/* An array of items of `bytes` each, whose memory is evenkeel's, with room for
 * copies of `halo` items of the neighbours on either side. Zero at first.
 * Freed with the partition. Collective. */
int ek_array_create(ek_partition *partition, size_t bytes, int64_t halo, ek_array **array);

/* Where the first of this rank's items is; `halo` items before and after theirs
 * are the neighbours'. Until the next ek_partition_move. */
void *ek_array_data(const ek_array *array);

/* The neighbours of the moment exchange the items that the other one has copies
 * of. Items before 0 and after N-1 do not exist: their places stay as they are,
 * or, in a periodic exchange, hold those from the other end. Collective. */
int ek_array_exchange(ek_array *array, int periodic);

/* The same in two parts, with computation on what is no neighbour's business
 * between them. One exchange of an array at a time. */
int ek_array_exchange_begin(ek_array *array, int periodic);
int ek_array_exchange_end(ek_array *array);

/* All items of the array on all ranks: `all` has room for N. Collective. */
int ek_array_gather(const ek_array *array, void *all);

/* An array of items of any length each, also 0. Empty items at first. Collective. */
int ek_array_create_variable(ek_partition *partition, ek_array **array);

/* Gives this rank's items: their lengths in bytes, one after the other in `data`.
 * Copied. Local. */
int ek_array_assign(ek_array *array, const int64_t length[], const void *data);

/* Of an array of items of any length: item i of this rank, from 0, is in
 * ek_array_data from offset[i] up to offset[i + 1]. Until the next ek_array_assign
 * or ek_partition_move. */
const int64_t *ek_array_offsets(const ek_array *array);

/* How many copies of others' items an array has behind this rank's: those of the halo
 * with which it was exchanged last. None after a move, done or not, or ek_array_assign. */
int64_t ek_array_copies(const ek_array *array);

/* What the program keeps itself, and packs and unpacks itself. All functions
 * return 0, or anything else if they failed: the move is then undone on all ranks.
 * `items` are ranges of items [first, first + count). */
struct ek_hooks {
	void *context; /* given to all of them */
	/* The bytes that the items take when packed; negative: failed. */
	int64_t (*size)(void *context, int64_t first, int64_t count);
	/* Copies items that will go to another rank. They stay until `finish`. */
	int (*pack)(void *context, int64_t first, int64_t count, void *buffer, int64_t bytes);
	/* Takes items that come, and keeps them aside until `finish`. */
	int (*unpack)(void *context, int64_t first, int64_t count, const void *buffer, int64_t bytes);
	/* taken is 1: the move is done, this rank has [first, first + count) now: what
	 * went away may be dropped. 0: it is undone, the range is the old one: what came
	 * is to be dropped. May be null; may not fail. */
	void (*finish)(void *context, int64_t first, int64_t count, int taken);
};

/* Collective. The structure is copied. */
int ek_partition_hooks(ek_partition *partition, const struct ek_hooks *hooks);

/* ---- halos: copies of any items of others ----
 *
 * Which items of others a rank needs follows from those that it has: the columns of
 * its rows, the neighbours of its particles. A halo describes that once, by a function,
 * which is asked anew after the ranges have changed; then the ranks that have these
 * items at the moment are found. Copies lie behind the rank's own items, in the order
 * of their numbers: copy k is item count + k of ek_array_data or ek_array_offsets.
 * For copies of the next few items on either side of an array, see ek_array_create.
 */
typedef struct ek_halo ek_halo;

/* Names the items that this rank needs for its range, by ek_halo_need. 0, or anything
 * else if it failed: the exchange is then EK_HOOK_FAILED on all ranks. */
typedef int (*ek_needs)(void *context, ek_halo *halo, int64_t first, int64_t count);

/* Freed with the partition. Collective. */
int ek_halo_create(ek_partition *partition, ek_needs needs, void *context, ek_halo **halo);

/* Names items, in any order; the rank's own, and some more than once, may be among
 * them. From within `needs` only. An item that does not exist is EK_REFUSED, also for
 * the exchange, on all ranks. */
int ek_halo_need(ek_halo *halo, const int64_t items[], int64_t count);
int ek_halo_need_range(ek_halo *halo, int64_t first, int64_t count);

/* Calls `needs` now, and finds who has what. An exchange does so by itself where ranges
 * have changed; this is for a program that wants to know the copies before, or that
 * needs others without a change of ranges. Collective. */
int ek_halo_renew(ek_halo *halo);

/* The items that copies are made of, rising. Until they are described anew. */
int64_t ek_halo_copies(const ek_halo *halo, const int64_t **items);

/* Where an item is in arrays that are exchanged: from 0 one of this rank's own, from
 * count on a copy; -1: it is not here. A binary search. */
int64_t ek_halo_index(const ek_halo *halo, int64_t item);

/* Brings the copies of an array's items up to date, of one size or of any length.
 * Pointers into the array are new after the first exchange with a halo that was
 * described anew and, for items of any length, after each. Collective. */
int ek_halo_exchange(ek_halo *halo, ek_array *array);

/* The same in two parts. One exchange with a halo at a time. */
int ek_halo_exchange_begin(ek_halo *halo, ek_array *array);
int ek_halo_exchange_end(ek_halo *halo);

/* The same of items that the program packs itself: `size` and `pack` are called for
 * this rank's items that others need, `unpack` for the copies that come, in ranges of
 * items that follow each other. `finish` is not called. If one fails, so does the
 * exchange on all ranks; what was unpacked by then stays. Collective. */
int ek_halo_exchange_hooks(ek_halo *halo, const struct ek_hooks *hooks);

/* ---- jobs that are split ---------------------------------------------------
 *
 * A job is `work` units, 0 .. work-1, whose results do not depend on each other. It
 * is divided over N ranks into N + delta tasks, delta by how much the ranks' speeds
 * differ: fast ranks get more of them, which they run at once, in threads. A task is
 * cut into parts; a rank takes those of its own tasks first and then claims what
 * others have not begun. Results come in the order of the units, on all ranks, and
 * are the same however the job was split.
 */
typedef struct ek_job ek_job;

/* Computes units first .. first + count - 1, into results[0 .. count). To be callable
 * from several threads at once, and to call no MPI. 0, or anything else if it
 * failed. */
typedef int (*ek_run)(void *context, int64_t first, int64_t count, void *results);

struct ek_job_options {
	int threads;   /* tasks that this rank runs at once at most [its share of the cores that it may use] */
	int parts;     /* that a task is cut into [8] */
	/* delta is slope * spread * ranks, at most `most` * ranks; the spread is (slowest - fastest) / fastest of
	 * the times that ranks take for the same work [0.5 and 7] */
	double slope, most;
	/* Or a table, if not null: from the spread table[2 * i] on, delta is table[2 * i + 1] * ranks. */
	const double *table;
	int points;
	/* Cuts a task into `parts` parts where the program finds it best: end[i] is the unit after part i's last. 0, or
	 * anything else if it failed. All ranks call it for all tasks, and must get the same: else EK_REFUSED
	 * [parts of equal size] */
	int (*cut)(void *context, int64_t first, int64_t count, int parts, int64_t end[]);
	void *context; /* of cut */
};

/* A way to run jobs over an intracommunicator, which must live as long. It
 * remembers how fast the ranks were. Collective. */
int ek_job_create(MPI_Comm comm, const struct ek_job_options *options, ek_job **job);

/* Runs a job. `bytes` is the size of a unit's result; `results` has room for those
 * of all units. If `run` fails on any rank all ranks get EK_HOOK_FAILED, and
 * `results` is as it was. Collective. */
int ek_job_run(ek_job *job, int64_t work, ek_run run, void *context, void *results, size_t bytes);

/* How the last job went, and what the rank was seen to have to compute with; what
 * can't be seen is said. Never null. */
const char *ek_job_report(const ek_job *job);

/* How many tasks the last job was divided into, and how many parts of tasks this
 * rank ran: of its own tasks, and claimed from others. */
int ek_job_counts(const ek_job *job, int64_t *tasks, int64_t *own, int64_t *claimed);

/* Collective. */
int ek_job_free(ek_job **job);

#ifdef __cplusplus
}
#endif

#include "evenkeel_gsm.h"
#include "evenkeel_shared.h"

#endif
