/* truth_write.c - from a run's readings to the truth about its waiting.
 *
 * A call's late time is the part of it before the rank that it waits for has
 * arrived, where
 *	TO_ALL     waits for the last of all ranks,
 *	FROM_ROOT  off the root waits for the root,
 *	TO_ROOT    on the root waits for the last of all ranks, off it for the root
 *	           if it was held until that came,
 *	RECEIVE    waits for its left neighbour's send of the same cycle.
 * Where the rank waited for was late because it waited itself, that part of the
 * time is charged to the rank that it waited for, and so on.
 *
 * JSON, times in seconds: elapsed (the longest of any rank), load_balance =
 * mean(useful)/max(useful), communication_efficiency = max(useful)/elapsed,
 * parallel_efficiency = mean(useful)/elapsed, operations (collective ones);
 * per rank elapsed, useful, mpi, late, caused (late time of others charged to
 * it), last and first (operations to which it came last or first); waits_for:
 * the late time of the row's rank charged to the column's.
 */
#include "truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct sums {
	double mpi, late, caused;
	long last, first;
};

static const struct reading *reading(const struct truth *t, int rank, int call)
{
	return &t->readings[(size_t)rank * (size_t)t->calls + (size_t)call];
}

static int extreme_arrival(const struct truth *t, int call, int sign)
{
	int found = 0;

	for (int r = 1; r < t->ranks; r++)
		if (sign * reading(t, r, call)->enter > sign * reading(t, found, call)->enter)
			found = r;
	return found;
}

/* The call with which the rank waited for in this one arrives. */
static int sent_in(const struct truth *t, int call)
{
	return truth_kind(t, call) == RECEIVE ? call - 1 : call;
}

/* The rank that this call waits for, or -1, and until when: its own begin if it
 * waits for none. */
static int awaited(const struct truth *t, int rank, int call, double *until)
{
	int root = truth_root(t, call), whom = -1;

	*until = reading(t, rank, call)->enter;
	switch (truth_kind(t, call)) {
	case TO_ALL:
		whom = extreme_arrival(t, call, +1);
		break;
	case FROM_ROOT:
		whom = root;
		break;
	case TO_ROOT:
		whom = rank == root ? extreme_arrival(t, call, +1) : root;
		if (rank != root &&
		    reading(t, root, call)->enter > reading(t, rank, call)->leave)
			return -1;
		break;
	case RECEIVE:
		whom = (rank + t->ranks - 1) % t->ranks;
		break;
	case SEND:
		return -1;
	}
	if (whom == rank)
		return -1;
	*until = fmin(reading(t, whom, sent_in(t, call))->enter, reading(t, rank, call)->leave);
	return whom;
}

/* Charges the time from begin to end, in which some rank waited for whom to
 * arrive at their_call, in the row of that rank. */
static void charge(const struct truth *t, double *row, int whom, int their_call, double begin,
		   double end)
{
	double left = end - begin;

	for (int call = their_call - 1; call >= 0 && truth_kind(t, call) != TO_ALL; call--) {
		const struct reading *r = reading(t, whom, call);
		double until, from = fmax(begin, r->enter);
		int next = awaited(t, whom, call, &until);

		if (r->leave <= begin)
			break;
		until = fmin(end, until);
		if (next >= 0 && until > from) {
			charge(t, row, next, sent_in(t, call), from, until);
			left -= until - from;
		}
	}
	row[whom] += left;
}

static void add_up(const struct truth *t, struct sums *sums, double *waits_for)
{
	for (int call = 0; call < t->calls; call++) {
		enum kind kind = truth_kind(t, call);

		for (int r = 0; r < t->ranks; r++) {
			const struct reading *own = reading(t, r, call);
			double until, *row = &waits_for[(size_t)r * (size_t)t->ranks];
			int whom = awaited(t, r, call, &until);
			double lost = fmax(0, until - own->enter);

			sums[r].mpi += own->leave - own->enter;
			sums[r].late += lost;
			if (lost > 0)
				charge(t, row, whom, sent_in(t, call), own->enter, until);
		}
		if (kind != SEND && kind != RECEIVE) {
			sums[extreme_arrival(t, call, +1)].last++;
			sums[extreme_arrival(t, call, -1)].first++;
		}
	}
	for (int r = 0; r < t->ranks; r++)
		for (int culprit = 0; culprit < t->ranks; culprit++)
			sums[culprit].caused += waits_for[r * t->ranks + culprit];
}

static void print_ranks(FILE *f, const struct truth *t, const struct sums *sums,
			const double *waits_for)
{
	fprintf(f, "  \"ranks\": [\n");
	for (int r = 0; r < t->ranks; r++)
		fprintf(f,
			"    {\"rank\": %d, \"elapsed\": %.9f, \"useful\": %.9f, \"mpi\": %.9f, "
			"\"late\": %.9f, \"caused\": %.9f, \"last\": %ld, \"first\": %ld}%s\n",
			r, t->life[r], t->life[r] - sums[r].mpi, sums[r].mpi, sums[r].late,
			sums[r].caused, sums[r].last, sums[r].first, r + 1 < t->ranks ? "," : "");
	fprintf(f, "  ],\n  \"waits_for\": [\n");
	for (int r = 0; r < t->ranks; r++) {
		for (int culprit = 0; culprit < t->ranks; culprit++)
			fprintf(f, "%s%.9f", culprit == 0 ? "    [" : ", ",
				waits_for[r * t->ranks + culprit]);
		fprintf(f, "]%s\n", r + 1 < t->ranks ? "," : "");
	}
	fprintf(f, "  ]\n");
}

static void print(FILE *f, const struct truth *t, const struct sums *sums,
		  const double *waits_for)
{
	static const char *const names[] = TRUTH_PATTERNS;
	double elapsed = 0, longest = 0, mean = 0;
	long operations = 0;

	for (int r = 0; r < t->ranks; r++) {
		double useful = t->life[r] - sums[r].mpi;

		elapsed = fmax(elapsed, t->life[r]);
		longest = fmax(longest, useful);
		mean += useful / t->ranks;
		operations += sums[r].last;
	}
	fprintf(f, "{\n  \"pattern\": \"%s\", \"seed\": %lu, \"cycles\": %d,\n",
		names[t->pattern], t->seed, t->cycles);
	fprintf(f, "  \"elapsed\": %.9f, \"load_balance\": %.9f,\n", elapsed, mean / longest);
	fprintf(f, "  \"communication_efficiency\": %.9f, \"parallel_efficiency\": %.9f,\n",
		longest / elapsed, mean / elapsed);
	fprintf(f, "  \"operations\": %ld,\n", operations);
	print_ranks(f, t, sums, waits_for);
	fprintf(f, "}\n");
}

int truth_write(const struct truth *t)
{
	struct sums *sums = calloc((size_t)t->ranks, sizeof *sums);
	double *waits_for = calloc((size_t)t->ranks * (size_t)t->ranks, sizeof *waits_for);
	FILE *f = fopen(t->path, "w");
	int failed = f == NULL || sums == NULL || waits_for == NULL;

	if (!failed) {
		add_up(t, sums, waits_for);
		print(f, t, sums, waits_for);
	}
	if (f != NULL && fclose(f) != 0)
		failed = 1;
	if (failed)
		perror(t->path);
	free(sums);
	free(waits_for);
	return failed ? -1 : 0;
}
