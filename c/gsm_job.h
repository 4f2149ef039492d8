/* gsm_job.h - a task's part in a job of global shared memory, and its windows, as
 * the sources of evenkeel_gsm.h see them.
 */
#ifndef EK_GSM_JOB_H
#define EK_GSM_JOB_H

#include "gsm_memory.h"
#include "gsm_network.h"
#include "next.h"
#include "own.h"

/* A command that was started, whose end has not been told yet. */
struct started {
	uint32_t generation; /* of the handle */
	enum { EK_GSM_FREE, EK_GSM_WITH_HANDLE, EK_GSM_WITHOUT } use;
	bool away;                      /* it goes through the network, */
	struct ek_gsm_command *command; /* as this: made by the first that does, and kept */
	uint64_t *old;                  /* of an atomic: where the word before is wanted */
};

struct window {
	struct ek_gsm_window open; /* first: what programs hold is the address of this */
	struct ek_gsm *job;
	const struct ek_gsm_key *key; /* under which it was opened; null: the job's */
	struct started *started;
	uint32_t room, free_count;
	uint32_t *free;
	struct ek_window *row; /* in the node segment; null: this run is not recorded */
	struct ek_gsm_counters told; /* there already */
	uint32_t away;    /* started commands that go through the network; of these */
	uint32_t without; /* so many without a handle */
	/* The first of those that failed and no fence has told of; EK_OK: none did. */
	struct {
		int result, operation;
		struct ek_gsm_address at;
		uint64_t bytes;
	} failed;
};

struct ek_gsm {
	struct ek_gsm_space space;
	pthread_mutex_t lock; /* over windows */
	MPI_Comm comm;
	bool left;
	uint32_t task, tasks;
	uint32_t number; /* of the process's jobs: from 1 */
	struct ek_gsm_area **areas; /* of each task */
	struct ek_gsm_area **no_areas; /* as many, without windows; null until there is a narrower key */
	uint32_t last_key; /* number of the narrower key that the task was given last */
	struct window *windows[EK_GSM_WINDOWS];
	struct ek_gsm *before; /* jobs are kept: see gsm.c */
	/* To other nodes; null: all tasks are on this one. */
	const struct ek_gsm_network *network;
	uint64_t end; /* this task's, of the network */
	struct ek_gsm_sends *sends; /* gsm_mpi.c's */
	struct ek_gsm_fifo fifo __attribute__((aligned(64)));
	struct ek_gsm_messages *messages; /* gsm_message.c's */
	struct ek_gsm_inbox inbox __attribute__((aligned(64)));
};

/* A narrower key that the task has, or had. */
struct ek_gsm_key {
	struct ek_gsm *job;
	uint32_t number; /* among those of the tasks that have it; from 1 */
	bool dropped;
	uint64_t token;  /* what stands for it in window tables: odd */
	struct ek_gsm_area **areas; /* of those tasks; of the others, one without windows */
	unsigned char *members;     /* by task; 1: it has the key */
};

/* The area of tasks that a window does not reach on the node: it has no windows. */
extern struct ek_gsm_area ek_gsm_nowhere;

/* Gives the job's communicator a name for the report. */
void ek_gsm_name(struct ek_gsm *job, const char *name);

/* Whether no task failed: all get the greatest result. Collective. */
int ek_gsm_agree(MPI_Comm comm, int mine);

/* Whether this job can still be used, for what. */
int ek_gsm_usable(const struct ek_gsm *job, const char *what);

/* Opens a window under a key that the task has; null: for all. */
int ek_gsm_open_narrow(struct ek_gsm *job, const struct ek_gsm_key *key, void *memory, uint64_t bytes, unsigned rights,
                       struct ek_gsm_window **window);

/* Whether a task has a key too; null: the job's. */
bool ek_gsm_has_key(const struct ek_gsm_key *key, uint32_t task);

/* Leave a text for ek_gsm_error, and return the result. */
int ek_gsm_failed(const struct ek_gsm *job, const char *what, int result, const char *why);
int ek_gsm_refuse(struct ek_gsm_window *window, int operation, struct ek_gsm_address at, uint64_t bytes, int result);
int ek_gsm_refused(int operation, struct ek_gsm_address at, uint64_t bytes, int result); /* and was counted */

/* ---- commands that go on: gsm_started.c ----------------------------------- */

/* Makes this task's end of the network. Collective; a task that has one although
 * another failed gives it back. */
int ek_gsm_connect(struct ek_gsm *job, char *text);
void ek_gsm_disconnect(struct ek_gsm *job);

/* MPI's messages for that: gsm_mpi.c. */
struct ek_gsm_mpi ek_gsm_mpi_of(struct ek_gsm *job);

/* A command to a task on another node: operation, width, at, data, bytes, operand
 * and compare are set. Waits for its end. */
int ek_gsm_do_away(struct window *w, const struct ek_gsm_command *order, uint64_t *old, struct ek_caller by);

/* The same, started; with a null handle, without. */
int ek_gsm_start_away(struct window *w, const struct ek_gsm_command *order, uint64_t *old, ek_gsm_handle *handle,
                      struct ek_caller by);

/* PUTs or GETs blocks at equal steps, and waits for the end. The caller counts, and refuses. */
int ek_gsm_strided_away(struct window *w, int operation, struct ek_gsm_address at, uint64_t at_step, void *data,
                        uint64_t step, uint64_t bytes, uint64_t count, struct ek_caller by);

/* Whether there is a handle for a command that will be done at once; and it. */
int ek_gsm_room_for_handle(struct window *w, const ek_gsm_handle *handle);
void ek_gsm_give_handle(struct window *w, ek_gsm_handle *handle);

/* All handles of a window that is opened anew are void. */
void ek_gsm_forget_handles(struct window *w);

/* All commands of the window have ended. The first error of those without a handle
 * stays to be told, once. */
void ek_gsm_finish(struct window *w, struct ek_caller by);
int ek_gsm_tell(struct window *w);

/* Puts a command into the FIFO. Who does not wait for it rings the doorbell. */
void ek_gsm_put_into_fifo(struct ek_gsm *job, struct ek_gsm_command *command, bool waits);

/* ---- active messages: gsm_message.c --------------------------------------- */

/* With the tasks of this node by their numbers there. False: no memory. */
bool ek_gsm_messages_start(struct ek_gsm *job, const int *tasks, uint32_t near);
void ek_gsm_messages_stop(struct ek_gsm *job); /* also after a start that failed */

static inline bool ek_gsm_ended(const struct ek_gsm_command *command)
{
	return __atomic_load_n(&command->progress, __ATOMIC_ACQUIRE) == EK_GSM_ENDED;
}

#endif
