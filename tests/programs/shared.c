/* shared.c - shared objects from C: elements and bulk operations against plain arrays,
 * objects that come and go while others use them, locks, order, collectives, and what
 * is refused.
 *
 *	mpirun -np N shared [SEED [ROUNDS]]
 *
 * Prints "ok" on rank 0. Linked to libevenkeel.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int me, threads;
static uint64_t seed = 1;
static int rounds = 300;
static struct ek_upc *world;

#define CHECK(condition)                                                                                      \
	do {                                                                                                  \
		if (!(condition)) {                                                                           \
			fprintf(stderr, "shared.c:%d: thread %d, seed %llu: %s\n%s\n", __LINE__, me,           \
			        (unsigned long long)seed, #condition, ek_upc_error());                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                         \
		}                                                                                             \
	} while (0)
#define DONE(call) CHECK((call) == EK_OK)

/* Refused with this result, and a text that names the thread and has these words. */
static void refused(int line, int result, int wanted, const char *words)
{
	char thread[32];
	snprintf(thread, sizeof thread, "thread %d: ", me);
	if (result == wanted && strstr(ek_upc_error(), words) && strstr(ek_upc_error(), thread) == ek_upc_error())
		return;
	fprintf(stderr, "shared.c:%d: thread %d: %d (%s) instead of %d (%s), said as \"%s\" without \"%s\"\n", line, me, result,
	        ek_strerror(result), wanted, ek_strerror(wanted), ek_upc_error(), words);
	MPI_Abort(MPI_COMM_WORLD, 1);
}
#define REFUSED(call, wanted, words) refused(__LINE__, call, wanted, words)

/* Words in which the names of everyone's objects stand for %s. */
static const char *with(const char *words, uint64_t first, uint64_t second)
{
	static char text[512];
	char names[2][64];
	const uint64_t handles[2] = {first, second};
	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof names[i], "everyone's object %u.%u", (unsigned)(handles[i] >> 16) & 0xffffff, (unsigned)(handles[i] & 0xffff));
	snprintf(text, sizeof text, words, names[0], names[1]);
	return text;
}

/* Each thread has numbers of its own, or all have the same. */
static uint64_t own, common;

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static int64_t below(uint64_t *state, int64_t n)
{
	return (int64_t)(random_number(state) >> 1) % n;
}

static void barrier(void)
{
	DONE(ek_upc_barrier(world, 0));
}

/* ---- elements ---------------------------------------------------------------- */

struct odd {
	uint16_t a, b, c;
};

#define ELEMENTS(type, name, value)                                                             \
	static void elements_##name(int64_t block)                                              \
	{                                                                                       \
		enum { COUNT = 57 };                                                            \
		struct ek_upc_array a;                                                          \
		type v, w;                                                                      \
		DONE(ek_upc_all_alloc(world, block, COUNT, sizeof v, &a));                      \
		for (int64_t i = me; i < COUNT; i += threads) { /* each what another one has */ \
			memset(&v, 0, sizeof v);                                                \
			v = value;                                                              \
			if (i % 2)                                                              \
				DONE(ek_upc_put(&a, i, &v));                                    \
			else                                                                    \
				DONE(ek_upc_store(&a, ek_upc_pointer_at(&a, i), &v));           \
		}                                                                               \
		barrier();                                                                      \
		for (int64_t i = 0; i < COUNT; i++) {                                           \
			v = value;                                                              \
			DONE(ek_upc_get(&a, i, &w));                                            \
			CHECK(memcmp(&v, &w, sizeof v) == 0);                                   \
			DONE(ek_upc_load(&a, ek_upc_pointer_at(&a, i), &w));                    \
			CHECK(memcmp(&v, &w, sizeof v) == 0);                                   \
			if (ek_upc_threadof_element(&a, i) == me)                               \
				CHECK(memcmp(&v, &((type *)a.local)[ek_upc_locate(&a.layout, i).local], sizeof v) == 0); \
		}                                                                               \
		DONE(ek_upc_all_free(&a));                                                      \
	}
ELEMENTS(int64_t, int64, i * 1000003)
ELEMENTS(float, float, (float)i / 7)
ELEMENTS(uint8_t, byte, (uint8_t)(i * 3))
ELEMENTS(struct odd, odd, ((struct odd){(uint16_t)i, 2, (uint16_t)(3 * i)}))

static void elements(void)
{
	static const int64_t blocks[] = {EK_UPC_INDEFINITE, 1, 3, 10, 100};
	for (int i = 0; i < 5; i++) {
		elements_int64(blocks[i]);
		elements_float(blocks[i]);
		elements_byte(blocks[i]);
		elements_odd(blocks[i]);
	}
}

/* Random operations by one thread after the other, against plain arrays. */
static void bulk(void)
{
	enum { COUNT = 200 };
	for (int round = 0; round < rounds / 10; round++) {
		struct ek_upc_array a, b;
		int32_t plain[COUNT] = {0}, other[COUNT] = {0}, some[COUNT];
		DONE(ek_upc_all_alloc(world, below(&common, 9), COUNT, 4, &a));
		DONE(ek_upc_all_alloc(world, below(&common, 9), COUNT, 4, &b));
		if (me == 0) {
			DONE(ek_upc_memset(&a, 0, 0, COUNT));
			DONE(ek_upc_memset(&b, 0, 0, COUNT));
		}
		barrier();
		for (int step = 0; step < 20; step++) {
			int64_t i = below(&common, COUNT), j = below(&common, COUNT), n = below(&common, COUNT + 1 - (i > j ? i : j));
			int32_t v = (int32_t)random_number(&common);
			int what = (int)below(&common, 4), mine = below(&common, threads) == me;
			switch (what) {
			case 0:
				if (mine)
					DONE(ek_upc_memset(&a, i, v & 0xff, n));
				memset(plain + i, v & 0xff, (size_t)n * 4);
				break;
			case 1:
				for (int64_t k = 0; k < n; k++)
					plain[i + k] = some[k] = v + (int32_t)k;
				if (mine)
					DONE(ek_upc_memput(&a, i, some, n));
				break;
			case 2:
				if (mine)
					DONE(ek_upc_memcpy(&b, i, &a, j, n));
				memcpy(other + i, plain + j, (size_t)n * 4);
				break;
			default:
				DONE(ek_upc_memget(some, &a, i, n));
				CHECK(memcmp(some, plain + i, (size_t)n * 4) == 0);
			}
			barrier();
		}
		DONE(ek_upc_memget(some, &b, 0, COUNT));
		CHECK(memcmp(some, other, sizeof other) == 0);
		DONE(ek_upc_all_free(&a));
		DONE(ek_upc_all_free(&b));
	}
}

/* More bytes than go to another node at once, by a thread that does not have them. */
static void many_bytes(void)
{
	enum { COUNT = 30000 };
	const int64_t set = 0x5a5a5a5a5a5a5a5a;
	struct ek_upc_array a, b;
	int64_t v;
	DONE(ek_upc_all_alloc(world, EK_UPC_INDEFINITE, COUNT, 8, &a));
	DONE(ek_upc_all_alloc(world, EK_UPC_INDEFINITE, COUNT, 8, &b));
	for (int64_t i = 0; me == 0 && i < COUNT; i++)
		((int64_t *)a.local)[i] = 7 * i;
	barrier();
	if (me == threads - 1) {
		DONE(ek_upc_memcpy(&b, 0, &a, 0, COUNT));
		DONE(ek_upc_memset(&a, 0, 0x5a, COUNT - 1));
		DONE(ek_upc_resize(&b, 2 * COUNT));
	}
	barrier();
	DONE(ek_upc_get(&b, COUNT, &v)); /* knows where it is now */
	for (int64_t i = 0; me == 0 && i < COUNT; i++)
		CHECK(((int64_t *)b.local)[i] == 7 * i && ((int64_t *)a.local)[i] == (i < COUNT - 1 ? set : 7 * i));
	DONE(ek_upc_all_free(&a));
	DONE(ek_upc_all_free(&b));
}

/* Each iteration is executed once, by the thread that its affinity names. */
static void forall(void)
{
	static const int64_t blocks[] = {EK_UPC_INDEFINITE, 1, 2, 7, 40, 50};
	static const int64_t bounds[][2] = {{0, 40}, {3, 31}, {5, 5}, {9, 2}, {-2, 99}, {39, 40}, {21, 22}, {40, 41}};
	for (int b = 0; b < 6; b++) {
		struct ek_upc_array a, mine;
		DONE(ek_upc_all_alloc(world, blocks[b], 40, 8, &a));
		DONE(ek_upc_alloc(world, 40, 8, &mine));
		for (int k = 0; k < 8; k++) {
			int64_t begin = bounds[k][0] < 0 ? 0 : bounds[k][0], end = bounds[k][1] < 40 ? bounds[k][1] : 40;
			int64_t next = begin, last = -1, all = 0;
			ek_upc_forall (i, bounds[k][0], bounds[k][1], &a) {
				for (; next < i; next++)
					CHECK(ek_upc_threadof_element(&a, next) != me);
				CHECK(i < end && ek_upc_threadof_element(&a, i) == me);
				next = i + 1;
			}
			for (; next < end; next++)
				CHECK(ek_upc_threadof_element(&a, next) != me);
			ek_upc_forall (i, bounds[k][0], bounds[k][1], &mine) {
				if (i == begin)
					continue;
				all++;
				last = i;
				if (i == 30)
					break;
			}
			CHECK(last == -1 || last == (end < 31 ? end - 1 : begin > 29 ? end - 1 : 30));
			CHECK(all == (last < 0 ? 0 : last - begin));
		}
		DONE(ek_upc_free(&mine));
		DONE(ek_upc_all_free(&a));
	}
	for (int64_t begin = -5; begin < 6; begin++) {
		int64_t next = begin;
		ek_upc_forall_number (i, begin, 20, world) {
			for (; next < i; next++)
				CHECK(((next % threads) + threads) % threads != me);
			CHECK(((i % threads) + threads) % threads == me);
			next = i + 1;
		}
		CHECK(next > 20 - threads || next == begin);
	}
}

/* ---- objects that come and go ------------------------------------------------- */

