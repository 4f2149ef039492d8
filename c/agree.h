/* agree.h - whether a step of a collective call went well on all ranks: what
 * fails on one is an error on each, with the same words.
 */
#ifndef EK_AGREE_H
#define EK_AGREE_H

#include <mpi.h>
#include <stdint.h>

enum { EK_TEXT = 384 };

/* What this rank found so far. */
struct ek_outcome {
	int result; /* enum ek_result */
	char text[EK_TEXT];
};

/* The first thing that goes wrong counts. */
__attribute__((format(printf, 3, 4))) void ek_fail(struct ek_outcome *outcome, int result, const char *format, ...);

/* Sets this thread's last error to the words of an outcome that is not EK_OK;
 * returns its result. */
int ek_outcome_end(const struct ek_outcome *outcome);

/* The outcome of the rank of the lowest number where it is not EK_OK, on all ranks;
 * `same` is a number that must be the same on all of them, `most` becomes the
 * largest given. Collective, one Allreduce if all is well. */
int ek_agree(MPI_Comm comm, struct ek_outcome *outcome, uint64_t same, uint64_t *most);

/* The same with words of one's own for ranks whose numbers differ: a format for the
 * lowest rank that has another one than rank 0. */
int ek_agree_on(MPI_Comm comm, struct ek_outcome *outcome, uint64_t same, uint64_t *most, const char *otherwise)
	__attribute__((format(printf, 5, 0)));

/* What a binding has against the arguments of a collective call that it can't hand on:
 * this thread's next agreement fails with these words. Null: nothing. */
void ek_refuse_next(const char *why);

/* FNV-1a, for `same`. */
static inline uint64_t ek_hash(uint64_t hash, const void *data, uint64_t bytes)
{
	const unsigned char *at = (const unsigned char *)data;
	for (uint64_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

#endif
