#define _GNU_SOURCE
#include "convertor.h"

#include <stdio.h>
#include <string.h>

#include "datatype.h"
#include "record.h"

typedef int32_t move_function(struct ek_convertor *, struct iovec *, uint32_t *, size_t *);
typedef int32_t position_function(struct ek_convertor *, size_t *);

EK_EXPORT move_function opal_convertor_pack, opal_convertor_unpack;
EK_EXPORT position_function opal_convertor_set_position_nocheck;

/* Whether there may be something to do but to pass on. */
static bool active;

/* ---- Open MPI's own ------------------------------------------------------ */

static struct {
	move_function *pack, *unpack;
	position_function *set_position;
} next;

/* Open MPI may call these before the program calls MPI. */
#define NEXT(which, symbol)                                                                                \
	(EK_LIKELY(EK_LOAD(next.which) != 0) ? EK_LOAD(next.which)                                         \
	                                     : (__typeof__(next.which))ek_next_late(symbol, (void **)&next.which))

/* ---- the proof ----------------------------------------------------------- */

enum { ODD = 18 }; /* bytes in the first of the two parts that a watched call is done in */

static struct {
	bool armed;
	struct ek_convertor before, middle, positioned, after;
	uint32_t iovecs;
	size_t lengths[2], maxima[2];
	int32_t results[2];
} watch;

/* Has Open MPI do in two calls what it was to do in one, and notes what a
 * convertor looks like before, between and after; in between it is moved to
 * another position and back. */
static int32_t watched(move_function *move, struct ek_convertor *c, struct iovec *iov, uint32_t *iovecs, size_t *maximum)
{
	struct iovec part = {iov->iov_base, ODD};
	size_t position = 4;
	watch.armed = false;
	watch.before = *c;
	watch.iovecs = 1;
	watch.results[0] = move(c, &part, &watch.iovecs, &watch.maxima[0]);
	watch.lengths[0] = part.iov_len;
	watch.middle = *c;
	NEXT(set_position, "opal_convertor_set_position_nocheck")(c, &position);
	watch.positioned = *c;
	position = watch.maxima[0];
	NEXT(set_position, "opal_convertor_set_position_nocheck")(c, &position);
	part = (struct iovec){(char *)iov->iov_base + position, iov->iov_len - position};
	watch.results[1] = move(c, &part, &watch.iovecs, &watch.maxima[1]);
	watch.lengths[1] = part.iov_len;
	watch.after = *c;
	iov->iov_len = *maximum = position + part.iov_len;
	*iovecs = watch.iovecs;
	return watch.results[1];
}

/* A vector of 3 blocks of 2 integers, every 5 integers; 2 of it. */
enum { BLOCKS = 3, LENGTH = 2, STEP = 5, COUNT = 2, EXTENT = 12, SIZE = COUNT * BLOCKS * LENGTH * 4 };

static bool looks_right(const void *type, const void *buffer, uint32_t direction, size_t first)
{
	const uint32_t looked_at = EK_CONVERTOR_RECEIVES | EK_CONVERTOR_SENDS | EK_CONVERTOR_HOMOGENEOUS | EK_CONVERTOR_NO_OP |
	                           EK_CONVERTOR_COMPLETED | EK_CONVERTOR_SPECIAL;
	const uint32_t flags = direction | EK_CONVERTOR_HOMOGENEOUS;
	const struct ek_convertor *b = &watch.before, *m = &watch.middle, *p = &watch.positioned, *a = &watch.after;
	return !watch.armed && b->type == type && b->count == COUNT && b->buffer == buffer && b->local_size == SIZE &&
	       b->remote_size == SIZE && b->converted == 0 && (b->flags & looked_at) == flags &&
	       m->converted == first && (m->flags & looked_at) == flags &&
	       p->converted == 4 && (p->flags & looked_at) == flags &&
	       a->converted == SIZE && (a->flags & looked_at) == (flags | EK_CONVERTOR_COMPLETED) &&
	       watch.iovecs == 1 && watch.results[0] == 0 &&
	       watch.results[1] == 1 && watch.lengths[0] == first && watch.maxima[0] == first &&
	       watch.lengths[1] == SIZE - first && watch.maxima[1] == SIZE - first;
}

static bool packs_and_unpacks(MPI_Datatype type, bool watching)
{
	int32_t buffer[COUNT * EXTENT], back[COUNT * EXTENT], packed[SIZE / 4];
	int position = 0;
	bool right;
	for (int i = 0; i < COUNT * EXTENT; i++) {
		buffer[i] = i * 0x01010101;
		back[i] = -1;
	}
	watch.armed = watching;
	right = ek_mpi.Pack(buffer, COUNT, type, packed, SIZE, &position, ek_mpi.comm_self) == MPI_SUCCESS && position == SIZE;
	/* Open MPI's send side stops before a basic type that has no room. */
	if (watching)
		right = right && looks_right(type, buffer, EK_CONVERTOR_SENDS, ODD / 4 * 4);
	position = 0;
	watch.armed = watching;
	right = right && ek_mpi.Unpack(packed, SIZE, &position, back, COUNT, type, ek_mpi.comm_self) == MPI_SUCCESS;
	if (watching)
		right = right && looks_right(type, back, EK_CONVERTOR_RECEIVES, ODD);
	watch.armed = false;
	for (int i = 0, next_packed = 0; i < COUNT * EXTENT; i++) {
		bool data = i % EXTENT % STEP < LENGTH;
		right = right && back[i] == (data ? buffer[i] : -1) && (!data || packed[next_packed++] == buffer[i]);
	}
	return right;
}