/* What one thread allocates reaches the others by its handle; any thread may free it. */
static void handles(void)
{
	const int next = (me + 1) % threads;
	struct ek_upc_array names, mine, spread, theirs, copy;
	uint64_t handle[2], v;
	DONE(ek_upc_all_alloc(world, 2, 2 * threads, 8, &names));
	for (int round = 0; round < 20; round++) {
		DONE(ek_upc_alloc(world, 10 + me, 8, &mine));
		CHECK(mine.local_elements == 10 + me && ek_upc_threadof_element(&mine, 9) == me);
		DONE(ek_upc_global_alloc(world, 2, 5 * threads, 8, &spread));
		v = (uint64_t)(100 * me + round);
		DONE(ek_upc_put(&mine, 3, &v));
		for (int64_t i = 0; i < 5 * threads; i++)
			DONE(ek_upc_put(&spread, i, &v));
		DONE(ek_upc_put(&names, 2 * me, &mine.handle));
		DONE(ek_upc_put(&names, 2 * me + 1, &spread.handle));
		barrier();
		DONE(ek_upc_memget(handle, &names, 2 * next, 2));
		DONE(ek_upc_open(world, handle[0], 8, &theirs));
		DONE(ek_upc_get(&theirs, 3, &v));
		CHECK(v == (uint64_t)(100 * next + round) && theirs.layout.elements == 10 + next);
		barrier();
		copy = theirs;
		DONE(ek_upc_free(&theirs));
		REFUSED(ek_upc_get(&copy, 3, &v), EK_UPC_FREED, "freed before");
		DONE(ek_upc_open(world, handle[1], 0, &theirs));
		for (int64_t i = 0; i < 5 * threads; i++) {
			DONE(ek_upc_get(&theirs, i, &v));
			CHECK(v == (uint64_t)(100 * next + round));
		}
		DONE(ek_upc_close(&theirs));
		REFUSED(ek_upc_get(&theirs, 0, &v), EK_UPC_FREED, "freed before, or closed");
		REFUSED(ek_upc_close(&theirs), EK_UPC_FREED, "freed before, or closed");
		barrier();
		/* What another one has freed is gone for the one that allocated it. */
		REFUSED(ek_upc_free(&mine), EK_UPC_FREED, "freed before");
		REFUSED(ek_upc_put(&mine, 0, &v), EK_UPC_FREED, "freed before");
		REFUSED(ek_upc_open(world, handle[0], 8, &theirs), EK_UPC_FREED, "opening thread");
		DONE(ek_upc_free(&spread));
		REFUSED(ek_upc_free(&spread), EK_UPC_FREED, "freeing everyone's object");
		barrier();
		REFUSED(ek_upc_open(world, handle[1], 8, &theirs), EK_UPC_FREED, "opening everyone's object");
	}
	DONE(ek_upc_all_free(&names));
}

/* Checks that the first n elements are those of so many objects before, and fills so many anew. */
static void check_elements(struct ek_upc_array *a, int64_t object, int64_t n)
{
	int64_t v;
	for (int64_t i = me % 2; i < n; i += 2) {
		DONE(ek_upc_get(a, i, &v));
		CHECK(v == (object << 32 | i));
	}
}

static void fill_elements(struct ek_upc_array *a, int64_t object, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t v = object << 32 | i;
		DONE(ek_upc_put(a, i, &v));
	}
}

/* Arrays of all threads, of all but allocated by one, and of one, while each has another one's open. */
static void resizing(void)
{
	static const int64_t sizes[] = {10, 40, 300, 20, 25, 0, 700};
	const int next = (me + 1) % threads;
	struct ek_upc_array names, all, mine, theirs, copy;
	int64_t v = 0;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &names));
	for (int round = 0; round < (rounds < 50 ? 2 : 8); round++) {
		uint64_t handle;
		DONE(ek_upc_all_alloc(world, 3, 10, 8, &all));
		if (round % 2)
			DONE(ek_upc_global_alloc(world, round % 4 ? 2 : EK_UPC_INDEFINITE, 10, 8, &mine));
		else
			DONE(ek_upc_alloc(world, 10, 8, &mine));
		DONE(ek_upc_put(&names, me, &mine.handle));
		barrier();
		DONE(ek_upc_get(&names, next, &handle));
		DONE(ek_upc_open(world, handle, 8, &theirs));
		for (int s = 0, filled = 0; s < 7; filled = (int)sizes[s++]) {
			const int64_t n = sizes[s], kept = filled < n ? filled : n, more = filled + 30;
			copy = all;
			if (me == threads - 1) { /* others may be in the next call by now, where each copies its part */
				DONE(ek_upc_resize(&all, more));
				fill_elements(&all, 1, more);
			}
			DONE(ek_upc_all_resize(&all, n));
			DONE(s % 2 ? ek_upc_resize(&mine, n) : ek_upc_resize(&theirs, n));
			barrier();
			REFUSED(ek_upc_put(&all, n, &v), EK_UPC_RANGE, "is not in it: ");
			REFUSED(ek_upc_put(&theirs, n, &v), EK_UPC_RANGE, "is not in it: ");
			REFUSED(ek_upc_memset(&mine, 1, 0, n + 1), EK_UPC_RANGE, n ? "are not in it: stay within 0 to" : "element 1 is not in it: it has none");
			CHECK(all.layout.elements == n && mine.layout.elements == n && theirs.layout.elements == n);
			CHECK(all.local_elements == ek_upc_local_elements(&all.layout, me));
			check_elements(&all, 1, more < n ? more : n);
			check_elements(&copy, 1, more < n ? more : n);
			check_elements(&mine, 2 + me, kept);
			check_elements(&theirs, 2 + next, kept);
			barrier();
			if (me == 0)
				fill_elements(&all, 1, n);
			fill_elements(&theirs, 2 + next, n);
			for (int64_t i = 0; me == 0 && i < all.local_elements; i++)
				CHECK(((int64_t *)all.local)[i] == ((int64_t)1 << 32 | ek_upc_element(&all.layout, (struct ek_upc_place){0, i})));
			barrier();
		}
		REFUSED(ek_upc_all_resize(&all, -1), EK_UPC_LAYOUT, "of -1 elements");
		REFUSED(ek_upc_resize(&mine, INT64_MAX), EK_UPC_LAYOUT, "beyond what memory has");
		REFUSED(ek_upc_resize(&mine, 1 << 30), EK_UPC_NO_MEMORY, "resizing");
		REFUSED(ek_upc_all_resize(&all, (int64_t)threads << 30), EK_UPC_NO_MEMORY, me ? "thread 0 failed in it" : "no room in the common");
		if (threads > 1)
			REFUSED(ek_upc_all_resize(&all, 10 + me), EK_UPC_UNEQUAL, ": the number of elements must be the same on all threads");
		barrier(); /* all as before */
		check_elements(&all, 1, 700);
		check_elements(&theirs, 2 + next, 700);
		barrier();
		DONE(ek_upc_free(&theirs));
		barrier();
		REFUSED(ek_upc_resize(&mine, 10), EK_UPC_FREED, "freed before");
		copy = all;
		DONE(ek_upc_all_free(&all));
		REFUSED(ek_upc_all_resize(&copy, 10), EK_UPC_FREED, "resizing everyone's object");
	}
	DONE(ek_upc_all_free(&names));
}

/* What an array leaves when it moves belongs to it while others have it open; then it is memory again. */
static void left_for_users(void)
{
	enum { WORDS = 1000, MANY = 20 };
	struct ek_upc_array name, a, others[MANY];
	uint64_t place = 0, handle;
	const int64_t before = 1, after = 2;
	int64_t v;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &name));
	if (me == 0) {
		DONE(ek_upc_alloc(world, WORDS, 8, &a));
		DONE(ek_upc_put(&a, 0, &before));
		DONE(ek_upc_put(&name, 0, &a.handle));
		place = a.place;
	}
	barrier();
	if (me == threads - 1 && me != 0) {
		DONE(ek_upc_get(&name, 0, &handle));
		DONE(ek_upc_open(world, handle, 8, &a));
		DONE(ek_upc_get(&a, 0, &v)); /* knows where it is */
	}
	barrier();
	if (me == 0) {
		DONE(ek_upc_resize(&a, 2 * WORDS));
		CHECK(a.place != place);
		for (int i = 0; i < MANY; i++) {
			DONE(ek_upc_alloc(world, WORDS, 8, &others[i]));
			CHECK((others[i].place == place) == (threads == 1 && i == 0));
		}
		DONE(ek_upc_put(&a, 0, &after));
	}
	barrier();
	if (me == threads - 1) {
		DONE(ek_upc_get(&a, 0, &v));
		CHECK(v == after && a.layout.elements == 2 * WORDS);
		if (me != 0)
			DONE(ek_upc_close(&a));
	}
	barrier();
	if (me == 0 && threads > 1) { /* is the only user again */
		DONE(ek_upc_resize(&a, 3 * WORDS));
		struct ek_upc_array one;
		DONE(ek_upc_alloc(world, WORDS, 8, &one));
		CHECK(one.place == place);
		DONE(ek_upc_free(&one));
	}
	if (me == 0) {
		DONE(ek_upc_free(&a));
		for (int i = 0; i < MANY; i++)
			DONE(ek_upc_free(&others[i]));
	}
	for (int i = 0; i < 12; i++) { /* what it has when it is freed, again and again as much as half of the heap */
		DONE(ek_upc_all_alloc(world, 1, threads, 8, &a));
		if (me == 0) {
			DONE(ek_upc_resize(&a, (int64_t)threads * (32 << 10)));
			DONE(ek_upc_resize(&a, (int64_t)threads * (64 << 10)));
			DONE(ek_upc_free(&a));
		}
		barrier();
	}
	DONE(ek_upc_all_free(&name));
}

