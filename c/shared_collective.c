/* shared_collective.c - UPC's collectives over shared arrays. Who gets something reads
 * it from the others' parts, while they do the same, so that no thread does the work
 * of another.
 */
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "shared.h"

static struct world *world_of(const struct ek_upc_array *a)
{
	return (struct world *)a->world;
}

/* ---- moving the threads' parts --------------------------------------------------- */

struct move {
	enum call call;
	const char *name;
	struct ek_upc_array *dst;
	int64_t i;
	struct ek_upc_array *src;
	int64_t j;
	struct ek_upc_array *perm;
	int64_t n;
	int flags;
	struct ek_upc_place to, from; /* of elements i and j */
};

/* Whether a thread's part has n elements from a local place on. */
static int part_has(const struct ek_upc_array *a, int64_t thread, int64_t place, int64_t n)
{
	if (thread < 0 || thread >= a->layout.threads)
		return ek_upc_refuse(EK_UPC_RANGE, "there is no thread %lld: stay within 0 to %lld", (long long)thread, (long long)a->layout.threads - 1);
	int64_t part = ek_upc_part(a, (uint32_t)thread);
	if (n < 0 || n > part - place)
		return ek_upc_refuse(EK_UPC_RANGE, "it takes %lld elements of thread %lld from place %lld of its part on, which has %lld: "
		                     "take %lld at most", (long long)n, (long long)thread, (long long)place, (long long)part,
		                     (long long)(part > place ? part - place : 0));
	return EK_OK;
}

static int has_part(const char *name, const struct ek_upc_array *a, int64_t thread, int64_t place, int64_t n)
{
	return ek_upc_of(name, a->handle, part_has(a, thread, place, n));
}

/* Where an element is; of an array without elements, where the first would be. */
static int find(struct ek_upc_array *a, int64_t i, struct ek_upc_place *at)
{
	TRY(ek_upc_has(a, i, a->layout.elements > 0));
	*at = ek_upc_locate(&a->layout, i);
	at->thread += a->first;
	return EK_OK;
}

/* n for each thread; what can't be said is more than any part has. */
static int64_t for_all(const struct world *w, int64_t n)
{
	int64_t all;
	return __builtin_mul_overflow(n, (int64_t)w->open.threads, &all) ? INT64_MAX : all;
}

/* What all collectives ask of their arguments. */
static int arguments_fit(struct ek_upc_array *dst, struct ek_upc_array *src, int flags)
{
	const int in = flags & 3, out = flags >> 2;
	if (in == 3 || out < 0 || out > 2)
		return ek_upc_refuse(EK_UPC_OPERATION, "there are no flags %d: give one of EK_UPC_IN_ and one of EK_UPC_OUT_", flags);
	TRY(ek_upc_of("src", src->handle, ek_upc_alive(src)));
	TRY(ek_upc_of("dst", dst->handle, ek_upc_alive(dst)));
	if (src->layout.size != dst->layout.size || src->world != dst->world)
		return ek_upc_refuse(EK_UPC_TYPE, "the arrays have elements of %lld and %lld bytes", (long long)dst->layout.size,
		                     (long long)src->layout.size);
	return EK_OK;
}

static int fits(struct world *w, struct move *m)
{
	const int64_t me = w->open.thread, n = m->n, all = for_all(w, n);
	const bool whole_source = m->call == SCATTER || m->call == EXCHANGE;
	const bool whole_target = m->call == GATHER || m->call == GATHER_ALL || m->call == EXCHANGE;
	const bool source_at_root = m->call == BROADCAST || m->call == SCATTER, target_at_root = m->call == GATHER;
	TRY(arguments_fit(m->dst, m->src, m->flags));
	TRY(ek_upc_of("src", m->src->handle, find(m->src, m->j, &m->from)));
	TRY(ek_upc_of("dst", m->dst->handle, find(m->dst, m->i, &m->to)));
	TRY(has_part("src", m->src, source_at_root ? m->from.thread : me, m->from.local, whole_source ? all : n));
	TRY(has_part("dst", m->dst, target_at_root ? m->to.thread : me, m->to.local, whole_target ? all : n));
	if (!m->perm)
		return EK_OK;
	int result = ek_upc_has(m->perm, 0, w->open.threads);
	if (result == EK_OK && m->perm->layout.size != sizeof(int32_t))
		result = ek_upc_refuse(EK_UPC_TYPE, "the permutation's elements are no int32_t");
	return ek_upc_of("perm", m->perm->handle, result);
}

