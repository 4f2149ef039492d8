/* shared_array.c - shared arrays: how they are allocated, resized and freed, and the accesses
 * that evenkeel_shared.h does not inline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "shared.h"

static struct world *world_of(const struct ek_upc_array *a)
{
	return (struct world *)a->world;
}

/* ---- allocating ----------------------------------------------------------------- */

/* Where its elements are, and which of them are here. */
static void settle(struct ek_upc_array *a, uint64_t place)
{
	a->place = place;
	a->local_elements = ek_upc_part(a, a->world->thread);
	a->local = a->local_elements ? (char *)world_of(a)->memory.local + place : 0;
}

static void fill(struct world *w, uint64_t news, const struct ek_upc_layout *layout, const struct opened *o,
                 struct ek_upc_array *a)
{
	*a = (struct ek_upc_array){.world = &w->open, .layout = *layout, .handle = o->handle, .first = (uint32_t)o->object.first,
	                           .use = o->use, .generation = o->generation, .news = news};
	settle(a, o->object.place);
}

static struct object planned(enum kind kind, const struct ek_upc_layout *l, uint32_t first)
{
	return (struct object){.block = (uint64_t)l->block, .elements = (uint64_t)l->elements, .size = (uint64_t)l->size,
	                       .kind = kind, .first = first};
}

/* What every thread gives: as much as the first, which has most. */
static uint64_t bytes_of(const struct ek_upc_layout *l)
{
	return (uint64_t)(ek_upc_local_elements(l, 0) * l->size);
}

static int all_alloc(struct world *w, enum kind kind, int64_t block, int64_t elements, int64_t size, struct ek_upc_array *array)
{
	const uint64_t numbers[] = {(uint64_t)block, (uint64_t)elements, (uint64_t)size, kind};
	struct ek_upc_layout layout;
	struct opened made;
	TRY(ek_upc_usable(w));
	const uint64_t news = EK_LOAD(w->root->news);
	int mine = ek_upc_layout(w->open.threads, block, elements, size, &layout);
	if (mine == EK_OK)
		mine = ek_upc_make_room(w);
	TRY(ek_upc_agree(w, ALLOCATING, numbers, 4, mine));
	made.object = planned(kind, &layout, 0);
	if (w->open.thread == 0)
		mine = ek_upc_enter(w, EVERYBODYS, bytes_of(&layout), w->open.threads, &made);
	TRY(ek_upc_hand_out(w, mine, &made));
	fill(w, news, &layout, &made, array);
	return EK_OK;
}

EK_EXPORT int ek_upc_all_alloc(struct ek_upc *world, int64_t block, int64_t elements, int64_t size, struct ek_upc_array *array)
{
	EK_UPC_OPERATION(ek_upc_all_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*array = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "allocating a shared array", 0, all_alloc(w, ARRAY, block, elements, size, array));
}

EK_EXPORT int ek_upc_all_pointer_alloc(struct ek_upc *world, int64_t block, int64_t elements, struct ek_upc_array *pointers)
{
	EK_UPC_OPERATION(ek_upc_all_pointer_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*pointers = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "allocating shared pointers", 0,
	                   all_alloc(w, POINTER, block, elements, sizeof(struct ek_upc_target), pointers));
}

/* By one thread, in its own half or in everybody's. */
static int alloc(struct world *w, enum which_directory which, enum kind kind, int64_t block, int64_t elements, int64_t size,
                 struct ek_upc_array *array)
{
	struct ek_upc_layout layout;
	struct opened made;
	if (!w || w->ended)
		return ek_upc_usable(w);
	uint64_t news = EK_LOAD(w->root->news);
	TRY(ek_upc_layout(w->open.threads, block, elements, size, &layout));
	TRY(ek_upc_make_room(w));
	made.object = planned(kind, &layout, which == OWN ? w->open.thread : 0);
	TRY(ek_upc_enter(w, which, bytes_of(&layout), 1, &made));
	ek_upc_hold(w, &made);
	fill(w, news, &layout, &made, array);
	return EK_OK;
}

