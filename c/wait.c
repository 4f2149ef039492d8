#define _GNU_SOURCE
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "idle.h"
#include "record.h"

EK_EXPORT void opal_progress(void);
EK_EXPORT int sched_yield(void);

enum {
	GLANCES = 64,    /* idle rounds without a look at the clock: some 10 us */
	LOOKS = 8,       /* rounds after a sleep: Open MPI looks at its sockets in 1 of 8 */
	LOOKS_BLIND = 32, /* where its sockets can't wake the sleeper */
	SOCKETS = 512,   /* of Open MPI that wake a sleeper */
	SLACK_NS = 1000, /* that the kernel may be late with a timer, while waiting */
	LATENCY_NS = 30000, LATENCY_MOST_NS = 200000 /* what waking up takes, at first and at most */
};

bool ek_wait_climbs;
static struct ek_ladder ladder;
static bool yielded; /* Open MPI was told to yield when idle, before we were here */
static bool blind;   /* messages may come by sockets that we don't know */

/* A thread's wait. `call` is what ek_thread.current says during one call. */
static __thread struct {
	bool inside;  /* Open MPI's opal_progress, called by ours, */
	bool idle;    /* which had nothing to do */
	bool blocks;  /* the call is one that waits */
	uint32_t glances, looks;
	uint64_t call;
	uint64_t quiet; /* ticks since when nothing has happened; 0: not known yet */
	uint64_t longest_ns; /* that nothing happened, in this call */
	uint64_t latency_ns;
	int slack;    /* the thread's own, to be put back */
	struct ek_waits *waits; /* by account */
} self __attribute__((tls_model("initial-exec")));

/* ---- Open MPI's own ------------------------------------------------------ */

static void first_round(void);
static void (*next)(void) = first_round;     /* opal_progress */
static void (*progress)(void) = first_round; /* where waits spin the same, else round_that_climbs */