static struct ek_upc_place part_of(int64_t thread, int64_t local)
{
	return (struct ek_upc_place){thread, local};
}

static char *local(const struct ek_upc_array *a, int64_t i)
{
	return (char *)a->local + i * a->layout.size;
}

static int carry_out(struct world *w, const struct move *m)
{
	const int64_t me = w->open.thread, n = m->n, threads = w->open.threads;
	const int64_t to = m->to.local, from = m->from.local;
	int32_t receiver;
	if (n == 0)
		return EK_OK;
	switch (m->call) {
	case BROADCAST:
		return ek_upc_get_run(m->src, m->from, local(m->dst, to), n);
	case SCATTER:
		return ek_upc_get_run(m->src, part_of(m->from.thread, from + me * n), local(m->dst, to), n);
	case GATHER:
		return ek_upc_put_run(m->dst, part_of(m->to.thread, to + me * n), local(m->src, from), n);
	case PERMUTE:
		TRY(ek_upc_get(m->perm, me, &receiver));
		TRY(has_part("dst", m->dst, receiver, to, n));
		return ek_upc_put_run(m->dst, part_of(receiver, to), local(m->src, from), n);
	default: /* from all, beginning behind this thread, so that not all read of one at once */
		for (int64_t i = 1; i <= threads; i++) {
			int64_t t = (me + i) % threads;
			TRY(ek_upc_get_run(m->src, part_of(t, m->call == EXCHANGE ? from + me * n : from), local(m->dst, to + t * n), n));
		}
		return EK_OK;
	}
}

static int move(struct world *w, struct move *m)
{
	const uint64_t numbers[] = {m->dst->handle, m->src->handle, m->perm ? m->perm->handle : 0,
	                            (uint64_t)m->i, (uint64_t)m->j, (uint64_t)m->n, (uint64_t)m->flags};
	TRY(ek_upc_usable(w));
	int result = fits(w, m);
	bool meets = !(m->flags & EK_UPC_IN_NOSYNC) || result == EK_UPC_OPERATION;
	if (meets)
		TRY(ek_upc_agree(w, m->call, numbers, 7, result));
	if (result == EK_OK)
		result = carry_out(w, m);
	return m->flags & EK_UPC_OUT_NOSYNC ? result : ek_upc_agree(w, DONE, 0, 0, result);
}

static int moved(struct move *m, struct ek_caller by)
{
	struct world *w = world_of(m->dst);
	const bool meets = (m->flags & (EK_UPC_IN_NOSYNC | EK_UPC_OUT_NOSYNC)) != (EK_UPC_IN_NOSYNC | EK_UPC_OUT_NOSYNC);
	EK_OWN(by, meets ? ek_upc_comm(w) : 0, MPI_PROC_NULL);
	return ek_upc_told(w, m->name, m->dst->handle, move(w, m));
}

EK_EXPORT int ek_upc_all_broadcast(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){BROADCAST, "broadcast into", dst, i, src, j, 0, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_broadcast));
}

EK_EXPORT int ek_upc_all_scatter(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){SCATTER, "scatter into", dst, i, src, j, 0, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_scatter));
}

EK_EXPORT int ek_upc_all_gather(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){GATHER, "gather into", dst, i, src, j, 0, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_gather));
}

EK_EXPORT int ek_upc_all_gather_all(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){GATHER_ALL, "gather all into", dst, i, src, j, 0, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_gather_all));
}

EK_EXPORT int ek_upc_all_exchange(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){EXCHANGE, "exchange into", dst, i, src, j, 0, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_exchange));
}