/* Pointers in shared memory lead to an element wherever it has moved, until it is freed. */
static void pointers(void)
{
	const int next = (me + 1) % threads;
	struct ek_upc_array all, mine, theirs, data, names;
	struct ek_upc_target t;
	uint64_t handle;
	int64_t v = me;
	DONE(ek_upc_all_pointer_alloc(world, 1, threads, &all));
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &names));
	DONE(ek_upc_pointer_alloc(world, 2, &mine));
	DONE(ek_upc_global_alloc(world, 2, 8 * threads, 8, &data));
	DONE(ek_upc_put(&names, me, &mine.handle));
	DONE(ek_upc_put(&data, 3, &v));
	t = ek_upc_target_at(&data, 3);
	DONE(ek_upc_put(&all, me, &t));
	memset(&t, 0, sizeof t);
	DONE(ek_upc_put(&mine, 0, &t));
	barrier();
	DONE(ek_upc_get(&names, next, &handle));
	DONE(ek_upc_pointer_open(world, handle, &theirs));
	DONE(ek_upc_get(&theirs, 0, &t));
	REFUSED(ek_upc_open(world, t.handle, 8, &data), EK_UPC_NO_OBJECT, "handle 0 is none");
	REFUSED(ek_upc_open(world, theirs.handle, 0, &data), EK_UPC_TYPE, "it is no array");
	REFUSED(ek_upc_pointer_open(world, names.handle, &data), EK_UPC_TYPE, "it is no pointer");
	DONE(ek_upc_get(&all, next, &t));
	DONE(ek_upc_put(&theirs, 1, &t)); /* to what the next thread has allocated */
	DONE(ek_upc_open(world, t.handle, 8, &data));
	DONE(ek_upc_resize(&data, 1000 * threads));
	barrier();
	DONE(ek_upc_get(&mine, 1, &t));
	DONE(ek_upc_open(world, t.handle, 8, &data));
	DONE(ek_upc_load(&data, t.pointer, &v));
	CHECK(v == me && t.pointer.thread == (threads == 1 ? 0 : 1));
	barrier();
	DONE(ek_upc_free(&data));
	barrier();
	DONE(ek_upc_get(&theirs, 1, &t));
	REFUSED(ek_upc_open(world, t.handle, 8, &data), EK_UPC_FREED, "freed before");
	DONE(ek_upc_close(&theirs));
	barrier();
	DONE(ek_upc_free(&mine));
	if (threads > 1)
		REFUSED(me ? ek_upc_all_alloc(world, 1, 1, sizeof t, &data) : ek_upc_all_pointer_alloc(world, 1, 1, &data), EK_UPC_UNEQUAL,
		        "the kind must be the same");
	DONE(ek_upc_all_free(&names));
	DONE(ek_upc_all_free(&all));
}

/* Of a change those hear that have the object open, and no others: by one word each. */
static void who_is_told(void)
{
	const int some[] = {0, threads > 1, threads - 1};
	struct ek_upc_array name, a, twice;
	uint64_t handle, before, v, stale[2] = {0, 0};
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &name));
	for (int round = 0; round < 6; round++) {
		const int users = some[round / 2], home = round % threads, place = (me - home + threads) % threads;
		const int uses = place > 0 && place <= users;
		if (me == home) {
			DONE(round % 2 ? ek_upc_alloc(world, 10, 8, &a) : ek_upc_global_alloc(world, 1, 10, 8, &a));
			DONE(ek_upc_put(&name, 0, &a.handle));
		}
		barrier();
		DONE(ek_upc_get(&name, 0, &handle));
		if (me != home)
			DONE(ek_upc_open(world, handle, 8, &a));
		if (place % 2 == 1) { /* open twice: still so when it is closed once */
			DONE(ek_upc_open(world, handle, 8, &twice));
			DONE(ek_upc_close(&twice));
		}
		if (me != home && !uses)
			DONE(ek_upc_close(&a));
		if (stale[round % 2]) /* an entry that this object may have now */
			REFUSED(ek_upc_open(world, stale[round % 2], 8, &twice), EK_UPC_FREED, "freed before");
		stale[round % 2] = handle;
		for (int change = 0; change < 2; change++) {
			before = *world->news;
			MPI_Barrier(MPI_COMM_WORLD);
			if (me == home)
				DONE(change ? ek_upc_free(&a) : ek_upc_resize(&a, 1000));
			DONE(ek_upc_fence(world));
			MPI_Barrier(MPI_COMM_WORLD);
			CHECK(*world->news - before == (uint64_t)(uses || me == home));
			if (uses && change)
				REFUSED(ek_upc_get(&a, 0, &v), EK_UPC_FREED, "freed before");
			else if (uses)
				DONE(ek_upc_get(&a, 999, &v));
			MPI_Barrier(MPI_COMM_WORLD);
		}
	}
	DONE(ek_upc_all_free(&name));
}

/* Of all threads that free an array at once, one does. */
static void freed_once(void)
{
	for (int round = 0; round < rounds; round++) {
		struct ek_upc_array a, mine;
		int did, all;
		DONE(ek_upc_all_alloc(world, 1, 10, 8, &a));
		DONE(ek_upc_open(world, a.handle, 8, &mine));
		barrier();
		did = ek_upc_free(&mine) == EK_OK;
		MPI_Allreduce(&did, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		CHECK(all == 1);
	}
}

/* An index goes through all its generations and is not used again then, so no handle comes twice. */
static void generations(void)
{
	struct ek_upc_array a;
	uint64_t first = 0, index = 0;
	for (int i = 0; threads == 1 && i < 1 << 16; i++) {
		DONE(ek_upc_alloc(world, 1, 8, &a));
		CHECK(a.handle != first && a.handle & 0xffff);
		if (i == 0) {
			first = a.handle;
			index = first >> 16;
		}
		CHECK(i == 0 || (a.handle >> 16 == index) == ((first & 0xffff) + (uint64_t)i <= 0xffff));
		DONE(ek_upc_free(&a));
	}
	if (threads == 1)
		REFUSED(ek_upc_open(world, first, 8, &a), EK_UPC_FREED, "freed before");
}

/* While a thread has an array open that another one has freed, nothing else lies there. */
static void kept_for_users(void)
{
	enum { WORDS = 1000, MANY = 50 };
	struct ek_upc_array name, a, others[MANY];
	uint64_t place = 0, v = 1;
	if (threads < 2)
		return;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &name));
	if (me == 0) {
		DONE(ek_upc_alloc(world, WORDS, 8, &a));
		DONE(ek_upc_put(&name, 0, &a.handle));
	}
	barrier();
	if (me == 1) {
		uint64_t handle;
		DONE(ek_upc_get(&name, 0, &handle));
		DONE(ek_upc_open(world, handle, 8, &a));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 0) {
		place = a.place;
		DONE(ek_upc_free(&a));
		for (int i = 0; i < MANY; i++) {
			DONE(ek_upc_alloc(world, WORDS, 8, &others[i]));
			CHECK(others[i].place >= place + WORDS * 8 || others[i].place + WORDS * 8 <= place);
			DONE(ek_upc_free(&others[i]));
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 1)
		REFUSED(ek_upc_get(&a, 0, &v), EK_UPC_FREED, "freed before");
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 0) { /* the last user has let go */
		DONE(ek_upc_alloc(world, WORDS, 8, &a));
		CHECK(a.place == place);
		DONE(ek_upc_put(&name, 0, &a.handle));
	}
	barrier();
	if (me == 1) {
		uint64_t handle;
		DONE(ek_upc_get(&name, 0, &handle));
		DONE(ek_upc_open(world, handle, 8, &a));
	}
	barrier();
	if (me == 0)
		DONE(ek_upc_free(&a));
	barrier(); /* is where thread 1 lets go by itself */
	barrier();
	if (me == 0) {
		DONE(ek_upc_alloc(world, WORDS, 8, &a));
		CHECK(a.place == place);
		DONE(ek_upc_free(&a));
	}
	DONE(ek_upc_all_free(&name));
}

/* What a thread finds out about an array that another one resizes again and again fits together:
 * of more elements it never looks where there were fewer. Over the network the array is resized
 * between any two of its looks; on a node they are two loads, so that takes many turns. */
static void resized_while_read(void)
{
	enum { STEP = 8, SIZES = 60 };
	const int64_t wrong = 0x5eed0bad, last = (2 * SIZES + 1) * STEP;
	const int reads = me == threads - 1 && me != 0;
	int64_t behind[4 * STEP], v;
	struct ek_upc_array name, a, next[SIZES];
	uint64_t handle;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &name));
	for (int i = 0; i < 4 * STEP; i++)
		behind[i] = wrong;
	for (int turn = 0; turn <= (threads == 2 ? rounds / 4 : rounds < 50 ? 2 : 0); turn++) {
		if (me == 0) { /* there is nothing wrong in memory but what comes */
			DONE(ek_upc_alloc(world, 128 << 10, 8, &a));
			DONE(ek_upc_memset(&a, 0, 0, 128 << 10));
			DONE(ek_upc_free(&a));
			DONE(ek_upc_alloc(world, STEP, 8, &a));
			DONE(ek_upc_put(&name, 0, &a.handle));
		}
		barrier();
		if (reads) {
			DONE(ek_upc_get(&name, 0, &handle));
			DONE(ek_upc_open(world, handle, 8, &a));
		}
		barrier();
		for (int i = 0; me == 0 && i < SIZES; i++) {
			DONE(ek_upc_alloc(world, 4 * STEP, 8, &next[i]));
			DONE(ek_upc_memput(&next[i], 0, behind, 4 * STEP));
			DONE(ek_upc_resize(&a, (2 * i + 3) * STEP));
		}
		while (reads && a.layout.elements < last) {
			for (volatile int64_t pause = below(&own, 2000); pause > 0; pause--)
				;
			/* Of the last size but one or more from now on: not there yet, or as it was in memory. Of the
			 * place before that it would be behind the header of what follows. */
			const int64_t sizes = 1 + below(&own, 2) * below(&own, 6);
			int result = ek_upc_get(&a, a.layout.elements + 2 * (sizes + 1) * STEP - 1, &v);
			CHECK(result == EK_UPC_RANGE || (result == EK_OK && v != wrong));
		}
		if (reads)
			DONE(ek_upc_close(&a));
		barrier();
		for (int i = 0; me == 0 && i < SIZES; i++)
			DONE(ek_upc_free(&next[i]));
		if (me == 0)
			DONE(ek_upc_free(&a));
	}
	DONE(ek_upc_all_free(&name));
}

/* All threads allocate, publish, open, read, resize, close and free as they like. The words of an
 * object are its handle, so whoever reads another word was at the wrong memory. */
