/* MPI-IO: a file of one int per rank and row, in which rank r's word of row i
 * is 100 i + r, written and read in every way. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_File file;
static char path[256];

/* Where this rank's word of a row is, counted in words. */
static MPI_Offset place(int row)
{
	return (MPI_Offset)row * size + rank;
}

static int word(int row)
{
	return 100 * row + rank;
}

/* A temporary name that all ranks agree on; rank 0 made the file. */
static void choose_path(void)
{
	if (rank == 0) {
		const char *directory = getenv("TMPDIR");
		int descriptor;

		snprintf(path, sizeof path, "%s/calls.XXXXXX",
			 directory != NULL ? directory : "/tmp");
		descriptor = mkstemp(path);
		EXPECT(descriptor >= 0);
		fclose(fdopen(descriptor, "w"));
	}
	CALL(MPI_Bcast, path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void open_file(void)
{
	CALL(MPI_File_open, MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
	     &file);
	CALL(MPI_File_set_view, file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	CALL(MPI_File_set_atomicity, file, 0);
}

/* Makes what was written visible to the other ranks. */
static void settle(void)
{
	CALL(MPI_File_sync, file);
	CALL(MPI_Barrier, MPI_COMM_WORLD);
}

/* Not before all have read: a nonblocking read at the end of a file never
 * completes in Open MPI 4.1. */
static void empty(void)
{
	settle();
	CALL(MPI_File_set_size, file, 0);
}

static void at_places(void)
{
	int out[3] = {word(0), word(1), word(2)}, got[3] = {-1, -1, -1};
	MPI_Request request;

	CALL(MPI_File_write_at, file, place(0), &out[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_write_at_all, file, place(1), &out[1], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_write_at_all_begin, file, place(2), &out[2], 1, MPI_INT);
	CALL(MPI_File_write_at_all_end, file, &out[2], MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_read_at, file, place(0), &got[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_read_at_all, file, place(1), &got[1], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_read_at_all_begin, file, place(2), &got[2], 1, MPI_INT);
	CALL(MPI_File_read_at_all_end, file, &got[2], MPI_STATUS_IGNORE);
	EXPECT(got[0] == word(0) && got[1] == word(1) && got[2] == word(2));

	out[0] = word(3);
	CALL(MPI_File_iwrite_at, file, place(3), &out[0], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	out[1] = word(4);
	CALL(MPI_File_iwrite_at_all, file, place(4), &out[1], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_iread_at, file, place(3), &got[0], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	CALL(MPI_File_iread_at_all, file, place(4), &got[1], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(got[0] == word(3) && got[1] == word(4));
}

/* A view in which this rank sees its own word of each row. Writes of a row
 * leave no gap in the file: Open MPI 4.1 fills gaps with what it read there
 * before, which may undo what another rank has written since. */
static void view_own_column(void)
{
	MPI_Datatype column;

	MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * size, &column);
	MPI_Type_commit(&column);
	CALL(MPI_File_set_view, file, (MPI_Offset)sizeof(int) * rank, MPI_INT, column, "native",
	     MPI_INFO_NULL);
	MPI_Type_free(&column);
}

/* Each call moves on from the row where this rank's previous one ended. */
static void row_after_row(void)
{
	enum { ROWS = 5 };
	int out[ROWS], got[ROWS];
	MPI_Request request;

	for (int i = 0; i < ROWS; i++) {
		out[i] = word(i);
		got[i] = -1;
	}
	view_own_column();
	CALL(MPI_File_write, file, &out[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_write_all, file, &out[1], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_write_all_begin, file, &out[2], 1, MPI_INT);
	CALL(MPI_File_write_all_end, file, &out[2], MPI_STATUS_IGNORE);
	CALL(MPI_File_iwrite, file, &out[3], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	CALL(MPI_File_iwrite_all, file, &out[4], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	settle();
	MPI_File_seek(file, 0, MPI_SEEK_SET);
	CALL(MPI_File_read, file, &got[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_read_all, file, &got[1], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_read_all_begin, file, &got[2], 1, MPI_INT);
	CALL(MPI_File_read_all_end, file, &got[2], MPI_STATUS_IGNORE);
	CALL(MPI_File_iread, file, &got[3], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	CALL(MPI_File_iread_all, file, &got[4], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(memcmp(got, out, sizeof out) == 0);
	CALL(MPI_File_set_view, file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

/* The shared pointer: ordered calls go by rank, the others by arrival, so of
 * those only that each rank's word is some rank's is known. */
static void shared(void)
{
	int out[4] = {word(0), word(1), word(2), word(3)}, got[4] = {-1, -1, -1, -1};
	MPI_Request request;

	CALL(MPI_File_seek_shared, file, 0, MPI_SEEK_SET);
	CALL(MPI_File_write_ordered, file, &out[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_write_ordered_begin, file, &out[1], 1, MPI_INT);
	CALL(MPI_File_write_ordered_end, file, &out[1], MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_write_shared, file, &out[2], 1, MPI_INT, MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_iwrite_shared, file, &out[3], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_seek_shared, file, 0, MPI_SEEK_SET);
	CALL(MPI_File_read_ordered, file, &got[0], 1, MPI_INT, MPI_STATUS_IGNORE);
	CALL(MPI_File_read_ordered_begin, file, &got[1], 1, MPI_INT);
	CALL(MPI_File_read_ordered_end, file, &got[1], MPI_STATUS_IGNORE);
	EXPECT(got[0] == word(0) && got[1] == word(1));
	settle();
	CALL(MPI_File_read_shared, file, &got[2], 1, MPI_INT, MPI_STATUS_IGNORE);
	settle();
	CALL(MPI_File_iread_shared, file, &got[3], 1, MPI_INT, &request);
	CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
	EXPECT(got[2] / 100 == 2 && got[3] / 100 == 3);
}

void files(void)
{
	MPI_Offset bytes;

	choose_path();
	open_file();
	CALL(MPI_File_preallocate, file, (MPI_Offset)sizeof(int) * size);
	settle(); /* in Open MPI 4.1 the call may return while another rank still writes zeros */
	at_places();
	empty();
	row_after_row();
	empty();
	shared();
	settle();
	MPI_File_get_size(file, &bytes);
	EXPECT(bytes == (MPI_Offset)(4 * sizeof(int)) * size);
	CALL(MPI_File_close, &file);
	if (rank == 0)
		MPI_File_delete(path, MPI_INFO_NULL);
}
