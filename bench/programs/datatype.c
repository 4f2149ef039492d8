/* What moving data of a derived datatype takes.
 *
 *   datatype pack     1 rank: MPI_Pack and MPI_Unpack beside a loop written by hand
 *   datatype send     2 ranks: a ping-pong, one side derived, and both
 *
 * Prints a line for each layout: its name, its bytes and nanoseconds: of the
 * hand-written loop and MPI, packing and unpacking; or one way of the ping-pong
 * with a derived type at the sender, and at both ends. Layouts without a loop of
 * their own are copied block by block with memcpy.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPACE = 48 << 20, PACKED = 4 << 20 };

static char *space, *packed;

/* The blocks of the layout in hand, for the loops. */
static long *at, *length, blocks, bytes;

struct layout {
	const char *name;
	MPI_Datatype (*make)(void); /* and lists the blocks */
	void (*pack)(void);
	void (*unpack)(void);
	int count;
};

static void block(long place, long size)
{
	at[blocks] = place;
	length[blocks++] = size;
	bytes += size;
}

/* ---- loops written by hand ---------------------------------------------- */

static void pack_blocks(void)
{
	char *to = packed;
	for (long i = 0; i < blocks; to += length[i++])
		memcpy(to, space + at[i], (size_t)length[i]);
}

static void unpack_blocks(void)
{
	char *from = packed;
	for (long i = 0; i < blocks; from += length[i++])
		memcpy(space + at[i], from, (size_t)length[i]);
}

static long width, stride; /* of the vector in hand */

#define VECTOR_LOOPS(size)                                                                     \
	static void pack_vector_##size(void)                                                   \
	{                                                                                      \
		for (long i = 0; i < blocks; i++)                                              \
			memcpy(packed + i * size, space + i * stride, size);                   \
	}                                                                                      \
	static void unpack_vector_##size(void)                                                 \
	{                                                                                      \
		for (long i = 0; i < blocks; i++)                                              \
			memcpy(space + i * stride, packed + i * size, size);                   \
	}
VECTOR_LOOPS(4)
VECTOR_LOOPS(8)
VECTOR_LOOPS(16)
VECTOR_LOOPS(64)
VECTOR_LOOPS(256)

static MPI_Datatype vector(long size, long step, long total)
{
	MPI_Datatype t;
	width = size;
	stride = step;
	for (long i = 0; i < total / size; i++)
		block(i * step, size);
	MPI_Type_create_hvector((int)(total / size), (int)size, step, MPI_BYTE, &t);
	return t;
}

#define VECTOR(size, times, total) \
	static MPI_Datatype vector_##size##_##times##_##total(void) { return vector(size, size * times, total); }
VECTOR(4, 2, 1048576)
VECTOR(8, 2, 1048576)
VECTOR(16, 2, 1048576)
VECTOR(64, 2, 1048576)
VECTOR(256, 2, 1048576)
VECTOR(4, 8, 1048576)
VECTOR(8, 8, 1048576)
VECTOR(16, 8, 1048576)
VECTOR(64, 8, 1048576)
VECTOR(4, 2, 16384)
VECTOR(8, 2, 16384)
VECTOR(16, 2, 16384)
VECTOR(64, 2, 16384)
VECTOR(256, 2, 16384)
VECTOR(8, 2, 128)

static uint32_t drawn = 1;

static int draw(int n)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (int)(drawn >> 8) % n;
}

enum { DOUBLES = 131072 };
static int places[DOUBLES], lengths[DOUBLES];

static MPI_Datatype indexed_block(void)
{
	MPI_Datatype t;
	for (int i = 0, place = 0; i < DOUBLES; i++) {
		places[i] = place;
		block(place * 8L, 8);
		place += 2 + draw(3); /* never side by side */
	}
	MPI_Type_create_indexed_block(DOUBLES, 1, places, MPI_DOUBLE, &t);
	return t;
}

static void pack_indexed_block(void)
{
	double *to = (double *)packed, *from = (double *)space;
	for (int i = 0; i < DOUBLES; i++)
		to[i] = from[places[i]];
}

static void unpack_indexed_block(void)
{
	double *from = (double *)packed, *to = (double *)space;
	for (int i = 0; i < DOUBLES; i++)
		to[places[i]] = from[i];
}

static MPI_Datatype indexed(void)
{
	MPI_Datatype t;
	int n = 0;
	for (int place = 0, sum = 0; sum < DOUBLES; n++) {
		lengths[n] = 1 + draw(4);
		places[n] = place;
		block(place * 8L, lengths[n] * 8L);
		sum += lengths[n];
		place += lengths[n] + 1 + draw(3);
	}
	MPI_Type_indexed(n, lengths, places, MPI_DOUBLE, &t);
	return t;
}

