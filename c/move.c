/* move.c - items go to their new owners.
 *
 *   prepare   each rank gets the memory that it will need, and packs what goes
 *   agree     all could: else the memory is given back, and all is as before
 *   first     messages whose length both sides know: all of fixed-size items
 *   second    those whose length the first ones told, after all agreed that there
 *             is memory for them
 *   unpack    what came is handed over
 *   agree     all could: the new ranges hold; else what came is dropped
 *
 * What a rank has stays as it was until the last agreement, so an error on any
 * rank, in any of these, leaves the data of all ranks unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "partition.h"

/* ---- messages ----------------------------------------------------------- */

void ek_messages_expect(struct ek_messages *m, int64_t bytes, struct ek_outcome *outcome)
{
	m->expected += bytes / EK_CHUNK + 1;
	if (outcome->result != EK_OK || m->expected <= m->room)
		return;
	MPI_Request *more = realloc(m->requests, 2 * (size_t)m->expected * sizeof *more);
	if (!more) {
		ek_fail(outcome, EK_NO_MEMORY, "no memory for the list of %lld messages", (long long)m->expected);
		return;
	}
	m->requests = more;
	m->room = 2 * m->expected;
}

void ek_messages_send(struct ek_messages *m, int tag, int peer, const void *data, int64_t bytes)
{
	for (const char *at = data, *end = at + bytes; at < end && m->result == MPI_SUCCESS; at += EK_CHUNK)
		m->result = ek_ground()->Isend(at, end - at < EK_CHUNK ? (int)(end - at) : EK_CHUNK, ek_ground()->byte, peer, tag,
		                               m->comm, &m->requests[m->begun++]);
}

void ek_messages_receive(struct ek_messages *m, int tag, int peer, void *data, int64_t bytes)
{
	for (char *at = data, *end = at + bytes; at < end && m->result == MPI_SUCCESS; at += EK_CHUNK)
		m->result = ek_ground()->Irecv(at, end - at < EK_CHUNK ? (int)(end - at) : EK_CHUNK, ek_ground()->byte, peer, tag,
		                               m->comm, &m->requests[m->begun++]);
}

void ek_messages_complete(struct ek_messages *m, struct ek_outcome *outcome)
{
	int result = ek_ground()->Waitall(m->begun, m->requests, MPI_STATUSES_IGNORE);
	if (result != MPI_SUCCESS || m->result != MPI_SUCCESS)
		ek_fail(outcome, EK_MPI_FAILED, "MPI could not move the items");
	m->begun = 0;
	m->expected = 0;
	m->result = MPI_SUCCESS;
}

void ek_move_adopt(struct ek_move *m, MPI_Request request)
{
	m->messages.requests[m->messages.begun++] = request;
	m->used++;
}

/* ---- what goes where ---------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* The parts of [first, end) that others have by these bounds. */
static int overlaps(const struct ek_partition *p, const int64_t *bounds, int64_t first, int64_t end, struct ek_piece **pieces,
                    struct ek_outcome *outcome)
{
	int found = 0;
	for (int r = 0; r < p->ranks && first < end; r++)
		found += r != p->rank && larger(bounds[r], first) < smaller(bounds[r + 1], end);
	*pieces = malloc((size_t)(found + 1) * sizeof **pieces);
	if (!*pieces) {
		ek_fail(outcome, EK_NO_MEMORY, "no memory for the list of %d ranges", found);
		return 0;
	}
	found = 0;
	for (int r = 0; r < p->ranks && first < end; r++) {
		int64_t from = larger(bounds[r], first), to = smaller(bounds[r + 1], end);
		if (r != p->rank && from < to)
			(*pieces)[found++] = (struct ek_piece){r, from, to - from};
	}
	return found;
}

void ek_move_plan(const struct ek_partition *p, const int64_t *bounds, struct ek_move *m, struct ek_outcome *outcome)
{
	int64_t old_end = p->bounds[p->rank + 1], new_end = bounds[p->rank + 1];
	m->messages.comm = p->comm;
	m->old_first = p->bounds[p->rank];
	m->old_count = old_end - m->old_first;
	m->new_first = bounds[p->rank];
	m->new_count = new_end - m->new_first;
	m->kept_first = larger(m->old_first, m->new_first);
	m->kept_count = larger(0, smaller(old_end, new_end) - m->kept_first);
	m->outs = overlaps(p, bounds, m->old_first, old_end, &m->out, outcome);
	m->ins = overlaps(p, p->bounds, m->new_first, new_end, &m->in, outcome);
}

