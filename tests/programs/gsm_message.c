/* gsm_message.c - active messages from C: every request runs its handler once,
 * with its data, and every reply too; and what is refused.
 *
 *	mpirun -np N gsm_message SEED ROUNDS
 *
 * Prints "ok" on rank 0. Linked to libevenkeel.
 */
#define _DEFAULT_SOURCE
#include <evenkeel.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK = 1, ANSWER = 2, COUNT = 3, RUDE = 255, UNKNOWN = 77 };

static int rank, ranks;
static uint64_t seed;
static struct ek_gsm *job;

#define CHECK(condition)                                                                                      \
	do {                                                                                                  \
		if (!(condition)) {                                                                           \
			fprintf(stderr, "gsm_message.c:%d: rank %d, seed %llu: %s\n%s\n", __LINE__, rank,       \
			        (unsigned long long)seed, #condition, ek_gsm_error());                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                         \
		}                                                                                             \
	} while (0)
#define REFUSED(call, result, words) CHECK((call) == (result) && strstr(ek_gsm_error(), words))

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* A message: its number at its sender, and bytes that follow from it. */
struct message {
	uint32_t number;
	unsigned char data[EK_GSM_AM_BYTES - 4];
};

static uint64_t fill(struct message *m, uint32_t number, uint32_t from, uint32_t to)
{
	uint64_t state = (uint64_t)number << 20 ^ from << 10 ^ to ^ 1, bytes = next(&state) % sizeof m->data;
	if (next(&state) % 2)
		bytes %= 60; /* many that fit a line, and just not */
	m->number = number;
	for (uint64_t i = 0; i < bytes; i++)
		m->data[i] = (unsigned char)next(&state);
	return bytes + 4;
}

static unsigned char *asked, *answered; /* how often, by sender and number; by number */
static uint64_t questions, answers, counted;
static long rounds;

static void ask(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *context)
{
	const struct message *m = data;
	struct message expected;
	CHECK(context == &questions && bytes >= 4 && m->number < (uint32_t)rounds);
	CHECK(fill(&expected, m->number, ek_gsm_am_source(message), (uint32_t)rank) == bytes && memcmp(m, &expected, bytes) == 0);
	CHECK(asked[ek_gsm_am_source(message) * (size_t)rounds + m->number]++ == 0);
	questions++;
	CHECK(ek_gsm_am_reply(message, ANSWER, data, bytes) == EK_OK);
	if (m->number % 16 == 0) {
		REFUSED(ek_gsm_am_reply(message, ANSWER, data, bytes), EK_GSM_OPERATION, "has had its reply");
		REFUSED(ek_gsm_am_request(job, 0, ASK, data, bytes), EK_GSM_OPERATION, "a handler may reply");
		REFUSED(ek_gsm_am_poll(job), EK_GSM_OPERATION, "a handler can't");
	}
}

static void answer(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *context)
{
	const struct message *m = data;
	struct message expected;
	CHECK(!context && m->number < (uint32_t)rounds);
	CHECK(fill(&expected, m->number, (uint32_t)rank, ek_gsm_am_source(message)) == bytes && memcmp(m, &expected, bytes) == 0);
	CHECK(answered[m->number]++ == 0);
	answers++;
	if (m->number % 16 == 0)
		REFUSED(ek_gsm_am_reply(message, ANSWER, data, 4), EK_GSM_OPERATION, "a reply has no reply");
}

static void count(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *context)
{
	(void)message;
	(void)data;
	CHECK(bytes == 0 && context == &counted);
	counted++;
}

static void rude(struct ek_gsm_am *message, const void *data, uint64_t bytes, void *context)
{
	(void)data;
	(void)bytes;
	(void)context;
	CHECK(ek_gsm_am_reply(message, UNKNOWN, 0, 0) == EK_OK);
}

/* Until all ranks have come here, and looks for messages meanwhile. */
static void meet(void)
{
	MPI_Request request;
	int done = 0;
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	while (!done) {
		CHECK(ek_gsm_am_poll(job) == EK_OK);
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	}
}

static void traffic(void)
{
	uint64_t random = seed * 31 + (uint64_t)rank + 1, all[2];
	struct message m;
	for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
		uint32_t to = (uint32_t)(next(&random) % (unsigned)ranks);
		uint64_t bytes = fill(&m, i, (uint32_t)rank, to);
		CHECK(ek_gsm_am_request(job, to, ASK, &m, bytes) == EK_OK);
		memset(&m, 0, sizeof m);
		if (next(&random) % 64 == 0)
			CHECK(ek_gsm_am_poll(job) == EK_OK);
	}
	while (answers < (uint64_t)rounds)
		CHECK(ek_gsm_am_poll(job) == EK_OK);
	meet();
	for (long i = 0; i < rounds; i++)
		CHECK(answered[i] == 1);
	all[0] = questions;
	all[1] = answers;
	MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	CHECK(all[0] == (uint64_t)rounds * (uint64_t)ranks && all[1] == all[0]);
}

