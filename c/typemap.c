#include "typemap.h"

#include <stdlib.h>
#include <string.h>

static const struct ek_dgsp_part nothing;

/* What MPI_Type_get_contents tells. */
struct contents {
	int combiner, integers, addresses, types;
	int *i;
	MPI_Aint *a;
	MPI_Datatype *d;
};

static struct ek_dgsp_part part_of(struct ek_dgsp_memory *m, MPI_Datatype type, int depth);

static bool predefined(MPI_Datatype type)
{
	int i, a, d, combiner;
	return ek_mpi.Type_get_envelope(type, &i, &a, &d, &combiner) != MPI_SUCCESS || combiner == MPI_COMBINER_NAMED ||
	       combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
	       combiner == MPI_COMBINER_F90_INTEGER;
}

static bool get_contents(struct contents *c, MPI_Datatype type)
{
	memset(c, 0, sizeof *c);
	if (ek_mpi.Type_get_envelope(type, &c->integers, &c->addresses, &c->types, &c->combiner) != MPI_SUCCESS)
		return false;
	c->i = calloc((size_t)c->integers + 1, sizeof *c->i);
	c->a = calloc((size_t)c->addresses + 1, sizeof *c->a);
	c->d = calloc((size_t)c->types + 1, sizeof *c->d);
	if (c->i && c->a && c->d &&
	    ek_mpi.Type_get_contents(type, c->integers, c->addresses, c->types, c->i, c->a, c->d) == MPI_SUCCESS)
		return true;
	c->types = 0;
	return false;
}

/* The handles that MPI gave out are ours to free. */
static void free_contents(struct contents *c)
{
	for (int i = 0; i < c->types; i++)
		if (!predefined(c->d[i]))
			ek_mpi.Type_free(&c->d[i]);
	free(c->i);
	free(c->a);
	free(c->d);
}

static int64_t extent_of(MPI_Datatype type)
{
	MPI_Count low = 0, extent = 0;
	ek_mpi.Type_get_extent_x(type, &low, &extent);
	return extent;
}

static struct ek_dgsp_part fail(struct ek_dgsp_memory *m)
{
	m->failed = true;
	return nothing;
}

static int64_t multiply(struct ek_dgsp_memory *m, int64_t a, int64_t b)
{
	int64_t product;
	if (!__builtin_mul_overflow(a, b, &product))
		return product;
	m->failed = true;
	return 0;
}

/* ---- each way to make a type --------------------------------------------- */

/* All of MPI's own types are one block, but MPI_SHORT_INT. */
static struct ek_dgsp_part named(struct ek_dgsp_memory *m, MPI_Datatype type)
{
	MPI_Count size = 0, low = 0, extent = 0;
	ek_mpi.Type_size_x(type, &size);
	ek_mpi.Type_get_true_extent_x(type, &low, &extent);
	if (size == 0)
		return nothing;
	if (low != 0 || (extent != size && !(size == sizeof(short) + sizeof(int) && extent == 2 * sizeof(int))))
		return fail(m);
	if (extent == size)
		return ek_dgsp_block(m, size);
	int64_t at[2] = {0, sizeof(int)}, length[2] = {sizeof(short), sizeof(int)};
	return ek_dgsp_blocks(m, at, length, 2);
}

/* `count` runs of old types, run i at[i] bytes away and length[i] types long. */
static struct ek_dgsp_part runs(struct ek_dgsp_memory *m, struct ek_dgsp_part old, int64_t extent, const int64_t *at,
                                const int64_t *length, int64_t count)
{
	struct ek_dgsp_part made = nothing, *parts = 0;
	int64_t *starts = malloc(((size_t)count + 1) * 2 * sizeof *starts), *lengths = starts + count;
	int64_t n = 0;
	bool even = true;
	if (!starts)
		return fail(m);
	for (int64_t i = 0; i < count; i++) {
		if (length[i] <= 0)
			continue;
		starts[n] = at[i];
		lengths[n++] = length[i];
		even &= length[i] == lengths[0];
	}
	if (n == 0 || !old.node || m->failed) {
		/* no data */
	} else if (old.node->kind == EK_DGSP_BLOCK && (old.node->size == extent || (even && lengths[0] == 1))) {
		for (int64_t i = 0; i < n; i++) {
			starts[i] += old.at;
			lengths[i] = multiply(m, lengths[i], old.node->size);
		}
		made = ek_dgsp_blocks(m, starts, lengths, n);
	} else if (even) {
		made = ek_dgsp_index(m, ek_dgsp_loop(m, old, lengths[0], extent), starts, n);
	} else if ((parts = malloc((size_t)n * sizeof *parts))) {
		for (int64_t i = 0; i < n; i++) {
			parts[i] = ek_dgsp_loop(m, old, lengths[i], extent);
			parts[i].at += starts[i];
		}
		made = ek_dgsp_sequence(m, parts, n);
		free(parts);
	} else {
		m->failed = true;
	}
	free(starts);
	return made;
}

