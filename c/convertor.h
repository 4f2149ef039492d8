/* convertor.h - the place where Open MPI moves data that is not contiguous.
 *
 * All of Open MPI 4 (point-to-point, collectives, one-sided, files, MPI_Pack)
 * copies through two functions of its libopen-pal, opal_convertor_pack and
 * opal_convertor_unpack. A preloaded definition comes first; ours executes the
 * datatype's program if it has one, and passes on everything else. Fragments,
 * matching, truncation and counting stay Open MPI's.
 */
#ifndef EK_CONVERTOR_H
#define EK_CONVERTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The fields that we use of Open MPI's opal_convertor_t, where its version 4
 * has them. Nothing is read before ek_convertor_proven() has found them there. */
struct ek_convertor {
	void *object[2];
	uint32_t remote_architecture;
	uint32_t flags;
	size_t local_size; /* bytes in all */
	size_t remote_size;
	const void *type; /* the MPI_Datatype */
	const void *description;
	size_t count; /* of types */
	uint32_t stack_size;
	char *buffer; /* as the user gave it */
	void *stack;
	void *advance;
	void *master;
	uint32_t stack_position;
	size_t partial_length; /* of a basic type, of which the rest is awaited */
	size_t converted;      /* the position in the packed form */
};

enum ek_convertor_flags {
	EK_CONVERTOR_RECEIVES = 0x00020000,
	EK_CONVERTOR_SENDS = 0x00040000,
	EK_CONVERTOR_HOMOGENEOUS = 0x00080000,
	EK_CONVERTOR_NO_OP = 0x00100000, /* contiguous: nothing to do for us */
	EK_CONVERTOR_COMPLETED = 0x08000000,
	/* Conversion by the sender, checksums, memory of accelerators. */
	EK_CONVERTOR_SPECIAL = 0x00010000 | 0x00200000 | 0x00400000 | 0x00800000 | 0x10000000
};

/* Finds out whether Open MPI's convertors are what we take them for, by having
 * MPI pack and unpack and watching. */
bool ek_convertor_proven(void);

#endif
