/* gsm.c - global shared memory for C programs: how the ranks of a communicator
 * come together over their nodes' memory (gsm_memory.c), and the commands that
 * evenkeel_gsm.h does not inline.
 *
 * A command that is refused leaves a text for its thread, and is counted by the
 * window that it should have gone out through. A window's struct stays where it
 * is when the window is closed, and a job's when the task has left, so that who
 * uses them later is told so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "ground.h"
#include "gsm.h"
#include "gsm_counters.h"
#include "gsm_job.h"
#include "kernels.h"
#include "process.h"

static struct ek_gsm *jobs;
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;

struct ek_gsm_area ek_gsm_nowhere;

/* ---- what went wrong ---------------------------------------------------- */

static __thread char error_text[EK_GSM_TEXT + 128];

EK_EXPORT const char *ek_gsm_error(void)
{
	return error_text;
}

int ek_gsm_failed(const struct ek_gsm *job, const char *what, int result, const char *why)
{
	snprintf(error_text, sizeof error_text, "task %u: %s: %s%s%s", job ? job->task : 0, what, why, *why ? ": " : "",
	         ek_strerror(result));
	return result;
}

static const char *const operations[] = {
	[EK_GSM_PUT_BYTES] = "PUT", [EK_GSM_GET_BYTES] = "GET",
	[EK_GSM_ADD] = "ADD", [EK_GSM_AND] = "AND", [EK_GSM_OR] = "OR", [EK_GSM_XOR] = "XOR", [EK_GSM_SWAP] = "SWAP",
	[EK_GSM_COMPARE_AND_SWAP] = "COMPARE-AND-SWAP", [EK_GSM_FETCH_AND_ADD] = "FETCH-AND-ADD",
	[EK_GSM_FETCH_AND_AND] = "FETCH-AND-AND", [EK_GSM_FETCH_AND_OR] = "FETCH-AND-OR",
	[EK_GSM_FETCH_AND_XOR] = "FETCH-AND-XOR",
};

static const char *name_of(int operation)
{
	return operation >= EK_GSM_PUT_BYTES && operation <= EK_GSM_FETCH_AND_XOR ? operations[operation] : "no operation";
}

int ek_gsm_refused(int operation, struct ek_gsm_address at, uint64_t bytes, int result)
{
	snprintf(error_text, sizeof error_text, "%s of %llu bytes at task %u, window %u, offset %llu: %s", name_of(operation),
	         (unsigned long long)bytes, at.task, at.window, (unsigned long long)at.offset, ek_strerror(result));
	return result;
}

int ek_gsm_refuse(struct ek_gsm_window *w, int operation, struct ek_gsm_address at, uint64_t bytes, int result)
{
	if (w)
		ek_gsm_counted(&w->counters.refused, 1);
	return ek_gsm_refused(operation, at, bytes, result);
}

const char *ek_gsm_strerror(int result)
{
	switch ((enum ek_gsm_result)result) {
	case EK_GSM_NO_TASK:
		return "the job has no such task";
	case EK_GSM_NO_WINDOW:
		return "no such window is open";
	case EK_GSM_RANGE:
		return "outside of what the window shows: give an offset and a length within what its task opened";
	case EK_GSM_PROTECTED:
		return "not allowed by the window's protection";
	case EK_GSM_UNALIGNED:
		return "address not aligned to the width";
	case EK_GSM_LENGTH:
		return "wrong length";
	case EK_GSM_OPERATION:
		return "no such operation";
	case EK_GSM_HANDLE:
		return "the handle was freed, or is of another window";
	case EK_GSM_CLOSED:
		return "the window is closed, or its task has left the job";
	case EK_GSM_NOT_MEMORY:
		return "no memory that was allocated here";
	case EK_GSM_IN_USE:
		return "a window still shows it";
	case EK_GSM_NO_MEMORY:
		return "there is no room";
	case EK_GSM_UNEQUAL:
		return "the tasks differ in a collective call";
	case EK_GSM_UNREACHABLE:
		return "the task is on another node, and there is no way to it";
	case EK_GSM_SILENT:
		return "the task is silent; whether the command was done is not known";
	case EK_GSM_FAILED:
		return "failed on the way to another node; whether the command was done is not known";
	case EK_GSM_NO_HANDLER:
		return "the task has no such handler";
	case EK_GSM_KEY:
		return "the window wants a narrower key, or one of the two tasks has not that of the other";
	}
	return 0;
}

/* ---- joining and leaving ------------------------------------------------ */

