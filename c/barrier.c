/* barrier.c - MPI_Barrier over the node's memory.
 *
 * A barrier place is the same number in the areas of all members of a
 * communicator: there each member says which barrier it has come to
 * (`arrived`), and when (`ticks`). On one node everybody waits for the words of
 * all others. Where there are several nodes, or many ranks, the rank of the
 * lowest number on each node, the leader, waits for those of its node, exchanges
 * their times with the other leaders, which is the barrier between nodes, and
 * releases its node.
 *
 * The members agree on a place when they first meet in a barrier of the
 * communicator, and give it back when the communicator is freed. Numbers never
 * begin anew: those of a communicator follow on the highest that any member has
 * used at that place. So a word that says n or more where n is waited for can
 * only have been written by a member that came to barrier n: what its place held
 * before was lower, and it raised it to n there. If it has freed the communicator
 * meanwhile and uses the place for another one, which it may while others still
 * leave the last barrier, the word is higher yet, and they leave. It says nothing
 * wrong to the members of that other one either: they agreed on higher numbers,
 * and whoever is a member of both had to leave and free the first one to agree.
 *
 * Which communicator goes this way must be decided alike by all its members, or
 * they would wait for each other in different ways. So what a process knows of a
 * communicator hangs on the communicator itself, as an attribute: it is there
 * from the first barrier on, whatever way the communicator was made, and MPI
 * tells us when it is freed. All decisions rest on what all members know alike:
 * its group, how many barriers it had, and what an Allreduce over it gave.
 */
#define _GNU_SOURCE
#include "barrier.h"

#include <sched.h>

#include "arrivals.h"
#include "wait.h"

static MPI_Comm leaders; /* a copy of the world, for the leaders' exchange; the tag is the place */

/* ---- waiting ------------------------------------------------------------ */

enum {
	GLANCES = 64,  /* at first, about 0.3 us: only look */
	LOOKS = 4,     /* between two times that MPI gets on with its own */
	CALM = 512,    /* rounds without a yield where there are processors enough: about 0.1 ms */
	PROGRESS_EVERY = 8 /* barriers, where a rank never waits: 6 ns, and more with many ranks */
};

static inline bool reached(const uint64_t *word, uint64_t number)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= number;
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* MPI's rule: what others have begun with this rank completes while it waits. */
static void progress(void)
{
	int flag;
	if (EK_LIKELY(ek_mpi.progress != 0))
		ek_mpi.progress();
	else
		ek_mpi.Iprobe(MPI_ANY_SOURCE, 0, ek_mpi.comm_self, &flag, MPI_STATUS_IGNORE);
}

/* Without it a rank that comes last to all barriers would never let others get on. */
static inline void progress_sometimes(uint64_t number)
{
	if (EK_UNLIKELY(number % PROGRESS_EVERY == 0))
		progress();
}

static bool yields(void)
{
	return ek_mpi.progress_yields && EK_LOAD(*ek_mpi.progress_yields);
}

static __attribute__((noinline)) void wait_long(const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	while (ek_wait_climbs && !reached(word, number))
		ek_wait_round(word, number, sleepers);
	for (unsigned round = 0; !reached(word, number); round++) {
		progress();
		for (int i = 0; i < LOOKS; i++) {
			if (reached(word, number))
				return;
			relax();
		}
		if ((ek.crowded || round > CALM) && !yields())
			sched_yield();
	}
}

static inline void wait_for(const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	/* Who has to give up the processor for the others does it at once. */
	int glances = ek.crowded ? 1 : GLANCES;
	for (int i = 0; i < glances; i++) {
		if (reached(word, number))
			return;
		relax();
	}
	wait_long(word, number, sleepers);
}

/* Release: what this rank wrote before is there for whoever sees the word. Where
 * waits spin nobody sleeps, and the line, which is on its way to the others, is
 * not asked back. */
static inline void raise_word(uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	EK_PUBLISH(*word, number);
	if (EK_UNLIKELY(ek_wait_climbs) && EK_LOAD(*sleepers) != 0)
		ek_wait_wake(word);
}

/* ---- the barrier -------------------------------------------------------- */

