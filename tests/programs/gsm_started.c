/* gsm_started.c - commands that are started and end later, from C.
 *
 *	mpirun -np N gsm_started traffic SEED ROUNDS: commands with and without
 *		handles between all pairs of ranks, from two threads of each, whose
 *		memories and counts must be right in the end, and some that are refused
 *	mpirun -np 3 gsm_started dead SIGNAL: rank 1 sends itself this signal. The others
 *		get errors for what goes to it, and for nothing else
 *	mpirun -np 2 gsm_started edges: what is started goes on by itself, in memory that
 *		does not grow, of two windows the fence of each tells its own errors, old
 *		handles stay old, arrays are freed whatever failed before, transfers of nothing are none, a forked child is refused, and
 *		keys stay apart
 *
 * Prints "ok" on rank 0. Linked to libevenkeel.
 */
#define _DEFAULT_SOURCE
#include <evenkeel.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, UNDER_WAY = 40, BLOCK = 3000 };

static int rank, ranks;
static unsigned long seed;
static long rounds;
static struct ek_gsm *job;
static struct ek_gsm_array array; /* a word that all add to, then a block for each thread of each rank, from PART on */

#define CHECK(condition)                                                                                      \
	do {                                                                                                  \
		if (!(condition)) {                                                                           \
			fprintf(stderr, "gsm_started.c:%d: rank %d, seed %lu: %s\n%s\n", __LINE__, rank, seed,  \
			        #condition, ek_gsm_error());                                                  \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                         \
		}                                                                                             \
	} while (0)

/* ---- traffic ---------------------------------------------------------------- */

/* A command under way. */
struct under_way {
	ek_gsm_handle handle;
	int used, refused;
	uint32_t to;
	uint64_t offset, bytes, old;
	unsigned char *data, *expected; /* of a GET */
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static struct ek_gsm_address at(uint32_t task, uint64_t offset)
{
	struct ek_gsm_address address = ek_gsm_address_of(array.window, offset);
	address.task = task;
	return address;
}

static void end(struct ek_gsm_window *w, struct under_way *u, int wait)
{
	int done = 0, result;
	if (!u->used)
		return;
	if (wait)
		result = ek_gsm_wait(w, u->handle);
	else
		for (result = EK_OK; result == EK_OK && !done;)
			result = ek_gsm_test(w, u->handle, &done);
	CHECK(wait || done);
	CHECK(result == (u->refused ? EK_GSM_RANGE : EK_OK));
	CHECK(!u->refused || strstr(ek_gsm_error(), "PUT of 2 bytes at task"));
	CHECK(ek_gsm_wait(w, u->handle) == EK_GSM_HANDLE);
	if (u->expected)
		CHECK(memcmp(u->data, u->expected, u->bytes) == 0);
	free(u->data);
	free(u->expected);
	memset(u, 0, sizeof *u);
}

/* Each thread writes into a block of its own at every rank, and knows what is there. */
static void *traffic(void *number)
{
	const int thread = *(int *)number;
	const uint64_t block = 64 + (uint64_t)(rank * THREADS + thread) * BLOCK;
	uint64_t random = seed * 7919 + (uint64_t)(rank * THREADS + thread) + 1, added = 0;
	unsigned char *mirror = calloc((size_t)ranks, BLOCK);
	struct under_way all[UNDER_WAY] = {{0}};
	struct ek_gsm_window *w;
	struct ek_gsm_counters counted;
	uint64_t expected_refusals = 0;
	CHECK(ek_gsm_open(job, 0, 0, 0, &w) == EK_OK);
	for (long i = 0; i < rounds; i++) {
		struct under_way *u = &all[next(&random) % UNDER_WAY];
		uint32_t to = (uint32_t)(next(&random) % (unsigned)ranks);
		uint64_t offset = next(&random) % BLOCK, bytes = next(&random) % (BLOCK - offset);
		end(w, u, next(&random) % 2);
		/* PUTs and GETs have no order: what overlaps has to end before. */
		for (int other = 0; other < UNDER_WAY; other++)
			if (all[other].to == to && all[other].offset < offset + bytes && offset < all[other].offset + all[other].bytes)
				end(w, &all[other], 1);
		*u = (struct under_way){.used = 1, .to = to, .offset = offset, .bytes = bytes, .data = malloc(bytes + 1)};
		switch (next(&random) % 6) {
		case 0:
		case 1:
			for (uint64_t b = 0; b < bytes; b++)
				u->data[b] = (unsigned char)next(&random);
			memcpy(mirror + to * (size_t)BLOCK + offset, u->data, bytes);
			CHECK(ek_gsm_start_put(w, at(to, block + offset), u->data, bytes, &u->handle) == EK_OK);
			break;
		case 2:
			u->expected = malloc(bytes + 1);
			memcpy(u->expected, mirror + to * (size_t)BLOCK + offset, bytes);
			CHECK(ek_gsm_start_get(w, at(to, block + offset), u->data, bytes, &u->handle) == EK_OK);
			break;
		case 3:
			u->bytes = 0;
			CHECK(ek_gsm_start_update(w, EK_GSM_FETCH_AND_ADD, 8, at(to, 0), 1, 0, &u->old, &u->handle) == EK_OK);
			added++;
			break;
		case 4: /* without a handle */
			u->bytes = 0;
			CHECK(ek_gsm_start_update(w, EK_GSM_ADD, 8, at(to, 0), 1, 0, 0, 0) == EK_OK);
			free(u->data);
			u->used = 0;
			added++;
			break;
		default: /* refused, there or at once */
			u->bytes = 0;
			u->refused = 1;
			u->used = ek_gsm_start_put(w, at(to, array.share - 1), "ab", 2, &u->handle) == EK_OK;
			CHECK(u->used == !ek_gsm_same_node(job, to));
			if (!u->used)
				free(u->data);
			expected_refusals++;
		}
	}
	/* One without a handle that is refused is told by the next fence, once. */
	uint32_t far = 0;
	while (far < (uint32_t)ranks && ek_gsm_same_node(job, far))
		far++;
	if (far < (uint32_t)ranks) {
		CHECK(ek_gsm_start_put(w, at(far, array.share - 1), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_fence(w) == EK_GSM_RANGE && strstr(ek_gsm_error(), "PUT of 2 bytes at task"));
		expected_refusals++;
	}
	CHECK(ek_gsm_fence(w) == EK_OK);
	for (int i = 0; i < UNDER_WAY; i++)
		end(w, &all[i], i % 2);
	CHECK(ek_gsm_count(w, &counted) == EK_OK && counted.refused == expected_refusals && counted.atomics == added);
	for (uint32_t to = 0; to < (uint32_t)ranks; to++) {
		unsigned char back[BLOCK];
		CHECK(ek_gsm_get(w, at(to, block), back, BLOCK) == EK_OK);
		CHECK(memcmp(back, mirror + to * (size_t)BLOCK, BLOCK) == 0);
	}
	CHECK(ek_gsm_close(w) == EK_OK);
	free(mirror);
	*(int *)number = (int)added;
	return 0;
}

static void traffic_of_threads(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];
	uint64_t added = 0, there = 0;
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&threads[i], 0, traffic, &numbers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		added += (uint64_t)numbers[i];
	}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	there = *(uint64_t *)array.local;
	MPI_Allreduce(MPI_IN_PLACE, &added, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	CHECK(added == there); /* each atomic once */
	CHECK(ek_gsm_all_free(&array) == EK_OK);
	CHECK(ek_gsm_leave(job) == EK_OK);
	MPI_Finalize();
}

/* ---- a dead partner ----------------------------------------------------------- */

/* Whether a process has ended, or stopped. */
static int is_away(pid_t process)
{
	char path[64], line[256] = "", *after;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
	FILE *f = fopen(path, "r");
	if (!f)
		return 1;
	if (!fgets(line, sizeof line, f))
		line[0] = 0;
	fclose(f);
	after = strrchr(line, ')');
	return !after || strchr("TZX", after[2]);
}

static void dead(int number)
{
	struct ek_gsm_window *w = array.window;
	uint64_t old = 7, others = 0;
	ek_gsm_handle handle;
	int done = 0, result;
	pid_t own = getpid(), all[3];
	char big[100000] = "";
	CHECK(ek_gsm_put64(w, at(1, 64), 5) == EK_OK);
	MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1) {
		raise(number);
		pause();
	}
	while (!is_away(all[1]))
		usleep(1000);
	CHECK(ek_gsm_start_put(w, at(1, 64), big, array.share - 64, &handle) == EK_OK);
	CHECK(ek_gsm_start_put(w, at(1, 64), "more", 4, 0) == EK_OK);
	for (result = EK_OK; result == EK_OK && !done;) {
		CHECK(ek_gsm_add64(w, at(2 - (uint32_t)rank, 0), 1) == EK_OK); /* others are well */
		others++;
		result = ek_gsm_test(w, handle, &done);
	}
	CHECK(result == EK_GSM_SILENT && strstr(ek_gsm_error(), "at task 1, window"));
	CHECK(ek_gsm_fence(w) == EK_GSM_SILENT);
	/* Nobody fences: what may be under way is bounded, and starting the last of it waits. The error is the fence's. */
	struct ek_gsm_counters before, counted;
	CHECK(ek_gsm_count(w, &before) == EK_OK);
	for (int started = 0; started < 1024; started++)
		CHECK(ek_gsm_start_put(w, at(1, 64), "more", 4, 0) == EK_OK);
	CHECK(ek_gsm_count(w, &counted) == EK_OK && counted.refused == before.refused + 1024);
	CHECK(ek_gsm_fence(w) == EK_GSM_SILENT && strstr(ek_gsm_error(), "PUT of 4 bytes at task 1, window"));
	CHECK(ek_gsm_fetch_and_add64(w, at(1, 0), 1, &old) == EK_GSM_SILENT && old == 7);
	CHECK(ek_gsm_fence(w) == EK_OK);
	if (rank == 2) { /* rank 0 goes on until it hears that this one is ready */
		CHECK(ek_gsm_put64(w, at(0, 128), others) == EK_OK);
		pause();
	}
	while (!__atomic_load_n((uint64_t *)array.local + 16, __ATOMIC_ACQUIRE))
		;
	CHECK(*(uint64_t *)array.local == ((uint64_t *)array.local)[16]);
	puts("ok");
	fflush(stdout);
	for (int other = 1; other < ranks; other++)
		kill(all[other], SIGKILL);
	_exit(0);
}

/* ---- edges -------------------------------------------------------------------- */

static long resident_pages(void)
{
	long whole, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%ld %ld", &whole, &resident) == 2);
	fclose(f);
	return resident;
}

/* So many commands of a few under way each, with and without handles. */
static void many(long commands)
{
	static uint64_t words[8];
	ek_gsm_handle handles[8];
	for (long i = 0; i < commands; i += 16) {
		for (int k = 0; k < 8; k++) {
			CHECK(ek_gsm_start_put(array.window, at(1, 128), &words[k], 8, &handles[k]) == EK_OK);
			CHECK(ek_gsm_start_put(array.window, at(1, 128), &words[k], 8, 0) == EK_OK);
		}
		CHECK(ek_gsm_fence(array.window) == EK_OK);
		for (int k = 0; k < 8; k++)
			CHECK(ek_gsm_wait(array.window, handles[k]) == EK_OK);
	}
}

/* A handle that was freed does not stand for the command that has its place now. */
static void old_handles(void)
{
	static const uint64_t word = 3;
	ek_gsm_handle first, second;
	int done = 1;
	CHECK(ek_gsm_start_put(array.window, at(1, 128), &word, 8, &first) == EK_OK);
	CHECK(ek_gsm_wait(array.window, first) == EK_OK);
	CHECK(ek_gsm_start_put(array.window, at(1, 128), &word, 8, &second) == EK_OK && second != first);
	CHECK(ek_gsm_wait(array.window, first) == EK_GSM_HANDLE);
	CHECK(ek_gsm_test(array.window, first, &done) == EK_GSM_HANDLE && !done);
	CHECK(ek_gsm_wait(array.window, second) == EK_OK);
}

static void in_a_child(void)
{
	ek_gsm_handle handle;
	int status = 1;
	CHECK(ek_gsm_start_put(array.window, at(1, 128), "word", 4, &handle) == EK_OK);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		uint64_t word = 0;
		_exit(ek_gsm_put64(array.window, at(1, 128), 1) == EK_GSM_UNREACHABLE &&
		      ek_gsm_get_strided(array.window, at(1, 0), 9000, &word, 4, 4, 2) == EK_GSM_UNREACHABLE ? 0 : 3);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(ek_gsm_wait(array.window, handle) == EK_OK); /* the parent's goes on */
	CHECK(ek_gsm_put64(array.window, at(1, 128), 2) == EK_OK);
}

/* Two keys at once lead to their own windows; one that is dropped leaves the other
 * alone; and numbers of keys are never used again, so a task may have had so many. */
static void keys(void)
{
	enum { KEYS = 2, MOST = 65535 };
	const uint32_t other = 1 - (uint32_t)rank;
	struct ek_gsm_key *key[KEYS], *one;
	struct ek_gsm_window *narrow[KEYS];
	uint32_t mine[KEYS], numbers[2 * KEYS];
	void *memory;
	CHECK(ek_gsm_allocate(job, 8 * KEYS, &memory) == EK_OK);
	for (int k = 0; k < KEYS; k++) {
		CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(MPI_COMM_WORLD), &key[k]) == EK_OK);
		CHECK(ek_gsm_open_under(job, key[k], (uint64_t *)memory + k, 8, EK_GSM_ALL, &narrow[k]) == EK_OK);
		mine[k] = narrow[k]->number;
	}
	MPI_Allgather(mine, KEYS, MPI_UINT32_T, numbers, KEYS, MPI_UINT32_T, MPI_COMM_WORLD);
	for (int from = 0; from < KEYS; from++)
		for (int to = 0; to < KEYS; to++) {
			const struct ek_gsm_address there = {other, numbers[KEYS * other + (uint32_t)to], 0};
			CHECK(ek_gsm_add64(narrow[from], there, 1 + (uint64_t)from) == (from == to ? EK_OK : EK_GSM_KEY));
		}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(ek_gsm_key_drop(key[0]) == EK_OK);
	const struct ek_gsm_address second = {other, numbers[KEYS * other + 1], 0};
	CHECK(ek_gsm_add64(narrow[0], second, 1) == EK_GSM_KEY);
	CHECK(ek_gsm_add64(narrow[1], second, 5) == EK_OK);
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(((uint64_t *)memory)[0] == 1 && ((uint64_t *)memory)[1] == 2 + 5);
	CHECK(ek_gsm_close(narrow[0]) == EK_OK && ek_gsm_close(narrow[1]) == EK_OK && ek_gsm_key_drop(key[1]) == EK_OK);
	CHECK(ek_gsm_free(job, memory) == EK_OK);
	if (rank == 0) {
		for (int k = KEYS; k < MOST; k++)
			CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(MPI_COMM_SELF), &one) == EK_OK && ek_gsm_key_drop(one) == EK_OK);
		CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(MPI_COMM_SELF), &one) == EK_GSM_NO_MEMORY);
		CHECK(strstr(ek_gsm_error(), "some task has had 65535 keys"));
	}
	CHECK(ek_gsm_narrow(job, MPI_Comm_c2f(MPI_COMM_WORLD), &one) == EK_GSM_NO_MEMORY); /* at all, if one can't */
}

