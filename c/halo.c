/* halo.c - copies of any items of others: a rank names what it needs, and gets it from
 * those who have it at the moment.
 *
 *   describe   the program's function names items; ranks tell each other how many they
 *              need of whom, and which
 *   exchange   each sends what it was asked for
 *
 * A rank's needs are sorted, so what comes from one peer is one block of its copies,
 * and is received where it belongs. A description holds until ranges change.
 */
#include <stdlib.h>
#include <string.h>

#include "partition.h"

/* What goes to or comes from a peer: given[at ..) or items[at ..). */
struct block {
	int peer;
	int64_t at, count;
};

struct ek_halo {
	struct ek_tenant tenant;
	struct ek_partition *partition;
	ek_needs needs;
	void *context;
	bool asking; /* `needs` runs */
	struct ek_outcome asked;

	uint64_t generation; /* of the ranges that it is described for, plus 1 */
	uint64_t number;     /* of the description, among all of the partition */
	int64_t *items, count, room; /* copies of these, rising */
	int64_t *given;              /* items of this rank's that others need, by peer */
	struct block *in, *out;
	int ins, outs;

	/* The exchange under way. */
	ek_array *array;
	struct ek_messages messages;
	char *packed;
	size_t packed_size;
	int64_t *lengths; /* of the copies, then of the items given */
};

/* ---- what this rank needs ------------------------------------------------ */

static bool list(ek_halo *h, int64_t first, int64_t count)
{
	if (!h->asking)
		ek_fail(&h->asked, EK_REFUSED, "items are named from within the function of a halo that names them");
	if (h->asked.result == EK_OK && (count < 0 || first < 0 || first + count > h->partition->items))
		ek_fail(&h->asked, EK_REFUSED, "a halo needs items from %lld to %lld, but there are 0 to %lld", (long long)first,
		        (long long)(first + count - 1), (long long)(h->partition->items - 1));
	if (h->asked.result == EK_OK && h->count + count > h->room) {
		int64_t *more = realloc(h->items, (size_t)(2 * h->room + count) * sizeof *more);
		if (!more)
			ek_fail(&h->asked, EK_NO_MEMORY, "no memory for a list of %lld items", (long long)(h->count + count));
		h->items = more ? more : h->items;
		h->room = more ? 2 * h->room + count : h->room;
	}
	for (int64_t i = 0; h->asked.result == EK_OK && i < count; i++)
		h->items[h->count++] = first + i;
	return h->asked.result == EK_OK;
}

EK_EXPORT int ek_halo_need(ek_halo *h, const int64_t items[], int64_t count)
{
	for (int64_t i = 0; i < count && list(h, items[i], 1); i++)
		;
	return ek_outcome_end(&h->asked);
}

