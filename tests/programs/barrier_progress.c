/* barrier_progress.c - whether a rank that waits in a barrier lets what others
 * have begun with it complete.
 *
 *	mpirun -np 2 barrier_progress FILE WHAT...
 *	mpirun -np 18 barrier_progress FILE last
 *
 * Rank 0 begins something and goes into a barrier. Rank 1 comes there only when
 * its side of it has completed, which takes rank 0's help: rank 0 prints what
 * completed, or the program hangs for ever. WHAT is isend, issend, irecv, iallreduce, put, get,
 * accumulate, lock; or loop: rank 0 is not let wait, but passes barriers with
 * a third rank until rank 1 has its message; or last: rank 0 never has to wait,
 * since it comes last to all barriers.
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 4 << 20 }; /* 32 MiB: more than any eager limit, and several fragments */

static int rank, size;
static double *words;

static void expect(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "rank %d: %s\n", rank, what);
		MPI_Abort(MPI_COMM_WORLD, 5);
	}
}

static void fill(double base)
{
	for (int i = 0; i < WORDS; i++)
		words[i] = base + i;
}

static void check(double base)
{
	for (int i = 0; i < WORDS; i++)
		expect(words[i] == base + i, "wrong data");
}

static void send(int (*begin)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
{
	MPI_Request request = MPI_REQUEST_NULL;

	if (rank == 0) {
		fill(1);
		begin(words, WORDS, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, &request);
	} else {
		MPI_Recv(words, WORDS, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(1);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive(void)
{
	MPI_Request request = MPI_REQUEST_NULL;

	if (rank == 0) {
		MPI_Irecv(words, WORDS, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, &request);
	} else {
		fill(2);
		MPI_Ssend(words, WORDS, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == 0)
		check(2);
}

static void reduce(void)
{
	double *sums = malloc(WORDS * sizeof *sums);
	MPI_Request request;

	fill(rank);
	MPI_Iallreduce(words, sums, WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
	if (rank != 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect(sums[5] == 5.0 * size + size * (size - 1) / 2, "wrong sum");
	free(sums);
}

/* One-sided, with a target that does nothing but wait. */
static void onesided(const char *what)
{
	MPI_Win window;
	double *shown;

	MPI_Win_allocate(WORDS * (MPI_Aint)sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &shown, &window);
	for (int i = 0; i < WORDS; i++)
		shown[i] = 3 + i;
	MPI_Win_fence(0, window);
	if (rank == 1) {
		fill(4);
		MPI_Win_lock(strcmp(what, "lock") == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window);
		if (strcmp(what, "put") == 0)
			MPI_Put(words, WORDS, MPI_DOUBLE, 0, 0, WORDS, MPI_DOUBLE, window);
		else if (strcmp(what, "get") == 0)
			MPI_Get(words, WORDS, MPI_DOUBLE, 0, 0, WORDS, MPI_DOUBLE, window);
		else if (strcmp(what, "accumulate") == 0)
			MPI_Accumulate(words, WORDS, MPI_DOUBLE, 0, 0, WORDS, MPI_DOUBLE, MPI_SUM, window);
		MPI_Win_flush(0, window);
		MPI_Win_unlock(0, window);
		if (strcmp(what, "get") == 0)
			check(3);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_fence(0, window);
	if (rank == 0 && strcmp(what, "put") == 0)
		expect(shown[9] == 13, "wrong data in the window");
	if (rank == 0 && strcmp(what, "accumulate") == 0)
		expect(shown[9] == 25, "wrong sum in the window");
	MPI_Win_free(&window);
}

/* Rank 0 and the last one pass barriers all the while: rank 1, meanwhile, needs
 * rank 0. The last one tells when rank 1 has got its message. */
static void loop(void)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Comm two;
	int done = 0;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &two);
	if (rank == 0) {
		fill(6);
		MPI_Isend(words, WORDS, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, &request);
	}
	if (rank == 1) {
		MPI_Recv(words, WORDS, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(6);
		MPI_Send(NULL, 0, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
	} else {
		while (!done) {
			for (int i = 0; i < 1000; i++)
				MPI_Barrier(two);
			if (rank == 2)
				MPI_Iprobe(1, 8, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
			/* Once in a thousand: this alone would not move 32 MiB. */
			PMPI_Bcast(&done, 1, MPI_INT, 1, two);
		}
		MPI_Comm_free(&two);
	}
	if (rank == 2)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* How often the others have been about to come to a barrier, for rank 0 to see without MPI. */
static _Atomic int *come_to;

static void share(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0600);

	expect(file >= 0 && ftruncate(file, sizeof *come_to) == 0, "no file");
	come_to = mmap(NULL, sizeof *come_to, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	expect(come_to != MAP_FAILED, "no memory");
	close(file);
}

/* Rank 1 gets words that rank 0 has to send in several steps; whoever waits in
 * MPI for them, or in a barrier, is another than rank 0. */
static void last(void)
{
	enum { BARRIERS = 256, FEW = WORDS / 4 };
	static int barriers;
	MPI_Request request;
	int done = 0;

	if (rank == 0) {
		fill(7);
		MPI_Isend(words, FEW, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, &request);
	} else if (rank == 1) {
		MPI_Irecv(words, FEW, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &request);
	}
	for (int i = 0; i < BARRIERS; i++) {
		barriers++;
		if (rank == 1 && !done)
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (rank != 0)
			++*come_to;
		else
			for (int more = 10; more > 0; more -= *come_to == barriers * (size - 1))
				sched_yield();
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (rank == 1) {
		expect(done, "it has not come");
		for (int i = 0; i < FEW; i++)
			expect(words[i] == 7 + i, "wrong data");
	}
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void complete(const char *what)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (strcmp(what, "isend") == 0)
		send(MPI_Isend);
	else if (strcmp(what, "issend") == 0)
		send(MPI_Issend);
	else if (strcmp(what, "irecv") == 0)
		receive();
	else if (strcmp(what, "iallreduce") == 0)
		reduce();
	else if (strcmp(what, "loop") == 0)
		loop();
	else if (strcmp(what, "last") == 0)
		last();
	else
		onesided(what);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	words = malloc(WORDS * sizeof *words);
	share(argv[1]);
	for (int i = 2; i < argc; i++) {
		for (int time = 0; time < (strcmp(argv[i], "last") == 0 ? 1 : 3); time++)
			complete(argv[i]);
		if (rank == 0) {
			printf("%s completed\n", argv[i]);
			fflush(stdout);
		}
	}
	free(words);
	MPI_Finalize();
	return 0;
}