int ek_gsm_agree(MPI_Comm comm, int mine)
{
	int all = EK_GSM_UNEQUAL;
	if (ek_mpi.Allreduce(&mine, &all, 1, ek_mpi.type_int, ek_mpi.op_max, comm) != MPI_SUCCESS || all == EK_OK)
		return all;
	return mine ? mine : EK_GSM_UNEQUAL;
}

static int agree(const struct ek_gsm *job, int mine)
{
	return ek_gsm_agree(job->comm, mine);
}

static bool find_areas(struct ek_gsm *job, MPI_Comm node, int local_tasks)
{
	int *tasks = malloc((size_t)local_tasks * sizeof *tasks), task = (int)job->task;
	bool made = tasks && job->areas &&
	            ek_mpi.Allgather(&task, 1, ek_mpi.type_int, tasks, 1, ek_mpi.type_int, node) == MPI_SUCCESS;
	for (uint32_t i = 0; made && i < job->tasks; i++)
		job->areas[i] = &ek_gsm_nowhere;
	for (int i = 0; made && i < local_tasks; i++)
		job->areas[tasks[i]] = ek_gsm_area_of(&job->space, (uint32_t)i);
	made = made && ek_gsm_messages_start(job, tasks, (uint32_t)local_tasks);
	free(tasks);
	return made;
}

/* Maps the node's memory. `node` is the tasks of this node. */
static int enter(struct ek_gsm *job, MPI_Comm node, char *text)
{
	struct ek_gsm_invitation invitation = {.pid = -1, .descriptor = -1}, mine;
	int local_task, local_tasks, result = EK_OK;
	ek_mpi.Comm_rank(node, &local_task);
	ek_mpi.Comm_size(node, &local_tasks);
	if (local_task == 0)
		result = ek_gsm_invite(&invitation, (uint32_t)local_tasks, (uint64_t)ek.settings.gsm_reserve << 19, text);
	mine = invitation;
	ek_mpi.Bcast(&mine, sizeof mine, ek_mpi.type_byte, 0, node);
	if (result == EK_OK)
		result = ek_gsm_enter(&job->space, &mine, (uint32_t)local_task, text);
	bool entered = result == EK_OK;
	/* All have entered, or all turn back; nobody needs the descriptor after this. */
	result = agree(job, result);
	if (local_task == 0)
		ek_gsm_uninvite(&invitation);
	if (result == EK_OK) {
		job->space.area->task = job->task;
		job->areas = malloc(job->tasks * sizeof(struct ek_gsm_area *));
		result = agree(job, find_areas(job, node, local_tasks) ? EK_OK : EK_GSM_NO_MEMORY);
	}
	if (result != EK_OK && entered)
		ek_gsm_exit(&job->space);
	return result;
}

/* Joins the network, if some task is on another node. */
static int reach_others(struct ek_gsm *job, char *text)
{
	int far = 0, some = 0;
	for (uint32_t i = 0; i < job->tasks; i++)
		far |= job->areas[i] == &ek_gsm_nowhere;
	if (ek_mpi.Allreduce(&far, &some, 1, ek_mpi.type_int, ek_mpi.op_max, job->comm) != MPI_SUCCESS)
		return EK_GSM_UNEQUAL;
	if (!some)
		return EK_OK;
	int result = agree(job, ek_gsm_connect(job, text));
	if (result != EK_OK)
		ek_gsm_disconnect(job);
	return result;
}

void ek_gsm_name(struct ek_gsm *job, const char *name)
{
	ek_next.MPI_Comm_set_name(job->comm, name);
	ek_comm_named(job->comm);
}

static int join(MPI_Comm comm, struct ek_gsm *job)
{
	MPI_Comm node;
	char text[EK_GSM_TEXT] = "";
	int task, tasks;
	if (ek_ground()->Comm_dup(comm, &job->comm) != MPI_SUCCESS)
		return ek_gsm_failed(job, "joining a job", EK_GSM_NO_MEMORY, "MPI has no further communicator");
	ek_mpi.Comm_set_errhandler(job->comm, ek_mpi.errors_return);
	ek_gsm_name(job, "global shared memory");
	ek_mpi.Comm_rank(job->comm, &task);
	ek_mpi.Comm_size(job->comm, &tasks);
	job->task = (uint32_t)task;
	job->tasks = (uint32_t)tasks;
	if (ek.settings.gsm_apart)
		ek_mpi.Comm_split(job->comm, task, 0, &node);
	else
		ek_mpi.Comm_split_type(job->comm, MPI_COMM_TYPE_SHARED, task, ek_mpi.info_null, &node);
	int result = enter(job, node, text);
	ek_mpi.Comm_free(&node);
	if (result == EK_OK && (result = reach_others(job, text)) != EK_OK)
		ek_gsm_exit(&job->space);
	if (result != EK_OK) {
		ek_ground()->Comm_free(&job->comm);
		return ek_gsm_failed(job, "joining a job", result, text);
	}
	return EK_OK;
}

