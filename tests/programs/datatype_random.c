/* Random derived datatypes in random calls. Each type's bytes are listed here
 * independently of MPI, and what is packed, sent and received is compared with
 * that list, the bytes between the data too.
 *
 *   datatype_random SEED CASES    2 ranks, or 1 for MPI_Pack and MPI_Unpack only
 *
 * Prints the number of cases, in how many of them the data are in pieces, and a
 * checksum of what was packed (rank 0), or what went wrong and with which seed.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BLOCKS = 64, MOST_BYTES = 400000, SIDE = 1 << 19 };

struct block {
	long at, length;
};

/* A datatype and its bytes, in order. */
struct type {
	MPI_Datatype handle;
	struct block *blocks;
	long count, bytes;
	int misread; /* Open MPI is known to be wrong about it */
};

static uint64_t state, checksum; /* of all that was packed */
static long seed, number, in_pieces;
static int rank;
static const char *doing = "";

static uint32_t draw(void)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)(z >> 32);
}

static int between(int low, int high)
{
	return low + (int)(draw() % (uint32_t)(high - low + 1));
}

static int how_many;
static char made_of[4096]; /* how the datatype of this case was made, from the inside to the outside */

static void made(const char *how, ...)
{
	size_t length = strlen(made_of);
	va_list arguments;
	va_start(arguments, how);
	vsnprintf(made_of + length, sizeof made_of - length, how, arguments);
	va_end(arguments);
}

static struct block *described;
static long described_count;

