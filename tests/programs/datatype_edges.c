/* Derived datatypes at the edges of what MPI allows and beyond. Prints what
 * MPI answers, line by line, which must not depend on who copies the data.
 *
 *   datatype_edges        2 ranks
 *   datatype_edges huge   2 ranks, 3 GiB of memory: more than 2 GiB in one message
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096 };

static int rank;
static double field[2 * N], got[2 * N];

static void say(const char *what, long value)
{
	if (rank == 1)
		printf("%s %ld\n", what, value);
}

/* Of all bytes. */
static long sum_of(const double *d, int n)
{
	unsigned long sum = 0;
	for (size_t i = 0; i < (size_t)n * sizeof *d; i++)
		sum = sum * 31 + ((const unsigned char *)d)[i];
	return (long)sum;
}

static void clear(void)
{
	for (int i = 0; i < 2 * N; i++) {
		field[i] = i;
		got[i] = -i;
	}
}

static int class_of(int result)
{
	int class = -1;
	MPI_Error_class(result, &class);
	return class;
}

static MPI_Datatype vector(int n, int length, int stride)
{
	MPI_Datatype t;
	MPI_Type_vector(n, length, stride, MPI_DOUBLE, &t);
	MPI_Type_commit(&t);
	return t;
}

/* What arrives is shorter, or longer, than what was expected; the middle of a
 * block, or of a double, is where it ends. */