static void histories(void)
{
	enum { SLOTS = 16, OPEN = 6, MOST_WORDS = 100, MORE = 128 }; /* MORE: are there after resizing, with anything in them */
	struct ek_upc_array slots, open[OPEN] = {{0}};
	uint64_t words[MOST_WORDS], handle, seen = 0, gone = 0, all[2];
	DONE(ek_upc_all_alloc(world, 1, SLOTS, 8, &slots));
	if (me == 0)
		DONE(ek_upc_memset(&slots, 0, 0, SLOTS));
	barrier();
	for (int step = 0; step < 300 + 20 * rounds; step++) {
		struct ek_upc_array *a = &open[below(&own, OPEN)];
		int64_t slot = below(&own, SLOTS), n = 1 + below(&own, MOST_WORDS);
		int result;
		if (a->handle && below(&own, 4) == 0) {
			result = below(&own, 2) ? ek_upc_free(a) : ek_upc_close(a);
			CHECK(result == EK_OK || result == EK_UPC_FREED);
			memset(a, 0, sizeof *a);
		} else if (a->handle && below(&own, 4) == 0) {
			result = ek_upc_resize(a, a->layout.elements % MORE + MORE * below(&own, 4));
			CHECK(result == EK_OK || result == EK_UPC_FREED);
		} else if (a->handle) {
			const int64_t first = a->layout.elements % MORE;
			n = n < first ? n : first;
			result = ek_upc_memget(words, a, first - n, n);
			CHECK(result == EK_OK || result == EK_UPC_FREED);
			for (int64_t i = 0; result == EK_OK && i < n; i++)
				CHECK(words[i] == a->handle);
			seen += result == EK_OK;
			gone += result == EK_UPC_FREED;
			if (result != EK_OK)
				memset(a, 0, sizeof *a);
		} else if (below(&own, 3) == 0) {
			if (below(&own, 2))
				DONE(ek_upc_alloc(world, n, 8, a));
			else
				DONE(ek_upc_global_alloc(world, below(&own, 40), n, 8, a));
			for (int64_t i = 0; i < n; i++)
				words[i] = a->handle;
			DONE(ek_upc_memput(a, 0, words, n));
			DONE(ek_upc_put_strict(&slots, slot, &a->handle));
		} else {
			DONE(ek_upc_get_strict(&slots, slot, &handle));
			if (handle) {
				result = ek_upc_open(world, handle, 8, a);
				CHECK(result == EK_OK || result == EK_UPC_FREED);
				if (result != EK_OK)
					memset(a, 0, sizeof *a);
			}
		}
		if (step % 64 == 0)
			sched_yield();
	}
	for (int i = 0; i < OPEN; i++)
		if (open[i].handle) {
			int result = ek_upc_free(&open[i]);
			CHECK(result == EK_OK || result == EK_UPC_FREED);
		}
	/* Those that nobody has open any more are freed by their handles; then all is free. */
	barrier();
	for (int64_t slot = 0; me == 0 && slot < SLOTS; slot++) {
		struct ek_upc_array a;
		DONE(ek_upc_get(&slots, slot, &handle));
		if (handle && ek_upc_open(world, handle, 8, &a) == EK_OK)
			DONE(ek_upc_free(&a));
	}
	uint64_t mine[2] = {seen, gone};
	MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	CHECK(all[0] > 0 && (threads == 1 || all[1] > 0));
	DONE(ek_upc_all_free(&slots));
}

/* ---- locks ----------------------------------------------------------------------- */

static void exclusion(void)
{
	struct ek_upc_lock lock;
	struct ek_upc_array counter;
	const int64_t last = threads - 1;
	int64_t v = 0;
	DONE(ek_upc_all_lock_alloc(world, &lock));
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &counter));
	DONE(ek_upc_put(&counter, me, &v));
	barrier();
	for (int i = 0; i < rounds; i++) {
		int taken = 0;
		if (i % 3 == 0)
			DONE(ek_upc_lock_attempt(&lock, &taken));
		if (!taken)
			DONE(ek_upc_lock(&lock));
		DONE(ek_upc_get(&counter, last, &v));
		v++;
		if (i % 16 == 0)
			sched_yield();
		DONE(ek_upc_put(&counter, last, &v));
		DONE(ek_upc_unlock(&lock));
	}
	barrier();
	DONE(ek_upc_get(&counter, last, &v));
	CHECK(v == (int64_t)rounds * threads);
	DONE(ek_upc_all_free(&counter));
	DONE(ek_upc_all_lock_free(&lock));
	REFUSED(ek_upc_lock(&lock), EK_UPC_FREED, "locking everyone's object");
}

static void await_last(struct ek_upc_lock *lock, int64_t thread)
{
	for (int64_t last = -2; last != thread; sched_yield())
		DONE(ek_upc_lock_last(lock, &last));
}

/* Thread t queues up when t - 1 has, and gets the lock after it. */
static void fairness(void)
{
	struct ek_upc_lock lock;
	struct ek_upc_array order;
	int64_t n;
	DONE(ek_upc_all_lock_alloc(world, &lock));
	DONE(ek_upc_all_alloc(world, EK_UPC_INDEFINITE, 1, 8, &order));
	for (int round = 0; round < 10; round++) {
		if (me == 0) {
			n = 0;
			DONE(ek_upc_put(&order, 0, &n));
			DONE(ek_upc_lock(&lock));
		}
		barrier();
		await_last(&lock, me ? me - 1 : threads - 1);
		if (me > 0) {
			DONE(ek_upc_lock(&lock));
			DONE(ek_upc_get(&order, 0, &n));
			CHECK(n == me - 1);
			n++;
			DONE(ek_upc_put(&order, 0, &n));
		}
		DONE(ek_upc_unlock(&lock));
		barrier();
	}
	DONE(ek_upc_all_free(&order));
	DONE(ek_upc_all_lock_free(&lock));
}

static void wrong_use_of_locks(void)
{
	const int next = (me + 1) % threads;
	struct ek_upc_array names;
	struct ek_upc_lock lock, theirs;
	uint64_t handle;
	int taken;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &names));
	DONE(ek_upc_global_lock_alloc(world, &lock));
	DONE(ek_upc_put(&names, me, &lock.handle));
	REFUSED(ek_upc_unlock(&lock), EK_UPC_NOT_HELD, "unlocking everyone's object");
	DONE(ek_upc_lock(&lock));
	REFUSED(ek_upc_lock(&lock), EK_UPC_HELD, "holds it already");
	REFUSED(ek_upc_lock_attempt(&lock, &taken), EK_UPC_HELD, "holds it already");
	REFUSED(ek_upc_lock_free(&lock), EK_UPC_HELD, "the thread holds it");
	REFUSED(ek_upc_lock_close(&lock), EK_UPC_HELD, "the thread holds it");
	barrier();
	DONE(ek_upc_get(&names, next, &handle));
	DONE(ek_upc_lock_open(world, handle, &theirs));
	if (next != me) {
		DONE(ek_upc_lock_attempt(&theirs, &taken));
		CHECK(!taken);
		REFUSED(ek_upc_unlock(&theirs), EK_UPC_NOT_HELD, "does not hold it");
		char words[32];
		snprintf(words, sizeof words, "thread %d holds it", next);
		REFUSED(ek_upc_lock_free(&theirs), EK_UPC_HELD, words);
	}
	barrier();
	DONE(ek_upc_unlock(&lock));
	barrier();
	DONE(ek_upc_lock(&theirs));
	DONE(ek_upc_unlock(&theirs));
	barrier();
	DONE(ek_upc_lock_free(&theirs));
	REFUSED(ek_upc_lock_free(&theirs), EK_UPC_FREED, "freed before");
	barrier();
	REFUSED(ek_upc_lock(&lock), EK_UPC_FREED, "freed before");
	REFUSED(ek_upc_lock_open(world, handle, &theirs), EK_UPC_FREED, "freed before");
	REFUSED(ek_upc_lock_open(world, names.handle, &theirs), EK_UPC_TYPE, "it is no lock");
	DONE(ek_upc_all_free(&names));
}

/* All that have a lock open come to it after it was freed, as if the news of that came just behind. */
static void come_too_late(struct ek_upc_lock *lock, int open)
{
	int taken;
	MPI_Barrier(MPI_COMM_WORLD);
	lock->news = open ? *world->news : lock->news;
	for (int i = 0; open && i < 10; i++)
		REFUSED(ek_upc_lock(lock), EK_UPC_FREED, "freed before");
	MPI_Barrier(MPI_COMM_WORLD);
	if (open)
		REFUSED(ek_upc_lock_attempt(lock, &taken), EK_UPC_FREED, "freed before");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Whoever comes to a lock while it is freed has it before, or is told that it was freed, and waits for
 * nobody. */
static void freed_while_wanted(void)
{
	struct ek_upc_array name;
	struct ek_upc_lock lock;
	uint64_t handle;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &name));
	for (int round = 0; round < (rounds < 50 ? 3 * rounds : 2 * rounds); round++) {
		const int home = round % threads;
		int result = EK_OK;
		if (me == home) {
			DONE(ek_upc_global_lock_alloc(world, &lock));
			DONE(ek_upc_put(&name, 0, &lock.handle));
		}
		barrier();
		DONE(ek_upc_get(&name, 0, &handle));
		if (me != home)
			DONE(ek_upc_lock_open(world, handle, &lock));
		barrier();
		if (round % 2) /* nobody is still in a barrier, where it would let go */
			MPI_Barrier(MPI_COMM_WORLD);
		while (me == home && (result = ek_upc_lock_free(&lock)) != EK_OK)
			CHECK(result == EK_UPC_HELD);
		if (round % 2)
			come_too_late(&lock, me != home);
		for (int i = 0; me != home && i < 3 && (result = ek_upc_lock(&lock)) == EK_OK; i++)
			DONE(ek_upc_unlock(&lock));
		CHECK(result == EK_OK || result == EK_UPC_FREED);
		barrier();
		REFUSED(ek_upc_lock(&lock), EK_UPC_FREED, "freed before");
	}
	DONE(ek_upc_all_free(&name));
}

/* ---- order ---------------------------------------------------------------------------- */

static void barriers(void)
{
	const int next = (me + 1) % threads;
	struct ek_upc_array a;
	int64_t v;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &a));
	for (int64_t round = 0; round < 2 * rounds; round++) { /* more than 256: their numbers come again */
		DONE(ek_upc_put(&a, next, &round));
		DONE(ek_upc_notify(world, (int)round));
		DONE(ek_upc_wait(world));
		CHECK(*(int64_t *)a.local == round);
		barrier();
	}
	REFUSED(ek_upc_wait(world), EK_UPC_BARRIER, "wait: without a notify");
	DONE(ek_upc_notify(world, 1));
	REFUSED(ek_upc_notify(world, 1), EK_UPC_BARRIER, "between notify and wait");
	REFUSED(ek_upc_all_free(&a), EK_UPC_BARRIER, "between notify and wait");
	DONE(ek_upc_get(&a, next, &v)); /* what is not collective goes on */
	DONE(ek_upc_wait(world));
	if (threads > 1) {
		REFUSED(ek_upc_barrier(world, me), EK_UPC_BARRIER, "is at barrier");
		REFUSED(ek_upc_barrier(world, me == threads - 1 ? -1 : 5), EK_UPC_BARRIER, "is at barrier");
	}
	DONE(ek_upc_all_free(&a));
}

