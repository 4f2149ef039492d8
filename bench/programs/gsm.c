/* gsm.c - what it takes to reach another rank's memory on the same node.
 *
 *	mpirun -np 2 gsm [TURNS]
 *
 * Rank 0 reaches rank 1's memory: by evenkeel's global shared memory, by Open
 * MPI's one-sided calls with a flush after each, and as the processor does it in
 * a loop without any check. All take turns, and the median of each is printed:
 * a name and a figure a line, in nanoseconds, or GB/s where the name ends so.
 *
 * The window is MPI_Win_allocate_shared's, the fastest that Open MPI has on a
 * node: 64-bit MPI_Compare_and_swap crashes on MPI_Win_allocate's.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 512, LARGE = 1 << 20, BLOCKS = 4096, STRIDE = 16, MOST = 64 };

static struct ek_gsm_window *window;
static struct ek_gsm_address target; /* rank 1's memory, */
static char *mapped;                /* and where it is mapped here */
static char *here;
static MPI_Win win;
static MPI_Datatype blocks;
static long failed;

static inline void barrier_of_compiler(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline struct ek_gsm_address word(struct ek_gsm_address a, uint64_t offset)
{
	a.offset = offset;
	return a;
}

static inline uint64_t *raw(char *to, uint64_t offset)
{
	return (uint64_t *)(void *)(to + offset);
}

/* What a program has at hand is in registers. */
#define LOOP(name, statement)                                          \
	static void name(long n)                                       \
	{                                                              \
		struct ek_gsm_window *w = window;                      \
		struct ek_gsm_address there = target;                  \
		char *to = mapped;                                     \
		uint64_t value = 0;                                    \
		int refused = 0;                                       \
		(void)w, (void)there, (void)to, (void)value;           \
		for (long i = 0; i < n; i++) {                         \
			uint64_t at = 8 * ((uint64_t)i % WORDS);       \
			(void)at;                                      \
			statement;                                     \
		}                                                      \
		failed |= refused;                                     \
	}

LOOP(put_ours, refused |= ek_gsm_put64(w, word(there, at), (uint64_t)i))
LOOP(put_raw, __atomic_store_n(raw(to, at), (uint64_t)i, __ATOMIC_RELAXED))
LOOP(put_mpi, MPI_Put(&value, 1, MPI_UINT64_T, 1, (MPI_Aint)at, 1, MPI_UINT64_T, win); MPI_Win_flush(1, win))
LOOP(get_ours, refused |= ek_gsm_get64(w, word(there, at), &value); barrier_of_compiler())
LOOP(get_raw, value = __atomic_load_n(raw(to, at), __ATOMIC_RELAXED); barrier_of_compiler())
LOOP(get_mpi, MPI_Get(&value, 1, MPI_UINT64_T, 1, (MPI_Aint)at, 1, MPI_UINT64_T, win); MPI_Win_flush(1, win))
LOOP(add_ours, refused |= ek_gsm_fetch_and_add64(w, there, 1, &value))
LOOP(add_raw, value = __atomic_fetch_add(raw(to, 0), 1, __ATOMIC_SEQ_CST))
static const uint64_t one = 1;
LOOP(add_mpi, MPI_Fetch_and_op(&one, &value, MPI_UINT64_T, 1, 0, MPI_SUM, win); MPI_Win_flush(1, win))
LOOP(cas_ours, refused |= ek_gsm_compare_and_swap64(w, there, value, value + 1, &value))
LOOP(cas_raw, __atomic_compare_exchange_n(raw(to, 0), &value, value + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
static uint64_t next;
LOOP(cas_mpi, next = value + 1; MPI_Compare_and_swap(&next, &value, &value, MPI_UINT64_T, 1, 0, win); MPI_Win_flush(1, win))
LOOP(large_ours, refused |= ek_gsm_put(w, there, here, LARGE))
LOOP(large_raw, memcpy(to, here, LARGE); barrier_of_compiler())
LOOP(large_mpi, MPI_Put(here, LARGE, MPI_BYTE, 1, 0, LARGE, MPI_BYTE, win); MPI_Win_flush(1, win))
LOOP(strided_ours, refused |= ek_gsm_put_strided(w, there, STRIDE, here, 8, 8, BLOCKS))
LOOP(strided_mpi, MPI_Put(here, 8 * BLOCKS, MPI_BYTE, 1, 0, 1, blocks, win); MPI_Win_flush(1, win))
static void strided_raw(long n)
{
	for (long i = 0; i < n; i++) {
		const uint64_t *from = (const uint64_t *)(const void *)here;
		uint64_t *to = (uint64_t *)(void *)mapped;
		for (int k = 0; k < BLOCKS; k++)
			to[k * (STRIDE / 8)] = from[k];
		barrier_of_compiler();
	}
}

static const struct way {
	const char *name;
	void (*loop)(long);
	long times;
	long bytes; /* 0: the figure is nanoseconds each */
} ways[] = {
	{"put.ours", put_ours, 2000000, 0},   {"put.mpi", put_mpi, 200000, 0},     {"put.raw", put_raw, 2000000, 0},
	{"get.ours", get_ours, 2000000, 0},   {"get.mpi", get_mpi, 200000, 0},     {"get.raw", get_raw, 2000000, 0},
	{"add.ours", add_ours, 500000, 0},    {"add.mpi", add_mpi, 100000, 0},     {"add.raw", add_raw, 500000, 0},
	{"cas.ours", cas_ours, 500000, 0},    {"cas.mpi", cas_mpi, 100000, 0},     {"cas.raw", cas_raw, 500000, 0},
	{"large.ours", large_ours, 100, LARGE}, {"large.mpi", large_mpi, 100, LARGE}, {"large.raw", large_raw, 100, LARGE},
	{"strided.ours", strided_ours, 400, 8 * BLOCKS}, {"strided.mpi", strided_mpi, 400, 8 * BLOCKS},
	{"strided.raw", strided_raw, 400, 8 * BLOCKS},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double figure(const struct way *w)
{
	double begin = MPI_Wtime();
	w->loop(w->times);
	double each = (MPI_Wtime() - begin) / (double)w->times;
	return w->bytes ? (double)w->bytes / each / 1e9 : each * 1e9;
}

/* Half a round trip of 8 bytes between the ranks. */
static double pingpong(int rank)
{
	const int times = 20000;
	uint64_t message = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	for (int i = 0; i < times; i++) {
		if (rank == 0)
			MPI_Send(&message, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&message, 1, MPI_UINT64_T, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(&message, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - begin) / times / 2 * 1e9;
}

static void check(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "%s\n", ek_gsm_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	static double figures[WAYS][MOST], trips[MOST];
	int rank, turns = argc > 1 ? atoi(argv[1]) : 7;
	struct ek_gsm *job;
	struct ek_gsm_array array;
	char *shared;
	if (turns < 1 || turns > MOST)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	check(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job));
	check(ek_gsm_all_allocate(job, 2 * LARGE, LARGE, EK_GSM_ALL, &array));
	window = array.window;
	target = ek_gsm_array_address(&array, LARGE);
	MPI_Win_allocate_shared(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win);
	memset(shared, 0, LARGE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Type_vector(BLOCKS, 8, STRIDE, MPI_BYTE, &blocks);
	MPI_Type_commit(&blocks);
	mapped = (char *)ek_gsm_word(window, target, EK_GSM_PUTTING, 3);
	here = malloc(LARGE);
	memset(here, 1, LARGE);
	for (int turn = -1; turn < turns; turn++) { /* the first one warms up */
		double trip = pingpong(rank);
		for (int w = 0; w < WAYS && rank == 0; w++) {
			double taken = figure(&ways[w]);
			if (turn >= 0)
				figures[w][turn] = taken;
		}
		if (turn >= 0)
			trips[turn] = trip;
	}
	if (rank == 0) {
		for (int w = 0; w < WAYS; w++) {
			qsort(figures[w], (size_t)turns, sizeof(double), ascending);
			printf("%s %.3f\n", ways[w].name, figures[w][turns / 2]);
		}
		qsort(trips, (size_t)turns, sizeof(double), ascending);
		printf("pingpong %.1f\n", trips[turns / 2]);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Type_free(&blocks);
	check(failed ? EK_GSM_RANGE : EK_OK);
	check(ek_gsm_all_free(&array));
	check(ek_gsm_leave(job));
	MPI_Finalize();
	return 0;
}
