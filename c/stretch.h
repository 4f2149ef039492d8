/* stretch.h - memory that grows at both ends and stays where it is: a part of a large range
 * of addresses, of which only what is used has pages. Places in it are positions, in bytes
 * from wherever the user counts from, also negative.
 */
#ifndef EK_STRETCH_H
#define EK_STRETCH_H

#include <stdbool.h>
#include <stdint.h>

struct ek_stretch {
	char *base;                    /* null: there is none */
	int64_t from, to;              /* positions of the addresses */
	int64_t open_from, open_to;    /* and of those that can be used */
};

static inline char *ek_stretch_at(const struct ek_stretch *s, int64_t position)
{
	return s->base + (position - s->from);
}

/* Gets a new one in which these positions can be used, and are zero. False: no memory. */
bool ek_stretch_new(struct ek_stretch *s, int64_t from, int64_t to);

/* Makes these positions usable beside those that are. What was not is zero. False: they are
 * beyond its addresses, or there is no memory; then all is as it was. */
bool ek_stretch_open(struct ek_stretch *s, int64_t from, int64_t to);

/* Gets the pages of positions that can be used, before they are. */
void ek_stretch_populate(const struct ek_stretch *s, int64_t from, int64_t to);

/* Gives memory outside of these positions back. */
void ek_stretch_trim(struct ek_stretch *s, int64_t from, int64_t to);

void ek_stretch_free(struct ek_stretch *s);

#endif