/* A thread sees its own relaxed writes, in their order, wherever they are. */
static void own_writes(void)
{
	struct ek_upc_array a;
	int64_t v, two[2];
	DONE(ek_upc_all_alloc(world, 2, 2 * threads, 8, &a));
	for (int64_t round = 0; round < rounds; round++) {
		const int64_t i = 2 * ((me + round) % threads);
		for (v = 2 * round; v < 2 * round + 2; v++)
			DONE(ek_upc_put(&a, i, &v));
		two[0] = -1;
		DONE(ek_upc_get(&a, i, &two[0]));
		CHECK(two[0] == 2 * round + 1);
		DONE(ek_upc_memput(&a, i, (int64_t[]){round, -round}, 2));
		DONE(ek_upc_memget(two, &a, i, 2));
		CHECK(two[0] == round && two[1] == -round);
		barrier();
	}
	DONE(ek_upc_all_free(&a));
}

/* Who sees the flag of a strict write sees the relaxed write before it. */
static void messages(void)
{
	struct ek_upc_array data, flag;
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &data));
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &flag));
	if (me == 0) {
		DONE(ek_upc_memset(&data, 0, 0, threads));
		DONE(ek_upc_memset(&flag, 0, 0, threads));
	}
	barrier();
	for (int64_t round = 1; threads > 1 && me < 2 && round <= rounds; round++) {
		int64_t v;
		if (me == 0) {
			DONE(ek_upc_put(&data, 1, &round));
			DONE(ek_upc_put_strict(&flag, 1, &round));
		}
		for (v = 0; v < round; sched_yield())
			DONE(ek_upc_get_strict(&flag, me, &v));
		DONE(ek_upc_get(&data, me, &v));
		CHECK(v == round);
		if (me == 1) {
			DONE(ek_upc_put(&data, 0, &round));
			DONE(ek_upc_put_strict(&flag, 0, &round));
		}
	}
	DONE(ek_upc_all_free(&flag));
	DONE(ek_upc_all_free(&data));
}

/* Of two threads that each write an element and then read the other's, one sees what the
 * other wrote, if write or read are strict or a fence is between them, which the processor
 * alone does not promise. Both run through many such pairs, each on lines of its own, and
 * meet before each. */
static void one_order(void)
{
	enum { PAIRS = 2000, APART = 8 };
	enum { BOTH_STRICT, STRICT_WRITE, STRICT_READ, FENCE, WAYS };
	static int64_t seen[PAIRS], others[PAIRS];
	const int64_t pairs = rounds < 50 ? 10 : PAIRS, zero = 0, one = 1;
	struct ek_upc_array x, came; /* what thread t writes begins at t * APART; it came to so many pairs */
	DONE(ek_upc_all_alloc(world, EK_UPC_INDEFINITE, 2 * PAIRS * APART, 8, &x));
	DONE(ek_upc_all_alloc(world, APART, threads * APART, 8, &came));
	for (int round = 0; threads > 1 && round < (1 + rounds / 40) * WAYS; round++) {
		const int way = round % WAYS;
		for (int64_t i = 0; me < 2 && i < pairs; i++) /* so it has what it reads in its cache, and waits for what it writes */
			DONE(ek_upc_put(&x, (2 * i + 1 - me) * APART, &zero));
		*(int64_t *)came.local = 0;
		barrier();
		for (int64_t i = 0; me < 2 && i < pairs; i++) {
			const int64_t mine = (2 * i + me) * APART, other = (2 * i + 1 - me) * APART, to = i + 1;
			DONE(ek_upc_put(&came, me * APART, &to));
			for (int64_t looks = 0, v = 0; v < to; looks++) {
				DONE(ek_upc_get(&came, (1 - me) * APART, &v));
				if (looks > 1000)
					sched_yield();
			}
			if (way == BOTH_STRICT || way == STRICT_WRITE)
				DONE(ek_upc_put_strict(&x, mine, &one));
			else
				DONE(ek_upc_put(&x, mine, &one));
			if (way == FENCE)
				DONE(ek_upc_fence(world));
			if (way == BOTH_STRICT || way == STRICT_READ)
				DONE(ek_upc_get_strict(&x, other, &seen[i]));
			else
				DONE(ek_upc_get(&x, other, &seen[i]));
		}
		barrier();
		if (me < 2)
			MPI_Sendrecv(seen, PAIRS, MPI_INT64_T, 1 - me, 0, others, PAIRS, MPI_INT64_T, 1 - me, 0, MPI_COMM_WORLD,
			             MPI_STATUS_IGNORE);
		for (int64_t i = 0; me < 2 && i < pairs; i++)
			CHECK(seen[i] || others[i]);
	}
	DONE(ek_upc_all_free(&came));
	DONE(ek_upc_all_free(&x));
}

/* Relaxed accesses of one thread to one element, of which one writes, appear to all threads in
 * the order of the program: nobody who reads with fences between sees an earlier value after a
 * later one. */
static void one_element(void)
{
	const int64_t last = 100 * (int64_t)rounds;
	for (int64_t home = 0; home < 2 && home < threads; home++) {
		struct ek_upc_array x;
		int64_t v = 0, before = 0;
		DONE(ek_upc_all_alloc(world, 1, threads, 8, &x));
		*(int64_t *)x.local = 0;
		barrier();
		for (int64_t i = 1; me == threads - 1 && i <= last; i++) {
			DONE(ek_upc_put(&x, home, &i));
			if (i % 64 == 0)
				sched_yield();
		}
		for (; v < last; before = v) { /* the writer sees the last one at once */
			DONE(ek_upc_get(&x, home, &v));
			CHECK(v >= before && (me != threads - 1 || v == last));
			DONE(ek_upc_fence(world));
			sched_yield();
		}
		barrier();
		DONE(ek_upc_all_free(&x));
	}
}

/* Independent reads of independent writes: two threads each write an element, and two others each
 * wait for one of these and then read the other one, strictly. There is one order of all strict
 * accesses, so whoever saw the later write sees both. */
static void one_order_for_all(void)
{
	enum { PAIRS = 200, APART = 8 };
	const int64_t pairs = rounds < 50 ? 10 : PAIRS, one = 1;
	const int writes = me < 2, reads = me == 2 || me == 3, side = me % 2;
	int64_t saw[PAIRS], other[PAIRS];
	struct ek_upc_array x; /* written by thread 0 in elements with affinity to it, and by thread 1 */
	if (threads < 4)
		return;
	DONE(ek_upc_all_alloc(world, PAIRS * APART, (int64_t)threads * PAIRS * APART, 8, &x));
	for (int round = 0; round <= rounds / 30; round++) {
		memset(x.local, 0, PAIRS * APART * 8);
		barrier();
		for (int64_t i = 0; i < pairs; i++) {
			const int64_t mine = (side * PAIRS + i) * APART, others = ((1 - side) * PAIRS + i) * APART;
			int64_t v = 0;
			if (writes)
				DONE(ek_upc_put_strict(&x, mine, &one));
			for (; reads && !v; sched_yield())
				DONE(ek_upc_get_strict(&x, mine, &v));
			if (reads)
				DONE(ek_upc_get_strict(&x, others, &saw[i]));
			sched_yield();
		}
		barrier();
		if (reads)
			MPI_Sendrecv(saw, PAIRS, MPI_INT64_T, 5 - me, 0, other, PAIRS, MPI_INT64_T, 5 - me, 0, MPI_COMM_WORLD,
			             MPI_STATUS_IGNORE);
		for (int64_t i = 0; reads && i < pairs; i++)
			CHECK(saw[i] || other[i]);
	}
	DONE(ek_upc_all_free(&x));
}

/* ---- collectives ------------------------------------------------------------------------ */

/* Of element k of thread t's part. */
static int64_t value(int64_t t, int64_t k)
{
	return 1000 * t + k;
}

static void parts(void)
{
	static const int flags[] = {EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC, EK_UPC_IN_MYSYNC | EK_UPC_OUT_MYSYNC,
	                            EK_UPC_IN_NOSYNC | EK_UPC_OUT_NOSYNC, EK_UPC_IN_NOSYNC | EK_UPC_OUT_ALLSYNC};
	static const int64_t sizes[] = {0, 1, 3, 100};
	const int64_t root = threads - 1;
	for (int f = 0; f < 4; f++)
		for (int s = 0; s < (rounds < 50 ? 3 : 4); s++) {
			const int64_t n = sizes[s], to = f % 2, from = f / 2, room = n * threads + 2, at_root = root * room;
			struct ek_upc_array src, dst, perm;
			DONE(ek_upc_all_alloc(world, room, room * threads, 8, &src));
			DONE(ek_upc_all_alloc(world, room, room * threads, 8, &dst));
			DONE(ek_upc_all_alloc(world, 1, threads, 4, &perm));
			int64_t *source = src.local, *target = dst.local;
			*(int32_t *)perm.local = (int32_t)((me + 1) % threads);
			for (int64_t k = 0; k < room; k++)
				source[k] = value(me, k);
#define MOVES(call, length, expected)                                          \
	do {                                                                   \
		for (int64_t k = 0; k < room; k++)                             \
			target[k] = -1;                                        \
		barrier();                                                     \
		DONE(call);                                                    \
		barrier();                                                     \
		for (int64_t k = -to; k < room - to; k++)                      \
			CHECK(target[to + k] == (k >= 0 && k < (length) ? (expected) : -1)); \
		barrier();                                                     \
	} while (0)
			MOVES(ek_upc_all_broadcast(&dst, to, &src, at_root + from, n, flags[f]), n, value(root, from + k));
			MOVES(ek_upc_all_scatter(&dst, to, &src, at_root + from, n, flags[f]), n, value(root, from + me * n + k));
			MOVES(ek_upc_all_gather(&dst, at_root + to, &src, from, n, flags[f]), me == root ? n * threads : 0, value(k / n, from + k % n));
			MOVES(ek_upc_all_gather_all(&dst, to, &src, from, n, flags[f]), n * threads, value(k / n, from + k % n));
			MOVES(ek_upc_all_exchange(&dst, to, &src, from, n, flags[f]), n * threads, value(k / n, from + me * n + k % n));
			MOVES(ek_upc_all_permute(&dst, to, &src, from, &perm, n, flags[f]), n, value((me + threads - 1) % threads, from + k));
#undef MOVES
			DONE(ek_upc_all_free(&src));
			DONE(ek_upc_all_free(&dst));
			DONE(ek_upc_all_free(&perm));
		}
}

/* What a collective waits for by itself: for others to have filled in what it reads, and for
 * what it writes to be there. One thread comes after the others. */
