/* gsm_poll.c - when a task that looks for active messages (c/gsm_message.c, which this
 * program is built with) asks the network, what it lets wait for a reply, and what
 * becomes of letters that did not arrive: with a network that is played here, and no
 * clock. Prints "ok", or what is wrong.
 */
#include <evenkeel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "gsm_job.h"
#include "own.h"
#include "process.h"

enum { LOOKS = 16, QUIET = 1, ANSWERS = 2 };

struct ek_process ek;
__thread struct ek_recorder ek_self;

uint64_t ek_python_site(uint64_t address)
{
	return address;
}
bool ek_clock_is_tsc;
uint64_t ek_ticks_per_us = (uint64_t)1 << 50; /* no handler is slow */

static struct ek_gsm job;
static int polls, holding, given, runs, wrong;
static int deliver; /* what the next look at the network brings: a letter to this handler */
static struct ek_gsm_command *last_put;

int ek_gsm_failed(const struct ek_gsm *of, const char *what, int result, const char *why)
{
	(void)of;
	(void)what;
	(void)why;
	return result;
}

int ek_gsm_back_fifo(struct ek_gsm_space *space, uint32_t receiver, uint32_t class)
{
	(void)space;
	(void)receiver;
	(void)class;
	return EK_GSM_NO_MEMORY;
}

void ek_gsm_put_into_fifo(struct ek_gsm *to, struct ek_gsm_command *command, bool waits)
{
	(void)to;
	(void)waits;
	given++;
	last_put = command;
	command->progress = EK_GSM_UNDER_WAY;
}

/* Nothing is recorded. */
void ek_own_begin(struct ek_own *own, struct ek_caller by, uint64_t handle, int rank, uintptr_t frame)
{
	(void)by;
	(void)handle;
	(void)rank;
	(void)frame;
	own->begun = false;
}

void ek_own_end(struct ek_own *own)
{
	(void)own;
}

/* A letter of 8 bytes before the data: the class of a request, and the handler. */
static void bring(uint32_t handler)
{
	const uint32_t content[2] = {1, handler};
	struct ek_gsm_letter *l = malloc(sizeof *l + sizeof content);
	l->source = 1;
	l->bytes = sizeof content;
	memcpy(l->data, content, sizeof content);
	l->next = job.inbox.last;
	job.inbox.last = l;
	job.inbox.put++;
}

static int poll_network(uint64_t end, int holds)
{
	(void)end;
	polls++;
	holding += holds;
	if (!deliver)
		return 0;
	bring((uint32_t)deliver);
	deliver = 0;
	return holds;
}

static void quiet(struct ek_gsm_am *m, const void *data, uint64_t bytes, void *unused)
{
	(void)m;
	(void)data;
	(void)bytes;
	(void)unused;
	runs++;
}

static void answers(struct ek_gsm_am *m, const void *data, uint64_t bytes, void *unused)
{
	quiet(m, data, bytes, unused);
	ek_gsm_am_reply(m, QUIET, 0, 0);
}

/* Looks so often, and compares what has happened meanwhile. */
static void expect(int looks, int want_polls, int want_holding, int want_runs, int want_puts, int want_result, const char *when)
{
	int result = EK_OK;
	polls = holding = runs = given = 0;
	for (int i = 0; i < looks && result == EK_OK; i++)
		result = ek_gsm_am_poll(&job);
	if (polls == want_polls && holding == want_holding && runs == want_runs && given == want_puts && result == want_result)
		return;
	printf("%s: polls %d holding %d runs %d given %d result %d, not %d %d %d %d %d\n", when, polls, holding, runs, given, result,
	       want_polls, want_holding, want_runs, want_puts, want_result);
	wrong = 1;
}

int main(void)
{
	const int tasks[1] = {0};
	const struct ek_gsm_network network = {.poll = poll_network};
	job.tasks = 2;
	ek.settings.gsm_silence = 1000;
	if (!ek_gsm_messages_start(&job, tasks, 1))
		return 1;
	job.network = &network;
	job.end = 1;
	ek_gsm_am_register(&job, QUIET, quiet, 0);
	ek_gsm_am_register(&job, ANSWERS, answers, 0);

	expect(LOOKS - 1, 0, 0, 0, 0, EK_OK, "a look is not enough to ask the network");
	expect(1, 1, 1, 0, 0, EK_OK, "so many are");
	expect(10 * LOOKS, 10, 10, 0, 0, EK_OK, "and each time");
	deliver = QUIET;
	expect(LOOKS, 2, 1, 1, 0, EK_OK, "what goes back for a letter is sent at once where its handler sends nothing");
	expect(LOOKS - 1, 0, 0, 0, 0, EK_OK, "a letter is no look in vain");
	bring(QUIET);
	expect(1, 0, 0, 1, 0, EK_OK, "a letter that is there needs no network");
	deliver = ANSWERS;
	expect(LOOKS, 2, 1, 1, 1, EK_OK, "and with the reply where it sends one");

	struct ek_gsm_command *reply = last_put;
	if (!reply)
		return 1;
	reply->result = EK_GSM_NO_MEMORY;
	reply->progress = EK_GSM_ENDED;
	last_put = 0;
	expect(LOOKS, 1, 1, 0, 1, EK_OK, "a letter that found the inbox full goes again");
	wrong |= last_put != reply;
	reply->result = EK_GSM_SILENT;
	reply->progress = EK_GSM_ENDED;
	expect(LOOKS, 1, 1, 0, 0, EK_GSM_SILENT, "one that failed is told");
	expect(LOOKS, 1, 1, 0, 0, EK_OK, "once");

	ek_ticks_per_us = 0; /* all handlers are slow */
	deliver = QUIET;
	expect(LOOKS, 2, 1, 1, 0, EK_OK, "who does not know it yet lets wait");
	expect(LOOKS, 1, 0, 0, 0, EK_OK, "what slow handlers' senders wait for does not wait");
	ek_gsm_messages_stop(&job);
	if (!wrong)
		printf("ok\n");
	return wrong;
}
