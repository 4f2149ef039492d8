/* shared_lock.c - locks: queues of threads, each of which waits for a word of its own
 * memory (J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization
 * on shared-memory multiprocessors, ACM TOCS 1991).
 *
 * A lock has a part at the same place on every thread: the end of the queue, which
 * counts on the home thread alone, and that thread's place in the queue. The words
 * are those of Go's pgas/shared.
 *
 * Who waits looks four times a second whether the thread in front of it lives. Where that
 * died, nobody will hand the lock on: the lock is lost, which each thread tells the one
 * behind it, and the last one whoever comes later, by the end of the queue.
 */
#define _GNU_SOURCE
#include <time.h>

#include "evenkeel.h"
#include "gsm_job.h"
#include "shared.h"

enum {
	TAIL = 0,                /* on the home thread: 0 if the lock is free, else who came last, and one */
	AFTER = EK_HEAP_UNIT,    /* of a thread's place: who comes next, and one */
	WAITS = EK_HEAP_UNIT + 8, /* 1 while the thread waits; or that the lock is lost */
	USED = EK_HEAP_UNIT + 16, /* 1 while the thread holds the lock, or waits for it; or that the lock is lost */
	GONE = EK_HEAP_UNIT + 24 /* of a thread that came behind one that found the lock freed: who was last to, and one */
};

/* The end of the queue of a lock that was freed. */
static const uint64_t closed = UINT64_MAX;

/* A lock that is lost: with this bit, in the end of the queue and in any word of a thread's
 * place, stands the thread that died, and one. */
static const uint64_t lost = (uint64_t)1 << 63;

/* The atomics by which a lock is handed on acquire and release what was loaded and
 * stored; what went to other nodes has to be asked for. */
static int fence(struct world *w)
{
	return w->together ? EK_OK : ek_upc_reached(ek_gsm_fence(w->memory.window));
}

static int refuse_lost(uint64_t why)
{
	return ek_upc_refuse(EK_UPC_LOST, "thread %u died, or can't be reached, while it held the lock or waited for it: nobody gets "
	                     "the lock any more; end the job, and find out why that thread ended", (unsigned)(why & ~lost) - 1);
}

/* Makes the thread's own place in the queue, unless it has the lock. */
static int prepare(struct world *w, struct queue q)
{
	const uint64_t used = EK_LOAD(*ek_upc_word(w, q.place + USED));
	if (EK_UNLIKELY(used))
		return used & lost ? refuse_lost(used) : ek_upc_refuse(EK_UPC_HELD, "the thread holds it already");
	EK_STORE(*ek_upc_word(w, q.place + AFTER), 0);
	EK_STORE(*ek_upc_word(w, q.place + WAITS), 1);
	return EK_OK;
}

/* The lock was freed. Who has come behind this thread before it could say so waits for it: it tells
 * the next one, which tells the one after it, up to the last. */
static int tell_freed(struct world *w, struct queue q, uint64_t last)
{
	const uint64_t *after = ek_upc_word(w, q.place + AFTER);
	uint64_t next, before;
	unsigned looks = 0;
	if (last != (uint64_t)w->open.thread + 1) {
		while (!(next = __atomic_load_n(after, __ATOMIC_ACQUIRE)))
			ek_upc_pause(w, &looks);
		TRY(ek_upc_write(w, (uint32_t)(next - 1), q.place + GONE, last));
		TRY(fence(w));
		TRY(ek_upc_swap(w, (uint32_t)(next - 1), q.place + WAITS, 0, &before));
	}
	return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
}

/* Whether a thread lives, as far as is known: on another node, whether it answers. */
static bool lives(struct world *w, struct queue q, uint32_t thread)
{
	uint64_t unused;
	return w->parts[thread] ? ek_gsm_lives(&w->job->space, w->job->areas[thread])
	                        : ek_upc_read(w, thread, q.place + USED, &unused) == EK_OK;
}

/* Whether it is time to look who lives, of one who waits since the first call. */
static bool due(uint64_t *at)
{
	enum { PERIOD = 250 }; /* ms */
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	const uint64_t now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000, then = *at;
	if (then && now < then)
		return false;
	*at = now + PERIOD;
	return then != 0;
}

/* Goes on waiting. True: it is time to look who lives. */
static bool wait_on(const struct world *w, unsigned *looks, uint64_t *look_at)
{
	ek_upc_pause(w, looks);
	return *looks % 64 == 0 && due(look_at);
}

