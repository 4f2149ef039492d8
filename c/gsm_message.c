/* gsm_message.c - active messages between the tasks of a job.
 *
 * On a node they go through injection FIFOs (fifo.h), requests in the class Bulk
 * and replies in the class Control; the byte that a slot has for its user is the
 * handler's number. To other nodes they are letters, which the network's engine
 * carries as one of its own messages, and which wait in an inbox at their target:
 * so handlers run in the program's thread, wherever a message comes from.
 *
 * Nobody waits for ever. Who has no room for a request runs handlers meanwhile.
 * Who has no room for a reply is in a handler, and runs those of replies alone,
 * which send nothing. Letters that find the inbox full are sent again.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "evenkeel.h"
#include "gsm_job.h"
#include "process.h"

enum { REPLY, REQUEST, CLASSES }; /* as the FIFOs' classes: replies go first */

enum {
	NO_HANDLER = 0,   /* a reply by this number says that there is no handler by the one that it holds */
	MOST_POSTS = 256, /* letters on their way */
	FEW = 16,         /* looks in vain, after which the network is asked, */
	MANY = 128,       /* and the processor given up, where tasks share it */
	SLOW = 30         /* us that handlers of letters may take before their sender hears of it */
};

struct ek_gsm_am {
	struct ek_gsm *job;
	uint32_t source;
	bool request, replied;
};

/* What a letter holds. */
struct content {
	uint32_t class, number;
	unsigned char data[EK_GSM_AM_BYTES];
};
enum { CONTENT_HEADER = offsetof(struct content, data) };

/* A letter on its way. */
struct post {
	struct post *next;
	struct ek_gsm_command command;
	struct content content;
};

struct ek_gsm_messages {
	struct {
		ek_gsm_am_handler run;
		void *context;
	} handlers[EK_GSM_AM_HANDLERS];
	bool handling; /* a handler runs */
	bool posted;   /* a letter was sent since the last look */
	bool shared;   /* the node has more tasks than processors */
	bool slow;     /* the handlers of the last letters took long */
	unsigned idle; /* looks in vain, one after the other */
	int error;     /* of the first message that failed since the last poll; */
	char text[EK_GSM_TEXT];
	uint32_t self, near; /* number on the node, and how many there are */
	struct ek_fifo_sender *to;     /* by number on the node and class */
	struct ek_fifo_receiver *from;
	uint32_t *tasks;  /* by number on the node */
	uint32_t *number; /* on the node, by task */
	struct post *posts; /* on their way; of so many. The others are at hand. */
	struct post *unused;
	uint32_t made;
	struct ek_gsm_letter *first, **end; /* out of the inbox, in the order in which they came */
};

/* ---- the node's FIFOs ------------------------------------------------------- */

