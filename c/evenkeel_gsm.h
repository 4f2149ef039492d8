/* evenkeel_gsm.h - global shared memory: the tasks of a job read, write and
 * atomically update each other's memory. evenkeel.h includes this.
 *
 * A task is a rank of the communicator that the job was made over. Each has
 * memory of its own that others reach (ek_gsm_allocate, ek_gsm_all_allocate),
 * and shows parts of it in windows. A global address is a task, one of its
 * windows, and an offset into that. Commands go out through a window of the
 * caller's own, which counts them; a window is used by one thread at a time, so
 * that a program with threads opens one for each.
 *
 * On the same node a command is an inlined check and then a load, a store or an
 * atomic instruction. Nothing is written where the check fails: the function
 * returns why, and ek_gsm_error says which operation, task and address it was.
 * A command to another node goes over the job's network, by the Go runtime's
 * engine, and is checked there; functions that do not start with ek_gsm_start
 * return when it has ended.
 *
 * Memory order. PUT and GET are relaxed: each aligned word is written or read
 * as a whole, and no more is promised. Atomics are sequentially consistent among
 * each other. ek_gsm_fence has all commands that this window issued before it
 * done, and seen by all, before any that it issues after it;
 * ek_gsm_global_fence has those of all tasks. Around a PUT or GET, a fence
 * before and one after make what UPC calls a strict access.
 *
 * A command checks, and then acts. So one that runs while its target closes the
 * window or gives back the memory may still reach it, until the next global
 * fence; until then neither the memory nor the window's number is used again.
 */
#ifndef EVENKEEL_GSM_H
#define EVENKEEL_GSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return beside EK_OK and EK_INACTIVE (evenkeel.h). Up to
 * EK_GSM_UNREACHABLE, and with EK_GSM_KEY, nothing was written or read. */
enum ek_gsm_result {
	EK_GSM_NO_TASK = 32,   /* the job has no such task */
	EK_GSM_NO_WINDOW,      /* the task has no such window open */
	EK_GSM_RANGE,          /* outside what the window shows */
	EK_GSM_PROTECTED,      /* the window, or a page of it, does not allow that */
	EK_GSM_UNALIGNED,      /* an atomic at an offset, or an address, that is no multiple of its width */
	EK_GSM_LENGTH,         /* a length that can't be */
	EK_GSM_OPERATION,      /* no such operation */
	EK_GSM_HANDLE,         /* the handle was freed, or is of another window */
	EK_GSM_CLOSED,         /* the caller's own window is closed, or it has left the job */
	EK_GSM_NOT_MEMORY,     /* no memory that this job allocated here */
	EK_GSM_IN_USE,         /* a window still shows it */
	EK_GSM_NO_MEMORY,      /* there is no room */
	EK_GSM_UNEQUAL,        /* the tasks gave a collective call different arguments, or one of them failed */
	EK_GSM_UNREACHABLE,    /* there is no way to that task */
	EK_GSM_SILENT,         /* the task on another node says nothing; whether the command was done is not known */
	EK_GSM_FAILED,         /* on the way to another node, or there; whether it was done is not known */
	EK_GSM_NO_HANDLER,     /* the task has no such handler */
	EK_GSM_KEY             /* the window wants a narrower key, or one of them has not that of the other */
};

/* What others may do to the memory that a window shows. */
enum ek_gsm_right { EK_GSM_PUT = 1, EK_GSM_GET = 2, EK_GSM_ATOMIC = 4, EK_GSM_ALL = 7 };

/* What an atomic does to a word; those with FETCH in their names give the word
 * as it was before. */
enum ek_gsm_operation {
	EK_GSM_ADD = 3,
	EK_GSM_AND,
	EK_GSM_OR,
	EK_GSM_XOR,
	EK_GSM_SWAP,
	EK_GSM_COMPARE_AND_SWAP,
	EK_GSM_FETCH_AND_ADD,
	EK_GSM_FETCH_AND_AND,
	EK_GSM_FETCH_AND_OR,
	EK_GSM_FETCH_AND_XOR
};

