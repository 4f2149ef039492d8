/* kernels.h - the copy loops of compiled datatypes: n blocks of one width, at
 * equal steps or at listed places. Blocks are copied in order, so that where a
 * type names a byte twice the last copy stays, as in MPI's own loops.
 */
#ifndef EK_KERNELS_H
#define EK_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From every from_step bytes to every to_step bytes. */
void ek_copy_strided(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t width, size_t n);

/* From listed places to every to_step bytes, and back. */
void ek_copy_gather(char *to, ptrdiff_t to_step, const char *from, const int32_t *at, size_t width, size_t n);
void ek_copy_scatter(char *to, const int32_t *at, const char *from, ptrdiff_t from_step, size_t width, size_t n);

/* Records of two blocks, from a side that has no gaps or to one: every so many bytes one,
 * and the second block so far behind the first. False: there is no loop for these widths. */
bool ek_copy_pairs(char *to, ptrdiff_t to_step, ptrdiff_t to_second, const char *from, ptrdiff_t from_step,
                   ptrdiff_t from_second, size_t first, size_t second, size_t n);

/* Groups of a few blocks at equal steps, from a side that has no gaps or to one: every so many bytes
 * a group. False: there is no loop for this width. */
bool ek_copy_nested(char *to, ptrdiff_t to_group, ptrdiff_t to_step, const char *from, ptrdiff_t from_group,
                    ptrdiff_t from_step, size_t width, size_t count, size_t n);

#endif
