/* python.h - which line of a Python program a call comes from.
 *
 * mpi4py is one module, from which all of a Python program's calls come. So for
 * those the call site is the place of the Python code that called mpi4py: the
 * address of the instruction that the interpreter is at, which is no other's as
 * long as its code exists. mpi4py has given up the interpreter's lock by then; but
 * the frames of a thread that is inside MPI are its own and stand still, and are
 * read as they lie. What the place is called is asked of Python itself, with the
 * lock, once for each place.
 *
 * Of CPython since 3.9, whose frames are found by trying in MPI_Init; elsewhere,
 * and where MPI is called by other modules, sites are addresses as in C.
 */
#ifndef EK_PYTHON_H
#define EK_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After MPI_Init: whether calls can come from Python. */
void ek_python_start(void);
extern bool ek_python_started;

/* The call site of a call whose return address that is. */
uint64_t ek_python_site(uint64_t address);

/* If the thread is at that place: its name, "FILE::FUNCTION", and its line. Waits
 * for the interpreter's lock; slow. */
bool ek_python_name(uint64_t place, char *name, size_t size, uint64_t *line);

#endif