/* All send to rank 0, which does not look for a while: nothing is lost. */
static void flood(void)
{
	const uint64_t each = 3000, wanted = each * (uint64_t)ranks;
	if (rank == 0)
		usleep(30000);
	for (uint64_t i = 0; i < each; i++)
		CHECK(ek_gsm_am_request(job, 0, COUNT, 0, 0) == EK_OK);
	while (rank == 0 && counted < wanted)
		CHECK(ek_gsm_am_poll(job) == EK_OK);
	meet();
	CHECK(counted == (rank ? 0 : wanted));
}

static void refusals(void)
{
	char words[80], data[EK_GSM_AM_BYTES + 1] = "";
	const uint32_t peer = (uint32_t)((rank + 1) % ranks);
	int result;
	REFUSED(ek_gsm_am_register(job, ASK, 0, 0), EK_GSM_NO_HANDLER, "1 is null");
	REFUSED(ek_gsm_am_register(job, 0, count, 0), EK_GSM_NO_HANDLER, "from 1 to 255");
	REFUSED(ek_gsm_am_register(job, 256, count, 0), EK_GSM_NO_HANDLER, "from 1 to 255");
	snprintf(words, sizeof words, "active message of 0 bytes to handler 1 of task %d", ranks);
	REFUSED(ek_gsm_am_request(job, (uint32_t)ranks, ASK, 0, 0), EK_GSM_NO_TASK, words);
	REFUSED(ek_gsm_am_request(job, peer, 0, 0, 0), EK_GSM_NO_HANDLER, "handler 0");
	REFUSED(ek_gsm_am_request(job, peer, 256, 0, 0), EK_GSM_NO_HANDLER, "handler 256");
	REFUSED(ek_gsm_am_request(job, peer, ASK, data, sizeof data), EK_GSM_LENGTH, "of 1025 bytes");
	REFUSED(ek_gsm_am_request(job, peer, ASK, 0, 1), EK_GSM_LENGTH, "of 1 bytes");
	REFUSED(ek_gsm_am_request(0, peer, ASK, 0, 0), EK_GSM_CLOSED, "active message");
	REFUSED(ek_gsm_am_poll(0), EK_GSM_CLOSED, "looking");
	/* A handler that the target has not: the sender is told, once. */
	CHECK(ek_gsm_am_request(job, peer, UNKNOWN, data, 5) == EK_OK);
	while ((result = ek_gsm_am_poll(job)) == EK_OK)
		;
	snprintf(words, sizeof words, "handler 77 of task %u: the task has no such handler", peer);
	REFUSED(result, EK_GSM_NO_HANDLER, words);
	meet();
	/* And a reply to a handler that the sender has not. */
	CHECK(ek_gsm_am_request(job, peer, RUDE, 0, 0) == EK_OK);
	while ((result = ek_gsm_am_poll(job)) == EK_OK)
		;
	snprintf(words, sizeof words, "handler 77 of task %d: the task has no such handler", rank);
	REFUSED(result, EK_GSM_NO_HANDLER, words);
	meet();
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	seed = argc > 1 ? strtoull(argv[1], 0, 10) : 1;
	rounds = argc > 2 ? atol(argv[2]) : 1000;
	asked = calloc((size_t)ranks * (size_t)rounds, 1);
	answered = calloc((size_t)rounds, 1);
	CHECK(ek_gsm_join(MPI_Comm_c2f(MPI_COMM_WORLD), &job) == EK_OK);
	CHECK(ek_gsm_am_register(job, ASK, ask, &questions) == EK_OK && ek_gsm_am_register(job, ANSWER, answer, 0) == EK_OK);
	CHECK(ek_gsm_am_register(job, COUNT, count, &counted) == EK_OK && ek_gsm_am_register(job, RUDE, rude, 0) == EK_OK);
	CHECK(ek_gsm_global_fence(job) == EK_OK); /* all have their handlers */
	traffic();
	flood();
	refusals();
	CHECK(ek_gsm_leave(job) == EK_OK);
	REFUSED(ek_gsm_am_poll(job), EK_GSM_CLOSED, "looking");
	REFUSED(ek_gsm_am_register(job, ASK, count, 0), EK_GSM_CLOSED, "registering");
	MPI_Finalize();
	if (rank == 0)
		puts("ok");
	return 0;
}
