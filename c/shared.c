/* shared.c - worlds of threads that share objects, and how all of them meet.
 *
 * A meeting is what barriers and collectives are made of. In each round a thread
 * tells 15 others, 1 to 15 places behind it, then 16 to 240, and so on, what it has
 * heard so far (D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier
 * synchronization, 1988, with 15 at a time). Each has a word in the other's memory:
 * up to 16 threads all tell all, and who waits looks only at its own memory. What
 * is told is a value, by which the threads find out whether all of them mean the
 * same: one number, or that there are several.
 */
#include "shared.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evenkeel.h"
#include "gsm_job.h"
#include "next.h"

static struct world *worlds;
static pthread_mutex_t worlds_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors ---------------------------------------------------------------- */

static __thread char error_text[1024];

EK_EXPORT const char *ek_upc_error(void)
{
	return error_text;
}

int ek_upc_refuse(int result, const char *format, ...)
{
	va_list rest;
	va_start(rest, format);
	vsnprintf(error_text, sizeof error_text, format, rest);
	va_end(rest);
	return result;
}

int ek_upc_reached(int result)
{
	return EK_LIKELY(result == EK_OK) ? EK_OK : ek_upc_refuse(result, "%s", ek_gsm_error());
}

/* The object that a handle names; nothing, if it is 0. */
static const char *name_object(uint64_t handle, char *into, size_t room)
{
	uint32_t partition = (uint32_t)(handle >> 40), index = (uint32_t)(handle >> 16) & 0xffffff;
	*into = 0;
	if (handle && partition == 0xffffff)
		snprintf(into, room, " everyone's object %u.%u", index, (unsigned)(handle & 0xffff));
	else if (handle)
		snprintf(into, room, " thread %u's object %u.%u", partition, index, (unsigned)(handle & 0xffff));
	return into;
}

int ek_upc_of(const char *argument, uint64_t handle, int result)
{
	char why[sizeof error_text], object[64];
	if (result == EK_OK)
		return EK_OK;
	memcpy(why, error_text, sizeof why);
	name_object(handle, object, sizeof object);
	return ek_upc_refuse(result, "%s%s%s: %s", argument, *object ? "," : "", object, why);
}

int ek_upc_told(const struct world *w, const char *what, uint64_t handle, int result)
{
	char why[sizeof error_text], object[64];
	if (result == EK_OK)
		return EK_OK;
	name_object(handle, object, sizeof object);
	memcpy(why, error_text, sizeof why);
	if (w)
		snprintf(error_text, sizeof error_text, "thread %u: %s%s: %s", w->open.thread, what, object, why);
	else
		snprintf(error_text, sizeof error_text, "%s%s: %s", what, object, why);
	return result;
}

const char *ek_upc_strerror(int result)
{
	switch ((enum ek_upc_result)result) {
	case EK_UPC_LAYOUT:
		return "no shared array can be so";
	case EK_UPC_RANGE:
		return "the array has no such elements, or there is no such thread";
	case EK_UPC_POINTER:
		return "the pointer does not point into the array";
	case EK_UPC_TYPE:
		return "the object is of another kind, or its elements are of another size";
	case EK_UPC_NO_OBJECT:
		return "there never was such an object";
	case EK_UPC_FREED:
		return "the object was freed before, or let go of";
	case EK_UPC_NO_MEMORY:
		return "there is no room in the shared heap";
	case EK_UPC_HELD:
		return "the lock is held";
	case EK_UPC_NOT_HELD:
		return "the thread does not hold the lock";
	case EK_UPC_UNEQUAL:
		return "the threads differ in a collective call, or one of them failed in it";
	case EK_UPC_BARRIER:
		return "notify, wait or a collective call in the wrong order, or different values at a barrier";
	case EK_UPC_OPERATION:
		return "no such operation, type or flag";
	case EK_UPC_ENDED:
		return "the world has ended, or never began";
	case EK_UPC_LOST:
		return "a thread died that held the lock, or waited for it: nobody gets it any more";
	}
	return 0;
}

/* ---- meetings ------------------------------------------------------------------- */

