/* shared_directory.c - the shared variable directory as C programs have it: which
 * objects there are, who has them open, and when their memory is used again.
 *
 * A handle is that of Go's pgas/svd: partition (24 bits), index (24), generation
 * (16). Each thread is the home of its partition, and thread 0 of everybody's. An
 * entry is a cache line in its home's memory; its first word, the key, has the
 * generation, whether the object was freed, and how many users there are. Whoever
 * opens an object counts itself in by one compare-and-swap of the key, which fails
 * for another generation and for what was freed. So an entry that was counted in
 * stays as it is, and so does the memory, until the same user has counted itself
 * out.
 *
 * Behind the line is a set: a bit for each thread that has the object open. A thread
 * adds itself before it counts itself in, and takes itself out before it counts itself
 * out, so that whoever changes an object finds all its users there.
 *
 * Who frees an object sets that bit of the key, and tells the threads of the set that
 * there is news: one word of each, which every access compares with what it was when the
 * object was last looked up. A user that finds news looks at the key, and lets go. The
 * last one to let go of a freed object gives its memory back to the heap.
 *
 * An object that is resized and has no room where it is moves: its elements are copied,
 * the entry gets the new place, and its users are told that there is news. What it
 * left belongs to it until nobody can still have the old place: the parts it left are
 * a list. Who looks up an object reads the elements before the place, whoever resizes
 * it writes them behind it, and no part has less room than one before: so the two that
 * are read fit each other, whatever happens between.
 *
 * Heaps and entries change under the lock of the half that the object is in.
 * Everybody's entries lie in thread 0's own heap, whose lock is then taken second.
 */
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "shared.h"

/* Words of an entry, whose length depends on the number of threads. */
enum { KEY = 0, OBJECT = 8, NEXT = OBJECT + offsetof(struct object, left) /* in its place */, SET = 64 };

static const uint32_t everybody = 0xffffff;
static const uint64_t freed = (uint64_t)1 << 47, users = ((uint64_t)1 << 47) - 1;
enum { GENERATION_BIT = 48, LAST_GENERATION = 0xffff, MOST_INDICES = 1 << 24, FIRST_CHUNK = 64 };

static uint64_t handle_of(uint32_t partition, uint64_t index, uint64_t generation)
{
	return (uint64_t)partition << 40 | index << 16 | generation;
}

static uint32_t partition_of(uint64_t handle) { return (uint32_t)(handle >> 40); }
static uint64_t index_of(uint64_t handle) { return handle >> 16 & 0xffffff; }
static uint64_t generation_of(uint64_t handle) { return handle & 0xffff; }
static enum which_directory directory_of(uint64_t handle) { return partition_of(handle) == everybody ? EVERYBODYS : OWN; }
static uint32_t home_of(uint64_t handle) { return partition_of(handle) == everybody ? 0 : partition_of(handle); }

/* ---- the halves, their locks and heaps -------------------------------------------- */

struct range {
	struct ek_heap heap;
	struct world *w;
	uint32_t thread;
	uint64_t base;
};

static int load(const struct ek_heap *h, uint64_t offset, uint64_t *value)
{
	const struct range *r = (const struct range *)h;
	return ek_upc_read(r->w, r->thread, r->base + offset, value);
}

static int store(const struct ek_heap *h, uint64_t offset, uint64_t value)
{
	const struct range *r = (const struct range *)h;
	return ek_upc_write(r->w, r->thread, r->base + offset, value);
}

static struct range range_of(struct world *w, enum which_directory which, uint32_t home)
{
	return (struct range){{load, store}, w, home, (which == OWN ? w->half : 0) + HEAP_BEGIN};
}

static struct queue lock_of(const struct world *w, enum which_directory which, uint32_t home)
{
	return (struct queue){which == OWN ? w->half : 0, home};
}

static int take(struct world *w, enum which_directory which, uint32_t home, uint64_t bytes, uint64_t *place)
{
	struct range r = range_of(w, which, home);
	int result = ek_heap_allocate(&r.heap, bytes, place);
	*place += r.base;
	if (result == EK_UPC_NO_MEMORY)
		return ek_upc_refuse(result, "%llu bytes: there is no room in the %s shared heap (ek_upc_start says how large it is; what "
		                     "was freed is used again when all have let go of it)", (unsigned long long)bytes,
		                     which == OWN ? "thread's own" : "common");
	return result;
}

