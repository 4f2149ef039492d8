/* echo.c - task 1 of two on a node, in C: answers each packet of task 0 with its
 * bytes inverted and its tag plus one, in the other class.
 *
 *	echo PACKETS
 *
 * Descriptor 3 is the area, 4 the doorbell of task 0, 5 its own, which it looks
 * at instead of sleeping.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fifo.h"

int main(int argc, char **argv)
{
	struct stat s;
	long left = argc > 1 ? atol(argv[1]) : 0;
	struct ek_fifo_header *area = fstat(3, &s) == 0
		? mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0) : MAP_FAILED;
	if (area == MAP_FAILED || __atomic_load_n(&area->magic, __ATOMIC_ACQUIRE) != EK_FIFO_MAGIC ||
	    area->layout != EK_FIFO_LAYOUT || area->tasks != 2 || (uint64_t)s.st_size != ek_fifo_offset(area, 2, 0, 0)) {
		fprintf(stderr, "echo: this is no area of two tasks\n");
		return 1;
	}
	struct ek_fifo_sender to[EK_FIFO_CLASSES];
	struct ek_fifo_receiver from[EK_FIFO_CLASSES];
	for (uint32_t class = 0; class < EK_FIFO_CLASSES; class++) {
		to[class] = ek_fifo_send_to(area, 0, 1, class, 4);
		from[class] = ek_fifo_receive_from(area, 1, 0, class, 4);
	}
	while (left > 0)
		for (int class = 0; class < EK_FIFO_CLASSES; class++) {
			uint64_t word;
			unsigned char *packet = ek_fifo_peek(&from[class], &word), *answer;
			if (!packet)
				continue;
			while (!(answer = ek_fifo_reserve(&to[1 - class], EK_FIFO_LENGTH(word))))
				;
			for (uint32_t i = 0; i < EK_FIFO_LENGTH(word); i++)
				answer[i] = (unsigned char)~packet[i];
			ek_fifo_publish(&to[1 - class], EK_FIFO_LENGTH(word), (uint8_t)(EK_FIFO_TAG(word) + 1));
			ek_fifo_release(&from[class]);
			left--;
		}
	return 0;
}