void ek_upc_pause(const struct world *w, unsigned *looks)
{
	enum { EAGER = 64, CALM = 2000 };
	unsigned look = (*looks)++;
	if (look % EAGER != EAGER - 1 && !(w->crowded && look % 4 == 3)) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
		return;
	}
	/* MPI's rule: what others have begun with this rank completes while it waits. */
	if (ek_mpi.progress)
		ek_mpi.progress();
	/* Where there are other nodes, this one's engine writes what is waited for. */
	if (w->crowded || !w->together || look > CALM)
		sched_yield();
}

/* A word of a meeting: its number, whether there are several values, and the value. */
enum { SEVERAL_BIT = 55, NUMBER_BIT = 56 };
static const uint64_t several = (uint64_t)1 << SEVERAL_BIT, values = ((uint64_t)1 << SEVERAL_BIT) - 1;

static uint64_t both(uint64_t one, uint64_t other)
{
	return (one | other) & several || (one & values) != (other & values) ? one | several : one;
}

static bool has_round(const struct world *w, unsigned round)
{
	return round < ROUNDS && (uint64_t)1 << (round * RADIX_BITS) < w->open.threads;
}

static int tell(struct world *w, unsigned round)
{
	uint64_t threads = w->open.threads;
	for (unsigned i = 1; i < RADIX; i++) {
		uint64_t apart = (uint64_t)i << (round * RADIX_BITS);
		if (apart >= threads)
			break;
		uint32_t to = (uint32_t)((w->open.thread + apart) % threads);
		uint64_t place = ROOT + offsetof(struct root, arrivals[round][i - 1].words[w->meetings % 2]);
		if (EK_LIKELY(w->parts[to] != 0))
			EK_PUBLISH(*(uint64_t *)(void *)(w->parts[to] + place), w->word);
		else
			TRY(ek_upc_write(w, to, place, w->word));
	}
	return EK_OK;
}

static void hear(struct world *w, unsigned round)
{
	for (unsigned i = 1; i < RADIX && (uint64_t)i << (round * RADIX_BITS) < w->open.threads; i++) {
		const uint64_t *word = &w->root->arrivals[round][i - 1].words[w->meetings % 2];
		uint64_t heard;
		unsigned looks = 0;
		/* The word may be there from two meetings ago; nobody is further ahead than one. */
		while ((heard = __atomic_load_n(word, __ATOMIC_ACQUIRE)) >> NUMBER_BIT != w->meetings % 256)
			ek_upc_pause(w, &looks);
		w->word = both(w->word, heard);
	}
}

/* What was written before is seen by all who have heard of the thread. */
static int begin_meeting(struct world *w, uint64_t value)
{
	TRY(ek_upc_reached(ek_gsm_fence(w->memory.window)));
	w->meetings++;
	w->word = w->meetings % 256 << NUMBER_BIT | (value & values);
	return has_round(w, 0) ? tell(w, 0) : EK_OK;
}

static int end_meeting(struct world *w, bool *same)
{
	for (unsigned round = 0; has_round(w, round); round++) {
		hear(w, round);
		if (has_round(w, round + 1))
			TRY(tell(w, round + 1));
	}
	*same = !(w->word & several);
	return ek_upc_reached(ek_gsm_fence(w->memory.window));
}

int ek_upc_meet(struct world *w, uint64_t value, bool *same)
{
	TRY(begin_meeting(w, value));
	return end_meeting(w, same);
}

int ek_upc_usable(const struct world *w)
{
	if (!w || w->ended)
		return ek_upc_refuse(EK_UPC_ENDED, "%s", w ? "the world has ended" : "there is no world");
	if (w->notified)
		return ek_upc_refuse(EK_UPC_BARRIER, "nothing collective can be done between notify and wait");
	return EK_OK;
}

/* A number for numbers, so that different ones are told from each other by 54 bits. */
static uint64_t digest(enum call call, const uint64_t *numbers, int count)
{
	uint64_t all = call;
	for (int i = 0; i < count; i++) {
		all = (all ^ numbers[i]) + 0x9e3779b97f4a7c15;
		all = (all ^ all >> 30) * 0xbf58476d1ce4e5b9;
		all = (all ^ all >> 27) * 0x94d049bb133111eb;
		all ^= all >> 31;
	}
	return all >> 10;
}

