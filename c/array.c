/* array.c - arrays on a partition: of items of one size, with copies of the
 * neighbours' items on either side, and of items of any length.
 *
 * Items that a rank keeps in a move stay where they are in its memory, and those that come
 * are received beside them: what it had is not touched before all ranks agree. Where an item
 * is, is a position in a stretch of memory: of items of one size its number times their
 * size, of others it follows from those before it. Only where there is no room beside the
 * items, all of them go to another stretch.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"
#include "stretch.h"

/* A receive that was begun before it is known what comes: at most the items (of any
 * length: bytes, by their position) from `first` on, `count` of them. Once a move has taken
 * it over, it is those from `comes` on, of which there are so many; they lie at `first`
 * nevertheless. */
struct early {
	int peer;
	int64_t first, count, comes;
	MPI_Request request;
};

/* A message of a halo exchange: items that are there or come there, by their
 * place in the array of this rank. */
struct transfer {
	int peer, tag;
	bool out;
	int64_t at, count;
};

struct ek_array {
	struct ek_tenant tenant;
	struct ek_partition *partition;
	size_t item;   /* bytes; 0: of any length */
	int64_t halo;
	struct ek_stretch now;    /* `halo` items, this rank's, `halo` items or copies */
	struct ek_stretch next;   /* of the range to come, if there is no room for it in `now`, */
	struct ek_stretch *coming; /* and which of them it is to be in */
	struct early *early;      /* into that */
	int earlies;
	bool adopted;             /* by a move */
	int64_t copies;           /* behind this rank's items, and for which description: see halo.c */
	uint64_t described;
	int64_t *offsets, *new_offsets, *out_lengths; /* of items of any length, */
	int64_t begin, new_begin; /* and the position of the first */

	/* The exchange, as long as the ranges are the same. */
	uint64_t generation; /* plus 1: none was made yet */
	int periodic;
	struct transfer *transfers;
	int transfer_count;
	MPI_Request *requests;
	uint64_t exchange_began_ns;
	int under_way;
};

/* Nothing is sent before all ranks have agreed on a move, and until then receives
 * for it are cancelled; so none of them can have been given anything. */
static void cancel(struct ek_array *a, int i)
{
	ek_ground()->Cancel(&a->early[i].request);
	ek_ground()->Waitall(1, &a->early[i].request, MPI_STATUSES_IGNORE);
	a->early[i] = a->early[--a->earlies];
}

static void cancel_all(struct ek_array *a)
{
	while (a->earlies > 0)
		cancel(a, a->earlies - 1);
}

/* Receives into what `coming` is; of more than MPI can count at once, none. */
static bool post(struct ek_array *a, struct early *e, int tag, int64_t unit)
{
	int64_t bytes = e->count * unit;
	return bytes <= EK_CHUNK && ek_ground()->Irecv(ek_stretch_at(a->coming, e->first * unit), (int)bytes, ek_ground()->byte,
	                                               e->peer, tag, a->partition->comm, &e->request) == MPI_SUCCESS;
}

/* What came by receives that a move has taken over goes to where it belongs. */
static void settle(struct ek_array *a, int64_t unit)
{
	if (!a->adopted)
		cancel_all(a); /* of a move that did not come to its messages */
	for (int i = 0; i < a->earlies; i++) {
		const struct early *e = &a->early[i];
		memmove(ek_stretch_at(a->coming, e->comes * unit), ek_stretch_at(a->coming, e->first * unit), (size_t)(e->count * unit));
	}
	a->earlies = 0;
	a->adopted = false;
}

static bool get_memory(struct ek_stretch *s, int64_t from, int64_t to, struct ek_outcome *outcome)
{
	if (!ek_stretch_new(s, from, to))
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %lld bytes of an array", (long long)(to - from));
	return s->base != 0;
}

