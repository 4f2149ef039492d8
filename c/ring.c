/* ring.c - see ring.h.
 *
 * Open MPI's transports are tables of functions, which its engine calls with the
 * end of the peer that it sends to. Two of vader's are replaced by ours, which
 * look whether the ring has a place and pass on; where it has none, the ring is
 * out of the transport's sight during the call.
 */
#define _GNU_SOURCE
#include "ring.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>

#include "clock.h"
#include "process.h"
#include "room.h"

/* A sender's end of a ring, as vader keeps it at RING_AT in what it knows of a
 * peer. Offsets in the ring have a bit more, which turns with each lap. */
struct ring {
	unsigned char *entries; /* null: there is none */
	uint32_t *taken;        /* how far the receiver has come: the ring's first word */
	uint32_t start;         /* that, when it was last read */
	uint32_t end;
	uint16_t number;        /* of the next entry */
};

enum { RING_AT = 64 };

/* Two words before the data of an entry. */
struct entry {
	uint32_t length;
	uint16_t kind, number;
};

static const uint32_t lap = 0x80000000;

enum {
	FIRST = 32,       /* bytes: where the first entry begins, what entries are aligned to, and the shortest one */
	REFERENCE = 0xfe, /* the kind of an entry that says where a fragment is, */
	WORD = 8,         /* in so many bytes */
	INLINE = 256,     /* bytes that ob1 sends without a request: it never waits for those while there is a place */
	PATIENCE_US = 5,  /* so long a receiver may take nothing before we go past its ring */
};

/* What ABIs of x86-64 pass on the stack, each in a word of its own: as one thing,
 * since it then stays there when the call is passed on. */
struct rest {
	uint64_t order, flags;
	uint64_t kind; /* 8 bits of it */
	void **descriptor;
};

typedef int sendi_function(void *module, void *peer, void *convertor, void *header, size_t header_size,
                           size_t payload_size, struct rest rest);
typedef int send_function(void *module, void *peer, void *descriptor, uint8_t kind);

static struct {
	sendi_function *sendi, **sendi_place;
	send_function *send, **send_place;
} next;

__thread bool ek_ring_counts_not;

static uint32_t size; /* of a ring */
static uint32_t safe; /* as long as its end is not beyond, and in the lap of its start, a short message has a place */

/* ---- the proof ----------------------------------------------------------- */

/* Whether the ends of rings are what we take them for. */
static enum { UNKNOWN, PROVEN, OTHERWISE } layout;

static inline struct ring *ring_of(void *peer)
{
	return (struct ring *)((char *)peer + RING_AT);
}

static uint32_t entry_size(size_t length)
{
	return (uint32_t)((length + sizeof(struct entry) + FIRST - 1) / FIRST * FIRST);
}

static bool is_offset(uint32_t word)
{
	uint32_t offset = word & ~lap;
	return offset >= FIRST && offset < size && offset % FIRST == 0;
}

/* Has Open MPI send, and sees whether an entry came of it where it should, if
 * what stands there before looks like a ring whose end is not near. */
static int watched(void *module, void *peer, void *convertor, void *header, size_t header_size, size_t payload_size,
                   struct rest rest)
{
	struct ring *ring = ring_of(peer);
	struct ring before = *ring;
	size_t length = header_size + payload_size;
	int result = next.sendi(module, peer, convertor, header, header_size, payload_size, rest);
	if (result != 0 || !before.entries || ring->entries != before.entries)
		return result;
	if (before.entries != (void *)before.taken || !is_offset(before.start) || !is_offset(before.end)) {
		layout = OTHERWISE;
		return result;
	}
	uint32_t at = before.end & ~lap;
	if (((before.start ^ before.end) & lap) || size - at <= entry_size(length))
		return result; /* another time */
	const struct entry *entry = (void *)(before.entries + at);
	uint32_t advanced = ring->end - before.end;
	bool whole = entry->kind == (uint8_t)rest.kind && entry->length == length && advanced == entry_size(length);
	bool reference = entry->kind == REFERENCE && entry->length == WORD && advanced == FIRST;
	bool numbered = entry->number == before.number && ring->number == (uint16_t)(before.number + 1);
	layout = (whole || reference) && numbered ? PROVEN : OTHERWISE;
	if (layout == PROVEN && size > FIRST + 2 * INLINE)
		safe = size - 2 * INLINE;
	return result;
}

/* ---- sending ------------------------------------------------------------- */

/* Whether an entry for a message of that length, or at least for a reference to
 * its fragment, has a place if the receiver has come to `start`. What does not
 * fit before the ring's end begins the next lap, and the rest is left out. */
static inline bool has_place(const struct ring *ring, uint32_t start, size_t length)
{
	if ((start ^ ring->end) & lap)
		return ((start ^ ring->end) & ~lap) != 0;
	return (start & ~lap) != FIRST || length > size / 4 || size - (ring->end & ~lap) >= entry_size(length);
}

/* The receivers that were waited for last, and where they stood: as long as they
 * stand there, nobody waits for them again. */
static struct standing {
	const struct ring *ring;
	uint32_t at;
} standing[64];

