/* gsm.c - global shared memory from C: every command between all pairs of ranks,
 * atomics whose counts must be exact, litmus tests, what is refused, and narrower
 * keys.
 *
 *	mpirun -np N gsm [SEED [ROUNDS [RANKS]]]
 *
 * So many ranks are on each node; without, all. Prints "ok" on rank 0. Linked to
 * libevenkeel.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static uint64_t seed = 1;
static long rounds = 20000;
static int node_ranks;
static struct ek_gsm *job;

#define CHECK(condition)                                                                                      \
	do {                                                                                                  \
		if (!(condition)) {                                                                           \
			fprintf(stderr, "gsm.c:%d: rank %d, seed %llu: %s\n%s\n", __LINE__, rank,              \
			        (unsigned long long)seed, #condition, ek_gsm_error());                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                         \
		}                                                                                             \
	} while (0)

/* Refused with this result, and a text that has these words. */
static void refused(int line, int result, int wanted, const char *words, const char *address)
{
	if (result == wanted && strstr(ek_gsm_error(), words) && strstr(ek_gsm_error(), address))
		return;
	fprintf(stderr, "gsm.c:%d: rank %d: %d (%s) instead of %d (%s), said as \"%s\" without \"%s\" or \"%s\"\n", line, rank,
	        result, ek_strerror(result), wanted, ek_strerror(wanted), ek_gsm_error(), words, address);
	MPI_Abort(MPI_COMM_WORLD, 1);
}
#define REFUSED(call, wanted, words, address) refused(__LINE__, call, wanted, words, address)

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* There may be more ranks than processors. */
static void give_way(int looks)
{
	if (looks > 100)
		sched_yield();
}

static struct ek_gsm_address at(const struct ek_gsm_window *w, uint32_t task, uint64_t offset)
{
	struct ek_gsm_address address = ek_gsm_address_of(w, offset);
	address.task = task; /* windows of arrays have the same number everywhere */
	return address;
}

/* ---- PUT and GET ---------------------------------------------------------- */

