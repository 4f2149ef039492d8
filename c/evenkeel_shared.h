/* evenkeel_shared.h - what UPC gives a program, for C and C++: arrays whose elements
 * are spread over the threads of a job, pointers to shared, allocation, locks, a
 * split-phase barrier and collectives (language and library specifications 1.3).
 * evenkeel.h includes this.
 *
 * A name is UPC's with ek_ before it where UPC has one: upc_all_alloc is
 * ek_upc_all_alloc. A thread is a rank of the communicator that the world was
 * started over; share/doc/evenkeel/shared.md (docs/ in the sources) has the whole
 * table, and the rules.
 *
 *	struct ek_upc *w;
 *	struct ek_upc_array a;
 *	double v = 1;
 *	ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &w);
 *	ek_upc_all_alloc(w, 100, 10000, sizeof v, &a);   // shared [100] double a[10000]
 *	ek_upc_forall (i, 0, 10000, &a)                  // upc_forall (i = 0; i < 10000; i++; &a[i])
 *		ek_upc_put(&a, i, &v);
 *	ek_upc_barrier(w, 0);
 *	if (ek_upc_get(&a, 4711, &v) != EK_OK)
 *		fprintf(stderr, "%s\n", ek_upc_error());
 *	ek_upc_all_free(&a);
 *	ek_upc_end(w);
 *
 * A world, its arrays and its locks belong to one thread of each process, one that
 * may call MPI. Functions return an ek_result, ek_upc_result or ek_gsm_result.
 * What is collective is called by all threads in the same order with equal
 * arguments; it returns an error on all of them or on none.
 */
#ifndef EVENKEEL_SHARED_H
#define EVENKEEL_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "evenkeel_affinity.h"
#include "evenkeel_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the world: THREADS and MYTHREAD ---------------------------------------- */

struct ek_upc {
	uint32_t thread, threads; /* MYTHREAD, THREADS */
	/* For what is inlined: */
	char *const *parts;   /* each thread's part of the shared heap, where it is mapped here; null: on another node */
	const uint64_t *news; /* counts what was freed or resized while this thread had it open */
};

/* Makes a world of the ranks of a communicator, named as in Fortran:
 * MPI_Comm_c2f(MPI_COMM_WORLD). Each thread gives so many bytes to the shared heap,
 * 0: 64 MiB; half of them are for what is spread over all threads, half for what is
 * the thread's own (ek_upc_alloc). An allocation takes as much on every thread as on
 * the one that has most, and 64 bytes more. Collective. */
int ek_upc_start(int comm, uint64_t heap, struct ek_upc **world);

/* Ends the thread's part: all objects are gone. Collective. */
int ek_upc_end(struct ek_upc *world);

static inline uint32_t ek_upc_mythread(const struct ek_upc *world)
{
	return world->thread;
}

static inline uint32_t ek_upc_threads(const struct ek_upc *world)
{
	return world->threads;
}

/* What went wrong in the calling thread's last call that did not return EK_OK: the
 * thread, the object, and why. Never null. */
const char *ek_upc_error(void);

/* ---- arrays -------------------------------------------------------------------
 *
 * The struct may be copied: a copy is the same array, and knows when it was freed
 * or closed. The memory of an array holds what was there before. */
struct ek_upc_array {
	struct ek_upc *world;
	struct ek_upc_layout layout; /* threads, block, elements, size */
	uint64_t handle;             /* for others: see ek_upc_open */
	uint64_t place;              /* of its elements in each thread's part, in bytes */
	uint32_t first;              /* the thread of element 0 */
	uint32_t use, generation;    /* the calling process's entry for what it has open */
	uint64_t news;               /* when it was last known to be there */
	void *local;                 /* the calling thread's elements, one after the other: no copy */
	int64_t local_elements;      /* element i is at local place ek_upc_locate(&layout, i).local */
};

/* An array that all threads get: `shared [block] T[elements]`, T of so many bytes.
 * EK_UPC_INDEFINITE: one block, on thread 0; ek_upc_pure: one for each. Collective. */
int ek_upc_all_alloc(struct ek_upc *world, int64_t block, int64_t elements, int64_t size, struct ek_upc_array *array);

/* The same, by one thread alone, which hands on the handle. */
int ek_upc_global_alloc(struct ek_upc *world, int64_t block, int64_t elements, int64_t size, struct ek_upc_array *array);

/* An array all of which has affinity to the calling thread. */
int ek_upc_alloc(struct ek_upc *world, int64_t elements, int64_t size, struct ek_upc_array *array);

