/* shared_wait.c - waits in the functions of evenkeel_shared.h: for locks, for late threads,
 * for data of other nodes.
 *
 *	mpirun -np 3 shared_wait lock ROUNDS     says what each thread waited, held and cost
 *	mpirun -np 3 shared_wait calls           calls everything that waits
 *	mpirun -np 3 shared_wait hang WHERE      lock, barrier, wait or broadcast
 *	mpirun -np 3 shared_wait die HOW         thread 1 dies at a lock; what the others hear of it.
 *	                                         They wait for their end then. holds, kill: it has the
 *	                                         lock, and leaves or is killed; waits: it waits for it;
 *	                                         comes: it has come behind thread 0, which it has not
 *	                                         told yet; books: it has the books of the heap
 */
#include "evenkeel.h"
#include "evenkeel_shared.h"

#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct ek_upc *world;
static int me, threads;

static void check(int result)
{
	if (result == EK_OK)
		return;
	fprintf(stderr, "%s\n", ek_upc_error());
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void hold(int milliseconds)
{
	nanosleep(&(struct timespec){0, milliseconds * 1000000l}, NULL);
}

/* In each round one thread has the lock when the others come, and holds it for longer
 * than those who get it after it. The one in front of a thread in the queue is not known
 * here: whoever holds the lock costs all that wait meanwhile, and says when that was. */
static void take_turns(int rounds)
{
	struct ek_upc_lock lock;
	double waited = 0, held = 0;
	check(ek_upc_all_lock_alloc(world, &lock));
	for (int round = 0; round < rounds; round++) {
		const int first = round % threads;
		if (me == first)
			check(ek_upc_lock(&lock));
		check(ek_upc_barrier(world, 0));
		const double begin = now();
		if (me != first) {
			check(ek_upc_lock(&lock));
			waited += now() - begin;
		}
		const double have = now();
		hold(me == first ? 20 : 5);
		/* Two wait for the first, one for the second. */
		const int place = have - begin < 0.001 ? 2 : have - begin < 0.022 ? 1 : 0;
		held += place * (now() - have);
		check(ek_upc_unlock(&lock));
		check(ek_upc_barrier(world, 0));
	}
	check(ek_upc_all_lock_free(&lock));
	printf("thread %d %.9f %.9f\n", me, waited, held);
}

/* Opens, reads and frees what the thread before allocates. */
static void ask_homes(void)
{
	struct ek_upc_array mine, theirs;
	uint64_t handles[64];
	int64_t value;
	check(ek_upc_global_alloc(world, 4, 4 * threads, sizeof value, &mine));
	PMPI_Allgather(&mine.handle, 1, MPI_UINT64_T, handles, 1, MPI_UINT64_T, MPI_COMM_WORLD);
	check(ek_upc_open(world, handles[(me + threads - 1) % threads], sizeof value, &theirs));
	check(ek_upc_get(&theirs, 0, &value));
	check(ek_upc_free(&theirs));
}

static void call_all(void)
{
	struct ek_upc_array a, b, whole, sums;
	struct ek_upc_lock lock;
	int64_t value = me, got[64];
	check(ek_upc_all_alloc(world, 4, 4 * threads, sizeof value, &a));
	check(ek_upc_all_alloc(world, 4, 4 * threads, sizeof value, &b));
	check(ek_upc_all_alloc(world, 4 * threads, 4 * threads * threads, sizeof value, &whole));
	check(ek_upc_all_alloc(world, 1, threads, sizeof value, &sums));
	check(ek_upc_all_lock_alloc(world, &lock));
	for (int i = 0; i < 20; i++) {
		check(ek_upc_put(&a, (4 * me + 4) % (4 * threads), &value));
		check(ek_upc_barrier(world, i));
		check(ek_upc_get(&a, 4 * me, &value));
		check(ek_upc_get(&a, (4 * me + 4) % (4 * threads), &value));
		check(ek_upc_memget(got, &a, 0, 4 * threads));
		check(ek_upc_notify(world, 1));
		check(ek_upc_wait(world));
		check(ek_upc_lock(&lock));
		check(ek_upc_unlock(&lock));
		check(ek_upc_all_broadcast(&b, 0, &a, 0, 4, EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC));
		check(ek_upc_all_gather_all(&whole, 0, &b, 0, 4, EK_UPC_IN_NOSYNC | EK_UPC_OUT_ALLSYNC));
		check(ek_upc_all_broadcast(&b, 0, &a, 0, 4, EK_UPC_IN_NOSYNC | EK_UPC_OUT_NOSYNC));
		check(ek_upc_all_reduce(&sums, 0, &a, 0, 4 * threads, EK_UPC_INT64, EK_UPC_ADD, EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC));
	}
	ask_homes();
	check(ek_upc_all_resize(&sums, 10 * threads));
	check(ek_upc_all_lock_free(&lock));
	check(ek_upc_all_free(&sums));
}

static void hang(const char *where)
{
	struct ek_upc_lock lock;
	struct ek_upc_array a;
	check(ek_upc_all_lock_alloc(world, &lock));
	check(ek_upc_all_alloc(world, 1, threads, 8, &a));
	if (me == 1)
		check(ek_upc_lock(&lock));
	check(ek_upc_barrier(world, 0));
	if (me == 0) {
		printf("met\n");
		fflush(stdout);
	}
	if (me == 1)
		for (;;)
			pause();
	if (strcmp(where, "lock") == 0)
		check(ek_upc_lock(&lock));
	if (strcmp(where, "barrier") == 0)
		check(ek_upc_barrier(world, 0));
	if (strcmp(where, "broadcast") == 0)
		check(ek_upc_all_broadcast(&a, 0, &a, 0, 1, EK_UPC_IN_ALLSYNC | EK_UPC_OUT_ALLSYNC));
	if (strcmp(where, "wait") == 0)
		check(ek_upc_notify(world, 0));
	check(ek_upc_wait(world));
}

static void say(const char *done, int result)
{
	printf("thread %d %s: %d: %s\n", me, done, result, result == EK_OK ? "" : ek_upc_error());
	fflush(stdout);
}

/* Until that thread is the last in the queue, or nobody can be. */
static void until_last(struct ek_upc_lock *lock, int64_t thread)
{
	int64_t last;
	while (ek_upc_lock_last(lock, &last) == EK_OK && last != thread)
		sched_yield();
}

/* The word of a lock or of the heap's books that says who came last. */
static uint64_t *end_of(const struct ek_upc_lock *lock)
{
	return (uint64_t *)(void *)(world->parts[0] + (lock ? lock->place : 0));
}

static void die(const char *how)
{
	struct ek_upc_lock lock;
	struct ek_upc_array a;
	int taken = 0, result;
	const bool holds = strcmp(how, "holds") == 0 || strcmp(how, "kill") == 0, books = strcmp(how, "books") == 0;
	check(ek_upc_all_lock_alloc(world, &lock));
	check(ek_upc_barrier(world, 0));
	if (me == (holds ? 1 : 0) && !books)
		check(ek_upc_lock(&lock));
	if (me == 1 && books)
		__atomic_store_n(end_of(0), 2, __ATOMIC_SEQ_CST);
	check(ek_upc_barrier(world, 0));
	if (me == 1) {
		if (strcmp(how, "kill") == 0)
			raise(SIGKILL);
		if (strcmp(how, "waits") == 0) {
			alarm(1);
			ek_upc_lock(&lock);
		}
		if (strcmp(how, "comes") == 0)
			__atomic_exchange_n(end_of(&lock), 2, __ATOMIC_SEQ_CST);
		_exit(0);
	}
	if (books) {
		say("allocates", ek_upc_global_alloc(world, 1, 10, 8, &a));
	} else if (holds) {
		say("locks", ek_upc_lock(&lock));
	} else if (me == 0) {
		until_last(&lock, strcmp(how, "waits") == 0 ? 2 : 1);
		say("unlocks", ek_upc_unlock(&lock));
	} else if (strcmp(how, "waits") == 0) {
		until_last(&lock, 1);
		say("locks", ek_upc_lock(&lock));
	} else {
		until_last(&lock, 1);
		while ((result = ek_upc_lock_attempt(&lock, &taken)) == EK_OK && !taken)
			;
		say("tries", result);
	}
	if (!books && !(me == 2 && strcmp(how, "comes") == 0)) { /* who only tries changes nothing for thread 0 */
		while ((result = ek_upc_lock_attempt(&lock, &taken)) == EK_OK && !taken)
			;
		say("tries again", result);
		say("locks again", ek_upc_lock(&lock));
		say("unlocks again", ek_upc_unlock(&lock));
		say("frees", ek_upc_lock_free(&lock));
	}
	say("is done", EK_OK);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	alarm(120);
	MPI_Init(&argc, &argv);
	check(ek_upc_start(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &world));
	me = (int)ek_upc_mythread(world);
	threads = (int)ek_upc_threads(world);
	if (strcmp(argv[1], "hang") == 0)
		hang(argv[2]);
	else if (strcmp(argv[1], "die") == 0)
		die(argv[2]);
	else if (strcmp(argv[1], "lock") == 0)
		take_turns(atoi(argv[2]));
	else
		call_all();
	check(ek_upc_end(world));
	MPI_Finalize();
	return 0;
}
