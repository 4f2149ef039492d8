#include "shared_heap.h"

#include <stdbool.h>

#include "evenkeel_result.h"

/* The first words of a part: of a free one its length and the next free one, of one
 * in use its length and its mark. */
enum { LENGTH = 0, NEXT = 8, MARK = 16, FIRST = EK_HEAP_UNIT /* the unit before is the head of the list */ };

/* Says that the part at an offset is in use. No length looks like it. */
static uint64_t mark(uint64_t offset)
{
	return (uint64_t)0xe5a1d8c3 << 32 ^ offset;
}

/* Ends the calling function with what went wrong. */
#define TRY(call)                             \
	do {                                  \
		int result_of_call = (call);  \
		if (result_of_call != EK_OK)  \
			return result_of_call; \
	} while (0)

int ek_heap_format(const struct ek_heap *h, uint64_t bytes)
{
	bytes -= bytes % EK_HEAP_UNIT;
	if (bytes < 3 * EK_HEAP_UNIT) /* the head, a header and a part */
		return EK_UPC_NO_MEMORY;
	TRY(h->store(h, LENGTH, 0));
	TRY(h->store(h, NEXT, FIRST));
	TRY(h->store(h, FIRST + LENGTH, bytes - FIRST));
	TRY(h->store(h, FIRST + NEXT, 0));
	return h->store(h, FIRST + MARK, 0);
}

/* Makes the beginning of a free part one in use, and leaves the rest. */
static int take(const struct ek_heap *h, uint64_t before, uint64_t at, uint64_t length, uint64_t need)
{
	uint64_t next;
	TRY(h->load(h, at + NEXT, &next));
	if (length > need) {
		uint64_t rest = at + need;
		TRY(h->store(h, rest + LENGTH, length - need));
		TRY(h->store(h, rest + NEXT, next));
		TRY(h->store(h, rest + MARK, 0));
		next = rest;
	}
	TRY(h->store(h, before + NEXT, next));
	TRY(h->store(h, at + LENGTH, need));
	return h->store(h, at + MARK, mark(at));
}

int ek_heap_allocate(const struct ek_heap *h, uint64_t bytes, uint64_t *offset)
{
	if (bytes > (uint64_t)1 << 62)
		return EK_UPC_NO_MEMORY;
	uint64_t units = bytes ? (bytes + EK_HEAP_UNIT - 1) / EK_HEAP_UNIT : 1, need = (1 + units) * EK_HEAP_UNIT;
	for (uint64_t before = 0, at, length;; before = at) {
		TRY(h->load(h, before + NEXT, &at));
		if (at == 0)
			return EK_UPC_NO_MEMORY;
		TRY(h->load(h, at + LENGTH, &length));
		if (length >= need) {
			*offset = at + EK_HEAP_UNIT;
			return take(h, before, at, length, need);
		}
	}
}

int ek_heap_room(const struct ek_heap *h, uint64_t offset, uint64_t *bytes)
{
	int result = h->load(h, offset - EK_HEAP_UNIT + LENGTH, bytes);
	*bytes -= EK_HEAP_UNIT;
	return result;
}

static int in_use(const struct ek_heap *h, uint64_t offset)
{
	uint64_t word;
	if (offset < FIRST + EK_HEAP_UNIT || offset % EK_HEAP_UNIT != 0)
		return EK_UPC_FREED;
	TRY(h->load(h, offset - EK_HEAP_UNIT + MARK, &word));
	return word == mark(offset - EK_HEAP_UNIT) ? EK_OK : EK_UPC_FREED;
}

int ek_heap_free(const struct ek_heap *h, uint64_t offset)
{
	uint64_t at = offset - EK_HEAP_UNIT, length, more, before = 0, next;
	TRY(in_use(h, offset));
	TRY(h->load(h, at + LENGTH, &length));
	for (;;) { /* the free parts on both sides */
		TRY(h->load(h, before + NEXT, &next));
		if (next == 0 || next > at)
			break;
		before = next;
	}
	TRY(h->store(h, at + MARK, 0));
	if (next != 0 && at + length == next) {
		TRY(h->load(h, next + LENGTH, &more));
		TRY(h->load(h, next + NEXT, &next));
		length += more;
	}
	if (before != 0) {
		TRY(h->load(h, before + LENGTH, &more));
		if (before + more == at) {
			TRY(h->store(h, before + LENGTH, more + length));
			return h->store(h, before + NEXT, next);
		}
	}
	TRY(h->store(h, at + LENGTH, length));
	TRY(h->store(h, at + NEXT, next));
	return h->store(h, before + NEXT, at);
}