/* ---- entries ------------------------------------------------------------------------ */

static uint64_t entry_bytes(const struct world *w)
{
	return SET + (w->open.threads + 511ull) / 512 * EK_HEAP_UNIT;
}

static uint64_t directory_place(enum which_directory which)
{
	return ROOT + offsetof(struct root, directories) + which * sizeof(struct directory);
}

/* Index i is number *within of a chunk. */
static unsigned chunk_of(uint64_t index, uint64_t *within)
{
	unsigned chunk = 63 - (unsigned)__builtin_clzll(index / FIRST_CHUNK + 1);
	*within = index - FIRST_CHUNK * (((uint64_t)1 << chunk) - 1);
	return chunk;
}

static int entry_place(struct world *w, uint64_t handle, uint64_t *place)
{
	uint64_t within, at = directory_place(directory_of(handle)) + offsetof(struct directory, chunks);
	at += sizeof(uint64_t) * chunk_of(index_of(handle), &within);
	TRY(ek_upc_read(w, home_of(handle), at, place));
	if (*place == 0)
		return ek_upc_refuse(EK_UPC_NO_OBJECT, "there never was such an object");
	*place += within * entry_bytes(w);
	return EK_OK;
}

/* Makes the chunk of a new index, if it is the first there. */
static int make_chunk(struct world *w, enum which_directory which, uint32_t home, uint64_t index)
{
	uint64_t within, place;
	unsigned chunk = chunk_of(index, &within);
	if (within != 0)
		return EK_OK;
	uint64_t bytes = FIRST_CHUNK * entry_bytes(w) << chunk;
	struct queue own = lock_of(w, OWN, home);
	if (which == EVERYBODYS)
		TRY(ek_upc_books_enter(w, own));
	int result = take(w, OWN, home, bytes, &place);
	if (which == EVERYBODYS)
		TRY(ek_upc_queue_leave(w, own));
	for (uint64_t at = 0; result == EK_OK && at < bytes; at += entry_bytes(w))
		result = ek_upc_write(w, home, place + at + KEY, 0);
	TRY(result);
	return ek_upc_write(w, home, directory_place(which) + offsetof(struct directory, chunks) + sizeof(uint64_t) * chunk, place);
}

/* ---- who has an object open ----------------------------------------------------------- */

/* Words of a set that are read or written at once. */
enum { WORDS = 64 };

static uint64_t words_of_set(const struct world *w, uint64_t from)
{
	uint64_t words = (w->open.threads + 63ull) / 64 - from;
	return words < WORDS ? words : WORDS;
}

static struct ek_gsm_address word_of_set(const struct world *w, uint32_t home, uint64_t entry, uint64_t word)
{
	return ek_upc_address(w, home, entry + SET + 8 * word);
}

/* Makes the set that of one thread, or of all. */
static int make_set(struct world *w, uint32_t home, uint64_t entry, bool all)
{
	const uint32_t me = w->open.thread;
	uint64_t words[WORDS], count;
	for (uint64_t from = 0; (count = words_of_set(w, from)) > 0; from += count) {
		memset(words, all ? 0xff : 0, sizeof words);
		if (from <= me / 64 && me / 64 < from + count)
			words[me / 64 - from] |= (uint64_t)1 << me % 64;
		TRY(ek_upc_reached(ek_gsm_put(w->memory.window, word_of_set(w, home, entry, from), words, 8 * count)));
	}
	return EK_OK;
}

/* Adds the calling thread to the set; *before: it was there. */
static int join_set(struct world *w, uint32_t home, uint64_t entry, bool *before)
{
	const uint32_t me = w->open.thread;
	const uint64_t bit = (uint64_t)1 << me % 64;
	uint64_t word = 0;
	TRY(ek_upc_reached(ek_gsm_fetch_and_or64(w->memory.window, word_of_set(w, home, entry, me / 64), bit, &word)));
	*before = word & bit;
	return EK_OK;
}