/* Each rank writes into its own part of every rank's share. */
static void transfers(void)
{
	enum { PART = 3 * EK_GSM_PAGE };
	struct ek_gsm_array a;
	unsigned char *sent = malloc(PART), *back = malloc(PART), *mirror = calloc((size_t)ranks, PART);
	CHECK(ek_gsm_all_allocate(job, (uint64_t)ranks * (uint64_t)ranks * PART, (uint64_t)ranks * PART, EK_GSM_ALL, &a) == EK_OK);
	CHECK(a.share == (uint64_t)ranks * PART);
	for (uint64_t i = 0; i < a.share; i++)
		CHECK(((unsigned char *)a.local)[i] == 0);
	CHECK(ek_gsm_global_fence(job) == EK_OK); /* before others write */
	for (long round = 0; round < rounds / 10; round++) {
		uint32_t to = (uint32_t)(random_number() % (unsigned)ranks);
		uint64_t offset = random_number() % PART, bytes = random_number() % (PART - offset);
		struct ek_gsm_address address = at(a.window, to, (uint64_t)rank * PART + offset);
		unsigned char *mirrored = mirror + to * (size_t)PART + offset;
		uint64_t word = random_number(), got64;
		uint32_t got32;
		switch (random_number() % 5) {
		case 0:
			if (offset > PART - 8)
				break;
			CHECK(ek_gsm_put64(a.window, address, word) == EK_OK);
			memcpy(mirrored, &word, 8);
			CHECK(ek_gsm_get64(a.window, address, &got64) == EK_OK && got64 == word);
			break;
		case 1:
			if (offset > PART - 4)
				break;
			CHECK(ek_gsm_put32(a.window, address, (uint32_t)word) == EK_OK);
			memcpy(mirrored, &word, 4);
			CHECK(ek_gsm_get32(a.window, address, &got32) == EK_OK && got32 == (uint32_t)word);
			break;
		case 2:
			for (uint64_t i = 0; i < bytes; i++)
				sent[i] = (unsigned char)random_number();
			CHECK(ek_gsm_put(a.window, address, sent, bytes) == EK_OK);
			memcpy(mirrored, sent, bytes);
			break;
		case 3: {
			uint64_t width = 1 + random_number() % 40, there = width + random_number() % 40, here = width + random_number() % 9;
			uint64_t count = bytes < width ? 0 : (bytes - width) / there + 1;
			if (count * here > PART)
				break;
			for (uint64_t i = 0; i < count * here; i++)
				sent[i] = (unsigned char)random_number();
			CHECK(ek_gsm_put_strided(a.window, address, there, sent, here, width, count) == EK_OK);
			for (uint64_t i = 0; i < count; i++)
				memcpy(mirrored + i * there, sent + i * here, width);
			memset(back, 0, PART);
			CHECK(ek_gsm_get_strided(a.window, address, there, back, here, width, count) == EK_OK);
			for (uint64_t i = 0; i < count; i++)
				CHECK(memcmp(back + i * here, sent + i * here, width) == 0);
			break;
		}
		default:
			CHECK(ek_gsm_get(a.window, address, back, bytes) == EK_OK);
			CHECK(memcmp(back, mirrored, bytes) == 0);
		}
	}
	/* Blocks of which there are more than a packet holds, to and from every rank. */
	enum { BLOCKS = 700 };
	uint64_t words[BLOCKS], got[2 * BLOCKS];
	struct ek_gsm_counters counted, now;
	for (uint32_t to = 0; to < (uint32_t)ranks; to++) {
		unsigned char *mirrored = mirror + to * (size_t)PART;
		for (int i = 0; i < BLOCKS; i++) {
			words[i] = random_number();
			memcpy(mirrored + 17 * i, &words[i], 8);
		}
		memset(got, 0xff, sizeof got);
		CHECK(ek_gsm_count(a.window, &counted) == EK_OK);
		CHECK(ek_gsm_put_strided(a.window, at(a.window, to, (uint64_t)rank * PART), 17, words, 8, 8, BLOCKS) == EK_OK);
		CHECK(ek_gsm_get_strided(a.window, at(a.window, to, (uint64_t)rank * PART), 17, got, 16, 8, BLOCKS) == EK_OK);
		for (int i = 0; i < BLOCKS; i++)
			CHECK(got[2 * i] == words[i] && got[2 * i + 1] == UINT64_MAX);
		CHECK(ek_gsm_count(a.window, &now) == EK_OK && now.refused == counted.refused);
		CHECK(now.puts == counted.puts + 1 && now.put_bytes == counted.put_bytes + 8 * BLOCKS);
		CHECK(now.gets == counted.gets + 1 && now.get_bytes == counted.get_bytes + 8 * BLOCKS);
		CHECK(ek_gsm_get_strided(a.window, at(a.window, to, a.share - 8), 17, got, 16, 8, 2) == EK_GSM_RANGE);
		CHECK(ek_gsm_count(a.window, &counted) == EK_OK && counted.refused == now.refused + 1 && counted.gets == now.gets);
		/* Two long blocks: what is fetched with its gaps must not be longer than there is room for. */
		const uint64_t whole = sizeof got / 2, apart = PART - whole;
		CHECK(ek_gsm_get_strided(a.window, at(a.window, to, (uint64_t)rank * PART), apart, got, whole, whole, 2) == EK_OK);
		CHECK(memcmp(got, mirrored, whole) == 0 && memcmp(got + BLOCKS, mirrored + apart, whole) == 0);
	}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	for (int from = 0; from < ranks; from++) { /* what everybody wrote, as its target sees it */
		unsigned char *theirs = malloc(PART);
		for (int to = 0; to < ranks; to++) {
			memcpy(theirs, mirror + (size_t)to * PART, PART);
			MPI_Bcast(theirs, PART, MPI_BYTE, from, MPI_COMM_WORLD);
			if (to == rank)
				CHECK(memcmp((char *)a.local + (size_t)from * PART, theirs, PART) == 0);
		}
		free(theirs);
	}
	CHECK(ek_gsm_all_free(&a) == EK_OK);
	free(sent);
	free(back);
	free(mirror);
}

/* ---- atomics --------------------------------------------------------------- */

enum { SUM, TICKET, SWAPPED, COMPARED, PARITY, BITS, FETCHED, LOCK, GUARDED, WORDS };

