/* fortran.c - what the Fortran module evenkeel calls beside evenkeel.h itself:
 * communicators are integers there, texts have no end mark, and arrays know their sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "evenkeel.h"
#include "ground.h"
#include "next.h"
#include "partition.h"
#include "process.h"

EK_EXPORT int ek_f_partition_create(MPI_Fint comm, int64_t items, const struct ek_partition_options *options, ek_partition **partition)
{
	EK_FOR_CALLER;
	ek_next_resolve();
	return ek_partition_create(ek_mpi.Comm_f2c ? ek_mpi.Comm_f2c(comm) : 0, items, options, partition);
}

EK_EXPORT int ek_f_job_create(MPI_Fint comm, const struct ek_job_options *options, ek_job **job)
{
	EK_FOR_CALLER;
	ek_next_resolve();
	return ek_job_create(ek_mpi.Comm_f2c ? ek_mpi.Comm_f2c(comm) : 0, options, job);
}

/* Where the ranges of ranks end; the first one begins at 0. */
EK_EXPORT int ek_f_partition_set(ek_partition *p, const int64_t last[], int64_t count)
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	if (!ek_ground())
		return EK_INACTIVE;
	int64_t *bounds = calloc((size_t)p->ranks + 1, sizeof *bounds);
	if (!bounds)
		ek_fail(&outcome, EK_NO_MEMORY, "no memory for the bounds of %d ranks", p->ranks);
	else if (count != p->ranks)
		ek_fail(&outcome, EK_REFUSED, "ends of %lld ranges were given, but there are %d ranks", (long long)count, p->ranks);
	else
		memcpy(bounds + 1, last, (size_t)count * sizeof *last);
	int result = ek_ranges_set(p, bounds, &outcome);
	free(bounds);
	return result;
}

EK_EXPORT int ek_f_partition_costs(ek_partition *p, const double cost[], int64_t count)
{
	struct ek_outcome outcome = {0};
	int64_t items = p->bounds[p->rank + 1] - p->bounds[p->rank];
	if (count == items)
		return ek_partition_costs(p, cost);
	ek_fail(&outcome, EK_REFUSED, "costs of %lld items were given, but rank %d has %lld", (long long)count, p->rank, (long long)items);
	return ek_outcome_end(&outcome);
}

/* Filled up with blanks. */
static void copy_text(const char *from, char *text, int length)
{
	size_t bytes = strlen(from);
	memset(text, ' ', (size_t)length);
	memcpy(text, from, bytes < (size_t)length ? bytes : (size_t)length);
}

EK_EXPORT void ek_f_error_text(char *text, int length)
{
	copy_text(ek_error_text(), text, length);
}

EK_EXPORT void ek_f_partition_reason(const ek_partition *partition, char *text, int length)
{
	copy_text(ek_partition_reason(partition), text, length);
}

EK_EXPORT void ek_f_job_report(const ek_job *job, char *text, int length)
{
	copy_text(ek_job_report(job), text, length);
}