/* What the numbers are that threads give when they come to a call. */
static const struct argument {
	const char *name;
	bool object; /* a handle */
} arguments[AT_BARRIER + 1][ARGUMENTS - 2] = {
	[ALLOCATING] = {{"the block", 0}, {"the number of elements", 0}, {"the elements' size", 0}, {"the kind", 0}},
	[RESIZING] = {{"the array", 1}, {"the number of elements", 0}},
	[FREEING] = {{"the array", 1}},
	[FREEING_LOCK] = {{"the lock", 1}},
#define OF_MOVE {{"dst", 1}, {"src", 1}, {"perm", 1}, {"the element of dst", 0}, {"the element of src", 0}, {"n", 0}, {"flags", 0}}
	[BROADCAST] = OF_MOVE, [SCATTER] = OF_MOVE, [GATHER] = OF_MOVE, [GATHER_ALL] = OF_MOVE, [EXCHANGE] = OF_MOVE, [PERMUTE] = OF_MOVE,
#define OF_REDUCTION {{"dst", 1}, {"src", 1}, {"the element of dst", 0}, {"the element of src", 0}, {"n", 0}, {"type", 0}, {"op", 0}, {"flags", 0}}
	[REDUCE] = OF_REDUCTION, [REDUCE_NONCOMM] = OF_REDUCTION, [PREFIX_REDUCE] = OF_REDUCTION,
};

static int unequal(enum call call, int i, uint64_t here, uint64_t there, uint32_t thread)
{
	const struct argument *a = &arguments[call][i];
	char one[64], other[64];
	if (a->object)
		return ek_upc_refuse(EK_UPC_UNEQUAL, "%s must be the same on all threads; it is%s here, and%s on thread %u", a->name,
		                     name_object(here, one, sizeof one), name_object(there, other, sizeof other), thread);
	return ek_upc_refuse(EK_UPC_UNEQUAL, "%s must be the same on all threads; it is %lld here, and %lld on thread %u", a->name,
	                     (long long)here, (long long)there, thread);
}

/* Why the threads do not agree. */
static int explain(struct world *w, enum call call, const uint64_t *numbers, int count, int mine)
{
	uint64_t theirs[ARGUMENTS];
	int found = EK_OK;
	bool unused;
	for (uint32_t t = 0; found == EK_OK && mine == EK_OK && t < w->open.threads; t++) {
		struct ek_gsm_address at = ek_upc_address(w, t, ROOT + offsetof(struct root, arguments));
		found = ek_upc_reached(ek_gsm_get(w->memory.window, at, theirs, sizeof theirs));
		if (found == EK_OK && theirs[0] != EK_OK)
			found = ek_upc_refuse(EK_UPC_UNEQUAL, "thread %u failed in it: %s", t, ek_strerror((int)theirs[0]));
		else if (found == EK_OK && theirs[ARGUMENTS - 1] != call)
			found = ek_upc_refuse(EK_UPC_UNEQUAL, "thread %u is in another collective call", t);
		if (found == EK_OK && call == AT_BARRIER && theirs[1] != numbers[0])
			found = ek_upc_refuse(EK_UPC_UNEQUAL, "at barrier %lld, where thread %u is at barrier %lld",
			                      (long long)numbers[0], t, (long long)theirs[1]);
		for (int i = 0; found == EK_OK && i < count; i++)
			if (theirs[i + 1] != numbers[i])
				found = unequal(call, i, numbers[i], theirs[i + 1], t);
	}
	TRY(ek_upc_meet(w, 0, &unused)); /* all have read */
	return mine != EK_OK ? mine : found;
}

int ek_upc_agree(struct world *w, enum call call, const uint64_t *numbers, int count, int mine)
{
	char why[sizeof error_text];
	bool same;
	EK_STORE(w->root->arguments[ARGUMENTS - 1], call);
	EK_STORE(w->root->arguments[0], (uint64_t)mine);
	for (int i = 0; i < count; i++)
		EK_STORE(w->root->arguments[i + 1], numbers[i]);
	if (mine != EK_OK)
		memcpy(why, error_text, sizeof why);
	/* Those that failed are never of one mind. */
	TRY(ek_upc_meet(w, mine == EK_OK ? digest(call, numbers, count) : (uint64_t)1 << 54 | w->open.thread, &same));
	int result = same ? mine : explain(w, call, numbers, count, mine);
	if (mine != EK_OK)
		memcpy(error_text, why, sizeof why);
	return result;
}