static void waits(void)
{
	enum { N = 3, MOST_THREADS = 64 };
	static const int flags[] = {0, EK_UPC_IN_MYSYNC | EK_UPC_OUT_MYSYNC, EK_UPC_OUT_NOSYNC, EK_UPC_IN_NOSYNC};
	const int64_t room = N * threads;
	const struct timespec moment = {0, 300000};
	struct ek_upc_array src, dst, perm;
	int64_t got[N * MOST_THREADS];
	CHECK(threads <= MOST_THREADS);
	DONE(ek_upc_all_alloc(world, room, room * threads, 8, &src));
	DONE(ek_upc_all_alloc(world, room, room * threads, 8, &dst));
	DONE(ek_upc_all_alloc(world, 1, threads, 4, &perm));
	*(int32_t *)perm.local = (int32_t)((me + 1) % threads);
	for (int step = 0; step < (rounds < 50 ? 48 : 240); step++) {
		const int call = step % 6, flag = flags[step / 6 % 4], round = step / 24, root = round % threads;
		const int late = me == round / threads % threads;
		const int64_t base = (int64_t)(step + 1) << 32;
		if (late)
			nanosleep(&moment, 0);
		for (int64_t k = 0; k < room; k++)
			((int64_t *)src.local)[k] = base + value(me, k);
		if (flag & EK_UPC_IN_NOSYNC) {
			barrier();
			if (late)
				nanosleep(&moment, 0);
		}
		switch (call) {
		case 0:
			DONE(ek_upc_all_broadcast(&dst, 0, &src, root * room, N, flag));
			break;
		case 1:
			DONE(ek_upc_all_scatter(&dst, 0, &src, root * room, N, flag));
			break;
		case 2:
			DONE(ek_upc_all_gather(&dst, root * room, &src, 0, N, flag));
			break;
		case 3:
			DONE(ek_upc_all_gather_all(&dst, 0, &src, 0, N, flag));
			break;
		case 4:
			DONE(ek_upc_all_exchange(&dst, 0, &src, 0, N, flag));
			break;
		default:
			DONE(ek_upc_all_permute(&dst, 0, &src, 0, &perm, N, flag));
		}
		if (flag & EK_UPC_OUT_NOSYNC)
			barrier();
		for (int t = me, i = 0; i < 2; i++, t = (me + 1) % threads) {
			const int64_t n = call == 0 || call == 1 || call == 5 ? N : call == 2 && t != root ? 0 : room;
			DONE(ek_upc_memget(got, &dst, t * room, n));
			for (int64_t k = 0; k < n; k++) {
				const int64_t of[] = {value(root, k), value(root, t * N + k), value(k / N, k % N), value(k / N, k % N),
				                      value(k / N, t * N + k % N), value((t + threads - 1) % threads, k)};
				CHECK(got[k] == base + of[call]);
			}
		}
		barrier();
	}
	DONE(ek_upc_all_free(&src));
	DONE(ek_upc_all_free(&dst));
	DONE(ek_upc_all_free(&perm));
}

static int64_t of_op(enum ek_upc_op op, int64_t a, int64_t b)
{
	switch (op) {
	case EK_UPC_ADD:
		return a + b;
	case EK_UPC_MULT:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case EK_UPC_AND:
		return a & b;
	case EK_UPC_OR:
		return a | b;
	case EK_UPC_XOR:
		return a ^ b;
	case EK_UPC_LOGAND:
		return a && b;
	case EK_UPC_LOGOR:
		return a || b;
	case EK_UPC_MIN:
		return a < b ? a : b;
	default:
		return a > b ? a : b;
	}
}

/* What an operation on the first n of these comes to, in numbers of a type. */
#define WANT(c)                                              \
	static int64_t want_##c(enum ek_upc_op op, int64_t n) \
	{                                                     \
		c all = (c)(7919 % 101 - 50);                 \
		for (int64_t i = 1; i < n; i++)               \
			all = (c)of_op(op, all, (c)((i + 1) * 7919 % 101 - 50)); \
		return (int64_t)all;                          \
	}
WANT(int8_t)
WANT(uint8_t)
WANT(int16_t)
WANT(uint16_t)
WANT(int32_t)
WANT(uint32_t)
WANT(int64_t)
WANT(uint64_t)

