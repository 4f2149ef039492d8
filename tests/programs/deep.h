/* deep.h - call sites whose function, file and line a program knows itself. */
#ifndef DEEP_H
#define DEEP_H

#include <mpi.h>

/* Makes one call and notes where: CALL and __LINE__ stand on one line. The
 * call is not the last thing that its function does, so it is no tail call. */
#define SITE(call, ...) (deep_note(#call, __func__, __FILE__, __LINE__), call(__VA_ARGS__))

/* Counts a call from this place. */
void deep_note(const char *call, const char *function, const char *file, int line);

/* Prints "site CALL FUNCTION FILE LINE COUNT" for each place. */
void deep_print(void);

/* In libdeep.so: one barrier from a function of the library, and one from a
 * static function that only the library's debug information names. */
int deep_in_library(MPI_Comm comm);

#endif