static void fail(const char *what)
{
	printf("rank %d: %s after %s, seed %ld case %ld: %d of%s\n", rank, what, doing, seed, number, how_many, made_of);
	for (long i = 0; i < described_count && i < 40; i++)
		printf(" %ld+%ld", described[i].at, described[i].length);
	puts("");
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- datatypes ---------------------------------------------------------- */

static void add(struct type *t, long at, long length)
{
	t->blocks = realloc(t->blocks, (size_t)(t->count + 1) * sizeof *t->blocks);
	t->blocks[t->count++] = (struct block){at, length};
	t->bytes += length;
}

static void add_type(struct type *t, const struct type *old, long at)
{
	for (long i = 0; i < old->count; i++)
		add(t, at + old->blocks[i].at, old->blocks[i].length);
}

static void add_run(struct type *t, const struct type *old, long at, long n)
{
	MPI_Aint low, extent;
	MPI_Type_get_extent(old->handle, &low, &extent);
	for (long i = 0; i < n; i++)
		add_type(t, old, at + i * extent);
}

static long extent_of(const struct type *t)
{
	MPI_Aint low, extent;
	MPI_Type_get_extent(t->handle, &low, &extent);
	return extent;
}

static void release(struct type *t)
{
	int a, b, c, combiner;
	MPI_Type_get_envelope(t->handle, &a, &b, &c, &combiner);
	if (combiner != MPI_COMBINER_NAMED)
		MPI_Type_free(&t->handle);
	free(t->blocks);
}

static struct type named(void)
{
	struct type t = {.handle = MPI_BYTE};
	switch (between(0, 9)) {
	case 0: t.handle = MPI_BYTE; add(&t, 0, 1); break;
	case 1: t.handle = MPI_SHORT; add(&t, 0, 2); break;
	case 2: t.handle = MPI_INT; add(&t, 0, 4); break;
	case 3: t.handle = MPI_DOUBLE; add(&t, 0, 8); break;
	case 4: t.handle = MPI_LONG_DOUBLE; add(&t, 0, 16); break;
	case 5: t.handle = MPI_C_DOUBLE_COMPLEX; add(&t, 0, 16); break;
	case 6: t.handle = MPI_DOUBLE_INT; add(&t, 0, 12); break;
	case 7: t.handle = MPI_SHORT_INT; add(&t, 0, 2); add(&t, 4, 4); break;
	case 8: t.handle = MPI_2INT; add(&t, 0, 8); break;
	case 9: t.handle = MPI_FLOAT; add(&t, 0, 4); break;
	}
	made(t.count == 1 ? " %ld bytes" : " MPI_SHORT_INT", t.bytes);
	return t;
}

static int many(void)
{
	return between(0, 9) == 0 ? between(5, 60) : between(0, 4);
}

static void vector(struct type *t, const struct type *old)
{
	int n = many(), length = between(0, 4), stride = between(-6, 9);
	long step = stride * extent_of(old);
	if (between(0, 1)) {
		MPI_Type_vector(n, length, stride, old->handle, &t->handle);
	} else {
		step = between(-100, 200);
		MPI_Type_create_hvector(n, length, step, old->handle, &t->handle);
	}
	made(" vector(%d, %d, %ld)", n, length, step);
	t->misread = step == -1; /* for Open MPI, that is no stride */
	for (int i = 0; i < n; i++)
		add_run(t, old, i * step, length);
}

static void indexed(struct type *t, const struct type *old)
{
	made(" indexed");
	int n = many(), lengths[60], places[60], same = between(0, 3), at = between(-20, 20), kind = between(0, 3);
	MPI_Aint bytes[60];
	for (int i = 0; i < n; i++) {
		lengths[i] = kind % 2 ? same : between(0, 4);
		places[i] = at;
		bytes[i] = at * extent_of(old) + (kind >= 2 ? between(0, 7) : 0);
		at += between(0, 3) == 0 ? between(-10, 10) : lengths[i] + between(0, 2);
	}
	switch (kind) {
	case 0: MPI_Type_indexed(n, lengths, places, old->handle, &t->handle); break;
	case 1: MPI_Type_create_indexed_block(n, same, places, old->handle, &t->handle); break;
	case 2: MPI_Type_create_hindexed(n, lengths, bytes, old->handle, &t->handle); break;
	case 3: MPI_Type_create_hindexed_block(n, same, bytes, old->handle, &t->handle); break;
	}
	for (int i = 0; i < n; i++)
		add_run(t, old, bytes[i], lengths[i]);
}

static struct type random_type(int depth);

static void structure(struct type *t, const struct type *old, int depth)
{
	made(" struct(");
	int n = between(0, 5), lengths[5];
	MPI_Aint at[5], place = between(-64, 64);
	MPI_Datatype handles[5];
	struct type parts[5];
	for (int i = 0; i < n; i++) {
		if (between(0, 1)) {
			parts[i] = random_type(depth);
		} else {
			parts[i] = (struct type){.handle = MPI_DATATYPE_NULL};
			MPI_Type_dup(old->handle, &parts[i].handle);
			add_type(&parts[i], old, 0);
		}
		handles[i] = parts[i].handle;
		lengths[i] = between(0, 3);
		at[i] = place;
		place += lengths[i] * extent_of(&parts[i]) + between(0, 16);
	}
	made(")");
	MPI_Type_create_struct(n, lengths, at, handles, &t->handle);
	for (int i = 0; i < n; i++)
		made(" %d at %ld", lengths[i], (long)at[i]);
	for (int i = 0; i < n; i++) {
		add_run(t, &parts[i], at[i], lengths[i]);
		t->misread |= parts[i].misread || lengths[i] * parts[i].bytes == 0; /* it may forget the bounds */
		release(&parts[i]);
	}
}

static void subarray(struct type *t, const struct type *old)
{
	made(" subarray");
	int n = between(1, 4), sizes[4], parts[4], starts[4], order = between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	long steps[4], step = extent_of(old), index[4] = {0}, total = 1;
	for (int i = 0; i < n; i++) {
		sizes[i] = between(1, 6);
		parts[i] = between(1, sizes[i]);
		starts[i] = between(0, sizes[i] - parts[i]);
		total *= parts[i];
	}
	for (int k = 0; k < n; k++) {
		int i = order == MPI_ORDER_C ? n - 1 - k : k;
		steps[i] = step;
		step *= sizes[i];
	}
	MPI_Type_create_subarray(n, sizes, parts, starts, order, old->handle, &t->handle);
	for (long e = 0; e < total; e++) {
		long at = 0;
		for (int i = 0; i < n; i++)
			at += (starts[i] + index[i]) * steps[i];
		add_type(t, old, at);
		for (int k = 0; k < n; k++) {
			int i = order == MPI_ORDER_C ? n - 1 - k : k;
			if (++index[i] < parts[i])
				break;
			index[i] = 0;
		}
	}
}

/* Whether element `e` of a dimension is dealt to place `mine`. */
static int is_mine(int e, int size, int way, int argument, int places, int mine)
{
	int block = argument;
	if (way == MPI_DISTRIBUTE_NONE)
		return 1;
	if (argument == MPI_DISTRIBUTE_DFLT_DARG)
		block = way == MPI_DISTRIBUTE_BLOCK ? (size + places - 1) / places : 1;
	return e / block % places == mine;
}

static void distributed(struct type *t, const struct type *old)
{
	made(" darray");
	int n = between(1, 3), sizes[3], ways[3], arguments[3], places[3], mine[3], all = 1;
	int order = between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	long steps[3], step = extent_of(old), total = 1, index[3] = {0};
	for (int i = 0; i < n; i++) {
		const int possible[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
		sizes[i] = between(1, 9);
		ways[i] = possible[between(0, 2)];
		places[i] = ways[i] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
		arguments[i] = between(0, 1) ? MPI_DISTRIBUTE_DFLT_DARG : between((sizes[i] + places[i] - 1) / places[i], 9);
		if (ways[i] == MPI_DISTRIBUTE_CYCLIC && between(0, 1))
			arguments[i] = between(1, 3);
		all *= places[i];
		total *= sizes[i];
	}
	int place = between(0, all - 1), rest = place;
	for (int i = n - 1; i >= 0; i--) {
		mine[i] = rest % places[i];
		rest /= places[i];
	}
	for (int k = 0; k < n; k++) {
		int i = order == MPI_ORDER_C ? n - 1 - k : k;
		steps[i] = step;
		step *= sizes[i];
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* Open MPI can't make all of them */
	int result = MPI_Type_create_darray(all, place, n, sizes, ways, arguments, places, order, old->handle, &t->handle);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	if (result != MPI_SUCCESS) {
		vector(t, old);
		return;
	}
	for (long e = 0; e < total; e++) {
		long at = 0;
		int own = 1;
		for (int i = 0; i < n; i++) {
			at += index[i] * steps[i];
			own &= is_mine((int)index[i], sizes[i], ways[i], arguments[i], places[i], mine[i]);
		}
		if (own)
			add_type(t, old, at);
		for (int k = 0; k < n; k++) {
			int i = order == MPI_ORDER_C ? n - 1 - k : k;
			if (++index[i] < sizes[i])
				break;
			index[i] = 0;
		}
	}
}

static struct type random_type(int depth)
{
	if (depth == 0 || between(0, 5) == 0)
		return named();
	struct type old = random_type(depth - 1), t = {.handle = MPI_DATATYPE_NULL};
	if (old.count > MOST_BLOCKS)
		return old;
	switch (between(0, 9)) {
	case 0: case 1: vector(&t, &old); break;
	case 2: case 3: indexed(&t, &old); break;
	case 4: structure(&t, &old, depth - 1); break;
	case 5: subarray(&t, &old); break;
	case 6: distributed(&t, &old); break;
	case 7: {
		made(" resized");
		MPI_Aint low, extent;
		MPI_Type_get_extent(old.handle, &low, &extent);
		MPI_Type_create_resized(old.handle, low + between(-16, 16), extent + between(-8, 64), &t.handle);
		add_type(&t, &old, 0);
		break;
	}
	case 8: {
		int n = many();
		MPI_Type_contiguous(n, old.handle, &t.handle);
		add_run(&t, &old, 0, n);
		break;
	}
	case 9:
		MPI_Type_dup(old.handle, &t.handle);
		add_type(&t, &old, 0);
	}
	t.misread |= old.misread;
	release(&old);
	return t;
}

/* ---- buffers ------------------------------------------------------------ */

/* Datatypes reach to both sides of the middle. */
static char source[2 * SIDE], target[2 * SIDE], expected[2 * SIDE], noise[4 * SIDE];
static char packed[MOST_BYTES], repacked[MOST_BYTES];

/* Some of a datatype: `count` of it. */
struct data {
	struct type t;
	int count;
	long bytes, extent;
	long low, high; /* the bytes that it touches, and some beside them */
	int overlaps;   /* a byte is named twice: it can't be received */
};

static void bounds(struct data *d)
{
	d->low = d->high = 0;
	for (long i = 0; i < d->t.count; i++)
		for (int k = 0; k < 2; k++) {
			long at = d->t.blocks[i].at + (k ? (d->count - 1) * d->extent : 0), end = at + d->t.blocks[i].length;
			d->low = at < d->low ? at : d->low;
			d->high = end > d->high ? end : d->high;
		}
	d->low -= 64;
	d->high += 64;
}

static int overlapping(const struct data *d)
{
	static unsigned char marks[2 * SIDE];
	memset(marks + SIDE + d->low, 0, (size_t)(d->high - d->low));
	for (int n = 0; n < d->count; n++)
		for (long i = 0; i < d->t.count; i++)
			for (long k = 0; k < d->t.blocks[i].length; k++)
				if (marks[SIDE + n * d->extent + d->t.blocks[i].at + k]++)
					return 1;
	return 0;
}

/* The data are nothing, or bytes one after the other: there is little to get wrong. */
static int is_plain(const struct data *d)
{
	long end = 0;
	int begun = 0;
	for (int n = 0; n < d->count && n < 2; n++)
		for (long i = 0; i < d->t.count; i++) {
			const struct block *b = &d->t.blocks[i];
			if (begun && b->length > 0 && n * d->extent + b->at != end)
				return 0;
			begun |= b->length > 0;
			end = b->length > 0 ? n * d->extent + b->at + b->length : end;
		}
	return 1;
}

static struct data random_data(void)
{
	enum { PLAIN_KEPT = 8 }; /* one of so many */
	for (;;) {
		made_of[0] = 0;
		struct data d = {.t = random_type(between(1, 4))};
		d.count = between(0, 7) == 0 ? between(1, 3000) : between(0, 5);
		d.extent = extent_of(&d.t);
		made(", extent %ld", d.extent);
		while (d.count > 1 && d.t.bytes * d.count > MOST_BYTES / 2)
			d.count /= 2;
		d.bytes = d.t.bytes * d.count;
		bounds(&d);
		int plain = is_plain(&d), wanted = !plain || between(1, PLAIN_KEPT) == 1;
		if (wanted && d.low >= -SIDE && d.high <= SIDE && d.bytes < MOST_BYTES - 64) {
			in_pieces += !plain;
			d.overlaps = overlapping(&d);
			MPI_Type_commit(&d.t.handle);
			return d;
		}
		release(&d.t);
	}
}

static void gather(const struct data *d, const char *from, char *to)
{
	for (int n = 0; n < d->count; n++)
		for (long i = 0; i < d->t.count; i++) {
			memcpy(to, from + n * d->extent + d->t.blocks[i].at, (size_t)d->t.blocks[i].length);
			to += d->t.blocks[i].length;
		}
}

static void scatter(const struct data *d, const char *from, char *to)
{
	for (int n = 0; n < d->count; n++)
		for (long i = 0; i < d->t.count; i++) {
			memcpy(to + n * d->extent + d->t.blocks[i].at, from, (size_t)d->t.blocks[i].length);
			from += d->t.blocks[i].length;
		}
}

/* Other bytes than before where something is to be received, and what they are
 * to be then. */
static void expect(const struct data *d)
{
	long size = d->high - d->low;
	memcpy(target + SIDE + d->low, noise + between(0, 2 * SIDE - 1), (size_t)size);
	memcpy(expected + SIDE + d->low, target + SIDE + d->low, (size_t)size);
	scatter(d, packed, expected + SIDE);
	memset(repacked, 0x5a, (size_t)d->bytes + 64);
}

static void check_memory(const struct data *d)
{
	if (memcmp(target + SIDE + d->low, expected + SIDE + d->low, (size_t)(d->high - d->low)) != 0)
		fail("wrong memory");
}

/* ---- calls -------------------------------------------------------------- */

static void pack(const struct data *d)
{
	int begin = between(0, 9), position = begin, end = begin + (int)d->bytes, first = between(0, d->count);
	doing = "MPI_Pack";
	MPI_Pack(source + SIDE, first, d->t.handle, repacked, end, &position, MPI_COMM_WORLD);
	MPI_Pack(source + SIDE + first * d->extent, d->count - first, d->t.handle, repacked, end, &position, MPI_COMM_WORLD);
	if (position != end)
		fail("a wrong position");
	for (int i = begin; i < end; i++)
		checksum = checksum * 31 + (unsigned char)repacked[i];
	if (!d->t.misread && memcmp(repacked + begin, packed, (size_t)d->bytes) != 0)
		fail("wrong bytes");
}

static void unpack(const struct data *d)
{
	int position = 0, first = between(0, d->count);
	expect(d);
	doing = "MPI_Unpack";
	MPI_Unpack(packed, (int)d->bytes, &position, target + SIDE, first, d->t.handle, MPI_COMM_WORLD);
	MPI_Unpack(packed, (int)d->bytes, &position, target + SIDE + first * d->extent, d->count - first, d->t.handle,
	           MPI_COMM_WORLD);
	if (position != d->bytes)
		fail("a wrong position");
	check_memory(d);
}

/* What one side of a call names: the datatype, or its bytes. */
struct side {
	void *buffer;
	int count;
	MPI_Datatype type;
};

static struct side typed(const struct data *d, char *buffer)
{
	return (struct side){buffer + SIDE, d->count, d->t.handle};
}

static struct side bytes(const struct data *d, char *buffer)
{
	return (struct side){buffer, (int)d->bytes, MPI_PACKED};
}

static void check_status(const struct data *d, struct side to, MPI_Status *status)
{
	int n = -1;
	MPI_Get_count(status, to.type, &n);
	if (d->bytes > 0 && n != to.count)
		fail("a wrong MPI_Get_count");
	MPI_Get_count(status, MPI_BYTE, &n);
	if (n != d->bytes)
		fail("a wrong number of bytes");
	MPI_Get_elements(status, to.type, &n);
	if (d->bytes > 0 && n < to.count)
		fail("a wrong MPI_Get_elements");
}

static void send(struct side from, int way)
{
	MPI_Request request;
	switch (way) {
	case 0:
		doing = "MPI_Send";
		MPI_Send(from.buffer, from.count, from.type, 1, 5, MPI_COMM_WORLD);
		return;
	case 1:
		doing = "MPI_Isend";
		MPI_Isend(from.buffer, from.count, from.type, 1, 5, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		return;
	case 2:
		doing = "MPI_Ssend";
		MPI_Ssend(from.buffer, from.count, from.type, 1, 5, MPI_COMM_WORLD);
		return;
	case 3:
		doing = "MPI_Send_init";
		MPI_Send_init(from.buffer, from.count, from.type, 1, 5, MPI_COMM_WORLD, &request);
		for (int i = 0; i < 2; i++) {
			MPI_Start(&request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		MPI_Request_free(&request);
	}
}

static void receive(struct side to, int way, MPI_Status *status)
{
	MPI_Request request;
	switch (way) {
	case 0:
		doing = "MPI_Recv";
		MPI_Recv(to.buffer, to.count, to.type, 0, 5, MPI_COMM_WORLD, status);
		return;
	case 3:
		doing = "MPI_Recv_init";
		MPI_Recv_init(to.buffer, to.count, to.type, 0, 5, MPI_COMM_WORLD, &request);
		for (int i = 0; i < 2; i++) {
			MPI_Start(&request);
			MPI_Wait(&request, status);
		}
		MPI_Request_free(&request);
		return;
	default:
		doing = "MPI_Irecv";
		MPI_Irecv(to.buffer, to.count, to.type, 0, 5, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, status);
	}
}

/* From rank 0 to rank 1, or both ways. */
static void message(const struct data *d)
{
	int shape = between(0, 2), way = between(0, 4);
	struct side from = shape == 1 ? bytes(d, packed) : typed(d, source);
	struct side to = shape == 2 || d->overlaps ? bytes(d, repacked) : typed(d, target);
	MPI_Status status;
	if (!d->overlaps)
		expect(d);
	if (way == 4) {
		doing = "MPI_Sendrecv";
		MPI_Sendrecv(from.buffer, from.count, from.type, 1 - rank, 5, to.buffer, to.count, to.type, 1 - rank, 5,
		             MPI_COMM_WORLD, &status);
	} else if (rank == 0) {
		send(from, way);
		return;
	} else {
		receive(to, way, &status);
	}
	check_status(d, to, &status);
	if (to.buffer == repacked && memcmp(repacked, packed, (size_t)d->bytes) != 0)
		fail("wrong bytes");
	else if (to.buffer != repacked)
		check_memory(d);
}

/* What both ranks hold: the window is the target buffer. */
struct shared {
	MPI_Win window;
	MPI_File file;
};

static struct shared share(int ranks)
{
	struct shared s = {MPI_WIN_NULL, MPI_FILE_NULL};
	char path[64];
	if (ranks == 1) /* Open MPI has no windows for one rank */
		return s;
	snprintf(path, sizeof path, "/tmp/datatype_random.%d", (int)getpid());
	MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &s.file);
	if (s.file == MPI_FILE_NULL)
		fail("no file in /tmp");
	MPI_Win_create(target, sizeof target, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.window);
	return s;
}

static void part(struct shared *s)
{
	if (s->window == MPI_WIN_NULL)
		return;
	MPI_Win_free(&s->window);
	MPI_File_close(&s->file);
}

/* The bytes in the file are those that MPI_Pack gives. */
static void through_file(const struct data *d, MPI_File file)
{
	MPI_Status status;
	int n = -1;
	doing = "MPI_File_write_at";
	if (rank == 0)
		MPI_File_write_at(file, 3, source + SIDE, d->count, d->t.handle, &status);
	MPI_File_sync(file);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_sync(file);
	doing = "MPI_File_read_at";
	if (rank == 0) {
		MPI_File_read_at(file, 3, repacked, (int)d->bytes, MPI_BYTE, &status);
		if (memcmp(repacked, packed, (size_t)d->bytes) != 0)
			fail("wrong bytes");
	} else {
		MPI_File_read_at(file, 3, target + SIDE, d->count, d->t.handle, &status);
	}
	MPI_Get_count(&status, MPI_BYTE, &n);
	if (n != d->bytes)
		fail("a wrong number of bytes");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* From rank 0 to rank 1 by what needs both. */
static void together(const struct data *d, const struct shared *s)
{
	MPI_Win window = s->window;
	int none[2] = {0, 0}, out[2] = {0, rank == 0 ? d->count : 0}, in[2] = {rank == 1 ? d->count : 0, 0};
	MPI_Datatype types[2] = {d->t.handle, d->t.handle};
	int way = between(0, 5);
	expect(d);
	switch (way) {
	case 0:
		doing = "MPI_Bcast";
		MPI_Bcast(rank == 0 ? source + SIDE : target + SIDE, d->count, d->t.handle, 0, MPI_COMM_WORLD);
		break;
	case 1:
		doing = "MPI_Alltoallw";
		MPI_Alltoallw(source + SIDE, out, none, types, target + SIDE, in, none, types, MPI_COMM_WORLD);
		break;
	case 2:
		in[0] = d->count;
		doing = "MPI_Gatherv";
		MPI_Gatherv(source + SIDE, rank == 0 ? d->count : 0, d->t.handle, target + SIDE, in, none, d->t.handle, 1,
		            MPI_COMM_WORLD);
		break;
	case 3:
		doing = "MPI_Put";
		MPI_Win_fence(0, window);
		if (rank == 0)
			MPI_Put(source + SIDE, d->count, d->t.handle, 1, SIDE, d->count, d->t.handle, window);
		MPI_Win_fence(0, window);
		break;
	case 4:
		doing = "MPI_Get";
		if (rank == 0)
			memcpy(target + SIDE + d->low, source + SIDE + d->low, (size_t)(d->high - d->low));
		MPI_Win_fence(0, window);
		if (rank == 1) {
			static char got[2 * SIDE];
			memcpy(got + SIDE + d->low, target + SIDE + d->low, (size_t)(d->high - d->low));
			MPI_Get(got + SIDE, d->count, d->t.handle, 0, SIDE, d->count, d->t.handle, window);
			MPI_Win_fence(0, window);
			memcpy(target + SIDE + d->low, got + SIDE + d->low, (size_t)(d->high - d->low));
		} else {
			MPI_Win_fence(0, window);
		}
		break;
	case 5:
		through_file(d, s->file);
	}
	if (rank == 1)
		check_memory(d);
}

static void one_case(int ranks, const struct shared *s)
{
	struct data d = random_data();
	how_many = d.count;
	described = d.t.blocks;
	described_count = d.t.count;
	gather(&d, source + SIDE, packed);
	int kind = ranks == 1 ? between(0, 1) : between(0, 3);
	if (kind == 0 || d.t.misread || (kind == 1 && d.overlaps))
		pack(&d);
	else if (kind == 1)
		unpack(&d);
	else if (kind == 2 || d.overlaps)
		message(&d);
	else
		together(&d, s);
	release(&d.t);
}

int main(int argc, char **argv)
{
	int ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 3 || ranks > 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	seed = atol(argv[1]);
	long cases = atol(argv[2]);
	state = (uint64_t)seed;
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)draw();
	memcpy(source, noise, sizeof source);
	struct shared s = share(ranks);
	for (number = 0; number < cases; number++) {
		state = (uint64_t)seed * 1000003u + (uint64_t)number; /* each case stands for itself */
		one_case(ranks, &s);
	}
	part(&s);
	if (rank == 0)
		printf("cases %ld\nin pieces %ld\nchecksum %016llx\n", cases, in_pieces, (unsigned long long)checksum);
	MPI_Finalize();
	return 0;
}