EK_EXPORT int ek_upc_global_alloc(struct ek_upc *world, int64_t block, int64_t elements, int64_t size,
                                  struct ek_upc_array *array)
{
	EK_UPC_ALONE(ek_upc_global_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*array = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "allocating a global shared array", 0, alloc(w, EVERYBODYS, ARRAY, block, elements, size, array));
}

EK_EXPORT int ek_upc_alloc(struct ek_upc *world, int64_t elements, int64_t size, struct ek_upc_array *array)
{
	EK_UPC_ALONE(ek_upc_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*array = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "allocating a shared array of one thread", 0,
	                   alloc(w, OWN, ARRAY, EK_UPC_INDEFINITE, elements, size, array));
}

EK_EXPORT int ek_upc_pointer_alloc(struct ek_upc *world, int64_t elements, struct ek_upc_array *pointers)
{
	EK_UPC_ALONE(ek_upc_pointer_alloc, (struct world *)world);
	struct world *w = (struct world *)world;
	*pointers = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "allocating shared pointers of one thread", 0,
	                   alloc(w, OWN, POINTER, EK_UPC_INDEFINITE, elements, sizeof(struct ek_upc_target), pointers));
}

static int open_array(struct world *w, enum kind kind, uint64_t handle, int64_t size, struct ek_upc_array *array)
{
	struct ek_upc_layout layout;
	struct opened found;
	if (!w || w->ended)
		return ek_upc_usable(w);
	uint64_t news = EK_LOAD(w->root->news);
	TRY(ek_upc_look_up(w, handle, kind, &found));
	const struct object *o = &found.object;
	int result = ek_upc_layout(w->open.threads, (int64_t)o->block, (int64_t)o->elements, (int64_t)o->size, &layout);
	if (result == EK_OK && size != 0 && size != layout.size)
		result = ek_upc_refuse(EK_UPC_TYPE, "its elements have %lld bytes, not %lld", (long long)layout.size, (long long)size);
	if (result != EK_OK) {
		TRY(ek_upc_let_go(w, found.use));
		return result;
	}
	fill(w, news, &layout, &found, array);
	return EK_OK;
}

EK_EXPORT int ek_upc_open(struct ek_upc *world, uint64_t handle, int64_t size, struct ek_upc_array *array)
{
	EK_UPC_MOVES(world);
	struct world *w = (struct world *)world;
	*array = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "opening", handle, open_array(w, ARRAY, handle, size, array));
}

EK_EXPORT int ek_upc_pointer_open(struct ek_upc *world, uint64_t handle, struct ek_upc_array *pointers)
{
	EK_UPC_MOVES(world);
	struct world *w = (struct world *)world;
	*pointers = (struct ek_upc_array){.world = world};
	return ek_upc_told(w, "opening", handle, open_array(w, POINTER, handle, sizeof(struct ek_upc_target), pointers));
}

/* ---- closing and freeing ---------------------------------------------------------- */

static int resized(const struct ek_upc_array *a, int64_t elements, struct ek_upc_layout *layout)
{
	return ek_upc_layout(a->layout.threads, a->layout.block, elements, a->layout.size, layout);
}

/* Finds out where the elements are now, and how many. */
static int renew(struct ek_upc_array *a)
{
	uint64_t place, elements;
	TRY(ek_upc_extent(world_of(a), a->use, &place, &elements));
	if ((int64_t)elements != a->layout.elements)
		TRY(resized(a, (int64_t)elements, &a->layout));
	settle(a, place);
	return EK_OK;
}

/* The same, unless the array is gone. */
static int check(struct ek_upc_array *a)
{
	uint64_t news;
	TRY(ek_upc_check(world_of(a), a->handle, a->use, a->generation, &news));
	TRY(renew(a));
	a->news = news;
	return EK_OK;
}

int ek_upc_alive(struct ek_upc_array *a)
{
	struct world *w = world_of(a);
	return EK_LIKELY(a->handle && !w->ended && EK_LOAD(w->root->news) == a->news) ? EK_OK : check(a);
}

