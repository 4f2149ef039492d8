/* shared_c.c - what access to shared objects takes from C, in ns, as name|figure: on two
 * ranks of a node.
 *
 *	mpirun -np 2 shared_c
 *
 * The ways take turns, and the figures are medians of the turns. Beside the shared array
 * stand a loop over an array of the program's own, global shared memory without layout
 * (ek_gsm_get64), and Open MPI's one-sided calls; beside the barrier, Open MPI's.
 */
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 15, ELEMENTS = 1 << 17, WIDE = 1 << 20 /* 1 MiB for each thread */ };

static struct ek_upc *world;
static struct ek_upc_array array;
static struct ek_upc_lock lock;
static uint64_t theirs; /* the handle of an array that the other thread has allocated */
static struct ek_gsm_array gsm;
static MPI_Win win;
static int64_t *plain, *copy;
static int thread, failed;

static inline void barrier_of_compiler(void)
{
	__asm__ volatile("" ::: "memory");
}

/* For each of so many elements; `there` is that of thread 1, whose block is the second. */
#define LOOP(name, statement)                                                         \
	static void name(long n)                                                      \
	{                                                                             \
		struct ek_upc_array a = array;                                        \
		struct ek_gsm_window *w = gsm.window;                                 \
		const int64_t *own = plain, *local = a.local;                         \
		int64_t value = 0, sum = 0;                                           \
		int refused = 0;                                                      \
		(void)w, (void)own, (void)local, (void)a;                             \
		for (long i = 0; i < n; i++) {                                        \
			int64_t here = i % ELEMENTS, there = ELEMENTS + here;         \
			(void)here, (void)there;                                      \
			statement;                                                    \
			sum += value;                                                 \
			barrier_of_compiler();                                        \
		}                                                                     \
		failed |= refused | (sum < 0);                                        \
	}

LOOP(read_plain, value = own[here])
LOOP(read_local, value = local[here])
LOOP(get_own, refused |= ek_upc_get(&a, here, &value))
LOOP(get_other, refused |= ek_upc_get(&a, there, &value))
LOOP(get_gsm, uint64_t word; refused |= ek_gsm_get64(w, ek_gsm_array_address(&gsm, 8 * (uint64_t)there), &word);
     value = (int64_t)word)
LOOP(get_mpi, MPI_Get(&value, 1, MPI_INT64_T, 1, here, 1, MPI_INT64_T, win); MPI_Win_flush(1, win))
LOOP(put_other, value = i; refused |= ek_upc_put(&a, there, &value))
LOOP(put_gsm, refused |= ek_gsm_put64(w, ek_gsm_array_address(&gsm, 8 * (uint64_t)there), (uint64_t)i))
LOOP(copy_plain, memcpy(copy, plain, WIDE))
LOOP(memget_other, refused |= ek_upc_memget(copy, &a, ELEMENTS, ELEMENTS))
LOOP(large_mpi, MPI_Get(copy, ELEMENTS, MPI_INT64_T, 1, 0, ELEMENTS, MPI_INT64_T, win); MPI_Win_flush(1, win))
LOOP(take_lock, refused |= ek_upc_lock(&lock) | ek_upc_unlock(&lock))
LOOP(open_other, struct ek_upc_array o; refused |= ek_upc_open(world, theirs, 8, &o) | ek_upc_close(&o))
LOOP(allocate, struct ek_upc_array o; refused |= ek_upc_alloc(world, 8, 8, &o) | ek_upc_free(&o))
LOOP(meet, refused |= ek_upc_barrier(world, 0))
LOOP(meet_mpi, PMPI_Barrier(MPI_COMM_WORLD))

