/* fortran.c - what the Fortran module evenkeel calls beside evenkeel.h itself:
 * communicators are integers there, and texts have no end mark.
 */
#include <string.h>

#include "evenkeel.h"
#include "ground.h"
#include "next.h"
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