EK_EXPORT int ek_upc_close(struct ek_upc_array *array)
{
	EK_UPC_ALONE(ek_upc_close, world_of(array));
	int result = check(array);
	if (result == EK_OK)
		result = ek_upc_let_go(world_of(array), array->use);
	return ek_upc_told(world_of(array), "closing", array->handle, result);
}

EK_EXPORT int ek_upc_free(struct ek_upc_array *array)
{
	EK_UPC_ALONE(ek_upc_free, world_of(array));
	int result = check(array);
	if (result == EK_OK)
		result = ek_upc_discard(world_of(array), array->use, 1);
	return ek_upc_told(world_of(array), "freeing", array->handle, result);
}

static int all_free(struct ek_upc_array *a)
{
	struct world *w = world_of(a);
	TRY(ek_upc_usable(w));
	TRY(ek_upc_agree(w, FREEING, &a->handle, 1, check(a)));
	/* All are users until now, and only who has it open once more is one afterwards. Thread 0 can't know
	 * who, and tells all then; that each took itself out of the set would be an atomic more for each free. */
	if (w->open.thread == 0)
		return ek_upc_discard(w, a->use, w->open.threads);
	ek_upc_forget(w, a->use);
	return EK_OK;
}

EK_EXPORT int ek_upc_all_free(struct ek_upc_array *array)
{
	EK_UPC_OPERATION(ek_upc_all_free, world_of(array));
	return ek_upc_told(world_of(array), "freeing", array->handle, all_free(array));
}

/* ---- resizing ---------------------------------------------------------------------- */

/* Copies a thread's part to another place. */
static int copy_part(const struct ek_upc_array *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct world *w = world_of(a);
	struct ek_gsm_window *window = w->memory.window;
	const uint64_t bytes = (uint64_t)(ek_upc_part(a, thread) * a->layout.size);
	char piece[4096];
	if (w->parts[thread]) {
		memcpy(w->parts[thread] + to, w->parts[thread] + from, bytes);
		return EK_OK;
	}
	for (uint64_t done = 0, some; done < bytes; done += some) {
		some = bytes - done < sizeof piece ? bytes - done : sizeof piece;
		TRY(ek_upc_reached(ek_gsm_get(window, ek_upc_address(w, thread, from + done), piece, some)));
		TRY(ek_upc_reached(ek_gsm_put(window, ek_upc_address(w, thread, to + done), piece, some)));
	}
	return EK_OK;
}

static int resize(struct ek_upc_array *a, int64_t elements)
{
	struct world *w = world_of(a);
	struct ek_upc_layout layout;
	uint64_t from, to;
	TRY(check(a));
	TRY(resized(a, elements, &layout));
	TRY(ek_upc_resize_begin(w, a->use, bytes_of(&layout), &from, &to));
	int result = renew(a); /* another thread may have resized it just before */
	for (uint32_t t = 0; result == EK_OK && to != from && t < w->open.threads; t++)
		result = copy_part(a, t, from, to);
	TRY(ek_upc_resize_end(w, a->use, from, to, (uint64_t)elements, false, result));
	return renew(a);
}

EK_EXPORT int ek_upc_resize(struct ek_upc_array *array, int64_t elements)
{
	EK_UPC_ALONE(ek_upc_resize, world_of(array));
	return ek_upc_told(world_of(array), "resizing", array->handle, resize(array, elements));
}

static int all_resize(struct ek_upc_array *a, int64_t elements)
{
	struct world *w = world_of(a);
	const uint64_t numbers[] = {a->handle, (uint64_t)elements};
	struct ek_upc_layout layout;
	uint64_t places[2] = {0, 0};
	TRY(ek_upc_usable(w));
	int mine = check(a);
	if (mine == EK_OK)
		mine = resized(a, elements, &layout);
	TRY(ek_upc_agree(w, RESIZING, numbers, 2, mine));
	if (w->open.thread == 0)
		mine = ek_upc_resize_begin(w, a->use, bytes_of(&layout), &places[0], &places[1]);
	TRY(ek_upc_hand_out_numbers(w, mine, places, 2));
	mine = renew(a);
	if (mine == EK_OK && places[0] != places[1])
		mine = copy_part(a, w->open.thread, places[0], places[1]);
	mine = ek_upc_agree(w, COPIED, 0, 0, mine);
	if (w->open.thread == 0)
		mine = ek_upc_resize_end(w, a->use, places[0], places[1], (uint64_t)elements, true, mine);
	TRY(ek_upc_agree(w, RESIZED, 0, 0, mine));
	return renew(a); /* which may be freed by now */
}