/* A lock of MPI's one-sided calls alone: a word that is swapped until it was free. */
static void take_word(long n)
{
	static const int64_t taken = 1, free_again = 0;
	int64_t was;
	for (long i = 0; i < n; i++) {
		do {
			MPI_Fetch_and_op(&taken, &was, MPI_INT64_T, 0, 0, MPI_REPLACE, win);
			MPI_Win_flush(0, win);
		} while (was);
		MPI_Fetch_and_op(&free_again, &was, MPI_INT64_T, 0, 0, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
	}
}

enum who { ONE, BOTH, SHARED /* by both: a time of each */ };

static const struct way {
	const char *name;
	void (*loop)(long);
	long times;
	enum who who;
} ways[] = {
	{"C: read an element of an array of one's own", read_plain, ELEMENTS, ONE},
	{"C: read one's own by local", read_local, ELEMENTS, ONE},
	{"C: read one's own by ek_upc_get", get_own, ELEMENTS, ONE},
	{"C: read another thread's by ek_upc_get", get_other, ELEMENTS, ONE},
	{"C: the same by ek_gsm_get64", get_gsm, ELEMENTS, ONE},
	{"C: MPI_Get and flush of 8 bytes", get_mpi, ELEMENTS / 8, ONE},
	{"C: write another thread's by ek_upc_put", put_other, ELEMENTS, ONE},
	{"C: the same by ek_gsm_put64", put_gsm, ELEMENTS, ONE},
	{"C: copy 1 MiB within an array", copy_plain, 8, ONE},
	{"C: ek_upc_memget of another thread's 1 MiB", memget_other, 8, ONE},
	{"C: MPI_Get and flush of 1 MiB", large_mpi, 8, ONE},
	{"C: a lock, taken and given up by its home", take_lock, 20000, ONE},
	{"C: a word by MPI_Fetch_and_op, the same", take_word, 2000, ONE},
	{"C: a lock that both want, from one to the next", take_lock, 20000, BOTH},
	{"C: a word by MPI_Fetch_and_op that both want", take_word, 2000, BOTH},
	{"C: ek_upc_open of another thread's array, and ek_upc_close", open_other, 20000, ONE},
	{"C: ek_upc_alloc and ek_upc_free", allocate, 20000, ONE},
	{"C: ek_upc_barrier", meet, 20000, SHARED},
	{"C: PMPI_Barrier of Open MPI", meet_mpi, 20000, SHARED},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double figure(const struct way *w)
{
	PMPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	if (thread == 0 || w->who != ONE)
		w->loop(w->times);
	PMPI_Barrier(MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) / (double)w->times * 1e9 / (w->who == BOTH ? 2 : 1);
}

static void check(int result)
{
	if (result != EK_OK) {
		fprintf(stderr, "%s\n", ek_upc_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	static double figures[WAYS][TURNS];
	struct ek_upc_array mine;
	struct ek_gsm *job;
	int64_t *shared;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &thread);
	check(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &world));
	check(ek_upc_all_alloc(world, ELEMENTS, 2 * ELEMENTS, 8, &array));
	check(ek_upc_all_lock_alloc(world, &lock));
	check(ek_upc_alloc(world, 8, 8, &mine));
	MPI_Sendrecv(&mine.handle, 1, MPI_UINT64_T, 1 - thread, 0, &theirs, 1, MPI_UINT64_T, 1 - thread, 0, MPI_COMM_WORLD,
	             MPI_STATUS_IGNORE);
	check(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job));
	check(ek_gsm_all_allocate(job, 2 * WIDE, WIDE, EK_GSM_ALL, &gsm));
	MPI_Win_allocate_shared(WIDE, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win);
	memset(shared, 0, WIDE);
	plain = calloc(ELEMENTS, 8);
	copy = calloc(ELEMENTS, 8);
	for (int64_t i = 0; i < ELEMENTS; i++)
		((int64_t *)array.local)[i] = ((int64_t *)gsm.local)[i] = plain[i] = i;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int turn = -1; turn < TURNS; turn++) /* the first one warms up */
		for (int w = 0; w < WAYS; w++) {
			double taken = figure(&ways[w]);
			if (turn >= 0)
				figures[w][turn] = taken;
		}
	for (int w = 0; w < WAYS && thread == 0; w++) {
		qsort(figures[w], TURNS, sizeof(double), ascending);
		printf("%s|%.2f\n", ways[w].name, figures[w][TURNS / 2]);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	check(failed ? EK_UPC_RANGE : EK_OK);
	check(ek_gsm_all_free(&gsm));
	check(ek_gsm_leave(job));
	check(ek_upc_all_lock_free(&lock));
	check(ek_upc_free(&mine));
	check(ek_upc_all_free(&array));
	check(ek_upc_end(world));
	MPI_Finalize();
	return 0;
}
