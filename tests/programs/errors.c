/* errors.c - MPI calls with wrong or odd arguments, and what comes of them.
 *
 *	mpirun -np 2 errors return      every case, under error handlers that return
 *	mpirun -np 2 errors fatal CASE  one case, under MPI_ERRORS_ARE_FATAL
 *	mpirun -np 2 errors jump        an error handler that does not return
 *	mpirun -np 2 errors nested      a function of ours that MPI calls, and that calls MPI
 *
 * Rank 0 prints for each case "CASE class C world W copy D": the class of what
 * the call returned, and how often it invoked the error handlers of
 * MPI_COMM_WORLD and of a copy of it. "jump" and "nested" print counts as calls.c does.
 */
#include "counted.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static MPI_Comm copy;
static int word, words[64];
static MPI_Comm made;
static MPI_Request request;
static MPI_Win window = MPI_WIN_NULL;
static MPI_File file = MPI_FILE_NULL;

static int send_null_comm(void) { return MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_NULL); }
static int send_bad_rank(void) { return MPI_Send(&word, 1, MPI_INT, size, 0, copy); }
static int send_bad_tag(void) { return MPI_Send(&word, 1, MPI_INT, 0, -5, copy); }
static int send_bad_count(void) { return MPI_Send(&word, -1, MPI_INT, 0, 0, copy); }
static int send_null_type(void) { return MPI_Send(&word, 1, MPI_DATATYPE_NULL, 0, 0, copy); }
static int isend_bad_rank(void) { return MPI_Isend(&word, 1, MPI_INT, size, 0, copy, &request); }
static int isend_null_type(void) { return MPI_Isend(&word, 1, MPI_DATATYPE_NULL, 0, 0, copy, &request); }
static int recv_bad_rank(void) { return MPI_Recv(&word, 1, MPI_INT, size, 0, copy, MPI_STATUS_IGNORE); }
static int recv_null_type(void) { return MPI_Recv(&word, 1, MPI_DATATYPE_NULL, 0, 0, copy, MPI_STATUS_IGNORE); }
static int probe_bad_rank(void) { return MPI_Probe(size, 0, copy, MPI_STATUS_IGNORE); }
static int iprobe_bad_rank(void) { return MPI_Iprobe(size, 0, copy, &word, MPI_STATUS_IGNORE); }
static int barrier_null_comm(void) { return MPI_Barrier(MPI_COMM_NULL); }
static int ibarrier_null_comm(void) { return MPI_Ibarrier(MPI_COMM_NULL, &request); }
static int bcast_bad_root(void) { return MPI_Bcast(&word, 1, MPI_INT, size, copy); }
static int reduce_null_op(void) { return MPI_Reduce(&word, words, 1, MPI_INT, MPI_OP_NULL, 0, copy); }
static int wait_null_pointer(void) { return MPI_Wait(NULL, MPI_STATUS_IGNORE); }
static int waitall_bad_count(void) { return MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE); }
static int dup_null_comm(void) { return MPI_Comm_dup(MPI_COMM_NULL, &made); }
static int dup_null_pointer(void) { return MPI_Comm_dup(copy, NULL); }
static int split_bad_color(void) { return MPI_Comm_split(copy, -7, 0, &made); }
static int fence_null_win(void) { return MPI_Win_fence(0, MPI_WIN_NULL); }
static int win_free_null(void) { return MPI_Win_free(&window); }
static int file_close_null(void) { return MPI_File_close(&file); }
static int file_close_null_pointer(void) { return MPI_File_close(NULL); }
static int file_read_null(void) { return MPI_File_read_all(MPI_FILE_NULL, &word, 1, MPI_INT, MPI_STATUS_IGNORE); }

static int sendrecv_bad_rank(void)
{
	return MPI_Sendrecv(&word, 1, MPI_INT, size, 0, words, 1, MPI_INT, size, 0, copy, MPI_STATUS_IGNORE);
}

static int recv_truncated(void)
{
	MPI_Isend(words, 2, MPI_INT, rank, 6, copy, &request);
	MPI_Request_free(&request);
	return MPI_Recv(&word, 1, MPI_INT, rank, 6, copy, MPI_STATUS_IGNORE);
}

static int allreduce_null_type(void)
{
	return MPI_Allreduce(&word, words, 1, MPI_DATATYPE_NULL, MPI_SUM, copy);
}

static int alltoall_bad_count(void)
{
	return MPI_Alltoall(words, -1, MPI_INT, words + 32, -1, MPI_INT, copy);
}

static int free_null_comm(void)
{
	MPI_Comm none = MPI_COMM_NULL;

	return MPI_Comm_free(&none);
}

static int free_world(void)
{
	MPI_Comm world = MPI_COMM_WORLD;

	return MPI_Comm_free(&world);
}

static int cart_too_large(void)
{
	int dims[1] = {size + 1}, periods[1] = {0};

	return MPI_Cart_create(copy, 1, dims, periods, 0, &made);
}

static int win_create_null_comm(void)
{
	return MPI_Win_create(words, sizeof words, 1, MPI_INFO_NULL, MPI_COMM_NULL, &window);
}

