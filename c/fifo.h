/* fifo.h - injection FIFOs between the tasks of a node, in memory that they
 * share: the one place where their layout is written.
 *
 *   area:  header | a page for each task | the FIFOs
 *   FIFO:  two lines of counters | slots | shadow buffers
 *
 * A FIFO leads from one task (its sender) to one task (its receiver), one for
 * each class, so that each of its words has one writer. A slot is one cache
 * line: what is to be sent, up to 56 bytes, travels in the same line as the word
 * that says that it is there, so a packet costs one transfer of a line, the least
 * that it can. What is longer goes into the shadow buffer that is tied to the
 * slot, one to one: it is the sender's again when the slot is, and nobody keeps
 * account of it.
 *
 * The word of a slot holds the packet's number in the FIFO, plus one, so a slot
 * is full for one reader at one time, and need never be emptied. The receiver
 * says how far it has come only four times a round, in a line that the sender
 * reads only when it has used up what it knew of.
 *
 * Which senders a receiver has to look at stands in its page as one bit each,
 * set before the first packet and never cleared: memory of a FIFO that nobody
 * uses is never touched. A receiver that sleeps says so (`asleep`), and is then
 * woken through its doorbell, a descriptor to which one byte is written.
 *
 * C uses the functions below; runtime/fabric/shm does the same from Go, on the
 * same memory. Words that both sides touch are aligned and are read and written
 * atomically; the order stands at each access.
 */
#ifndef EK_FIFO_H
#define EK_FIFO_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define EK_FIFO_MAGIC 0x4f464946454b4e45ull /* "ENKEFIFO" read as a little-endian word */
#define EK_FIFO_LAYOUT 1
#define EK_FIFO_LINE 64
#define EK_FIFO_PAGE 4096
#define EK_FIFO_INLINE 56  /* bytes that travel in the slot itself */
#define EK_FIFO_CLASSES 2  /* control goes before bulk */
#define EK_FIFO_TASKS 1024 /* of a node */

/* In a slot's word, below the 32 bits of the packet's number: 24 bits of length,
 * and eight that are the user's own. */
#define EK_FIFO_LENGTH_BITS 24
#define EK_FIFO_WORD(position, tag, length) \
	((uint64_t)(uint32_t)((position) + 1) << 32 | (uint64_t)(uint8_t)(tag) << EK_FIFO_LENGTH_BITS | (uint32_t)(length))
#define EK_FIFO_LENGTH(word) ((uint32_t)(word) & ((1u << EK_FIFO_LENGTH_BITS) - 1))
#define EK_FIFO_TAG(word) ((uint8_t)((word) >> EK_FIFO_LENGTH_BITS))

struct ek_fifo_header {
	uint64_t magic;  /* written last, with release order */
	uint32_t layout; /* EK_FIFO_LAYOUT */
	uint32_t tasks;  /* of the node: a page each, and a FIFO of each class for each pair */
	uint32_t slots;  /* of a FIFO: a power of two, at least 4 */
	uint32_t buffer; /* bytes of a shadow buffer: a multiple of a line */
};

/* A task's page. */
struct ek_fifo_task {
	uint32_t asleep; /* the task: 1 while it may sleep, and wants its doorbell rung */
	uint32_t unused[15];
	uint64_t senders[EK_FIFO_TASKS / 64]; /* senders: a bit each, once there is something in its FIFO */
};

struct ek_fifo_slot {
	uint64_t word; /* EK_FIFO_WORD; release order: the packet is complete */
	unsigned char payload[EK_FIFO_INLINE];
};

struct ek_fifo {
	/* The receiver's line. */
	uint64_t taken; /* packets that it has done with, told now and then; release order */
	uint64_t unused_receiver[7];
	/* The sender's line. */
	uint64_t sent;    /* packets; its own alone */
	uint32_t waiting; /* 1: it found the FIFO full, and wants its doorbell rung when there is room */
	uint32_t unused_sender[13];
	struct ek_fifo_slot slot[]; /* and after the slots, a shadow buffer for each */
};