/* Any thread may free an array, which is gone for all of them; whoever has it open
 * gets EK_UPC_FREED from then on. Its memory is used again when all have let go of
 * it, which they do by themselves at the first access, or barrier, after it was freed. */
int ek_upc_free(struct ek_upc_array *array);

/* The same by all threads together, when all have come. Collective. */
int ek_upc_all_free(struct ek_upc_array *array);

/* Gives the array another number of elements, in blocks of the same size. Those that it
 * has before and after stay as they are, at the same local place of the same thread;
 * others hold what was there before. Any thread that has the array open may do it, and
 * other threads find it so at their next access, by whichever copy of the struct:
 * `layout`, `place` and `local` are as of the last one. An array that has no room where
 * it is moves; what is written to it while it does may be lost, so a barrier or a lock
 * should keep others from that. What it left is given back when no other user has it
 * open, or all threads resize it: until then, or until it is freed, it keeps that too.
 * An array that shrinks keeps its room. EK_UPC_LAYOUT, EK_UPC_NO_MEMORY: nothing has
 * changed. */
int ek_upc_resize(struct ek_upc_array *array, int64_t elements);

/* The same by all threads together, each of which copies its own part. Collective. */
int ek_upc_all_resize(struct ek_upc_array *array, int64_t elements);

/* A handle names an object in the whole world, and may be sent or kept in shared
 * memory: what was freed is never taken for what came after it. Opening takes one
 * look at the object's entry in the shared variable directory, which its home
 * thread has, and counts the caller among the users. EK_UPC_TYPE: the elements are
 * not of that size (0: any). */
int ek_upc_open(struct ek_upc *world, uint64_t handle, int64_t size, struct ek_upc_array *array);

/* Lets go of an array without freeing it. */
int ek_upc_close(struct ek_upc_array *array);

/* The thread that element i has affinity to. */
static inline int64_t ek_upc_threadof_element(const struct ek_upc_array *a, int64_t i)
{
	return (int64_t)a->first + ek_upc_locate(&a->layout, i).thread;
}

/* Points at element i; ek_upc_add and ek_upc_subtract over &array->layout count on. */
static inline struct ek_upc_pointer ek_upc_pointer_at(const struct ek_upc_array *a, int64_t i)
{
	struct ek_upc_pointer p = ek_upc_pointer(&a->layout, i);
	p.thread += a->first;
	return p;
}

/* ---- shared pointers to shared --------------------------------------------------
 *
 * `shared T *shared p[N]`: arrays whose elements point into other shared objects, each
 * by its handle. So a pointer leads to its element wherever that has moved, and what was
 * freed, or never was, is not opened. A handle of 0 is the null pointer. They are arrays
 * otherwise, read and written by ek_upc_get and ek_upc_put of a struct ek_upc_target,
 * freed and resized as these:
 *
 *	ek_upc_get(&pointers, i, &target)
 *	ek_upc_open(world, target.handle, sizeof v, &array)
 *	ek_upc_load(&array, target.pointer, &v)
 */
struct ek_upc_target {
	uint64_t handle;
	struct ek_upc_pointer pointer;
};

int ek_upc_all_pointer_alloc(struct ek_upc *world, int64_t block, int64_t elements, struct ek_upc_array *pointers); /* collective */
/* With affinity to the calling thread, which hands on the handle. */
int ek_upc_pointer_alloc(struct ek_upc *world, int64_t elements, struct ek_upc_array *pointers);
int ek_upc_pointer_open(struct ek_upc *world, uint64_t handle, struct ek_upc_array *pointers);

/* &array[i], to be kept in shared memory. */
static inline struct ek_upc_target ek_upc_target_at(const struct ek_upc_array *a, int64_t i)
{
	struct ek_upc_target t = {a->handle, ek_upc_pointer_at(a, i)};
	return t;
}

/* ---- elements -------------------------------------------------------------------
 *
 *	ek_upc_get(array, i, into)     ek_upc_put(array, i, from)
 *
 * `into` and `from` point at a value of the element's type, whose size is compared
 * with the array's. Relaxed: elements of 4 and 8 bytes are read and written as a
 * whole, and no more is promised. On the calling thread's node that is a load or
 * store after a few instructions. */
#define ek_upc_get(array_, i_, into_) ek_upc_get_bytes(array_, i_, into_, sizeof *(into_))
#define ek_upc_put(array_, i_, from_) ek_upc_put_bytes(array_, i_, from_, sizeof *(from_))

/* Strict: in the order of the program for all threads, and fences for the relaxed
 * accesses around them. */