/* Finds room for the range to come at these positions. */
static bool make_room(struct ek_array *a, int64_t from, int64_t to, struct ek_outcome *outcome)
{
	struct ek_stretch *was = a->coming;
	a->coming = &a->now;
	bool there = ek_stretch_open(&a->now, from, to);
	if (!there) {
		a->coming = &a->next;
		there = ek_stretch_open(&a->next, from, to);
	}
	if (a->coming != was || !there)
		cancel_all(a);
	if (there)
		return true;
	ek_stretch_free(&a->next);
	return get_memory(&a->next, from, to, outcome);
}

/* Room at the end of what is there, which stays; there might something come by receives
 * that were begun early. */
static bool enlarge(struct ek_array *a, int64_t from, int64_t end, int64_t to, struct ek_outcome *outcome)
{
	struct ek_stretch larger;
	cancel_all(a);
	if (ek_stretch_open(&a->now, from, to))
		return true;
	if (!get_memory(&larger, from, to, outcome))
		return false;
	memcpy(ek_stretch_at(&larger, from), ek_stretch_at(&a->now, from), (size_t)(end - from));
	ek_stretch_free(&a->now);
	a->now = larger;
	return true;
}

/* The range to come, at these positions, is the one of now if the move is done. Memory on
 * either side is kept up to half as much, as ranges come and go. */
static void take_over(struct ek_array *a, int64_t from, int64_t to, bool done)
{
	if (done && a->coming == &a->next) {
		ek_stretch_free(&a->now);
		a->now = a->next;
		a->next.base = 0;
	}
	if (done)
		ek_stretch_trim(&a->now, from - (to - from) / 2, to + (to - from) / 2);
	ek_stretch_free(&a->next);
	a->copies = 0;
	a->described = 0;
}

/* ---- items of one size -------------------------------------------------- */

static int64_t position(const struct ek_array *a, int64_t item)
{
	return item * (int64_t)a->item;
}

static char *place(const struct ek_array *a, const struct ek_stretch *s, int64_t item)
{
	return ek_stretch_at(s, position(a, item));
}

static bool within(const struct early *e, const struct ek_piece *piece)
{
	return e->peer == piece->peer && piece->first >= e->first && piece->first + piece->count <= e->first + e->count;
}

static struct early *early_of(const struct ek_array *a, const struct ek_piece *piece)
{
	for (int i = 0; i < a->earlies; i++)
		if (within(&a->early[i], piece))
			return &a->early[i];
	return 0;
}

/* Receives that are of no use for a move are cancelled. */
static void cancel_unused(struct ek_array *a, const struct ek_move *m)
{
	for (int i = a->earlies - 1; i >= 0; i--) {
		bool used = false;
		for (int k = 0; k < m->ins; k++)
			used = used || within(&a->early[i], &m->in[k]);
		if (!used)
			cancel(a, i);
	}
}

static void fixed_prepare(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct ek_array *a = (struct ek_array *)t;
	if (!make_room(a, position(a, m->new_first - a->halo), position(a, m->new_first + m->new_count + a->halo), outcome))
		return;
	cancel_unused(a, m);
	for (int i = 0; i < m->outs; i++)
		ek_messages_expect(&m->messages, m->out[i].count * (int64_t)a->item, outcome);
	for (int i = 0; i < m->ins; i++)
		ek_messages_expect(&m->messages, m->in[i].count * (int64_t)a->item, outcome);
}

/* An early receive takes somewhat more or less than was foreseen: up to all that the
 * peer has, as long as MPI can count it. */
static struct early around(const struct ek_array *a, const struct ek_piece *piece)
{
	const int64_t *bounds = a->partition->bounds;
	int64_t more = piece->count / 4 + 8, first = piece->first - more, end = piece->first + piece->count + more;
	first = first > bounds[piece->peer] ? first : bounds[piece->peer];
	end = end < bounds[piece->peer + 1] ? end : bounds[piece->peer + 1];
	return (struct early){piece->peer, first, end - first, first, 0};
}

/* Memory gets its pages. Receives that are under way are
 * kept as long as what is foreseen now would come by them. */
