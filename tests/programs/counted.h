/* counted.h - MPI calls that are checked and counted, so that a test can
 * compare the counts with those in a profile. */
#ifndef COUNTED_H
#define COUNTED_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes one MPI call, ends the job if it failed, and counts it. */
#define CALL(function, ...) counted(#function, function(__VA_ARGS__), __FILE__, __LINE__)

/* Ends the job if a result is not as it should be. */
#define EXPECT(condition)                                              \
	do {                                                           \
		if (!(condition))                                      \
			counted_unexpected(#condition, __FILE__, __LINE__); \
	} while (0)

/* What CALL does after the call; any thread may use it. */
void counted(const char *function, int error, const char *file, int line);

void counted_unexpected(const char *condition, const char *file, int line);

/* Prints "MPI_Xxx n" on rank 0, summed over all ranks and sorted by name, and
 * then calls MPI_Finalize, whose own count is among them. The sum is taken
 * through PMPI, so it is not among the calls that a tool sees. */
void counted_finalize(void);

#ifdef __cplusplus
}
#endif

#endif
