/* gsm_started.c - commands of global shared memory that go on: those to tasks of
 * other nodes, and handles.
 *
 * The path of a command to another node: it is written down (struct
 * ek_gsm_command), put into the job's FIFO, and taken from there by the Go side
 * (pgas/gsm/service), which writes its end into it. Whoever has to wait calls the
 * Go side once, and drives its engine until that end. What was started and is
 * not waited for costs one write here, and a ring of the doorbell where the Go
 * side sleeps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evenkeel.h"
#include "gsm_counters.h"
#include "gsm_job.h"
#include "kernels.h"
#include "load.h"
#include "process.h"

enum { LITTLE = 8192 }; /* bytes that blocks may span to be fetched with their gaps */
enum { MOST_WITHOUT = 1024 }; /* commands without a handle under way: then their ends are looked at */

/* A forked child has the memory, but neither the Go side's threads nor a place in
 * the network. */
static bool forked;

static void in_child(void)
{
	forked = true;
}

static void mind_forks(void)
{
	pthread_atfork(0, 0, in_child);
}

/* ---- the network ---------------------------------------------------------- */

static int allgather(void *context, const void *mine, void *all, uint64_t bytes)
{
	const struct ek_gsm *job = context;
	if (bytes > INT32_MAX)
		return 1;
	return ek_mpi.Allgather(mine, (int)bytes, ek_mpi.type_byte, all, (int)bytes, ek_mpi.type_byte, job->comm) != MPI_SUCCESS;
}

/* The service of the runtime that records this run, or of one that is opened now. */
static const struct ek_gsm_network *find_network(void)
{
	const struct ek_gsm_network *found = ek_service("gsm");
	if (!found) {
		const struct ek_runtime *runtime = ek_runtime_open(ek.settings.runtime, false);
		found = runtime ? runtime->service("gsm") : 0;
	}
	return found && found->version == EK_GSM_NETWORK_VERSION && found->size == sizeof *found ? found : 0;
}

int ek_gsm_connect(struct ek_gsm *job, char *text)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct ek_gsm_membership member = {
		.task = job->task, .tasks = job->tasks, .apart = ek.settings.gsm_apart, .area = job->space.area,
		.fifo = &job->fifo, .inbox = &job->inbox, .mpi = ek_gsm_mpi_of(job), .allgather = allgather, .context = job,
		.show_foreign = ek_gsm_show_foreign};
	int have = 0, all = 0;
	job->network = find_network();
	have = job->network != 0;
	if (ek_mpi.Allreduce(&have, &all, 1, ek_mpi.type_int, ek_mpi.op_min, job->comm) != MPI_SUCCESS || !all) {
		snprintf(text, EK_GSM_TEXT, "%s has no runtime that reaches other nodes: set EVENKEEL_RUNTIME to where "
		         "libevenkeel-runtime.so is, and install both libraries from one build", have ? "another task" : "this task");
		return EK_GSM_UNREACHABLE;
	}
	pthread_once(&once, mind_forks);
	job->end = job->network->join(&member, text);
	return job->end ? EK_OK : EK_GSM_UNREACHABLE;
}

void ek_gsm_disconnect(struct ek_gsm *job)
{
	if (job->end)
		job->network->leave(job->end);
	job->end = 0;
}

