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

/* What the functions return beside EK_OK and EK_INACTIVE (evenkeel.h). Of these
 * nothing was written or read. */
enum ek_gsm_result {
	EK_GSM_NO_TASK = 32,   /* the job has no such task */
	EK_GSM_NO_WINDOW,      /* the task has no such window open */
	EK_GSM_RANGE,          /* outside what the window shows */
	EK_GSM_PROTECTED,      /* the window, or a page of it, does not allow that */
	EK_GSM_UNALIGNED,      /* an atomic on an address that is no multiple of its width */
	EK_GSM_LENGTH,         /* a length that can't be */
	EK_GSM_OPERATION,      /* no such operation */
	EK_GSM_HANDLE,         /* the handle was freed, or is of another window */
	EK_GSM_CLOSED,         /* the caller's own window is closed, or it has left the job */
	EK_GSM_NOT_MEMORY,     /* no memory that this job allocated here */
	EK_GSM_IN_USE,         /* a window still shows it */
	EK_GSM_NO_MEMORY,      /* there is no room */
	EK_GSM_UNEQUAL,        /* the tasks gave a collective call different arguments, or one of them failed */
	EK_GSM_UNREACHABLE     /* there is no way to that task */
};

/* What others may do to the memory that a window shows. */
enum ek_gsm_right { EK_GSM_PUT = 1, EK_GSM_GET = 2, EK_GSM_ATOMIC = 4, EK_GSM_ALL = 7 };

/* What an atomic does to a word; those with FETCH in their names give the word
 * as it was before. */
enum ek_gsm_atomic {
	EK_GSM_ADD = 1,
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

struct ek_gsm_address {
	uint32_t task;   /* rank in the job */
	uint32_t window; /* of that task: ek_gsm_window_number */
	uint64_t offset; /* bytes from where the window begins */
};

/* What went out through a window, and what was refused. */
struct ek_gsm_counters {
	uint64_t puts, put_bytes;
	uint64_t gets, get_bytes;
	uint64_t atomics;
	uint64_t refused; /* commands that were not issued: see ek_gsm_error */
	uint64_t fences;
	uint64_t reserved;
};

/* ---- what the inlined commands look at: not for programs ------------------- */

enum { EK_GSM_WINDOWS = 1024, EK_GSM_PAGE = 4096 };

/* A window in its task's table: a cache line that its task writes and all read.
 * What is allowed on every page of it can be done up to these limits; a limit
 * is 0 where the pages differ, or nothing is allowed. */
struct ek_gsm_entry {
	uint32_t window;  /* its number: slot + generation * EK_GSM_WINDOWS; 0: closed */
	uint32_t rights;
	uint64_t limit[3]; /* of PUT, GET and atomics */
	uint64_t start;   /* from the area's start, */
	uint64_t length;  /* and bytes */
	uint64_t reserved[2];
};

/* The memory of a task on its node. */
struct ek_gsm_area {
	struct ek_gsm_entry windows[EK_GSM_WINDOWS];
	struct ek_gsm_counters counters[EK_GSM_WINDOWS];
	uint32_t task;    /* in the job, */
	uint32_t reserved;
	uint64_t pid;     /* and its process */
	uint64_t heaps;   /* where the heaps begin in the area, */
	uint64_t bytes;   /* and how long both are together */
	unsigned char denied[]; /* for each page of the heaps, what others may not do */
};

struct ek_gsm_window {
	struct ek_gsm_area *const *areas; /* of each task of the job; of tasks elsewhere, one without windows */
	uint64_t tasks;                   /* 0: the window is closed */
	struct ek_gsm_counters *counters;
	struct ek_gsm *job;
	uint32_t number;
	uint32_t reserved;
};

#ifdef __cplusplus
}
#endif

#endif
