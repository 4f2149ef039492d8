#include "counted.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FUNCTIONS = 512, NAME_LENGTH = 48 };

struct count {
	char name[NAME_LENGTH];
	long calls;
};

static struct count counts[MAX_FUNCTIONS];
static pthread_mutex_t counts_mutex = PTHREAD_MUTEX_INITIALIZER;

static void add(struct count *table, const char *name, long calls)
{
	for (int i = 0; i < MAX_FUNCTIONS; i++) {
		if (table[i].name[0] == '\0')
			snprintf(table[i].name, sizeof table[i].name, "%s", name);
		if (strcmp(table[i].name, name) == 0) {
			table[i].calls += calls;
			return;
		}
	}
	fprintf(stderr, "counted: no room to count %s\n", name);
	PMPI_Abort(MPI_COMM_WORLD, 1);
}

void counted(const char *function, int error, const char *file, int line)
{
	if (error != MPI_SUCCESS) {
		fprintf(stderr, "%s:%d: %s returned %d\n", file, line, function, error);
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
	pthread_mutex_lock(&counts_mutex);
	add(counts, function, 1);
	pthread_mutex_unlock(&counts_mutex);
}

void counted_unexpected(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	PMPI_Abort(MPI_COMM_WORLD, 1);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct count *)a)->name, ((const struct count *)b)->name);
}

static void print_sum(const struct count *all, int ranks)
{
	static struct count sum[MAX_FUNCTIONS];
	int functions = 0;

	for (int i = 0; i < ranks * MAX_FUNCTIONS; i++)
		if (all[i].name[0] != '\0')
			add(sum, all[i].name, all[i].calls);
	while (functions < MAX_FUNCTIONS && sum[functions].name[0] != '\0')
		functions++;
	qsort(sum, (size_t)functions, sizeof sum[0], by_name);
	for (int i = 0; i < functions; i++)
		printf("%s %ld\n", sum[i].name, sum[i].calls);
	fflush(stdout);
}

void counted_finalize(void)
{
	int rank, size;
	struct count *all = NULL;

	add(counts, "MPI_Finalize", 1);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0) {
		all = malloc((size_t)size * sizeof counts);
		if (all == NULL) {
			perror("counted");
			PMPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	PMPI_Gather(counts, sizeof counts, MPI_BYTE, all, sizeof counts, MPI_BYTE, 0,
		    MPI_COMM_WORLD);
	if (rank == 0)
		print_sum(all, size);
	free(all);
	MPI_Finalize();
}