_Static_assert(sizeof(struct ek_fifo_slot) == EK_FIFO_LINE, "a slot is one cache line");
_Static_assert(sizeof(struct ek_fifo) == 2 * EK_FIFO_LINE, "what each side writes is a line of its own");
_Static_assert(sizeof(struct ek_fifo_task) <= EK_FIFO_PAGE, "a task's words fit its page");

/* Bytes of one FIFO, in whole pages. */
static inline uint64_t ek_fifo_bytes(uint32_t slots, uint32_t buffer)
{
	uint64_t bytes = sizeof(struct ek_fifo) + (uint64_t)slots * (sizeof(struct ek_fifo_slot) + buffer);
	return (bytes + EK_FIFO_PAGE - 1) & ~(uint64_t)(EK_FIFO_PAGE - 1);
}

/* Where a FIFO begins in its area; with receiver == tasks, sender == class == 0,
 * where the area ends. */
static inline uint64_t ek_fifo_offset(const struct ek_fifo_header *area, uint32_t receiver, uint32_t sender,
	uint32_t class)
{
	uint64_t number = ((uint64_t)receiver * area->tasks + sender) * EK_FIFO_CLASSES + class;
	return (uint64_t)EK_FIFO_PAGE * (1 + area->tasks) + number * ek_fifo_bytes(area->slots, area->buffer);
}

static inline struct ek_fifo *ek_fifo_at(struct ek_fifo_header *area, uint32_t receiver, uint32_t sender, uint32_t class)
{
	return (struct ek_fifo *)((unsigned char *)area + ek_fifo_offset(area, receiver, sender, class));
}

static inline struct ek_fifo_task *ek_fifo_task(struct ek_fifo_header *area, uint32_t task)
{
	return (struct ek_fifo_task *)((unsigned char *)area + (uint64_t)EK_FIFO_PAGE * (1 + task));
}

/* Has task wake up if it sleeps. For whoever has published something that task
 * waits for; the fence keeps that before the look at `asleep`, as the task keeps
 * `asleep` before its last look at what it waits for. */
static inline void ek_fifo_ring(struct ek_fifo_task *task, int doorbell)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&task->asleep, __ATOMIC_RELAXED), 0)) {
		int before = errno;
		ssize_t rung = write(doorbell, "", 1); /* a bell that is full of rings is rung already */
		(void)rung;
		errno = before;
	}
}

/* ---- the sender's side ---------------------------------------------------- */

/* What a sender knows of its FIFO, in memory of its own. One thread at a time. */
struct ek_fifo_sender {
	struct ek_fifo *fifo;
	unsigned char *buffers;
	uint32_t slots, buffer;
	uint64_t position; /* of the next packet */
	uint64_t limit;    /* positions below this are free, as far as is known */
	struct ek_fifo_task *task; /* the receiver's page, */
	int doorbell;              /* and its bell; -1: it never sleeps */
};

/* Begins to send from task `sender` to task `receiver`. The FIFO's memory must
 * be there (a full /dev/shm is a SIGBUS at the first touch). Lives until its
 * user forgets it. */
static inline struct ek_fifo_sender ek_fifo_send_to(struct ek_fifo_header *area, uint32_t receiver, uint32_t sender,
	uint32_t class, int doorbell)
{
	struct ek_fifo *fifo = ek_fifo_at(area, receiver, sender, class);
	struct ek_fifo_sender s = {
		.fifo = fifo,
		.buffers = (unsigned char *)(fifo->slot + area->slots),
		.slots = area->slots,
		.buffer = area->buffer,
		.position = fifo->sent,
		.limit = __atomic_load_n(&fifo->taken, __ATOMIC_ACQUIRE) + area->slots,
		.task = ek_fifo_task(area, receiver),
		.doorbell = doorbell,
	};
	__atomic_fetch_or(&s.task->senders[sender / 64], (uint64_t)1 << sender % 64, __ATOMIC_RELEASE);
	return s;
}

