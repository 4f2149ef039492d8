/* datatype_table.c - more datatypes than there are programs for, and as many one
 * after the other.
 *
 *   datatype_table many      committed at once, freed in turns; prints how many were packed
 *   datatype_table again     committed and freed again and again; prints what memory they left
 *   datatype_table changing  many at once, each of which gives way to one elsewhere;
 *                            prints how many were packed
 *
 * 1 rank. Prints "wrong" if a datatype is not packed as it was made.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "draw.h"

enum { MOST = 6144, MORE = 856, PLAIN = 10, FORTRAN = 3, ELSEWHERE = 9000, LONGEST = 50 };

static double field[4 * LONGEST];
static int packed_types;

static int blocks_of(int i)
{
	return 2 + i % (LONGEST - 2);
}

static MPI_Datatype committed(int i)
{
	MPI_Datatype t;
	MPI_Type_vector(blocks_of(i), 1, 2 + i % 2, MPI_DOUBLE, &t);
	MPI_Type_commit(&t);
	return t;
}

static void pack(MPI_Datatype t, int i)
{
	double packed[LONGEST];
	int position = 0;
	MPI_Pack(field, 1, t, packed, sizeof packed, &position, MPI_COMM_SELF);
	int right = position == 8 * blocks_of(i);
	for (int k = 0; k < blocks_of(i); k++)
		right = right && packed[k] == field[k * (2 + i % 2)];
	if (!right)
		printf("wrong: datatype %d\n", i);
	packed_types++;
}

/* What MPI just copies needs no program: blocks that touch do not, with gaps they do. */
static void commit_plain(void)
{
	for (int i = 1; i <= PLAIN; i++) {
		MPI_Datatype dense, spaced, copy;
		MPI_Type_contiguous(i, MPI_DOUBLE, &dense);
		MPI_Type_create_resized(dense, 0, 8 * (i + 1), &spaced);
		MPI_Type_dup(spaced, &copy); /* not committed, as what it is a copy of */
		MPI_Type_free(&copy);
		MPI_Type_commit(&dense);
		MPI_Type_commit(&spaced);
		MPI_Type_commit(&spaced);
		MPI_Type_free(&dense);
		MPI_Type_free(&spaced);
	}
}

/* Types with the precision of Fortran's are as MPI's own. */
static void commit_fortran(void)
{
	MPI_Datatype kinds[FORTRAN], t;
	MPI_Type_create_f90_real(15, 307, &kinds[0]);
	MPI_Type_create_f90_complex(15, 307, &kinds[1]);
	MPI_Type_create_f90_integer(9, &kinds[2]);
	for (int i = 0; i < FORTRAN; i++) {
		MPI_Type_vector(3, 1, 2, kinds[i], &t);
		MPI_Type_commit(&t);
		MPI_Type_free(&t);
	}
}

/* One after the other, each at an address of its own: more than the table has slots. */
static void commit_elsewhere(void)
{
	static MPI_Datatype fillers[ELSEWHERE];
	for (int i = 0; i < ELSEWHERE; i++) {
		MPI_Datatype t = committed(i);
		MPI_Type_free(&t);
		MPI_Type_vector(2, 1, 2, MPI_INT, &fillers[i]); /* is where it was */
	}
	for (int i = 0; i < ELSEWHERE; i++)
		MPI_Type_free(&fillers[i]);
}

static void many(void)
{
	static MPI_Datatype types[MOST + MORE], others[MOST / 2 + 1];
	for (int i = 0; i < MOST + MORE; i++)
		types[i] = committed(i);
	for (int i = 0; i < MOST + MORE; i++)
		pack(types[i], i);
	for (int i = 0; i < MOST; i += 2)
		MPI_Type_free(&types[i]);
	for (int i = 1; i < MOST; i += 2)
		pack(types[i], i);
	for (int i = 0; i <= MOST / 2; i++)
		others[i] = committed(i);
	for (int i = 0; i <= MOST / 2; i++)
		pack(others[i], i);
	for (int i = 1; i < MOST; i += 2)
		pack(types[i], i);
	for (int i = 0; i <= MOST / 2; i++)
		MPI_Type_free(&others[i]);
	for (int i = 0; i < MOST + MORE; i++)
		if (i % 2 || i >= MOST)
			MPI_Type_free(&types[i]);
	commit_plain();
	commit_fortran();
	commit_elsewhere();
	printf("packed %d\n", packed_types);
}