/* Open MPI takes a stride of -1 byte for no stride. Packed bytes are to be the
 * same with and without us: it keeps such types. */
static struct ek_dgsp_part vector(struct ek_dgsp_memory *m, struct ek_dgsp_part block, int64_t count, int64_t stride)
{
	return stride == -1 ? fail(m) : ek_dgsp_loop(m, block, count, stride);
}

/* Indexed types: blocks of one length or of their own, displacements in bytes
 * or in old types. */
static struct ek_dgsp_part indexed(struct ek_dgsp_memory *m, const struct contents *c, const int *lengths, int one_length,
                                   const int *displacements, struct ek_dgsp_part old)
{
	int64_t count = c->i[0], extent = extent_of(c->d[0]);
	int64_t *at = malloc(((size_t)count + 1) * 2 * sizeof *at), *length = at + count;
	if (!at)
		return fail(m);
	for (int64_t i = 0; i < count; i++) {
		at[i] = displacements ? multiply(m, displacements[i], extent) : c->a[i];
		length[i] = lengths ? lengths[i] : one_length;
	}
	struct ek_dgsp_part made = runs(m, old, extent, at, length, count);
	free(at);
	return made;
}

/* A member without data may move the bounds, which Open MPI forgets where the
 * rest is one block: it then takes a type with gaps for one without. It keeps
 * such types too. */
static struct ek_dgsp_part structure(struct ek_dgsp_memory *m, const struct contents *c, int64_t extent, int depth)
{
	int64_t count = c->i[0];
	bool empty_member = false;
	struct ek_dgsp_part made = nothing, *parts = calloc((size_t)count + 1, sizeof *parts);
	if (!parts)
		return fail(m);
	for (int64_t i = 0; i < count && !m->failed; i++) {
		parts[i] = ek_dgsp_loop(m, part_of(m, c->d[i], depth), c->i[1 + i], extent_of(c->d[i]));
		parts[i].at += c->a[i];
		empty_member |= !parts[i].node;
	}
	if (!m->failed)
		made = ek_dgsp_sequence(m, parts, count);
	free(parts);
	if (empty_member && made.node && made.node->kind == EK_DGSP_BLOCK && made.node->size != extent)
		return fail(m);
	return made;
}

static struct ek_dgsp_part subarray(struct ek_dgsp_memory *m, const struct contents *c, struct ek_dgsp_part part)
{
	int dimensions = c->i[0];
	const int *sizes = c->i + 1, *parts = sizes + dimensions, *starts = parts + dimensions;
	bool fortran = starts[dimensions] == MPI_ORDER_FORTRAN;
	int64_t step = extent_of(c->d[0]);
	for (int k = 0; k < dimensions && part.node; k++) { /* from the fastest dimension to the slowest */
		int i = fortran ? k : dimensions - 1 - k;
		part = ek_dgsp_loop(m, part, parts[i], step);
		part.at += multiply(m, starts[i], step);
		step = multiply(m, step, sizes[i]);
	}
	return part;
}

/* The part of one dimension of a distributed array that belongs to place `mine`
 * of `places`: runs of `block` elements, dealt out in turn. */
static struct ek_dgsp_part dealt(struct ek_dgsp_memory *m, struct ek_dgsp_part part, int64_t step, int64_t elements,
                                 int64_t block, int places, int mine)
{
	int64_t round = multiply(m, block, places), first = multiply(m, block, mine), n = 0;
	if (m->failed || block <= 0)
		return fail(m);
	int64_t count = first >= elements ? 0 : (elements - first + round - 1) / round;
	int64_t *at = malloc(((size_t)count + 1) * 2 * sizeof *at), *length = at + count;
	if (!at)
		return fail(m);
	for (int64_t i = first; i < elements; i += round, n++) {
		at[n] = multiply(m, i, step);
		length[n] = elements - i < block ? elements - i : block;
	}
	part = runs(m, part, step, at, length, n);
	free(at);
	return part;
}