static int leave_set(struct world *w, uint32_t home, uint64_t entry)
{
	const uint32_t me = w->open.thread;
	return ek_upc_reached(ek_gsm_and64(w->memory.window, word_of_set(w, home, entry, me / 64), ~((uint64_t)1 << me % 64)));
}

static int tell_set(struct world *w, uint32_t home, uint64_t entry)
{
	const uint64_t news = ROOT + offsetof(struct root, news);
	uint64_t words[WORDS], count;
	for (uint64_t from = 0; (count = words_of_set(w, from)) > 0; from += count) {
		TRY(ek_upc_reached(ek_gsm_get(w->memory.window, word_of_set(w, home, entry, from), words, 8 * count)));
		for (uint64_t i = 0; i < count; i++)
			for (uint64_t rest = words[i]; rest; rest &= rest - 1) {
				uint64_t thread = 64 * (from + i) + (unsigned)__builtin_ctzll(rest);
				if (thread < w->open.threads)
					TRY(ek_upc_reached(ek_gsm_add64(w->memory.window, ek_upc_address(w, (uint32_t)thread, news), 1)));
			}
	}
	return EK_OK;
}

/* ---- making and ending entries ---------------------------------------------------------- */

/* An index that is not in use, and the key that its entry had. */
static int new_index(struct world *w, enum which_directory which, uint32_t home, uint64_t *index, uint64_t *entry, uint64_t *key)
{
	const uint64_t unused_at = directory_place(which) + offsetof(struct directory, unused);
	const uint64_t count_at = directory_place(which) + offsetof(struct directory, count);
	const uint32_t partition = which == OWN ? home : everybody;
	uint64_t unused, next;
	TRY(ek_upc_read(w, home, unused_at, &unused));
	if (unused) {
		*index = unused - 1;
		TRY(entry_place(w, handle_of(partition, *index, 0), entry));
		TRY(ek_upc_read(w, home, *entry + NEXT, &next));
		TRY(ek_upc_write(w, home, unused_at, next));
	} else {
		TRY(ek_upc_read(w, home, count_at, index));
		if (*index == MOST_INDICES)
			return ek_upc_refuse(EK_UPC_NO_MEMORY, "all %d indices of the directory are in use", MOST_INDICES);
		TRY(make_chunk(w, which, home, *index));
		TRY(ek_upc_write(w, home, count_at, *index + 1));
		TRY(entry_place(w, handle_of(partition, *index, 0), entry));
	}
	return ek_upc_read(w, home, *entry + KEY, key);
}

static int give_back(struct world *w, enum which_directory which, uint32_t home, uint64_t place)
{
	struct range r = range_of(w, which, home);
	int result = ek_heap_free(&r.heap, place - r.base);
	return result == EK_UPC_FREED ? ek_upc_refuse(result, "nothing is allocated at offset %llu", (unsigned long long)place) : result;
}

static int enter(struct world *w, enum which_directory which, uint32_t home, uint64_t bytes, uint64_t with, struct opened *o)
{
	uint64_t index, key;
	TRY(take(w, which, home, bytes, &o->object.place));
	int result = new_index(w, which, home, &index, &o->entry, &key);
	if (result != EK_OK) {
		give_back(w, which, home, o->object.place);
		return result;
	}
	uint64_t generation = (key >> GENERATION_BIT) + 1;
	TRY(ek_upc_reached(ek_gsm_put(w->memory.window, ek_upc_address(w, home, o->entry + OBJECT), &o->object, sizeof o->object)));
	TRY(make_set(w, home, o->entry, with > 1));
	TRY(ek_upc_reached(ek_gsm_fence(w->memory.window))); /* the key says that the rest is there */
	TRY(ek_upc_write(w, home, o->entry + KEY, generation << GENERATION_BIT | with));
	o->handle = handle_of(which == OWN ? home : everybody, index, generation);
	return EK_OK;
}