void ek_gsm_put_into_fifo(struct ek_gsm *job, struct ek_gsm_command *command, bool waits)
{
	struct ek_gsm_fifo *fifo = &job->fifo;
	command->next = __atomic_load_n(&fifo->last, __ATOMIC_RELAXED);
	__atomic_store_n(&command->progress, EK_GSM_UNDER_WAY, __ATOMIC_RELAXED);
	/* Sequentially consistent: the command before it is there, and it before the
	 * look at `asleep`, as the Go side sets that before its last look here. */
	while (!__atomic_compare_exchange_n(&fifo->last, &command->next, command, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	if (waits || !__atomic_load_n(&fifo->asleep, __ATOMIC_SEQ_CST) || !__atomic_exchange_n(&fifo->asleep, 0, __ATOMIC_RELAXED))
		return;
	const uint64_t one = 1;
	int kept = errno;
	ssize_t rung = write(fifo->doorbell, &one, sizeof one); /* a bell that is full of rings is rung already */
	(void)rung;
	errno = kept;
}

static void wait_for(struct window *w, struct ek_gsm_command *command, struct ek_caller by)
{
	if (ek_gsm_ended(command))
		return;
	if (!forked) {
		EK_OWN(by, EK_C_KEY(w->job->comm), (int)command->at.task);
		w->job->network->wait(w->job->end, command);
		return;
	}
	command->result = EK_GSM_UNREACHABLE;
	command->progress = EK_GSM_ENDED;
}

/* ---- what was started ------------------------------------------------------ */

static bool more_room(struct window *w)
{
	uint32_t room = w->room ? 2 * w->room : 64;
	struct started *started = realloc(w->started, room * sizeof *started);
	if (started)
		w->started = started;
	uint32_t *free_slots = realloc(w->free, room * sizeof *free_slots);
	if (free_slots)
		w->free = free_slots;
	if (!started || !free_slots)
		return false;
	memset(started + w->room, 0, (room - w->room) * sizeof *started);
	while (w->room < room)
		free_slots[w->free_count++] = w->room++;
	return true;
}

static struct started *take(struct window *w, int use)
{
	if (!w->free_count && !more_room(w))
		return 0;
	struct started *s = &w->started[w->free[--w->free_count]];
	s->generation++;
	s->use = use;
	s->away = false;
	return s;
}

static void give(struct window *w, struct started *s)
{
	s->use = EK_GSM_FREE;
	w->free[w->free_count++] = (uint32_t)(s - w->started);
}

static ek_gsm_handle handle_of(const struct window *w, const struct started *s)
{
	return (uint64_t)s->generation << 32 | (uint32_t)(s - w->started);
}

int ek_gsm_room_for_handle(struct window *w, const ek_gsm_handle *handle)
{
	if (!handle || !w || !w->open.tasks || w->free_count || more_room(w))
		return EK_OK;
	return ek_gsm_failed(w->job, "a command with a handle", EK_GSM_NO_MEMORY, "");
}

void ek_gsm_give_handle(struct window *w, ek_gsm_handle *handle)
{
	if (handle)
		*handle = handle_of(w, take(w, EK_GSM_WITH_HANDLE));
}

void ek_gsm_forget_handles(struct window *w)
{
	for (uint32_t i = w->free_count = 0; i < w->room; i++) { /* generations go on: old handles are none of this window */
		w->started[i].use = EK_GSM_FREE;
		w->free[w->free_count++] = i;
	}
	w->away = w->without = 0;
	w->failed.result = EK_OK;
}

/* The command has ended: its result, and its slot is free again. */
static int end(struct window *w, struct started *s)
{
	int result = EK_OK;
	if (s->away) {
		const struct ek_gsm_command *c = s->command;
		w->away--;
		result = (int)c->result;
		const uint64_t bytes = c->operation < EK_GSM_ADD ? c->bytes : c->width;
		if (result == EK_OK && s->old)
			*s->old = c->value;
		if (result != EK_OK)
			ek_gsm_refuse(&w->open, (int)c->operation, c->at, bytes, result);
		if (result != EK_OK && s->use == EK_GSM_WITHOUT && w->failed.result == EK_OK) {
			w->failed.result = result;
			w->failed.operation = (int)c->operation;
			w->failed.at = c->at;
			w->failed.bytes = bytes;
		}
	}
	if (s->use == EK_GSM_WITHOUT)
		w->without--;
	give(w, s);
	return result;
}

/* ---- commands to other nodes ----------------------------------------------- */

static void count(struct ek_gsm_window *w, const struct ek_gsm_command *c)
{
	switch (c->operation) {
	case EK_GSM_PUT_BYTES:
		ek_gsm_counted(&w->counters.puts, 1);
		ek_gsm_counted(&w->counters.put_bytes, c->bytes);
		break;
	case EK_GSM_GET_BYTES:
		ek_gsm_counted(&w->counters.gets, 1);
		ek_gsm_counted(&w->counters.get_bytes, c->bytes);
		break;
	default:
		ek_gsm_counted(&w->counters.atomics, 1);
	}
}

/* Starts a command; null, and why not in *result. */
static struct started *start(struct window *w, const struct ek_gsm_command *order, uint64_t *old, int use, bool waits,
                             int *result)
{
	const uint64_t bytes = order->operation < EK_GSM_ADD ? order->bytes : order->width;
	struct started *s = 0;
	if (!ek_gsm_has_key(w->key, order->at.task))
		*result = EK_GSM_KEY;
	else
		*result = w->job->end && !forked ? EK_OK : EK_GSM_UNREACHABLE;
	if (*result == EK_OK && (!(s = take(w, use)) || (!s->command && !(s->command = calloc(1, sizeof *s->command)))))
		*result = EK_GSM_NO_MEMORY;
	if (*result != EK_OK) {
		if (s)
			give(w, s);
		ek_gsm_refuse(&w->open, (int)order->operation, order->at, bytes, *result);
		return 0;
	}
	const uint64_t number = s->command->operation_number;
	*s->command = *order;
	s->command->operation_number = number;
	s->command->key = w->key ? w->key->number : 0;
	s->old = old;
	s->away = true;
	w->away++;
	w->without += use == EK_GSM_WITHOUT;
	count(&w->open, order);
	ek_gsm_put_into_fifo(w->job, s->command, waits);
	return s;
}

int ek_gsm_do_away(struct window *w, const struct ek_gsm_command *order, uint64_t *old, struct ek_caller by)
{
	int result;
	struct started *s = start(w, order, old, EK_GSM_WITH_HANDLE, true, &result);
	if (!s)
		return result;
	wait_for(w, s->command, by);
	return end(w, s);
}

int ek_gsm_start_away(struct window *w, const struct ek_gsm_command *order, uint64_t *old, ek_gsm_handle *handle,
                      struct ek_caller by)
{
	int result;
	struct started *s = start(w, order, old, handle ? EK_GSM_WITH_HANDLE : EK_GSM_WITHOUT, false, &result);
	if (!s)
		return result;
	if (handle)
		*handle = handle_of(w, s);
	if (w->without >= MOST_WITHOUT)
		ek_gsm_finish(w, by);
	return EK_OK;
}

/* GETs what blocks span, gaps too, as one command: one round trip, where a description
 * takes several. */
static int get_span_away(struct window *w, struct ek_gsm_address from, uint64_t from_step, void *into, uint64_t step,
                         uint64_t bytes, uint64_t count, struct ek_caller by)
{
	const struct ek_gsm_counters before = w->open.counters;
	char all[LITTLE];
	const struct ek_gsm_command order = {
		.operation = EK_GSM_GET_BYTES, .at = from, .data = all, .bytes = (count - 1) * from_step + bytes};
	int result = ek_gsm_do_away(w, &order, 0, by);
	if (result == EK_OK)
		ek_copy_strided(into, (ptrdiff_t)step, all, (ptrdiff_t)from_step, bytes, count);
	w->open.counters = before;
	return result;
}

int ek_gsm_strided_away(struct window *w, int operation, struct ek_gsm_address at, uint64_t at_step, void *data,
                        uint64_t step, uint64_t bytes, uint64_t count, struct ek_caller by)
{
	if (operation == EK_GSM_GET_BYTES && (count - 1) * at_step + bytes <= LITTLE)
		return get_span_away(w, at, at_step, data, step, bytes, count, by);
	if (!ek_gsm_has_key(w->key, at.task))
		return EK_GSM_KEY;
	if (!w->job->end || forked)
		return EK_GSM_UNREACHABLE;
	EK_OWN(by, EK_C_KEY(w->job->comm), (int)at.task);
	return w->job->network->strided(w->job->end, (uint32_t)operation, at, at_step, data, step, bytes, count,
	                                w->key ? w->key->number : 0);
}

void ek_gsm_finish(struct window *w, struct ek_caller by)
{
	for (uint32_t i = 0; i < w->room && w->away; i++) {
		struct started *s = &w->started[i];
		if (s->use == EK_GSM_FREE || !s->away)
			continue;
		wait_for(w, s->command, by);
		if (s->use == EK_GSM_WITHOUT)
			end(w, s);
	}
}

int ek_gsm_tell(struct window *w)
{
	int result = w->failed.result;
	if (result != EK_OK)
		ek_gsm_refused(w->failed.operation, w->failed.at, w->failed.bytes, result);
	w->failed.result = EK_OK;
	return result;
}

/* ---- handles ---------------------------------------------------------------- */

/* What a handle stands for; null, and why not in *result. */
static struct started *find(struct window *w, ek_gsm_handle handle, int *result)
{
	static const char what[] = "waiting for a command";
	const uint32_t slot = (uint32_t)handle;
	char text[EK_GSM_TEXT];
	if (!w || !w->open.tasks) {
		*result = ek_gsm_failed(w ? w->job : 0, what, EK_GSM_CLOSED, "");
		return 0;
	}
	if (slot < w->room && w->started[slot].use == EK_GSM_WITH_HANDLE && w->started[slot].generation == handle >> 32)
		return &w->started[slot];
	snprintf(text, sizeof text, "handle %llx of window %u", (unsigned long long)handle, w->open.number);
	*result = ek_gsm_failed(w->job, what, EK_GSM_HANDLE, text);
	return 0;
}

EK_EXPORT int ek_gsm_wait(struct ek_gsm_window *window, ek_gsm_handle handle)
{
	struct window *w = (struct window *)window;
	int result;
	struct started *s = find(w, handle, &result);
	if (!s)
		return result;
	if (s->away)
		wait_for(w, s->command, EK_CALLER(ek_gsm_wait));
	return end(w, s);
}

EK_EXPORT int ek_gsm_test(struct ek_gsm_window *window, ek_gsm_handle handle, int *done)
{
	struct window *w = (struct window *)window;
	int result;
	struct started *s = find(w, handle, &result);
	*done = 0;
	if (!s)
		return result;
	if (s->away && !ek_gsm_ended(s->command)) {
		w->job->network->poll(w->job->end, 0);
		if (!ek_gsm_ended(s->command))
			return EK_OK;
	}
	result = end(w, s);
	*done = 1;
	return result;
}