struct ek_gsm;        /* a task's part in a job */
struct ek_gsm_window; /* a task's door: see ek_gsm_open */

struct ek_gsm_address {
	uint32_t task;   /* rank in the job */
	uint32_t window; /* of that task: its number, never used twice */
	uint64_t offset; /* bytes from where the window begins */
};

/* What went out through a window. */
struct ek_gsm_counters {
	uint64_t puts, put_bytes;
	uint64_t gets, get_bytes;
	uint64_t atomics;
	uint64_t refused; /* commands that were not issued, or failed: see ek_gsm_error */
	uint64_t fences;
	uint64_t reserved;
};

/* ---- jobs and memory ------------------------------------------------------
 *
 * These may be called from several threads; those that are collective by one
 * thread of each task at a time, and by all tasks in the same order. */

/* Makes a job of the ranks of a communicator, named as in Fortran:
 * MPI_Comm_c2f(MPI_COMM_WORLD). Collective. All tasks join, or all get an error. */
int ek_gsm_join(int comm, struct ek_gsm **job);

/* Ends the task's part: the memory and the windows are gone. Collective. */
int ek_gsm_leave(struct ek_gsm *job);

/* The caller's number, how many tasks there are, and whether one is on this node. */
uint32_t ek_gsm_task(const struct ek_gsm *job);
uint32_t ek_gsm_tasks(const struct ek_gsm *job);
int ek_gsm_same_node(const struct ek_gsm *job, uint32_t task);

/* Zeroed memory of the calling task; from EK_GSM_PAGE bytes on, whole pages. It is
 * given back when no window shows it any more. */
int ek_gsm_allocate(struct ek_gsm *job, uint64_t bytes, void **memory);
int ek_gsm_free(struct ek_gsm *job, void *memory);

/* Sets what others may do to whole pages, whatever window they come by: no more
 * than the window allows. */
int ek_gsm_protect(struct ek_gsm *job, void *memory, uint64_t bytes, unsigned rights);

/* Opens a window over memory of one allocation. Over no bytes it shows nothing,
 * and is for commands alone. Closed, it lets nothing in or out. */
int ek_gsm_open(struct ek_gsm *job, void *memory, uint64_t bytes, unsigned rights, struct ek_gsm_window **window);
int ek_gsm_close(struct ek_gsm_window *window);
int ek_gsm_count(const struct ek_gsm_window *window, struct ek_gsm_counters *counters);

/* Memory that all tasks allocate together: blocks dealt out in turn, block i to
 * task i modulo the number of tasks. A block of 0 bytes: one for each, as equal
 * as multiples of 64 bytes allow. Collective, with the same arguments. */
struct ek_gsm_array {
	struct ek_gsm_window *window; /* the caller's own, over its share */
	void *local;                  /* its share: its blocks, one after the other */
	uint64_t share;               /* and bytes of it */
	uint64_t bytes, block;
};
int ek_gsm_all_allocate(struct ek_gsm *job, uint64_t bytes, uint64_t block, unsigned rights, struct ek_gsm_array *array);
int ek_gsm_all_free(struct ek_gsm_array *array); /* also where it returns the error of a command without a handle */

/* A narrower key than the job's: only a subset of the tasks has it. What goes out
 * through a window that was opened under it is sealed with it, and what comes to the
 * window must be; all other commands are refused with EK_GSM_KEY, and counted. Through
 * such a window the memory of those who have the key is reached, and nobody else's.
 *
 * Between nodes that is a credential that nobody else can make. On a node, where all
 * tasks map all memory, it keeps mistakes out and not attackers. */
struct ek_gsm_key;

/* Makes a key for the tasks of a communicator, named as in Fortran, each of which is
 * in the job once. Collective over these; all get the key, or all an error. */
int ek_gsm_narrow(struct ek_gsm *job, int members, struct ek_gsm_key **key);