static __attribute__((noinline)) bool is_stuck(const struct ring *ring, size_t length)
{
	uint32_t at = __atomic_load_n(ring->taken, __ATOMIC_ACQUIRE);
	struct standing *s = &standing[((uintptr_t)ring >> 6) % (sizeof standing / sizeof standing[0])];
	if (has_place(ring, at, length))
		return false;
	if (s->ring == ring && s->at == at)
		return true;
	/* Where ranks share processors the receiver can't come while we look. */
	for (uint64_t begun = ek_ticks(); !ek.crowded && ek_ticks() - begun < PATIENCE_US * ek_ticks_per_us;)
		if (has_place(ring, __atomic_load_n(ring->taken, __ATOMIC_ACQUIRE), length))
			return false;
	*s = (struct standing){ring, at};
	return true;
}

static inline bool is_past(const struct ring *ring, size_t length)
{
	return ring->entries && EK_UNLIKELY(!has_place(ring, ring->start, length)) && is_stuck(ring, length);
}

/* Whatever is not a short message with ample place. */
static __attribute__((noinline)) int sendi_otherwise(void *module, void *peer, void *convertor, void *header,
                                                     size_t header_size, size_t payload_size, struct rest rest)
{
	struct ring *ring = ring_of(peer);
	if (EK_UNLIKELY(layout == UNKNOWN))
		return watched(module, peer, convertor, header, header_size, payload_size, rest);
	unsigned char *entries = ring->entries;
	bool past = layout == PROVEN && is_past(ring, header_size + payload_size);
	if (past)
		ring->entries = 0;
	int result = next.sendi(module, peer, convertor, header, header_size, payload_size, rest);
	if (past)
		ring->entries = entries;
	if (result == 0 && (past || payload_size > INLINE) && !ek_ring_counts_not) {
		ek_count(EK_FAST_SENDS, 1);
		ek_count(EK_FAST_SENT_BYTES, payload_size);
	}
	return result;
}

static int sendi(void *module, void *peer, void *convertor, void *header, size_t header_size, size_t payload_size,
                 struct rest rest)
{
	const struct ring *ring = ring_of(peer);
	if (EK_LIKELY(payload_size <= INLINE && (ring->end ^ (ring->start & lap)) <= safe))
		return next.sendi(module, peer, convertor, header, header_size, payload_size, rest);
	return sendi_otherwise(module, peer, convertor, header, header_size, payload_size, rest);
}

/* The fragment is made: what is to go into the ring is a reference to it. */
static int send(void *module, void *peer, void *descriptor, uint8_t kind)
{
	struct ring *ring = ring_of(peer);
	if (EK_LIKELY(layout != PROVEN || !is_past(ring, WORD)))
		return next.send(module, peer, descriptor, kind);
	unsigned char *entries = ring->entries;
	ring->entries = 0;
	int result = next.send(module, peer, descriptor, kind);
	ring->entries = entries;
	return result;
}

/* ---- start and end ------------------------------------------------------- */

/* The place in the table that holds this function; null if none does, or several. */
static void **place_in(void *table, size_t bytes, const void *function)
{
	void **found = 0;
	for (void **place = table; function && (char *)(place + 1) <= (char *)table + bytes; place++) {
		if (*place != function)
			continue;
		if (found)
			return 0;
		found = place;
	}
	return found;
}

/* Open MPI 5 has renamed the transport; its parameters go by their old names too. */
static void *of_either_name(void *transport, const char *older, const char *newer)
{
	void *function = dlsym(transport, older);
	return function ? function : dlsym(transport, newer);
}

/* Its parameters are kept in the table itself, so it is found by one of them. */
static bool find_table(void)
{
	const void *flags = ek_room_parameter("btl_vader_flags");
	const unsigned *ring_size = ek_room_parameter("btl_vader_fbox_size");
	Dl_info info;
	const Elf64_Sym *symbol = 0;
	if (!flags || !ring_size || !dladdr1(flags, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || !info.dli_sname)
		return false;
	void *transport = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!transport)
		return false;
	next.sendi = (sendi_function *)of_either_name(transport, "mca_btl_vader_sendi", "mca_btl_sm_sendi");
	next.send = (send_function *)of_either_name(transport, "mca_btl_vader_send", "mca_btl_sm_send");
	dlclose(transport);
	next.sendi_place = (sendi_function **)place_in(info.dli_saddr, symbol->st_size, (void *)next.sendi);
	next.send_place = (send_function **)place_in(info.dli_saddr, symbol->st_size, (void *)next.send);
	size = *ring_size;
	return next.sendi_place && next.send_place;
}

/* Where several threads send, one would miss the ring that another hides: there
 * messages are counted only. */
void ek_ring_start(void)
{
#if defined(__x86_64__)
	if (!find_table())
		return;
	layout = ek.threads_multiple ? OTHERWISE : UNKNOWN;
	*next.sendi_place = sendi;
	*next.send_place = send;
#endif
}

void ek_ring_stop(void)
{
	if (!next.sendi_place || *next.sendi_place != sendi)
		return;
	*next.sendi_place = next.sendi;
	*next.send_place = next.send;
}
