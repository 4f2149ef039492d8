/* shared_heap.h - hands out parts of a range of shared memory, of which it keeps the
 * books in that memory itself: whoever can read and write the range can allocate and
 * free, one at a time. Pure.
 *
 * The books are those of the Go package pgas/shared/heap, word by word: free parts
 * are a list in the order of their addresses, joined with their neighbours, and the
 * first that is long enough is taken (D. E. Knuth, The Art of Computer Programming
 * 1, 2.5, algorithms A and B). A header before each part that is in use says so, by
 * which a part that is freed twice, or was never handed out, is recognised.
 */
#ifndef EK_SHARED_HEAP_H
#define EK_SHARED_HEAP_H

#include <stdint.h>

/* All offsets and lengths are multiples of this: no two parts share a cache line. */
enum { EK_HEAP_UNIT = 64 };

/* A word for whoever holds a part: so many bytes before its offset. */
enum { EK_HEAP_HOLDERS = 8 };

/* The range: aligned words of 8 bytes at offsets from its begin. What load and store
 * return other than EK_OK ends the operation under way, and is returned by it. */
struct ek_heap {
	int (*load)(const struct ek_heap *, uint64_t offset, uint64_t *value);
	int (*store)(const struct ek_heap *, uint64_t offset, uint64_t value);
};

/* Makes a range of so many bytes one free part. EK_UPC_NO_MEMORY: they are too few. */
int ek_heap_format(const struct ek_heap *heap, uint64_t bytes);

/* The offset of a part of at least so many bytes; what is in it is left as it is.
 * EK_UPC_NO_MEMORY: there is none. */
int ek_heap_allocate(const struct ek_heap *heap, uint64_t bytes, uint64_t *offset);

/* How many bytes the part at an offset has, which must be handed out. */
int ek_heap_room(const struct ek_heap *heap, uint64_t offset, uint64_t *bytes);

/* Gives back the part at an offset. EK_UPC_FREED: none is handed out there. */
int ek_heap_free(const struct ek_heap *heap, uint64_t offset);

#endif
