/* apps.c - four small applications by evenkeel's global shared memory, by MPI, and
 * by what the processor has.
 *
 *	mpirun -np 2 apps [TURNS [SHRINK]]
 *
 * gups     random words of a table that lies on all ranks are updated by XOR
 * hash     a table of keys and sums with open addressing: half of the operations
 *          add to a key's sum, half look one up, half of those in vain
 * stencil  Jacobi's iteration with five points, rows dealt out in blocks; each
 *          rank puts its outer rows into its neighbours' halos
 * sort     a sample sort: keys go to the rank that has their range
 *
 * An algorithm is written once; what differs is how another rank's memory is
 * reached. In MPI that is MPI_Fetch_and_op, MPI_Compare_and_swap and MPI_Get with
 * a flush where the answer is needed, on MPI_Win_allocate_shared's memory, and
 * for the stencil and the sort messages and collectives, as it is usual there. The
 * third way is the limit: loads, stores and atomic instructions on the memory of
 * MPI's window, which check and count nothing and end at the node.
 *
 * The ways take turns. Every result is compared with that of a sequential
 * program; a wrong one is exit status 1. Printed are, a line each, application
 * and way, the median of millions of units a second, and a checksum of the
 * result, which depends neither on the way nor on the number of ranks: a power of
 * two up to 16. Each SHRINK halves the problems.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum way { OURS, MPI, DIRECT, WAYS };
enum { MOST_TURNS = 64, MOST_RANKS = 16, MOST_SHRINK = 8 };

static int rank, ranks, shift_of_ranks, wrong;

/* The memory of each rank that the others reach, in each way. */
static struct ek_gsm *job;
static struct ek_gsm_array array;
static MPI_Win win;
static uint64_t *mine[WAYS];
static uint64_t *mapped[MOST_RANKS]; /* the window's memory of each rank */