EK_EXPORT int ek_halo_need_range(ek_halo *h, int64_t first, int64_t count)
{
	list(h, first, count);
	return ek_outcome_end(&h->asked);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void ask(ek_halo *h, struct ek_outcome *outcome)
{
	const struct ek_partition *p = h->partition;
	int64_t first, count, kept = 0;
	ek_partition_range(p, &first, &count);
	h->asked = (struct ek_outcome){0};
	h->count = 0;
	h->asking = true;
	int failed = h->needs(h->context, h, first, count);
	h->asking = false;
	if (h->asked.result == EK_OK && failed)
		ek_fail(&h->asked, EK_HOOK_FAILED, "the program's function that names the items of a halo failed (%d) for the items from "
		        "%lld, %lld of them", failed, (long long)first, (long long)count);
	*outcome = h->asked;
	if (h->count > 0)
		qsort(h->items, (size_t)h->count, sizeof *h->items, compare);
	for (int64_t i = 0; i < h->count; i++)
		if ((h->items[i] < first || h->items[i] >= first + count) && (kept == 0 || h->items[i] != h->items[kept - 1]))
			h->items[kept++] = h->items[i];
	h->count = kept;
}

/* ---- who has it ---------------------------------------------------------- */

static void *get(int64_t count, size_t bytes, struct ek_outcome *outcome)
{
	void *memory = calloc((size_t)count + 1, bytes);
	if (!memory)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for a halo of %lld items", (long long)count);
	return memory;
}

/* The ranks with whom something is exchanged, of counts for all. */
static int blocks(const struct ek_partition *p, const int64_t counts[], struct block *to)
{
	int found = 0;
	int64_t at = 0;
	for (int r = 0; r < p->ranks; at += counts[r++])
		if (counts[r] > 0)
			to[found++] = (struct block){r, at, counts[r]};
	return found;
}

static void expect(ek_halo *h, size_t bytes, struct ek_outcome *outcome)
{
	h->messages.expected = 0; /* also after an error */
	for (int i = 0; i < h->ins; i++)
		ek_messages_expect(&h->messages, h->in[i].count * (int64_t)bytes, outcome);
	for (int i = 0; i < h->outs; i++)
		ek_messages_expect(&h->messages, h->out[i].count * (int64_t)bytes, outcome);
}

/* Each rank learns what others need of it. Collective. */
static void tell(ek_halo *h, int64_t *needed, int64_t *asked, struct ek_outcome *outcome)
{
	const struct ek_ground *g = ek_ground();
	struct ek_partition *p = h->partition;
	int64_t given = 0;
	for (int64_t i = 0; i < h->count; i++)
		needed[ek_partition_owner(p, h->items[i])]++;
	if (g->Alltoall(needed, 1, g->int64, asked, 1, g->int64, p->comm) != MPI_SUCCESS)
		ek_fail(outcome, EK_MPI_FAILED, "MPI_Alltoall over the ranks of the partition failed");
	for (int r = 0; r < p->ranks; r++)
		given += asked[r];
	h->ins = blocks(p, needed, h->in);
	h->outs = blocks(p, asked, h->out);
	free(h->given);
	h->given = get(given, sizeof *h->given, outcome);
	free(h->lengths);
	h->lengths = get(h->count + given, sizeof *h->lengths, outcome);
	expect(h, sizeof *h->items, outcome);
	if (ek_agree(p->comm, outcome, 0, 0) != EK_OK)
		return;
	for (int i = 0; i < h->outs; i++)
		ek_messages_receive(&h->messages, h->tenant.tag, h->out[i].peer, h->given + h->out[i].at,
		                    h->out[i].count * (int64_t)sizeof *h->given);
	for (int i = 0; i < h->ins; i++)
		ek_messages_send(&h->messages, h->tenant.tag, h->in[i].peer, h->items + h->in[i].at,
		                 h->in[i].count * (int64_t)sizeof *h->items);
	ek_messages_complete(&h->messages, outcome);
}

EK_EXPORT int ek_halo_renew(ek_halo *h)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	struct ek_partition *p = h->partition;
	if (!ek_ground())
		return EK_INACTIVE;
	h->generation = 0;
	ask(h, &outcome);
	int64_t *needed = get(2 * (int64_t)p->ranks, sizeof *needed, &outcome);
	if (ek_agree(p->comm, &outcome, 0, 0) == EK_OK)
		tell(h, needed, needed + p->ranks, &outcome);
	free(needed);
	if (outcome.result != EK_OK) {
		h->count = h->ins = h->outs = 0;
		return ek_outcome_end(&outcome);
	}
	h->generation = p->generation + 1;
	h->number = ++p->descriptions;
	return EK_OK;
}

EK_EXPORT int64_t ek_halo_copies(const ek_halo *h, const int64_t **items)
{
	*items = h->items;
	return h->count;
}

EK_EXPORT int64_t ek_halo_index(const ek_halo *h, int64_t item)
{
	int64_t first, count, low = 0, high = h->count;
	ek_partition_range(h->partition, &first, &count);
	if (item >= first && item < first + count)
		return item - first;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (h->items[middle] < item)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->count && h->items[low] == item ? count + low : -1;
}

/* ---- exchanging ----------------------------------------------------------- */