int ek_upc_hand_out_numbers(struct world *w, int mine, uint64_t *numbers, int count)
{
	const uint64_t at = ROOT + offsetof(struct root, answer);
	uint64_t *answer = w->root->answer, result = (uint64_t)mine;
	bool unused;
	/* Nobody still reads the last answer: all have come to another meeting since. */
	for (int i = 0; w->open.thread == 0 && i < count; i++)
		EK_STORE(answer[i + 1], numbers[i]);
	if (w->open.thread == 0)
		EK_STORE(answer[0], result);
	TRY(ek_upc_meet(w, 0, &unused));
	if (w->open.thread == 0)
		return mine;
	TRY(ek_upc_read(w, 0, at, &result));
	for (int i = 0; i < count; i++)
		TRY(ek_upc_read(w, 0, at + 8 * ((uint64_t)i + 1), &numbers[i]));
	return result == EK_OK ? EK_OK : ek_upc_refuse((int)result, "thread 0 failed in it: %s", ek_strerror((int)result));
}

int ek_upc_hand_out(struct world *w, int mine, struct opened *made)
{
	uint64_t numbers[] = {made->handle, made->entry, made->object.place};
	TRY(ek_upc_hand_out_numbers(w, mine, numbers, 3));
	made->handle = numbers[0];
	made->entry = numbers[1];
	made->object.place = numbers[2];
	ek_upc_hold(w, made);
	return EK_OK;
}

/* ---- barriers ---------------------------------------------------------------------- */

EK_EXPORT int ek_upc_fence(struct ek_upc *world)
{
	EK_UPC_MOVES(world);
	struct world *w = (struct world *)world;
	int result = EK_LIKELY(w && !w->ended) ? ek_upc_reached(ek_gsm_fence(w->memory.window)) : ek_upc_usable(w);
	return ek_upc_told(w, "fence", 0, result);
}

static int notify(struct world *w, int value)
{
	TRY(ek_upc_usable(w));
	EK_STORE(w->root->arguments[0], EK_OK); /* for who has to say what differs */
	EK_STORE(w->root->arguments[1], (uint64_t)(int64_t)value);
	EK_STORE(w->root->arguments[ARGUMENTS - 1], AT_BARRIER);
	TRY(begin_meeting(w, (uint32_t)value));
	w->notified = true;
	return EK_OK;
}

static int wait_for_all(struct world *w)
{
	bool same;
	if (!w || w->ended)
		return ek_upc_usable(w);
	if (!w->notified)
		return ek_upc_refuse(EK_UPC_BARRIER, "without a notify");
	TRY(end_meeting(w, &same));
	w->notified = false;
	TRY(ek_upc_sweep(w));
	if (EK_LIKELY(same))
		return EK_OK;
	const uint64_t value = EK_LOAD(w->root->arguments[1]);
	int result = explain(w, AT_BARRIER, &value, 1, EK_OK);
	return result == EK_UPC_UNEQUAL ? EK_UPC_BARRIER : result;
}

EK_EXPORT int ek_upc_notify(struct ek_upc *world, int value)
{
	struct world *w = (struct world *)world;
	EK_UPC_OPERATION(ek_upc_notify, w);
	int result = notify(w, value);
	if (result == EK_OK) {
		w->notified_on = ek_own_call.begun ? ek_own_call.call.comm : 0;
		w->notified_as = ek_own_call.begun ? ek_own_call.call.sequence : 0;
	}
	return ek_upc_told(w, "notify", 0, result);
}

EK_EXPORT int ek_upc_wait(struct ek_upc *world)
{
	struct world *w = (struct world *)world;
	EK_FOR_CALLER;
	EK_OWN(EK_CALLER(ek_upc_wait), w && w->notified ? w->comm : 0, MPI_PROC_NULL);
	if (ek_own_call.begun && w->notified_on)
		ek_join(&ek_own_call.call, w->notified_on, w->notified_as);
	return ek_upc_told(w, "wait", 0, wait_for_all(w));
}

static int barrier(struct world *w, int value)
{
	int result = notify(w, value);
	return result == EK_OK ? wait_for_all(w) : result;
}

