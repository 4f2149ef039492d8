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

/* Starts `evenkeel watch SEGMENT`, detached. False: there is none. */
bool ek_watcher_start(const char *segment_path);

/* Starts `evenkeel idle` with these arguments, which end with a null, detached.
 * What it tells comes out of the descriptor that is returned, which does not
 * block; -1: there is none. */
int ek_guest_start(char *const arguments[]);

#endif