void ek_move_free(struct ek_move *m)
{
	free(m->out);
	free(m->in);
	free(m->messages.requests);
}

/* ---- the move ----------------------------------------------------------- */

/* What the ranks' tenants do together; the outcome is the same on all. */
static void carry(struct ek_partition *p, struct ek_move *m, struct ek_outcome *outcome, uint64_t *took_ns)
{
	bool seconds = false;
	uint64_t begun_ns = ek_ground_now();
	for (struct ek_tenant *t = p->tenants; t; t = t->next) {
		if (t->prepare)
			t->prepare(t, m, outcome);
		seconds = seconds || t->second;
	}
	if (ek_agree(p->comm, outcome, 0, 0) != EK_OK)
		return;
	for (struct ek_tenant *t = p->tenants; t; t = t->next)
		if (t->first)
			t->first(t, m);
	ek_messages_complete(&m->messages, outcome);
	if (seconds) {
		for (struct ek_tenant *t = p->tenants; t; t = t->next)
			if (t->second && outcome->result == EK_OK)
				t->second(t, m, outcome);
		if (ek_agree(p->comm, outcome, 0, 0) != EK_OK)
			return;
		for (struct ek_tenant *t = p->tenants; t; t = t->next)
			if (t->second)
				t->send_second(t, m);
		ek_messages_complete(&m->messages, outcome);
		for (struct ek_tenant *t = p->tenants; t; t = t->next)
			if (t->unpack && outcome->result == EK_OK)
				t->unpack(t, m, outcome);
	}
	*took_ns = ek_ground_now() - begun_ns;
	ek_agree(p->comm, outcome, 0, took_ns);
}

static void take_over(struct ek_partition *p)
{
	int64_t *old = p->bounds;
	p->bounds = p->next;
	p->next = old;
	p->start.bounds = p->bounds;
	p->generation++;
}

EK_EXPORT int ek_partition_move(ek_partition *p)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	struct ek_move m = {0};
	uint64_t took_ns = 0;
	if (!ek_ground())
		return EK_INACTIVE;
	if (!p->pending)
		return EK_OK;
	ek_move_plan(p, p->next, &m, &outcome);
	if (p->ready_failed)
		ek_fail(&outcome, EK_HOOK_FAILED, "the program's function that gets ready for a range failed (%d)", p->ready_failed);
	p->ready_failed = 0;
	carry(p, &m, &outcome, &took_ns);
	bool done = outcome.result == EK_OK;
	for (struct ek_tenant *t = p->tenants; t; t = t->next)
		if (t->end)
			t->end(t, &m, done);
	if (done) {
		p->moved_seconds = (double)took_ns * 1e-9;
		take_over(p);
		p->overlapped.used += m.used;
		if (ek_ground()->moved)
			ek_ground()->moved(m.used);
	}
	if (!done || p->set)
		ek_controller_restart(p);
	p->pending = p->set = p->known = false;
	p->ready_first = p->ready_count = 0;
	ek_move_free(&m);
	/* Also after an error, whose words are the last ones all the same. */
	int began = ek_cycle_begin(p);
	return done ? began : outcome.result;
}

/* ---- the program's own hooks -------------------------------------------- */

/* A receive that was begun before it is known what comes, into memory of its own, which
 * becomes that of what came. */
struct early {
	int peer;
	int64_t room;
	void *data;
	MPI_Request request;
};

struct packed {
	struct ek_tenant tenant;
	struct ek_hooks hooks;
	struct ek_partition *partition;
	int64_t *out_bytes, *in_bytes; /* of the move that runs; bytes of each piece, and where they are */
	void **out_data, **in_data;
	struct early *early; /* as many as there are ranks, at most */
	int earlies;
	int64_t each; /* bytes for an item, in the piece of the last move where it was most; 0: none moved yet */
};

static void *table(size_t count, size_t bytes, struct ek_outcome *outcome)
{
	void *memory = calloc(count + 1, bytes);
	if (!memory)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %zu bytes", count * bytes);
	return memory;
}

static void *buffer(int64_t bytes, struct ek_outcome *outcome)
{
	void *memory = malloc((size_t)bytes + 1);
	if (!memory)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %lld bytes of items that move", (long long)bytes);
	return memory;
}