EK_EXPORT int ek_gsm_join(int comm, struct ek_gsm **job)
{
	EK_FOR_CALLER;
	int kept = errno, initialized = 0;
	ek_next_resolve();
	if (ek_mpi.found)
		ek_mpi.Initialized(&initialized);
	if (!initialized || !job)
		return ek_gsm_failed(0, "joining a job", EK_INACTIVE, "");
	struct ek_gsm *made = calloc(1, sizeof *made);
	if (!made)
		return ek_gsm_failed(0, "joining a job", EK_GSM_NO_MEMORY, "");
	pthread_mutex_init(&made->lock, 0);
	int result = join(ek_mpi.Comm_f2c(comm), made);
	if (result == EK_OK) {
		pthread_mutex_lock(&jobs_lock);
		made->number = jobs ? jobs->number + 1 : 1;
		made->before = jobs;
		jobs = made;
		pthread_mutex_unlock(&jobs_lock);
		*job = made;
	} else {
		ek_gsm_messages_stop(made);
		free(made->areas);
		free(made);
	}
	errno = kept;
	return result;
}

/* ---- counters that others see --------------------------------------------- */

/* Has others see the window's counters. */
static void show_counters(struct window *w)
{
	const struct ek_gsm_counters now = w->open.counters;
	w->job->space.area->counters[w->open.number % EK_GSM_WINDOWS] = now;
	ek_gsm_show_row(w->row, &now, &w->told);
}

/* ---- fences and the end --------------------------------------------------- */

int ek_gsm_usable(const struct ek_gsm *job, const char *what)
{
	return job && !job->left ? EK_OK : ek_gsm_failed(job, what, EK_GSM_CLOSED, "");
}

/* All commands to other nodes have ended. */
static void finish(struct ek_gsm *job, struct ek_caller by)
{
	pthread_mutex_lock(&job->lock);
	for (int i = 0; i < EK_GSM_WINDOWS && job->network; i++)
		if (job->windows[i] && job->windows[i]->open.tasks)
			ek_gsm_finish(job->windows[i], by);
	pthread_mutex_unlock(&job->lock);
}

/* The first error of a command without a handle, of any window: those of all are told then. */
static int tell(struct ek_gsm *job)
{
	int first = EK_OK;
	pthread_mutex_lock(&job->lock);
	for (int i = 0; i < EK_GSM_WINDOWS && job->network; i++) {
		struct window *w = job->windows[i];
		int result = w && w->open.tasks ? ek_gsm_tell(w) : EK_OK;
		if (first == EK_OK)
			first = result;
	}
	pthread_mutex_unlock(&job->lock);
	return first;
}

/* All commands of all tasks have ended, and what was freed before is used again. What
 * failed of them is left to be told. */
static int settle(struct ek_gsm *job)
{
	finish(job, EK_CALLER(ek_gsm_fence));
	uint64_t mark = ek_gsm_mark(&job->space);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ek_ground()->Barrier(job->comm) != MPI_SUCCESS)
		return ek_gsm_failed(job, "global fence", EK_GSM_UNEQUAL, "MPI's barrier failed");
	ek_gsm_settle(&job->space, mark);
	return EK_OK;
}

static int global_fence(struct ek_gsm *job)
{
	int result = settle(job), first = tell(job);
	return result == EK_OK ? first : result;
}