int ek_upc_enter(struct world *w, enum which_directory which, uint64_t bytes, uint64_t with, struct opened *made)
{
	uint32_t home = which == OWN ? w->open.thread : 0;
	struct queue lock = lock_of(w, which, home);
	TRY(ek_upc_books_enter(w, lock));
	int result = enter(w, which, home, bytes, with, made);
	TRY(ek_upc_queue_leave(w, lock));
	return result;
}

/* Gives back what an object left. */
static int give_back_left(struct world *w, enum which_directory which, uint32_t home, uint64_t entry)
{
	const uint64_t at = entry + OBJECT + offsetof(struct object, left);
	uint64_t left, before;
	TRY(ek_upc_read(w, home, at, &left));
	for (; left; left = before) {
		TRY(ek_upc_read(w, home, left - EK_HEAP_HOLDERS, &before));
		TRY(give_back(w, which, home, left));
	}
	return ek_upc_write(w, home, at, 0);
}

/* Gives back memory and index of an object that is freed and has no users. */
static int end_entry(struct world *w, uint64_t handle, uint64_t entry)
{
	enum which_directory which = directory_of(handle);
	const uint64_t unused_at = directory_place(which) + offsetof(struct directory, unused);
	uint32_t home = home_of(handle);
	struct queue lock = lock_of(w, which, home);
	uint64_t place, unused;
	TRY(ek_upc_read(w, home, entry + OBJECT + offsetof(struct object, place), &place));
	TRY(ek_upc_books_enter(w, lock));
	int result = give_back(w, which, home, place);
	if (result == EK_OK)
		result = give_back_left(w, which, home, entry);
	if (result == EK_OK && generation_of(handle) < LAST_GENERATION) { /* else the index is used up */
		result = ek_upc_read(w, home, unused_at, &unused);
		if (result == EK_OK)
			result = ek_upc_write(w, home, entry + NEXT, unused);
		if (result == EK_OK)
			result = ek_upc_write(w, home, unused_at, index_of(handle) + 1);
	}
	TRY(ek_upc_queue_leave(w, lock));
	return result;
}

/* ---- what this process has open ------------------------------------------------------- */

static void news_here(struct world *w)
{
	__atomic_fetch_add(&w->root->news, 1, __ATOMIC_SEQ_CST);
}

int ek_upc_make_room(struct world *w)
{
	if (w->use_free)
		return EK_OK;
	uint32_t room = w->use_room ? 2 * w->use_room : 16;
	struct use *more = realloc(w->uses, room * sizeof *more);
	if (!more)
		return ek_upc_refuse(EK_NO_MEMORY, "no memory for what is open");
	w->uses = more;
	for (uint32_t i = room; i-- > w->use_room;) {
		more[i] = (struct use){.next = w->use_free};
		w->use_free = i + 1;
	}
	w->use_room = room;
	return EK_OK;
}

void ek_upc_hold(struct world *w, struct opened *o)
{
	o->use = w->use_free - 1;
	struct use *u = &w->uses[o->use];
	w->use_free = u->next;
	o->generation = ++u->generation;
	u->handle = o->handle;
	u->entry = o->entry;
}

/* Whether this process has an object open. */
static bool has_open(const struct world *w, uint64_t handle)
{
	for (uint32_t use = 0; use < w->use_room; use++)
		if (w->uses[use].handle == handle)
			return true;
	return false;
}

/* Says whether the process has the object open once more. */
static bool forget(struct world *w, uint32_t use)
{
	struct use *u = &w->uses[use];
	const uint64_t handle = u->handle;
	u->handle = 0;
	u->next = w->use_free;
	w->use_free = use + 1;
	news_here(w); /* for copies */
	if (EK_LIKELY(w->open_again == 0) || !has_open(w, handle))
		return false;
	w->open_again--;
	return true;
}

void ek_upc_forget(struct world *w, uint32_t use)
{
	forget(w, use);
}

static bool there(uint64_t key, uint64_t handle)
{
	return key >> GENERATION_BIT == generation_of(handle) && !(key & freed);
}