bool ek_gsm_messages_start(struct ek_gsm *job, const int *tasks, uint32_t near)
{
	struct ek_gsm_messages *m = calloc(1, sizeof *m);
	if (!m)
		return false;
	job->messages = m;
	m->self = job->space.self;
	m->near = near;
	m->end = &m->first;
	m->shared = near > (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	m->to = calloc((size_t)near * CLASSES, sizeof *m->to);
	m->from = calloc((size_t)near * CLASSES, sizeof *m->from);
	m->tasks = calloc(near, sizeof *m->tasks);
	m->number = malloc(job->tasks * sizeof *m->number);
	if (!m->to || !m->from || !m->tasks || !m->number)
		return false;
	memset(m->number, 0xff, job->tasks * sizeof *m->number);
	for (uint32_t i = 0; i < near; i++) {
		m->tasks[i] = (uint32_t)tasks[i];
		m->number[tasks[i]] = i;
	}
	return true;
}

static void free_posts(struct post *list)
{
	while (list) {
		struct post *next = list->next;
		free(list);
		list = next;
	}
}

static void take_letters(struct ek_gsm *job);

void ek_gsm_messages_stop(struct ek_gsm *job)
{
	struct ek_gsm_messages *m = job->messages;
	if (!m)
		return;
	take_letters(job);
	while (m->first) {
		struct ek_gsm_letter *next = m->first->next;
		free(m->first);
		m->first = next;
	}
	free_posts(m->posts);
	free_posts(m->unused);
	free(m->to);
	free(m->from);
	free(m->tasks);
	free(m->number);
	free(m);
	job->messages = 0;
}

/* ---- what goes wrong --------------------------------------------------------- */

static int refuse(const struct ek_gsm *job, uint32_t task, unsigned number, uint64_t bytes, int result, const char *why)
{
	char text[EK_GSM_TEXT];
	snprintf(text, sizeof text, "active message of %llu bytes to handler %u of task %u%s%s", (unsigned long long)bytes,
	         number, task, *why ? ": " : "", why);
	return ek_gsm_failed(job, text, result, "");
}

/* A message that was sent has failed: the next poll says so. */
static void remember(struct ek_gsm_messages *m, uint32_t task, unsigned number, int result)
{
	if (m->error != EK_OK)
		return;
	m->error = result;
	snprintf(m->text, sizeof m->text, "active message to handler %u of task %u", number, task);
}

/* ---- handlers ------------------------------------------------------------------ */

static int send(struct ek_gsm *job, uint32_t task, int class, unsigned number, const void *data, uint32_t bytes, uint64_t from);
#define FROM ((uint64_t)(uintptr_t)__builtin_return_address(0))

/* A message has come. */
static void handle(struct ek_gsm *job, uint32_t source, int class, unsigned number, const void *data, uint32_t bytes)
{
	struct ek_gsm_messages *m = job->messages;
	struct ek_gsm_am message = {job, source, class == REQUEST, false};
	uint32_t missing = number;
	if (EK_UNLIKELY(number >= EK_GSM_AM_HANDLERS || !m->handlers[number].run)) {
		if (class == REQUEST) {
			send(job, source, REPLY, NO_HANDLER, &missing, sizeof missing, FROM);
		} else if (number == NO_HANDLER && bytes == sizeof missing) {
			memcpy(&missing, data, sizeof missing);
			remember(m, source, missing, EK_GSM_NO_HANDLER);
		} else {
			remember(m, job->task, number, EK_GSM_NO_HANDLER);
		}
		return;
	}
	const bool outer = m->handling;
	m->handling = true;
	m->handlers[number].run(&message, data, bytes, m->handlers[number].context);
	m->handling = outer;
}

/* Runs handlers of all that waits in one FIFO. */
static bool receive(struct ek_gsm *job, uint32_t sender, int class)
{
	struct ek_gsm_messages *m = job->messages;
	struct ek_fifo_receiver *from = &m->from[sender * CLASSES + (uint32_t)class];
	bool some = false;
	uint64_t word;
	void *data;
	if (EK_UNLIKELY(!from->fifo))
		*from = ek_fifo_receive_from(job->space.fifos, m->self, sender, (uint32_t)class, -1);
	while ((data = ek_fifo_peek(from, &word))) {
		handle(job, m->tasks[sender], class, EK_FIFO_TAG(word), data, EK_FIFO_LENGTH(word));
		ek_fifo_release(from);
		some = true;
	}
	return some;
}

static bool receive_near(struct ek_gsm *job, int last_class)
{
	struct ek_gsm_messages *m = job->messages;
	bool some = false;
	if (!job->space.fifos)
		return false;
	const struct ek_fifo_task *page = ek_fifo_task(job->space.fifos, m->self);
	for (uint32_t w = 0; w * 64 < m->near; w++) {
		uint64_t senders = __atomic_load_n(&page->senders[w], __ATOMIC_ACQUIRE);
		for (; senders; senders &= senders - 1)
			for (int class = REPLY; class <= last_class; class++)
				some |= receive(job, w * 64 + (uint32_t)__builtin_ctzll(senders), class);
	}
	return some;
}

/* ---- letters ------------------------------------------------------------------- */

/* Takes all letters out of the inbox, which has room again. */
static void take_letters(struct ek_gsm *job)
{
	struct ek_gsm_messages *m = job->messages;
	struct ek_gsm_letter *l = __atomic_exchange_n(&job->inbox.last, NULL, __ATOMIC_ACQUIRE), *first = 0, **end = m->end;
	uint64_t count = 0;
	for (struct ek_gsm_letter *next; l; l = next, count++) { /* the last one leads to the others */
		next = l->next;
		if (!first)
			m->end = &l->next;
		l->next = first;
		first = l;
	}
	*end = first;
	__atomic_store_n(&job->inbox.taken, job->inbox.taken + count, __ATOMIC_RELAXED);
}

/* Runs handlers of the letters of these classes. */
static bool receive_letters(struct ek_gsm *job, int last_class)
{
	struct ek_gsm_messages *m = job->messages;
	bool some = false;
	if (__atomic_load_n(&job->inbox.last, __ATOMIC_RELAXED))
		take_letters(job);
	for (struct ek_gsm_letter **place = &m->first; *place;) {
		struct ek_gsm_letter *l = *place;
		struct content *c = (struct content *)(void *)l->data;
		const bool whole = l->bytes >= CONTENT_HEADER && c->class < CLASSES;
		if (whole && (int)c->class > last_class) {
			place = &l->next;
			continue;
		}
		*place = l->next;
		if (m->end == &l->next)
			m->end = place;
		if (whole)
			handle(job, l->source, (int)c->class, c->number, c->data, l->bytes - CONTENT_HEADER);
		free(l);
		some = true;
		place = &m->first; /* the handler may have taken letters */
	}
	return some;
}

/* Looks what has become of the letters that were sent. */
static void reap(struct ek_gsm *job)
{
	struct ek_gsm_messages *m = job->messages;
	for (struct post **place = &m->posts; *place;) {
		struct post *p = *place;
		if (!ek_gsm_ended(&p->command)) {
			place = &p->next;
			continue;
		}
		if (p->command.result == EK_GSM_NO_MEMORY) { /* the inbox was full */
			ek_gsm_put_into_fifo(job, &p->command, false);
			place = &p->next;
			continue;
		}
		if (p->command.result != EK_OK)
			remember(m, p->command.at.task, p->content.number, (int)p->command.result);
		*place = p->next;
		p->next = m->unused;
		m->unused = p;
	}
}

static struct post *free_post(struct ek_gsm *job)
{
	struct ek_gsm_messages *m = job->messages;
	if (!m->unused)
		reap(job);
	struct post *p = m->unused;
	if (p)
		m->unused = p->next;
	else if (m->made < MOST_POSTS && (p = calloc(1, sizeof *p)))
		m->made++;
	return p;
}

/* ---- sending -------------------------------------------------------------------- */

static uint64_t milliseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Has the network looked at. What goes back for letters leaves with the replies of
 * their handlers, and at once where these send none; before them, if they take so
 * long that the letters' sender would send them again. */
static void look_far(struct ek_gsm *job, int last_class)
{
	struct ek_gsm_messages *m = job->messages;
	const bool held = job->network->poll(job->end, !m->slow) != 0;
	reap(job);
	const uint64_t begin = ek_ticks();
	if (receive_letters(job, last_class)) {
		m->idle = 0;
		m->slow = ek_ticks() - begin > SLOW * ek_ticks_per_us;
	}
	if (held && !m->posted)
		job->network->poll(job->end, 0);
}

static void look(struct ek_gsm *job, int last_class)
{
	struct ek_gsm_messages *m = job->messages;
	m->posted = false;
	bool some = receive_near(job, last_class);
	if (job->end)
		some |= receive_letters(job, last_class);
	if (some) {
		m->idle = 0;
		return;
	}
	m->idle++;
	if (m->idle % FEW == 0 && job->end)
		look_far(job, last_class);
	if (m->idle > MANY && m->shared)
		sched_yield();
}

/* While there is no room for a message of this class; false: there has been none
 * for too long. */
static bool wait_for_room(struct ek_gsm *job, int class, uint64_t *since)
{
	if (!*since)
		*since = milliseconds();
	else if (milliseconds() - *since > (uint64_t)ek.settings.gsm_silence)
		return false;
	look(job, class == REPLY || job->messages->handling ? REPLY : REQUEST);
	return true;
}

/* Who waits for room for a message of this class. */
static struct ek_caller sender(int class, uint64_t from)
{
	return (struct ek_caller){ek_site(from), class == REQUEST ? EK_ek_gsm_am_request : EK_ek_gsm_am_reply};
}

/* The place for a message, once there is room; null: there was none for too long. `from`
 * is where the program sends it, here and below. */
static __attribute__((noinline)) void *wait_for_place(struct ek_gsm *job, struct ek_fifo_sender *to, uint32_t number, int class,
                                                      uint32_t bytes, uint64_t from)
{
	uint64_t since = 0;
	void *place;
	EK_OWN(sender(class, from), EK_C_KEY(job->comm), (int)job->messages->tasks[number]);
	while (!(place = ek_fifo_reserve(to, bytes)))
		if (!wait_for_room(job, class, &since))
			return 0;
	return place;
}

static int send_near(struct ek_gsm *job, uint32_t number, int class, unsigned handler, const void *data, uint32_t bytes,
                     uint64_t from)
{
	struct ek_gsm_messages *m = job->messages;
	struct ek_fifo_sender *to = &m->to[number * CLASSES + (uint32_t)class];
	void *place;
	if (EK_UNLIKELY(!to->fifo)) {
		if (!job->space.fifos)
			return EK_GSM_UNREACHABLE;
		if (ek_gsm_back_fifo(&job->space, number, REPLY) || ek_gsm_back_fifo(&job->space, number, REQUEST))
			return EK_GSM_NO_MEMORY;
		for (uint32_t c = REPLY; c < CLASSES; c++)
			m->to[number * CLASSES + c] = ek_fifo_send_to(job->space.fifos, number, m->self, c, -1);
	}
	if (EK_UNLIKELY(!(place = ek_fifo_reserve(to, bytes))) &&
	    !(place = wait_for_place(job, to, number, class, bytes, from)))
		return EK_GSM_SILENT;
	if (bytes)
		memcpy(place, data, bytes);
	ek_fifo_publish(to, bytes, (uint8_t)handler);
	return EK_OK;
}

static int send_letter(struct ek_gsm *job, uint32_t task, int class, unsigned handler, const void *data, uint32_t bytes,
                       uint64_t from)
{
	uint64_t since = 0;
	struct post *p;
	if (!(p = free_post(job))) {
		EK_OWN(sender(class, from), EK_C_KEY(job->comm), (int)task);
		while (!(p = free_post(job)))
			if (!wait_for_room(job, class, &since))
				return EK_GSM_SILENT;
	}
	p->content.class = (uint32_t)class;
	p->content.number = handler;
	if (bytes)
		memcpy(p->content.data, data, bytes);
	const uint64_t number = p->command.operation_number;
	p->command = (struct ek_gsm_command){.operation_number = number, .operation = EK_GSM_MESSAGE, .at.task = task,
	                                     .data = &p->content, .bytes = CONTENT_HEADER + bytes};
	p->next = job->messages->posts;
	job->messages->posts = p;
	/* One letter goes at once, which costs less than to wake somebody; those of a
	 * burst accumulate. */
	const bool first = !job->messages->posted;
	job->messages->posted = true;
	ek_gsm_put_into_fifo(job, &p->command, first);
	if (first)
		job->network->poll(job->end, 0);
	return EK_OK;
}

static int send(struct ek_gsm *job, uint32_t task, int class, unsigned number, const void *data, uint32_t bytes, uint64_t from)
{
	const uint32_t near = job->messages->number[task];
	if (EK_LIKELY(near != UINT32_MAX))
		return send_near(job, near, class, number, data, bytes, from);
	return job->end ? send_letter(job, task, class, number, data, bytes, from) : EK_GSM_UNREACHABLE;
}

/* ---- what programs call ------------------------------------------------------------ */

static int usable(const struct ek_gsm *job, const char *what)
{
	return job && !job->left ? EK_OK : ek_gsm_failed(job, what, EK_GSM_CLOSED, "");
}

EK_EXPORT int ek_gsm_am_register(struct ek_gsm *job, unsigned number, ek_gsm_am_handler handler, void *context)
{
	char text[EK_GSM_TEXT];
	if (usable(job, "registering a handler") != EK_OK)
		return EK_GSM_CLOSED;
	if (number == NO_HANDLER || number >= EK_GSM_AM_HANDLERS || !handler) {
		snprintf(text, sizeof text, handler ? "%u: their numbers are from 1 to %d" : "%u is null", number, EK_GSM_AM_HANDLERS - 1);
		return ek_gsm_failed(job, "registering a handler", EK_GSM_NO_HANDLER, text);
	}
	job->messages->handlers[number].run = handler;
	job->messages->handlers[number].context = context;
	return EK_OK;
}

/* Why a message can't be sent, if it can't. */
static int check(const struct ek_gsm *job, uint32_t task, unsigned number, const void *data, uint64_t bytes)
{
	if (EK_UNLIKELY(task >= job->tasks))
		return EK_GSM_NO_TASK;
	if (EK_UNLIKELY(number == NO_HANDLER || number >= EK_GSM_AM_HANDLERS))
		return EK_GSM_NO_HANDLER;
	return EK_UNLIKELY(bytes > EK_GSM_AM_BYTES || (!data && bytes)) ? EK_GSM_LENGTH : EK_OK;
}

EK_EXPORT int ek_gsm_am_request(struct ek_gsm *job, uint32_t task, unsigned number, const void *data, uint64_t bytes)
{
	if (EK_UNLIKELY(!job || job->left))
		return usable(job, "an active message");
	if (EK_UNLIKELY(job->messages->handling))
		return refuse(job, task, number, bytes, EK_GSM_OPERATION, "a handler may reply, and send nothing else");
	int result = check(job, task, number, data, bytes);
	if (EK_LIKELY(result == EK_OK))
		result = send(job, task, REQUEST, number, data, (uint32_t)bytes, FROM);
	return EK_LIKELY(result == EK_OK) ? EK_OK : refuse(job, task, number, bytes, result, "");
}

EK_EXPORT int ek_gsm_am_reply(struct ek_gsm_am *message, unsigned number, const void *data, uint64_t bytes)
{
	if (EK_UNLIKELY(!message->request || message->replied))
		return refuse(message->job, message->source, number, bytes, EK_GSM_OPERATION,
		              message->request ? "this request has had its reply" : "a reply has no reply");
	int result = check(message->job, message->source, number, data, bytes);
	if (EK_LIKELY(result == EK_OK)) {
		message->replied = true;
		result = send(message->job, message->source, REPLY, number, data, (uint32_t)bytes, FROM);
	}
	return EK_LIKELY(result == EK_OK) ? EK_OK : refuse(message->job, message->source, number, bytes, result, "");
}

EK_EXPORT uint32_t ek_gsm_am_source(const struct ek_gsm_am *message)
{
	return message->source;
}

EK_EXPORT int ek_gsm_am_poll(struct ek_gsm *job)
{
	if (EK_UNLIKELY(!job || job->left))
		return usable(job, "looking for messages");
	struct ek_gsm_messages *m = job->messages;
	if (EK_UNLIKELY(m->handling))
		return ek_gsm_failed(job, "looking for messages", EK_GSM_OPERATION, "a handler can't");
	look(job, REQUEST);
	if (EK_LIKELY(m->error == EK_OK))
		return EK_OK;
	int result = m->error;
	m->error = EK_OK;
	return ek_gsm_failed(job, m->text, result, "");
}
