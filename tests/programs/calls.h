/* calls.h - the parts of calls.c: each makes every MPI call of its kind at
 * least once and checks what came of it. All work on 2 or more ranks. */
#ifndef CALLS_H
#define CALLS_H

#include "counted.h"

extern int rank, size;

void point_to_point(void);
void completion(void);
void probing(void);
void persistent(void);
void collectives(void);
void nonblocking_collectives(void);
void neighbourhoods(void);
void communicators(void);
void windows(void);
void files(void);
void newer(void);

#endif
