/* typemap.h - datatypes of MPI as data gather/scatter programs. */
#ifndef EK_TYPEMAP_H
#define EK_TYPEMAP_H

#include "dgsp.h"
#include "next.h"

/* The program of one datatype that MPI has committed: asks MPI how it was made
 * (MPI_Type_get_envelope, MPI_Type_get_contents). False, with the memory
 * forgotten: it was made in a way that is not known here, it takes more memory
 * than it should, or the program does not cover the bytes that MPI says. A type
 * without data yields a null `type`. */
bool ek_typemap_program(struct ek_dgsp_memory *m, MPI_Datatype type, struct ek_dgsp_run *run);

#endif