static void pack_indexed(void)
{
	double *to = (double *)packed, *from = (double *)space;
	for (long i = 0; i < blocks; i++)
		for (int k = 0; k < lengths[i]; k++)
			*to++ = from[places[i] + k];
}

static void unpack_indexed(void)
{
	double *from = (double *)packed, *to = (double *)space;
	for (long i = 0; i < blocks; i++)
		for (int k = 0; k < lengths[i]; k++)
			to[places[i] + k] = *from++;
}

static MPI_Datatype nested(void)
{
	MPI_Datatype inner, t;
	for (int i = 0; i < DOUBLES / 4; i++)
		for (int k = 0; k < 4; k++)
			block(i * 128L + k * 16, 8);
	MPI_Type_create_hvector(4, 1, 16, MPI_DOUBLE, &inner);
	MPI_Type_create_hvector(DOUBLES / 4, 1, 128, inner, &t);
	MPI_Type_free(&inner);
	return t;
}

static void pack_nested(void)
{
	double *to = (double *)packed, *from = (double *)space;
	for (int i = 0; i < DOUBLES / 4; i++)
		for (int k = 0; k < 4; k++)
			to[i * 4 + k] = from[i * 16 + k * 2];
}

static void unpack_nested(void)
{
	double *from = (double *)packed, *to = (double *)space;
	for (int i = 0; i < DOUBLES / 4; i++)
		for (int k = 0; k < 4; k++)
			to[i * 16 + k * 2] = from[i * 4 + k];
}

struct record {
	int a;
	double b;
};
enum { RECORDS = 1048576 / 12 };

static MPI_Datatype records(void)
{
	int ones[2] = {1, 1};
	MPI_Aint where[2] = {0, 8};
	MPI_Datatype kinds[2] = {MPI_INT, MPI_DOUBLE}, t;
	for (int i = 0; i < RECORDS; i++) {
		block(i * 16L, 4);
		block(i * 16L + 8, 8);
	}
	MPI_Type_create_struct(2, ones, where, kinds, &t);
	return t;
}

static void pack_records(void)
{
	struct record *from = (struct record *)space;
	char *to = packed;
	for (int i = 0; i < RECORDS; i++, to += 12) {
		memcpy(to, &from[i].a, 4);
		memcpy(to + 4, &from[i].b, 8);
	}
}

static void unpack_records(void)
{
	struct record *to = (struct record *)space;
	char *from = packed;
	for (int i = 0; i < RECORDS; i++, from += 12) {
		memcpy(&to[i].a, from, 4);
		memcpy(&to[i].b, from + 4, 8);
	}
}

/* ---- faces of a cube, and the layouts of DDTBench ------------------------- */

/* Part of an array in C's order, element by element or in runs. */
static MPI_Datatype part(int dimensions, const int sizes[], const int parts[], const int starts[], MPI_Datatype element,
                         int size)
{
	MPI_Datatype t;
	long index[4] = {0}, rows = 1, run = parts[dimensions - 1];
	for (int i = 0; i < dimensions - 1; i++)
		rows *= parts[i];
	for (long r = 0; r < rows; r++) {
		long place = 0;
		for (int i = 0; i < dimensions; i++)
			place = place * sizes[i] + starts[i] + index[i];
		block(place * size, run * size);
		for (int i = dimensions - 2; i >= 0 && ++index[i] == parts[i]; i--)
			index[i] = 0;
	}
	MPI_Type_create_subarray(dimensions, sizes, parts, starts, MPI_ORDER_C, element, &t);
	return t;
}

enum { CUBE = 128 };

static MPI_Datatype face(int which)
{
	int sizes[3] = {CUBE, CUBE, CUBE}, parts[3] = {CUBE, CUBE, CUBE}, starts[3] = {0, 0, 0};
	parts[which] = 1;
	starts[which] = 1;
	return part(3, sizes, parts, starts, MPI_DOUBLE, 8);
}

static MPI_Datatype face_x(void) { return face(2); }
static MPI_Datatype face_y(void) { return face(1); }

/* NAS LU: faces of an array of 5 variables a cell, in rows and in columns. */
static MPI_Datatype nas_lu(void)
{
	int sizes[3] = {102, 102, 5}, parts[3] = {102, 1, 5}, starts[3] = {0, 50, 0};
	return part(3, sizes, parts, starts, MPI_DOUBLE, 8);
}

/* NAS MG: a face of the grid without its margins. */
static MPI_Datatype nas_mg(void)
{
	int sizes[3] = {130, 130, 130}, parts[3] = {128, 128, 1}, starts[3] = {1, 1, 1};
	return part(3, sizes, parts, starts, MPI_DOUBLE, 8);
}