EK_EXPORT int ek_upc_all_resize(struct ek_upc_array *array, int64_t elements)
{
	EK_UPC_OPERATION(ek_upc_all_resize, world_of(array));
	return ek_upc_told(world_of(array), "resizing", array->handle, all_resize(array, elements));
}

/* ---- elements ------------------------------------------------------------------------ */

int64_t ek_upc_part(const struct ek_upc_array *a, uint32_t thread)
{
	return ek_upc_local_elements(&a->layout, (int64_t)thread - a->first);
}

/* Where elements of a thread are mapped here; null: on another node. */
static char *mapped(const struct ek_upc_array *a, struct ek_upc_place at)
{
	char *part = world_of(a)->parts[at.thread];
	return part ? part + a->place + at.local * a->layout.size : 0;
}

static struct ek_gsm_address address_of(const struct ek_upc_array *a, struct ek_upc_place at)
{
	return ek_upc_address(world_of(a), (uint32_t)at.thread, a->place + (uint64_t)(at.local * a->layout.size));
}

int ek_upc_get_run(const struct ek_upc_array *a, struct ek_upc_place from, void *into, int64_t n)
{
	const char *memory = mapped(a, from);
	uint64_t bytes = (uint64_t)(n * a->layout.size);
	if (!memory)
		return ek_upc_reached(ek_gsm_get(world_of(a)->memory.window, address_of(a, from), into, bytes));
	if (bytes)
		memcpy(into, memory, bytes);
	return EK_OK;
}

int ek_upc_put_run(const struct ek_upc_array *a, struct ek_upc_place to, const void *from, int64_t n)
{
	char *memory = mapped(a, to);
	uint64_t bytes = (uint64_t)(n * a->layout.size);
	if (!memory)
		return ek_upc_reached(ek_gsm_put(world_of(a)->memory.window, address_of(a, to), from, bytes));
	if (bytes)
		memcpy(memory, from, bytes);
	return EK_OK;
}

/* One element, which is read and written as a whole where it is a word. */
static int get_element(const struct ek_upc_array *a, struct ek_upc_place at, void *into)
{
	struct ek_gsm_window *window = world_of(a)->memory.window;
	uint64_t word;
	uint32_t half;
	switch (a->layout.size) {
	case 8:
		TRY(ek_upc_reached(ek_gsm_get64(window, address_of(a, at), &word)));
		memcpy(into, &word, 8);
		return EK_OK;
	case 4:
		TRY(ek_upc_reached(ek_gsm_get32(window, address_of(a, at), &half)));
		memcpy(into, &half, 4);
		return EK_OK;
	}
	return ek_upc_get_run(a, at, into, 1);
}

static int put_element(const struct ek_upc_array *a, struct ek_upc_place at, const void *from)
{
	struct ek_gsm_window *window = world_of(a)->memory.window;
	uint64_t word;
	uint32_t half;
	switch (a->layout.size) {
	case 8:
		memcpy(&word, from, 8);
		return ek_upc_reached(ek_gsm_put64(window, address_of(a, at), word));
	case 4:
		memcpy(&half, from, 4);
		return ek_upc_reached(ek_gsm_put32(window, address_of(a, at), half));
	}
	return ek_upc_put_run(a, at, from, 1);
}

static int sized(const struct ek_upc_array *a, uint64_t size)
{
	return size == (uint64_t)a->layout.size ? EK_OK : ek_upc_refuse(EK_UPC_TYPE, "its elements have %lld bytes, not %llu",
	                                                                 (long long)a->layout.size, (unsigned long long)size);
}