/* What failed of earlier commands is told, but keeps nobody from allocating and
 * freeing; and the commands of all have ended before memory is gone. */
static void collectives(void)
{
	static char data[1 << 20];
	struct ek_gsm_array one, other;
	struct ek_gsm_address there;
	CHECK(ek_gsm_all_allocate(job, 128, 64, EK_GSM_ALL, &one) == EK_OK);
	there = (struct ek_gsm_address){1, one.window->number, 64};
	CHECK(rank == 1 || ek_gsm_start_put(one.window, there, "a", 1, 0) == EK_OK);
	CHECK(ek_gsm_all_allocate(job, 128, 64, EK_GSM_ALL, &other) == EK_OK);
	CHECK(ek_gsm_fence(one.window) == (rank == 0 ? EK_GSM_RANGE : EK_OK));
	CHECK(rank == 1 || ek_gsm_start_put(one.window, there, "a", 1, 0) == EK_OK);
	CHECK(ek_gsm_all_free(&one) == (rank == 0 ? EK_GSM_RANGE : EK_OK));
	CHECK(ek_gsm_all_free(&one) == EK_GSM_CLOSED);
	CHECK(ek_gsm_all_free(&other) == EK_OK);
	for (int i = 0; i < 20; i++) {
		CHECK(ek_gsm_all_allocate(job, 2 * sizeof data, sizeof data, EK_GSM_ALL, &one) == EK_OK);
		there = (struct ek_gsm_address){1, one.window->number, 0};
		CHECK(rank == 1 || ek_gsm_start_put(one.window, there, data, sizeof data, 0) == EK_OK);
		CHECK(ek_gsm_all_free(&one) == EK_OK);
	}
}

