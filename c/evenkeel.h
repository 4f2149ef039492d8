/* evenkeel.h - what a C or C++ program may ask of evenkeel.
 *
 * Link with `pkg-config --libs evenkeel` before MPI (mpicc adds MPI last by
 * itself). A program so linked is recorded without any preload.
 */
#ifndef EVENKEEL_H
#define EVENKEEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return; ek_strerror says it in words. */
enum ek_result {
	EK_OK = 0,
	EK_INACTIVE = 1 /* before MPI_Init, after MPI_Finalize, with EVENKEEL_ENABLE=0, or no room */
};

/* Begins a region: what the program does until the matching end is reported
 * under this name (at most 47 characters, copied). Regions nest up to 63 deep;
 * there are at most 254 different ones. For the whole process: to be called
 * from one thread. About 50 ns. */
int ek_region_begin(const char *name);

/* Ends the innermost open region. */
int ek_region_end(void);

/* A sentence for a result; never null. */
const char *ek_strerror(int result);

#ifdef __cplusplus
}
#endif

#include "evenkeel_gsm.h"

#endif