EK_EXPORT int ek_upc_all_permute(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, struct ek_upc_array *perm,
                                 int64_t n, int flags)
{
	EK_FOR_CALLER;
	return moved(&(struct move){PERMUTE, "permute into", dst, i, src, j, perm, n, flags, {0}, {0}}, EK_CALLER(ek_upc_all_permute));
}

/* ---- operations --------------------------------------------------------------------- */

/* *a becomes *a op values[0] op values[1]... */
typedef void fold(void *a, const void *values, int64_t n);

#define FOLD(type, c, op, result)                                           \
	static void fold_##type##_##op(void *into, const void *values, int64_t n) \
	{                                                                   \
		const c *v = values;                                        \
		c a = *(c *)into;                                           \
		for (int64_t i = 0; i < n; i++) {                           \
			c b = v[i];                                         \
			a = (c)(result);                                    \
		}                                                           \
		*(c *)into = a;                                             \
	}
#define FOLDS_OF_ALL(type, c)         \
	FOLD(type, c, LOGAND, a && b) \
	FOLD(type, c, LOGOR, a || b)  \
	FOLD(type, c, MIN, b < a ? b : a) \
	FOLD(type, c, MAX, b > a ? b : a)
#define FOLDS_OF_INTEGERS(type, c) /* which overflow as unsigned ones do */ \
	FOLDS_OF_ALL(type, c)                                              \
	FOLD(type, c, ADD, (uint64_t)a + (uint64_t)b)                      \
	FOLD(type, c, MULT, (uint64_t)a * (uint64_t)b)                     \
	FOLD(type, c, AND, a & b)                                          \
	FOLD(type, c, OR, a | b)                                           \
	FOLD(type, c, XOR, a ^ b)
#define FOLDS_OF_REALS(type, c)   \
	FOLDS_OF_ALL(type, c)     \
	FOLD(type, c, ADD, a + b) \
	FOLD(type, c, MULT, a * b)
FOLDS_OF_INTEGERS(INT8, int8_t)
FOLDS_OF_INTEGERS(UINT8, uint8_t)
FOLDS_OF_INTEGERS(INT16, int16_t)
FOLDS_OF_INTEGERS(UINT16, uint16_t)
FOLDS_OF_INTEGERS(INT32, int32_t)
FOLDS_OF_INTEGERS(UINT32, uint32_t)
FOLDS_OF_INTEGERS(INT64, int64_t)
FOLDS_OF_INTEGERS(UINT64, uint64_t)
FOLDS_OF_REALS(FLOAT, float)
FOLDS_OF_REALS(DOUBLE, double)

#define ROW_OF_ALL(type) [EK_UPC_ADD] = fold_##type##_ADD, [EK_UPC_MULT] = fold_##type##_MULT, [EK_UPC_LOGAND] = fold_##type##_LOGAND, \
	[EK_UPC_LOGOR] = fold_##type##_LOGOR, [EK_UPC_MIN] = fold_##type##_MIN, [EK_UPC_MAX] = fold_##type##_MAX
#define ROW_OF_INTEGERS(type) [EK_UPC_##type] = {ROW_OF_ALL(type), [EK_UPC_AND] = fold_##type##_AND, [EK_UPC_OR] = fold_##type##_OR, \
	[EK_UPC_XOR] = fold_##type##_XOR}
static fold *const folds[EK_UPC_DOUBLE + 1][EK_UPC_MAX + 1] = {
	ROW_OF_INTEGERS(INT8), ROW_OF_INTEGERS(UINT8), ROW_OF_INTEGERS(INT16), ROW_OF_INTEGERS(UINT16), ROW_OF_INTEGERS(INT32),
	ROW_OF_INTEGERS(UINT32), ROW_OF_INTEGERS(INT64), ROW_OF_INTEGERS(UINT64),
	[EK_UPC_FLOAT] = {ROW_OF_ALL(FLOAT)}, [EK_UPC_DOUBLE] = {ROW_OF_ALL(DOUBLE)},
};
static const int64_t sizes[] = {
	[EK_UPC_INT8] = 1, [EK_UPC_UINT8] = 1, [EK_UPC_INT16] = 2, [EK_UPC_UINT16] = 2, [EK_UPC_INT32] = 4, [EK_UPC_UINT32] = 4,
	[EK_UPC_INT64] = 8, [EK_UPC_UINT64] = 8, [EK_UPC_FLOAT] = 4, [EK_UPC_DOUBLE] = 8,
};

