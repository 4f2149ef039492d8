/* regions.h - parts of the program, marked by MPI_Pcontrol or evenkeel.h. */
#ifndef EK_REGIONS_H
#define EK_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { EK_REGION_WHOLE = 0, EK_REGION_OFF = 1 }; /* fixed entries of the table */

extern uint32_t ek_region_now; /* the innermost open region */

/* Sets up the fixed entries, and opens the whole run at `ticks`. */
void ek_regions_start(uint64_t ticks);
/* Closes all that is open, for the final figures. */
void ek_regions_stop(uint64_t ticks);

bool ek_region_open(const char *name);
void ek_region_close(const char *name); /* null: the innermost */

/* MPI_Pcontrol's level, and what follows it if that is a readable, printable
 * string: 0 recording off, 1 on, (1, "name") begins and (-1, "name") ends a
 * region, n > 2 and -n the region "n". A program that uses 0 and no (-1, "name")
 * means "on" by 1 whatever follows it. */
void ek_pcontrol(int level, const char *name);

/* Whether there is a string of two letters or more at the address that may be
 * read and shown. */
bool ek_printable(const void *address);

#endif