int ek_upc_has(struct ek_upc_array *a, int64_t i, int64_t n)
{
	TRY(ek_upc_alive(a));
	if (EK_LIKELY(i >= 0 && n >= 0 && i <= a->layout.elements - n))
		return EK_OK;
	char has[64] = "it has none";
	if (a->layout.elements > 0)
		snprintf(has, sizeof has, "stay within 0 to %lld", (long long)a->layout.elements - 1);
	if (n == 1)
		return ek_upc_refuse(EK_UPC_RANGE, "element %lld is not in it: %s", (long long)i, has);
	return ek_upc_refuse(EK_UPC_RANGE, "%lld elements from element %lld on are not in it: %s", (long long)n, (long long)i, has);
}

static struct ek_upc_place place_of(const struct ek_upc_array *a, int64_t i)
{
	struct ek_upc_place at = ek_upc_locate(&a->layout, i);
	at.thread += a->first;
	return at;
}

static int get(struct ek_upc_array *a, int64_t i, void *into, uint64_t size)
{
	TRY(ek_upc_has(a, i, 1));
	TRY(sized(a, size));
	return get_element(a, place_of(a, i), into);
}

static int put(struct ek_upc_array *a, int64_t i, const void *from, uint64_t size)
{
	TRY(ek_upc_has(a, i, 1));
	TRY(sized(a, size));
	return put_element(a, place_of(a, i), from);
}

EK_EXPORT int ek_upc_get_far(struct ek_upc_array *array, int64_t i, void *into, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	return ek_upc_told(world_of(array), "reading", array->handle, get(array, i, into, size));
}

EK_EXPORT int ek_upc_put_far(struct ek_upc_array *array, int64_t i, const void *from, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	return ek_upc_told(world_of(array), "writing", array->handle, put(array, i, from, size));
}

EK_EXPORT int ek_upc_get_fenced(struct ek_upc_array *array, int64_t i, void *into, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	int result = ek_upc_fence(array->world);
	if (result == EK_OK)
		result = ek_upc_get_bytes(array, i, into, size);
	return result == EK_OK ? ek_upc_fence(array->world) : result;
}

EK_EXPORT int ek_upc_put_fenced(struct ek_upc_array *array, int64_t i, const void *from, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	int result = ek_upc_fence(array->world);
	if (result == EK_OK)
		result = ek_upc_put_bytes(array, i, from, size);
	return result == EK_OK ? ek_upc_fence(array->world) : result;
}

/* Where a pointer points. */
static int follow(struct ek_upc_array *a, struct ek_upc_pointer p, uint64_t size, struct ek_upc_place *at)
{
	TRY(ek_upc_alive(a));
	TRY(sized(a, size));
	*at = (struct ek_upc_place){p.thread, p.address / a->layout.size};
	if (p.thread < 0 || p.thread >= a->layout.threads || p.address < 0 || p.address % a->layout.size != 0 ||
	    at->local >= ek_upc_part(a, (uint32_t)p.thread))
		return ek_upc_refuse(EK_UPC_POINTER, "{thread %lld, phase %lld, address %lld} points at none of its elements",
		                     (long long)p.thread, (long long)p.phase, (long long)p.address);
	return EK_OK;
}

EK_EXPORT int ek_upc_load_bytes(struct ek_upc_array *array, struct ek_upc_pointer p, void *into, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	struct ek_upc_place at;
	int result = follow(array, p, size, &at);
	return ek_upc_told(world_of(array), "reading", array->handle, result == EK_OK ? get_element(array, at, into) : result);
}

EK_EXPORT int ek_upc_store_bytes(struct ek_upc_array *array, struct ek_upc_pointer p, const void *from, uint64_t size)
{
	EK_UPC_MOVES(array->world);
	struct ek_upc_place at;
	int result = follow(array, p, size, &at);
	return ek_upc_told(world_of(array), "writing", array->handle, result == EK_OK ? put_element(array, at, from) : result);
}

/* ---- many elements ------------------------------------------------------------------ */

static int memget(void *into, struct ek_upc_array *a, int64_t i, int64_t n)
{
	TRY(ek_upc_has(a, i, n));
	for (int64_t done = 0, run; done < n; done += run) {
		run = ek_upc_run(&a->layout, i + done, n - done);
		TRY(ek_upc_get_run(a, place_of(a, i + done), (char *)into + done * a->layout.size, run));
	}
	return EK_OK;
}