/* The lock is lost. Who stands behind this thread hears it, also if it is only about to say that it does. */
static int give_up(struct world *w, struct queue q, uint64_t why)
{
	const uint64_t next = __atomic_exchange_n(ek_upc_word(w, q.place + AFTER), why, __ATOMIC_ACQ_REL);
	uint64_t unused;
	if (next)
		ek_upc_swap(w, (uint32_t)(next - 1), q.place + WAITS, why, &unused);
	else
		ek_upc_compare_and_swap(w, q.home, q.place + TAIL, (uint64_t)w->open.thread + 1, why, &unused);
	EK_STORE(*ek_upc_word(w, q.place + USED), why);
	return refuse_lost(why);
}

/* The thread `before` in the queue has it, or gets it first. 0, or that the lock is lost. */
static __attribute__((noinline)) uint64_t wait_for_turn(struct world *w, struct queue q, uint32_t before, struct ek_caller by)
{
	const uint64_t *waits = ek_upc_word(w, q.place + WAITS);
	uint64_t said, look_at = 0;
	unsigned looks = 0;
	EK_OWN(by, w->comm, (int)before);
	while ((said = __atomic_load_n(waits, __ATOMIC_ACQUIRE)) == 1)
		if (wait_on(w, &looks, &look_at) && !lives(w, q, before) && __atomic_load_n(waits, __ATOMIC_ACQUIRE) == 1)
			return lost | ((uint64_t)before + 1);
	return said;
}

/* Stands behind a thread. 0, or that the lock is lost: that one gave up, or can't be told. */
static uint64_t stand_behind(struct world *w, struct queue q, uint32_t before)
{
	uint64_t after = 0;
	if (ek_upc_swap(w, before, q.place + AFTER, (uint64_t)w->open.thread + 1, &after) != EK_OK)
		return lost | ((uint64_t)before + 1);
	return after;
}

int ek_upc_queue_enter(struct world *w, struct queue q, struct ek_caller by)
{
	const uint64_t me = (uint64_t)w->open.thread + 1;
	uint64_t before = 0, why;
	TRY(prepare(w, q));
	TRY(ek_upc_swap(w, q.home, q.place + TAIL, me, &before));
	if (EK_UNLIKELY(before == closed)) {
		TRY(ek_upc_swap(w, q.home, q.place + TAIL, closed, &before));
		return tell_freed(w, q, before);
	}
	EK_STORE(*ek_upc_word(w, q.place + USED), 1);
	if (before != 0) {
		why = before & lost ? before : stand_behind(w, q, (uint32_t)(before - 1));
		if (EK_LIKELY(!why))
			why = wait_for_turn(w, q, (uint32_t)(before - 1), by);
		if (EK_UNLIKELY(why))
			return give_up(w, q, why);
		before = EK_LOAD(*ek_upc_word(w, q.place + GONE));
		if (EK_UNLIKELY(before)) {
			EK_STORE(*ek_upc_word(w, q.place + USED), 0);
			return tell_freed(w, q, before);
		}
	}
	return fence(w);
}

int ek_upc_books_enter(struct world *w, struct queue q)
{
	return ek_upc_queue_enter(w, q, (struct ek_caller){EK_SITE, w->function});
}

/* Somebody came behind this thread, and has not yet said who. 0, or that the lock is lost, as
 * the end of the queue says, or as nobody who died there will say any more. */
static uint64_t lost_behind(struct world *w, struct queue q)
{
	uint64_t last = 0;
	if (ek_upc_read(w, q.home, q.place + TAIL, &last) != EK_OK)
		return lost | ((uint64_t)q.home + 1);
	if (last & lost)
		return last;
	return lives(w, q, (uint32_t)(last - 1)) ? 0 : lost | last;
}

int ek_upc_queue_leave(struct world *w, struct queue q)
{
	const uint64_t me = (uint64_t)w->open.thread + 1;
	const uint64_t *after = ek_upc_word(w, q.place + AFTER);
	uint64_t *used = ek_upc_word(w, q.place + USED), before = 0, next, why, look_at = 0;
	unsigned looks = 0;
	if (EK_UNLIKELY(EK_LOAD(*used) != 1))
		return EK_LOAD(*used) ? refuse_lost(EK_LOAD(*used)) : ek_upc_refuse(EK_UPC_NOT_HELD, "the thread does not hold it");
	TRY(fence(w));
	if (!EK_LOAD(*after)) {
		TRY(ek_upc_compare_and_swap(w, q.home, q.place + TAIL, me, 0, &before));
		if (before == me) {
			EK_STORE(*used, 0);
			return EK_OK;
		}
	}
	/* Somebody came: who, is about to be written. */
	while (!(next = __atomic_load_n(after, __ATOMIC_ACQUIRE)))
		if (wait_on(w, &looks, &look_at) && (why = lost_behind(w, q)))
			return give_up(w, q, why);
	EK_STORE(*used, 0);
	return ek_upc_swap(w, (uint32_t)(next - 1), q.place + WAITS, 0, &before) == EK_OK ? EK_OK : give_up(w, q, lost | next);
}

