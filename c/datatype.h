/* datatype.h - which datatypes have programs.
 *
 * A derived datatype is compiled when it is committed (or duplicated) and has
 * its program until MPI destroys it. Convertors name datatypes by address, so
 * the table is keyed by it. A program never meets another datatype than its own:
 *
 *  - it is set by whoever committed the datatype, who holds it;
 *  - a communication holds its datatype, so MPI_Type_free does not destroy it
 *    meanwhile (nor the program);
 *  - when MPI destroys it, and before it gives its memory back, the delete function
 *    of an attribute that we gave it takes the program out of the table.
 */
#ifndef EK_DATATYPE_H
#define EK_DATATYPE_H

#include "dgsp.h"
#include "next.h"
#include "process.h"

struct ek_datatype {
	struct ek_dgsp_run run;
	struct ek_dgsp_memory memory;
};

struct ek_datatype_slot {
	uintptr_t type; /* 0: free */
	const struct ek_datatype *program;
};

enum { EK_DATATYPE_BITS = 13 };
extern struct ek_datatype_slot ek_datatypes[1 << EK_DATATYPE_BITS];

/* The most slots that a program was ever put beyond the home of its type, past
 * those of others: few, as the table is never full. A search ends there, and not at
 * a free slot, which may have come free after the type was put behind it. */
extern unsigned ek_datatype_furthest;

/* Whether there may be anything in the table. */
extern bool ek_datatype_open;

/* In MPI_Init, if the user wants it and MPI is known well enough. */
void ek_datatype_start(void);
void ek_datatype_finish(void);

/* The datatype is committed: it gets a program if it has none, and one can be made. */
void ek_datatype_compile(MPI_Datatype type);

static inline uint64_t ek_datatype_home(uintptr_t type)
{
	return (uint64_t)type * 0x9e3779b97f4a7c15ull >> (64 - EK_DATATYPE_BITS);
}

/* The slot of a datatype; null if it is in none. */
static inline struct ek_datatype_slot *ek_datatype_slot_of(const void *type)
{
	uint64_t home = ek_datatype_home((uintptr_t)type);
	for (uint64_t i = home; i <= home + EK_LOAD(ek_datatype_furthest); i++) {
		struct ek_datatype_slot *slot = &ek_datatypes[i & ((1 << EK_DATATYPE_BITS) - 1)];
		if (EK_LIKELY(__atomic_load_n(&slot->type, __ATOMIC_ACQUIRE) == (uintptr_t)type))
			return slot;
	}
	return 0;
}

/* The program of a datatype that somebody holds, or null. A slot's program is
 * written before its type is published. */
static inline const struct ek_datatype *ek_datatype_find(const void *type)
{
	const struct ek_datatype_slot *slot = ek_datatype_slot_of(type);
	return EK_LIKELY(slot != 0) ? EK_LOAD(slot->program) : 0;
}

#endif