static void edges(void)
{
	volatile uint64_t *flag = (uint64_t *)array.local + 8;
	char told = 0, blocks[16];
	struct ek_gsm_counters counted;
	struct ek_gsm_window *other;
	CHECK(ranks == 2 && !ek_gsm_same_node(job, 1 - (uint32_t)rank));
	/* Nothing of the library is called until the other rank has seen it. */
	static const uint64_t sent = 77;
	usleep(20000); /* the Go side sleeps by now */
	if (rank == 0) {
		CHECK(ek_gsm_start_put(array.window, at(1, 64), &sent, 8, 0) == EK_OK);
		PMPI_Recv(&told, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		while (*flag != sent)
			usleep(100);
		PMPI_Send(&told, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	if (rank == 0) {
		CHECK(ek_gsm_open(job, 0, 0, 0, &other) == EK_OK);
		/* An error is told by the fence of its window, or by the global one, and once. */
		CHECK(ek_gsm_start_put(other, at(1, array.share - 1), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_start_put(other, at(1, 128), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_fence(array.window) == EK_OK);
		CHECK(ek_gsm_fence(other) == EK_GSM_RANGE);
		CHECK(ek_gsm_fence(other) == EK_OK);
		CHECK(ek_gsm_start_put(other, at(1, 128), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_start_put(other, at(1, array.share - 1), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_fence(other) == EK_GSM_RANGE); /* whichever was first */
		/* A start that waits for room leaves it to the fence. */
		CHECK(ek_gsm_start_put(other, at(1, array.share - 1), "ab", 2, 0) == EK_OK);
		for (int i = 1; i < 1024; i++)
			CHECK(ek_gsm_start_put(other, at(1, 128), "abc", 3, 0) == EK_OK);
		CHECK(ek_gsm_start_put(other, at(1, 128), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_fence(other) == EK_GSM_RANGE && strstr(ek_gsm_error(), "PUT of 2 bytes at task 1, window"));
		CHECK(ek_gsm_start_put(array.window, at(1, array.share - 1), "ab", 2, 0) == EK_OK);
		CHECK(ek_gsm_start_put(other, at(1, 128), "ab", 2, 0) == EK_OK);
	}
	CHECK(ek_gsm_global_fence(job) == (rank == 0 ? EK_GSM_RANGE : EK_OK));
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	if (rank == 0) {
		for (uint32_t task = 0; task < 2; task++) {
			/* Transfers of nothing are counted as others are, need no memory, and lie in the window. */
			CHECK(ek_gsm_put_strided(other, at(task, 64), 16, 0, 8, 8, 0) == EK_OK);
			CHECK(ek_gsm_put_strided(other, at(task, 64), 16, 0, 8, 0, 3) == EK_OK);
			CHECK(ek_gsm_get_strided(other, at(task, 64), 16, 0, 8, 0, 3) == EK_OK);
			CHECK(ek_gsm_put_strided(other, at(task, array.share + 1), 16, blocks, 8, 8, 0) == EK_GSM_RANGE);
			CHECK(ek_gsm_get_strided(other, at(task, array.share + 1), 16, blocks, 8, 0, 3) == EK_GSM_RANGE);
		}
		/* What is refused at another node has gone out and is counted; on one's own it has not. */
		CHECK(ek_gsm_count(other, &counted) == EK_OK && counted.puts == 5 + 1025 + 2 * 2 + 1 && counted.gets == 2 + 1);
		CHECK(ek_gsm_close(other) == EK_OK);
		old_handles();
		many(20000);
		long before = resident_pages();
		many(100000);
		CHECK(resident_pages() < before + 2048);
		in_a_child();
	}
	collectives();
	keys();
	CHECK(ek_gsm_global_fence(job) == EK_OK);
	CHECK(rank == 0 || (*flag == sent && ((uint64_t *)array.local)[16] == 2));
	CHECK(ek_gsm_all_free(&array) == EK_OK);
	CHECK(ek_gsm_leave(job) == EK_OK);
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	seed = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
	rounds = argc > 3 ? atol(argv[3]) : 1000;
	CHECK(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job) == EK_OK);
	const uint64_t share = 64 + (uint64_t)ranks * THREADS * BLOCK;
	CHECK(ek_gsm_all_allocate(job, (uint64_t)ranks * share, share, EK_GSM_ALL, &array) == EK_OK);
	if (strcmp(argv[1], "dead") == 0)
		dead(atoi(argv[2]));
	if (strcmp(argv[1], "edges") == 0)
		edges();
	else
		traffic_of_threads();
	if (rank == 0)
		puts("ok");
	return 0;
}
