/* layout.h - where the parts of a segment are, computed from the lengths in
 * its header. runtime/segment/layout.go says the same in Go; a test compares
 * the two.
 */
#ifndef EK_LAYOUT_H
#define EK_LAYOUT_H

#include <stddef.h>

#include "segment.h"

struct ek_layout {
	size_t modules, comms, members, regions, windows, bins, threads, history; /* offsets in a rank area */
	size_t barriers, arrivals;        /* too */
	size_t arrivals_everywhere;       /* too; of each barrier place, by number modulo EK_BARRIER_HISTORY
	                                     and rank of the communicator, words; nothing if there is one node */
	size_t arrivals_everywhere_size;  /* bytes from one barrier place to the next */
	size_t thread_size;               /* bytes from one thread part to the next */
	size_t thread_accounts, thread_ring; /* offsets in a thread part */
	size_t rank_area_size;
};

static inline struct ek_layout ek_layout_of(const struct ek_header *h)
{
	struct ek_layout l;
	size_t at = ek_pages(sizeof(struct ek_rank));
	l.modules = at;
	at += ek_pages(EK_MODULES * sizeof(struct ek_module));
	l.comms = at;
	at += ek_pages(EK_COMMS * sizeof(struct ek_comm));
	l.members = at;
	at += ek_pages(h->members * sizeof(uint32_t));
	l.regions = at;
	at += ek_pages(EK_REGIONS * sizeof(struct ek_region));
	l.windows = at;
	at += ek_pages(EK_WINDOWS * sizeof(struct ek_window));
	l.bins = at;
	at += ek_pages(EK_BINS * sizeof(struct ek_bin));
	l.barriers = at;
	at += ek_pages(EK_BARRIERS * sizeof(struct ek_barrier));
	l.arrivals = at;
	at += ek_pages(EK_BARRIERS * sizeof(struct ek_arrivals));
	l.threads = at;
	l.thread_accounts = ek_pages(sizeof(struct ek_thread));
	l.thread_ring = l.thread_accounts + ek_pages(h->accounts * sizeof(struct ek_account));
	l.thread_size = l.thread_ring + ek_pages(h->ring_events * sizeof(struct ek_event));
	at += h->thread_slots * l.thread_size;
	l.history = at;
	at += ek_pages(h->history_events * sizeof(struct ek_event));
	l.arrivals_everywhere = at;
	l.arrivals_everywhere_size = h->nodes > 1 ? ek_pages(sizeof(uint64_t) * EK_BARRIER_HISTORY * h->world_size) : 0;
	at += EK_BARRIERS * l.arrivals_everywhere_size;
	l.rank_area_size = at;
	return l;
}

#endif