static bool room_for(char **buffer, size_t *size, int64_t bytes, struct ek_outcome *outcome)
{
	if (*buffer && (size_t)bytes <= *size)
		return true;
	free(*buffer);
	*buffer = malloc((size_t)bytes + 1);
	*size = *buffer ? (size_t)bytes : 0;
	if (!*buffer)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %lld bytes of items of a halo", (long long)bytes);
	return *buffer != 0;
}

static int64_t given_count(const ek_halo *h)
{
	return h->outs ? h->out[h->outs - 1].at + h->out[h->outs - 1].count : 0;
}

/* Begins all messages with `each` bytes an item, which lie in a row on both sides. */
static void begin(ek_halo *h, const void *given, void *copies, size_t each)
{
	for (int i = 0; i < h->ins; i++)
		ek_messages_receive(&h->messages, h->tenant.tag, h->in[i].peer, (char *)copies + (size_t)h->in[i].at * each,
		                    h->in[i].count * (int64_t)each);
	for (int i = 0; i < h->outs; i++)
		ek_messages_send(&h->messages, h->tenant.tag, h->out[i].peer, (const char *)given + (size_t)h->out[i].at * each,
		                 h->out[i].count * (int64_t)each);
}

/* Items of one size: those that go are packed, those that come are received in
 * their places. */
static int begin_fixed(ek_halo *h, struct ek_outcome *outcome)
{
	size_t item = ek_array_item(h->array);
	int64_t first, count, given = given_count(h);
	ek_partition_range(h->partition, &first, &count);
	expect(h, item, outcome);
	if (ek_array_described(h->array) != h->number) {
		room_for(&h->packed, &h->packed_size, given * (int64_t)item, outcome);
		ek_array_room(h->array, h->count, h->number, outcome);
		if (ek_agree(h->partition->comm, outcome, 0, 0) != EK_OK)
			return outcome->result;
	}
	char *data = ek_array_data(h->array), *to = h->packed;
	for (int64_t i = 0; i < given; i++, to += item)
		memcpy(to, data + (size_t)(h->given[i] - first) * item, item);
	begin(h, h->packed, data + (size_t)count * item, item);
	return EK_OK;
}

static void begin_lengths(ek_halo *h, struct ek_outcome *outcome)
{
	expect(h, sizeof *h->lengths, outcome);
	begin(h, h->lengths + h->count, h->lengths, sizeof *h->lengths);
}

static void begin_variable(ek_halo *h, struct ek_outcome *outcome)
{
	const int64_t *offset = ek_array_offsets(h->array);
	int64_t first, count;
	ek_partition_range(h->partition, &first, &count);
	for (int64_t i = 0; i < given_count(h); i++)
		h->lengths[h->count + i] = offset[h->given[i] - first + 1] - offset[h->given[i] - first];
	begin_lengths(h, outcome);
}

/* How many bytes a block has, by its items' lengths. */
static int64_t bytes_of(const int64_t *lengths, const struct block *block, int blocks)
{
	int64_t bytes = 0;
	for (int i = 0; i < blocks; i++)
		for (int64_t k = 0; k < block[i].count; k++)
			bytes += lengths[block[i].at + k];
	return bytes;
}

/* Now that lengths are known: the items themselves, from h->packed to `copies`. */
static void send_any_length(ek_halo *h, char *copies, struct ek_outcome *outcome)
{
	const char *from = h->packed;
	for (int i = 0; i < h->ins; i++) {
		int64_t bytes = bytes_of(h->lengths, &h->in[i], 1);
		ek_messages_receive(&h->messages, h->tenant.tag, h->in[i].peer, copies, bytes);
		copies += bytes;
	}
	for (int i = 0; i < h->outs; i++) {
		int64_t bytes = bytes_of(h->lengths + h->count, &h->out[i], 1);
		ek_messages_send(&h->messages, h->tenant.tag, h->out[i].peer, from, bytes);
		from += bytes;
	}
	ek_messages_complete(&h->messages, outcome);
}

static void expect_any_length(ek_halo *h, struct ek_outcome *outcome)
{
	h->messages.expected = 0;
	for (int i = 0; i < h->ins; i++)
		ek_messages_expect(&h->messages, bytes_of(h->lengths, &h->in[i], 1), outcome);
	for (int i = 0; i < h->outs; i++)
		ek_messages_expect(&h->messages, bytes_of(h->lengths + h->count, &h->out[i], 1), outcome);
	room_for(&h->packed, &h->packed_size, bytes_of(h->lengths + h->count, h->out, h->outs), outcome);
}