/* Of a program's own function, or of a type. */
struct operation {
	ek_upc_function *function;
	enum ek_upc_type type;
	enum ek_upc_op op;
	int64_t size; /* of an element */
};

static void apply(const struct operation *o, void *a, const void *values, int64_t n)
{
	if (!o->function)
		folds[o->type][o->op](a, values, n);
	for (int64_t i = 0; o->function && i < n; i++)
		o->function(a, (const char *)values + i * o->size);
}

static int can_be(const struct operation *o)
{
	if (o->function)
		return EK_OK;
	if (o->type < EK_UPC_INT8 || o->type > EK_UPC_DOUBLE || o->op < EK_UPC_ADD || o->op > EK_UPC_MAX || !folds[o->type][o->op])
		return ek_upc_refuse(EK_UPC_OPERATION, "there is no operation %d on elements of type %d", (int)o->op, (int)o->type);
	if (sizes[o->type] != o->size)
		return ek_upc_refuse(EK_UPC_TYPE, "the arrays' elements have %lld bytes, not %lld as that type", (long long)o->size,
		                     (long long)sizes[o->type]);
	return EK_OK;
}

/* ---- reductions ------------------------------------------------------------------------ */

/* What a stretch of elements comes to; the value follows. */
struct total {
	uint64_t any; /* 0: of no elements, there is no value */
	char value[];
};

static int64_t total_bytes(const struct operation *o)
{
	return (int64_t)sizeof(struct total) + (o->size + 7) / 8 * 8;
}

static void add(const struct operation *o, struct total *t, const void *values, int64_t n)
{
	if (n > 0 && !t->any) {
		memcpy(t->value, values, (size_t)o->size);
		t->any = 1;
		values = (const char *)values + o->size;
		n--;
	}
	if (n > 0)
		apply(o, t->value, values, n);
}

static struct total *number(void *totals, const struct operation *o, int64_t i)
{
	return (struct total *)(void *)((char *)totals + i * total_bytes(o));
}

/* Elements i to before i + n of src, into elements of dst from `at` on. */
struct reduction {
	enum call call;
	struct ek_upc_array *dst;
	int64_t at;
	struct ek_upc_array *src;
	int64_t i, n;
	struct operation o;
	int flags;
	struct ek_upc_array totals; /* of each thread, or of each block */
	int64_t block, first;       /* elements of a block; the number of the first block that there is something of */
	int64_t begin, end;         /* the calling thread's elements, by their local places */
	void *all;                  /* a copy of the totals */
};

/* A prefix goes to the thread that the element comes from, and to the same place of a block. */
static int same_affinity(const struct reduction *r)
{
	const struct ek_upc_layout *to = &r->dst->layout, *from = &r->src->layout;
	if (to->block != from->block || r->dst->first != r->src->first)
		return ek_upc_refuse(EK_UPC_LAYOUT, "the layouts differ: blocks of %lld and %lld elements, from threads %u and %u on",
		                     (long long)to->block, (long long)from->block, r->dst->first, r->src->first);
	if (r->n > 0 && (ek_upc_phase(to, r->at) != ek_upc_phase(from, r->i) ||
	                 ek_upc_threadof_element(r->dst, r->at) != ek_upc_threadof_element(r->src, r->i)))
		return ek_upc_refuse(EK_UPC_LAYOUT, "element %lld of dst and element %lld of src differ in thread or phase",
		                     (long long)r->at, (long long)r->i);
	return EK_OK;
}