static __attribute__((noinline)) int barrier_whole(struct world *w, int value, struct ek_caller by)
{
	EK_OWN(by, ek_upc_comm(w), MPI_PROC_NULL);
	return barrier(w, value);
}

/* As the wrapper of MPI_Barrier. */
EK_EXPORT int ek_upc_barrier(struct ek_upc *world, int value)
{
	struct world *w = (struct world *)world;
	const struct ek_caller by = EK_CALLER(ek_upc_barrier);
	int result;
	if (EK_LIKELY(ek_upc_comm(w) != 0) &&
	    EK_LIKELY(ek_quick(EK_ek_upc_barrier, true, w->comm, MPI_PROC_NULL, by.site, EK_FRAME))) {
		result = barrier(w, value);
		ek_quick_end();
	} else {
		result = barrier_whole(w, value, by);
	}
	return ek_upc_told(w, "barrier", 0, result);
}

/* ---- start and end ------------------------------------------------------------------- */

struct range {
	struct ek_heap heap;
	char *memory;
};

static int load_here(const struct ek_heap *h, uint64_t offset, uint64_t *value)
{
	*value = EK_LOAD(*(uint64_t *)(void *)(((const struct range *)h)->memory + offset));
	return EK_OK;
}

static int store_here(const struct ek_heap *h, uint64_t offset, uint64_t value)
{
	EK_STORE(*(uint64_t *)(void *)(((const struct range *)h)->memory + offset), value);
	return EK_OK;
}

/* The thread's own books; thread 0 also has those of what is spread, where the root
 * comes first. */
static int format(struct world *w)
{
	uint64_t bytes = w->half - HEAP_BEGIN, root;
	struct range own = {{load_here, store_here}, (char *)w->memory.local + w->half + HEAP_BEGIN};
	struct range spread = {{load_here, store_here}, (char *)w->memory.local + HEAP_BEGIN};
	TRY(ek_heap_format(&own.heap, bytes));
	if (w->open.thread != 0)
		return EK_OK;
	TRY(ek_heap_format(&spread.heap, bytes));
	TRY(ek_heap_allocate(&spread.heap, sizeof(struct root), &root));
	return HEAP_BEGIN + root == ROOT ? EK_OK : EK_UPC_NO_MEMORY;
}

/* Where the parts of the threads of this node are mapped. */
static int find_parts(struct world *w)
{
	const struct ek_gsm_window *window = w->memory.window;
	uint32_t here = 0;
	w->parts = calloc(w->open.threads, sizeof *w->parts);
	if (!w->parts)
		return ek_upc_refuse(EK_NO_MEMORY, "no memory for the places of %u threads", w->open.threads);
	for (uint32_t t = 0; t < w->open.threads; t++) {
		const struct ek_gsm_entry *entry = &window->areas[t]->windows[window->number % EK_GSM_WINDOWS];
		if (ek_gsm_same_node(w->job, t)) {
			w->parts[t] = (char *)window->areas[t] + entry->start;
			here++;
		}
	}
	w->together = here == w->open.threads;
	w->crowded = (long)here > sysconf(_SC_NPROCESSORS_ONLN);
	w->open.parts = w->parts;
	return EK_OK;
}

/* The greatest of all threads' numbers: these are few, and at the start alone. */
static int greatest(MPI_Comm comm, uint64_t *numbers, int count)
{
	const struct ek_ground *ground = ek_ground();
	uint64_t all[4];
	if (!ground || ground->Allreduce(numbers, all, count, ek_mpi.type_uint64, ek_mpi.op_max, comm) != MPI_SUCCESS)
		return ek_upc_refuse(EK_MPI_FAILED, "MPI_Allreduce failed");
	memcpy(numbers, all, (size_t)count * sizeof *all);
	return EK_OK;
}