static int open_missing_file(void)
{
	return MPI_File_open(copy, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

/* What the call does not look at, nobody may look at: these all succeed. */
static MPI_Datatype nonsense(void)
{
	return (MPI_Datatype)(uintptr_t)8;
}

static int gather_in_place(void)
{
	return rank == 0 ? MPI_Gather(MPI_IN_PLACE, 7, nonsense(), words, 1, MPI_INT, 0, copy)
			 : MPI_Gather(&word, 1, MPI_INT, NULL, 7, nonsense(), 0, copy);
}

static int scatter_elsewhere(void)
{
	return rank == 0 ? MPI_Scatter(words, 1, MPI_INT, MPI_IN_PLACE, 7, nonsense(), 0, copy)
			 : MPI_Scatter(NULL, 7, nonsense(), &word, 1, MPI_INT, 0, copy);
}

static int scatterv_elsewhere(void)
{
	int counts[64], places[64];

	for (int i = 0; i < 64; i++) {
		counts[i] = 1;
		places[i] = i;
	}
	return rank == 0 ? MPI_Scatterv(words, counts, places, MPI_INT, &word, 1, MPI_INT, 0, copy)
			 : MPI_Scatterv(NULL, NULL, NULL, nonsense(), &word, 1, MPI_INT, 0, copy);
}

static int allgather_in_place(void)
{
	return MPI_Allgather(MPI_IN_PLACE, 7, nonsense(), words, 1, MPI_INT, copy);
}

static int igather_in_place(void)
{
	int error = rank == 0 ? MPI_Igather(MPI_IN_PLACE, 7, nonsense(), words, 1, MPI_INT, 0, copy, &request)
			      : MPI_Igather(&word, 1, MPI_INT, NULL, 7, nonsense(), 0, copy, &request);

	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return error;
}

/* Of an intercommunicator's root group, only the root takes part. */
static int bcast_between_groups(void)
{
	MPI_Comm side, both;
	int error;

	MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &side);
	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == size - 1 ? 0 : size - 1, 9, &both);
	if (rank == size - 1)
		error = MPI_Bcast(&word, 1, MPI_INT, 0, both);
	else
		error = rank == 0 ? MPI_Bcast(&word, 1, MPI_INT, MPI_ROOT, both)
				  : MPI_Bcast(NULL, 7, MPI_DATATYPE_NULL, MPI_PROC_NULL, both);
	MPI_Comm_free(&both);
	MPI_Comm_free(&side);
	return error;
}

static const struct {
	const char *name;
	int (*call)(void);
} cases[] = {
#define CASE(name) {#name, name}
	CASE(send_null_comm), CASE(send_bad_rank), CASE(send_bad_tag), CASE(send_bad_count),
	CASE(send_null_type), CASE(isend_bad_rank), CASE(isend_null_type), CASE(recv_bad_rank),
	CASE(recv_null_type), CASE(recv_truncated), CASE(sendrecv_bad_rank), CASE(probe_bad_rank),
	CASE(iprobe_bad_rank), CASE(barrier_null_comm), CASE(ibarrier_null_comm), CASE(bcast_bad_root),
	CASE(reduce_null_op), CASE(allreduce_null_type), CASE(alltoall_bad_count),
	CASE(wait_null_pointer), CASE(waitall_bad_count), CASE(dup_null_comm), CASE(dup_null_pointer),
	CASE(split_bad_color), CASE(free_null_comm), CASE(free_world), CASE(cart_too_large),
	CASE(fence_null_win), CASE(win_free_null), CASE(win_create_null_comm), CASE(open_missing_file),
	CASE(file_close_null), CASE(file_close_null_pointer), CASE(file_read_null),
	CASE(gather_in_place), CASE(scatter_elsewhere), CASE(scatterv_elsewhere),
	CASE(allgather_in_place), CASE(igather_in_place), CASE(bcast_between_groups),
#undef CASE
};

static int world_errors, copy_errors;

static void in_world(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	(void)error;
	world_errors++;
}

static void in_copy(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	(void)error;
	copy_errors++;
}

static void handle(MPI_Comm comm, MPI_Comm_errhandler_function *handler)
{
	MPI_Errhandler errors;

	MPI_Comm_create_errhandler(handler, &errors);
	MPI_Comm_set_errhandler(comm, errors);
	MPI_Errhandler_free(&errors);
}

static void returning(void)
{
	handle(MPI_COMM_WORLD, in_world);
	handle(copy, in_copy);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int class;

		world_errors = copy_errors = 0;
		MPI_Error_class(cases[i].call(), &class);
		if (rank == 0)
			printf("%s class %d world %d copy %d\n", cases[i].name, class, world_errors,
			       copy_errors);
	}
}

static int fatal(const char *name)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (strcmp(cases[i].name, name) == 0)
			return cases[i].call();
	fprintf(stderr, "errors: no case %s\n", name);
	return 2;
}

static jmp_buf before_the_call;

static void jump(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	(void)error;
	longjmp(before_the_call, 1);
}

static void jumping(void)
{
	handle(MPI_COMM_WORLD, jump);
	for (volatile int i = 0; i < 10; i++) {
		if (setjmp(before_the_call) == 0)
			MPI_Send(&word, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
		else
			counted("MPI_Send", MPI_SUCCESS, __FILE__, __LINE__);
		CALL(MPI_Barrier, MPI_COMM_WORLD);
	}
	counted_finalize();
}

/* Called while MPI_Comm_dup is open, of which what it does is a part. */
static int copy_attribute(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *wanted)
{
	int found;

	(void)comm, (void)key, (void)extra, (void)value, (void)copied;
	MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_SELF);
	*wanted = 0;
	return MPI_SUCCESS;
}

static void nesting(void)
{
	int key;

	MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
	for (int i = 0; i < 10; i++) {
		CALL(MPI_Comm_dup, MPI_COMM_WORLD, &made);
		CALL(MPI_Comm_free, &made);
	}
	counted_finalize();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int error = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(how, "jump") == 0) {
		jumping();
		return 0;
	}
	if (strcmp(how, "nested") == 0) {
		nesting();
		return 0;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	if (strcmp(how, "fatal") == 0 && argc > 2)
		error = fatal(argv[2]);
	else
		returning();
	MPI_Finalize();
	return error;
}