static int64_t fixed_expect(struct ek_tenant *t, const struct ek_move *m)
{
	struct ek_array *a = (struct ek_array *)t;
	struct ek_outcome ignored = {0};
	int64_t first = m->new_first - a->halo, end = m->new_first + m->new_count + a->halo;
	int covered = 0;
	for (int i = 0; i < m->ins; i++)
		covered += early_of(a, &m->in[i]) != 0;
	if (covered == m->ins && (m->ins > 0 || a->earlies > 0))
		return 0;
	cancel_all(a);
	struct early *early = realloc(a->early, (size_t)(m->ins + 1) * sizeof *early);
	if (!early)
		return 0;
	a->early = early;
	for (int i = 0; i < m->ins; i++) {
		early[i] = around(a, &m->in[i]);
		first = early[i].first - a->halo < first ? early[i].first - a->halo : first;
		end = early[i].first + early[i].count + a->halo > end ? early[i].first + early[i].count + a->halo : end;
	}
	if (!make_room(a, position(a, first), position(a, end), &ignored))
		return 0;
	ek_stretch_populate(a->coming, position(a, first), position(a, end));
	for (int i = 0; i < m->ins; i++)
		if (post(a, &early[i], t->tag, (int64_t)a->item))
			early[a->earlies++] = early[i];
	return a->earlies;
}

static void fixed_first(struct ek_tenant *t, struct ek_move *m)
{
	struct ek_array *a = (struct ek_array *)t;
	a->adopted = a->earlies > 0;
	for (int i = 0; i < m->ins; i++) {
		struct early *e = early_of(a, &m->in[i]);
		if (e) {
			e->comes = m->in[i].first;
			e->count = m->in[i].count;
			ek_move_adopt(m, e->request);
		} else {
			ek_messages_receive(&m->messages, t->tag, m->in[i].peer, place(a, a->coming, m->in[i].first),
			                    m->in[i].count * (int64_t)a->item);
		}
	}
	for (int i = 0; i < m->outs; i++)
		ek_messages_send(&m->messages, t->tag, m->out[i].peer, place(a, &a->now, m->out[i].first),
		                 m->out[i].count * (int64_t)a->item);
	if (m->kept_count > 0 && a->coming != &a->now)
		memcpy(place(a, a->coming, m->kept_first), place(a, &a->now, m->kept_first), (size_t)m->kept_count * a->item);
}

static void fixed_end(struct ek_tenant *t, const struct ek_move *m, bool done)
{
	struct ek_array *a = (struct ek_array *)t;
	settle(a, (int64_t)a->item);
	take_over(a, position(a, m->new_first - a->halo), position(a, m->new_first + m->new_count + a->halo), done);
}

/* ---- items of any length ------------------------------------------------ */

static void variable_prepare(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct ek_array *a = (struct ek_array *)t;
	a->new_offsets = calloc((size_t)m->new_count + 1, sizeof *a->new_offsets);
	a->out_lengths = calloc((size_t)m->old_count + 1, sizeof *a->out_lengths);
	if (!a->new_offsets || !a->out_lengths) {
		ek_fail(outcome, EK_NO_MEMORY, "no memory for the lengths of %lld items", (long long)(m->new_count + m->old_count));
		return;
	}
	for (int64_t i = 0; i < m->old_count; i++)
		a->out_lengths[i] = a->offsets[i + 1] - a->offsets[i];
	for (int i = 0; i < m->outs; i++)
		ek_messages_expect(&m->messages, m->out[i].count * (int64_t)sizeof *a->offsets, outcome);
	for (int i = 0; i < m->ins; i++)
		ek_messages_expect(&m->messages, m->in[i].count * (int64_t)sizeof *a->offsets, outcome);
}

/* Lengths come to where the offsets of the items' ends will be. */
static void variable_first(struct ek_tenant *t, struct ek_move *m)
{
	struct ek_array *a = (struct ek_array *)t;
	for (int i = 0; i < m->ins; i++)
		ek_messages_receive(&m->messages, t->tag, m->in[i].peer, a->new_offsets + 1 + (m->in[i].first - m->new_first),
		                m->in[i].count * (int64_t)sizeof *a->offsets);
	for (int i = 0; i < m->outs; i++)
		ek_messages_send(&m->messages, t->tag, m->out[i].peer, a->out_lengths + (m->out[i].first - m->old_first),
		             m->out[i].count * (int64_t)sizeof *a->offsets);
	if (m->kept_count > 0)
		memcpy(a->new_offsets + 1 + (m->kept_first - m->new_first), a->out_lengths + (m->kept_first - m->old_first),
		       (size_t)m->kept_count * sizeof *a->offsets);
}

