/* early.c - what a rank that is early gets ready in the wait at a cycle's end.
 *
 * It knows that it is early from the last cycle, whose times all ranks hold. While
 * the others still compute it foresees the ranges that those times would lead to,
 * and gets memory for them, begins the receives of the items that would come, and
 * has the program do its own. The decision is another matter: it rests on this
 * cycle's times, which are known to all as soon as the last rank has come, and which
 * that rank can reckon with at once. A receive that the decision has a use for is
 * taken over by the move, the others are cancelled before anybody may send: see
 * fixed_prepare and choose_earlies in array.c, and packed_second in move.c.
 */
#include <string.h>

#include "partition.h"

static const double SHORTEST_WAIT = 50e-6; /* to get ready in, in seconds */

EK_EXPORT int ek_partition_overlap(ek_partition *p, int (*ready)(void *, int64_t, int64_t), void *context, double seconds)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	if (!(seconds >= 0 && seconds < 1e6))
		ek_fail(&outcome, EK_REFUSED, "getting ready takes %g s: declare a time that is not negative", seconds);
	if (ek_agree(p->comm, &outcome, 0, 0) != EK_OK)
		return outcome.result;
	p->overlaps = true;
	p->ready = ready;
	p->ready_context = context;
	p->ready_seconds = seconds;
	p->overlapped.given_up = 0;
	return EK_OK;
}

EK_EXPORT int ek_partition_overlapped(const ek_partition *p, struct ek_overlapped *overlapped)
{
	*overlapped = p->overlapped;
	return EK_OK;
}

/* ---- foreseeing ---------------------------------------------------------- */

/* For how long this rank waited in the last cycle. */
static double last_wait(const struct ek_partition *p)
{
	double longest = 0;
	for (int r = 0; p->known && r < p->ranks; r++)
		longest = p->useful[r] > longest ? p->useful[r] : longest;
	return p->known ? longest - p->useful[p->rank] : 0;
}

static double rate_of(const struct ek_partition *p, int r)
{
	return p->useful[r] > 0 ? (double)(p->bounds[r + 1] - p->bounds[r]) / p->useful[r] : 0;
}

/* The bounds that the ranks' rates of the last cycle lead to, within the partition's limits. */
static void foresee(const struct ek_partition *p, int64_t *bounds)
{
	double all = 0, sum = 0;
	int64_t least = p->start.minimum, most = p->start.maximum > 0 ? p->start.maximum : p->items;
	for (int r = 0; r < p->ranks; r++)
		all += rate_of(p, r);
	bounds[0] = 0;
	for (int r = 0; r < p->ranks; r++) {
		int64_t after = p->ranks - r - 1, before = bounds[r]; /* ranks that must find room, too */
		int64_t low = before + least, high = p->items - after * least;
		if (most < p->items) {
			low = p->items - after * most > low ? p->items - after * most : low;
			high = before + most < high ? before + most : high;
		}
		sum += rate_of(p, r);
		bounds[r + 1] = after > 0 && all > 0 ? (int64_t)((double)p->items * (sum / all)) : p->items;
		bounds[r + 1] = bounds[r + 1] < low ? low : bounds[r + 1] > high ? high : bounds[r + 1];
	}
}

/* ---- getting ready ------------------------------------------------------- */

/* Neither the range that the rank has, nor one that it got ready for since it has that: what
 * was decided then was against it. */
static bool is_news(const struct ek_partition *p, const struct ek_move *foreseen)
{
	bool has = foreseen->new_first == foreseen->old_first && foreseen->new_count == foreseen->old_count;
	return !has && (foreseen->new_first != p->ready_first || foreseen->new_count != p->ready_count);
}

static void call_ready(struct ek_partition *p, int64_t first, int64_t count)
{
	p->ready_first = first;
	p->ready_count = count;
	uint64_t began_ns = ek_ground_now();
	p->ready_failed = p->ready(p->ready_context, first, count);
	double took = (double)(ek_ground_now() - began_ns) * 1e-9;
	p->overlapped.given_up = took > 2 * p->ready_seconds && took > p->ready_seconds + 1e-3;
}

/* What the next range will need, while others still compute. Returns how long it took:
 * 0 if this rank is not early. */
static uint64_t get_ready(struct ek_partition *p)
{
	struct ek_move foreseen = {0};
	struct ek_outcome outcome = {0};
	double wait = last_wait(p);
	uint64_t began_ns = ek_ground_now();
	if (wait < SHORTEST_WAIT)
		return 0;
	foresee(p, p->next);
	ek_move_plan(p, p->next, &foreseen, &outcome);
	for (struct ek_tenant *t = p->tenants; t && outcome.result == EK_OK; t = t->next)
		if (t->expect)
			p->overlapped.posted += t->expect(t, &foreseen);
	if (p->ready && !p->overlapped.given_up && !p->ready_failed && wait > p->ready_seconds && is_news(p, &foreseen))
		call_ready(p, foreseen.new_first, foreseen.new_count);
	ek_move_free(&foreseen);
	p->overlapped.times++;
	return ek_ground_now() - began_ns;
}

/* Of the time that it took, what the others took longer than this rank was hidden. */
static void keep_hidden(struct ek_partition *p, uint64_t took_ns)
{
	p->known = true;
	double took = (double)took_ns * 1e-9, wait = last_wait(p), hidden = took < wait ? took : wait;
	p->overlapped.seconds += hidden;
	if (hidden > 0 && ek_ground()->hidden)
		ek_ground()->hidden((uint64_t)(hidden * 1e9));
}

/* What is known of the last cycle is needed to get ready, so the new times come
 * beside it. */
int ek_early_step(struct ek_partition *p, double useful)
{
	const struct ek_ground *g = ek_ground();
	struct ek_outcome outcome = {0};
	MPI_Request request;
	int failed = g->Iallgather(&useful, 1, g->real, p->coming, 1, g->real, p->comm, &request);
	uint64_t took_ns = failed ? 0 : get_ready(p);
	if (failed || g->Waitall(1, &request, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
		ek_fail(&outcome, EK_MPI_FAILED, "MPI_Iallgather over the ranks of the partition failed");
	memcpy(p->useful, p->coming, (size_t)p->ranks * sizeof *p->useful);
	keep_hidden(p, took_ns);
	return ek_outcome_end(&outcome);
}