static void end_variable(ek_halo *h, struct ek_outcome *outcome)
{
	int64_t first, count;
	ek_partition_range(h->partition, &first, &count);
	expect_any_length(h, outcome);
	ek_array_room_variable(h->array, h->count, h->lengths, outcome);
	if (ek_agree(h->partition->comm, outcome, 0, 0) != EK_OK)
		return;
	const int64_t *offset = ek_array_offsets(h->array);
	char *data = ek_array_data(h->array), *to = h->packed;
	for (int64_t i = 0; i < given_count(h); to += h->lengths[h->count + i++])
		memcpy(to, data + offset[h->given[i] - first], (size_t)h->lengths[h->count + i]);
	send_any_length(h, data + offset[count], outcome);
}

/* Describes it, if the ranges are others than those it was described for. */
static int describe(ek_halo *h)
{
	return h->generation == h->partition->generation + 1 ? EK_OK : ek_halo_renew(h);
}

static int refuse(const char *why)
{
	struct ek_outcome outcome = {0};
	ek_fail(&outcome, EK_REFUSED, "%s", why);
	return ek_outcome_end(&outcome);
}

EK_EXPORT int ek_halo_exchange_begin(ek_halo *h, ek_array *array)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	if (h->array)
		return refuse("an exchange with this halo is under way: end it first");
	if (ek_array_partition(array) != h->partition)
		return refuse("the array lives on another partition than the halo");
	uint64_t began_ns = ek_ground_now();
	int result = describe(h);
	if (result == EK_OK) {
		h->array = array;
		if (!ek_array_item(array))
			begin_variable(h, &outcome);
		else if (begin_fixed(h, &outcome) != EK_OK)
			h->array = 0;
		result = ek_outcome_end(&outcome);
	}
	h->partition->waited_ns += ek_ground_now() - began_ns;
	return result;
}

EK_EXPORT int ek_halo_exchange_end(ek_halo *h)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	if (!h->array)
		return EK_OK;
	uint64_t began_ns = ek_ground_now();
	ek_messages_complete(&h->messages, &outcome);
	if (!ek_array_item(h->array))
		end_variable(h, &outcome);
	h->array = 0;
	h->partition->waited_ns += ek_ground_now() - began_ns;
	return ek_outcome_end(&outcome);
}

EK_EXPORT int ek_halo_exchange(ek_halo *h, ek_array *array)
{
	EK_FOR_CALLER;
	int result = ek_halo_exchange_begin(h, array);
	return result == EK_OK ? ek_halo_exchange_end(h) : result;
}

/* ---- items that the program packs itself ----------------------------------- */

/* How many of a block's items from place `at` on follow each other. */
static int64_t run_of(const int64_t *items, const struct block *block, int64_t at)
{
	int64_t end = at + 1;
	while (end < block->at + block->count && items[end] == items[end - 1] + 1)
		end++;
	return end - at;
}

static void failed(const char *what, long long how, int64_t first, int64_t count, struct ek_outcome *outcome)
{
	ek_fail(outcome, EK_HOOK_FAILED, "the program's %s function failed (%lld) for the items from %lld, %lld of them, of a halo", what,
	        how, (long long)first, (long long)count);
}

/* The bytes of a run are the length of its first item. */
static void measure(ek_halo *h, const struct ek_hooks *hooks, struct ek_outcome *outcome)
{
	int64_t *lengths = h->lengths + h->count;
	memset(lengths, 0, (size_t)given_count(h) * sizeof *lengths);
	for (int i = 0; i < h->outs; i++)
		for (int64_t at = h->out[i].at, n; at < h->out[i].at + h->out[i].count && outcome->result == EK_OK; at += n) {
			n = run_of(h->given, &h->out[i], at);
			int64_t bytes = hooks->size(hooks->context, h->given[at], n);
			if (bytes < 0)
				failed("size", bytes, h->given[at], n, outcome);
			else
				lengths[at] = bytes;
		}
}