static int memput(struct ek_upc_array *a, int64_t i, const void *from, int64_t n)
{
	TRY(ek_upc_has(a, i, n));
	for (int64_t done = 0, run; done < n; done += run) {
		run = ek_upc_run(&a->layout, i + done, n - done);
		TRY(ek_upc_put_run(a, place_of(a, i + done), (const char *)from + done * a->layout.size, run));
	}
	return EK_OK;
}

EK_EXPORT int ek_upc_memget(void *into, struct ek_upc_array *from, int64_t i, int64_t n)
{
	EK_UPC_MOVES(from->world);
	return ek_upc_told(world_of(from), "reading", from->handle, memget(into, from, i, n));
}

EK_EXPORT int ek_upc_memput(struct ek_upc_array *to, int64_t i, const void *from, int64_t n)
{
	EK_UPC_MOVES(to->world);
	return ek_upc_told(world_of(to), "writing", to->handle, memput(to, i, from, n));
}

/* At least one element, and about so many bytes. */
enum { PIECE = 1 << 16 };

static int64_t elements_of_piece(const struct ek_upc_array *a)
{
	return a->layout.size < PIECE ? PIECE / a->layout.size : 1;
}

static int memcpy_from(struct ek_upc_array *to, int64_t i, struct ek_upc_array *from, int64_t j, int64_t n)
{
	char *piece = 0;
	int result = EK_OK;
	TRY(ek_upc_has(from, j, n));
	TRY(sized(from, (uint64_t)to->layout.size));
	for (int64_t done = 0, run; result == EK_OK && done < n; done += run) {
		run = ek_upc_run(&from->layout, j + done, n - done);
		const char *memory = mapped(from, place_of(from, j + done));
		if (!memory) { /* by way of this thread */
			if (run > elements_of_piece(from))
				run = elements_of_piece(from);
			if (!piece)
				piece = malloc((size_t)(elements_of_piece(from) * from->layout.size));
			result = piece ? ek_upc_get_run(from, place_of(from, j + done), piece, run)
			               : ek_upc_refuse(EK_NO_MEMORY, "no memory for a copy");
			memory = piece;
		}
		if (result == EK_OK)
			result = memput(to, i + done, memory, run);
	}
	free(piece);
	return result;
}

EK_EXPORT int ek_upc_memcpy(struct ek_upc_array *to, int64_t i, struct ek_upc_array *from, int64_t j, int64_t n)
{
	EK_UPC_MOVES(to->world);
	int result = ek_upc_told(world_of(to), "writing", to->handle, ek_upc_has(to, i, n));
	return result != EK_OK ? result
	                       : ek_upc_told(world_of(from), "copying from", from->handle, memcpy_from(to, i, from, j, n));
}

static int memset_to(struct ek_upc_array *a, int64_t i, int byte, int64_t n)
{
	char *piece = 0;
	int result = EK_OK;
	TRY(ek_upc_has(a, i, n));
	for (int64_t done = 0, run; result == EK_OK && done < n; done += run) {
		run = ek_upc_run(&a->layout, i + done, n - done);
		char *memory = mapped(a, place_of(a, i + done));
		if (memory) {
			memset(memory, byte, (size_t)(run * a->layout.size));
			continue;
		}
		if (run > elements_of_piece(a))
			run = elements_of_piece(a);
		if (!piece && (piece = malloc((size_t)(elements_of_piece(a) * a->layout.size))))
			memset(piece, byte, (size_t)(elements_of_piece(a) * a->layout.size));
		result = piece ? ek_upc_put_run(a, place_of(a, i + done), piece, run) : ek_upc_refuse(EK_NO_MEMORY, "no memory for a copy");
	}
	free(piece);
	return result;
}

EK_EXPORT int ek_upc_memset(struct ek_upc_array *to, int64_t i, int byte, int64_t n)
{
	EK_UPC_MOVES(to->world);
	return ek_upc_told(world_of(to), "writing", to->handle, memset_to(to, i, byte, n));
}