int ek_upc_let_go(struct world *w, uint32_t use)
{
	struct use u = w->uses[use];
	uint32_t home = home_of(u.handle);
	uint64_t key, before = 0;
	if (!forget(w, use))
		TRY(leave_set(w, home, u.entry));
	TRY(ek_upc_read(w, home, u.entry + KEY, &key));
	for (;; key = before) {
		TRY(ek_upc_compare_and_swap(w, home, u.entry + KEY, key, key - 1, &before));
		if (before == key)
			break;
	}
	return (key & freed) && (key & users) == 1 ? end_entry(w, u.handle, u.entry) : EK_OK;
}

int ek_upc_check(struct world *w, uint64_t handle, uint32_t use, uint32_t generation, uint64_t *news)
{
	uint64_t key;
	if (!w || w->ended)
		return ek_upc_refuse(EK_UPC_ENDED, "%s", w ? "the world has ended" : "there is no world");
	uint64_t now = __atomic_load_n(&w->root->news, __ATOMIC_ACQUIRE);
	if (!handle)
		return ek_upc_refuse(EK_UPC_NO_OBJECT, "it was never allocated");
	if (use >= w->use_room || !w->uses[use].handle || w->uses[use].generation != generation)
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before, or closed");
	TRY(ek_upc_read(w, home_of(handle), w->uses[use].entry + KEY, &key));
	if (!there(key, handle)) {
		TRY(ek_upc_let_go(w, use));
		return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
	}
	*news = now;
	return EK_OK;
}

int ek_upc_sweep(struct world *w)
{
	if (EK_LIKELY(EK_LOAD(w->root->news) == w->swept))
		return EK_OK;
	w->swept = EK_LOAD(w->root->news);
	for (uint32_t use = 0; use < w->use_room; use++) {
		uint64_t key, handle = w->uses[use].handle;
		if (!handle)
			continue;
		TRY(ek_upc_read(w, home_of(handle), w->uses[use].entry + KEY, &key));
		if (!there(key, handle))
			TRY(ek_upc_let_go(w, use));
	}
	return EK_OK;
}

/* ---- resizing --------------------------------------------------------------------------- */

int ek_upc_extent(struct world *w, uint32_t use, uint64_t *place, uint64_t *elements)
{
	const struct use *u = &w->uses[use];
	const uint32_t home = home_of(u->handle);
	TRY(ek_upc_read(w, home, u->entry + OBJECT + offsetof(struct object, elements), elements));
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* before the place */
	return ek_upc_read(w, home, u->entry + OBJECT + offsetof(struct object, place), place);
}

static int begin_resize(struct world *w, uint32_t use, uint64_t bytes, uint64_t *from, uint64_t *to)
{
	const uint64_t handle = w->uses[use].handle;
	const uint32_t home = home_of(handle);
	struct range r = range_of(w, directory_of(handle), home);
	uint64_t elements, room;
	TRY(ek_upc_extent(w, use, from, &elements));
	TRY(ek_heap_room(&r.heap, *from - r.base, &room));
	*to = *from;
	return bytes <= room ? EK_OK : take(w, directory_of(handle), home, bytes, to);
}

int ek_upc_resize_begin(struct world *w, uint32_t use, uint64_t bytes, uint64_t *from, uint64_t *to)
{
	const uint64_t handle = w->uses[use].handle;
	struct queue lock = lock_of(w, directory_of(handle), home_of(handle));
	TRY(ek_upc_books_enter(w, lock));
	int result = begin_resize(w, use, bytes, from, to);
	if (result != EK_OK)
		TRY(ek_upc_queue_leave(w, lock));
	return result;
}

static int end_resize(struct world *w, uint32_t use, uint64_t from, uint64_t to, uint64_t elements, bool unused)
{
	const struct use u = w->uses[use];
	const uint32_t home = home_of(u.handle);
	const uint64_t object = u.entry + OBJECT;
	uint64_t left, key;
	if (to != from) {
		TRY(ek_upc_read(w, home, object + offsetof(struct object, left), &left));
		TRY(ek_upc_write(w, home, from - EK_HEAP_HOLDERS, left));
		TRY(ek_upc_write(w, home, object + offsetof(struct object, left), from));
		TRY(ek_upc_write(w, home, object + offsetof(struct object, place), to));
		TRY(ek_upc_reached(ek_gsm_fence(w->memory.window)));
	}
	TRY(ek_upc_write(w, home, object + offsetof(struct object, elements), elements));
	TRY(ek_upc_reached(ek_gsm_fence(w->memory.window)));
	/* Who opens it from now on finds the new place. */
	TRY(ek_upc_read(w, home, u.entry + KEY, &key));
	return unused || (key & users) == 1 ? give_back_left(w, directory_of(u.handle), home, u.entry) : EK_OK;
}