/* Where the bytes of a range of items begin, and how many they are. */
static int64_t bytes_of(const int64_t *offsets, int64_t index, int64_t count, int64_t *begin)
{
	*begin = offsets[index];
	return offsets[index + count] - offsets[index];
}

static struct early *early_from(const struct ek_array *a, int peer)
{
	for (int i = 0; i < a->earlies; i++)
		if (a->early[i].peer == peer)
			return &a->early[i];
	return 0;
}

/* How many pieces come before what is kept: the first ones. */
static int pieces_before(const struct ek_move *m)
{
	int before = 0;
	while (before < m->ins && m->in[before].first < m->kept_first)
		before++;
	return before;
}

/* Whether what comes fits what an early receive is for: what was foreseen to come behind the
 * items that are kept begins where they end; what was to come before them may have gaps to
 * them, if nothing else comes there. */
static bool fits(const struct ek_array *a, const struct ek_move *m, const struct early *e, int piece, int64_t at, int64_t bytes)
{
	if (bytes == 0 || bytes > e->count)
		return false;
	return e->first < a->begin ? piece == 0 && pieces_before(m) == 1 && at + bytes == a->begin && a->begin == e->first + e->count
	                           : at == e->first;
}

/* Receives into which something comes know where it belongs; the others are cancelled. */
static void choose_earlies(struct ek_array *a, const struct ek_move *m)
{
	bool used[2] = {false}; /* there is one on either side at most */
	for (int i = 0; i < m->ins; i++) {
		struct early *e = early_from(a, m->in[i].peer);
		int64_t to, bytes = bytes_of(a->new_offsets, m->in[i].first - m->new_first, m->in[i].count, &to);
		if (!e || !fits(a, m, e, i, a->new_begin + to, bytes))
			continue;
		used[e - a->early] = true;
		e->comes = a->new_begin + to;
		e->count = bytes;
	}
	for (int i = a->earlies - 1; i >= 0; i--)
		if (!used[i])
			cancel(a, i);
}

static void variable_second(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct ek_array *a = (struct ek_array *)t;
	int64_t from, to;
	for (int64_t i = 0; i < m->new_count; i++)
		a->new_offsets[i + 1] += a->new_offsets[i];
	a->new_begin = a->begin + a->offsets[m->old_count];
	if (m->kept_count > 0)
		a->new_begin = a->begin + a->offsets[m->kept_first - m->old_first] - a->new_offsets[m->kept_first - m->new_first];
	if (!make_room(a, a->new_begin, a->new_begin + a->new_offsets[m->new_count], outcome))
		return;
	choose_earlies(a, m);
	for (int i = 0; i < m->outs; i++)
		ek_messages_expect(&m->messages, bytes_of(a->offsets, m->out[i].first - m->old_first, m->out[i].count, &from), outcome);
	for (int i = 0; i < m->ins; i++)
		ek_messages_expect(&m->messages, bytes_of(a->new_offsets, m->in[i].first - m->new_first, m->in[i].count, &to), outcome);
	if (m->kept_count == 0 || a->coming == &a->now)
		return;
	int64_t bytes = bytes_of(a->offsets, m->kept_first - m->old_first, m->kept_count, &from);
	memcpy(ek_stretch_at(a->coming, a->begin + from), ek_stretch_at(&a->now, a->begin + from), (size_t)bytes);
}