/* ---- what programs call ------------------------------------------------------------- */

static struct world *world_of(const struct ek_upc_lock *l)
{
	return (struct world *)l->world;
}

static struct queue queue_of(const struct ek_upc_lock *l)
{
	return (struct queue){l->place, l->home};
}

static int alive(struct ek_upc_lock *l)
{
	struct world *w = world_of(l);
	if (EK_LIKELY(w && !w->ended && EK_LOAD(w->root->news) == l->news))
		return EK_OK;
	return ek_upc_check(w, l->handle, l->use, l->generation, &l->news);
}

static void fill(struct world *w, uint64_t news, const struct opened *o, struct ek_upc_lock *lock)
{
	*lock = (struct ek_upc_lock){.world = &w->open, .handle = o->handle, .place = o->object.place,
	                             .home = (uint32_t)o->object.first, .use = o->use, .generation = o->generation, .news = news};
}

static struct object planned(uint32_t home)
{
	return (struct object){.block = 1, .elements = 1, .size = LOCK_BYTES, .kind = LOCK, .first = home};
}

/* Makes what was planned, for so many users. */
static int make(struct world *w, uint64_t users, struct opened *o)
{
	TRY(ek_upc_enter(w, EVERYBODYS, LOCK_BYTES, users, o));
	for (uint32_t t = 0; t < w->open.threads; t++) {
		static const uint64_t words[] = {TAIL, AFTER, WAITS, USED, GONE};
		for (int i = 0; i < 5; i++)
			TRY(ek_upc_write(w, t, o->object.place + words[i], 0));
	}
	return ek_upc_reached(ek_gsm_fence(w->memory.window));
}

