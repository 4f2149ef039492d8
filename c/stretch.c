#define _GNU_SOURCE
#include "stretch.h"

#include <sys/mman.h>
#include <unistd.h>

/* Addresses on either side of what is asked for: so many times as many, and some. */
enum { ROOM = 8, SOME = 1 << 16 };

static int64_t page(void)
{
	static int64_t bytes;
	return bytes ? bytes : (bytes = sysconf(_SC_PAGESIZE));
}

static int64_t down(int64_t position) { return position & -page(); }
static int64_t up(int64_t position) { return down(position + page() - 1); }

/* Addresses without memory: they count towards no limit but that of addresses, so where
 * there is one, fewer do. */
static bool reserve(struct ek_stretch *s, int64_t from, int64_t to)
{
	for (int64_t room = ROOM * (to - from) + SOME;; room /= 2) {
		s->from = down(from - room);
		s->to = up(to + room);
		void *base = mmap(0, (size_t)(s->to - s->from), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base != MAP_FAILED) {
			s->base = base;
			s->open_from = s->open_to = down(from);
			madvise(base, (size_t)(s->to - s->from), MADV_HUGEPAGE);
			return true;
		}
		if (room == 0)
			return false;
	}
}

bool ek_stretch_new(struct ek_stretch *s, int64_t from, int64_t to)
{
	*s = (struct ek_stretch){0};
	if (!reserve(s, from, to + 1))
		return false;
	if (ek_stretch_open(s, from, to + 1))
		return true;
	ek_stretch_free(s);
	return false;
}

bool ek_stretch_open(struct ek_stretch *s, int64_t from, int64_t to)
{
	if (!s->base || from < s->from || to > s->to)
		return false;
	from = down(from) < s->open_from ? down(from) : s->open_from;
	to = up(to) > s->open_to ? up(to) : s->open_to;
	if (from == s->open_from && to == s->open_to)
		return true;
	if (mprotect(ek_stretch_at(s, from), (size_t)(to - from), PROT_READ | PROT_WRITE) != 0)
		return false;
	s->open_from = from;
	s->open_to = to;
	return true;
}

void ek_stretch_populate(const struct ek_stretch *s, int64_t from, int64_t to)
{
#ifdef MADV_POPULATE_WRITE
	madvise(ek_stretch_at(s, down(from)), (size_t)(up(to) - down(from)), MADV_POPULATE_WRITE);
#else
	(void)s, (void)from, (void)to;
#endif
}

static void give_back(const struct ek_stretch *s, int64_t from, int64_t to)
{
	madvise(ek_stretch_at(s, from), (size_t)(to - from), MADV_DONTNEED);
	mprotect(ek_stretch_at(s, from), (size_t)(to - from), PROT_NONE);
}

void ek_stretch_trim(struct ek_stretch *s, int64_t from, int64_t to)
{
	if (down(from) > s->open_from) {
		give_back(s, s->open_from, down(from));
		s->open_from = down(from);
	}
	if (up(to) < s->open_to) {
		give_back(s, up(to), s->open_to);
		s->open_to = up(to);
	}
}

void ek_stretch_free(struct ek_stretch *s)
{
	if (s->base)
		munmap(s->base, (size_t)(s->to - s->from));
	s->base = 0;
}