static void counts(void)
{
	MPI_Datatype t = vector(100, 2, 3);
	MPI_Status status;
	for (int bytes = 0; bytes < 2 * 1600; bytes += 163) {
		int n = 0, elements = 0, result = MPI_SUCCESS;
		clear();
		if (rank == 0)
			MPI_Send(field, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		else
			result = MPI_Recv(got, 1, t, 0, 1, MPI_COMM_WORLD, &status);
		if (rank == 0)
			continue;
		say("bytes", bytes);
		say("class", class_of(result));
		MPI_Get_count(&status, t, &n);
		MPI_Get_elements(&status, t, &elements);
		say("count", n);
		say("elements", elements);
		say("sum", sum_of(got, N));
	}
	MPI_Type_free(&t);
}

static void zero_counts(void)
{
	MPI_Datatype t = vector(10, 1, 2), none = vector(0, 1, 2);
	MPI_Status status;
	int n = -1;
	clear();
	MPI_Sendrecv(field, 0, t, 1 - rank, 2, got, 5, t, 1 - rank, 2, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, t, &n);
	say("nothing", n);
	MPI_Sendrecv(field, 7, none, 1 - rank, 2, got, 7, none, 1 - rank, 2, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, none, &n);
	say("nothing of nothing", n);
	say("sum", sum_of(got, N));
	MPI_Type_free(&t);
	MPI_Type_free(&none);
}

/* Absolute addresses, from several variables. */
static void bottom(void)
{
	static int a[64];
	static double b[64];
	int lengths[3] = {3, 5, 7}, position = 0;
	MPI_Aint at[3];
	MPI_Datatype kinds[3] = {MPI_INT, MPI_DOUBLE, MPI_INT}, t;
	char packed[256];
	for (int i = 0; i < 64; i++) {
		a[i] = i * (rank + 1);
		b[i] = i * 0.5 + rank;
	}
	MPI_Get_address(a + 40, &at[0]);
	MPI_Get_address(b + 3, &at[1]);
	MPI_Get_address(a + 1, &at[2]);
	MPI_Type_create_struct(3, lengths, at, kinds, &t);
	MPI_Type_commit(&t);
	if (rank == 0)
		MPI_Send(MPI_BOTTOM, 1, t, 1, 3, MPI_COMM_WORLD);
	else
		MPI_Recv(MPI_BOTTOM, 1, t, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Pack(MPI_BOTTOM, 1, t, packed, sizeof packed, &position, MPI_COMM_WORLD);
	say("packed", position);
	for (int i = 0; i < 64; i++)
		say("at", a[i] * 1000 + (long)(b[i] * 2));
	MPI_Type_free(&t);
}

static void in_place(void)
{
	MPI_Datatype t = vector(16, 1, 2), spaced;
	MPI_Type_create_resized(t, 0, 32 * sizeof(double), &spaced);
	MPI_Type_commit(&spaced);
	clear();
	for (int i = 0; i < 32; i++)
		got[rank * 32 + i] = 100 * rank + i;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, spaced, MPI_COMM_WORLD);
	say("in place", sum_of(got, N));
	MPI_Type_free(&t);
	MPI_Type_free(&spaced);
}

/* A message outlives the handles of its datatype; others come to live where
 * freed ones did. */
static void freed_while_pending(void)
{
	MPI_Request requests[40];
	clear();
	for (int i = 0; i < 20; i++) {
		MPI_Datatype t = vector(60 + i, 1, 2 + i % 3);
		MPI_Irecv(got + i * 400, 1, t, 1 - rank, 10 + i, MPI_COMM_WORLD, &requests[i]);
		MPI_Isend(field + i * 400, 1, t, 1 - rank, 10 + i, MPI_COMM_WORLD, &requests[20 + i]);
		MPI_Type_free(&t);
		MPI_Datatype never_committed; /* may take the place of the one just freed */
		MPI_Type_vector(3, 1, 2, MPI_INT, &never_committed);
		MPI_Type_free(&never_committed);
	}
	MPI_Waitall(40, requests, MPI_STATUSES_IGNORE);
	say("freed while pending", sum_of(got, 2 * N));
}

/* A datatype that MPI knows and evenkeel does not, as when a library calls
 * PMPI_Type_commit, is committed again while a message with it is under way. Of bytes,
 * parts of the message end within an element. */
static void committed_meanwhile(int of_bytes)
{
	enum { ELEMENTS = 500000, PITCH = 2 * sizeof(long double), LEAD = 5, SEEN = ELEMENTS / 20 * PITCH };
	int lengths[2] = {LEAD, ELEMENTS}, done = 0, packed = 0;
	MPI_Aint at[2] = {0, PITCH};
	MPI_Datatype spaced, kinds[2] = {MPI_BYTE, MPI_DATATYPE_NULL}, t;
	MPI_Request request;
	char *memory = calloc(ELEMENTS + 1, PITCH), *bytes = malloc(ELEMENTS * sizeof(long double) + LEAD);
	unsigned long sum = 0;
	MPI_Type_create_resized(MPI_LONG_DOUBLE, 0, PITCH, &spaced);
	kinds[1] = spaced;
	MPI_Type_create_struct(2, lengths, at, kinds, &t);
	PMPI_Type_commit(&t);
	for (long i = 0; i <= ELEMENTS && rank == 0; i++)
		for (size_t b = 0; b < sizeof(long double); b++)
			memory[i * PITCH + (long)b] = (char)(1 + (i * 7 + (long)b) % 100);
	if (rank == 0) {
		MPI_Pack(memory, 1, t, bytes, ELEMENTS * sizeof(long double) + LEAD, &packed, MPI_COMM_WORLD);
		MPI_Isend(of_bytes ? bytes : memory, of_bytes ? packed : 1, of_bytes ? MPI_BYTE : t, 1, 4, MPI_COMM_WORLD, &request);
	} else {
		MPI_Irecv(memory, 1, t, 0, 4, MPI_COMM_WORLD, &request);
		while (!memory[SEEN] && !done)
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	}
	MPI_Type_commit(&t);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (long i = 0; i < (ELEMENTS + 1) * (long)PITCH; i++)
		sum = sum * 31 + (unsigned char)memory[i];
	say("committed meanwhile", (long)sum);
	free(bytes);
	free(memory);
	MPI_Type_free(&spaced);
	MPI_Type_free(&t);
}

/* Where a datatype names a byte several times, the last one that is unpacked stays. */
static void overlapping(void)
{
	int lengths[3] = {2, 1, 2}, at[3] = {0, 3, 5}, position;
	MPI_Datatype blocks, close, loop;
	double packed[200];
	MPI_Type_indexed(3, lengths, at, MPI_DOUBLE, &blocks);
	for (int i = 0; i < 200; i++)
		packed[i] = i + 1;
	for (int stride = 0; stride < 7; stride++) {
		MPI_Type_create_resized(blocks, 0, stride * (MPI_Aint)sizeof(double), &close);
		MPI_Type_create_hvector(6, 1, stride * (MPI_Aint)sizeof(double), blocks, &loop);
		MPI_Type_commit(&close);
		MPI_Type_commit(&loop);
		clear();
		position = 0;
		MPI_Unpack(packed, sizeof packed, &position, got, 6, close, MPI_COMM_WORLD);
		MPI_Unpack(packed, sizeof packed, &position, got + N, 1, loop, MPI_COMM_WORLD);
		say("overlapping", sum_of(got, 2 * N));
		MPI_Type_free(&close);
		MPI_Type_free(&loop);
	}
	MPI_Type_free(&blocks);
}

/* Types that Open MPI reads in a way of its own: a stride of -1 byte, also where others
 * hide it, and a member without data that moves the bounds. */
static void misread(void)
{
	enum { TYPES = 4 };
	int lengths[3] = {1, 1, 1};
	MPI_Datatype none, wide, t[TYPES];
	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_create_resized(none, 0, 16, &wide);
	MPI_Type_create_hvector(5, 1, -1, MPI_BYTE, &t[0]);
	MPI_Type_create_struct(3, lengths, (MPI_Aint[3]){0, 10, 20}, (MPI_Datatype[3]){MPI_INT, t[0], MPI_INT}, &t[1]);
	MPI_Type_create_struct(2, lengths, (MPI_Aint[2]){0, 0}, (MPI_Datatype[2]){MPI_INT, wide}, &t[2]);
	MPI_Type_create_struct(2, (int[2]){3, 1}, (MPI_Aint[2]){0, 60}, (MPI_Datatype[2]){t[2], MPI_INT}, &t[3]);
	MPI_Type_free(&none);
	MPI_Type_free(&wide);
	for (int i = 0; i < TYPES; i++) {
		char packed[128];
		int position = 0;
		clear();
		MPI_Type_commit(&t[i]);
		MPI_Pack((char *)field + 67, 4, t[i], packed, sizeof packed, &position, MPI_COMM_WORLD);
		for (int at = 0; at < position; at++)
			say("misread", packed[at]);
		MPI_Type_free(&t[i]);
	}
}

/* Records without gaps, the second member before the first. */
static void swapped(void)
{
	const MPI_Datatype kinds[3] = {MPI_FLOAT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX};
	for (int i = 0; i < 9; i++) {
		MPI_Datatype members[2] = {kinds[i / 3], kinds[i % 3]}, t;
		int lengths[2] = {1, 1}, first, second, position = 0, back = 0;
		char packed[6 * 32];
		MPI_Type_size(members[0], &first);
		MPI_Type_size(members[1], &second);
		MPI_Type_create_struct(2, lengths, (MPI_Aint[2]){second, 0}, members, &t);
		MPI_Type_commit(&t);
		clear();
		MPI_Pack((char *)field + 8, 6, t, packed, sizeof packed, &position, MPI_COMM_WORLD);
		for (int at = 0; at < position; at++)
			say("swapped", packed[at]);
		MPI_Unpack(packed, position, &back, got, 6, t, MPI_COMM_WORLD);
		say("back", memcmp(got, field + 1, (size_t)position));
		MPI_Type_free(&t);
	}
}

/* The bytes of another architecture. */
static void external(void)
{
	int lengths[2] = {1, 3};
	MPI_Aint at[2] = {0, 8}, position = 0, size = 0;
	MPI_Datatype kinds[2] = {MPI_INT, MPI_DOUBLE}, t;
	unsigned char packed[256] = {0};
	MPI_Type_create_struct(2, lengths, at, kinds, &t);
	MPI_Type_commit(&t);
	clear();
	MPI_Pack_external_size("external32", 3, t, &size);
	MPI_Pack_external("external32", field, 3, t, packed, sizeof packed, &position);
	say("external", size);
	for (int i = 0; i < position; i++)
		say("byte", packed[i]);
	position = 0;
	MPI_Unpack_external("external32", packed, sizeof packed, &position, got, 3, t);
	say("sum", sum_of(got, N));
	MPI_Type_free(&t);
}

static void same_address(void)
{
	long sum = 0;
	for (int i = 0; i < 3000; i++) {
		MPI_Datatype t, twin = MPI_DATATYPE_NULL;
		int position = 0, blocks = 1 + i % 40, n = 1 + i % 4;
		double packed[200];
		MPI_Type_vector(blocks, n, 5, i % 2 ? MPI_DOUBLE : MPI_INT, &t);
		MPI_Type_commit(&t);
		if (i % 3 == 0) {
			MPI_Type_dup(t, &twin);
			MPI_Type_free(&t);
			t = twin;
		}
		MPI_Pack(field, 1, t, packed, sizeof packed, &position, MPI_COMM_WORLD);
		for (int b = 0; b < position; b++)
			sum = sum * 31 + ((unsigned char *)packed)[b];
		MPI_Type_free(&t);
	}
	say("same address", sum);
}

static void errors(void)
{
	MPI_Datatype open, t = MPI_DATATYPE_NULL;
	int position = 0, lengths[1] = {-1}, at[1] = {0};
	double packed[8];
	MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &open);
	say("commit null", class_of(MPI_Type_commit(&t)));
	say("dup null", class_of(MPI_Type_dup(MPI_DATATYPE_NULL, &t)));
	say("free null", class_of(MPI_Type_free(&t)));
	say("negative length", class_of(MPI_Type_indexed(1, lengths, at, MPI_INT, &t)));
	say("negative count", class_of(MPI_Type_vector(-1, 1, 1, MPI_INT, &t)));
	say("uncommitted", class_of(MPI_Send(field, 1, open, 1 - rank, 9, MPI_COMM_WORLD)));
	MPI_Type_commit(&open);
	say("twice", class_of(MPI_Type_commit(&open)));
	say("no room", class_of(MPI_Pack(field, 2, open, packed, sizeof packed, &position, MPI_COMM_WORLD)));
	say("position", position);
	say("negative count", class_of(MPI_Send(field, -1, open, 1 - rank, 9, MPI_COMM_WORLD)));
	MPI_Type_free(&open);
}