EK_EXPORT int ek_gsm_global_fence(struct ek_gsm *job)
{
	EK_FOR_CALLER;
	int kept = errno, result = ek_gsm_usable(job, "global fence");
	if (result == EK_OK)
		result = global_fence(job);
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_leave(struct ek_gsm *job)
{
	EK_FOR_CALLER;
	int kept = errno, result = ek_gsm_usable(job, "leaving a job");
	if (result == EK_OK) {
		result = global_fence(job);
		ek_gsm_disconnect(job);
		ek_gsm_messages_stop(job);
		job->left = true;
		for (int i = 0; i < EK_GSM_WINDOWS; i++)
			if (job->windows[i] && job->windows[i]->open.tasks) {
				show_counters(job->windows[i]);
				job->windows[i]->open.tasks = 0;
			}
		ek_gsm_exit(&job->space);
		ek_ground()->Comm_free(&job->comm);
	}
	errno = kept;
	return result;
}

EK_EXPORT uint32_t ek_gsm_task(const struct ek_gsm *job)
{
	return job->task;
}

EK_EXPORT uint32_t ek_gsm_tasks(const struct ek_gsm *job)
{
	return job->tasks;
}

EK_EXPORT int ek_gsm_same_node(const struct ek_gsm *job, uint32_t task)
{
	return task < job->tasks && job->areas[task] != &ek_gsm_nowhere;
}

/* ---- memory and windows ------------------------------------------------- */

static char *memory_at(const struct ek_gsm *job, uint64_t place)
{
	return (char *)job->space.area + place;
}

/* What is outside of the area is at a place where nothing is allocated. */
static uint64_t place_of(const struct ek_gsm *job, const void *memory)
{
	uint64_t place = (uint64_t)((const char *)memory - (const char *)job->space.area);
	return place < job->space.area_size ? place : 0;
}

EK_EXPORT int ek_gsm_allocate(struct ek_gsm *job, uint64_t bytes, void **memory)
{
	static const char what[] = "allocating";
	char text[EK_GSM_TEXT];
	uint64_t place;
	int kept = errno, result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	result = ek_gsm_take(&job->space, EK_GSM_OWN, bytes, &place, text);
	if (result == EK_OK)
		*memory = memory_at(job, place);
	else
		ek_gsm_failed(job, what, result, text);
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_free(struct ek_gsm *job, void *memory)
{
	static const char what[] = "freeing";
	char text[EK_GSM_TEXT];
	int kept = errno, result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	uint64_t place = place_of(job, memory);
	/* The collective heap is given back by all tasks together. */
	if (place >= job->space.heap[EK_GSM_COLLECTIVE].start &&
	    place - job->space.heap[EK_GSM_COLLECTIVE].start < job->space.heap[EK_GSM_COLLECTIVE].size)
		place = 0;
	result = ek_gsm_give(&job->space, place, text);
	if (result != EK_OK)
		ek_gsm_failed(job, what, result, text);
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_protect(struct ek_gsm *job, void *memory, uint64_t bytes, unsigned rights)
{
	static const char what[] = "protecting";
	char text[EK_GSM_TEXT];
	int result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	result = ek_gsm_guard(&job->space, place_of(job, memory), bytes, rights, text);
	return result == EK_OK ? EK_OK : ek_gsm_failed(job, what, result, text);
}

static int open_window(struct ek_gsm *job, const struct ek_gsm_key *key, enum ek_gsm_part part, uint64_t place,
                       uint64_t bytes, unsigned rights, struct window **window, char *text)
{
	uint32_t number;
	int result = ek_gsm_show(&job->space, part, place, bytes, rights, key ? key->token : 0, &number, text);
	if (result != EK_OK)
		return result;
	pthread_mutex_lock(&job->lock);
	struct window **slot = &job->windows[number % EK_GSM_WINDOWS];
	if (!*slot)
		*slot = calloc(1, sizeof **slot);
	struct window *w = *slot;
	if (w) {
		w->job = job;
		w->key = key;
		ek_gsm_forget_handles(w);
		w->told = (struct ek_gsm_counters){0};
		w->row = ek_gsm_row(job->number, number);
		w->open = (struct ek_gsm_window){
			.areas = key ? key->areas : job->areas, .tasks = job->tasks, .task = job->task, .number = number};
		*window = w;
	} else {
		ek_gsm_hide(&job->space, number, text);
		*text = 0;
	}
	pthread_mutex_unlock(&job->lock);
	return w ? EK_OK : EK_GSM_NO_MEMORY;
}

int ek_gsm_open_narrow(struct ek_gsm *job, const struct ek_gsm_key *key, void *memory, uint64_t bytes, unsigned rights,
                       struct ek_gsm_window **window)
{
	static const char what[] = "opening a window";
	char text[EK_GSM_TEXT] = "";
	struct window *made;
	int kept = errno, result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	result = open_window(job, key, EK_GSM_OWN, bytes ? place_of(job, memory) : 0, bytes, rights, &made, text);
	if (result == EK_OK)
		*window = &made->open;
	else
		ek_gsm_failed(job, what, result, text);
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_open(struct ek_gsm *job, void *memory, uint64_t bytes, unsigned rights, struct ek_gsm_window **window)
{
	return ek_gsm_open_narrow(job, 0, memory, bytes, rights, window);
}

EK_EXPORT int ek_gsm_close(struct ek_gsm_window *window)
{
	EK_FOR_CALLER;
	static const char what[] = "closing a window";
	char text[EK_GSM_TEXT];
	struct window *w = (struct window *)window;
	if (!w || !w->open.tasks)
		return ek_gsm_failed(w ? w->job : 0, what, EK_GSM_CLOSED, "");
	int first = ek_gsm_fence(window);
	w->open.tasks = 0;
	int result = ek_gsm_hide(&w->job->space, window->number, text);
	return result == EK_OK ? first : ek_gsm_failed(w->job, what, result, text);
}

EK_EXPORT int ek_gsm_count(const struct ek_gsm_window *window, struct ek_gsm_counters *counters)
{
	if (!window || !counters)
		return ek_gsm_failed(0, "counting", EK_GSM_CLOSED, "");
	*counters = window->counters;
	return EK_OK;
}

/* ---- arrays ------------------------------------------------------------- */

/* Whether all tasks give the same numbers. */
static int same(const struct ek_gsm *job, const uint64_t *numbers, int count)
{
	uint64_t least[3], greatest[3];
	if (ek_mpi.Allreduce(numbers, least, count, ek_mpi.type_uint64, ek_mpi.op_min, job->comm) != MPI_SUCCESS ||
	    ek_mpi.Allreduce(numbers, greatest, count, ek_mpi.type_uint64, ek_mpi.op_max, job->comm) != MPI_SUCCESS)
		return EK_GSM_UNEQUAL;
	return memcmp(least, greatest, (size_t)count * sizeof *least) == 0 ? EK_OK : EK_GSM_UNEQUAL;
}

/* How many bytes of it a task has; none has more than the first. */
static uint64_t share(const struct ek_gsm_array *a, uint64_t task, uint64_t tasks)
{
	uint64_t blocks = a->bytes / a->block, bytes = blocks / tasks * a->block;
	if (task < blocks % tasks)
		bytes += a->block;
	else if (task == blocks % tasks)
		bytes += a->bytes % a->block;
	return bytes;
}

static int all_allocate(struct ek_gsm *job, struct ek_gsm_array *a, unsigned rights, char *text)
{
	const uint64_t most = (uint64_t)1 << 62, arguments[] = {a->bytes, a->block, rights};
	uint64_t place = 0;
	struct window *w;
	int result = same(job, arguments, 3);
	if (result != EK_OK)
		return result;
	if (a->bytes == 0 || a->bytes > most)
		return EK_GSM_LENGTH;
	if (a->block == 0)
		a->block = ((a->bytes + job->tasks - 1) / job->tasks + 63) / 64 * 64;
	int mine = ek_gsm_take(&job->space, EK_GSM_COLLECTIVE, share(a, 0, job->tasks), &place, text);
	result = agree(job, mine);
	if (result == EK_OK) {
		a->share = share(a, job->task, job->tasks);
		mine = open_window(job, 0, EK_GSM_COLLECTIVE, place, a->share, rights, &w, text);
		result = agree(job, mine);
		if (result != EK_OK && mine == EK_OK) {
			char unused[EK_GSM_TEXT];
			w->open.tasks = 0;
			ek_gsm_hide(&job->space, w->open.number, unused);
		}
		mine = EK_OK;
	}
	if (result != EK_OK) {
		if (mine == EK_OK) {
			char unused[EK_GSM_TEXT];
			ek_gsm_give(&job->space, place, unused);
			*text = 0;
		}
		return result;
	}
	a->window = &w->open;
	a->local = memory_at(job, place);
	return settle(job); /* no address is used before its window is open */
}

EK_EXPORT int ek_gsm_all_allocate(struct ek_gsm *job, uint64_t bytes, uint64_t block, unsigned rights,
                                  struct ek_gsm_array *array)
{
	static const char what[] = "allocating an array";
	char text[EK_GSM_TEXT] = "";
	struct ek_gsm_array made = {.bytes = bytes, .block = block};
	int kept = errno, result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	EK_OWN(EK_CALLER(ek_gsm_all_allocate), EK_C_KEY(job->comm), MPI_PROC_NULL);
	result = all_allocate(job, &made, rights, text);
	if (result == EK_OK)
		*array = made;
	else
		ek_gsm_failed(job, what, result, text);
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_all_free(struct ek_gsm_array *array)
{
	static const char what[] = "freeing an array";
	char text[EK_GSM_TEXT] = "";
	struct window *w = (struct window *)array->window;
	if (!w || !w->open.tasks)
		return ek_gsm_failed(w ? w->job : 0, what, EK_GSM_CLOSED, "");
	struct ek_gsm *job = w->job;
	const uint64_t number = w->open.number;
	EK_OWN(EK_CALLER(ek_gsm_all_free), EK_C_KEY(job->comm), MPI_PROC_NULL);
	int kept = errno, result = same(job, &number, 1);
	/* The commands of all have ended before the first window is closed. */
	if (result == EK_OK)
		result = settle(job);
	if (result != EK_OK) {
		errno = kept;
		return ek_gsm_failed(job, what, result, "");
	}
	ek_gsm_counted(&w->open.counters.fences, 1);
	show_counters(w);
	w->open.tasks = 0;
	int mine = ek_gsm_hide(&job->space, w->open.number, text);
	if (mine == EK_OK)
		mine = ek_gsm_give(&job->space, place_of(job, array->local), text);
	result = agree(job, mine);
	if (result == EK_OK)
		result = settle(job);
	if (result != EK_OK)
		ek_gsm_failed(job, what, result, text);
	else
		result = ek_gsm_tell(w); /* the array is freed nevertheless */
	errno = kept;
	return result;
}

/* ---- commands ----------------------------------------------------------- */

/* Commands to other nodes, written down. */
static struct ek_gsm_command put_of(struct ek_gsm_address to, const void *data, uint64_t bytes)
{
	return (struct ek_gsm_command){.operation = EK_GSM_PUT_BYTES, .at = to, .data = (void *)(uintptr_t)data, .bytes = bytes};
}

static struct ek_gsm_command get_of(struct ek_gsm_address from, void *into, uint64_t bytes)
{
	return (struct ek_gsm_command){.operation = EK_GSM_GET_BYTES, .at = from, .data = into, .bytes = bytes};
}

static struct ek_gsm_command update_of(enum ek_gsm_operation operation, unsigned width, struct ek_gsm_address at,
                                       uint64_t operand, uint64_t compare)
{
	return (struct ek_gsm_command){
		.operation = operation, .width = width, .at = at, .operand = operand, .compare = compare};
}

static int do_away(struct ek_gsm_window *window, struct ek_gsm_command order, uint64_t *old, struct ek_caller by)
{
	return ek_gsm_do_away((struct window *)window, &order, old, by);
}

static int start_away(struct ek_gsm_window *window, struct ek_gsm_command order, uint64_t *old, ek_gsm_handle *handle,
                      struct ek_caller by)
{
	return ek_gsm_start_away((struct window *)window, &order, old, handle, by);
}

/* Where a command goes; or why it does not. EK_GSM_UNREACHABLE: to another node,
 * where it is checked again, by the same table. */
static int reach(struct ek_gsm_window *w, struct ek_gsm_address at, uint64_t bytes, enum ek_gsm_kind kind, char **memory)
{
	uint64_t place = 0;
	if (!w || !w->tasks)
		return EK_GSM_CLOSED;
	if (at.task >= w->tasks)
		return EK_GSM_NO_TASK;
	struct ek_gsm_area *area = w->areas[at.task];
	if (area == &ek_gsm_nowhere)
		return EK_GSM_UNREACHABLE;
	const struct ek_gsm_key *key = ((struct window *)w)->key;
	int result = ek_gsm_admit(area, at.window, at.offset, bytes, 1u << kind, key ? key->token : 0, &place);
	*memory = (char *)area + place;
	return result;
}

EK_EXPORT int ek_gsm_put(struct ek_gsm_window *window, struct ek_gsm_address to, const void *data, uint64_t bytes)
{
	char *memory;
	int result = data || !bytes ? reach(window, to, bytes, EK_GSM_PUTTING, &memory) : EK_GSM_LENGTH;
	if (result == EK_GSM_UNREACHABLE)
		return do_away(window, put_of(to, data, bytes), 0, EK_CALLER(ek_gsm_put));
	if (result != EK_OK)
		return ek_gsm_refuse(window, EK_GSM_PUT_BYTES, to, bytes, result);
	memcpy(memory, data, bytes);
	ek_gsm_counted(&window->counters.puts, 1);
	ek_gsm_counted(&window->counters.put_bytes, bytes);
	return EK_OK;
}

EK_EXPORT int ek_gsm_get(struct ek_gsm_window *window, struct ek_gsm_address from, void *into, uint64_t bytes)
{
	char *memory;
	int result = into || !bytes ? reach(window, from, bytes, EK_GSM_GETTING, &memory) : EK_GSM_LENGTH;
	if (result == EK_GSM_UNREACHABLE)
		return do_away(window, get_of(from, into, bytes), 0, EK_CALLER(ek_gsm_get));
	if (result != EK_OK)
		return ek_gsm_refuse(window, EK_GSM_GET_BYTES, from, bytes, result);
	memcpy(into, memory, bytes);
	ek_gsm_counted(&window->counters.gets, 1);
	ek_gsm_counted(&window->counters.get_bytes, bytes);
	return EK_OK;
}

/* How many bytes blocks take from the first to the end of the last; false: they
 * can't be, or overlap. */
static bool span(uint64_t count, uint64_t bytes, uint64_t step, uint64_t *length)
{
	if (count == 0 || bytes == 0) {
		*length = 0;
		return true;
	}
	return step >= bytes && step <= PTRDIFF_MAX && !__builtin_mul_overflow(count - 1, step, length) &&
	       !__builtin_add_overflow(*length, bytes, length);
}

static int reach_strided(struct ek_gsm_window *w, struct ek_gsm_address at, uint64_t there, const void *data, uint64_t here,
                         uint64_t bytes, uint64_t count, enum ek_gsm_kind kind, char **memory)
{
	uint64_t spanned, unused;
	if (!span(count, bytes, there, &spanned) || !span(count, bytes, here, &unused) || (!data && spanned))
		return EK_GSM_LENGTH;
	return reach(w, at, spanned, kind, memory);
}

EK_EXPORT int ek_gsm_put_strided(struct ek_gsm_window *window, struct ek_gsm_address to, uint64_t to_step, const void *data,
                                 uint64_t step, uint64_t bytes, uint64_t count)
{
	char *memory;
	int result = reach_strided(window, to, to_step, data, step, bytes, count, EK_GSM_PUTTING, &memory);
	if (result == EK_GSM_UNREACHABLE && (!bytes || !count))
		return do_away(window, put_of(to, data, 0), 0, EK_CALLER(ek_gsm_put_strided));
	if (result == EK_GSM_UNREACHABLE)
		result = ek_gsm_strided_away((struct window *)window, EK_GSM_PUT_BYTES, to, to_step, (void *)(uintptr_t)data, step,
		                             bytes, count, EK_CALLER(ek_gsm_put_strided));
	else if (result == EK_OK && bytes)
		ek_copy_strided(memory, (ptrdiff_t)to_step, data, (ptrdiff_t)step, bytes, count);
	if (result != EK_OK)
		return ek_gsm_refuse(window, EK_GSM_PUT_BYTES, to, bytes, result);
	ek_gsm_counted(&window->counters.puts, 1);
	ek_gsm_counted(&window->counters.put_bytes, bytes * count);
	return EK_OK;
}

EK_EXPORT int ek_gsm_get_strided(struct ek_gsm_window *window, struct ek_gsm_address from, uint64_t from_step, void *into,
                                 uint64_t step, uint64_t bytes, uint64_t count)
{
	char *memory;
	int result = reach_strided(window, from, from_step, into, step, bytes, count, EK_GSM_GETTING, &memory);
	if (result == EK_GSM_UNREACHABLE && (!bytes || !count))
		return do_away(window, get_of(from, into, 0), 0, EK_CALLER(ek_gsm_get_strided));
	if (result == EK_GSM_UNREACHABLE)
		result = ek_gsm_strided_away((struct window *)window, EK_GSM_GET_BYTES, from, from_step, into, step, bytes, count,
		                             EK_CALLER(ek_gsm_get_strided));
	else if (result == EK_OK && bytes)
		ek_copy_strided(into, (ptrdiff_t)step, memory, (ptrdiff_t)from_step, bytes, count);
	if (result != EK_OK)
		return ek_gsm_refuse(window, EK_GSM_GET_BYTES, from, bytes, result);
	ek_gsm_counted(&window->counters.gets, 1);
	ek_gsm_counted(&window->counters.get_bytes, bytes * count);
	return EK_OK;
}

#define UPDATE(bits)                                                                                           \
	static uint64_t update##bits(uint##bits##_t *word, enum ek_gsm_operation operation, uint##bits##_t operand, \
	                             uint##bits##_t compare)                                                   \
	{                                                                                                      \
		switch (operation) {                                                                           \
		case EK_GSM_ADD:                                                                               \
		case EK_GSM_FETCH_AND_ADD:                                                                     \
			return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);                            \
		case EK_GSM_AND:                                                                               \
		case EK_GSM_FETCH_AND_AND:                                                                     \
			return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);                            \
		case EK_GSM_OR:                                                                                \
		case EK_GSM_FETCH_AND_OR:                                                                      \
			return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);                             \
		case EK_GSM_XOR:                                                                               \
		case EK_GSM_FETCH_AND_XOR:                                                                     \
			return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);                            \
		case EK_GSM_SWAP:                                                                              \
			return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);                           \
		case EK_GSM_COMPARE_AND_SWAP:                                                                  \
			break;                                                                                 \
		}                                                                                              \
		__atomic_compare_exchange_n(word, &compare, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return compare;                                                                                \
	}
UPDATE(64)
UPDATE(32)

/* Whether there is such an atomic; and where its word is. */
static int reach_word(struct ek_gsm_window *window, enum ek_gsm_operation operation, unsigned width,
                      struct ek_gsm_address at, char **word)
{
	if (operation < EK_GSM_ADD || operation > EK_GSM_FETCH_AND_XOR)
		return EK_GSM_OPERATION;
	if (width != 4 && width != 8)
		return EK_GSM_LENGTH;
	if (at.offset % width)
		return EK_GSM_UNALIGNED;
	int result = reach(window, at, width, EK_GSM_UPDATING, word);
	return result == EK_OK && (uintptr_t)*word % width ? EK_GSM_UNALIGNED : result; /* a window may start anywhere */
}

EK_EXPORT int ek_gsm_update(struct ek_gsm_window *window, enum ek_gsm_operation operation, unsigned width,
                            struct ek_gsm_address at, uint64_t operand, uint64_t compare, uint64_t *old)
{
	char *word;
	int result = reach_word(window, operation, width, at, &word);
	if (result == EK_GSM_UNREACHABLE)
		return do_away(window, update_of(operation, width, at, operand, compare), old, EK_CALLER(ek_gsm_update));
	if (result != EK_OK)
		return ek_gsm_refuse(window, operation, at, width, result);
	uint64_t was = width == 8 ? update64((uint64_t *)(void *)word, operation, operand, compare)
	                          : update32((uint32_t *)(void *)word, operation, (uint32_t)operand, (uint32_t)compare);
	if (old)
		*old = was;
	ek_gsm_counted(&window->counters.atomics, 1);
	return EK_OK;
}

EK_EXPORT int ek_gsm_fence(struct ek_gsm_window *window)
{
	if (!window || !window->tasks)
		return ek_gsm_failed(0, "fence", EK_GSM_CLOSED, "");
	struct window *w = (struct window *)window;
	ek_gsm_finish(w, EK_CALLER(ek_gsm_fence));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ek_gsm_counted(&window->counters.fences, 1);
	show_counters(w);
	return ek_gsm_tell(w);
}

/* ---- started commands ---------------------------------------------------
 *
 * On the same node they are done at once. */

/* Whether a command goes to another node. */
static bool is_away(const struct ek_gsm_window *w, struct ek_gsm_address at)
{
	return w && at.task < w->tasks && w->areas[at.task] == &ek_gsm_nowhere;
}

/* Room for its handle, the command, its handle. */
#define DONE_AT_ONCE(window, handle, command)                                       \
	do {                                                                        \
		struct window *w = (struct window *)(window);                       \
		int result = ek_gsm_room_for_handle(w, handle);                     \
		if (result == EK_OK && (result = (command)) == EK_OK)               \
			ek_gsm_give_handle(w, handle);                              \
		return result;                                                      \
	} while (0)

EK_EXPORT int ek_gsm_start_put(struct ek_gsm_window *window, struct ek_gsm_address to, const void *data, uint64_t bytes,
                               ek_gsm_handle *handle)
{
	if (is_away(window, to) && (data || !bytes))
		return start_away(window, put_of(to, data, bytes), 0, handle, EK_CALLER(ek_gsm_put));
	DONE_AT_ONCE(window, handle, ek_gsm_put(window, to, data, bytes));
}

EK_EXPORT int ek_gsm_start_get(struct ek_gsm_window *window, struct ek_gsm_address from, void *into, uint64_t bytes,
                               ek_gsm_handle *handle)
{
	if (is_away(window, from) && (into || !bytes))
		return start_away(window, get_of(from, into, bytes), 0, handle, EK_CALLER(ek_gsm_get));
	DONE_AT_ONCE(window, handle, ek_gsm_get(window, from, into, bytes));
}

EK_EXPORT int ek_gsm_start_update(struct ek_gsm_window *window, enum ek_gsm_operation operation, unsigned width,
                                  struct ek_gsm_address at, uint64_t operand, uint64_t compare, uint64_t *old,
                                  ek_gsm_handle *handle)
{
	char *word;
	if (reach_word(window, operation, width, at, &word) == EK_GSM_UNREACHABLE)
		return start_away(window, update_of(operation, width, at, operand, compare), old, handle, EK_CALLER(ek_gsm_update));
	DONE_AT_ONCE(window, handle, ek_gsm_update(window, operation, width, at, operand, compare, old));
}