#define ek_upc_get_strict(array_, i_, into_) ek_upc_get_fenced(array_, i_, into_, sizeof *(into_))
#define ek_upc_put_strict(array_, i_, from_) ek_upc_put_fenced(array_, i_, from_, sizeof *(from_))

/* What a pointer points at. EK_UPC_POINTER: at none of the elements. */
#define ek_upc_load(array_, p_, into_) ek_upc_load_bytes(array_, p_, into_, sizeof *(into_))
#define ek_upc_store(array_, p_, from_) ek_upc_store_bytes(array_, p_, from_, sizeof *(from_))

int ek_upc_get_fenced(struct ek_upc_array *array, int64_t i, void *into, uint64_t size);
int ek_upc_put_fenced(struct ek_upc_array *array, int64_t i, const void *from, uint64_t size);
int ek_upc_load_bytes(struct ek_upc_array *array, struct ek_upc_pointer p, void *into, uint64_t size);
int ek_upc_store_bytes(struct ek_upc_array *array, struct ek_upc_pointer p, const void *from, uint64_t size);

/* What the inlined ones leave: other nodes, and whatever is wrong. */
int ek_upc_get_far(struct ek_upc_array *array, int64_t i, void *into, uint64_t size);
int ek_upc_put_far(struct ek_upc_array *array, int64_t i, const void *from, uint64_t size);

/* Where element i is mapped, if it is on this node and the array is known to be
 * there; or null. */
static inline void *ek_upc_here(const struct ek_upc_array *a, int64_t i, uint64_t size)
{
	if (__builtin_expect((uint64_t)i >= (uint64_t)a->layout.elements || size != (uint64_t)a->layout.size ||
	                     __atomic_load_n(a->world->news, __ATOMIC_RELAXED) != a->news, 0))
		return 0;
	struct ek_upc_place at = ek_upc_locate(&a->layout, i);
	char *part = a->world->parts[a->first + at.thread];
	return __builtin_expect(part != 0, 1) ? part + a->place + (uint64_t)at.local * size : 0;
}

/* A call of the library where these two are slow counts as called at the program's line. */
static inline __attribute__((always_inline, artificial)) int ek_upc_get_bytes(struct ek_upc_array *array, int64_t i, void *into, uint64_t size)
{
	const void *from = ek_upc_here(array, i, size);
	if (__builtin_expect(!from, 0))
		return ek_upc_get_far(array, i, into, size);
	if (size == 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
		memcpy(into, &word, 8);
	} else if (size == 4) {
		uint32_t word = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
		memcpy(into, &word, 4);
	} else {
		memcpy(into, from, size);
	}
	return 0;
}

static inline __attribute__((always_inline, artificial)) int ek_upc_put_bytes(struct ek_upc_array *array, int64_t i, const void *from, uint64_t size)
{
	void *to = ek_upc_here(array, i, size);
	if (__builtin_expect(!to, 0))
		return ek_upc_put_far(array, i, from, size);
	if (size == 8) {
		uint64_t word;
		memcpy(&word, from, 8);
		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELAXED);
	} else if (size == 4) {
		uint32_t word;
		memcpy(&word, from, 4);
		__atomic_store_n((uint32_t *)to, word, __ATOMIC_RELAXED);
	} else {
		memcpy(to, from, size);
	}
	return 0;
}

/* ---- many elements ---------------------------------------------------------------
 *
 * n elements from element i on, whichever threads they are with. (UPC's know bytes of
 * one thread alone.) Copies must not overlap; both arrays have elements of one size. */
int ek_upc_memget(void *into, struct ek_upc_array *from, int64_t i, int64_t n);
int ek_upc_memput(struct ek_upc_array *to, int64_t i, const void *from, int64_t n);
int ek_upc_memcpy(struct ek_upc_array *to, int64_t i, struct ek_upc_array *from, int64_t j, int64_t n);
/* Sets all their bytes to one value. */
int ek_upc_memset(struct ek_upc_array *to, int64_t i, int byte, int64_t n);

/* ---- upc_forall --------------------------------------------------------------------
 *
 *	ek_upc_forall (i, begin, end, array) statement
 *	ek_upc_forall_number (i, begin, end, world) statement
 *
 * executes the statement for those int64_t i from begin to before end that have
 * affinity to the calling thread: upc_forall (i = begin; i < end; i++; &array[i]) and
 * (...; i). Each is found from the one before it; those of others cost nothing.
 * Elements that the array has not are left out. break and continue do what they say. */
struct ek_upc_walk {
	int64_t i, block_end, end; /* the element at hand, the end of its block, of all */
	int64_t block, apart;      /* from one block's begin to the next one's of this thread */
	int once;
};