enum { BLOCK = 1 << 16 };

/* So many blocks of every second of some words, each a word further on. */
static MPI_Datatype repeated(int blocks)
{
	MPI_Datatype column, all;
	MPI_Type_vector(BLOCK / 8, 1, 2, MPI_DOUBLE, &column);
	MPI_Type_create_hvector(blocks, 1, 8, column, &all);
	MPI_Type_free(&column);
	MPI_Type_commit(&all);
	return all;
}

static double repeated_word(size_t i)
{
	return (double)(i % (BLOCK / 8) * 2 + i / (BLOCK / 8));
}

static void say_bytes(const MPI_Status *status)
{
	MPI_Count n = 0;
	MPI_Get_elements_x(status, MPI_BYTE, &n);
	say("bytes", (long)n);
}

/* 2.5 GiB out of 1 MiB: a message may name a byte twice. Then 7/8 of that, into the same
 * memory, of which each eighth word stays as it is. */
static void huge(void)
{
	enum { BLOCKS = 40960, FEWER = BLOCKS / 8 * 7 };
	const size_t words = (size_t)BLOCK * BLOCKS / 8;
	MPI_Datatype block, bytes, sevens, all = repeated(BLOCKS), fewer = repeated(FEWER);
	MPI_Status status;
	MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
	MPI_Type_contiguous(BLOCKS, block, &bytes);
	MPI_Type_vector((int)(words / 8), 7, 8, MPI_DOUBLE, &sevens);
	MPI_Type_commit(&bytes);
	MPI_Type_commit(&sevens);
	double *from = malloc(2 * BLOCK + 8 * BLOCKS), *to = rank == 1 ? malloc(8 * words) : from;
	for (int i = 0; i < 2 * BLOCK / 8 + BLOCKS; i++)
		from[i] = i;
	if (rank == 0) {
		MPI_Send(from, 1, all, 1, 1, MPI_COMM_WORLD);
		MPI_Send(from, 1, fewer, 1, 1, MPI_COMM_WORLD);
	} else {
		long wrong = 0;
		MPI_Recv(to, 1, bytes, 0, 1, MPI_COMM_WORLD, &status);
		say_bytes(&status);
		for (size_t i = 0; i < words; i++)
			wrong += to[i] != repeated_word(i);
		say("wrong", wrong);
		MPI_Recv(to, 1, sevens, 0, 1, MPI_COMM_WORLD, &status);
		say_bytes(&status);
		for (size_t i = 0; i < words; i++)
			wrong += to[i] != repeated_word(i % 8 < 7 ? i / 8 * 7 + i % 8 : i);
		say("wrong", wrong);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	clear();
	if (argc > 1) {
		huge();
	} else {
		counts();
		zero_counts();
		bottom();
		in_place();
		freed_while_pending();
		committed_meanwhile(0);
		committed_meanwhile(1);
		overlapping();
		swapped();
		misread();
		external();
		same_address();
		errors();
	}
	MPI_Finalize();
	return 0;
}