/* All nodes have arrived when all have told when. */
static int exchange(struct meeting *m, uint64_t number)
{
	ek_arrivals_collect(m, number);
	int result = ek_exchange(&m->exchange, m->place, leaders);
	if (result == MPI_SUCCESS)
		ek_arrivals_keep(m, number);
	return result;
}

/* With a leader. The time is there before the word that others wait for, since
 * the leader passes it on. */
static __attribute__((noinline)) int led(struct meeting *m)
{
	uint64_t number = ++m->sequence;
	int result = MPI_SUCCESS;
	ek_arrivals_record(m, number);
	raise_word(&m->own->arrived, number, &m->own->sleepers);
	if (m->way == MEMBER) {
		wait_for(&m->wait_for[0]->released, number, &m->wait_for[0]->released_sleepers);
	} else {
		for (unsigned i = 0; i < m->waited; i++)
			wait_for(&m->wait_for[i]->arrived, number, &m->wait_for[i]->sleepers);
		if (m->nodes > 1)
			result = exchange(m, number);
		raise_word(&m->own->released, number, &m->own->released_sleepers);
	}
	progress_sometimes(number); /* while nobody waits for this rank */
	ek_count(EK_FAST_BARRIERS, 1);
	if (result != MPI_SUCCESS)
		ek_mpi.Comm_call_errhandler(m->comm, result);
	return result;
}

static int barrier(MPI_Comm comm);

static __attribute__((noinline)) int otherwise(MPI_Comm comm)
{
	struct meeting *m = ek_meeting_of(comm);
	if (m->way == PLACELESS && ++m->calls == m->retry)
		ek_meeting_agree(m);
	switch (m->way) {
	case ALONE:
		ek_count(EK_FAST_BARRIERS, 1);
		return MPI_SUCCESS;
	case EVERYBODY:
		return barrier(comm);
	case LEADER:
	case MEMBER:
		return led(m);
	default:
		ek_count(EK_FAST_BARRIERS_PLAIN, 1);
		return ek_next.MPI_Barrier(comm);
	}
}

static int barrier(MPI_Comm comm)
{
	/* Acquire: what the meeting holds was written before it came into the table. */
	struct meeting *m = __atomic_load_n(&ek_meetings[ek_meeting_home(comm)], __ATOMIC_ACQUIRE);
	if (EK_UNLIKELY(EK_LOAD(m->comm) != comm || m->way != EVERYBODY))
		return otherwise(comm);
	uint64_t number = ++m->sequence;
	raise_word(&m->own->arrived, number, &m->own->sleepers);
	ek_arrivals_record(m, number); /* while the others see it */
	progress_sometimes(number);
	for (unsigned i = 0; i < m->waited; i++)
		wait_for(&m->wait_for[i]->arrived, number, &m->wait_for[i]->sleepers);
	ek_count(EK_FAST_BARRIERS, 1);
	return MPI_SUCCESS;
}

/* ---- start and end ------------------------------------------------------ */

/* Another tool behind us is to see the program's barriers. */
static bool nobody_behind(void)
{
	return ek_next_is_mpis("MPI_Barrier", ek_next.MPI_Barrier) &&
	       ek_next_is_mpis("mpi_barrier_", ek_next.mpi_barrier_) &&
	       ek_next_is_mpis("mpi_barrier_f08_", ek_next.mpi_barrier_f08_);
}

void ek_barrier_start(struct ek_barrier_place place)
{
	if (!ek_meetings_start((ek.settings.fast & EK_FAST_BARRIER) && nobody_behind(), place.node))
		return;
	ek_arrivals_start(place.node_comm);
	leaders = ek_mpi.comm_null;
	if (place.nodes > 1) {
		ek_mpi.Comm_dup(ek_mpi.comm_world, &leaders);
		ek_mpi.Comm_set_errhandler(leaders, ek_mpi.errors_return);
	}
	ek_way.MPI_Barrier = barrier;
}

void ek_barrier_stop(void)
{
	if (ek_way.MPI_Barrier != barrier)
		return;
	ek_way.MPI_Barrier = ek_next.MPI_Barrier;
	ek_meetings_stop();
	if (leaders != ek_mpi.comm_null)
		ek_mpi.Comm_free(&leaders);
}