/* Open MPI may call it before the program calls MPI. */
static void first_round(void)
{
	void (*unknown)(void) = first_round;
	void (*known)(void) = (void (*)(void))ek_next_late("opal_progress", (void **)&next);
	__atomic_compare_exchange_n(&progress, &unknown, known, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	known();
}

/* Open MPI's opal_progress, told to yield when idle, does so at the end of a
 * round in which none of its parts had anything to do: that is how we know. */
int sched_yield(void)
{
	if (self.inside) {
		self.idle = true;
		return 0;
	}
	return (int)syscall(SYS_sched_yield);
}

/* A round of Open MPI's. True if nothing happened in it. */
static inline bool progress_idles(void)
{
	bool within = self.inside; /* one of its parts may call it again */
	self.idle = false;
	self.inside = true;
	EK_LOAD(next)();
	self.inside = within;
	return self.idle;
}

/* For those that want MPI to get on and no more. */
static void progress_only(void)
{
	progress_idles();
}

/* ---- sockets ------------------------------------------------------------- */

/* Of libevent: what Open MPI's event loop watches. Its messages from other hosts
 * are to wake a sleeper. */
enum { EV_READ = 2, EV_WRITE = 4 };
static struct {
	int (*foreach)(const void *base, int (*)(const void *, const void *, void *), void *);
	int (*fd)(const void *event);
	short (*events)(const void *event);
	void **base;
} watched;

struct sockets {
	struct pollfd list[SOCKETS];
	nfds_t count;
};

static int add_socket(const void *base, const void *event, void *data)
{
	struct sockets *sockets = data;
	short events = watched.events(event);
	int fd = watched.fd(event);
	(void)base;
	if (fd < 0 || !(events & (EV_READ | EV_WRITE)))
		return 0;
	if (sockets->count == SOCKETS)
		return 1;
	sockets->list[sockets->count++] = (struct pollfd){
		.fd = fd, .events = (short)((events & EV_READ ? POLLIN : 0) | (events & EV_WRITE ? POLLOUT : 0))};
	return 0;
}

static void find_watched(int nodes)
{
	*(void **)&watched.foreach = ek_next_data("event_base_foreach_event");
	*(void **)&watched.fd = ek_next_data("event_get_fd");
	*(void **)&watched.events = ek_next_data("event_get_events");
	watched.base = ek_next_data("opal_sync_event_base");
	if (!watched.fd || !watched.events || !watched.base)
		watched.foreach = 0;
	blind = nodes > 1 && !watched.foreach;
}

/* ---- sleeping ------------------------------------------------------------ */

static uint64_t since_ns(uint64_t ticks)
{
	return (ek_ticks() - ticks) * 1000 / ek_ticks_per_us;
}

/* The ladder begins anew: what comes in pieces is not to wait for sleeps. */
static void something_happened(void)
{
	if (!self.quiet)
		return;
	uint64_t ns = since_ns(self.quiet);
	if (ns > self.longest_ns)
		self.longest_ns = ns;
	self.quiet = ek_ticks();
}

/* True if a message may have come. */
static bool sleep_on_sockets(const struct timespec *time)
{
	struct sockets sockets;
	sockets.count = 0;
	if (watched.foreach && *watched.base)
		watched.foreach(*watched.base, add_socket, &sockets);
	return ppoll(sockets.list, sockets.count, time, 0) > 0;
}

/* The lower half of the word, which changes with every number. */
static uint32_t *half(const uint64_t *word)
{
	return (uint32_t *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* The waker looks at `sleepers` right after it has raised the word, without a
 * fence between, which would cost every barrier more than this saves: it may
 * miss one that is just falling asleep, who then sleeps to the end of its time. */
static void sleep_on_word(const uint64_t *word, uint64_t number, uint32_t *sleepers, const struct timespec *time)
{
	uint64_t seen;
	__atomic_fetch_add(sleepers, 1, __ATOMIC_SEQ_CST);
	seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	if (seen < number)
		syscall(SYS_futex, half(word), FUTEX_WAIT, (uint32_t)seen, time, 0, 0);
	__atomic_fetch_sub(sleepers, 1, __ATOMIC_RELAXED);
}

void ek_wait_wake(const uint64_t *word)
{
	int kept = errno;
	syscall(SYS_futex, half(word), FUTEX_WAKE, INT_MAX, 0, 0, 0);
	errno = kept;
}

/* How late this thread wakes up, as a mean of the last times. */
static void learn_latency(uint64_t slept_ns, uint64_t wanted_ns)
{
	if (slept_ns < wanted_ns)
		return; /* woken */
	uint64_t late = slept_ns - wanted_ns;
	if (late > LATENCY_MOST_NS)
		late = LATENCY_MOST_NS;
	self.latency_ns += late / 8 - self.latency_ns / 8;
}

static void sleep_for(uint64_t ns, const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	const struct timespec time = {0, (long)ns};
	uint64_t begun = ek_ticks();
	bool something = false;
	if (word)
		sleep_on_word(word, number, sleepers, &time);
	else
		something = sleep_on_sockets(&time);
	uint64_t slept = since_ns(begun);
	learn_latency(slept, ns);
	ek_count(EK_FAST_SLEEPS, 1);
	ek_count(EK_FAST_SLEPT_NS, slept);
	self.looks = blind ? LOOKS_BLIND : LOOKS;
	if (something)
		something_happened();
}

/* ---- the ladder ---------------------------------------------------------- */

static struct ek_waits *waits_of(uint64_t call)
{
	static struct ek_waits none;
	if (!self.waits)
		self.waits = calloc((size_t)1 << EK_ACCOUNT_BITS, sizeof *self.waits);
	return self.waits ? &self.waits[(call & 0xffff) - 1] : &none;
}

/* The thread waits for longer than a moment. */
static void begin_to_climb(void)
{
	self.latency_ns = self.latency_ns ? self.latency_ns : LATENCY_NS;
	self.slack = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	EK_STORE(ek_self.thread->waiting, 1);
}

void ek_wait_over(void)
{
	int kept = errno;
	EK_STORE(ek_self.thread->waiting, 0);
	something_happened();
	ek_idle_over();
	if (self.slack > 0)
		prctl(PR_SET_TIMERSLACK, self.slack);
	if (self.waits)
		ek_ladder_remember(waits_of(self.call), self.longest_ns);
	errno = kept;
}

static __attribute__((noinline)) void climb(const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	uint64_t waited = since_ns(self.quiet);
	struct ek_ladder mine = ladder;
	mine.latency_ns = self.latency_ns;
	/* Of several threads inside MPI one gets on for all of them; the rank is not idle
	 * while it waits. */
	mine.shared = ek.threads_multiple && EK_LOAD(ek.rank->threads) > 1;
	struct ek_step step = ek_ladder_step(&mine, waits_of(self.call), waited, word != 0);
	if (step.rung == EK_RUNG_SPIN)
		return;
	if (!EK_LOAD(ek_self.thread->waiting))
		begin_to_climb();
	if (step.rung == EK_RUNG_YIELD) {
		syscall(SYS_sched_yield);
		return;
	}
	if (mine.shared || !ek_idle_step(step.left_ns))
		sleep_for(step.sleep_ns, word, number, sleepers);
}

/* After a round in which nothing happened. */
static inline void idle_round(const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	const struct ek_thread *thread = ek_self.thread;
	uint64_t call = thread ? EK_LOAD(thread->current) : 0;
	if (EK_UNLIKELY(call != self.call)) {
		if (EK_UNLIKELY(thread && EK_LOAD(thread->waiting)))
			ek_wait_over(); /* of a call that was left by a jump */
		self.call = call;
		self.blocks = call && ek_blocks[(uint16_t)ek_self.accounts[(call & 0xffff) - 1].key];
		self.glances = ladder.crowded ? 1 : GLANCES;
		self.looks = 0;
		self.quiet = 0;
		self.longest_ns = 0;
	}
	if (!self.blocks) {
		if (yielded)
			syscall(SYS_sched_yield);
		return;
	}
	if (EK_LIKELY(self.glances)) {
		self.glances--;
		return;
	}
	if (self.looks) {
		self.looks--;
		return;
	}
	if (!self.quiet)
		self.quiet = ek_ticks();
	int kept = errno;
	climb(word, number, sleepers);
	errno = kept;
}

void ek_wait_round(const uint64_t *word, uint64_t number, uint32_t *sleepers)
{
	if (progress_idles())
		idle_round(word, number, sleepers);
	else
		something_happened();
}

static void round_that_climbs(void)
{
	ek_wait_round(0, 0, 0);
}

/* Where waits spin, which is what short messages do all the time, there is but one
 * jump to Open MPI's. */
void opal_progress(void)
{
	EK_LOAD(progress)();
}

void ek_wait_forget(void)
{
	free(self.waits);
	self.waits = 0;
}

/* ---- start and end ------------------------------------------------------- */

enum { TRIES = 1000, UNSEEN = 1 /* no call */ };

/* Whether Open MPI comes by here when it waits, and says when it is idle. */
static bool proven(void)
{
	int flag;
	self.call = UNSEEN;
	for (int i = 0; i < TRIES && self.call == UNSEEN; i++)
		ek_mpi.Iprobe(MPI_ANY_SOURCE, 0, ek_mpi.comm_self, &flag, MPI_STATUS_IGNORE);
	return self.call != UNSEEN;
}

void ek_wait_start(int nodes)
{
	if (ek.settings.wait == EK_WAIT_SPIN)
		return;
	if (ek_mpi.progress && ek_mpi.progress_yields) {
		yielded = EK_LOAD(*ek_mpi.progress_yields);
		EK_STORE(*ek_mpi.progress_yields, true);
		ek_mpi.progress = progress_only;
		ladder = (struct ek_ladder){.always = ek.settings.wait == EK_WAIT_SLEEP, .crowded = ek.crowded};
		find_watched(nodes);
		EK_STORE(ek_wait_climbs, true);
		EK_STORE(progress, round_that_climbs);
		if (proven())
			return;
		ek_wait_stop();
	}
	if (ek.world_rank == 0)
		fprintf(stderr, "evenkeel: this MPI waits in a way that is not known here; "
		                "EVENKEEL_WAIT=%s is not done, it spins as it always does\n",
		        ek.settings.wait == EK_WAIT_SLEEP ? "sleep" : "adaptive");
}

void ek_wait_stop(void)
{
	if (!EK_LOAD(ek_wait_climbs))
		return;
	EK_STORE(ek_wait_climbs, false);
	EK_STORE(progress, next);
	EK_STORE(*ek_mpi.progress_yields, yielded);
	ek_mpi.progress = next;
}