/* ek_gsm_open, of a window that only those who have the key can reach. */
int ek_gsm_open_under(struct ek_gsm *job, struct ek_gsm_key *key, void *memory, uint64_t bytes, unsigned rights,
                      struct ek_gsm_window **window);

/* Takes the key from the calling task: what is sealed with it finds nothing here any
 * more, and windows that were opened under it send nothing. No thread of the task may
 * have a command under way through one of these. */
int ek_gsm_key_drop(struct ek_gsm_key *key);

/* All commands that any task issued before its own call are done, and seen by
 * all. What was freed and closed is used again from then on: no thread of the
 * task may have a command under way. Collective. */
int ek_gsm_global_fence(struct ek_gsm *job);

/* What the caller's last refused call was about; never null. */
const char *ek_gsm_error(void);

/* ---- commands --------------------------------------------------------------
 *
 * Bytes, in no order. */
int ek_gsm_put(struct ek_gsm_window *window, struct ek_gsm_address to, const void *data, uint64_t bytes);
int ek_gsm_get(struct ek_gsm_window *window, struct ek_gsm_address from, void *into, uint64_t bytes);

/* `count` blocks of `bytes`, at equal steps on both sides, of no less than a
 * block. All that they span at the target, gaps too, must be allowed. */
int ek_gsm_put_strided(struct ek_gsm_window *window, struct ek_gsm_address to, uint64_t to_step, const void *data,
                       uint64_t step, uint64_t bytes, uint64_t count);
int ek_gsm_get_strided(struct ek_gsm_window *window, struct ek_gsm_address from, uint64_t from_step, void *into,
                       uint64_t step, uint64_t bytes, uint64_t count);

/* Any atomic on a word of 4 or 8 bytes; *old, unless null, is what it was. The
 * comparison counts for EK_GSM_COMPARE_AND_SWAP alone. */
int ek_gsm_update(struct ek_gsm_window *window, enum ek_gsm_operation operation, unsigned width, struct ek_gsm_address at,
                  uint64_t operand, uint64_t compare, uint64_t *old);

/* The same, started: data must stay as it is, and what is read is there, when
 * the command is done. With a handle that is told by ek_gsm_wait, or by an
 * ek_gsm_test that finds it done, which frees the handle; with null, by
 * ek_gsm_fence. A command that is refused has no handle. */
typedef uint64_t ek_gsm_handle;
int ek_gsm_start_put(struct ek_gsm_window *window, struct ek_gsm_address to, const void *data, uint64_t bytes,
                     ek_gsm_handle *handle);
int ek_gsm_start_get(struct ek_gsm_window *window, struct ek_gsm_address from, void *into, uint64_t bytes,
                     ek_gsm_handle *handle);
int ek_gsm_start_update(struct ek_gsm_window *window, enum ek_gsm_operation operation, unsigned width,
                        struct ek_gsm_address at, uint64_t operand, uint64_t compare, uint64_t *old, ek_gsm_handle *handle);
int ek_gsm_test(struct ek_gsm_window *window, ek_gsm_handle handle, int *done);
int ek_gsm_wait(struct ek_gsm_window *window, ek_gsm_handle handle);

/* ---- active messages --------------------------------------------------------
 *
 * A request has a handler of its target run, which may send one reply, which has
 * a handler of the first task run. Handlers run while their task is in
 * ek_gsm_am_poll, or waits in ek_gsm_am_request for room, and nowhere else; they
 * may give commands, but send no requests. Messages come once, in no order, and
 * no fence waits for them. The functions are for one thread of a task at a time. */
enum {
	EK_GSM_AM_BYTES = 1024,  /* the longest message; up to 56 bytes take one cache line on a node */
	EK_GSM_AM_HANDLERS = 256 /* numbers are from 1 to 255 */
};
struct ek_gsm_am; /* a message that has come; good until its handler returns */
typedef void (*ek_gsm_am_handler)(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *context);

