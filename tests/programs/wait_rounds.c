/* wait_rounds.c - the rounds of waits (c/wait.c, which this program is built with): when they
 * sleep, on what, and when they begin anew; with an Open MPI, a kernel and a clock that are
 * played here. Prints "ok", or what is wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "clock.h"
#include "idle.h"
#include "record.h"
#include "wait.h"

enum { BLOCKING = 1, POLLING = 2, ROUND_NS = 100, SLACK = 50000, SOCKET = 7, FAR = 100000 /* rounds */ };

struct ek_process ek;
struct ek_mpi ek_mpi;
__thread struct ek_recorder ek_self;
const bool ek_blocks[EK_FUNCTIONS] = {[BLOCKING] = true};
bool ek_clock_is_tsc;
uint64_t ek_ticks_per_us = 1000;

void opal_progress(void);
int sched_yield(void);

static uint64_t now = 1000000000;
static struct ek_rank rank;
static struct ek_thread thread;
static struct ek_account accounts[1 << EK_ACCOUNT_BITS];
static uint64_t calls;
static bool yields; /* Open MPI's own word: it is to tell when it had nothing to do */

/* What happened. */
static int rounds, given_up, polls, steps, overs, word_sleeps, wakes, wrong;
static uint64_t asked_ns, slept_ns; /* of the last sleep; of all */
static uint64_t left_ns; /* that the last wait was expected to last */
static long slack = SLACK; /* of the thread's timers */
static int sockets; /* that the last sleep looked at */

/* What is played. */
static bool busy, nested, used; /* MPI has something to do; one of its parts calls it again; hooks use the waits */
static uint64_t message_ns;     /* a sleep on sockets ends after so long: a message came */

static void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	printf("%s\n", what);
	wrong++;
}

/* ---- Open MPI --------------------------------------------------------------- */

static void play_progress(void)
{
	rounds++;
	now += ROUND_NS;
	if (nested) {
		nested = false;
		opal_progress();
		nested = true;
	}
	if (!busy && yields)
		sched_yield();
}

static int play_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	(void)source, (void)tag, (void)comm, (void)status;
	*flag = 0;
	opal_progress();
	return MPI_SUCCESS;
}

static int play_foreach(const void *base, int (*each)(const void *, const void *, void *), void *data)
{
	return each(base, base, data);
}

static int play_fd(const void *event)
{
	(void)event;
	return SOCKET;
}

static short play_events(const void *event)
{
	(void)event;
	return 2; /* libevent's EV_READ */
}

static void *event_base = &event_base;

void *ek_next_late(const char *name, void **place)
{
	(void)name;
	*(void (**)(void))place = play_progress;
	return *place;
}

void *ek_next_data(const char *name)
{
	static int (*const foreach)(const void *, int (*)(const void *, const void *, void *), void *) = play_foreach;
	static int (*const fd)(const void *) = play_fd;
	static short (*const events)(const void *) = play_events;
	void *found = &event_base;
	if (strcmp(name, "event_base_foreach_event") == 0)
		memcpy(&found, &foreach, sizeof found);
	else if (strcmp(name, "event_get_fd") == 0)
		memcpy(&found, &fd, sizeof found);
	else if (strcmp(name, "event_get_events") == 0)
		memcpy(&found, &events, sizeof found);
	return found;
}

/* ---- the kernel ------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
	return 0;
}

static void sleep_on(uint64_t ns)
{
	slept_ns += ns;
	now += ns;
}

int ppoll(struct pollfd *list, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
	(void)mask;
	polls++;
	asked_ns = (uint64_t)time->tv_nsec;
	sockets = (int)count;
	expect(count == 0 || (list[0].fd == SOCKET && list[0].events == POLLIN), "a sleep looks at another socket");
	bool came = message_ns && message_ns < asked_ns;
	sleep_on(came ? message_ns : asked_ns);
	errno = EINTR;
	return came;
}

int prctl(int option, ...)
{
	va_list rest;
	va_start(rest, option);
	if (option == PR_SET_TIMERSLACK)
		slack = va_arg(rest, int);
	va_end(rest);
	return (int)slack;
}

long syscall(long number, ...)
{
	va_list rest;
	va_start(rest, number);
	if (number == SYS_sched_yield) {
		given_up++;
		now += ROUND_NS;
	} else if (number == SYS_futex) {
		const uint32_t *word = va_arg(rest, uint32_t *);
		int operation = va_arg(rest, int);
		uint32_t value = va_arg(rest, uint32_t);
		const struct timespec *time = va_arg(rest, const struct timespec *);
		if (operation == FUTEX_WAKE) {
			wakes++;
		} else {
			expect(operation == FUTEX_WAIT && *word == value, "sleeps on another word");
			word_sleeps++;
			asked_ns = (uint64_t)time->tv_nsec;
			sleep_on(asked_ns);
		}
	}
	va_end(rest);
	return 0;
}

/* ---- who uses waits ----------------------------------------------------------- */

bool ek_idle_step(uint64_t left)
{
	steps++;
	left_ns = left;
	return used;
}

void ek_idle_over(void)
{
	overs++;
}

/* ---- calls of the program -------------------------------------------------- */

static void begin(int function)
{
	thread.current = ++calls << EK_CURRENT_CALLS | (uint64_t)(function + 1);
	accounts[function].key = (uint64_t)function;
}