static void pack(struct packed *a, const struct ek_piece *piece, int i, struct ek_outcome *outcome)
{
	const struct ek_hooks *h = &a->hooks;
	a->out_bytes[i] = h->size(h->context, piece->first, piece->count);
	if (a->out_bytes[i] < 0) {
		ek_fail(outcome, EK_HOOK_FAILED, "the program's size function failed (%lld) for the items from %lld, %lld of them",
		        (long long)a->out_bytes[i], (long long)piece->first, (long long)piece->count);
		return;
	}
	a->out_data[i] = buffer(a->out_bytes[i], outcome);
	if (!a->out_data[i])
		return;
	int failed = h->pack(h->context, piece->first, piece->count, a->out_data[i], a->out_bytes[i]);
	if (failed)
		ek_fail(outcome, EK_HOOK_FAILED, "the program's pack function failed (%d) for the items from %lld, %lld of them", failed,
		        (long long)piece->first, (long long)piece->count);
}

static void packed_prepare(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct packed *a = (struct packed *)t;
	a->out_bytes = table((size_t)m->outs, sizeof *a->out_bytes, outcome);
	a->in_bytes = table((size_t)m->ins, sizeof *a->in_bytes, outcome);
	a->out_data = table((size_t)m->outs, sizeof *a->out_data, outcome);
	a->in_data = table((size_t)m->ins, sizeof *a->in_data, outcome);
	for (int i = 0; i < m->outs && outcome->result == EK_OK; i++)
		pack(a, &m->out[i], i, outcome);
	for (int i = 0; i < m->outs + m->ins; i++)
		ek_messages_expect(&m->messages, sizeof *a->in_bytes, outcome);
}

static void packed_first(struct ek_tenant *t, struct ek_move *m)
{
	struct packed *a = (struct packed *)t;
	for (int i = 0; i < m->outs; i++)
		ek_messages_send(&m->messages, t->tag, m->out[i].peer, &a->out_bytes[i], sizeof *a->out_bytes);
	for (int i = 0; i < m->ins; i++)
		ek_messages_receive(&m->messages, t->tag, m->in[i].peer, &a->in_bytes[i], sizeof *a->in_bytes);
}

static void forget(struct packed *a, struct early *e)
{
	*e = a->early[--a->earlies];
}

static void cancel(struct packed *a, struct early *e)
{
	ek_ground()->Cancel(&e->request);
	ek_ground()->Waitall(1, &e->request, MPI_STATUSES_IGNORE);
	free(e->data);
	forget(a, e);
}

static void cancel_all(struct packed *a)
{
	while (a->earlies > 0)
		cancel(a, &a->early[a->earlies - 1]);
}

static struct early *early_from(const struct packed *a, int peer)
{
	for (int i = 0; i < a->earlies; i++)
		if (a->early[i].peer == peer)
			return &a->early[i];
	return 0;
}

/* Memory that has its pages, and a receive into it. */
static bool post(const struct packed *a, struct early *e)
{
	struct ek_outcome ignored = {0};
	e->data = e->room <= EK_CHUNK ? buffer(e->room, &ignored) : 0;
	if (!e->data)
		return false;
	memset(e->data, 0, (size_t)e->room);
	if (ek_ground()->Irecv(e->data, (int)e->room, ek_ground()->byte, e->peer, a->tenant.tag + 1, a->partition->comm,
	                       &e->request) == MPI_SUCCESS)
		return true;
	free(e->data);
	return false;
}

/* How many bytes come is told when the program has packed them. Until then items are taken to
 * need as many as those of the last move, and there is room for a quarter more. Receives that
 * are under way are kept if they will do. */
static int64_t packed_expect(struct ek_tenant *t, const struct ek_move *m)
{
	struct packed *a = (struct packed *)t;
	int64_t posted = 0;
	if (!a->early)
		a->early = calloc((size_t)a->partition->ranks, sizeof *a->early);
	for (int i = 0; i < m->ins && a->early && a->each > 0; i++) {
		struct early *e = early_from(a, m->in[i].peer);
		int64_t bytes = m->in[i].count * a->each;
		if (e && e->room >= bytes)
			continue;
		if (e)
			cancel(a, e);
		e = &a->early[a->earlies];
		*e = (struct early){.peer = m->in[i].peer, .room = bytes * 5 / 4};
		if (post(a, e)) {
			a->earlies++;
			posted++;
		}
	}
	return posted;
}