EK_EXPORT int ek_upc_global_lock_alloc(struct ek_upc *world, struct ek_upc_lock *lock)
{
	EK_UPC_ALONE(ek_upc_global_lock_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	struct opened made;
	*lock = (struct ek_upc_lock){.world = world};
	if (!w || w->ended)
		return ek_upc_told(w, "allocating a lock", 0, ek_upc_usable(w));
	uint64_t news = EK_LOAD(w->root->news);
	made.object = planned(w->open.thread);
	int result = ek_upc_make_room(w);
	if (result == EK_OK)
		result = make(w, 1, &made);
	if (result == EK_OK) {
		ek_upc_hold(w, &made);
		fill(w, news, &made, lock);
	}
	return ek_upc_told(w, "allocating a lock", 0, result);
}

static int all_lock_alloc(struct world *w, struct ek_upc_lock *lock)
{
	struct opened made = {.object = planned(0)};
	uint64_t news = EK_LOAD(w->root->news);
	TRY(ek_upc_agree(w, ALLOCATING_LOCK, 0, 0, ek_upc_make_room(w)));
	int mine = w->open.thread == 0 ? make(w, w->open.threads, &made) : EK_OK;
	TRY(ek_upc_hand_out(w, mine, &made));
	fill(w, news, &made, lock);
	return EK_OK;
}

EK_EXPORT int ek_upc_all_lock_alloc(struct ek_upc *world, struct ek_upc_lock *lock)
{
	EK_UPC_OPERATION(ek_upc_all_lock_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*lock = (struct ek_upc_lock){.world = world};
	int result = ek_upc_usable(w);
	return ek_upc_told(w, "allocating a lock", 0, result == EK_OK ? all_lock_alloc(w, lock) : result);
}

EK_EXPORT int ek_upc_lock_open(struct ek_upc *world, uint64_t handle, struct ek_upc_lock *lock)
{
	EK_UPC_MOVES(world);
	struct world *w = (struct world *)world;
	struct opened found;
	*lock = (struct ek_upc_lock){.world = world};
	if (!w || w->ended)
		return ek_upc_told(w, "opening", handle, ek_upc_usable(w));
	uint64_t news = EK_LOAD(w->root->news);
	int result = ek_upc_look_up(w, handle, LOCK, &found);
	if (result == EK_OK)
		fill(w, news, &found, lock);
	return ek_upc_told(w, "opening", handle, result);
}

static int unused_here(const struct ek_upc_lock *l)
{
	const uint64_t used = EK_LOAD(*ek_upc_word(world_of(l), l->place + USED));
	if (used & lost)
		return refuse_lost(used);
	return used ? ek_upc_refuse(EK_UPC_HELD, "the thread holds it") : EK_OK;
}

EK_EXPORT int ek_upc_lock_close(struct ek_upc_lock *lock)
{
	EK_UPC_ALONE(ek_upc_lock_close, world_of(lock));
	int result = alive(lock);
	if (result == EK_OK)
		result = unused_here(lock);
	if (result == EK_OK)
		result = ek_upc_let_go(world_of(lock), lock->use);
	return ek_upc_told(world_of(lock), "closing", lock->handle, result);
}

EK_EXPORT int ek_upc_lock(struct ek_upc_lock *lock)
{
	EK_UPC_MOVES(lock->world);
	int result = alive(lock);
	if (EK_LIKELY(result == EK_OK))
		result = ek_upc_queue_enter(world_of(lock), queue_of(lock), EK_CALLER(ek_upc_lock));
	return ek_upc_told(world_of(lock), "locking", lock->handle, result);
}

/* Whether a lock with that end of its queue can be taken, now or later. */
static int usable(uint64_t tail)
{
	if (EK_UNLIKELY(tail == closed))
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
	return EK_UNLIKELY(tail & lost) ? refuse_lost(tail) : EK_OK;
}

static int attempt(struct ek_upc_lock *l, int *taken)
{
	struct world *w = world_of(l);
	uint64_t before = 0;
	TRY(alive(l));
	TRY(prepare(w, queue_of(l)));
	TRY(ek_upc_compare_and_swap(w, l->home, l->place + TAIL, 0, (uint64_t)w->open.thread + 1, &before));
	TRY(usable(before));
	*taken = before == 0;
	if (before != 0) {
		/* Who tries again and again hears it too. */
		const bool dead = ++w->tries % 64 == 0 && due(&w->look_at) && !lives(w, queue_of(l), (uint32_t)(before - 1));
		return EK_UNLIKELY(dead) ? refuse_lost(lost | before) : EK_OK;
	}
	EK_STORE(*ek_upc_word(w, l->place + USED), 1);
	return fence(w);
}

EK_EXPORT int ek_upc_lock_attempt(struct ek_upc_lock *lock, int *taken)
{
	EK_UPC_MOVES(lock->world);
	*taken = 0;
	return ek_upc_told(world_of(lock), "trying", lock->handle, attempt(lock, taken));
}

EK_EXPORT int ek_upc_unlock(struct ek_upc_lock *lock)
{
	EK_UPC_MOVES(lock->world);
	int result = alive(lock);
	if (EK_LIKELY(result == EK_OK))
		result = ek_upc_queue_leave(world_of(lock), queue_of(lock));
	return ek_upc_told(world_of(lock), "unlocking", lock->handle, result);
}

static int last(struct ek_upc_lock *l, int64_t *thread)
{
	uint64_t tail;
	TRY(alive(l));
	TRY(ek_upc_read(world_of(l), l->home, l->place + TAIL, &tail));
	TRY(usable(tail));
	*thread = (int64_t)tail - 1;
	return EK_OK;
}

EK_EXPORT int ek_upc_lock_last(struct ek_upc_lock *lock, int64_t *thread)
{
	EK_UPC_MOVES(lock->world);
	return ek_upc_told(world_of(lock), "asking for", lock->handle, last(lock, thread));
}

/* Nobody can take it from now on. */
static int shut(struct ek_upc_lock *l)
{
	struct world *w = world_of(l);
	uint64_t before = 0;
	TRY(unused_here(l));
	TRY(ek_upc_compare_and_swap(w, l->home, l->place + TAIL, 0, closed, &before));
	TRY(usable(before));
	return before ? ek_upc_refuse(EK_UPC_HELD, "thread %llu holds it, or waits for it", (unsigned long long)before - 1) : EK_OK;
}

EK_EXPORT int ek_upc_lock_free(struct ek_upc_lock *lock)
{
	EK_UPC_ALONE(ek_upc_lock_free, world_of(lock));
	int result = alive(lock);
	if (result == EK_OK)
		result = shut(lock);
	if (result == EK_OK)
		result = ek_upc_discard(world_of(lock), lock->use, 1);
	return ek_upc_told(world_of(lock), "freeing", lock->handle, result);
}

static int all_lock_free(struct ek_upc_lock *l)
{
	struct world *w = world_of(l);
	TRY(ek_upc_usable(w));
	TRY(ek_upc_agree(w, FREEING_LOCK, &l->handle, 1, alive(l)));
	TRY(ek_upc_agree(w, FREEING_LOCK, 0, 0, w->open.thread == 0 ? shut(l) : EK_OK));
	if (w->open.thread == 0)
		return ek_upc_discard(w, l->use, w->open.threads);
	ek_upc_forget(w, l->use);
	return EK_OK;
}

EK_EXPORT int ek_upc_all_lock_free(struct ek_upc_lock *lock)
{
	EK_UPC_OPERATION(ek_upc_all_lock_free, world_of(lock));
	return ek_upc_told(world_of(lock), "freeing", lock->handle, all_lock_free(lock));
}
