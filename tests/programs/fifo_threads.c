/* fifo_threads.c - injection FIFOs between two threads of one process, so that
 * sanitizers see both sides: each sends the other packets of both classes, and
 * sleeps by its doorbell when there is nothing to do.
 *
 *	fifo_threads SEED PACKETS
 *
 * Prints "ok". Needs no MPI.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fifo.h"

enum { TASKS = 2, SLOTS = 16, BUFFER = 256 };

static struct ek_fifo_header *area;
static int bells[TASKS][2]; /* pipes: read, write */
static uint64_t seed, packets;

static void fail(const char *what, uint32_t task, uint64_t packet)
{
	fprintf(stderr, "fifo_threads: seed %llu, task %u, packet %llu: %s\n", (unsigned long long)seed, task,
	        (unsigned long long)packet, what);
	exit(1);
}

/* Task 1 has soon sent all: from then on only the bell for room wakes task 0. */
static uint64_t packets_of(uint32_t task)
{
	return task ? packets / 8 : packets;
}

/* What packet of a class a task sends: its length; and its bytes from the first on. */
static uint32_t length_of(uint32_t task, uint32_t class, uint64_t packet)
{
	uint64_t mixed = (seed + packet * 2 + class) * 0x9e3779b97f4a7c15ull + task;
	mixed ^= mixed >> 29;
	return (uint32_t)(mixed >> 8) % (mixed & 1 ? EK_FIFO_INLINE + 2 : BUFFER + 1);
}

static unsigned char byte_of(uint32_t task, uint32_t class, uint64_t packet, uint32_t i)
{
	return (unsigned char)(packet * 7 + i * 3 + class + task * 101);
}

static bool send_some(struct ek_fifo_sender *to, uint32_t self, uint32_t class, uint64_t *sent)
{
	if (*sent == packets_of(self))
		return false;
	const uint32_t length = length_of(self, class, *sent);
	unsigned char *place = ek_fifo_reserve(to, length);
	if (!place)
		return false;
	for (uint32_t i = 0; i < length; i++)
		place[i] = byte_of(self, class, *sent, i);
	ek_fifo_publish(to, length, (uint8_t)*sent);
	++*sent;
	return true;
}

static bool receive_some(struct ek_fifo_receiver *from, uint32_t peer, uint32_t class, uint64_t *received)
{
	uint64_t word;
	const unsigned char *place = ek_fifo_peek(from, &word);
	if (!place)
		return false;
	if (EK_FIFO_LENGTH(word) != length_of(peer, class, *received) || EK_FIFO_TAG(word) != (uint8_t)*received)
		fail("the wrong packet has come", 1 - peer, *received);
	for (uint32_t i = 0; i < EK_FIFO_LENGTH(word); i++)
		if (place[i] != byte_of(peer, class, *received, i))
			fail("its bytes are not those that were sent", 1 - peer, *received);
	ek_fifo_release(from);
	++*received;
	return true;
}

static void *task(void *number)
{
	const uint32_t self = *(uint32_t *)number, peer = 1 - self;
	struct ek_fifo_sender to[EK_FIFO_CLASSES];
	struct ek_fifo_receiver from[EK_FIFO_CLASSES];
	uint64_t sent[EK_FIFO_CLASSES] = {0}, received[EK_FIFO_CLASSES] = {0};
	struct ek_fifo_task *page = ek_fifo_task(area, self);
	for (uint32_t class = 0; class < EK_FIFO_CLASSES; class++) {
		to[class] = ek_fifo_send_to(area, peer, self, class, bells[peer][1]);
		from[class] = ek_fifo_receive_from(area, self, peer, class, bells[peer][1]);
	}
	for (;;) {
		bool some = false, over = true;
		for (uint32_t class = 0; class < EK_FIFO_CLASSES; class++) {
			some |= send_some(&to[class], self, class, &sent[class]);
			some |= receive_some(&from[class], peer, class, &received[class]);
			over &= sent[class] == packets_of(self) && received[class] == packets_of(peer);
		}
		if (over)
			return 0;
		if (some)
			continue;
		/* Nothing to do: until the bell, with a last look in between. */
		__atomic_store_n(&page->asleep, 1, __ATOMIC_SEQ_CST);
		for (uint32_t class = 0; class < EK_FIFO_CLASSES; class++) {
			__atomic_store_n(&to[class].fifo->waiting, sent[class] < packets_of(self), __ATOMIC_SEQ_CST);
			some |= send_some(&to[class], self, class, &sent[class]);
			some |= receive_some(&from[class], peer, class, &received[class]);
		}
		if (!some) {
			struct pollfd bell = {.fd = bells[self][0], .events = POLLIN};
			char rings[64];
			if (poll(&bell, 1, 20000) == 0)
				fail("nobody rings the bell", self, received[0]);
			while (read(bells[self][0], rings, sizeof rings) > 0)
				;
		}
		__atomic_store_n(&page->asleep, 0, __ATOMIC_RELAXED);
	}
}

int main(int argc, char **argv)
{
	const struct ek_fifo_header header = {
		.magic = EK_FIFO_MAGIC, .layout = EK_FIFO_LAYOUT, .tasks = TASKS, .slots = SLOTS, .buffer = BUFFER};
	uint32_t numbers[TASKS] = {0, 1};
	pthread_t threads[TASKS];
	seed = argc > 1 ? strtoull(argv[1], 0, 10) : 1;
	packets = argc > 2 ? strtoull(argv[2], 0, 10) : 10000;
	const uint64_t bytes = ek_fifo_offset(&header, TASKS, 0, 0);
	area = aligned_alloc(EK_FIFO_PAGE, bytes);
	memset(area, 0, bytes);
	*area = header;
	for (int i = 0; i < TASKS; i++)
		if (pipe(bells[i]) != 0 || fcntl(bells[i][0], F_SETFL, O_NONBLOCK) != 0 || fcntl(bells[i][1], F_SETFL, O_NONBLOCK) != 0)
			return 2;
	for (int i = 0; i < TASKS; i++)
		if (pthread_create(&threads[i], 0, task, &numbers[i]) != 0)
			return 2;
	for (int i = 0; i < TASKS; i++)
		pthread_join(threads[i], 0);
	free(area);
	puts("ok");
	return 0;
}
