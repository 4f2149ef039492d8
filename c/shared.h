/* shared.h - what the parts of shared objects share: the world, what lies where in
 * each thread's memory, and how errors are told.
 *
 *	shared.c             worlds, meetings of all threads, barriers
 *	shared_affinity.c    layouts: pure
 *	shared_heap.c        the books of the shared heap: pure
 *	shared_directory.c   objects: their entries, who has them open, when memory is used again
 *	shared_array.c       arrays: allocating, reading, writing
 *	shared_lock.c        locks
 *	shared_collective.c  collectives
 *
 * Each thread has a part of the heap (Go's pgas/shared has the same):
 *
 *	lower half   a lock; a heap for what is spread over all threads, at the same
 *	             place on each: thread 0 has the books, under its lock. The first
 *	             object in it is the root
 *	upper half   a lock; a heap of the thread's own, with its books
 */
#ifndef EK_SHARED_H
#define EK_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evenkeel_gsm.h"
#include "evenkeel_shared.h"
#include "ground.h"
#include "own.h"
#include "process.h"
#include "shared_heap.h"

enum {
	LOCK_BYTES = 2 * EK_HEAP_UNIT, /* of a lock's part on each thread */
	HEAP_BEGIN = LOCK_BYTES,       /* in each half */
	ROOT = HEAP_BEGIN + 2 * EK_HEAP_UNIT,
	RADIX_BITS = 4, RADIX = 1 << RADIX_BITS, ROUNDS = 6, /* of meetings: 2^24 threads */
	CHUNKS = 19,                   /* of a directory: 2^24 entries */
	ARGUMENTS = 16
};

/* Where a home's entries are: see shared_directory.c. Everybody's counts on thread 0. */
struct directory {
	uint64_t count;          /* of indices that were ever given out */
	uint64_t unused;         /* an index that may be given out again, and one; its entry has the next */
	uint64_t chunks[CHUNKS]; /* places of entries: 64, then twice as many each time */
	uint64_t reserved[3];
};

enum which_directory { EVERYBODYS, OWN };

struct root {
	_Alignas(64) uint64_t news;                  /* what `struct ek_upc` points at */
	_Alignas(64) uint64_t arguments[ARGUMENTS];  /* of the collective call under way, for the others to read */
	_Alignas(64) uint64_t answer[ARGUMENTS];     /* of thread 0 to all */
	_Alignas(64) struct directory directories[2];
	/* Written by the thread so many places before, in each round of a meeting. */
	struct arrival {
		_Alignas(64) uint64_t words[2]; /* of even and odd meetings */
	} arrivals[ROUNDS][RADIX - 1];
};

struct world {
	struct ek_upc open; /* first: what programs hold is the address of this */
	struct ek_gsm *job;
	struct ek_gsm_array memory;
	struct root *root; /* the thread's own */
	char **parts;
	uint64_t half;
	bool ended, together /* all on this node */, crowded /* with fewer processors than threads */;
	uint64_t comm;      /* what the world's waits are recorded on; 0 before and after */
	uint16_t function;  /* that allocates, frees or resizes: waits for the books are its */
	const struct ek_comm_local *notified_on; /* the operation that notify has begun, if it is recorded */
	uint64_t notified_as;
	uint64_t meetings;  /* so many have begun */
	uint64_t word;      /* what the thread says in the one under way */
	bool notified;
	struct use {
		uint64_t handle; /* 0: unused */
		uint64_t entry;  /* its place at the home */
		uint32_t generation, next;
	} *uses;
	uint32_t use_room, use_free; /* free: an index, and one */
	uint32_t tries;      /* of locks that somebody had */
	uint64_t look_at;    /* ms: when to look whether that one lives */
	uint32_t open_again;         /* so many uses are of objects that are open here by another one, too */
	uint64_t swept; /* up to which news */
	struct world *before; /* worlds are kept, so that who uses them later is told so */
};

/* ---- errors: from inside to outside ------------------------------------------- */