/* MILC: a face in z of a lattice of four dimensions, 6 floats a site. */
static MPI_Datatype milc(void)
{
	int sizes[4] = {16, 16, 16, 16 * 6}, parts[4] = {16, 1, 16, 16 * 6}, starts[4] = {0, 3, 0, 0};
	return part(4, sizes, parts, starts, MPI_FLOAT, 4);
}

/* WRF: the margins of several fields of floats, as a structure of subarrays. */
static MPI_Datatype wrf(void)
{
	enum { FIELDS = 8, BETWEEN = 4 * 64 * 40 * 70 };
	int sizes[3] = {64, 40, 70}, parts[3] = {64, 40, 3}, starts[3] = {0, 0, 3}, ones[FIELDS];
	MPI_Datatype field = MPI_DATATYPE_NULL, t, kinds[FIELDS];
	MPI_Aint where[FIELDS];
	for (int i = 0; i < FIELDS; i++) {
		long first = blocks;
		if (field != MPI_DATATYPE_NULL)
			MPI_Type_free(&field);
		field = part(3, sizes, parts, starts, MPI_FLOAT, 4);
		for (long b = first; b < blocks; b++)
			at[b] += (long)i * BETWEEN;
		ones[i] = 1;
		where[i] = (MPI_Aint)i * BETWEEN;
	}
	for (int i = 0; i < FIELDS; i++)
		kinds[i] = field;
	MPI_Type_create_struct(FIELDS, ones, where, kinds, &t);
	MPI_Type_free(&field);
	return t;
}

/* LAMMPS: atoms that leave: positions, and tags, types and masks, of a list. */
static MPI_Datatype lammps(void)
{
	enum { ATOMS = 12000, ARRAYS = 4, BETWEEN = 4 << 20 };
	MPI_Datatype kinds[ARRAYS], t;
	MPI_Aint where[ARRAYS];
	int ones[ARRAYS];
	for (int i = 0, place = 0; i < ATOMS; i++) {
		place += 1 + draw(5);
		places[i] = place;
	}
	for (int a = 0; a < ARRAYS; a++) {
		int size = a == 0 ? 24 : 8;
		for (int i = 0; i < ATOMS; i++) {
			lengths[i] = places[i] * (size / 8);
			block((long)a * BETWEEN + places[i] * (long)size, size);
		}
		MPI_Type_create_indexed_block(ATOMS, size / 8, lengths, MPI_DOUBLE, &kinds[a]);
		where[a] = (MPI_Aint)a * BETWEEN;
		ones[a] = 1;
	}
	MPI_Type_create_struct(ARRAYS, ones, where, kinds, &t);
	for (int a = 0; a < ARRAYS; a++)
		MPI_Type_free(&kinds[a]);
	return t;
}

/* SPECFEM3D: the points that elements share, each of some floats. */
static MPI_Datatype specfem(int floats)
{
	enum { POINTS = 40000 };
	MPI_Datatype t;
	for (int i = 0, place = 0; i < POINTS; i++) {
		place += 2 + draw(9);
		places[i] = place * floats;
		block(place * 4L * floats, 4L * floats);
	}
	MPI_Type_create_indexed_block(POINTS, floats, places, MPI_FLOAT, &t);
	return t;
}

static MPI_Datatype specfem_1(void) { return specfem(1); }
static MPI_Datatype specfem_3(void) { return specfem(3); }

#define LOOPS(size) pack_vector_##size, unpack_vector_##size