static inline struct ek_upc_walk ek_upc_walk_from(const struct ek_upc_array *a, int64_t begin, int64_t end)
{
	const struct ek_upc_layout *l = &a->layout;
	struct ek_upc_walk w = {0, 0, end < l->elements ? end : l->elements, (int64_t)l->by_block.value, 0, 1};
	int64_t mine = (int64_t)a->world->thread - a->first;
	if (begin < 0)
		begin = 0;
	w.apart = w.block * l->threads;
	if (l->block == EK_UPC_INDEFINITE) {
		w.apart = w.end; /* there is no further block */
		if (mine != 0)
			w.end = 0;
		mine = 0;
	}
	/* The first block of this thread that does not end before begin. */
	int64_t first = mine * w.block;
	if (begin >= first + w.block && w.apart > 0)
		first += (begin - first - w.block + w.apart) / w.apart * w.apart;
	w.i = begin > first ? begin : first;
	w.block_end = first + w.block;
	return w;
}

static inline int64_t ek_upc_walk_on(struct ek_upc_walk *w)
{
	if (__builtin_expect(++w->i == w->block_end, 0)) {
		w->i += w->apart - w->block;
		w->block_end += w->apart;
	}
	return w->i;
}

#define ek_upc_forall(i_, begin_, end_, array_)                                                            \
	for (struct ek_upc_walk ek_upc_walking = ek_upc_walk_from(array_, begin_, end_); ek_upc_walking.once; \
	     ek_upc_walking.once = 0)                                                                      \
		for (int64_t i_ = ek_upc_walking.i; i_ < ek_upc_walking.end; i_ = ek_upc_walk_on(&ek_upc_walking))

/* The first number from begin on that leaves MYTHREAD when divided by THREADS. */
static inline int64_t ek_upc_first_number(const struct ek_upc *world, int64_t begin)
{
	int64_t threads = world->threads, apart = ((int64_t)world->thread - begin) % threads;
	return begin + apart + (apart < 0 ? threads : 0);
}

#define ek_upc_forall_number(i_, begin_, end_, world_) \
	for (int64_t i_ = ek_upc_first_number(world_, begin_); i_ < (end_); i_ += (world_)->threads)

/* ---- order -------------------------------------------------------------------------
 *
 * What one thread writes others see after a barrier, a lock that passes from one to
 * the other, or strict accesses, which are in one order for all threads. Relaxed
 * accesses of one thread to one element, of which one writes, appear to all in the
 * order of the program, and others in any. */

/* upc_fence: a strict access of nothing. All shared accesses before it are done before
 * any after it. */
int ek_upc_fence(struct ek_upc *world);

/* The thread has come to the barrier, and may do what is not collective until it
 * waits there for all others to have come. All must give the same value, or wait
 * returns EK_UPC_BARRIER to all of them. */
int ek_upc_notify(struct ek_upc *world, int value);
int ek_upc_wait(struct ek_upc *world);
int ek_upc_barrier(struct ek_upc *world, int value);

/* ---- locks -------------------------------------------------------------------------
 *
 * upc_lock_t. Threads get a lock in the order in which they came. One that waits looks
 * at a word of its own memory, which the one before it writes. Taking a lock and giving
 * it up are fences.
 *
 * Where a thread dies that holds a lock, or waits for it, and the job goes on without it,
 * nobody hands the lock on. Then all who wait for it or come to it get EK_UPC_LOST: on the
 * thread's node half a second after its death at most, if they have a processor, on another
 * one when it has been silent for EVENKEEL_GSM_SILENCE. The lock stays lost, and can't be
 * freed. The same goes for what allocates, frees or resizes, where a thread dies in that. */
struct ek_upc_lock {
	struct ek_upc *world;
	uint64_t handle, place;
	uint32_t home; /* the thread that has the end of the queue */
	uint32_t use, generation;
	uint64_t news;
};

int ek_upc_all_lock_alloc(struct ek_upc *world, struct ek_upc_lock *lock); /* collective */
int ek_upc_global_lock_alloc(struct ek_upc *world, struct ek_upc_lock *lock);
int ek_upc_lock_open(struct ek_upc *world, uint64_t handle, struct ek_upc_lock *lock);
int ek_upc_lock_close(struct ek_upc_lock *lock);

/* EK_UPC_HELD: by the calling thread. */
int ek_upc_lock(struct ek_upc_lock *lock);
/* Takes the lock if nobody has it, and says so in *taken. Who tries again and again is told
 * that the lock is lost, if the thread died that came to it last. */