static struct ek_dgsp_part distributed(struct ek_dgsp_memory *m, const struct contents *c, struct ek_dgsp_part part)
{
	int rank = c->i[1], dimensions = c->i[2];
	const int *sizes = c->i + 3, *ways = sizes + dimensions, *arguments = ways + dimensions,
	          *places = arguments + dimensions;
	bool fortran = places[dimensions] == MPI_ORDER_FORTRAN;
	int64_t step = extent_of(c->d[0]);
	int *mine = calloc((size_t)dimensions + 1, sizeof *mine);
	if (!mine)
		return fail(m);
	for (int i = dimensions - 1; i >= 0; i--) { /* ranks are laid out in C's order, whatever the array's is */
		mine[i] = rank % places[i];
		rank /= places[i];
	}
	for (int k = 0; k < dimensions && part.node; k++) {
		int i = fortran ? k : dimensions - 1 - k;
		int64_t block = arguments[i];
		if (ways[i] == MPI_DISTRIBUTE_NONE)
			part = dealt(m, part, step, sizes[i], sizes[i], 1, 0);
		else if (block == MPI_DISTRIBUTE_DFLT_DARG)
			part = dealt(m, part, step, sizes[i],
			             ways[i] == MPI_DISTRIBUTE_BLOCK ? (sizes[i] + places[i] - 1) / places[i] : 1, places[i], mine[i]);
		else
			part = dealt(m, part, step, sizes[i], block, places[i], mine[i]);
		step = multiply(m, step, sizes[i]);
	}
	free(mine);
	return part;
}

static struct ek_dgsp_part made_by(struct ek_dgsp_memory *m, const struct contents *c, int64_t whole_extent, int depth)
{
	if (c->combiner == MPI_COMBINER_STRUCT)
		return structure(m, c, whole_extent, depth);
	if (c->types != 1)
		return fail(m);
	struct ek_dgsp_part old = part_of(m, c->d[0], depth);
	int64_t extent = extent_of(c->d[0]);
	if (!old.node || m->failed)
		return nothing;
	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return old;
	case MPI_COMBINER_CONTIGUOUS:
		return ek_dgsp_loop(m, old, c->i[0], extent);
	case MPI_COMBINER_VECTOR:
		return vector(m, ek_dgsp_loop(m, old, c->i[1], extent), c->i[0], multiply(m, c->i[2], extent));
	case MPI_COMBINER_HVECTOR:
		return vector(m, ek_dgsp_loop(m, old, c->i[1], extent), c->i[0], c->a[0]);
	case MPI_COMBINER_INDEXED:
		return indexed(m, c, c->i + 1, 0, c->i + 1 + c->i[0], old);
	case MPI_COMBINER_HINDEXED:
		return indexed(m, c, c->i + 1, 0, 0, old);
	case MPI_COMBINER_INDEXED_BLOCK:
		return indexed(m, c, 0, c->i[1], c->i + 2, old);
	case MPI_COMBINER_HINDEXED_BLOCK:
		return indexed(m, c, 0, c->i[1], 0, old);
	case MPI_COMBINER_SUBARRAY:
		return subarray(m, c, old);
	case MPI_COMBINER_DARRAY:
		return distributed(m, c, old);
	}
	return fail(m);
}

static struct ek_dgsp_part part_of(struct ek_dgsp_memory *m, MPI_Datatype type, int depth)
{
	enum { DEEPEST = 64 };
	struct contents contents;
	if (m->failed || depth == DEEPEST)
		return fail(m);
	if (predefined(type))
		return named(m, type);
	struct ek_dgsp_part made = get_contents(&contents, type) ? made_by(m, &contents, extent_of(type), depth + 1) : fail(m);
	free_contents(&contents);
	return made;
}

bool ek_typemap_program(struct ek_dgsp_memory *m, MPI_Datatype type, struct ek_dgsp_run *run)
{
	MPI_Count size = 0, low = 0, extent = 0;
	struct ek_dgsp_part part = part_of(m, type, 0);
	const struct ek_dgsp *node = part.node;
	ek_mpi.Type_size_x(type, &size);
	ek_mpi.Type_get_true_extent_x(type, &low, &extent);
	bool same = node ? node->size == size && part.at + node->low == low && node->high - node->low == extent : size == 0;
	if (m->failed || !same) {
		ek_dgsp_forget(m);
		return false;
	}
	*run = (struct ek_dgsp_run){node, part.at, extent_of(type), false};
	run->any_order = node && ek_dgsp_any_order(node, run->extent);
	return true;
}
