#include "agree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "evenkeel.h"
#include "ground.h"

static __thread char last_error[EK_TEXT] = "nothing went wrong";

void ek_fail(struct ek_outcome *outcome, int result, const char *format, ...)
{
	va_list rest;
	if (outcome->result != EK_OK)
		return;
	outcome->result = result;
	va_start(rest, format);
	vsnprintf(outcome->text, sizeof outcome->text, format, rest);
	va_end(rest);
}

int ek_outcome_end(const struct ek_outcome *outcome)
{
	if (outcome->result != EK_OK)
		snprintf(last_error, sizeof last_error, "%s", outcome->text);
	return outcome->result;
}

EK_EXPORT const char *ek_error_text(void)
{
	return last_error;
}

static __thread const char *refusal;

void ek_refuse_next(const char *why)
{
	refusal = why;
}

/* The lowest rank that has another number than rank 0. Collective. */
static int rank_with_another(MPI_Comm comm, int rank, uint64_t same)
{
	const struct ek_ground *g = ek_ground();
	uint64_t first = same, mine, lowest = 0;
	g->Bcast(&first, 1, g->uint64, 0, comm);
	mine = same == first ? UINT64_MAX : (uint64_t)rank;
	g->Allreduce(&mine, &lowest, 1, g->uint64, g->min, comm);
	return (int)lowest;
}

int ek_agree(MPI_Comm comm, struct ek_outcome *outcome, uint64_t same, uint64_t *most)
{
	return ek_agree_on(comm, outcome, same, most, "the ranks ask for different things, rank %d for others than rank 0: "
	                   "make the same calls on all of them, with the same sizes, options and bounds");
}

int ek_agree_on(MPI_Comm comm, struct ek_outcome *outcome, uint64_t same, uint64_t *most, const char *otherwise)
{
	const struct ek_ground *g = ek_ground();
	int rank;
	g->Comm_rank(comm, &rank);
	if (refusal) {
		outcome->result = EK_OK; /* what was handed on instead is not what is wrong */
		ek_fail(outcome, EK_REFUSED, "%s", refusal);
	}
	/* The smallest of each: of the ranks that failed, of a number and its complement. */
	uint64_t mine[4] = {outcome->result == EK_OK ? UINT64_MAX : (uint64_t)rank, same, ~same, most ? ~*most : 0}, all[4];
	if (g->Allreduce(mine, all, 4, g->uint64, g->min, comm) != MPI_SUCCESS) {
		ek_fail(outcome, EK_MPI_FAILED, "MPI_Allreduce over the ranks of the partition failed");
		return ek_outcome_end(outcome);
	}
	if (most)
		*most = ~all[3];
	if (all[0] != UINT64_MAX) {
		char text[EK_TEXT - 24];
		g->Bcast(outcome, sizeof *outcome, g->byte, (int)all[0], comm);
		snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, outcome->text);
		snprintf(outcome->text, sizeof outcome->text, "rank %d: %s", (int)all[0], text);
	} else if (all[1] != ~all[2]) {
		ek_fail(outcome, EK_REFUSED, otherwise, rank_with_another(comm, rank, same));
	}
	return ek_outcome_end(outcome);
}