static int possible(const struct reduction *r)
{
	TRY(arguments_fit(r->dst, r->src, r->flags));
	TRY(can_be(&r->o));
	TRY(ek_upc_of("src", r->src->handle, ek_upc_has(r->src, r->i, r->n)));
	TRY(ek_upc_of("dst", r->dst->handle, ek_upc_has(r->dst, r->at, r->call == PREFIX_REDUCE ? r->n : 1)));
	return r->call == PREFIX_REDUCE ? same_affinity(r) : EK_OK;
}

/* How many of the calling thread's elements come before element i. */
static int64_t own_before(const struct ek_upc_array *a, int64_t i)
{
	struct ek_upc_layout before = a->layout;
	before.elements = i;
	return ek_upc_local_elements(&before, (int64_t)a->world->thread - a->first);
}

/* The number of the calling thread's block at a local place, among those that are reduced. */
static int64_t block_number(const struct reduction *r, int64_t at)
{
	const struct ek_upc_array *a = r->src;
	return ek_upc_element(&a->layout, part_of((int64_t)a->world->thread - a->first, at)) / r->block - r->first;
}

static int64_t end_of_block(const struct reduction *r, int64_t at)
{
	int64_t end = (at / r->block + 1) * r->block;
	return end < r->end ? end : r->end;
}

/* What the thread's elements come to. */
static int fold_own(const struct reduction *r)
{
	const struct ek_upc_array *src = r->src;
	const int64_t bytes = total_bytes(&r->o);
	struct total *t = malloc((size_t)bytes);
	int result = t ? EK_OK : ek_upc_refuse(EK_NO_MEMORY, "no memory for an element");
	if (result == EK_OK && r->call == REDUCE) {
		t->any = 0;
		add(&r->o, t, local(src, r->begin), r->end - r->begin);
		memcpy(r->totals.local, t, (size_t)bytes);
	}
	for (int64_t at = r->begin, end; result == EK_OK && r->call != REDUCE && at < r->end; at = end) {
		end = end_of_block(r, at);
		t->any = 0;
		add(&r->o, t, local(src, at), end - at);
		result = ek_upc_memput((struct ek_upc_array *)&r->totals, block_number(r, at), t, 1);
	}
	free(t);
	return result;
}

/* Everything into one element, by its thread. */
static int end_reduce(struct world *w, struct reduction *r)
{
	struct total *first = number(r->all, &r->o, 0);
	if (r->n == 0 || ek_upc_threadof_element(r->dst, r->at) != w->open.thread)
		return EK_OK;
	TRY(ek_upc_memget(r->all, &r->totals, 0, r->totals.layout.elements));
	for (int64_t i = 1; i < r->totals.layout.elements; i++)
		add(&r->o, first, number(r->all, &r->o, i)->value, (int64_t)number(r->all, &r->o, i)->any);
	return ek_upc_memput(r->dst, r->at, first->value, 1);
}

/* Each thread its own blocks, from what comes before them. */
static int end_prefix(struct reduction *r)
{
	struct total *before = number(r->all, &r->o, r->totals.layout.elements);
	const int64_t apart = ek_upc_locate(&r->dst->layout, r->at).local - ek_upc_locate(&r->src->layout, r->i).local;
	int64_t next = 0;
	before->any = 0;
	TRY(ek_upc_memget(r->all, &r->totals, 0, r->totals.layout.elements));
	for (int64_t at = r->begin, end; at < r->end; at = end) {
		end = end_of_block(r, at);
		for (; next < block_number(r, at); next++)
			add(&r->o, before, number(r->all, &r->o, next)->value, (int64_t)number(r->all, &r->o, next)->any);
		for (int64_t i = at; i < end; i++) {
			add(&r->o, before, local(r->src, i), 1);
			memcpy(local(r->dst, i + apart), before->value, (size_t)r->o.size);
		}
		next++;
	}
	return EK_OK;
}

