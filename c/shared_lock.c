/* shared_lock.c - locks: queues of threads, each of which waits for a word of its own
 * memory (J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization
 * on shared-memory multiprocessors, ACM TOCS 1991).
 *
 * A lock has a part at the same place on every thread: the end of the queue, which
 * counts on the home thread alone, and that thread's place in the queue. The words
 * are those of Go's pgas/shared.
 */
#include "evenkeel.h"
#include "shared.h"

enum {
	TAIL = 0,                /* on the home thread: 0 if the lock is free, else who came last, and one */
	AFTER = EK_HEAP_UNIT,    /* of a thread's place: who comes next, and one */
	WAITS = EK_HEAP_UNIT + 8, /* 1 while the thread waits */
	USED = EK_HEAP_UNIT + 16, /* 1 while the thread holds the lock, or waits for it */
	GONE = EK_HEAP_UNIT + 24 /* of a thread that came behind one that found the lock freed: who was last to, and one */
};

/* The end of the queue of a lock that was freed. */
static const uint64_t closed = UINT64_MAX;

/* The atomics by which a lock is handed on acquire and release what was loaded and
 * stored; what went to other nodes has to be asked for. */
static int fence(struct world *w)
{
	return w->together ? EK_OK : ek_upc_reached(ek_gsm_fence(w->memory.window));
}

/* Makes the thread's own place in the queue, unless it has the lock. */
static int prepare(struct world *w, struct queue q)
{
	if (EK_LOAD(*ek_upc_word(w, q.place + USED)))
		return ek_upc_refuse(EK_UPC_HELD, "the thread holds it already");
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

/* The thread `before` in the queue has it, or gets it first. */
static __attribute__((noinline)) void wait_for_turn(struct world *w, struct queue q, uint64_t before, struct ek_caller by)
{
	const uint64_t *waits = ek_upc_word(w, q.place + WAITS);
	unsigned looks = 0;
	EK_OWN(by, w->comm, (int)before);
	while (__atomic_load_n(waits, __ATOMIC_ACQUIRE))
		ek_upc_pause(w, &looks);
}

int ek_upc_queue_enter(struct world *w, struct queue q, struct ek_caller by)
{
	const uint64_t me = (uint64_t)w->open.thread + 1;
	uint64_t before = 0, unused;
	TRY(prepare(w, q));
	TRY(ek_upc_swap(w, q.home, q.place + TAIL, me, &before));
	if (EK_UNLIKELY(before == closed)) {
		TRY(ek_upc_swap(w, q.home, q.place + TAIL, closed, &before));
		return tell_freed(w, q, before);
	}
	EK_STORE(*ek_upc_word(w, q.place + USED), 1);
	if (before != 0) {
		TRY(ek_upc_swap(w, (uint32_t)(before - 1), q.place + AFTER, me, &unused));
		wait_for_turn(w, q, before - 1, by);
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

int ek_upc_queue_leave(struct world *w, struct queue q)
{
	const uint64_t me = (uint64_t)w->open.thread + 1;
	const uint64_t *after = ek_upc_word(w, q.place + AFTER);
	uint64_t *used = ek_upc_word(w, q.place + USED), before = 0, next;
	unsigned looks = 0;
	if (!EK_LOAD(*used))
		return ek_upc_refuse(EK_UPC_NOT_HELD, "the thread does not hold it");
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
		ek_upc_pause(w, &looks);
	EK_STORE(*used, 0);
	return ek_upc_swap(w, (uint32_t)(next - 1), q.place + WAITS, 0, &before);
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
	return EK_LOAD(*ek_upc_word(world_of(l), l->place + USED)) ? ek_upc_refuse(EK_UPC_HELD, "the thread holds it") : EK_OK;
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

static int attempt(struct ek_upc_lock *l, int *taken)
{
	struct world *w = world_of(l);
	uint64_t before = 0;
	TRY(alive(l));
	TRY(prepare(w, queue_of(l)));
	TRY(ek_upc_compare_and_swap(w, l->home, l->place + TAIL, 0, (uint64_t)w->open.thread + 1, &before));
	if (before == closed)
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
	*taken = before == 0;
	if (before != 0)
		return EK_OK;
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
	if (tail == closed)
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
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
	if (before == closed)
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
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