static inline bool ek_fifo_room_again(struct ek_fifo_sender *s)
{
	/* acquire: the receiver has read the slots before we write them again */
	s->limit = __atomic_load_n(&s->fifo->taken, __ATOMIC_ACQUIRE) + s->slots;
	return s->position != s->limit;
}

/* Where the next packet of that length is to be written, or null: the FIFO is
 * full now. length: at most EK_FIFO_INLINE or the size of a shadow buffer,
 * whichever is more. */
static inline void *ek_fifo_reserve(struct ek_fifo_sender *s, uint32_t length)
{
	if (__builtin_expect(s->position == s->limit, 0) && !ek_fifo_room_again(s))
		return NULL;
	uint64_t at = s->position & (s->slots - 1);
	return length <= EK_FIFO_INLINE ? (void *)s->fifo->slot[at].payload : (void *)(s->buffers + at * s->buffer);
}

/* Sends what was written where ek_fifo_reserve said. */
static inline void ek_fifo_publish(struct ek_fifo_sender *s, uint32_t length, uint8_t tag)
{
	uint64_t position = s->position++;
	s->fifo->sent = s->position;
	/* release: the payload before the word that says it is there */
	__atomic_store_n(&s->fifo->slot[position & (s->slots - 1)].word, EK_FIFO_WORD(position, tag, length), __ATOMIC_RELEASE);
	if (s->doorbell >= 0)
		ek_fifo_ring(s->task, s->doorbell);
}

/* ---- the receiver's side -------------------------------------------------- */

/* What a receiver knows of a FIFO. One thread at a time. */
struct ek_fifo_receiver {
	struct ek_fifo *fifo;
	unsigned char *buffers;
	uint32_t slots, buffer;
	uint64_t position; /* of the packet to come */
	struct ek_fifo_task *task; /* the sender's page, */
	int doorbell;              /* and its bell; -1: it never sleeps */
};

static inline struct ek_fifo_receiver ek_fifo_receive_from(struct ek_fifo_header *area, uint32_t receiver,
	uint32_t sender, uint32_t class, int doorbell)
{
	struct ek_fifo *fifo = ek_fifo_at(area, receiver, sender, class);
	return (struct ek_fifo_receiver){
		.fifo = fifo,
		.buffers = (unsigned char *)(fifo->slot + area->slots),
		.slots = area->slots,
		.buffer = area->buffer,
		.position = __atomic_load_n(&fifo->taken, __ATOMIC_RELAXED),
		.task = ek_fifo_task(area, sender),
		.doorbell = doorbell,
	};
}

/* The next packet and its word, or null: there is none yet. It stays where it
 * is, and may be written over, until ek_fifo_release. A length that can't be is
 * cut to what the slot can hold. */
static inline void *ek_fifo_peek(struct ek_fifo_receiver *r, uint64_t *word)
{
	uint64_t at = r->position & (r->slots - 1);
	struct ek_fifo_slot *slot = &r->fifo->slot[at];
	uint64_t w = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
	if ((uint32_t)(w >> 32) != (uint32_t)(r->position + 1))
		return NULL;
	if (__builtin_expect(EK_FIFO_LENGTH(w) <= EK_FIFO_INLINE, 1)) {
		*word = w;
		return slot->payload;
	}
	if (EK_FIFO_LENGTH(w) > r->buffer)
		w = EK_FIFO_WORD(r->position, EK_FIFO_TAG(w), r->buffer);
	*word = w;
	return r->buffers + at * r->buffer;
}

/* Gives the slot of the packet that ek_fifo_peek showed back to the sender. */
static inline void ek_fifo_release(struct ek_fifo_receiver *r)
{
	r->position++;
	if (__builtin_expect(r->position & (r->slots / 4 - 1), 1))
		return;
	/* release: the packets were read before their slots are written again */
	__atomic_store_n(&r->fifo->taken, r->position, __ATOMIC_RELEASE);
	if (r->doorbell < 0)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* `taken` before the look at `waiting` */
	if (__atomic_load_n(&r->fifo->waiting, __ATOMIC_RELAXED))
		ek_fifo_ring(r->task, r->doorbell);
}

#endif
