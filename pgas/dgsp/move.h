/* move.h - from one program's bytes to another's, and where they are. */
#ifndef EK_MOVE_H
#define EK_MOVE_H

#include "dgsp.h"

/* Copies bytes [first, last) of the packed form from where `source` has them to
 * where `target` has them. The two memories must not overlap. */
void ek_dgsp_move(const struct ek_dgsp_run *target, char *to, const struct ek_dgsp_run *source, const char *from,
                  int64_t first, int64_t last);

/* A stretch of memory. */
struct ek_dgsp_span {
	int64_t at, length;
};

/* Lists where bytes [from, to) of the packed form are in memory, in their order,
 * neighbours joined: at most `most` spans, and puts their number into *count.
 * Returns the byte up to which they go; where that is not `to`, the rest begins
 * there. */
int64_t ek_dgsp_spans(const struct ek_dgsp_run *run, int64_t from, int64_t to, struct ek_dgsp_span *spans, int64_t most,
                      int64_t *count);

#endif