/* Arrays of a type with these numbers: reduced, and their prefixes. */
#define REDUCTIONS(c, type, last_op)                                                                      \
	static void reductions_##c(int64_t block, int64_t count)                                          \
	{                                                                                                 \
		struct ek_upc_array src, dst, one;                                                        \
		c v;                                                                                      \
		DONE(ek_upc_all_alloc(world, block, count, sizeof v, &src));                              \
		DONE(ek_upc_all_alloc(world, block, count, sizeof v, &dst));                              \
		DONE(ek_upc_all_alloc(world, 1, threads, sizeof v, &one));                                \
		ek_upc_forall (i, 0, count, &src) {                                                       \
			v = (c)((i + 1) * 7919 % 101 - 50);                                               \
			DONE(ek_upc_put(&src, i, &v));                                                    \
		}                                                                                         \
		v = 77;                                                                                   \
		DONE(ek_upc_put(&one, me, &v));                                                           \
		for (int op = EK_UPC_ADD; op <= (last_op); op++) {                                        \
			DONE(ek_upc_all_reduce(&one, threads - 1, &src, 0, count, type, (enum ek_upc_op)op, 0)); \
			DONE(ek_upc_get(&one, threads - 1, &v));                                          \
			CHECK(v == (c)(count ? want_##c((enum ek_upc_op)op, count) : 77));                \
			DONE(ek_upc_all_prefix_reduce(&dst, 0, &src, 0, count, type, (enum ek_upc_op)op, 0)); \
			for (int64_t i = me; i < count; i += threads) {                                   \
				DONE(ek_upc_get(&dst, i, &v));                                            \
				CHECK(v == (c)want_##c((enum ek_upc_op)op, i + 1));                       \
			}                                                                                 \
			barrier();                                                                        \
		}                                                                                         \
		DONE(ek_upc_all_free(&one));                                                              \
		DONE(ek_upc_all_free(&dst));                                                              \
		DONE(ek_upc_all_free(&src));                                                              \
	}
REDUCTIONS(int8_t, EK_UPC_INT8, EK_UPC_MAX)
REDUCTIONS(uint8_t, EK_UPC_UINT8, EK_UPC_XOR)
REDUCTIONS(int16_t, EK_UPC_INT16, EK_UPC_MAX)
REDUCTIONS(uint16_t, EK_UPC_UINT16, EK_UPC_XOR)
REDUCTIONS(int32_t, EK_UPC_INT32, EK_UPC_MAX)
REDUCTIONS(uint32_t, EK_UPC_UINT32, EK_UPC_XOR)
REDUCTIONS(int64_t, EK_UPC_INT64, EK_UPC_MAX)
REDUCTIONS(uint64_t, EK_UPC_UINT64, EK_UPC_XOR)

/* Keeps the right one: associative, and does not commute. Of elements of any size. */
struct pair {
	int64_t first, second, third;
};

static void right(void *a, const void *b)
{
	((struct pair *)a)->second = ((const struct pair *)b)->second;
}

/* Functions x -> first x + second. One after the other they are such a function, too: that is
 * associative, and does not commute. */
static void after(void *a, const void *b)
{
	struct pair *p = a;
	const struct pair *q = b;
	p->second = p->second * q->first + q->second;
	p->first *= q->first;
}

/* n elements from element `begin` on. */
static void in_order(struct ek_upc_array *src, int64_t begin, int64_t n, int flags)
{
	struct ek_upc_array one;
	struct pair v, want = {-1, -2, 0}; /* of nothing: as it was */
	DONE(ek_upc_all_alloc(world, 1, threads, sizeof v, &one));
	DONE(ek_upc_put(&one, me, &want));
	ek_upc_forall (i, 0, src->layout.elements, src) {
		v = (struct pair){i % 5 - 7, i, 0};
		DONE(ek_upc_put(src, i, &v));
	}
	for (int64_t i = begin; i < begin + n; i++) {
		v = (struct pair){i % 5 - 7, i, 0};
		if (i > begin)
			after(&want, &v);
		else
			want = v;
	}
	barrier();
	DONE(ek_upc_all_reduce_noncomm_func(&one, threads - 1, src, begin, n, after, flags));
	barrier();
	DONE(ek_upc_get(&one, threads - 1, &v));
	CHECK(v.first == want.first && v.second == want.second);
	DONE(ek_upc_all_free(&one));
}

static void reductions_in_order(void)
{
	static const int64_t blocks[] = {EK_UPC_INDEFINITE, 1, 3, 50}, counts[] = {0, 1, 20};
	struct ek_upc_array src, name;
	uint64_t handle;
	for (int i = 0; i < 12; i++) {
		DONE(ek_upc_all_alloc(world, blocks[i % 4], counts[i / 4], sizeof(struct pair), &src));
		in_order(&src, 0, counts[i / 4], i % 2 ? 0 : EK_UPC_IN_NOSYNC | EK_UPC_OUT_NOSYNC);
		if (counts[i / 4] > 1) {
			in_order(&src, 4, 13, 0);
			in_order(&src, 5, 1, 0);
			in_order(&src, 20, 0, 0);
		}
		DONE(ek_upc_all_free(&src));
	}
	DONE(ek_upc_all_alloc(world, 1, 1, 8, &name));
	if (me == threads - 1) { /* all of it is on one thread, which is not the first */
		DONE(ek_upc_alloc(world, 20, sizeof(struct pair), &src));
		DONE(ek_upc_put(&name, 0, &src.handle));
	}
	barrier();
	DONE(ek_upc_get(&name, 0, &handle));
	if (me != threads - 1)
		DONE(ek_upc_open(world, handle, sizeof(struct pair), &src));
	in_order(&src, 0, 20, 0);
	in_order(&src, 7, 12, 0);
	DONE(me == threads - 1 ? EK_OK : ek_upc_close(&src));
	barrier();
	DONE(me == threads - 1 ? ek_upc_free(&src) : EK_OK);
	DONE(ek_upc_all_free(&name));
}

static void reductions(void)
{
	static const int64_t blocks[] = {EK_UPC_INDEFINITE, 1, 3, 50}, counts[] = {0, 1, 2, 37};
	const int apart = rounds < 50 ? 3 : 1; /* over a network fewer combinations do */
	for (int b = 0; b < 4; b += apart)
		for (int k = 0; k < 4; k += apart) {
			reductions_int64_t(blocks[b], counts[k]);
			if (k == 3) {
				reductions_int8_t(blocks[b], counts[k]);
				reductions_uint8_t(blocks[b], counts[k]);
				reductions_int16_t(blocks[b], counts[k]);
				reductions_uint16_t(blocks[b], counts[k]);
				reductions_int32_t(blocks[b], counts[k]);
				reductions_uint32_t(blocks[b], counts[k]);
				reductions_uint64_t(blocks[b], counts[k]);
			}
			struct ek_upc_array src, dst, one;
			struct pair v;
			double sum, real;
			DONE(ek_upc_all_alloc(world, blocks[b], counts[k], sizeof v, &src));
			DONE(ek_upc_all_alloc(world, blocks[b], counts[k], sizeof v, &dst));
			ek_upc_forall (i, 0, counts[k], &src) {
				v = (struct pair){i, i, i};
				DONE(ek_upc_put(&src, i, &v));
			}
			DONE(ek_upc_all_prefix_reduce_func(&dst, 0, &src, 0, counts[k], right, 0));
			for (int64_t i = 0; i < counts[k]; i++) {
				DONE(ek_upc_get(&dst, i, &v));
				CHECK(v.first == 0 && v.second == i && v.third == 0);
			}
			DONE(ek_upc_all_free(&dst));
			DONE(ek_upc_all_free(&src));
			/* Halves, whose sums are exact in any order. */
			DONE(ek_upc_all_alloc(world, blocks[b], counts[k] + 1, 8, &src));
			DONE(ek_upc_all_alloc(world, 1, threads, 8, &one));
			ek_upc_forall (i, 0, counts[k] + 1, &src) {
				real = (double)i / 2;
				DONE(ek_upc_put(&src, i, &real));
			}
			DONE(ek_upc_all_reduce(&one, 0, &src, 0, counts[k] + 1, EK_UPC_DOUBLE, EK_UPC_ADD, 0));
			DONE(ek_upc_get(&one, 0, &sum));
			CHECK(sum == (double)(counts[k] * (counts[k] + 1)) / 4);
			barrier();
			DONE(ek_upc_all_reduce(&one, 0, &src, 0, counts[k] + 1, EK_UPC_DOUBLE, EK_UPC_MAX, 0));
			DONE(ek_upc_get(&one, 0, &sum));
			CHECK(sum == (double)counts[k] / 2);
			barrier();
			REFUSED(ek_upc_all_reduce(&one, 0, &src, 0, 1, EK_UPC_DOUBLE, EK_UPC_XOR, 0), EK_UPC_OPERATION, "no operation");
			REFUSED(ek_upc_all_reduce(&one, 0, &src, 0, 1, EK_UPC_FLOAT, EK_UPC_ADD, 0), EK_UPC_TYPE, "have 8 bytes, not 4");
			DONE(ek_upc_all_free(&one));
			DONE(ek_upc_all_free(&src));
		}
}

/* Reductions of some elements of an array, and prefixes that lie further behind in another one. */
static void reductions_of_some(void)
{
	static const int64_t blocks[] = {EK_UPC_INDEFINITE, 1, 3, 50}, ranges[][2] = {{0, 37}, {5, 20}, {4, 1}, {36, 1}, {7, 0}};
	enum { COUNT = 37 };
	for (int k = 0; k < 20; k += rounds < 50 ? 7 : 1) {
		const int64_t block = blocks[k % 4], begin = ranges[k / 4][0], n = ranges[k / 4][1];
		const int64_t behind = block ? block * threads : 2, untouched = -77;
		struct ek_upc_array src, dst, one;
		int64_t v, sum = untouched;
		DONE(ek_upc_all_alloc(world, block, COUNT, 8, &src));
		DONE(ek_upc_all_alloc(world, block, behind + COUNT, 8, &dst));
		DONE(ek_upc_all_alloc(world, EK_UPC_INDEFINITE, 1, 8, &one));
		ek_upc_forall (i, 0, COUNT, &src) {
			v = i * i + 1;
			DONE(ek_upc_put(&src, i, &v));
		}
		ek_upc_forall (i, 0, behind + COUNT, &dst)
			DONE(ek_upc_put(&dst, i, &untouched));
		if (me == 0)
			DONE(ek_upc_put(&one, 0, &untouched));
		DONE(ek_upc_all_reduce(&one, 0, &src, begin, n, EK_UPC_INT64, EK_UPC_ADD, 0));
		DONE(ek_upc_all_prefix_reduce(&dst, behind + begin, &src, begin, n, EK_UPC_INT64, EK_UPC_ADD, 0));
		for (int64_t i = 0; i < behind + COUNT; i++) {
			const int64_t from = i - behind;
			const int in = from >= begin && from < begin + n;
			if (in)
				sum = (from == begin ? 0 : sum) + from * from + 1;
			DONE(ek_upc_get(&dst, i, &v));
			CHECK(v == (in ? sum : untouched));
		}
		DONE(ek_upc_get(&one, 0, &v));
		CHECK(v == sum);
		DONE(ek_upc_all_free(&one));
		DONE(ek_upc_all_free(&dst));
		DONE(ek_upc_all_free(&src));
	}
}

/* An array that gets one word more than there is room for leaves, and does not reach what is behind it. */
static void arrays_in_a_row(void)
{
	struct ek_upc_array row[3];
	int64_t all[24], v = -1;
	for (int which = 0; which < 3; which++) {
		DONE(ek_upc_alloc(world, 8, sizeof v, &row[which]));
		for (int64_t i = 0; i < 8; i++)
			((int64_t *)row[which].local)[i] = 100 * which + i;
	}
	DONE(ek_upc_resize(&row[0], 9));
	DONE(ek_upc_put(&row[0], 8, &v));
	DONE(ek_upc_resize(&row[1], 24));
	DONE(ek_upc_memset(&row[1], 8, 1, 16));
	for (int which = 0; which < 3; which++) {
		DONE(ek_upc_memget(all, &row[which], 0, 8));
		for (int64_t i = 0; i < 8; i++)
			CHECK(all[i] == 100 * which + i);
		DONE(ek_upc_free(&row[which]));
	}
}

/* ---- what is refused ---------------------------------------------------------------------- */

static void refusals(void)
{
	struct ek_upc_array a, b, c, none;
	int64_t v = 1, all[20];
	int32_t half;
	DONE(ek_upc_all_alloc(world, 2, 10, 8, &a));
	DONE(ek_upc_all_alloc(world, 2, 20, 4, &b));
	REFUSED(ek_upc_put(&a, 10, &v), EK_UPC_RANGE, "writing everyone's object");
	REFUSED(ek_upc_put(&a, 10, &v), EK_UPC_RANGE, ": element 10 is not in it: stay within 0 to 9");
	REFUSED(ek_upc_get(&a, -1, &v), EK_UPC_RANGE, "reading everyone's object");
	REFUSED(ek_upc_get(&a, 0, &half), EK_UPC_TYPE, "have 8 bytes, not 4");
	REFUSED(ek_upc_memget(all, &a, 8, 3), EK_UPC_RANGE, "3 elements from element 8 on are not in it: stay within 0 to 9");
	REFUSED(ek_upc_memput(&a, 0, all, -1), EK_UPC_RANGE, "-1 elements");
	REFUSED(ek_upc_memset(&a, INT64_MAX, 0, 2), EK_UPC_RANGE, "are not in it: stay within 0 to 9");
	REFUSED(ek_upc_memcpy(&a, 0, &b, 0, 1), EK_UPC_TYPE, "copying from everyone's object");
	REFUSED(ek_upc_memcpy(&a, 10, &a, 0, 1), EK_UPC_RANGE, "writing");
	REFUSED(ek_upc_memcpy(&a, 0, &a, 10, 1), EK_UPC_RANGE, with(": copying from %s: element 10 is not in it: stay within 0 to 9", a.handle, 0));
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){threads, 0, 0}), &v), EK_UPC_POINTER, "} points at none of its elements");
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){0, 0, 4}), &v), EK_UPC_POINTER,
	        with(": reading %s: {thread 0, phase 0, address 4} points at none of its elements", a.handle, 0));
	REFUSED(ek_upc_store(&a, ((struct ek_upc_pointer){0, 0, 4}), &v), EK_UPC_POINTER,
	        with(": writing %s: {thread 0, phase 0, address 4} points at none of its elements", a.handle, 0));
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){-1, 0, 0}), &v), EK_UPC_POINTER, "} points at none of its elements");
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){-((int64_t)1 << 32), 0, 0}), &v), EK_UPC_POINTER, "} points at none of its elements");
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){0, 0, -8}), &v), EK_UPC_POINTER, "} points at none of its elements");
	REFUSED(ek_upc_load(&a, ((struct ek_upc_pointer){0, 0, 8 * ek_upc_local_elements(&a.layout, 0)}), &v), EK_UPC_POINTER, "} points at none of its elements");
	CHECK(ek_upc_subtract(&a.layout, (struct ek_upc_pointer){0, 1, 12}, ek_upc_pointer_at(&a, 0), &v) == EK_UPC_POINTER);
	CHECK(strcmp(ek_upc_error(), "the pointers {thread 0, phase 1, address 12} and {thread 0, phase 0, address 0} do not point into one array of "
	             "blocks of 2 elements of 8 bytes") == 0);
	REFUSED(ek_upc_store(&a, ((struct ek_upc_pointer){0, 0, 800}), &v), EK_UPC_POINTER, "} points at none of its elements");
	REFUSED(ek_upc_global_alloc(world, -1, 10, 8, &none), EK_UPC_LAYOUT, "blocks of -1 elements");
	REFUSED(ek_upc_global_alloc(world, 1, -1, 8, &none), EK_UPC_LAYOUT, "of -1 elements");
	REFUSED(ek_upc_global_alloc(world, 1, 10, 0, &none), EK_UPC_LAYOUT, "elements of 0 bytes");
	REFUSED(ek_upc_global_alloc(world, 1, INT64_MAX, 8, &none), EK_UPC_LAYOUT, "beyond what memory has");
	REFUSED(ek_upc_global_alloc(world, INT64_MAX / 8, 1, 16, &none), EK_UPC_LAYOUT, "beyond what memory has");
	REFUSED(ek_upc_alloc(world, 1 << 30, 8, &none), EK_UPC_NO_MEMORY, "no room in the thread's own shared heap");
	REFUSED(ek_upc_all_alloc(world, 1, 1 << 30, 8, &none), EK_UPC_NO_MEMORY, me ? "thread 0 failed in it" : "no room in the common");
	REFUSED(ek_upc_get(&none, 0, &v), EK_UPC_NO_OBJECT, "never allocated");
	REFUSED(ek_upc_close(&none), EK_UPC_NO_OBJECT, "never allocated");
	REFUSED(ek_upc_free(&none), EK_UPC_NO_OBJECT, "never allocated");
	REFUSED(ek_upc_open(world, 0, 8, &none), EK_UPC_NO_OBJECT, "handle 0 is none");
	REFUSED(ek_upc_open(world, a.handle + 1, 8, &none), EK_UPC_NO_OBJECT, "there never was such an object");
	REFUSED(ek_upc_open(world, a.handle + ((uint64_t)1 << 39), 8, &none), EK_UPC_NO_OBJECT, "there never was such an object");
	REFUSED(ek_upc_open(world, (uint64_t)threads << 40 | 1, 8, &none), EK_UPC_NO_OBJECT, "is none of this world's");
	REFUSED(ek_upc_open(world, a.handle, 4, &none), EK_UPC_TYPE, "have 8 bytes, not 4");
	REFUSED(ek_upc_all_broadcast(&a, 0, &b, 0, 1, 0), EK_UPC_TYPE, "elements of 8 and 4 bytes");
	REFUSED(ek_upc_all_broadcast(&a, 0, &a, 10, 1, 0), EK_UPC_RANGE,
	        with(": broadcast into %s: src, %s: element 10 is not in it: stay within 0 to 9", a.handle, a.handle));
	REFUSED(ek_upc_all_gather(&a, -1, &a, 0, 1, 0), EK_UPC_RANGE,
	        with(": gather into %s: dst, %s: element -1 is not in it: stay within 0 to 9", a.handle, a.handle));
	REFUSED(ek_upc_all_broadcast(&a, 0, &a, 1, 1000, 0), EK_UPC_RANGE, "it takes 1000 elements of thread 0 from place ");
	REFUSED(ek_upc_all_scatter(&a, 0, &a, 0, INT64_MAX / 2, 0), EK_UPC_RANGE, with(": scatter into %s: src, %s: it takes", a.handle, a.handle));
	for (int64_t n = (int64_t)1 << 61; n <= (int64_t)1 << 62 && threads > 1; n += (int64_t)1 << 61) /* so many for each thread are more than can be said */
		REFUSED(ek_upc_all_exchange(&a, 0, &a, 0, n, 0), EK_UPC_RANGE, with(": exchange into %s: src, %s: it takes ", a.handle, a.handle));
	REFUSED(ek_upc_all_exchange(&a, 0, &a, 0, 0, 3), EK_UPC_OPERATION, "no flags 3");
	REFUSED(ek_upc_all_prefix_reduce(&a, 0, &b, 0, 10, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_TYPE, "elements of 8 and 4 bytes");
	DONE(ek_upc_all_alloc(world, 1, threads, 8, &c));
	DONE(ek_upc_all_alloc(world, 1, threads, 4, &none));
	*(int32_t *)none.local = me ? me : threads; /* of which there is none */
	REFUSED(ek_upc_all_permute(&c, 0, &c, 0, &none, 1, 0), me ? EK_UPC_UNEQUAL : EK_UPC_RANGE, me ? "thread 0 failed in it" : ": stay within 0 to ");
	DONE(ek_upc_all_free(&none));
	DONE(ek_upc_all_free(&c));
	DONE(ek_upc_all_alloc(world, 2, 2 * threads, 8, &c));
	const int64_t end = ek_upc_local_elements(&a.layout, 0) - 1; /* the last one of thread 0 */
	REFUSED(ek_upc_all_broadcast(&c, 0, &a, ek_upc_element(&a.layout, (struct ek_upc_place){0, end}), 2, 0), EK_UPC_RANGE,
	        "it takes 2 elements of thread 0 from place ");
	DONE(ek_upc_all_free(&c));
	DONE(ek_upc_all_alloc(world, 3, 10, 8, &c));
	REFUSED(ek_upc_all_prefix_reduce(&a, 0, &c, 0, 10, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_LAYOUT, "the layouts differ");
	REFUSED(ek_upc_all_prefix_reduce(&a, 1, &a, 0, 9, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_LAYOUT, "differ in thread or phase");
	if (threads > 1)
		REFUSED(ek_upc_all_prefix_reduce(&a, 2, &a, 0, 8, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_LAYOUT, "differ in thread or phase");
	REFUSED(ek_upc_all_prefix_reduce(&a, 0, &a, 0, 11, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_RANGE, "are not in it: stay within 0 to 9");
	REFUSED(ek_upc_all_reduce(&a, 0, &a, 3, 8, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_RANGE, "8 elements from element 3 on are not in it: stay within 0 to 9");
	DONE(ek_upc_all_free(&c));
	if (threads > 1) {
		/* All are told, and can go on. */
		REFUSED(ek_upc_all_alloc(world, 2, 10 + me, 8, &none), EK_UPC_UNEQUAL, "allocating a shared array: the number of elements must be the same on all threads");
		REFUSED(ek_upc_all_alloc(world, me ? 1 : -1, 10, 8, &none), me ? EK_UPC_UNEQUAL : EK_UPC_LAYOUT,
		        me ? "thread 0 failed in it" : "blocks of -1");
		char words[160];
		snprintf(words, sizeof words, "broadcast into everyone's object %u.%u: the element of src must be the same on all threads; it is %d here, and %d on thread",
		         (unsigned)(a.handle >> 16) & 0xffffff, (unsigned)a.handle & 0xffff, me % 2, 1 - me % 2);
		REFUSED(ek_upc_all_broadcast(&a, 0, &a, me % 2, 0, 0), EK_UPC_UNEQUAL, words);
		snprintf(words, sizeof words, "the array must be the same on all threads; it is everyone's object %u.%u here",
		         (unsigned)((me ? &a : &b)->handle >> 16) & 0xffffff, (unsigned)(me ? &a : &b)->handle & 0xffff);
		REFUSED(ek_upc_all_free(me ? &a : &b), EK_UPC_UNEQUAL, words);
		REFUSED(ek_upc_all_reduce(&a, me % 2, &a, 0, 1, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_UNEQUAL, ": the element of dst must be the same");
		REFUSED(ek_upc_all_reduce(&a, 0, &a, 0, 1 + me % 2, EK_UPC_INT64, EK_UPC_ADD, 0), EK_UPC_UNEQUAL, ": n must be the same");
		REFUSED(ek_upc_all_reduce(&a, 0, &a, 0, 10, EK_UPC_INT64, me ? EK_UPC_ADD : EK_UPC_MULT, 0), EK_UPC_UNEQUAL, ": op must be the same");
		DONE(ek_upc_all_alloc(world, 1, threads, 8, &c)); /* of which all have an element */
		REFUSED(ek_upc_all_broadcast(&c, 0, &c, 0, me % 2, 0), EK_UPC_UNEQUAL, ": n must be the same");
		REFUSED(ek_upc_all_broadcast(&c, 0, &c, 0, 1, me ? 0 : EK_UPC_OUT_MYSYNC), EK_UPC_UNEQUAL, ": flags must be the same");
		DONE(ek_upc_all_free(&c));
		if (me)
			REFUSED(ek_upc_all_free(&a), EK_UPC_UNEQUAL, "is in another collective call");
		else
			REFUSED(ek_upc_all_gather_all(&a, 0, &a, 0, 0, 0), EK_UPC_UNEQUAL, "is in another collective call");
		if (me)
			REFUSED(ek_upc_barrier(world, 7), EK_UPC_BARRIER, "thread 0 is in another collective call");
		else
			REFUSED(ek_upc_all_free(&a), EK_UPC_UNEQUAL, "is in another collective call");
		DONE(ek_upc_put(&a, me % 10, &v));
	}
	DONE(ek_upc_all_free(&b));
	DONE(ek_upc_all_free(&a));
	REFUSED(ek_upc_all_free(&a), EK_UPC_FREED, "freed before");
	REFUSED(ek_upc_memset(&a, 0, 0, 1), EK_UPC_FREED, "freed before");
}

/* What is allocated and freed leaves room for as much again, however often. */
static void nothing_is_lost(void)
{
	for (int i = 0; i < rounds; i++) {
		struct ek_upc_array a, b;
		struct ek_upc_lock lock;
		DONE(ek_upc_all_alloc(world, 1, 64 << 10, 8, &a));
		DONE(ek_upc_alloc(world, 64 << 10, 8, &b));
		DONE(ek_upc_all_lock_alloc(world, &lock));
		DONE(ek_upc_all_resize(&a, 80 << 10));
		DONE(ek_upc_resize(&b, 80 << 10));
		if (i % 2)
			DONE(ek_upc_all_free(&a));
		else if (me == 0)
			DONE(ek_upc_free(&a));
		DONE(ek_upc_free(&b));
		barrier(); /* all let go of what thread 0 has freed */
		DONE(ek_upc_all_lock_free(&lock));
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &threads);
	if (argc > 1)
		seed = strtoull(argv[1], 0, 10) + 1;
	if (argc > 2)
		rounds = atoi(argv[2]);
	own = (seed + (uint64_t)me) * 0x9e3779b97f4a7c15;
	common = seed;
	REFUSED(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 100, &world), EK_UPC_NO_MEMORY, "a shared heap of 100 bytes");
	if (threads > 1)
		REFUSED(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), (2 + (uint64_t)me) << 20, &world), EK_UPC_UNEQUAL,
		        "must be as large on all threads");
	DONE(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 4 << 20, &world));
	CHECK((int)ek_upc_mythread(world) == me && (int)ek_upc_threads(world) == threads);
	elements();
	bulk();
	many_bytes();
	forall();
	handles();
	pointers();
	who_is_told();
	freed_once();
	generations();
	kept_for_users();
	resizing();
	left_for_users();
	resized_while_read();
	histories();
	exclusion();
	fairness();
	wrong_use_of_locks();
	freed_while_wanted();
	barriers();
	own_writes();
	messages();
	one_order();
	one_element();
	one_order_for_all();
	parts();
	waits();
	reductions();
	reductions_in_order();
	reductions_of_some();
	arrays_in_a_row();
	refusals();
	nothing_is_lost();

	struct ek_upc_array a;
	int64_t v;
	DONE(ek_upc_all_alloc(world, 1, 10, 8, &a));
	DONE(ek_upc_end(world));
	REFUSED(ek_upc_get(&a, 0, &v), EK_UPC_ENDED, "the world has ended");
	REFUSED(ek_upc_barrier(world, 0), EK_UPC_ENDED, "the world has ended");
	REFUSED(ek_upc_all_alloc(world, 1, 10, 8, &a), EK_UPC_ENDED, "the world has ended");
	REFUSED(ek_upc_end(world), EK_UPC_ENDED, "the world has ended");
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 0)
		puts("ok");
	MPI_Finalize();
	return 0;
}
