/* dgsp.h - data gather/scatter programs: a datatype as a tree of few
 * instructions, and what executes them.
 *
 *   block      some bytes
 *   loop       a child, count times, every stride bytes
 *   index      a child at each of count listed places
 *   sequence   different children, or blocks, one after the other
 *
 * Each instruction knows how many bytes of the packed form it stands for, so
 * that any position in it is found by dividing (loop, index) or by bisection
 * (sequence), in the depth of the tree. A program is constant once it is made.
 *
 * This knows nothing of MPI: typemap.c makes programs from datatypes.
 */
#ifndef EK_DGSP_H
#define EK_DGSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ek_dgsp_kind { EK_DGSP_BLOCK, EK_DGSP_LOOP, EK_DGSP_INDEX, EK_DGSP_SEQUENCE };

enum { EK_DGSP_PIECES = 16 }; /* an instruction of at most so many blocks can be executed block by block */

/* A block of an instruction: where it is, in memory and in the packed form. */
struct ek_dgsp_piece {
	int64_t at;
	uint32_t offset, length;
};

/* A step of a sequence. */
struct ek_dgsp_step {
	int64_t at;               /* where it begins in memory, from the sequence's own place, */
	int64_t offset;           /* and in the packed form */
	const struct ek_dgsp *child; /* null: a block, up to the next step's offset */
};

struct ek_dgsp {
	enum ek_dgsp_kind kind;
	int64_t size;      /* of the packed form; never 0 */
	int64_t low, high; /* the bytes of memory that it touches: [low, high) */
	int64_t blocks;    /* how many blocks it is made of, as far as it matters */
	int64_t count;     /* of a loop, index or sequence */
	int64_t stride;    /* of a loop */
	const struct ek_dgsp *child;       /* of a loop or index */
	const int32_t *at;                 /* of an index: where the children are */
	const struct ek_dgsp_step *steps;  /* of a sequence: count of them, and the end */
	const struct ek_dgsp_piece *pieces; /* its blocks, in order; null: too many, or it is a block itself */
	bool any_order;    /* of a loop: no byte is touched by two of its children's pieces */
};

/* An instruction that begins `at` bytes from some place. Null: no data. */
struct ek_dgsp_part {
	int64_t at;
	const struct ek_dgsp *node;
};

/* The memory of a program while it is made, and after. */
struct ek_dgsp_memory {
	struct ek_dgsp_chunk *chunks;
	size_t used, limit;
	bool failed; /* more than the limit, more than there is, or numbers out of range */
};

/* All yield no data if the memory has failed. */
struct ek_dgsp_part ek_dgsp_block(struct ek_dgsp_memory *m, int64_t length);
struct ek_dgsp_part ek_dgsp_loop(struct ek_dgsp_memory *m, struct ek_dgsp_part child, int64_t count, int64_t stride);
struct ek_dgsp_part ek_dgsp_index(struct ek_dgsp_memory *m, struct ek_dgsp_part child, const int64_t *at, int64_t count);
/* These write into the array that they are given. */
struct ek_dgsp_part ek_dgsp_blocks(struct ek_dgsp_memory *m, int64_t *at, int64_t *length, int64_t count);
struct ek_dgsp_part ek_dgsp_sequence(struct ek_dgsp_memory *m, struct ek_dgsp_part *parts, int64_t count);
void ek_dgsp_forget(struct ek_dgsp_memory *m);

/* Whether `stride` bytes apart, no byte is touched by two pieces of the child. */
bool ek_dgsp_any_order(const struct ek_dgsp *child, int64_t stride);

/* What is executed: a loop, which is not in the program itself, over whole
 * datatypes. */
struct ek_dgsp_run {
	const struct ek_dgsp *type;
	int64_t at;        /* where its first one begins, from the buffer's address */
	int64_t extent;    /* from one to the next */
	bool any_order;
};

/* Copies bytes [from, to) of the packed form of as many as it takes, which
 * `packed` points at, from the user's buffer or to it. */
void ek_dgsp_pack(const struct ek_dgsp_run *run, const char *buffer, char *packed, int64_t from, int64_t to);
void ek_dgsp_unpack(const struct ek_dgsp_run *run, char *buffer, const char *packed, int64_t from, int64_t to);

#endif
