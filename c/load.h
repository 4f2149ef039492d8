/* load.h - what libevenkeel.so brings in from beside itself: the Go runtime, the
 * watcher, and who runs idle programs. */
#ifndef EK_LOAD_H
#define EK_LOAD_H

#include <stdbool.h>

#include "runtime.h"

/* Opens the runtime at `path` (beside libevenkeel.so if empty), once a process;
 * null, after one line on stderr if it is to tell, where it can't be had. A Go
 * program that registered its own runtime gets that, one that did not gets none. */
const struct ek_runtime *ek_runtime_open(const char *path, bool tells);

/* The same, and has it record this process. */
const struct ek_runtime *ek_runtime_load(const char *path, const struct ek_runtime_process *process);

/* Before MPI_Init, in which a process mostly waits: starts `evenkeel watch`, detached,
 * which waits to be told which segment it is to watch. Not where
 * threads or descriptors are few, so that MPI gets its own. */
void ek_watcher_start_early(void);

/* Tells it, and starts it now if that was not done. False: there is none. */
bool ek_watcher_tell(const char *segment_path);

/* Lets one that was told nothing go. */
void ek_watcher_dismiss(void);

/* Starts `evenkeel idle` with these arguments, which end with a null, detached.
 * What it tells comes out of the descriptor that is returned, which does not
 * block; -1: there is none. */
int ek_guest_start(char *const arguments[]);

#endif