int ek_upc_lock_attempt(struct ek_upc_lock *lock, int *taken);
/* EK_UPC_NOT_HELD: by the calling thread. */
int ek_upc_unlock(struct ek_upc_lock *lock);
/* The thread that came last of those that hold the lock or wait for it; -1: it is
 * free. It may have changed when it is told. */
int ek_upc_lock_last(struct ek_upc_lock *lock, int64_t *thread);

/* EK_UPC_HELD: some thread holds the lock, or waits for it. */
int ek_upc_lock_free(struct ek_upc_lock *lock);
int ek_upc_all_lock_free(struct ek_upc_lock *lock); /* collective */

/* ---- collectives -------------------------------------------------------------------
 *
 * UPC's pointers to shared are an array and the number of an element here: of dst element
 * i, of src element j. Data are runs of elements in the threads' parts, which are the
 * elements with affinity to each in the order of `local`: where UPC has a pointer to one
 * thread, to that element's thread, from that element on; where it has one to all (which
 * is to thread 0 then), from the local place of that element on in each part. Arrays have
 * elements of one size. Lengths are in elements. */

/* What a collective waits for when it begins and ends; 0: for all. */
enum ek_upc_flag {
	EK_UPC_IN_ALLSYNC = 0,  /* for all threads to have come, */
	EK_UPC_IN_MYSYNC = 1,   /* for what the thread's own data needs: as much as ALLSYNC here, */
	EK_UPC_IN_NOSYNC = 2,   /* or for nothing: the program sees to it that data is ready */
	EK_UPC_OUT_ALLSYNC = 0, /* for all to be done, */
	EK_UPC_OUT_MYSYNC = 4,
	EK_UPC_OUT_NOSYNC = 8   /* or for nothing: and that it is not used too soon */
};

/* n elements from element j of src on, all of that thread, become n of each part of dst. */
int ek_upc_all_broadcast(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags);
/* Of n * THREADS such elements each thread gets n. */
int ek_upc_all_scatter(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags);
/* n elements of each part of src become those of one thread from element i of dst on, in
 * the order of threads; or of every thread. */
int ek_upc_all_gather(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags);
int ek_upc_all_gather_all(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags);
/* Of n * THREADS elements in each part of src, the i-th n go to thread i, where they
 * are those of the thread that they come from. */
int ek_upc_all_exchange(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags);
/* n elements of thread t's part of src go to the part of dst of the thread that element
 * t of perm names: int32_t, each thread once. */
int ek_upc_all_permute(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, struct ek_upc_array *perm,
                       int64_t n, int flags);

enum ek_upc_op {
	EK_UPC_ADD = 1,
	EK_UPC_MULT,
	EK_UPC_AND, /* of bits: integers alone, as OR and XOR */
	EK_UPC_OR,
	EK_UPC_XOR,
	EK_UPC_LOGAND,
	EK_UPC_LOGOR,
	EK_UPC_MIN,
	EK_UPC_MAX
};

enum ek_upc_type {
	EK_UPC_INT8 = 1,
	EK_UPC_UINT8,
	EK_UPC_INT16,
	EK_UPC_UINT16,
	EK_UPC_INT32,
	EK_UPC_UINT32,
	EK_UPC_INT64,
	EK_UPC_UINT64,
	EK_UPC_FLOAT,
	EK_UPC_DOUBLE
};

/* *a becomes *a op *b: for elements of any type. It is associative, and commutes but
 * where another is allowed. */
typedef void ek_upc_function(void *a, const void *b);

/* Element `at` of dst becomes op over n elements of src from element i on, whichever
 * threads they are with, in no order; of none, it stays as it is. _func is UPC_FUNC, and
 * _noncomm_func UPC_NONCOMM_FUNC: in the elements' order, which takes one value for each
 * block. (UPC's block size is the array's.) */
int ek_upc_all_reduce(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                      enum ek_upc_type type, enum ek_upc_op op, int flags);
int ek_upc_all_reduce_func(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                           ek_upc_function *function, int flags);
int ek_upc_all_reduce_noncomm_func(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                                   ek_upc_function *function, int flags);

/* Element i + k of dst becomes op over elements j to j + k of src, for k below n, in that
 * order (a function need not commute). Both have blocks of one size, and elements i and
 * j are of one thread and have one phase. */
int ek_upc_all_prefix_reduce(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n,
                             enum ek_upc_type type, enum ek_upc_op op, int flags);
int ek_upc_all_prefix_reduce_func(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n,
                                  ek_upc_function *function, int flags);

#ifdef __cplusplus
}
#endif

#endif