static void *room(size_t bytes)
{
	void *memory = calloc(bytes, 1);
	if (!memory) {
		fprintf(stderr, "apps: no room for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return memory;
}

static void check(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "apps: %s\n", ek_gsm_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
		abort();
	}
}

/* A permutation of the numbers, and only the last becomes 0: Steele, Lea and Flood's splitmix64. */
static inline uint64_t mix(uint64_t i)
{
	uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* ---- how another rank's words are reached ----------------------------------
 *
 * The way is a constant where these are inlined. */
#define INLINED static inline __attribute__((always_inline))

INLINED struct ek_gsm_address at(int task, uint64_t word)
{
	struct ek_gsm_address address = {(uint32_t)task, array.window->number, 8 * word};
	return address;
}

INLINED void fetch_and(enum way way, MPI_Op op, int task, uint64_t word, uint64_t operand)
{
	uint64_t old;
	if (way == MPI)
		MPI_Fetch_and_op(&operand, &old, MPI_UINT64_T, task, (MPI_Aint)word, op, win);
	else if (way == DIRECT && op == MPI_BXOR)
		__atomic_fetch_xor(mapped[task] + word, operand, __ATOMIC_RELAXED);
	else if (way == DIRECT)
		__atomic_fetch_add(mapped[task] + word, operand, __ATOMIC_RELAXED);
	else if (op == MPI_BXOR)
		check(ek_gsm_xor64(array.window, at(task, word), operand));
	else
		check(ek_gsm_add64(array.window, at(task, word), operand));
	if (way == MPI)
		MPI_Win_flush_local(task, win); /* for `operand` and `old` end here */
}

INLINED uint64_t compare_and_swap(enum way way, int task, uint64_t word, uint64_t compare, uint64_t value)
{
	uint64_t old;
	if (way == OURS) {
		check(ek_gsm_compare_and_swap64(array.window, at(task, word), compare, value, &old));
		return old;
	}
	if (way == DIRECT) {
		__atomic_compare_exchange_n(mapped[task] + word, &compare, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		return compare;
	}
	MPI_Compare_and_swap(&value, &compare, &old, MPI_UINT64_T, task, (MPI_Aint)word, win);
	MPI_Win_flush(task, win);
	return old;
}

INLINED uint64_t get(enum way way, int task, uint64_t word)
{
	uint64_t value;
	if (way == OURS) {
		check(ek_gsm_get64(array.window, at(task, word), &value));
		return value;
	}
	if (way == DIRECT)
		return __atomic_load_n(mapped[task] + word, __ATOMIC_RELAXED);
	MPI_Get(&value, 1, MPI_UINT64_T, task, (MPI_Aint)word, 1, MPI_UINT64_T, win);
	MPI_Win_flush(task, win);
	return value;
}

/* Not for MPI, which has messages. */
static void put(enum way way, int task, uint64_t word, const void *data, uint64_t words)
{
	if (way == OURS)
		check(ek_gsm_put(array.window, at(task, word), data, 8 * words));
	else
		memcpy(mapped[task] + word, data, 8 * words);
}

/* Writes a word that is seen after all that was put before. */
static void put_after(enum way way, int task, uint64_t word, uint64_t value)
{
	if (way == OURS) {
		check(ek_gsm_fence(array.window));
		check(ek_gsm_put64(array.window, at(task, word), value));
	} else {
		__atomic_store_n(mapped[task] + word, value, __ATOMIC_RELEASE);
	}
}

#define IN_EACH_WAY(name)                  \
	static void name(enum way way)     \
	{                                  \
		if (way == OURS)           \
			name##_by(OURS);   \
		else if (way == MPI)       \
			name##_by(MPI);    \
		else                       \
			name##_by(DIRECT); \
	}

/* All that any rank has done is seen by all. */
static void fence(enum way way)
{
	if (way == OURS) {
		check(ek_gsm_global_fence(job));
		return;
	}
	MPI_Win_flush_all(win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
}

/* What is one rank's of n: from first() on, up to that of the next one. */
static uint64_t first(uint64_t n, int of)
{
	return n / (uint64_t)ranks * (uint64_t)of;
}

/* ---- gups ------------------------------------------------------------------- */

static unsigned gups_bits;
static uint64_t gups_updates;
static uint64_t *gups_right;

static size_t gups_begin(int shrink)
{
	gups_bits = 22 - (unsigned)shrink;
	gups_updates = (uint64_t)1 << (gups_bits - 2);
	uint64_t share = first((uint64_t)1 << gups_bits, 1);
	gups_right = room(8 * share);
	for (uint64_t i = 0; i < share; i++)
		gups_right[i] = first((uint64_t)1 << gups_bits, rank) + i;
	for (uint64_t i = 0; i < gups_updates; i++) {
		uint64_t value = mix(i), index = value >> (64 - gups_bits);
		if (index / share == (uint64_t)rank)
			gups_right[index % share] ^= value;
	}
	return share;
}

static uint64_t gups_units(void)
{
	return gups_updates;
}

static void gups_prepare(enum way way)
{
	uint64_t share = first((uint64_t)1 << gups_bits, 1);
	for (uint64_t i = 0; i < share; i++)
		mine[way][i] = first((uint64_t)1 << gups_bits, rank) + i;
}

INLINED void gups_by(enum way way)
{
	unsigned bits = gups_bits - (unsigned)shift_of_ranks;
	for (uint64_t i = first(gups_updates, rank); i < first(gups_updates, rank + 1); i++) {
		uint64_t value = mix(i), index = value >> (64 - gups_bits);
		fetch_and(way, MPI_BXOR, (int)(index >> bits), index & (((uint64_t)1 << bits) - 1), value);
	}
}

IN_EACH_WAY(gups)

static uint64_t gups_check(enum way way)
{
	uint64_t share = first((uint64_t)1 << gups_bits, 1), sum = 0;
	for (uint64_t i = 0; i < share; i++) {
		wrong |= mine[way][i] != gups_right[i];
		sum += mine[way][i] * mix(first((uint64_t)1 << gups_bits, rank) + i);
	}
	return sum;
}

/* ---- hash ------------------------------------------------------------------- */

static unsigned hash_bits; /* slots: a key and a sum each; half of them are used */
static uint64_t *hash_right, *hash_found;

static uint64_t hash_slots(void)
{
	return (uint64_t)1 << hash_bits;
}

static size_t hash_begin(int shrink)
{
	hash_bits = 18 - (unsigned)shrink;
	uint64_t keys = hash_slots() / 2;
	hash_right = room(8 * hash_slots());
	hash_found = room(8 * hash_slots());
	for (uint64_t i = 0; i < hash_slots(); i++)
		hash_right[i % keys] += i + 1;
	return 2 * first(hash_slots(), 1);
}

static uint64_t hash_units(void)
{
	return 2 * hash_slots();
}

static void hash_prepare(enum way way)
{
	memset(mine[way], 0, 16 * first(hash_slots(), 1));
	memset(hash_found, 0, 8 * hash_slots());
}

/* Where a slot is. */
INLINED int hash_place(uint64_t slot, uint64_t *word)
{
	unsigned bits = hash_bits - (unsigned)shift_of_ranks;
	*word = 2 * (slot & (((uint64_t)1 << bits) - 1));
	return (int)(slot >> bits);
}

INLINED void hash_add(enum way way, uint64_t key, uint64_t value)
{
	for (uint64_t slot = key >> (64 - hash_bits);; slot = (slot + 1) & (hash_slots() - 1)) {
		uint64_t word;
		int task = hash_place(slot, &word);
		uint64_t old = compare_and_swap(way, task, word, 0, key);
		if (old == 0 || old == key) {
			fetch_and(way, MPI_SUM, task, word + 1, value);
			return;
		}
	}
}

/* The sum of a key, 0 if it is not there. */
INLINED uint64_t hash_look(enum way way, uint64_t key)
{
	for (uint64_t slot = key >> (64 - hash_bits);; slot = (slot + 1) & (hash_slots() - 1)) {
		uint64_t word;
		int task = hash_place(slot, &word);
		uint64_t found = get(way, task, word);
		if (found == key)
			return get(way, task, word + 1);
		if (found == 0)
			return 0;
	}
}

INLINED void hash_by(enum way way)
{
	uint64_t keys = hash_slots() / 2;
	for (uint64_t i = first(hash_slots(), rank); i < first(hash_slots(), rank + 1); i++)
		hash_add(way, mix(i % keys), i + 1);
	fence(way);
	for (uint64_t i = first(hash_slots(), rank); i < first(hash_slots(), rank + 1); i++)
		hash_found[i] = hash_look(way, mix(i));
}

IN_EACH_WAY(hash)

static uint64_t hash_check(enum way way)
{
	uint64_t sum = 0;
	(void)way;
	for (uint64_t i = first(hash_slots(), rank); i < first(hash_slots(), rank + 1); i++) {
		wrong |= hash_found[i] != hash_right[i];
		sum += hash_found[i] * mix(i);
	}
	return sum;
}

/* ---- stencil ---------------------------------------------------------------- */

enum { ABOVE, BELOW, SIDES };

static uint64_t stencil_side, stencil_steps, stencil_rows;
static double *stencil_now, *stencil_next; /* the rank's rows */
static double *stencil_right;
static double *stencil_halo; /* where messages go: as in the pool */
static const double *stencil_outside; /* beyond the grid: zeros */

/* The pool: a halo of a row for each side, two of them in turn, and for each side a
 * line with the number of the step whose row is there. A neighbour is ahead by a
 * step at most, for it needs this rank's rows as well. */
static uint64_t stencil_place(uint64_t step, int side)
{
	return (step % 2 * SIDES + (uint64_t)side) * stencil_side;
}

static uint64_t stencil_flag(int side)
{
	return 2 * SIDES * stencil_side + 8 * (uint64_t)side;
}

static int stencil_neighbour(int side)
{
	int other = side == ABOVE ? rank - 1 : rank + 1;
	return other < 0 || other == ranks ? MPI_PROC_NULL : other;
}

static void stencil_fill(double *rows, uint64_t begin, uint64_t count)
{
	for (uint64_t i = 0; i < count * stencil_side; i++)
		rows[i] = (double)(mix(begin * stencil_side + i) >> 32);
}

static void stencil_row(double *into, const double *above, const double *row, const double *below)
{
	uint64_t last = stencil_side - 1;
	into[0] = 0.25 * ((above[0] + below[0]) + row[1]);
	for (uint64_t i = 1; i < last; i++)
		into[i] = 0.25 * ((above[i] + below[i]) + (row[i - 1] + row[i + 1]));
	into[last] = 0.25 * ((above[last] + below[last]) + row[last - 1]);
}

/* A step over so many rows, between what is above and below them. */
static void stencil_relax(double *into, const double *from, uint64_t rows, const double *above, const double *below)
{
	for (uint64_t r = 0; r < rows; r++)
		stencil_row(into + r * stencil_side, r ? from + (r - 1) * stencil_side : above, from + r * stencil_side,
		            r + 1 < rows ? from + (r + 1) * stencil_side : below);
}

static size_t stencil_begin(int shrink)
{
	stencil_side = (uint64_t)512 >> shrink / 2;
	stencil_steps = (uint64_t)200 >> shrink / 2;
	stencil_rows = first(stencil_side, 1);
	size_t share = sizeof(double) * stencil_rows * stencil_side;
	stencil_now = room(share);
	stencil_next = room(share);
	stencil_outside = room(sizeof(double) * stencil_side);
	stencil_halo = room(sizeof(double) * 2 * SIDES * stencil_side);
	double *now = room(sizeof(double) * stencil_side * stencil_side);
	double *next = room(sizeof(double) * stencil_side * stencil_side);
	stencil_fill(now, 0, stencil_side);
	for (uint64_t step = 0; step < stencil_steps; step++) {
		stencil_relax(next, now, stencil_side, stencil_outside, stencil_outside);
		double *spare = now;
		now = next;
		next = spare;
	}
	stencil_right = now;
	free(next);
	return stencil_flag(SIDES);
}

static uint64_t stencil_units(void)
{
	return stencil_side * stencil_side * stencil_steps;
}

static void stencil_prepare(enum way way)
{
	stencil_fill(stencil_now, first(stencil_side, rank), stencil_rows);
	for (int side = 0; side < SIDES; side++)
		mine[way][stencil_flag(side)] = 0;
}

/* Waits for a word of the rank's own that another writes. */
static void await(const uint64_t *word, uint64_t value)
{
	for (int spins = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; spins++)
		if (spins > 1000) /* the other may need the core */
			sched_yield();
}

/* Gives the neighbours the outer rows, and gets theirs. */
static void stencil_exchange(enum way way, uint64_t step)
{
	const double *outer[SIDES] = {stencil_now, stencil_now + (stencil_rows - 1) * stencil_side};
	if (way == MPI) {
		MPI_Request requests[2 * SIDES];
		for (int side = 0; side < SIDES; side++)
			MPI_Irecv(stencil_halo + stencil_place(step, side), (int)stencil_side, MPI_DOUBLE, stencil_neighbour(side),
			          1 - side, MPI_COMM_WORLD, &requests[side]);
		for (int side = 0; side < SIDES; side++)
			MPI_Isend(outer[side], (int)stencil_side, MPI_DOUBLE, stencil_neighbour(side), side, MPI_COMM_WORLD,
			          &requests[SIDES + side]);
		MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
		return;
	}
	for (int side = 0; side < SIDES; side++)
		if (stencil_neighbour(side) != MPI_PROC_NULL)
			put(way, stencil_neighbour(side), stencil_place(step, 1 - side), outer[side], stencil_side);
	for (int side = 0; side < SIDES; side++)
		if (stencil_neighbour(side) != MPI_PROC_NULL)
			put_after(way, stencil_neighbour(side), stencil_flag(1 - side), step + 1);
	for (int side = 0; side < SIDES; side++)
		if (stencil_neighbour(side) != MPI_PROC_NULL)
			await(mine[way] + stencil_flag(side), step + 1);
}

static void stencil(enum way way)
{
	const double *halo = way == MPI ? stencil_halo : (const double *)(const void *)mine[way];
	for (uint64_t step = 0; step < stencil_steps; step++) {
		const double *beyond[SIDES];
		stencil_exchange(way, step);
		for (int side = 0; side < SIDES; side++)
			beyond[side] = stencil_neighbour(side) == MPI_PROC_NULL ? stencil_outside : halo + stencil_place(step, side);
		stencil_relax(stencil_next, stencil_now, stencil_rows, beyond[ABOVE], beyond[BELOW]);
		double *spare = stencil_now;
		stencil_now = stencil_next;
		stencil_next = spare;
	}
}

/* To the last bit, for each cell is computed in the same way wherever it lies. */
static uint64_t stencil_check(enum way way)
{
	uint64_t begin = first(stencil_side, rank) * stencil_side, sum = 0;
	(void)way;
	wrong |= memcmp(stencil_now, stencil_right + begin, sizeof(double) * stencil_rows * stencil_side) != 0;
	for (uint64_t i = 0; i < stencil_rows * stencil_side; i++) {
		uint64_t bits;
		memcpy(&bits, &stencil_now[i], sizeof bits);
		sum += bits * mix(begin + i);
	}
	return sum;
}

/* ---- sort ------------------------------------------------------------------- */

enum { SAMPLES = 64 }; /* of each rank */

static uint64_t sort_keys, sort_room; /* of all ranks, and for what one may get */
static uint64_t *sort_own, *sort_right, *sort_received;
static uint64_t sort_counts[MOST_RANKS][MOST_RANKS]; /* from, to */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void sort(uint64_t *keys, uint64_t count)
{
	qsort(keys, count, sizeof *keys, by_value);
}

/* The pool: samples, counts and what is received, of all ranks. */
static uint64_t sort_counts_at(void)
{
	return SAMPLES * (uint64_t)ranks;
}

static uint64_t sort_received_at(void)
{
	return sort_counts_at() + (uint64_t)(ranks * ranks);
}

static void sort_fill(uint64_t *keys, uint64_t begin, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		keys[i] = mix(((uint64_t)1 << 40) + begin + i);
}

static size_t sort_begin(int shrink)
{
	sort_keys = (uint64_t)1 << (18 - shrink);
	sort_room = 2 * first(sort_keys, 1) + SAMPLES;
	sort_own = room(8 * first(sort_keys, 1));
	sort_received = room(8 * sort_room);
	sort_right = room(8 * sort_keys);
	sort_fill(sort_right, 0, sort_keys);
	sort(sort_right, sort_keys);
	return sort_received_at() + sort_room;
}

static uint64_t sort_units(void)
{
	return sort_keys;
}

static void sort_prepare(enum way way)
{
	(void)way;
	sort_fill(sort_own, first(sort_keys, rank), first(sort_keys, 1));
}

/* Gives all ranks so many words of each: at this place of the pool, one rank's after the other's. */
static void sort_tell(enum way way, const uint64_t *words, int count, uint64_t place, uint64_t *all)
{
	if (way == MPI) {
		MPI_Allgather(words, count, MPI_UINT64_T, all, count, MPI_UINT64_T, MPI_COMM_WORLD);
		return;
	}
	for (int task = 0; task < ranks; task++)
		put(way, task, place + (uint64_t)(count * rank), words, (uint64_t)count);
	fence(way);
	memcpy(all, mine[way] + place, 8 * (size_t)(count * ranks));
}

/* Where what a rank sends lies at the one that receives it. */
static uint64_t sort_offset(int from, int to)
{
	uint64_t offset = 0;
	for (int before = 0; before < from; before++)
		offset += sort_counts[before][to];
	return offset;
}

static uint64_t *sort_result(enum way way)
{
	return way == MPI ? sort_received : mine[way] + sort_received_at();
}

/* Sends each rank its part of the sorted keys, which lie one after the other. */
static void sort_send(enum way way)
{
	const uint64_t *next = sort_own;
	int counts[2][MOST_RANKS], places[2][MOST_RANKS];
	for (int task = 0; task < ranks; task++) {
		uint64_t count = sort_counts[rank][task];
		if (way != MPI)
			put(way, task, sort_received_at() + sort_offset(rank, task), next, count);
		counts[0][task] = (int)count;
		places[0][task] = (int)(next - sort_own);
		counts[1][task] = (int)sort_counts[task][rank];
		places[1][task] = (int)sort_offset(task, rank);
		next += count;
	}
	if (way != MPI)
		fence(way);
	else
		MPI_Alltoallv(sort_own, counts[0], places[0], MPI_UINT64_T, sort_received, counts[1], places[1], MPI_UINT64_T,
		              MPI_COMM_WORLD);
}

static void sort_by(enum way way)
{
	uint64_t picked[SAMPLES], samples[SAMPLES * MOST_RANKS], counts[MOST_RANKS] = {0}, all[MOST_RANKS * MOST_RANKS];
	uint64_t own = first(sort_keys, 1), next = 0;
	sort(sort_own, own);
	for (uint64_t i = 0; i < SAMPLES; i++)
		picked[i] = sort_own[i * own / SAMPLES];
	sort_tell(way, picked, SAMPLES, 0, samples);
	sort(samples, SAMPLES * (uint64_t)ranks);
	for (int task = 0; task < ranks; task++)
		for (; next < own && (task == ranks - 1 || sort_own[next] < samples[SAMPLES * (task + 1)]); next++)
			counts[task]++;
	sort_tell(way, counts, ranks, sort_counts_at(), all);
	for (int from = 0; from < ranks; from++)
		memcpy(sort_counts[from], all + from * ranks, 8 * (size_t)ranks);
	for (int task = 0; task < ranks; task++) {
		if (sort_offset(ranks, task) > sort_room) {
			fprintf(stderr, "apps: sort: rank %d would get more keys than it has room for\n", task);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	sort_send(way);
	sort(sort_result(way), sort_offset(ranks, rank));
}

static uint64_t sort_check(enum way way)
{
	uint64_t begin = 0, sum = 0, count = sort_offset(ranks, rank), *result = sort_result(way);
	for (int task = 0; task < rank; task++)
		begin += sort_offset(ranks, task);
	wrong |= memcmp(result, sort_right + begin, 8 * count) != 0;
	for (uint64_t i = 0; i < count; i++)
		sum += result[i] * mix(begin + i);
	memset(result, 0, 8 * count);
	return sum;
}

/* ---- all of them -------------------------------------------------------------- */

static const struct app {
	const char *name;
	size_t (*begin)(int shrink); /* computes what is right, and tells how many words each rank shows */
	uint64_t (*units)(void);
	void (*prepare)(enum way);
	void (*run)(enum way);
	uint64_t (*check)(enum way);
} apps[] = {
	{"gups", gups_begin, gups_units, gups_prepare, gups, gups_check},
	{"hash", hash_begin, hash_units, hash_prepare, hash, hash_check},
	{"stencil", stencil_begin, stencil_units, stencil_prepare, stencil, stencil_check},
	{"sort", sort_begin, sort_units, sort_prepare, sort_by, sort_check},
};
enum { APPS = sizeof apps / sizeof *apps };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Seconds from when all began until all were done. */
static double timed(const struct app *app, enum way way)
{
	app->prepare(way);
	fence(way);
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	app->run(way);
	fence(way);
	return MPI_Wtime() - begin;
}

static void measure(const struct app *app, int turns)
{
	static const char *const names[] = {"ours", "mpi", "direct"};
	double rates[WAYS][MOST_TURNS];
	uint64_t sums[WAYS], sum;
	for (int turn = -1; turn < turns; turn++) { /* the first one warms up */
		for (enum way way = OURS; way < WAYS; way++) {
			double taken = timed(app, way);
			if (turn >= 0)
				rates[way][turn] = (double)app->units() / taken / 1e6;
			sum = app->check(way);
			MPI_Allreduce(&sum, &sums[way], 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		}
	}
	for (enum way way = OURS; way < WAYS && rank == 0; way++) {
		qsort(rates[way], (size_t)turns, sizeof(double), ascending);
		printf("%s.%s %.3f %016llx\n", app->name, names[way], rates[way][turns / 2], (unsigned long long)sums[way]);
	}
}

int main(int argc, char **argv)
{
	size_t words = 0;
	int turns = argc > 1 ? atoi(argv[1]) : 5, shrink = argc > 2 ? atoi(argv[2]) : 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while (1 << shift_of_ranks < ranks)
		shift_of_ranks++;
	if (turns < 1 || turns > MOST_TURNS || shrink < 0 || shrink > MOST_SHRINK || ranks > MOST_RANKS ||
	    1 << shift_of_ranks != ranks) {
		if (rank == 0)
			fprintf(stderr, "usage: mpirun -np 1|2|4|8|16 apps [TURNS [SHRINK]], up to %d turns and shrinking up to %d times\n",
			        MOST_TURNS, MOST_SHRINK);
		MPI_Finalize();
		return 2;
	}
	for (int i = 0; i < APPS; i++) {
		size_t shown = apps[i].begin(shrink);
		words = shown > words ? shown : words;
	}
	check(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job));
	check(ek_gsm_all_allocate(job, 8 * words * (size_t)ranks, 8 * words, EK_GSM_ALL, &array));
	mine[OURS] = array.local;
	MPI_Win_allocate_shared((MPI_Aint)(8 * words), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine[MPI], &win);
	MPI_Win_lock_all(0, win);
	mine[DIRECT] = mine[MPI];
	for (int task = 0; task < ranks; task++) {
		MPI_Aint bytes;
		int unit;
		MPI_Win_shared_query(win, task, &bytes, &unit, &mapped[task]);
	}
	for (int i = 0; i < APPS; i++)
		measure(&apps[i], turns);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (wrong && rank == 0)
		fprintf(stderr, "apps: a result is not that of the sequential program\n");
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	check(ek_gsm_all_free(&array));
	check(ek_gsm_leave(job));
	MPI_Finalize();
	return wrong;
}