static void end(void)
{
	if (thread.waiting)
		ek_wait_over();
	thread.current = 0;
}

/* Rounds until the wait has slept once more; how long it was awake. */
static uint64_t until_asleep(void)
{
	uint64_t begun = now - slept_ns;
	int before = polls + steps;
	for (int i = 0; i < FAR && polls + steps == before; i++)
		opal_progress();
	expect(polls + steps > before, "never sleeps");
	return now - slept_ns - begun;
}

static void wait_for(uint64_t ns)
{
	begin(BLOCKING);
	for (uint64_t until = now + ns; now < until;)
		opal_progress();
	end();
}

/* ---- what is expected ----------------------------------------------------------- */

static void waits_begin_anew(void)
{
	begin(BLOCKING);
	expect(until_asleep() > EK_LADDER_SPIN_NS, "sleeps at once in the first wait");
	expect(thread.waiting && slack < SLACK, "a thread that sleeps does not wait");
	busy = true;
	opal_progress();
	busy = false;
	expect(until_asleep() >= EK_LADDER_SPIN_NS, "goes on where it was though something happened");
	nested = true;
	expect(until_asleep() < EK_LADDER_SPIN_NS, "something happens when a part has MPI get on");
	nested = false;
	int before = overs;
	end();
	expect(overs == before + 1 && slack == SLACK, "the end of a wait is not told");
	now += 20000000; /* in which the program computes */
	begin(BLOCKING);
	expect(until_asleep() > EK_LADDER_SPIN_NS, "sleeps at once in the next wait");
	before = overs;
	begin(BLOCKING); /* out of the other one by a jump */
	opal_progress();
	expect(overs == before + 1 && !thread.waiting, "the end of a wait that was left is not told");
	end();
}

static void polls_do_not_wait(void)
{
	int before = polls + steps + given_up;
	nested = true;
	begin(POLLING);
	for (int i = 0; i < FAR; i++)
		opal_progress();
	end();
	for (int i = 0; i < FAR; i++)
		opal_progress();
	nested = false;
	expect(polls + steps + given_up == before, "sleeps in a call that does not wait, or in none");
}

static void sleeps_end_with_messages(void)
{
	begin(BLOCKING);
	until_asleep();
	expect(sockets == 1, "a sleep looks at no socket");
	int before = rounds;
	until_asleep();
	expect(rounds - before > 8, "MPI is not let look at its sockets after a sleep");
	message_ns = 1;
	until_asleep();
	message_ns = 0;
	expect(until_asleep() >= EK_LADDER_SPIN_NS, "goes on where it was though a message came");
	errno = EXDEV;
	until_asleep();
	expect(errno == EXDEV, "another errno");
	end();
}

static void remember(uint64_t ns)
{
	for (int i = 0; i < EK_WAITS; i++)
		wait_for(ns);
	begin(BLOCKING);
	uint64_t whole = until_asleep() + left_ns;
	expect(whole > ns * 9 / 10 && whole < ns * 11 / 10, "a wait is not expected to last as the ones before");
	end();
}

static void waits_are_remembered(void)
{
	const uint64_t long_ns = 20000000;
	remember(long_ns);
	remember(long_ns / 10);
	remember(long_ns);
	used = true;
	begin(BLOCKING);
	int before = polls;
	until_asleep();
	expect(polls == before, "sleeps though a hook was called");
	end();
	used = false;
	/* Who gets on for others neither knows that, nor lets others use its wait. */
	ek.threads_multiple = true;
	rank.threads = 2;
	begin(BLOCKING);
	before = steps;
	until_asleep();
	expect(steps == before && asked_ns < long_ns / 100, "a thread on which others count is idle");
	end();
	ek.threads_multiple = false;
	rank.threads = 1;
}

static void words_are_waited_for(void)
{
	uint64_t word = 4;
	uint32_t sleepers = 0;
	begin(BLOCKING);
	for (int i = 0; i < FAR && !word_sleeps; i++)
		ek_wait_round(&word, 5, &sleepers);
	expect(word_sleeps == 1 && sleepers == 0, "does not sleep on a word");
	word = 5;
	for (int i = 0; i < FAR; i++)
		ek_wait_round(&word, 5, &sleepers);
	expect(word_sleeps == 1, "sleeps on a word that has been raised");
	ek_wait_wake(&word);
	expect(wakes == 1, "wakes nobody");
	end();
}

int main(void)
{
	ek_self.thread = &thread;
	ek_self.accounts = accounts;
	ek.rank = &rank;
	ek.settings.wait = EK_WAIT_ADAPTIVE;
	rank.threads = 1;
	ek_mpi.Iprobe = play_iprobe;
	ek_mpi.progress = play_progress;
	ek_mpi.progress_yields = &yields;
	opal_progress(); /* before MPI_Init */
	ek_wait_start(2);
	expect(ek_wait_climbs && yields, "waits are not known");
	waits_begin_anew();
	polls_do_not_wait();
	sleeps_end_with_messages();
	waits_are_remembered();
	words_are_waited_for();
	ek_wait_stop();
	expect(!yields && ek_mpi.progress == play_progress, "Open MPI is not left as it was");
	int before = polls + steps + given_up;
	wait_for(1000000);
	expect(polls + steps + given_up == before, "sleeps after the end");
	ek_wait_forget();
	if (!wrong)
		puts("ok");
	return wrong != 0;
}