/* Has messages to that number run a function, from now on. */
int ek_gsm_am_register(struct ek_gsm *job, unsigned number, ek_gsm_am_handler handler, void *context);

/* The bytes may change when it returns. */
int ek_gsm_am_request(struct ek_gsm *job, uint32_t task, unsigned number, const void *data, uint64_t bytes);

/* In the handler of a request, once at most. */
int ek_gsm_am_reply(struct ek_gsm_am *message, unsigned number, const void *data, uint64_t bytes);
uint32_t ek_gsm_am_source(const struct ek_gsm_am *message);

/* Runs the handlers of what has come. Returns the first error since the last call
 * of a message that this task sent: its target has no such handler, or is on another
 * node and silent. */
int ek_gsm_am_poll(struct ek_gsm *job);

/* ---- what the inlined commands look at: not for programs ------------------- */

enum { EK_GSM_WINDOWS = 1024, EK_GSM_PAGE = 4096 };

/* A window in its task's table: a cache line that its task writes and all read.
 * Up to the limits everything is allowed on every page; a limit is 0 where the
 * pages differ, or nothing is allowed; that of atomics also where the start is not
 * aligned. */
struct ek_gsm_entry {
	uint32_t window;   /* its number: slot + generation * EK_GSM_WINDOWS; 0: closed */
	uint32_t rights;
	uint64_t limit[3]; /* of PUT, GET and atomics */
	uint64_t start;    /* from the area's start, */
	uint64_t length;   /* and bytes */
	uint64_t narrow;   /* rights of those who come with the token of the window's narrower key */
	uint64_t token;    /* 0: the window is for all */
};

/* The memory of a task on its node. After it, for each page of the heaps a byte:
 * what others may not do. */
struct ek_gsm_area {
	struct ek_gsm_entry windows[EK_GSM_WINDOWS];
	struct ek_gsm_counters counters[EK_GSM_WINDOWS]; /* for others to read: as of each window's last fence */
	uint32_t task;     /* in the job, */
	uint32_t reserved;
	uint64_t pid;      /* and its process */
	uint64_t heaps;    /* where the heaps begin in the area, */
	uint64_t bytes;    /* and how long both are together */
};

struct ek_gsm_window {
	struct ek_gsm_area *const *areas; /* of each task of the job; of those on other nodes, one without windows */
	uint64_t tasks;                   /* 0: the window is closed */
	uint32_t task, number;            /* whose it is, and which of its task's */
	struct ek_gsm_counters counters;  /* here, at a distance that the compiler knows: that is a third of a nanosecond */
};

enum ek_gsm_kind { EK_GSM_PUTTING, EK_GSM_GETTING, EK_GSM_UPDATING };

/* What calls a function of the library where it is slow: that counts as called at the
 * program's line, and debuggers take it for one step. */
#define EK_GSM_INLINE static inline __attribute__((always_inline, artificial))

