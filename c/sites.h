/* sites.h - call sites as module and offset, the same on every rank. */
#ifndef EK_SITES_H
#define EK_SITES_H

#include <stdint.h>

/* The number of the program or library that contains the address (0 if none
 * is known), and the address in its file; of a place in a Python program, of its
 * function, and its line. Takes ek.lock; slow. */
uint64_t ek_module_of(uint64_t address, uint64_t *offset);

/* Where a function was called whose caller's frame stands in the first word of its own:
 * if that is in a procedure of the Fortran module evenkeel, where the program called
 * that. */
const void *ek_fortran_caller(const void *address, const void *frame);

#endif