static void variable_send_second(struct ek_tenant *t, struct ek_move *m)
{
	struct ek_array *a = (struct ek_array *)t;
	a->adopted = a->earlies > 0;
	for (int i = 0; i < m->ins; i++) {
		const struct early *e = early_from(a, m->in[i].peer);
		int64_t to, bytes = bytes_of(a->new_offsets, m->in[i].first - m->new_first, m->in[i].count, &to);
		if (e)
			ek_move_adopt(m, e->request);
		else
			ek_messages_receive(&m->messages, t->tag + 1, m->in[i].peer, ek_stretch_at(a->coming, a->new_begin + to), bytes);
	}
	for (int i = 0; i < m->outs; i++) {
		int64_t from, bytes = bytes_of(a->offsets, m->out[i].first - m->old_first, m->out[i].count, &from);
		ek_messages_send(&m->messages, t->tag + 1, m->out[i].peer, ek_stretch_at(&a->now, a->begin + from), bytes);
	}
}

/* What comes is taken to have as many bytes an item as the items of now have in the mean.
 * Memory gets its pages. Where items come to lie is known at the begin and the end of those
 * that are kept, so from the neighbours receives are begun, of up to a quarter more: behind
 * the last item, and before the first, if nobody else gives any there. Receives that are under
 * way are kept if they will do. */
static int64_t variable_expect(struct ek_tenant *t, const struct ek_move *m)
{
	struct ek_array *a = (struct ek_array *)t;
	struct ek_outcome ignored = {0};
	int before = pieces_before(m);
	int64_t posted = 0;
	if (m->old_count == 0 || m->kept_count == 0 || m->ins == 0)
		return 0;
	int64_t end = a->begin + a->offsets[m->old_count], mean = a->offsets[m->old_count] / m->old_count + 1;
	int64_t room_before = mean * (m->kept_first - m->new_first) * 5 / 4;
	int64_t room_behind = mean * (m->new_first + m->new_count - m->kept_first - m->kept_count) * 5 / 4;
	if (!make_room(a, a->begin - room_before, end + room_behind, &ignored))
		return 0;
	struct early *early = a->early ? a->early : calloc(2, sizeof *early);
	if (!early)
		return 0;
	a->early = early;
	ek_stretch_populate(a->coming, a->begin - room_before, a->begin);
	ek_stretch_populate(a->coming, end, end + room_behind);
	for (int i = 0; i < m->ins; i++) {
		bool is_before = i < before, begins = is_before ? before == 1 : i == before;
		int64_t bytes = mean * m->in[i].count, room = bytes * 5 / 4;
		struct early *e = early_from(a, m->in[i].peer);
		if (!begins || (e && e->count >= bytes))
			continue;
		if (e)
			cancel(a, (int)(e - a->early));
		early[a->earlies] = (struct early){m->in[i].peer, is_before ? a->begin - room : end, room, 0, 0};
		if (post(a, &early[a->earlies], t->tag + 1, 1)) {
			a->earlies++;
			posted++;
		}
	}
	return posted;
}

static void variable_end(struct ek_tenant *t, const struct ek_move *m, bool done)
{
	struct ek_array *a = (struct ek_array *)t;
	settle(a, 1);
	take_over(a, a->new_begin, done ? a->new_begin + a->new_offsets[m->new_count] : 0, done);
	if (done) {
		int64_t *old = a->offsets;
		a->offsets = a->new_offsets;
		a->new_offsets = old;
		a->begin = a->new_begin;
	}
	free(a->new_offsets);
	free(a->out_lengths);
	a->new_offsets = a->out_lengths = 0;
}

EK_EXPORT int ek_array_assign(ek_array *a, const int64_t length[], const void *data)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	int64_t first, count, total = 0;
	ek_partition_range(a->partition, &first, &count);
	if (a->item)
		ek_fail(&outcome, EK_REFUSED, "items of %zu bytes are written in place: see ek_array_data", a->item);
	for (int64_t i = 0; i < count && outcome.result == EK_OK; i++) {
		if (length[i] < 0)
			ek_fail(&outcome, EK_REFUSED, "item %lld has a length of %lld bytes: it can't be negative", (long long)(first + i),
			        (long long)length[i]);
		total += length[i];
	}
	if (outcome.result != EK_OK || !enlarge(a, a->begin, a->begin, a->begin + total, &outcome))
		return ek_outcome_end(&outcome);
	for (int64_t i = 0; i < count; i++)
		a->offsets[i + 1] = a->offsets[i] + length[i];
	memcpy(ek_stretch_at(&a->now, a->begin), data, (size_t)total);
	a->copies = 0;
	return EK_OK;
}