/* Why something failed, as the calling thread's error; returns the result. */
int ek_upc_refuse(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what global shared memory returned: EK_OK stays. */
int ek_upc_reached(int result);

/* Puts the name of an argument, and its object, in front of the error. */
int ek_upc_of(const char *argument, uint64_t handle, int result);

/* Puts thread and object (0: none) in front of the error: for the functions that
 * programs call. */
int ek_upc_told(const struct world *w, const char *what, uint64_t handle, int result);

/* ---- what is recorded ------------------------------------------------------------ */

/* What waits of a world are recorded on: nothing where it can't be used, or for a call
 * that will fail at once. */
static inline uint64_t ek_upc_comm(const struct world *w)
{
	return w && !w->ended && !w->notified ? w->comm : 0;
}

/* First in a function that programs call: a collective one, that is an operation; one that
 * allocates, frees or resizes alone, whose waits for the books are recorded as its own;
 * and one that may move data over the network. */
#define EK_UPC_OPERATION(name, w) 	EK_FOR_CALLER;            	EK_OWN(EK_CALLER(name), ek_upc_comm(w), MPI_PROC_NULL)
#define EK_UPC_ALONE(name, w) 	EK_FOR_CALLER;        	ek_upc_doing(w, EK_##name)
#define EK_UPC_MOVES(w)                                                                    \
	__attribute__((cleanup(ek_upc_moved))) struct ek_upc_mover ek_mover = {0, false}; \
	if (EK_UNLIKELY((w) && !((const struct world *)(w))->together))                   \
	ek_mover = (struct ek_upc_mover){ek_ground_enter(__builtin_return_address(0), __builtin_frame_address(0)), true}

static inline void ek_upc_doing(struct world *w, uint16_t function)
{
	if (w)
		w->function = function;
}

struct ek_upc_mover {
	const void *before;
	bool entered;
};

static inline void ek_upc_moved(struct ek_upc_mover *mover)
{
	if (EK_UNLIKELY(mover->entered))
		ek_ground_leave(&mover->before);
}

/* A sentence for an ek_upc_result; null: it is none. */
const char *ek_upc_strerror(int result);

/* Ends the calling function with what went wrong. */
#define TRY(call)                              \
	do {                                   \
		int result_of_call = (call);   \
		if (result_of_call != EK_OK)   \
			return result_of_call; \
	} while (0)

/* ---- words of any thread's part ----------------------------------------------- */

static inline struct ek_gsm_address ek_upc_address(const struct world *w, uint32_t thread, uint64_t place)
{
	return (struct ek_gsm_address){thread, w->memory.window->number, place};
}

static inline int ek_upc_read(struct world *w, uint32_t thread, uint64_t place, uint64_t *value)
{
	return ek_upc_reached(ek_gsm_get64(w->memory.window, ek_upc_address(w, thread, place), value));
}

static inline int ek_upc_write(struct world *w, uint32_t thread, uint64_t place, uint64_t value)
{
	return ek_upc_reached(ek_gsm_put64(w->memory.window, ek_upc_address(w, thread, place), value));
}

static inline int ek_upc_swap(struct world *w, uint32_t thread, uint64_t place, uint64_t value, uint64_t *before)
{
	return ek_upc_reached(ek_gsm_swap64(w->memory.window, ek_upc_address(w, thread, place), value, before));
}

static inline int ek_upc_compare_and_swap(struct world *w, uint32_t thread, uint64_t place, uint64_t compare, uint64_t value,
                                          uint64_t *before)
{
	return ek_upc_reached(
	        ek_gsm_compare_and_swap64(w->memory.window, ek_upc_address(w, thread, place), compare, value, before));
}

/* A word of the calling thread's own part. */
static inline uint64_t *ek_upc_word(const struct world *w, uint64_t place)
{
	return (uint64_t *)(void *)((char *)w->memory.local + place);
}

/* What a thread does between two looks at a word that another one will write; looks
 * counts them from 0. */
void ek_upc_pause(const struct world *w, unsigned *looks);

/* ---- all threads together --------------------------------------------------------- */

/* EK_UPC_ENDED, or EK_UPC_BARRIER between notify and wait. */
int ek_upc_usable(const struct world *w);

/* All come, and learn whether all brought the same value, below 2^54. */
int ek_upc_meet(struct world *w, uint64_t value, bool *same);

enum call {
	ENDING, ALLOCATING, RESIZING, COPIED, RESIZED, FREEING, ALLOCATING_LOCK, FREEING_LOCK, BROADCAST, SCATTER, GATHER, GATHER_ALL, EXCHANGE, PERMUTE,
	REDUCE, REDUCE_NONCOMM, PREFIX_REDUCE, DONE, AT_BARRIER
};

/* All come to a call with numbers, at most ARGUMENTS - 2, and with what has happened
 * to each of them. EK_OK if all have the same numbers and nothing happened to
 * anybody; else an error on all of them, which says what differs, or who failed. */
int ek_upc_agree(struct world *w, enum call call, const uint64_t *numbers, int count, int mine);

/* ---- locks without a handle --------------------------------------------------------- */

struct queue {
	uint64_t place;
	uint32_t home;
};
int ek_upc_queue_enter(struct world *w, struct queue q, struct ek_caller by);
/* The same for a lock on the books. */
int ek_upc_books_enter(struct world *w, struct queue q);
int ek_upc_queue_leave(struct world *w, struct queue q);

/* ---- objects -------------------------------------------------------------------------- */

enum kind { ARRAY = 1, POINTER, LOCK }; /* as in Go's pgas/svd */

/* What the directory says of an object: the words of its entry behind the key. */
struct object {
	uint64_t place, block, elements, size, kind, first;
	uint64_t left; /* the last place that it moved away from and still has; 0: none */
};

/* What a process has open. */
struct opened {
	struct object object;
	uint64_t handle, entry;
	uint32_t use, generation;
};

/* Takes so many bytes on all threads, or of the calling thread's own, and enters the
 * object, for so many users; the place is filled in. */
int ek_upc_enter(struct world *w, enum which_directory which, uint64_t bytes, uint64_t users, struct opened *made);

/* Enters an object that has counted this process into what it has open, where room
 * for one more must have been made. */
int ek_upc_make_room(struct world *w);
void ek_upc_hold(struct world *w, struct opened *o);

/* Gives what thread 0 has entered, or why it could not, to all, who hold it then. */
int ek_upc_hand_out(struct world *w, int mine, struct opened *made);
/* The same for numbers, at most ARGUMENTS - 1. */
int ek_upc_hand_out_numbers(struct world *w, int mine, uint64_t *numbers, int count);

/* Finds an object by its handle, and counts the caller. */
int ek_upc_look_up(struct world *w, uint64_t handle, enum kind kind, struct opened *found);

/* Whether an object that is open here is still there; *news: as of when. */
int ek_upc_check(struct world *w, uint64_t handle, uint32_t use, uint32_t generation, uint64_t *news);

/* Where an object that is open here is now, and how many elements it has. */
int ek_upc_extent(struct world *w, uint32_t use, uint64_t *place, uint64_t *elements);

/* Begins to make an object that is open here one of so many bytes: *to is where its
 * elements are to be copied, *from is where they are; the same if there is room. Nobody
 * else can resize it, or allocate, until the caller ends that. */
int ek_upc_resize_begin(struct world *w, uint32_t use, uint64_t bytes, uint64_t *from, uint64_t *to);
/* Has all threads find it so, or, if something failed, as it was. What the object
 * leaves goes back to the heap if nobody can still use it: no other user, or all say
 * so. Else the object keeps it. */
int ek_upc_resize_end(struct world *w, uint32_t use, uint64_t from, uint64_t to, uint64_t elements, bool unused, int failed);

/* Lets go of it; or frees it, counting as many users out as it is freed by. */
int ek_upc_let_go(struct world *w, uint32_t use);
int ek_upc_discard(struct world *w, uint32_t use, uint64_t users);
/* Forgets that it is open here: the users are counted out by somebody else. */
void ek_upc_forget(struct world *w, uint32_t use);

/* Lets go of all that others have freed since the last time. */
int ek_upc_sweep(struct world *w);

/* ---- arrays ----------------------------------------------------------------------------- */

/* Whether an array is there; whether it has n elements from element i on. */
int ek_upc_alive(struct ek_upc_array *array);
int ek_upc_has(struct ek_upc_array *array, int64_t i, int64_t n);

/* How many elements a thread has. */
int64_t ek_upc_part(const struct ek_upc_array *array, uint32_t thread);

/* n elements that lie one behind the other. */
int ek_upc_get_run(const struct ek_upc_array *array, struct ek_upc_place from, void *into, int64_t n);
int ek_upc_put_run(const struct ek_upc_array *array, struct ek_upc_place to, const void *from, int64_t n);

#endif