int ek_upc_resize_end(struct world *w, uint32_t use, uint64_t from, uint64_t to, uint64_t elements, bool unused, int failed)
{
	const struct use u = w->uses[use];
	const uint32_t home = home_of(u.handle);
	struct queue lock = lock_of(w, directory_of(u.handle), home);
	int result = failed;
	if (failed == EK_OK)
		result = end_resize(w, use, from, to, elements, unused);
	else if (to != from)
		give_back(w, directory_of(u.handle), home, to);
	TRY(ek_upc_queue_leave(w, lock));
	return result == EK_OK ? tell_set(w, home, u.entry) : result;
}

/* ---- opening and freeing ---------------------------------------------------------------- */

/* Counts the caller in, unless the object is gone. */
static int count_in(struct world *w, uint64_t handle, uint64_t entry)
{
	const uint32_t home = home_of(handle);
	uint64_t key, before = 0;
	TRY(ek_upc_read(w, home, entry + KEY, &key));
	for (;; key = before) {
		if (key >> GENERATION_BIT < generation_of(handle))
			return ek_upc_refuse(EK_UPC_NO_OBJECT, "there never was such an object");
		if (!there(key, handle))
			return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
		TRY(ek_upc_compare_and_swap(w, home, entry + KEY, key, key + 1, &before));
		if (before == key)
			return EK_OK;
	}
}

int ek_upc_look_up(struct world *w, uint64_t handle, enum kind kind, struct opened *o)
{
	bool again;
	uint32_t home = home_of(handle);
	if (!handle || home >= w->open.threads || !generation_of(handle))
		return ek_upc_refuse(EK_UPC_NO_OBJECT, "handle %llx is none of this world's", (unsigned long long)handle);
	o->handle = handle;
	TRY(ek_upc_make_room(w));
	TRY(entry_place(w, handle, &o->entry));
	TRY(join_set(w, home, o->entry, &again));
	int result = count_in(w, handle, o->entry);
	if (result != EK_OK) {
		if (!again)
			TRY(leave_set(w, home, o->entry));
		return result;
	}
	w->open_again += again;
	ek_upc_hold(w, o);
	TRY(ek_upc_reached(ek_gsm_get(w->memory.window, ek_upc_address(w, home, o->entry + OBJECT), &o->object, sizeof o->object)));
	TRY(ek_upc_extent(w, o->use, &o->object.place, &o->object.elements));
	if (o->object.kind != kind) {
		TRY(ek_upc_let_go(w, o->use));
		return ek_upc_refuse(EK_UPC_TYPE, "it is no %s", kind == LOCK ? "lock" : kind == POINTER ? "pointer" : "array");
	}
	return EK_OK;
}

int ek_upc_discard(struct world *w, uint32_t use, uint64_t with)
{
	struct use u = w->uses[use];
	uint32_t home = home_of(u.handle);
	uint64_t key, before = 0;
	TRY(ek_upc_read(w, home, u.entry + KEY, &key));
	for (;; key = before) {
		if (!there(key, u.handle)) { /* somebody else was first */
			TRY(ek_upc_let_go(w, use));
			return ek_upc_refuse(EK_UPC_FREED, "it was freed before");
		}
		TRY(ek_upc_compare_and_swap(w, home, u.entry + KEY, key, (key | freed) - with, &before));
		if (before == key)
			break;
	}
	if (!forget(w, use))
		TRY(leave_set(w, home, u.entry));
	if ((key & users) == with)
		return end_entry(w, u.handle, u.entry);
	return tell_set(w, home, u.entry);
}
