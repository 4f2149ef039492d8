/* gsm_key.c - narrower keys: what a subset of a job's tasks has in common, and
 * nobody else knows.
 *
 * A key is two things that a member draws and gives to the others through MPI: a
 * secret, by which the Go side seals packets to other nodes, and a token, which
 * stands for the key in the window tables of a node.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "evenkeel.h"
#include "gsm_job.h"
#include "process.h"

static const char making[] = "making a narrower key";

/* What the first of the members draws. */
struct drawn {
	unsigned char secret[EK_GSM_SECRET];
	uint64_t token;
	uint32_t drawn;
};

/* Whether the member at `task` has the key. */
bool ek_gsm_has_key(const struct ek_gsm_key *key, uint32_t task)
{
	return !key || (!key->dropped && key->members[task]);
}

static void forget(struct ek_gsm_key *key)
{
	free(key->areas);
	free(key->members);
	key->areas = 0;
	key->members = 0;
}

/* Finds out who the members are, and a number that none of them has had; all or none. */
static int meet(struct ek_gsm *job, MPI_Comm members, struct ek_gsm_key *key, char *text)
{
	const int mine = (int)job->task;
	int size = 0, wanted = (int)job->last_key + 1, number = INT_MAX;
	ek_mpi.Comm_size(members, &size);
	int *tasks = malloc((size_t)size * sizeof *tasks);
	key->members = calloc(job->tasks, 1);
	key->areas = malloc(job->tasks * sizeof *key->areas);
	if (!job->no_areas && (job->no_areas = malloc(job->tasks * sizeof *key->areas)))
		for (uint32_t task = 0; task < job->tasks; task++)
			job->no_areas[task] = &ek_gsm_nowhere;
	if (!tasks || !key->members || !key->areas || !job->no_areas)
		wanted = INT_MAX;
	int result = EK_GSM_NO_MEMORY;
	if (ek_mpi.Allreduce(&wanted, &number, 1, ek_mpi.type_int, ek_mpi.op_max, members) != MPI_SUCCESS)
		result = EK_GSM_UNEQUAL;
	else if (number > EK_GSM_KEYS && number < INT_MAX)
		snprintf(text, EK_GSM_TEXT, "some task has had %d keys", EK_GSM_KEYS);
	else if (number < INT_MAX)
		result = ek_mpi.Allgather(&mine, 1, ek_mpi.type_int, tasks, 1, ek_mpi.type_int, members) == MPI_SUCCESS
		                 ? EK_OK : EK_GSM_UNEQUAL;
	for (int i = 0; i < size && result == EK_OK; i++)
		key->members[tasks[i]] = 1;
	for (uint32_t task = 0; task < job->tasks && result == EK_OK; task++)
		key->areas[task] = key->members[task] ? job->areas[task] : &ek_gsm_nowhere;
	key->number = (uint32_t)number;
	free(tasks);
	return result;
}

/* Gives the key to all members; all get it, or none. */
static int share(struct ek_gsm *job, MPI_Comm members, struct ek_gsm_key *key, char *text)
{
	struct drawn drawn = {.drawn = 0};
	int rank = 0, result = EK_OK;
	bool added = false;
	ek_mpi.Comm_rank(members, &rank);
	if (rank == 0 && getrandom(drawn.secret, sizeof drawn.secret, 0) == (ssize_t)sizeof drawn.secret &&
	    getrandom(&drawn.token, sizeof drawn.token, 0) == (ssize_t)sizeof drawn.token)
		drawn.drawn = 1;
	if (ek_mpi.Bcast(&drawn, sizeof drawn, ek_mpi.type_byte, 0, members) != MPI_SUCCESS)
		result = EK_GSM_UNEQUAL;
	else if (!drawn.drawn)
		result = EK_GSM_NO_MEMORY, snprintf(text, EK_GSM_TEXT, "the first task could not draw the secret");
	key->token = drawn.token | 1;
	if (result == EK_OK && job->end) {
		added = job->network->add_key(job->end, key->number, key->token, drawn.secret) == EK_OK;
		result = added ? EK_OK : EK_GSM_NO_MEMORY;
	}
	explicit_bzero(&drawn, sizeof drawn);
	result = ek_gsm_agree(members, result);
	if (result != EK_OK && added)
		job->network->remove_key(job->end, key->number);
	return result;
}

EK_EXPORT int ek_gsm_narrow(struct ek_gsm *job, int members, struct ek_gsm_key **key)
{
	char text[EK_GSM_TEXT] = "";
	int kept = errno, result = ek_gsm_usable(job, making);
	if (result != EK_OK)
		return result;
	struct ek_gsm_key made = {.job = job}, *room = malloc(sizeof *room);
	const MPI_Comm comm = ek_mpi.Comm_f2c(members);
	EK_OWN(EK_CALLER(ek_gsm_narrow), EK_C_KEY(comm), MPI_PROC_NULL);
	result = ek_gsm_agree(comm, room && key ? EK_OK : EK_GSM_NO_MEMORY);
	if (result == EK_OK)
		result = meet(job, comm, &made, text);
	if (result == EK_OK)
		result = share(job, comm, &made, text);
	if (result == EK_OK) {
		*room = made;
		*key = room;
		job->last_key = made.number;
	} else {
		forget(&made);
		free(room);
		ek_gsm_failed(job, making, result, text);
	}
	errno = kept;
	return result;
}

EK_EXPORT int ek_gsm_open_under(struct ek_gsm *job, struct ek_gsm_key *key, void *memory, uint64_t bytes, unsigned rights,
                                struct ek_gsm_window **window)
{
	if (!key || key->job != job || key->dropped)
		return ek_gsm_failed(job, "opening a window", EK_GSM_KEY, "the task has not the key");
	return ek_gsm_open_narrow(job, key, memory, bytes, rights, window);
}

/* The struct stays, as a job's does, so that who uses it later is told so. */
EK_EXPORT int ek_gsm_key_drop(struct ek_gsm_key *key)
{
	static const char what[] = "dropping a key";
	int kept = errno;
	if (!key || key->dropped)
		return ek_gsm_failed(key ? key->job : 0, what, EK_GSM_CLOSED, "the task has not the key");
	struct ek_gsm *job = key->job;
	int result = ek_gsm_usable(job, what);
	if (result != EK_OK)
		return result;
	key->dropped = true;
	pthread_mutex_lock(&job->lock);
	for (int i = 0; i < EK_GSM_WINDOWS; i++) {
		struct window *w = job->windows[i];
		if (w && w->open.tasks && w->key == key) {
			ek_gsm_revoke(&job->space, w->open.number);
			w->open.areas = job->no_areas;
		}
	}
	pthread_mutex_unlock(&job->lock);
	if (job->end)
		job->network->remove_key(job->end, key->number);
	forget(key);
	errno = kept;
	return EK_OK;
}