static void pack(ek_halo *h, const struct ek_hooks *hooks, struct ek_outcome *outcome)
{
	const int64_t *lengths = h->lengths + h->count;
	char *to = h->packed;
	for (int i = 0; i < h->outs; i++)
		for (int64_t at = h->out[i].at, n; at < h->out[i].at + h->out[i].count && outcome->result == EK_OK; at += n) {
			n = run_of(h->given, &h->out[i], at);
			int how = hooks->pack(hooks->context, h->given[at], n, to, lengths[at]);
			if (how)
				failed("pack", how, h->given[at], n, outcome);
			to += lengths[at];
		}
}

static void unpack(ek_halo *h, const struct ek_hooks *hooks, const char *from, struct ek_outcome *outcome)
{
	for (int i = 0; i < h->ins; i++)
		for (int64_t at = h->in[i].at, n; at < h->in[i].at + h->in[i].count && outcome->result == EK_OK; at += n) {
			n = run_of(h->items, &h->in[i], at);
			int how = hooks->unpack(hooks->context, h->items[at], n, from, h->lengths[at]);
			if (how)
				failed("unpack", how, h->items[at], n, outcome);
			from += h->lengths[at];
		}
}

static void exchange_hooks(ek_halo *h, const struct ek_hooks *hooks, struct ek_outcome *outcome)
{
	char *came = 0;
	size_t size = 0;
	measure(h, hooks, outcome);
	begin_lengths(h, outcome);
	ek_messages_complete(&h->messages, outcome);
	expect_any_length(h, outcome);
	room_for(&came, &size, bytes_of(h->lengths, h->in, h->ins), outcome);
	if (outcome->result == EK_OK)
		pack(h, hooks, outcome);
	if (ek_agree(h->partition->comm, outcome, 0, 0) == EK_OK) {
		send_any_length(h, came, outcome);
		unpack(h, hooks, came, outcome);
		ek_agree(h->partition->comm, outcome, 0, 0);
	}
	free(came);
}

EK_EXPORT int ek_halo_exchange_hooks(ek_halo *h, const struct ek_hooks *hooks)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	if (h->array)
		return refuse("an exchange with this halo is under way: end it first");
	if (!hooks || !hooks->size || !hooks->pack || !hooks->unpack)
		return refuse("hooks need the functions size, pack and unpack");
	uint64_t began_ns = ek_ground_now();
	int result = describe(h);
	if (result == EK_OK) {
		exchange_hooks(h, hooks, &outcome);
		result = ek_outcome_end(&outcome);
	}
	h->partition->waited_ns += ek_ground_now() - began_ns;
	return result;
}

/* ---- making one ------------------------------------------------------------ */

static void halo_free(struct ek_tenant *t)
{
	ek_halo *h = (ek_halo *)t;
	free(h->items);
	free(h->given);
	free(h->in);
	free(h->out);
	free(h->messages.requests);
	free(h->packed);
	free(h->lengths);
	free(h);
}

/* A tenant whose items stay: it has a number for its messages, and its end. */
EK_EXPORT int ek_halo_create(ek_partition *p, ek_needs needs, void *context, ek_halo **halo)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	*halo = 0;
	if (!ek_ground())
		return EK_INACTIVE;
	ek_halo *h = get(1, sizeof *h, &outcome);
	if (!needs)
		ek_fail(&outcome, EK_REFUSED, "a halo needs a function that names the items which it needs");
	if (h) {
		h->tenant.free = halo_free;
		h->partition = p;
		h->needs = needs;
		h->context = context;
		h->messages.comm = p->comm;
		h->in = get(p->ranks, sizeof *h->in, &outcome);
		h->out = get(p->ranks, sizeof *h->out, &outcome);
	}
	int result = ek_tenant_add(p, h ? &h->tenant : 0, &outcome, EK_TENANT_HALO);
	*halo = result == EK_OK ? h : 0;
	p->waits = p->waits || result == EK_OK;
	return result;
}