/* All ranks at the same words of rank 0: nothing may be lost, nothing twice. */
#define ATOMICS(bits)                                                                                               \
	static void atomics##bits(void)                                                                             \
	{                                                                                                           \
		typedef uint##bits##_t word;                                                                        \
		struct ek_gsm_array a, tickets;                                                                     \
		uint64_t total = (uint64_t)rounds * (uint64_t)ranks, sum = 0;                                       \
		word old, sent = 0, received = 0;                                                                   \
		CHECK(ek_gsm_all_allocate(job, (uint64_t)ranks * 4096, 4096, EK_GSM_ALL, &a) == EK_OK);             \
		CHECK(ek_gsm_all_allocate(job, total * 8, 0, EK_GSM_ALL, &tickets) == EK_OK);                       \
		struct ek_gsm_address zero = at(a.window, 0, 0);                                                    \
		for (long i = 0; i < rounds; i++) {                                                                 \
			word mine = (word)((uint64_t)i * (uint64_t)ranks + (uint64_t)rank + 1), bit = (word)1 << rank; \
			CHECK(ek_gsm_add##bits(a.window, at(a.window, 0, 64 * SUM), mine) == EK_OK);                \
			CHECK(ek_gsm_fetch_and_add##bits(a.window, at(a.window, 0, 64 * TICKET), 1, &old) == EK_OK); \
			CHECK(old < total);                                                                         \
			CHECK(ek_gsm_add64(a.window, ek_gsm_array_address(&tickets, (uint64_t)old * 8), 1) == EK_OK); \
			CHECK(ek_gsm_swap##bits(a.window, at(a.window, 0, 64 * SWAPPED), mine, &old) == EK_OK);     \
			sent ^= mine;                                                                               \
			received ^= old;                                                                            \
			CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * COMPARED), &old) == EK_OK);           \
			for (word expected = ~old; expected != old;) {                                              \
				expected = old;                                                                     \
				CHECK(ek_gsm_compare_and_swap##bits(a.window, at(a.window, 0, 64 * COMPARED), expected, \
				                                    expected + 1, &old) == EK_OK);                 \
			}                                                                                           \
			CHECK(ek_gsm_xor##bits(a.window, at(a.window, 0, 64 * PARITY), mine) == EK_OK);             \
			/* Nobody else changes this rank's bit. */                                                  \
			CHECK(ek_gsm_fetch_and_or##bits(a.window, at(a.window, 0, 64 * BITS), bit, &old) == EK_OK); \
			CHECK(!(old & bit));                                                                        \
			CHECK(ek_gsm_fetch_and_and##bits(a.window, at(a.window, 0, 64 * BITS), (word)~bit, &old) == EK_OK); \
			CHECK(old & bit);                                                                           \
			CHECK(ek_gsm_or##bits(a.window, at(a.window, 0, 64 * BITS), bit) == EK_OK);                 \
			CHECK(ek_gsm_fetch_and_xor##bits(a.window, at(a.window, 0, 64 * BITS), bit, &old) == EK_OK); \
			CHECK(old & bit);                                                                           \
			CHECK(ek_gsm_and##bits(a.window, at(a.window, 0, 64 * BITS), (word)~bit) == EK_OK);         \
			/* A lock: what it guards needs no atomics. */                                              \
			old = 1;                                                                                    \
			for (int looks = 0; old; looks++) {                                                         \
				CHECK(ek_gsm_swap##bits(a.window, at(a.window, 0, 64 * LOCK), 1, &old) == EK_OK);   \
				give_way(looks);                                                                    \
			}                                                                                           \
			CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * GUARDED), &old) == EK_OK);            \
			CHECK(ek_gsm_put##bits(a.window, at(a.window, 0, 64 * GUARDED), old + 1) == EK_OK);         \
			CHECK(ek_gsm_fence(a.window) == EK_OK);                                                     \
			CHECK(ek_gsm_and##bits(a.window, at(a.window, 0, 64 * LOCK), 0) == EK_OK);                  \
		}                                                                                                   \
		CHECK(ek_gsm_global_fence(job) == EK_OK);                                                           \
		for (uint64_t i = 0; i < tickets.share / 8; i++) {                                                  \
			CHECK(((uint64_t *)tickets.local)[i] <= 1);                                                 \
			sum += ((uint64_t *)tickets.local)[i];                                                      \
		}                                                                                                   \
		MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);                        \
		CHECK(sum == total); /* every ticket was drawn once */                                             \
		CHECK(ek_gsm_get##bits(a.window, zero, &old) == EK_OK && old == (word)(total * (total + 1) / 2));   \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * TICKET), &old) == EK_OK && old == (word)total); \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * COMPARED), &old) == EK_OK && old == (word)total); \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * GUARDED), &old) == EK_OK && old == (word)total); \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * BITS), &old) == EK_OK && old == 0);           \
		uint64_t both[2] = {sent, received};                                                                \
		MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);                       \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * SWAPPED), &old) == EK_OK);                    \
		CHECK(both[0] == (both[1] ^ old)); /* all that was swapped in came out, or is there */              \
		CHECK(ek_gsm_get##bits(a.window, at(a.window, 0, 64 * PARITY), &old) == EK_OK && old == (word)both[0]); \
		struct ek_gsm_counters counted;                                                                     \
		CHECK(ek_gsm_count(a.window, &counted) == EK_OK);                                                   \
		CHECK(counted.atomics >= (uint64_t)rounds * 12 && counted.fences == (uint64_t)rounds);              \
		CHECK(counted.puts == (uint64_t)rounds && counted.put_bytes == (uint64_t)rounds * bits / 8);        \
		CHECK(ek_gsm_all_free(&tickets) == EK_OK);                                                          \
		CHECK(ek_gsm_all_free(&a) == EK_OK);                                                                \
	}
ATOMICS(64)
ATOMICS(32)

/* ---- order ----------------------------------------------------------------- */

/* Two ranks each write a word and read the other's, with a fence between: not
 * both may read what was there before. And who sees a flag sees what was written
 * before it. */
static void litmus(void)
{
	struct ek_gsm_array a;
	uint64_t *seen = malloc((size_t)rounds * sizeof *seen), *others = malloc((size_t)rounds * sizeof *others);
	uint64_t flag = 0, value = 0;
	if (ranks < 2)
		return;
	CHECK(ek_gsm_all_allocate(job, (uint64_t)ranks * 4096, 4096, EK_GSM_ALL, &a) == EK_OK);
	for (long i = 0; i < rounds && rank < 2; i++) {
		struct ek_gsm_address turn = at(a.window, (uint32_t)(1 - rank), 256);
		CHECK(ek_gsm_put64(a.window, at(a.window, (uint32_t)rank, 0), (uint64_t)i + 1) == EK_OK);
		CHECK(ek_gsm_fence(a.window) == EK_OK);
		CHECK(ek_gsm_get64(a.window, at(a.window, (uint32_t)(1 - rank), 0), &seen[i]) == EK_OK);
		/* A message, and its flag; they also keep the two in step. */
		CHECK(ek_gsm_put64(a.window, at(a.window, (uint32_t)(1 - rank), 128), (uint64_t)i * 3) == EK_OK);
		CHECK(ek_gsm_add64(a.window, turn, 1) == EK_OK);
		for (int looks = 0; flag <= (uint64_t)i; looks++) {
			CHECK(ek_gsm_fetch_and_or64(a.window, at(a.window, (uint32_t)rank, 256), 0, &flag) == EK_OK);
			give_way(looks);
		}
		CHECK(ek_gsm_get64(a.window, at(a.window, (uint32_t)rank, 128), &value) == EK_OK);
		CHECK(value >= (uint64_t)i * 3); /* or a later message */
	}
	if (rank < 2) {
		MPI_Sendrecv(seen, (int)rounds, MPI_UINT64_T, 1 - rank, 0, others, (int)rounds, MPI_UINT64_T, 1 - rank, 0,
		             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (long i = 0; i < rounds; i++)
			CHECK(seen[i] > (uint64_t)i || others[i] > (uint64_t)i);
	}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(ek_gsm_all_free(&a) == EK_OK);
	free(seen);
	free(others);
}

/* ---- what is refused --------------------------------------------------------- */

static void refusals(void)
{
	void *memory, *small;
	struct ek_gsm_window *w, *other, *dummy;
	struct ek_gsm_array a;
	struct ek_gsm_counters counted;
	uint64_t old = 77, refusals = 0;
	char address[64], line[64];
	int done;
	ek_gsm_handle handle, second;
	CHECK(ek_gsm_allocate(job, 2 * EK_GSM_PAGE, &memory) == EK_OK);
	CHECK(ek_gsm_allocate(job, 10, &small) == EK_OK);
	CHECK(ek_gsm_open(job, memory, 2 * EK_GSM_PAGE - 4, EK_GSM_ALL, &w) == EK_OK);
	CHECK(ek_gsm_open(job, small, 10, EK_GSM_GET, &other) == EK_OK);
	struct ek_gsm_address end = ek_gsm_address_of(w, 2 * EK_GSM_PAGE - 8), nobody = {(uint32_t)ranks, 5, 0}, none = {(uint32_t)rank, 0, 0};
	struct ek_gsm_address far = ek_gsm_address_of(w, UINT64_MAX - 3), odd = ek_gsm_address_of(w, 4), get_only = ek_gsm_address_of(other, 0);
	snprintf(address, sizeof address, "at task %d, window %u, offset %d:", rank, w->number, 2 * EK_GSM_PAGE - 8);
	REFUSED(ek_gsm_put64(w, end, 1), EK_GSM_RANGE, "PUT of 8 bytes", address);
	CHECK(strstr(ek_gsm_error(), ": outside of what the window shows: give an offset and a length within what its task opened"));
	REFUSED(ek_gsm_get64(w, end, &old), EK_GSM_RANGE, "GET of 8 bytes", address);
	REFUSED(ek_gsm_add64(w, end, 1), EK_GSM_RANGE, "ADD of 8 bytes", address);
	REFUSED(ek_gsm_compare_and_swap64(w, end, 0, 1, &old), EK_GSM_RANGE, "COMPARE-AND-SWAP of 8 bytes", address);
	REFUSED(ek_gsm_put(w, end, "12345", 5), EK_GSM_RANGE, "PUT of 5 bytes", address);
	CHECK(ek_gsm_put(w, end, "1234", 4) == EK_OK && ek_gsm_put32(w, end, 0) == EK_OK);
	refusals += 5;
	REFUSED(ek_gsm_put64(w, far, 1), EK_GSM_RANGE, "PUT", "offset 18446744073709551612");
	REFUSED(ek_gsm_put(w, far, memory, 2 * EK_GSM_PAGE), EK_GSM_RANGE, "PUT of 8192", "");
	snprintf(address, sizeof address, "window %u, offset 4:", w->number);
	REFUSED(ek_gsm_fetch_and_add64(w, odd, 1, &old), EK_GSM_UNALIGNED, "FETCH-AND-ADD of 8 bytes", address);
	CHECK(ek_gsm_add32(w, odd, 1) == EK_OK && *(uint32_t *)((char *)memory + 4) == 1);
	REFUSED(ek_gsm_xor32(w, ek_gsm_address_of(w, 6), 1), EK_GSM_UNALIGNED, "XOR of 4 bytes", "offset 6");
	struct ek_gsm_window *anywhere;
	CHECK(ek_gsm_open(job, (char *)memory + 61, 64, EK_GSM_ALL, &anywhere) == EK_OK);
	REFUSED(ek_gsm_fetch_and_add64(anywhere, ek_gsm_address_of(anywhere, 0), 1, &old), EK_GSM_UNALIGNED, "FETCH-AND-ADD", "offset 0");
	REFUSED(ek_gsm_update(w, EK_GSM_ADD, 4, ek_gsm_address_of(anywhere, 4), 1, 0, 0), EK_GSM_UNALIGNED, "ADD", "offset 4");
	CHECK(ek_gsm_close(anywhere) == EK_OK);
	CHECK(ek_gsm_put64(w, odd, 5) == EK_OK); /* a PUT need not be aligned */
	snprintf(line, sizeof line, "at task %d, window 5", ranks);
	REFUSED(ek_gsm_put64(w, nobody, 1), EK_GSM_NO_TASK, "PUT", line);
	REFUSED(ek_gsm_swap32(w, nobody, 1, (uint32_t *)&old), EK_GSM_NO_TASK, "SWAP", line);
	REFUSED(ek_gsm_put64(w, none, 1), EK_GSM_NO_WINDOW, "PUT", "window 0");
	REFUSED(ek_gsm_put64(w, get_only, 1), EK_GSM_PROTECTED, "PUT", "offset 0");
	REFUSED(ek_gsm_and64(w, get_only, 1), EK_GSM_PROTECTED, "AND", "offset 0");
	REFUSED(ek_gsm_update(w, (enum ek_gsm_operation)2, 8, odd, 0, 0, 0), EK_GSM_OPERATION, "GET", "offset 4");
	REFUSED(ek_gsm_update(w, (enum ek_gsm_operation)13, 8, odd, 0, 0, 0), EK_GSM_OPERATION, "no operation", "offset 4");
	REFUSED(ek_gsm_update(w, EK_GSM_ADD, 2, odd, 0, 0, 0), EK_GSM_LENGTH, "ADD of 2 bytes", "offset 4");
	REFUSED(ek_gsm_put(w, odd, 0, 1), EK_GSM_LENGTH, "PUT", "offset 4");
	REFUSED(ek_gsm_put_strided(w, odd, 7, memory, 8, 8, 2), EK_GSM_LENGTH, "PUT", "offset 4");
	REFUSED(ek_gsm_put_strided(w, odd, 1ull << 62, memory, 8, 8, 9), EK_GSM_LENGTH, "PUT", "offset 4");
	REFUSED(ek_gsm_put_strided(w, odd, 1ull << 63, memory, 8, 8, 1), EK_GSM_LENGTH, "PUT", "offset 4");
	REFUSED(ek_gsm_get_strided(w, odd, 4096, memory, 8, 8, 3), EK_GSM_RANGE, "GET", "offset 4");
	refusals += 18;
	CHECK(old == 77); /* nothing was read */
	CHECK(ek_gsm_count(w, &counted) == EK_OK && counted.refused == refusals);

	/* Handles. */
	CHECK(ek_gsm_start_put(w, odd, &old, 8, &handle) == EK_OK && ek_gsm_start_get(w, odd, &old, 8, &second) == EK_OK);
	CHECK(handle != second && ek_gsm_wait(w, handle) == EK_OK && ek_gsm_test(w, second, &done) == EK_OK && done);
	REFUSED(ek_gsm_wait(w, handle), EK_GSM_HANDLE, "handle", "window");
	REFUSED(ek_gsm_test(w, second, &done), EK_GSM_HANDLE, "handle", "window");
	CHECK(!done);
	CHECK(ek_gsm_start_put(w, odd, &old, 8, &handle) == EK_OK); /* where the last one was */
	REFUSED(ek_gsm_wait(w, second), EK_GSM_HANDLE, "handle", "window");
	CHECK(ek_gsm_wait(w, handle) == EK_OK);
	REFUSED(ek_gsm_wait(other, 1ull << 32), EK_GSM_HANDLE, "handle 100000000", "window");
	REFUSED(ek_gsm_start_put(w, nobody, &old, 8, &handle), EK_GSM_NO_TASK, "PUT", line);
	CHECK(ek_gsm_start_update(w, EK_GSM_FETCH_AND_ADD, 8, ek_gsm_address_of(w, 8), 1, 0, &old, 0) == EK_OK);

	/* Memory. */
	REFUSED(ek_gsm_free(job, memory), EK_GSM_IN_USE, "freeing", "window");
	REFUSED(ek_gsm_free(job, (char *)memory + 64), EK_GSM_NOT_MEMORY, "freeing", "");
	REFUSED(ek_gsm_free(job, &old), EK_GSM_NOT_MEMORY, "freeing", "");
	REFUSED(ek_gsm_allocate(job, 0, &memory), EK_GSM_LENGTH, "allocating", "");
	REFUSED(ek_gsm_allocate(job, UINT64_MAX, &memory), EK_GSM_NO_MEMORY, "allocating", "EVENKEEL_GSM_RESERVE");
	REFUSED(ek_gsm_open(job, &old, 8, EK_GSM_ALL, &dummy), EK_GSM_NOT_MEMORY, "opening", "");
	REFUSED(ek_gsm_open(job, memory, 1ull << 40, EK_GSM_ALL, &dummy), EK_GSM_NOT_MEMORY, "opening", "");
	REFUSED(ek_gsm_protect(job, memory, 100, 0), EK_GSM_LENGTH, "protecting", "pages");
	CHECK(ek_gsm_protect(job, (char *)memory + EK_GSM_PAGE, EK_GSM_PAGE, EK_GSM_GET) == EK_OK);
	REFUSED(ek_gsm_put64(w, ek_gsm_address_of(w, EK_GSM_PAGE), 9), EK_GSM_PROTECTED, "PUT", "offset 4096");
	CHECK(ek_gsm_put64(w, ek_gsm_address_of(w, EK_GSM_PAGE - 8), 9) == EK_OK);
	CHECK(ek_gsm_get64(w, ek_gsm_address_of(w, EK_GSM_PAGE), &old) == EK_OK && old == 0);

	/* A closed window, its address, its handles, and what takes its place. */
	struct ek_gsm_address stale = ek_gsm_address_of(w, 0);
	CHECK(ek_gsm_start_put(w, stale, &old, 8, &handle) == EK_OK);
	CHECK(ek_gsm_close(w) == EK_OK);
	REFUSED(ek_gsm_put64(other, stale, 1), EK_GSM_NO_WINDOW, "PUT", "offset 0");
	REFUSED(ek_gsm_put64(w, get_only, 1), EK_GSM_CLOSED, "PUT", "offset 0");
	REFUSED(ek_gsm_close(w), EK_GSM_CLOSED, "closing", "");
	REFUSED(ek_gsm_fence(w), EK_GSM_CLOSED, "fence", "");
	REFUSED(ek_gsm_fence(0), EK_GSM_CLOSED, "fence", "");
	REFUSED(ek_gsm_put64(0, stale, 1), EK_GSM_CLOSED, "PUT", "offset 0");
	CHECK(ek_gsm_free(job, memory) == EK_OK);
	REFUSED(ek_gsm_free(job, memory), EK_GSM_NOT_MEMORY, "freeing", "before");
	CHECK(ek_gsm_close(other) == EK_OK && ek_gsm_free(job, small) == EK_OK);
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(ek_gsm_allocate(job, 2 * EK_GSM_PAGE, &memory) == EK_OK && *(uint64_t *)memory == 0);
	CHECK(ek_gsm_open(job, memory, 8, EK_GSM_ALL, &w) == EK_OK && w->number != stale.window);
	REFUSED(ek_gsm_wait(w, handle), EK_GSM_HANDLE, "handle", "window");
	REFUSED(ek_gsm_put64(w, stale, 1), EK_GSM_NO_WINDOW, "PUT", "offset 0");
	CHECK(ek_gsm_close(w) == EK_OK && ek_gsm_free(job, memory) == EK_OK);

	/* Collective calls in which the ranks differ, and none of them hangs. */
	if (ranks > 1) {
		REFUSED(ek_gsm_all_allocate(job, rank ? 100 : 200, 0, EK_GSM_ALL, &a), EK_GSM_UNEQUAL, "array", "");
		REFUSED(ek_gsm_all_allocate(job, 100, 0, rank ? EK_GSM_ALL : EK_GSM_GET, &a), EK_GSM_UNEQUAL, "array", "");
	}
	REFUSED(ek_gsm_all_allocate(job, 0, 0, EK_GSM_ALL, &a), EK_GSM_LENGTH, "array", "");
	REFUSED(ek_gsm_all_allocate(job, 1ull << 62, 0, EK_GSM_ALL, &a), EK_GSM_NO_MEMORY, "array", "");
	CHECK(ek_gsm_all_allocate(job, 128 * (uint64_t)ranks, 0, EK_GSM_ALL, &a) == EK_OK && a.share == 128);
	CHECK(ek_gsm_all_free(&a) == EK_OK);
	CHECK(ek_gsm_all_allocate(job, 1000, 24, EK_GSM_ALL, &a) == EK_OK);
	for (uint64_t byte = 0; byte < 1000; byte++)
		if (byte % 8 == 0)
			CHECK(ek_gsm_fetch_and_add64(a.window, ek_gsm_array_address(&a, byte), 1, &old) == EK_OK);
	REFUSED(ek_gsm_put(a.window, ek_gsm_array_address(&a, 1000), "x", 1), EK_GSM_RANGE, "PUT", "");
	REFUSED(ek_gsm_free(job, a.local), EK_GSM_NOT_MEMORY, "freeing", "");
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	for (uint64_t i = 0; i < a.share / 8; i++)
		CHECK(((uint64_t *)a.local)[i] == (uint64_t)ranks);
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(ek_gsm_all_free(&a) == EK_OK);
	REFUSED(ek_gsm_all_free(&a), EK_GSM_CLOSED, "array", "");
}

/* ---- narrower keys ----------------------------------------------------------- */

/* Ranks of one parity have a key. Windows under it do for them what others do, and
 * refuse everybody else. */
static void narrower_keys(void)
{
	const uint64_t mine = 64 * (uint64_t)rank, words[3] = {11, 12, 13};
	MPI_Comm subset;
	static struct ek_gsm_key *earlier; /* of the job before */
	struct ek_gsm_key *key, *again;
	struct ek_gsm_window *narrow, *wide, *none;
	struct ek_gsm_counters counted;
	ek_gsm_handle handle;
	uint32_t numbers[2], *theirs = malloc((size_t)ranks * sizeof numbers);
	uint64_t old = 0, refusals = 0;
	void *memory;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &subset);
	CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(subset), &key) == EK_OK); /* the others have one of their own, of the same number */
	CHECK(ek_gsm_allocate(job, 2 * EK_GSM_PAGE, &memory) == EK_OK);
	CHECK(ek_gsm_open_under(job, key, memory, EK_GSM_PAGE, EK_GSM_PUT | EK_GSM_ATOMIC, &narrow) == EK_OK);
	CHECK(ek_gsm_open(job, (char *)memory + EK_GSM_PAGE, EK_GSM_PAGE, EK_GSM_ALL, &wide) == EK_OK);
	REFUSED(ek_gsm_open_under(job, key, memory, EK_GSM_PAGE, 8, &none), EK_GSM_OPERATION, "opening", "0x8");
	REFUSED(ek_gsm_open_under(job, 0, memory, EK_GSM_PAGE, EK_GSM_ALL, &none), EK_GSM_KEY, "opening", "has not the key");
	numbers[0] = narrow->number;
	numbers[1] = wide->number;
	MPI_Allgather(numbers, 2, MPI_UINT32_T, theirs, 2, MPI_UINT32_T, MPI_COMM_WORLD);
	for (uint32_t task = 0; task < (uint32_t)ranks; task++) {
		const int friend = (int)task % 2 == rank % 2, wanted = friend ? EK_OK : EK_GSM_KEY;
		struct ek_gsm_address there = {task, theirs[2 * task], mine}, next = there, strided = there, end = there, over = there;
		struct ek_gsm_address ordinary = {task, theirs[2 * task + 1], mine};
		next.offset += 8;
		strided.offset += 16;
		end.offset = EK_GSM_PAGE;
		over.offset = EK_GSM_PAGE - 24; /* the third block is beyond the window */
		CHECK(ek_gsm_put64(narrow, there, 7) == wanted);
		CHECK(ek_gsm_fetch_and_add64(narrow, next, 1, &old) == wanted);
		CHECK(friend || strstr(ek_gsm_error(), "FETCH-AND-ADD of 8 bytes"));
		CHECK(ek_gsm_put_strided(narrow, strided, 16, words, 8, 8, 3) == wanted);
		CHECK(ek_gsm_put64(narrow, ordinary, 8) == wanted);
		REFUSED(ek_gsm_start_put(narrow, there, 0, 4, &handle), EK_GSM_LENGTH, "PUT of 4 bytes", "");
		REFUSED(ek_gsm_start_get(narrow, there, 0, 4, &handle), EK_GSM_LENGTH, "GET of 4 bytes", "");
		if (ek_gsm_start_put(narrow, there, words, 4, &handle) == EK_OK)
			CHECK(friend && ek_gsm_wait(narrow, handle) == EK_OK);
		else
			CHECK(!friend && strstr(ek_gsm_error(), "narrower key"));
		if (friend) {
			CHECK(ek_gsm_put64(narrow, there, 7) == EK_OK);
			REFUSED(ek_gsm_get64(narrow, there, &old), EK_GSM_PROTECTED, "GET of 8 bytes", "protection");
			REFUSED(ek_gsm_put64(narrow, end, 1), EK_GSM_RANGE, "PUT of 8 bytes", "offset 4096");
			REFUSED(ek_gsm_put_strided(narrow, end, 16, words, 8, 8, 3), EK_GSM_RANGE, "PUT of 8 bytes", "offset 4096");
			REFUSED(ek_gsm_put_strided(narrow, over, 16, words, 8, 8, 3), EK_GSM_RANGE, "PUT of 8 bytes", "offset 4072");
		}
		refusals += friend ? 6 : 7;
		CHECK(ek_gsm_count(narrow, &counted) == EK_OK && counted.refused == refusals);
		REFUSED(ek_gsm_put64(wide, there, 9), EK_GSM_KEY, "PUT of 8 bytes", "narrower key");
		REFUSED(ek_gsm_add64(wide, next, 1), EK_GSM_KEY, "ADD of 8 bytes", "narrower key");
		CHECK(ek_gsm_put64(wide, ordinary, 5) == EK_OK);
	}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	for (int task = 0; task < ranks; task++) {
		const uint64_t *word = (const uint64_t *)memory + 8 * task;
		const uint64_t expected[8] = {7, 1, 11, 0, 12, 0, 13, 0}, nothing[8] = {0};
		CHECK(memcmp(word, task % 2 == rank % 2 ? expected : nothing, sizeof expected) == 0);
		CHECK(memcmp((const char *)memory + EK_GSM_PAGE - sizeof nothing, nothing, sizeof nothing) == 0);
	}
	CHECK(ek_gsm_protect(job, memory, EK_GSM_PAGE, EK_GSM_GET) == EK_OK);
	REFUSED(ek_gsm_put64(narrow, ek_gsm_address_of(narrow, 0), 1), EK_GSM_PROTECTED, "PUT", "offset 0");
	CHECK(ek_gsm_protect(job, memory, EK_GSM_PAGE, EK_GSM_ALL) == EK_OK);
	CHECK(ek_gsm_global_fence(job) == EK_OK);

	/* A key that was dropped opens nothing, for its task and at it. */
	if (rank == 0)
		CHECK(ek_gsm_key_drop(key) == EK_OK);
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	struct ek_gsm_address first = {0, theirs[0], 0};
	if (rank % 2 == 0 && rank > 0 && ek_gsm_same_node(job, 0))
		REFUSED(ek_gsm_put64(narrow, first, 1), EK_GSM_KEY, "PUT", "narrower key");
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	if (rank == 0) {
		REFUSED(ek_gsm_put64(narrow, first, 1), EK_GSM_KEY, "PUT", "narrower key");
		REFUSED(ek_gsm_key_drop(key), EK_GSM_CLOSED, "dropping", "has not the key");
		REFUSED(ek_gsm_open_under(job, key, memory, 8, EK_GSM_ALL, &none), EK_GSM_KEY, "opening", "has not the key");
	} else {
		CHECK(ek_gsm_key_drop(key) == EK_OK);
	}
	CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(subset), &again) == EK_OK && again != key);
	if (earlier) {
		REFUSED(ek_gsm_open_under(job, earlier, memory, 8, EK_GSM_ALL, &none), EK_GSM_KEY, "opening", "has not the key");
		REFUSED(ek_gsm_key_drop(earlier), EK_GSM_CLOSED, "dropping", "");
		CHECK(ek_gsm_key_drop(again) == EK_OK);
	}
	earlier = again;
	CHECK(ek_gsm_close(narrow) == EK_OK && ek_gsm_close(wide) == EK_OK && ek_gsm_free(job, memory) == EK_OK);
	MPI_Comm_free(&subset);
	free(theirs);
}