EK_EXPORT const int64_t *ek_array_offsets(const ek_array *a)
{
	return a->offsets;
}

/* ---- both --------------------------------------------------------------- */

static void array_free(struct ek_tenant *t)
{
	struct ek_array *a = (struct ek_array *)t;
	cancel_all(a);
	free(a->early);
	ek_stretch_free(&a->now);
	ek_stretch_free(&a->next);
	free(a->offsets);
	free(a->transfers);
	free(a->requests);
	free(a);
}

static struct ek_array *new_array(struct ek_partition *p, struct ek_outcome *outcome)
{
	struct ek_array *a = calloc(1, sizeof *a);
	if (!a)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for an array");
	else
		a->partition = p;
	return a;
}

static int add(struct ek_partition *p, struct ek_array *a, struct ek_outcome *outcome, uint64_t same, ek_array **array)
{
	int result = ek_tenant_add(p, a ? &a->tenant : 0, outcome, same);
	*array = result == EK_OK ? a : 0;
	return result;
}

EK_EXPORT int ek_array_create(ek_partition *p, size_t bytes, int64_t halo, ek_array **array)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	int64_t first, count;
	*array = 0;
	if (!ek_ground())
		return EK_INACTIVE;
	struct ek_array *a = new_array(p, &outcome);
	ek_partition_range(p, &first, &count);
	if (bytes == 0 || bytes > INT32_MAX || halo < 0 || halo > p->items || halo > INT32_MAX / (int64_t)bytes)
		ek_fail(&outcome, EK_REFUSED, "an array of items of %zu bytes with %lld copies of neighbours' items on either side: an "
		        "item has from 1 to 2^31 - 1 bytes, so have all copies of a side, and they are from 0 to %lld", bytes,
		        (long long)halo, (long long)p->items);
	if (a) {
		a->item = bytes;
		a->halo = halo;
		a->tenant = (struct ek_tenant){.prepare = fixed_prepare, .first = fixed_first, .end = fixed_end,
		                               .free = array_free, .expect = fixed_expect};
		if (outcome.result == EK_OK)
			get_memory(&a->now, position(a, first - halo), position(a, first + count + halo), &outcome);
	}
	int result = add(p, a, &outcome, ek_hash(bytes, &halo, sizeof halo), array);
	p->waits = p->waits || (result == EK_OK && halo > 0);
	return result;
}

EK_EXPORT int ek_array_create_variable(ek_partition *p, ek_array **array)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	int64_t first, count;
	*array = 0;
	if (!ek_ground())
		return EK_INACTIVE;
	struct ek_array *a = new_array(p, &outcome);
	ek_partition_range(p, &first, &count);
	if (a) {
		a->tenant = (struct ek_tenant){
			.prepare = variable_prepare, .first = variable_first, .second = variable_second,
			.send_second = variable_send_second, .end = variable_end, .free = array_free, .expect = variable_expect};
		a->offsets = calloc((size_t)count + 1, sizeof *a->offsets);
		if (!a->offsets)
			ek_fail(&outcome, EK_NO_MEMORY, "no memory for the lengths of %lld items", (long long)count);
		get_memory(&a->now, 0, 0, &outcome);
	}
	return add(p, a, &outcome, EK_TENANT_VARIABLE, array);
}

EK_EXPORT void *ek_array_data(const ek_array *a)
{
	return a->item ? place(a, &a->now, a->partition->bounds[a->partition->rank]) : ek_stretch_at(&a->now, a->begin);
}

/* ---- copies behind the items: see halo.c --------------------------------- */

const struct ek_partition *ek_array_partition(const ek_array *a)
{
	return a->partition;
}

size_t ek_array_item(const ek_array *a)
{
	return a->item;
}

uint64_t ek_array_described(const ek_array *a)
{
	return a->described;
}

