/* gsm_memory.h - the memory of a global address space on one node: a large
 * sparse file that all tasks of the node map, an area of it for each task, and
 * in each area a window table, counters and two heaps. After the areas there are
 * the FIFOs by which the tasks send each other messages.
 *
 * This knows nothing of MPI: gsm.c brings C programs together over it, and the
 * Go package pgas/gsm/memory compiles the same file.
 */
#ifndef EK_GSM_MEMORY_H
#define EK_GSM_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "evenkeel_gsm.h"
#include "evenkeel_result.h"
#include "fifo.h"

/* Room for so many bytes of text about what went wrong. */
enum { EK_GSM_TEXT = 512 };

/* What the lowest task of a node tells the others of the file: plain bytes. */
struct ek_gsm_invitation {
	uint64_t device, inode;
	uint64_t heap;       /* bytes of each of a task's two heaps */
	int64_t pid;         /* whose descriptor leads to the file; -1: there is no file */
	int32_t descriptor;
	uint32_t tasks;      /* of the node */
};

/* A part of a heap. Extents cover it without gaps, in the order of addresses. */
struct ek_gsm_extent {
	uint64_t start, length; /* from the heap's start; multiples of 64 */
	enum ek_gsm_use { EK_GSM_UNUSED, EK_GSM_USED, EK_GSM_RELEASED } use; /* released: others may still be writing there */
	bool shown;        /* by a window, also one that is closed */
	uint64_t released; /* under which mark */
};

struct ek_gsm_heap {
	uint64_t start; /* in the area */
	uint64_t size;
	struct ek_gsm_extent *extents;
	size_t count, room;
};

/* The collective heap and the collective half of the window table change only
 * in collective calls, in the same way on all tasks, so that the same call gives
 * the same place and window everywhere without a message. */
enum ek_gsm_part { EK_GSM_OWN, EK_GSM_COLLECTIVE, EK_GSM_PARTS };

/* A process's hold on the memory of its node. */
struct ek_gsm_space {
	pthread_mutex_t lock; /* over heaps and slots */
	int fd;
	char *map;
	uint64_t map_size, area_size;
	uint32_t tasks, self; /* of the node */
	uint64_t mark;
	uint32_t released; /* extents and slots */
	struct ek_gsm_area *area; /* our own */
	struct ek_fifo_header *fifos; /* null: more tasks than FIFOs can serve */
	struct ek_gsm_heap heap[EK_GSM_PARTS];
	struct ek_gsm_slot {
		uint32_t generation; /* of the window that is open, or was last; 0: none yet */
		enum ek_gsm_use use;
		uint64_t released;
	} slots[EK_GSM_WINDOWS];
};

/* All that can fail return an ek_result, and say in `text` (EK_GSM_TEXT bytes)
 * what went wrong and what to do. */

/* Makes the file, which has no name, so that nothing can stay behind. `heap` is
 * rounded up to pages. The descriptor is open until ek_gsm_uninvite. */
int ek_gsm_invite(struct ek_gsm_invitation *invitation, uint32_t tasks, uint64_t heap, char *text);
void ek_gsm_uninvite(struct ek_gsm_invitation *invitation);

/* Maps the file as task number `self` of the node. */
int ek_gsm_enter(struct ek_gsm_space *space, const struct ek_gsm_invitation *invitation, uint32_t self, char *text);
void ek_gsm_exit(struct ek_gsm_space *space);

/* Whether the process still lives that has entered as the area's task: it is gone where
 * it is dead, runs another program, or has left. Where that can't be found out it lives.
 * Takes some 100 us. */
bool ek_gsm_lives(const struct ek_gsm_space *space, const struct ek_gsm_area *area);

static inline struct ek_gsm_area *ek_gsm_area_of(const struct ek_gsm_space *space, uint32_t local)
{
	return (struct ek_gsm_area *)(space->map + local * space->area_size);
}

/* For each page of the heaps, what others may not do. */
static inline unsigned char *ek_gsm_denied(const struct ek_gsm_area *area)
{
	return (unsigned char *)(uintptr_t)(area + 1);
}

/* Memory of so many bytes, zero, at a place in the own area: a multiple of 64,
 * and of the page where it is as long as one. */
int ek_gsm_take(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t bytes, uint64_t *place, char *text);

/* Gives back what begins there. Refused while a window shows any of it. What a
 * window ever showed is taken anew only after ek_gsm_settle: others may have
 * looked at the window a moment ago, and still be about to write. */
int ek_gsm_give(struct ek_gsm_space *space, uint64_t place, char *text);

/* Opens a window over bytes of one allocation; a length of 0 shows nothing. With a
 * token other than 0 it is for commands that come with the same one alone. */
int ek_gsm_show(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t place, uint64_t bytes, uint32_t rights,
                uint64_t token, uint32_t *window, char *text);

/* Has an open window refuse every command, as if nobody had the right token. */
void ek_gsm_revoke(struct ek_gsm_space *space, uint32_t window);

int ek_gsm_hide(struct ek_gsm_space *space, uint32_t window, char *text);

/* Sets what others may do to whole pages of one allocation, whatever window they
 * come by. */
int ek_gsm_guard(struct ek_gsm_space *space, uint64_t place, uint64_t bytes, uint32_t rights, char *text);

/* A global fence marks what was given back and closed until it begins, and can
 * settle that, so that it is used again, when every task of the job has come. */
uint64_t ek_gsm_mark(struct ek_gsm_space *space);
void ek_gsm_settle(struct ek_gsm_space *space, uint64_t mark);

/* How many bytes a part of the heap has in use, and how many wait to be settled. */
void ek_gsm_usage(struct ek_gsm_space *space, enum ek_gsm_part part, uint64_t *used, uint64_t *released);

/* Has the system give memory to the FIFO of a class that leads from this task to
 * another one of the node: before its first use. 0, or an error number. */
int ek_gsm_back_fifo(struct ek_gsm_space *space, uint32_t to, uint32_t class);

/* The whole check of a command at the window table of an area: what the inline
 * check can't decide. It comes with the token of a narrower key, or 0, and gets to
 * windows that are for all with any. EK_OK, and the place in the area; or why not. */
int ek_gsm_admit(const struct ek_gsm_area *area, uint32_t window, uint64_t offset, uint64_t bytes, uint32_t right,
                 uint64_t token, uint64_t *place);

#endif