int main(int argc, char **argv)
{
	struct ek_gsm *early;
	void *memory;
	struct ek_gsm_window *w;
	if (argc > 1)
		seed = strtoull(argv[1], 0, 10);
	if (argc > 2)
		rounds = atol(argv[2]);
	CHECK(ek_gsm_join(0, &early) == EK_INACTIVE);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	node_ranks = argc > 3 ? atoi(argv[3]) : ranks;
	seed = seed * 1000003 + (uint64_t)rank + 1;
	for (int life = 0; life < 2; life++) { /* two jobs, one after the other */
		CHECK(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job) == EK_OK);
		CHECK(ek_gsm_task(job) == (uint32_t)rank && ek_gsm_tasks(job) == (uint32_t)ranks);
		for (int task = 0; task < ranks; task++)
			CHECK(ek_gsm_same_node(job, (uint32_t)task) == (task / node_ranks == rank / node_ranks));
		CHECK(!ek_gsm_same_node(job, (uint32_t)ranks));
		transfers();
		atomics64();
		atomics32();
		litmus();
		refusals();
		narrower_keys();
		CHECK(ek_gsm_allocate(job, 8, &memory) == EK_OK && ek_gsm_open(job, memory, 8, EK_GSM_ALL, &w) == EK_OK);
		CHECK(ek_gsm_leave(job) == EK_OK);
		REFUSED(ek_gsm_put64(w, ek_gsm_address_of(w, 0), 1), EK_GSM_CLOSED, "PUT", "offset 0");
		REFUSED(ek_gsm_allocate(job, 8, &memory), EK_GSM_CLOSED, "allocating", "");
		REFUSED(ek_gsm_leave(job), EK_GSM_CLOSED, "leaving", "");
	}
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