EK_EXPORT int64_t ek_array_copies(const ek_array *a)
{
	return a->copies;
}

bool ek_array_room(ek_array *a, int64_t copies, uint64_t description, struct ek_outcome *outcome)
{
	int64_t first, count;
	ek_partition_range(a->partition, &first, &count);
	if (a->halo > 0) {
		ek_fail(outcome, EK_REFUSED, "an array with copies of %lld neighbours' items has no place for those of a halo: create it "
		        "with 0 of them", (long long)a->halo);
		return false;
	}
	int64_t end = position(a, first + count);
	if (!enlarge(a, position(a, first), end, end + copies * (int64_t)a->item, outcome))
		return false;
	a->copies = copies;
	a->described = description;
	return true;
}

bool ek_array_room_variable(ek_array *a, int64_t copies, const int64_t lengths[], struct ek_outcome *outcome)
{
	int64_t first, count;
	ek_partition_range(a->partition, &first, &count);
	int64_t *offsets = realloc(a->offsets, (size_t)(count + copies + 1) * sizeof *offsets);
	if (!offsets) {
		ek_fail(outcome, EK_NO_MEMORY, "no memory for the lengths of %lld items", (long long)(count + copies));
		return false;
	}
	a->offsets = offsets;
	for (int64_t i = 0; i < copies; i++)
		offsets[count + i + 1] = offsets[count + i] + lengths[i];
	if (!enlarge(a, a->begin, a->begin + offsets[count], a->begin + offsets[count + copies], outcome))
		return false;
	a->copies = copies;
	return true;
}

/* ---- copies of the neighbours' items -------------------------------------- */

/* What one rank copies from another on one side of its range, `shift` items away
 * around the end: nothing if they have nothing to do with this rank. Both sides of
 * a message come by here in the same order. */
static void note(struct ek_array *a, int reader, int owner, int side, int64_t shift)
{
	const struct ek_partition *p = a->partition;
	int64_t begin = p->bounds[reader], end = p->bounds[reader + 1];
	int64_t from = (side ? end : begin - a->halo) + shift, to = (side ? end + a->halo : begin) + shift;
	from = from > p->bounds[owner] ? from : p->bounds[owner];
	to = to < p->bounds[owner + 1] ? to : p->bounds[owner + 1];
	if (begin == end || from >= to || (reader != p->rank && owner != p->rank))
		return;
	if (reader == p->rank)
		a->transfers[a->transfer_count++] = (struct transfer){owner, side, false, from - shift - begin, to - from};
	if (owner == p->rank)
		a->transfers[a->transfer_count++] = (struct transfer){reader, side, true, from - p->bounds[owner], to - from};
}

static void note_all(struct ek_array *a, int reader, int owner)
{
	int64_t items = a->partition->items;
	for (int side = 0; side < 2; side++)
		for (int64_t turn = a->periodic ? -1 : 0; turn <= (a->periodic ? 1 : 0); turn++)
			note(a, reader, owner, side, turn * items);
}

/* Who exchanges what with whom, as long as the ranges are the same. */
static bool describe(struct ek_array *a, int periodic, struct ek_outcome *outcome)
{
	const struct ek_partition *p = a->partition;
	size_t most = 12 * (size_t)p->ranks + 12; /* two sides, three turns, two directions with each */
	if (a->generation == p->generation + 1 && a->periodic == periodic)
		return true;
	if (!a->transfers) {
		a->transfers = calloc(most, sizeof *a->transfers);
		a->requests = calloc(most, sizeof *a->requests);
	}
	if (!a->transfers || !a->requests) {
		ek_fail(outcome, EK_NO_MEMORY, "no memory for the description of a halo exchange");
		return false;
	}
	a->periodic = periodic;
	a->transfer_count = 0;
	for (int other = 0; other < p->ranks; other++) {
		note_all(a, p->rank, other);
		if (other != p->rank)
			note_all(a, other, p->rank);
	}
	a->generation = p->generation + 1;
	return true;
}