/* Each is where what was freed just before it was; the first LIVE are committed. */
static void changing(void)
{
	enum { LIVE = 5000, PLACES = 20000, CHANGES = 150000, LOOKED_AT = 1000 };
	static struct { MPI_Datatype type; int i; } places[PLACES], kept;
	for (int k = 0; k < PLACES; k++)
		MPI_Type_vector(2, 1, 2, MPI_INT, &places[k].type);
	for (int k = 0; k < LIVE + CHANGES; k++) {
		int old = k < LIVE ? k : (int)draw(LIVE), new = LIVE + (int)draw(PLACES - LIVE);
		MPI_Type_free(&places[new].type);
		places[new].type = committed(places[new].i = k);
		MPI_Type_free(&places[old].type);
		MPI_Type_vector(2, 1, 2, MPI_INT, &places[old].type);
		kept = places[old];
		places[old] = places[new];
		places[new] = kept;
		if (k % LOOKED_AT == 0)
			pack(places[old].type, k);
	}
	for (int k = 0; k < LIVE; k++)
		pack(places[k].type, places[k].i);
	for (int k = 0; k < PLACES; k++)
		MPI_Type_free(&places[k].type);
	printf("packed %d\n", packed_types);
}

static long mib_in_use(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(3);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE) >> 20;
}

/* Its program takes 4 bytes for each of its blocks, 6.4 MB. */
static MPI_Datatype listed(void)
{
	enum { BLOCKS = 16, PLACES = 100000 };
	static int at[PLACES];
	MPI_Datatype comb, t;
	for (int i = 0; i < PLACES; i++)
		at[i] = i + i % 7 % 3;
	MPI_Type_vector(BLOCKS, 1, 2, MPI_BYTE, &comb);
	MPI_Type_create_indexed_block(PLACES, 1, at, comb, &t);
	MPI_Type_free(&comb);
	return t;
}

static void again(void)
{
	enum { SMALL = 50000, LARGE = 90, WARM = 10 };
	MPI_Datatype list = listed();
	long before = 0;
	for (int i = -SMALL / 10; i < SMALL; i++) {
		MPI_Datatype t = committed(i & 1023), dense, part;
		MPI_Type_free(&t);
		MPI_Type_vector(2, 1, 2, MPI_INT, &part);
		MPI_Type_vector(2, 1, 2, part, &t);
		MPI_Type_commit(&t);
		MPI_Type_free(&part);
		MPI_Type_free(&t);
		MPI_Type_contiguous(3, MPI_INT, &dense);
		MPI_Type_commit(&dense);
		MPI_Type_free(&dense);
		if (i == 0)
			before = mib_in_use();
	}
	printf("small %s\n", mib_in_use() - before < 4 ? "leave nothing" : "grow");
	for (int i = 0; i < LARGE; i++) {
		MPI_Datatype t;
		MPI_Type_dup(list, &t);
		MPI_Type_commit(&t);
		MPI_Type_free(&t);
		if (i == WARM)
			before = mib_in_use();
	}
	MPI_Type_free(&list);
	printf("large %s\n", mib_in_use() - before < 64 ? "leave nothing" : "grow");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	for (int i = 0; i < 4 * LONGEST; i++)
		field[i] = i;
	if (argc > 1 && argv[1][0] == 'm')
		many();
	else if (argc > 1 && argv[1][0] == 'c')
		changing();
	else
		again();
	MPI_Finalize();
	return 0;
}