/* A counter has one writer, the thread that uses the window; others may read it. */
static inline void ek_gsm_counted(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* Where a command on an aligned word of 1 << shift bytes goes. Null: on another
 * node, or nowhere, or that takes a longer look. Turned by the width, an offset
 * that is no multiple of it is beyond all limits. */
static inline void *ek_gsm_word(const struct ek_gsm_window *window, struct ek_gsm_address at, enum ek_gsm_kind kind,
                                unsigned shift)
{
	if (__builtin_expect(!window || at.task >= window->tasks, 0))
		return 0;
	struct ek_gsm_area *area = window->areas[at.task];
	const struct ek_gsm_entry *entry = &area->windows[at.window % EK_GSM_WINDOWS];
	/* Acquire: with the number comes what it stands for. */
	if (__builtin_expect(__atomic_load_n(&entry->window, __ATOMIC_ACQUIRE) != at.window ||
	                     (at.offset >> shift | at.offset << (64 - shift)) >=
	                             __atomic_load_n(&entry->limit[kind], __ATOMIC_RELAXED) >> shift, 0))
		return 0;
	return (char *)area + entry->start + at.offset;
}

/* ---- commands on words: inlined on the same node --------------------------- */

static inline struct ek_gsm_address ek_gsm_address_of(const struct ek_gsm_window *window, uint64_t offset)
{
	struct ek_gsm_address address = {window->task, window->number, offset};
	return address;
}

/* Where a byte of an array is. */
static inline struct ek_gsm_address ek_gsm_array_address(const struct ek_gsm_array *array, uint64_t byte)
{
	uint64_t block = byte / array->block, tasks = array->window->tasks ? array->window->tasks : 1;
	struct ek_gsm_address address = {(uint32_t)(block % tasks), array->window->number,
	                                 block / tasks * array->block + byte % array->block};
	return address;
}

/* ek_gsm_put64(window, to, value), ek_gsm_get64(window, from, &value), the same
 * with 32; ek_gsm_add64(window, at, operand), and, or, xor;
 * ek_gsm_swap64(window, at, value, &old);
 * ek_gsm_compare_and_swap64(window, at, compare, value, &old);
 * ek_gsm_fetch_and_add64(window, at, operand, &old), and, or, xor. */
#define EK_GSM_WORDS(bits, shift)                                                                                     \
	EK_GSM_INLINE int ek_gsm_put##bits(struct ek_gsm_window *window, struct ek_gsm_address to, uint##bits##_t value) \
	{                                                                                                             \
		uint##bits##_t *word = (uint##bits##_t *)ek_gsm_word(window, to, EK_GSM_PUTTING, shift);              \
		if (__builtin_expect(!word, 0))                                                                       \
			return ek_gsm_put(window, to, &value, sizeof value);                                          \
		__atomic_store_n(word, value, __ATOMIC_RELAXED);                                                      \
		ek_gsm_counted(&window->counters.puts, 1);                                                           \
		ek_gsm_counted(&window->counters.put_bytes, sizeof value);                                           \
		return 0;                                                                                             \
	}                                                                                                             \
	EK_GSM_INLINE int ek_gsm_get##bits(struct ek_gsm_window *window, struct ek_gsm_address from,                  \
	                                   uint##bits##_t *value)                                                     \
	{                                                                                                             \
		uint##bits##_t *word = (uint##bits##_t *)ek_gsm_word(window, from, EK_GSM_GETTING, shift);            \
		if (__builtin_expect(!word, 0))                                                                       \
			return ek_gsm_get(window, from, value, sizeof *value);                                        \
		*value = __atomic_load_n(word, __ATOMIC_RELAXED);                                                     \
		ek_gsm_counted(&window->counters.gets, 1);                                                           \
		ek_gsm_counted(&window->counters.get_bytes, sizeof *value);                                          \
		return 0;                                                                                             \
	}                                                                                                             \
	EK_GSM_INLINE int ek_gsm_compare_and_swap##bits(struct ek_gsm_window *window, struct ek_gsm_address at,       \
	                                                uint##bits##_t compare, uint##bits##_t value,                 \
	                                                uint##bits##_t *old)                                          \
	{                                                                                                             \
		uint##bits##_t *word = (uint##bits##_t *)ek_gsm_word(window, at, EK_GSM_UPDATING, shift);             \
		uint64_t was;                                                                                         \
		if (__builtin_expect(!word, 0)) {                                                                     \
			int result = ek_gsm_update(window, EK_GSM_COMPARE_AND_SWAP, bits / 8, at, value, compare, &was); \
			if (result == 0)                                                                              \
				*old = (uint##bits##_t)was;                                                           \
			return result;                                                                                \
		}                                                                                                     \
		__atomic_compare_exchange_n(word, &compare, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);            \
		*old = compare; /* as it was asked for, or as it was found */                                         \
		ek_gsm_counted(&window->counters.atomics, 1);                                                        \
		return 0;                                                                                             \
	}

/* An atomic that tells nothing, and one that tells what was. */
#define EK_GSM_UPDATES(name, bits, shift, operation, builtin)                                                         \
	EK_GSM_INLINE int ek_gsm_##name##bits(struct ek_gsm_window *window, struct ek_gsm_address at,                 \
	                                      uint##bits##_t operand)                                                 \
	{                                                                                                             \
		uint##bits##_t *word = (uint##bits##_t *)ek_gsm_word(window, at, EK_GSM_UPDATING, shift);             \
		if (__builtin_expect(!word, 0))                                                                       \
			return ek_gsm_update(window, operation, bits / 8, at, operand, 0, 0);                         \
		builtin(word, operand, __ATOMIC_SEQ_CST);                                                             \
		ek_gsm_counted(&window->counters.atomics, 1);                                                        \
		return 0;                                                                                             \
	}
#define EK_GSM_FETCHES(name, bits, shift, operation, builtin)                                                         \
	EK_GSM_INLINE int ek_gsm_##name##bits(struct ek_gsm_window *window, struct ek_gsm_address at,                 \
	                                      uint##bits##_t operand, uint##bits##_t *old)                            \
	{                                                                                                             \
		uint##bits##_t *word = (uint##bits##_t *)ek_gsm_word(window, at, EK_GSM_UPDATING, shift);             \
		uint64_t was;                                                                                         \
		if (__builtin_expect(!word, 0)) {                                                                     \
			int result = ek_gsm_update(window, operation, bits / 8, at, operand, 0, &was);                \
			if (result == 0)                                                                              \
				*old = (uint##bits##_t)was;                                                           \
			return result;                                                                                \
		}                                                                                                     \
		*old = builtin(word, operand, __ATOMIC_SEQ_CST);                                                      \
		ek_gsm_counted(&window->counters.atomics, 1);                                                        \
		return 0;                                                                                             \
	}
#define EK_GSM_BOTH_WIDTHS(form, name, operation, builtin) \
	form(name, 64, 3, operation, builtin)              \
	form(name, 32, 2, operation, builtin)

EK_GSM_WORDS(64, 3)
EK_GSM_WORDS(32, 2)
EK_GSM_BOTH_WIDTHS(EK_GSM_UPDATES, add, EK_GSM_ADD, __atomic_fetch_add)
EK_GSM_BOTH_WIDTHS(EK_GSM_UPDATES, and, EK_GSM_AND, __atomic_fetch_and)
EK_GSM_BOTH_WIDTHS(EK_GSM_UPDATES, or, EK_GSM_OR, __atomic_fetch_or)
EK_GSM_BOTH_WIDTHS(EK_GSM_UPDATES, xor, EK_GSM_XOR, __atomic_fetch_xor)
EK_GSM_BOTH_WIDTHS(EK_GSM_FETCHES, swap, EK_GSM_SWAP, __atomic_exchange_n)
EK_GSM_BOTH_WIDTHS(EK_GSM_FETCHES, fetch_and_add, EK_GSM_FETCH_AND_ADD, __atomic_fetch_add)
EK_GSM_BOTH_WIDTHS(EK_GSM_FETCHES, fetch_and_and, EK_GSM_FETCH_AND_AND, __atomic_fetch_and)
EK_GSM_BOTH_WIDTHS(EK_GSM_FETCHES, fetch_and_or, EK_GSM_FETCH_AND_OR, __atomic_fetch_or)
EK_GSM_BOTH_WIDTHS(EK_GSM_FETCHES, fetch_and_xor, EK_GSM_FETCH_AND_XOR, __atomic_fetch_xor)
#undef EK_GSM_WORDS
#undef EK_GSM_UPDATES
#undef EK_GSM_FETCHES
#undef EK_GSM_BOTH_WIDTHS

/* All commands that the window issued before are done, and seen by all, before
 * any that it issues after. */
int ek_gsm_fence(struct ek_gsm_window *window);

#ifdef __cplusplus
}
#endif

#endif