/* The receives that are of no use for what comes are cancelled. */
static void cancel_unused(struct packed *a, const struct ek_move *m)
{
	for (int i = a->earlies - 1; i >= 0; i--) {
		bool used = false;
		for (int k = 0; k < m->ins; k++)
			used = used || (m->in[k].peer == a->early[i].peer && a->in_bytes[k] > 0 && a->in_bytes[k] <= a->early[i].room);
		if (!used)
			cancel(a, &a->early[i]);
	}
}

static void packed_second(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct packed *a = (struct packed *)t;
	for (int i = 0; i < m->outs; i++)
		ek_messages_expect(&m->messages, a->out_bytes[i], outcome);
	cancel_unused(a, m);
	for (int i = 0; i < m->ins; i++) {
		if (!early_from(a, m->in[i].peer))
			a->in_data[i] = buffer(a->in_bytes[i], outcome);
		ek_messages_expect(&m->messages, a->in_bytes[i], outcome);
	}
}

static void packed_send_second(struct ek_tenant *t, struct ek_move *m)
{
	struct packed *a = (struct packed *)t;
	for (int i = 0; i < m->outs; i++)
		ek_messages_send(&m->messages, t->tag + 1, m->out[i].peer, a->out_data[i], a->out_bytes[i]);
	for (int i = 0; i < m->ins; i++) {
		struct early *e = early_from(a, m->in[i].peer);
		if (e) {
			ek_move_adopt(m, e->request);
			a->in_data[i] = e->data;
			forget(a, e);
		} else {
			ek_messages_receive(&m->messages, t->tag + 1, m->in[i].peer, a->in_data[i], a->in_bytes[i]);
		}
	}
}

static void packed_unpack(struct ek_tenant *t, struct ek_move *m, struct ek_outcome *outcome)
{
	struct packed *a = (struct packed *)t;
	for (int i = 0; i < m->ins && outcome->result == EK_OK; i++) {
		int failed = a->hooks.unpack(a->hooks.context, m->in[i].first, m->in[i].count, a->in_data[i], a->in_bytes[i]);
		if (failed)
			ek_fail(outcome, EK_HOOK_FAILED, "the program's unpack function failed (%d) for the items from %lld, %lld of them",
			        failed, (long long)m->in[i].first, (long long)m->in[i].count);
	}
}

/* From the bytes that went and came: at least one, so that it is known that there were items. */
static void learn_each(struct packed *a, const struct ek_move *m)
{
	int64_t most = 0;
	for (int i = 0; i < m->outs; i++)
		most = larger(most, a->out_bytes[i] / m->out[i].count + 1);
	for (int i = 0; i < m->ins; i++)
		most = larger(most, a->in_bytes[i] / m->in[i].count + 1);
	a->each = most > 0 ? most : a->each;
}

static void packed_end(struct ek_tenant *t, const struct ek_move *m, bool done)
{
	struct packed *a = (struct packed *)t;
	if (done)
		learn_each(a, m);
	for (int i = 0; a->out_data && i < m->outs; i++)
		free(a->out_data[i]);
	for (int i = 0; a->in_data && i < m->ins; i++)
		free(a->in_data[i]);
	free(a->out_bytes);
	free(a->in_bytes);
	free(a->out_data);
	free(a->in_data);
	a->out_bytes = a->in_bytes = 0;
	a->out_data = a->in_data = 0;
	if (a->hooks.finish)
		a->hooks.finish(a->hooks.context, done ? m->new_first : m->old_first, done ? m->new_count : m->old_count, done);
}

static void packed_free(struct ek_tenant *t)
{
	struct packed *a = (struct packed *)t;
	cancel_all(a);
	free(a->early);
	free(a);
}

EK_EXPORT int ek_partition_hooks(ek_partition *p, const struct ek_hooks *hooks)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	struct packed *a = table(1, sizeof *a, &outcome);
	if (!hooks || !hooks->size || !hooks->pack || !hooks->unpack)
		ek_fail(&outcome, EK_REFUSED, "hooks need the functions size, pack and unpack");
	else if (a)
		a->hooks = *hooks;
	if (a) {
		a->partition = p;
		a->tenant = (struct ek_tenant){
			.prepare = packed_prepare, .first = packed_first, .second = packed_second,
			.send_second = packed_send_second, .unpack = packed_unpack, .end = packed_end, .free = packed_free,
			.expect = packed_expect};
	}
	return ek_tenant_add(p, a ? &a->tenant : 0, &outcome, EK_TENANT_HOOKS);
}