EK_EXPORT int ek_array_exchange_begin(ek_array *a, int periodic)
{
	EK_FOR_CALLER;
	const struct ek_ground *g = ek_ground();
	const struct ek_partition *p = a->partition;
	struct ek_outcome outcome = {0};
	char *data = ek_array_data(a);
	if (!g)
		return EK_INACTIVE;
	if (a->under_way || !a->item) {
		ek_fail(&outcome, EK_REFUSED, a->item ? "an exchange of this array is under way: end it first"
		                                      : "items of any length have no copies");
		return ek_outcome_end(&outcome);
	}
	a->exchange_began_ns = ek_ground_now();
	cancel_all(a); /* which would come to where the copies are */
	if (!describe(a, periodic != 0, &outcome))
		return ek_outcome_end(&outcome);
	int result = MPI_SUCCESS;
	for (int i = 0; i < a->transfer_count && result == MPI_SUCCESS; i++) {
		const struct transfer *t = &a->transfers[i];
		char *at = data + t->at * (int64_t)a->item;
		int bytes = (int)(t->count * (int64_t)a->item), tag = p->tags + 2 * a->tenant.tag + t->tag;
		if (t->out)
			result = g->Isend(at, bytes, g->byte, t->peer, tag, p->comm, &a->requests[i]);
		else
			result = g->Irecv(at, bytes, g->byte, t->peer, tag, p->comm, &a->requests[i]);
	}
	a->under_way = 1;
	if (result != MPI_SUCCESS)
		ek_fail(&outcome, EK_MPI_FAILED, "MPI could not begin a halo exchange");
	a->partition->waited_ns += ek_ground_now() - a->exchange_began_ns;
	return ek_outcome_end(&outcome);
}

EK_EXPORT int ek_array_exchange_end(ek_array *a)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	if (!a->under_way)
		return EK_OK;
	uint64_t began_ns = ek_ground_now();
	a->under_way = 0;
	if (ek_ground()->Waitall(a->transfer_count, a->requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
		ek_fail(&outcome, EK_MPI_FAILED, "MPI could not end a halo exchange");
	a->partition->waited_ns += ek_ground_now() - began_ns;
	return ek_outcome_end(&outcome);
}

EK_EXPORT int ek_array_exchange(ek_array *a, int periodic)
{
	EK_FOR_CALLER;
	int result = ek_array_exchange_begin(a, periodic);
	return result == EK_OK ? ek_array_exchange_end(a) : result;
}

/* ---- all of it on all ranks ---------------------------------------------- */

EK_EXPORT int ek_array_gather(const ek_array *a, void *all)
{
	EK_FOR_CALLER;
	const struct ek_ground *g = ek_ground();
	const struct ek_partition *p = a->partition;
	struct ek_outcome outcome = {0};
	if (!g)
		return EK_INACTIVE;
	uint64_t began_ns = ek_ground_now();
	a->partition->waits = true;
	int *counts = calloc(2 * (size_t)p->ranks, sizeof *counts), *places = counts + p->ranks;
	if (!counts)
		ek_fail(&outcome, EK_NO_MEMORY, "no memory for the ranges of %d ranks", p->ranks);
	if (!a->item || p->items > INT32_MAX)
		ek_fail(&outcome, EK_REFUSED, "items of any length, or more than 2^31 - 1 of them, can't be gathered at once");
	for (int r = 0; r < p->ranks && outcome.result == EK_OK; r++) {
		places[r] = (int)p->bounds[r];
		counts[r] = (int)(p->bounds[r + 1] - p->bounds[r]);
	}
	if (ek_agree(p->comm, &outcome, 0, 0) == EK_OK) {
		MPI_Datatype item;
		g->Type_contiguous((int)a->item, g->byte, &item);
		g->Type_commit(&item);
		if (g->Allgatherv(ek_array_data(a), counts[p->rank], item, all, counts, places, item, p->comm) != MPI_SUCCESS)
			ek_fail(&outcome, EK_MPI_FAILED, "MPI_Allgatherv over the ranks of the partition failed");
		g->Type_free(&item);
	}
	a->partition->waited_ns += ek_ground_now() - began_ns;
	free(counts);
	return ek_outcome_end(&outcome);
}