/* Whether all threads mean the same world: before anything else, as Go's do it. */
static int meet_threads(MPI_Comm comm, uint64_t heap, struct world *w)
{
	const uint64_t language = 1; /* Go's is 2 */
	uint64_t all[4] = {language, ~language, heap, ~heap};
	int thread, threads;
	ek_mpi.Comm_rank(comm, &thread);
	ek_mpi.Comm_size(comm, &threads);
	w->open.thread = (uint32_t)thread;
	w->open.threads = (uint32_t)threads;
	TRY(greatest(comm, all, 4));
	if (all[0] != ~all[1])
		return ek_upc_refuse(EK_UPC_UNEQUAL, "threads in C and threads in Go can't share one world");
	if (all[2] != ~all[3])
		return ek_upc_refuse(EK_UPC_UNEQUAL, "a shared heap must be as large on all threads; they ask for %llu to %llu bytes",
		                     (unsigned long long)~all[3], (unsigned long long)all[2]);
	return EK_OK;
}

static int start(MPI_Comm comm, uint64_t heap, struct world *w)
{
	const uint64_t least = 2 * (HEAP_BEGIN + sizeof(struct root)) + (64 << 10), most = (uint64_t)1 << 62;
	uint64_t failed;
	if (heap < least || heap > most / w->open.threads)
		return ek_upc_refuse(EK_UPC_NO_MEMORY, "a shared heap of %llu bytes for each thread: it takes %llu to %llu",
		                     (unsigned long long)heap, (unsigned long long)least, (unsigned long long)(most / w->open.threads));
	heap -= heap % (2 * EK_HEAP_UNIT);
	w->half = heap / 2;
	TRY(ek_upc_reached(ek_gsm_all_allocate(w->job, heap * w->open.threads, heap, EK_GSM_ALL, &w->memory)));
	w->root = (struct root *)(void *)((char *)w->memory.local + ROOT);
	w->open.news = &w->root->news;
	int result = find_parts(w);
	if (result == EK_OK)
		result = format(w);
	failed = (uint64_t)result;
	TRY(greatest(comm, &failed, 1));
	if (result == EK_OK && failed != EK_OK)
		result = ek_upc_refuse(EK_UPC_UNEQUAL, "another thread failed in it: %s", ek_strerror((int)failed));
	return result;
}

EK_EXPORT int ek_upc_start(int comm, uint64_t heap, struct ek_upc **world)
{
	EK_FOR_CALLER;
	static const char what[] = "starting to share objects";
	int kept = errno, result = EK_OK, initialized = 0;
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return ek_upc_told(0, what, 0, ek_upc_refuse(EK_NO_MEMORY, "no memory"));
	if (!heap)
		heap = (uint64_t)64 << 20;
	ek_next_resolve();
	if (ek_mpi.found)
		ek_mpi.Initialized(&initialized);
	if (initialized)
		result = meet_threads(ek_mpi.Comm_f2c(comm), heap, w);
	if (result == EK_OK)
		result = ek_upc_reached(ek_gsm_join(comm, &w->job));
	if (result == EK_OK) {
		result = start(ek_mpi.Comm_f2c(comm), heap, w);
		w->comm = EK_C_KEY(w->job->comm);
		ek_gsm_name(w->job, "shared objects");
		if (result != EK_OK)
			ek_gsm_leave(w->job);
	}
	ek_upc_told(initialized ? w : 0, what, 0, result);
	if (result == EK_OK) {
		pthread_mutex_lock(&worlds_lock);
		w->before = worlds;
		worlds = w;
		pthread_mutex_unlock(&worlds_lock);
		*world = &w->open;
	} else {
		free(w->parts);
		free(w);
	}
	errno = kept;
	return result;
}

EK_EXPORT int ek_upc_end(struct ek_upc *world)
{
	static const uint64_t ended = UINT64_MAX; /* news that nobody has heard */
	EK_FOR_CALLER;
	struct world *w = (struct world *)world;
	int kept = errno, result = ek_upc_usable(w);
	if (result == EK_OK) { /* what follows frees communicators */
		EK_OWN(EK_CALLER(ek_upc_end), w->comm, MPI_PROC_NULL);
		result = ek_upc_agree(w, ENDING, 0, 0, EK_OK);
	}
	if (result == EK_OK) {
		w->ended = true;
		w->open.news = &ended;
		result = ek_upc_reached(ek_gsm_all_free(&w->memory));
		if (result == EK_OK)
			result = ek_upc_reached(ek_gsm_leave(w->job));
		free(w->uses);
		free(w->parts);
		w->uses = 0;
		w->open.parts = 0;
	}
	errno = kept;
	return ek_upc_told(w, "ending the world", 0, result);
}