bool ek_convertor_proven(void)
{
	MPI_Datatype type = ek_mpi.type_null;
	(void)NEXT(pack, "opal_convertor_pack");
	if (!next.pack)
		return false;
	EK_STORE(active, true);
	bool proven = ek_mpi.Type_vector(BLOCKS, LENGTH, STEP, ek_mpi.type_int, &type) == MPI_SUCCESS &&
	              ek_mpi.Type_commit(&type) == MPI_SUCCESS && packs_and_unpacks(type, true);
	if (proven) {
		ek_datatype_compile(type);
		proven = ek_datatype_find(type) && packs_and_unpacks(type, false);
	}
	const void *gone = type;
	if (type != ek_mpi.type_null)
		ek_mpi.Type_free(&type);
	proven = proven && !ek_datatype_find(gone);
	EK_STORE(active, proven);
	if (!proven && ek.world_rank == 0)
		fputs("evenkeel: this Open MPI copies data in a way that is not known here; "
		      "derived datatypes are left to it\n", stderr);
	return proven;
}

/* ---- ours ---------------------------------------------------------------- */

/* The program to be executed for a convertor, or null. Open MPI may have begun, before
 * the program was there: all bytes before the position are in their places. */
static inline const struct ek_datatype *program_of(const struct ek_convertor *c)
{
	const uint32_t looked_at = EK_CONVERTOR_HOMOGENEOUS | EK_CONVERTOR_NO_OP | EK_CONVERTOR_COMPLETED | EK_CONVERTOR_SPECIAL;
	return (c->flags & looked_at) == EK_CONVERTOR_HOMOGENEOUS ? ek_datatype_find(c->type) : 0;
}

/* As much as the iovecs take, or hold, and the convertor still awaits. Results
 * and arguments are as Open MPI leaves them: 1 when all is done; the lengths
 * that were used, their number and their sum. */
static inline int32_t move(const struct ek_datatype *program, struct ek_convertor *c, struct iovec *iov, uint32_t *iovecs,
                           size_t *sum, bool unpack)
{
	size_t begun = c->converted, at = begun;
	for (uint32_t i = 0; i < *iovecs; i++) {
		size_t length = iov[i].iov_len;
		if (length >= c->local_size - at) {
			iov[i].iov_len = length = c->local_size - at;
			*iovecs = i + 1;
		}
		if (unpack)
			ek_dgsp_unpack(&program->run, c->buffer, iov[i].iov_base, (int64_t)at, (int64_t)(at + length));
		else
			ek_dgsp_pack(&program->run, c->buffer, iov[i].iov_base, (int64_t)at, (int64_t)(at + length));
		at += length;
	}
	c->converted = at;
	*sum = at - begun;
	if (EK_LIKELY(EK_LOAD(ek.mode) == EK_RECORDING)) {
		ek_count(unpack ? EK_FAST_UNPACKED : EK_FAST_PACKED, 1);
		ek_count(unpack ? EK_FAST_UNPACKED_BYTES : EK_FAST_PACKED_BYTES, at - begun);
	}
	if (at < c->local_size)
		return 0;
	c->flags |= EK_CONVERTOR_COMPLETED;
	return 1;
}

int32_t opal_convertor_pack(struct ek_convertor *c, struct iovec *iov, uint32_t *iovecs, size_t *sum)
{
	const struct ek_datatype *program;
	if (EK_UNLIKELY(!EK_LOAD(active)))
		return NEXT(pack, "opal_convertor_pack")(c, iov, iovecs, sum);
	if (EK_UNLIKELY(watch.armed))
		return watched(NEXT(pack, "opal_convertor_pack"), c, iov, iovecs, sum);
	if (!(program = program_of(c)))
		return NEXT(pack, "opal_convertor_pack")(c, iov, iovecs, sum);
	return move(program, c, iov, iovecs, sum, false);
}

int32_t opal_convertor_unpack(struct ek_convertor *c, struct iovec *iov, uint32_t *iovecs, size_t *sum)
{
	const struct ek_datatype *program;
	if (EK_UNLIKELY(!EK_LOAD(active)))
		return NEXT(unpack, "opal_convertor_unpack")(c, iov, iovecs, sum);
	if (EK_UNLIKELY(watch.armed))
		return watched(NEXT(unpack, "opal_convertor_unpack"), c, iov, iovecs, sum);
	if (!(program = program_of(c)))
		return NEXT(unpack, "opal_convertor_unpack")(c, iov, iovecs, sum);
	return move(program, c, iov, iovecs, sum, true);
}

/* Open MPI keeps a stack for each convertor, in step with its position, which
 * ours does not need. */
int32_t opal_convertor_set_position_nocheck(struct ek_convertor *c, size_t *position)
{
	if (EK_LOAD(active) && !watch.armed && program_of(c)) {
		c->converted = *position;
		return 0;
	}
	return NEXT(set_position, "opal_convertor_set_position_nocheck")(c, position);
}
