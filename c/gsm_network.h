/* gsm_network.h - how C's commands get to tasks on other nodes: the service
 * "gsm" of the Go runtime (see runtime.h).
 *
 * The reliability protocol and the networks are Go's. Between the two languages
 * there is memory: a command is written where it stays until its job ends, and
 * put into a FIFO that the Go side takes as a whole, so that commands accumulate
 * and are taken in batches. Its end is written into it. What crosses is only who
 * has to wait for such an end, and drives the protocol meanwhile, and a ring of
 * the doorbell when nobody takes commands.
 */
#ifndef EK_GSM_NETWORK_H
#define EK_GSM_NETWORK_H

#include <stdint.h>

#include "evenkeel_gsm.h"

#define EK_GSM_NETWORK_VERSION 4

/* Besides those of enum ek_gsm_operation; the numbers are those of the packets. */
enum { EK_GSM_PUT_BYTES = 1, EK_GSM_GET_BYTES = 2, EK_GSM_MESSAGE = 13 };

enum ek_gsm_progress { EK_GSM_ENDED, EK_GSM_UNDER_WAY };

/* A command, and what became of it. It belongs to C while it is ENDED, and to the
 * Go side from the moment that it is in the FIFO until then. */
struct ek_gsm_command {
	struct ek_gsm_command *next; /* in the FIFO: the one that was put there before */
	uint64_t operation_number;   /* the Go side's own; 0 at first */
	uint32_t progress;           /* release order: its end is complete */
	uint32_t result;             /* EK_OK, or why it failed */
	uint64_t value;              /* the word before an atomic */
	uint32_t operation, width;
	struct ek_gsm_address at;
	void *data; /* what a PUT or message reads, and a GET writes: */
	uint64_t bytes;
	uint64_t operand, compare;
	uint32_t key; /* under which it goes; 0: the job's */
};

/* The secret of a narrower key, in bytes, and how many keys a task may have had. */
enum { EK_GSM_SECRET = 32, EK_GSM_KEYS = 65535 };

/* Commands that wait to be taken: the one that came last, which leads to the
 * others. Any thread puts commands there, and whoever takes them takes all. */
struct ek_gsm_fifo {
	struct ek_gsm_command *last;
	uint32_t asleep;  /* 1: nobody takes them before the doorbell has rung */
	int32_t doorbell; /* an event descriptor: rung by writing 1 */
};

/* A message that came from another node. */
struct ek_gsm_letter {
	struct ek_gsm_letter *next; /* in the inbox: the one that came before */
	uint32_t source, bytes;
	unsigned char data[];
};

/* Letters for whoever runs handlers: the newest, which leads to the others. */
struct ek_gsm_inbox {
	struct ek_gsm_letter *last;
	uint64_t taken, put; /* letters; each counter has one writer. Only so many may lie there: */
};
enum { EK_GSM_INBOX = 1024 };

/* MPI's messages, for a network that goes over them. Any thread calls these, one at
 * a time, while the program calls MPI. A message is a packet: its path, and its data;
 * its tag is the class. All return EK_OK, or something else if MPI failed. */
enum { EK_GSM_CLASSES = 2, EK_GSM_SENDS = 64, EK_GSM_LONGEST = 3072 };
struct ek_gsm_mpi {
	void *context; /* valid until MPI ends */
	/* Makes a communicator for them; why not, in `text` (EK_GSM_TEXT bytes). Collective. */
	int (*open)(void *context, char *text);
	/* Begins to send from a slot of a class, of EK_GSM_SENDS, whose last message has
	 * been sent; at most EK_GSM_LONGEST bytes with the path. */
	int (*send)(void *context, uint32_t class, uint32_t slot, uint32_t to, uint8_t path, const void *data, uint64_t bytes);
	int (*sent)(void *context, uint32_t class, uint32_t slot, int *over);
	/* Looks for a message of a class, which `receive` then receives. */
	int (*find)(void *context, uint32_t class, uint32_t *source, uint64_t *bytes, int *found);
	int (*receive)(void *context, void *buffer, uint64_t bytes);
};

/* What a task joins the network with. */
struct ek_gsm_membership {
	uint32_t task, tasks;
	uint32_t apart; /* 1: tasks of the node are reached over the network too */
	uint32_t unused;
	struct ek_gsm_area *area; /* its memory, for the commands of others */
	struct ek_gsm_fifo *fifo;
	struct ek_gsm_inbox *inbox;
	struct ek_gsm_mpi mpi;
	/* So many bytes of each task, by number; collective. 0, or it failed. Called
	 * only inside `join`, by the thread that called that. */
	int (*allgather)(void *context, const void *mine, void *all, uint64_t bytes);
	void *context;
	/* Called when packets were dropped that are no task's of the job: see gsm_counters.h. */
	void (*show_foreign)(uint32_t more);
};

struct ek_gsm_network {
	uint32_t version; /* EK_GSM_NETWORK_VERSION */
	uint32_t size;    /* sizeof(struct ek_gsm_network) */
	/* The task's end of the network; 0, and why in `text` (EK_GSM_TEXT bytes).
	 * Collective; all get one, or some may not. */
	uint64_t (*join)(const struct ek_gsm_membership *member, char *text);
	/* All commands have ended when it returns, and nobody looks at the FIFO and the
	 * task's memory any more. */
	void (*leave)(uint64_t end);
	/* Returns when the command has ended. */
	void (*wait)(uint64_t end, struct ek_gsm_command *command);
	/* Takes what is in the FIFO, and does what can be done now. `holds`: where messages
	 * have come, what goes back for them waits for the next call, to leave together
	 * with what the handlers of letters send; the result is whether something waits. If
	 * no call comes soon, the Go side sends it by itself. */
	int (*poll)(uint64_t end, int holds);
	/* PUTs or GETs blocks at equal steps, by a description that travels ahead of the
	 * data, both under a key. Returns when they are there: EK_OK, or why not; of what
	 * its target refuses nothing is written. */
	int (*strided)(uint64_t end, uint32_t operation, struct ek_gsm_address at, uint64_t at_step, void *data, uint64_t step,
	               uint64_t bytes, uint64_t count, uint32_t key);
	/* Gives the task a narrower key, for packets and for what comes under it, which
	 * finds the windows with the token; and takes it away. EK_OK, or it has it already. */
	int (*add_key)(uint64_t end, uint32_t number, uint64_t token, const void *secret);
	void (*remove_key)(uint64_t end, uint32_t number);
};

#endif