static const struct layout layouts[] = {
	{"vector 4 of 8 bytes, 1 MiB", vector_4_2_1048576, LOOPS(4), 1},
	{"vector 8 of 16 bytes, 1 MiB", vector_8_2_1048576, LOOPS(8), 1},
	{"vector 16 of 32 bytes, 1 MiB", vector_16_2_1048576, LOOPS(16), 1},
	{"vector 64 of 128 bytes, 1 MiB", vector_64_2_1048576, LOOPS(64), 1},
	{"vector 256 of 512 bytes, 1 MiB", vector_256_2_1048576, LOOPS(256), 1},
	{"indexed_block of doubles", indexed_block, pack_indexed_block, unpack_indexed_block, 1},
	{"indexed, 1 to 4 doubles", indexed, pack_indexed, unpack_indexed, 1},
	{"nested, 4 times 8 bytes", nested, pack_nested, unpack_nested, 1},
	{"struct {int; double}", records, pack_records, unpack_records, RECORDS},
	{"vector 4 of 32 bytes, 1 MiB", vector_4_8_1048576, LOOPS(4), 1},
	{"vector 8 of 64 bytes, 1 MiB", vector_8_8_1048576, LOOPS(8), 1},
	{"vector 16 of 128 bytes, 1 MiB", vector_16_8_1048576, LOOPS(16), 1},
	{"vector 64 of 512 bytes, 1 MiB", vector_64_8_1048576, LOOPS(64), 1},
	{"vector 4 of 8 bytes, 16 KiB", vector_4_2_16384, LOOPS(4), 1},
	{"vector 8 of 16 bytes, 16 KiB", vector_8_2_16384, LOOPS(8), 1},
	{"vector 16 of 32 bytes, 16 KiB", vector_16_2_16384, LOOPS(16), 1},
	{"vector 64 of 128 bytes, 16 KiB", vector_64_2_16384, LOOPS(64), 1},
	{"vector 256 of 512 bytes, 16 KiB", vector_256_2_16384, LOOPS(256), 1},
	{"vector, 16 doubles", vector_8_2_128, LOOPS(8), 1},
	{"face of a cube, x", face_x, pack_blocks, unpack_blocks, 1},
	{"face of a cube, y", face_y, pack_blocks, unpack_blocks, 1},
	{"WRF", wrf, pack_blocks, unpack_blocks, 1},
	{"MILC", milc, pack_blocks, unpack_blocks, 1},
	{"NAS LU", nas_lu, pack_blocks, unpack_blocks, 1},
	{"NAS MG", nas_mg, pack_blocks, unpack_blocks, 1},
	{"LAMMPS", lammps, pack_blocks, unpack_blocks, 1},
	{"SPECFEM, 1 float", specfem_1, pack_blocks, unpack_blocks, 1},
	{"SPECFEM, 3 floats", specfem_3, pack_blocks, unpack_blocks, 1},
};

/* ---- measuring ----------------------------------------------------------- */

enum { TRIES = 7 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *figures)
{
	qsort(figures, TRIES, sizeof *figures, ascending);
	return figures[TRIES / 2];
}

/* Some repetitions, so that a try takes half a millisecond or so. */
static int repetitions(void)
{
	return bytes >= 200000 ? 2 : (int)(400000 / bytes) + 1;
}

static void measure_pack(const struct layout *l, MPI_Datatype t)
{
	double figures[4][TRIES];
	int n = repetitions(), position;
	for (int i = -1; i < TRIES; i++) { /* the first is to warm up */
		double moments[5];
		moments[0] = now();
		for (int k = 0; k < n; k++)
			l->pack();
		moments[1] = now();
		for (int k = 0; k < n; k++)
			MPI_Pack(space, l->count, t, packed, PACKED, (position = 0, &position), MPI_COMM_WORLD);
		moments[2] = now();
		for (int k = 0; k < n; k++)
			l->unpack();
		moments[3] = now();
		for (int k = 0; k < n; k++)
			MPI_Unpack(packed, PACKED, (position = 0, &position), space, l->count, t, MPI_COMM_WORLD);
		moments[4] = now();
		for (int k = 0; k < 4 && i >= 0; k++)
			figures[k][i] = (moments[k + 1] - moments[k]) / n;
	}
	printf("%s|%ld|%.0f|%.0f|%.0f|%.0f\n", l->name, bytes, median(figures[0]), median(figures[1]), median(figures[2]),
	       median(figures[3]));
}

static double ping_pong(const void *out, int sent, MPI_Datatype from, void *in, int received, MPI_Datatype to, int n,
                        int rank)
{
	double begun = now();
	for (int k = 0; k < n; k++) {
		if (rank == 0)
			MPI_Send(out, sent, from, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, received, to, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, sent, from, 0, 1, MPI_COMM_WORLD);
	}
	return (now() - begun) / n / 2;
}

static void measure_send(const struct layout *l, MPI_Datatype t, int rank)
{
	double figures[2][TRIES];
	int n = repetitions();
	for (int i = -1; i < TRIES; i++) {
		double one = ping_pong(space, l->count, t, packed, (int)bytes, MPI_BYTE, n, rank);
		double both = ping_pong(space, l->count, t, space, l->count, t, n, rank);
		if (i >= 0) {
			figures[0][i] = one;
			figures[1][i] = both;
		}
	}
	if (rank == 0)
		printf("%s|%ld|%.0f|%.0f\n", l->name, bytes, median(figures[0]), median(figures[1]));
}

int main(int argc, char **argv)
{
	int rank, sending = argc > 1 && strcmp(argv[1], "send") == 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	space = malloc(SPACE);
	packed = malloc(PACKED);
	at = malloc((1 << 19) * sizeof *at);
	length = malloc((1 << 19) * sizeof *length);
	memset(space, 1, SPACE);
	memset(packed, 2, PACKED);
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		blocks = bytes = 0;
		MPI_Datatype t = layouts[i].make();
		MPI_Type_commit(&t);
		if (sending)
			measure_send(&layouts[i], t, rank);
		else
			measure_pack(&layouts[i], t);
		MPI_Type_free(&t);
	}
	MPI_Finalize();
	return 0;
}