static int reduce(struct world *w, struct reduction *r)
{
	const uint64_t numbers[] = {r->dst->handle, r->src->handle, (uint64_t)r->at, (uint64_t)r->i, (uint64_t)r->n,
	                            (uint64_t)r->o.type, (uint64_t)r->o.op, (uint64_t)r->flags};
	TRY(ek_upc_usable(w));
	TRY(ek_upc_agree(w, r->call, numbers, 8, possible(r)));
	const struct ek_upc_layout *l = &r->src->layout;
	r->block = (int64_t)l->by_block.value;
	r->first = r->i / r->block;
	r->begin = own_before(r->src, r->i);
	r->end = own_before(r->src, r->i + r->n);
	int64_t count = r->call == REDUCE ? l->threads : r->n > 0 ? (r->i + r->n - 1) / r->block - r->first + 1 : 1;
	TRY(ek_upc_all_alloc(&w->open, 1, count, total_bytes(&r->o), &r->totals));
	r->all = malloc((size_t)((count + 1) * total_bytes(&r->o)));
	int result = r->all ? fold_own(r) : ek_upc_refuse(EK_NO_MEMORY, "no memory for %lld elements", (long long)count);
	result = ek_upc_agree(w, DONE, 0, 0, result);
	if (result == EK_OK)
		result = ek_upc_agree(w, DONE, 0, 0, r->call == PREFIX_REDUCE ? end_prefix(r) : end_reduce(w, r));
	free(r->all);
	int freed = ek_upc_all_free(&r->totals);
	return result != EK_OK ? result : freed;
}

static int reduced(struct reduction r, struct ek_caller by)
{
	static const char *const names[] = {"reduction into", "reduction in order into", "prefix reduction into"};
	struct world *w = world_of(r.dst);
	EK_OWN(by, ek_upc_comm(w), MPI_PROC_NULL);
	r.o.size = r.src->layout.size;
	return ek_upc_told(w, names[r.call - REDUCE], r.dst->handle, reduce(w, &r));
}

EK_EXPORT int ek_upc_all_reduce(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                                enum ek_upc_type type, enum ek_upc_op op, int flags)
{
	EK_FOR_CALLER;
	return reduced((struct reduction){.call = REDUCE, .dst = dst, .at = at, .src = src, .i = i, .n = n, .o = {.type = type, .op = op}, .flags = flags},
	               EK_CALLER(ek_upc_all_reduce));
}

EK_EXPORT int ek_upc_all_reduce_func(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                                     ek_upc_function *function, int flags)
{
	EK_FOR_CALLER;
	return reduced((struct reduction){.call = REDUCE, .dst = dst, .at = at, .src = src, .i = i, .n = n, .o = {.function = function}, .flags = flags},
	               EK_CALLER(ek_upc_all_reduce_func));
}

EK_EXPORT int ek_upc_all_reduce_noncomm_func(struct ek_upc_array *dst, int64_t at, struct ek_upc_array *src, int64_t i, int64_t n,
                                             ek_upc_function *function, int flags)
{
	EK_FOR_CALLER;
	return reduced((struct reduction){.call = REDUCE_NONCOMM, .dst = dst, .at = at, .src = src, .i = i, .n = n, .o = {.function = function}, .flags = flags},
	               EK_CALLER(ek_upc_all_reduce_noncomm_func));
}

EK_EXPORT int ek_upc_all_prefix_reduce(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n,
                                       enum ek_upc_type type, enum ek_upc_op op, int flags)
{
	EK_FOR_CALLER;
	return reduced((struct reduction){.call = PREFIX_REDUCE, .dst = dst, .at = i, .src = src, .i = j, .n = n, .o = {.type = type, .op = op}, .flags = flags},
	               EK_CALLER(ek_upc_all_prefix_reduce));
}

EK_EXPORT int ek_upc_all_prefix_reduce_func(struct ek_upc_array *dst, int64_t i, struct ek_upc_array *src, int64_t j, int64_t n,
                                            ek_upc_function *function, int flags)
{
	EK_FOR_CALLER;
	return reduced((struct reduction){.call = PREFIX_REDUCE, .dst = dst, .at = i, .src = src, .i = j, .n = n, .o = {.function = function}, .flags = flags},
	               EK_CALLER(ek_upc_all_prefix_reduce_func));
}
