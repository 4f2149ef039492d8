/* shadow_traffic.c - random traffic of every kind of send, the same for the
 * same seed.
 *
 *	mpirun -np N shadow_traffic SEED MESSAGES [THREADS]
 *
 * Every rank sends to every rank, itself too, on several communicators, some
 * freed while messages are under way, with all kinds of send in one mixture;
 * receivers take messages by source and tag, by any tag, or by any source.
 * Prints for each rank a sum over the received data and statuses, which only
 * depends on what was sent, and "in order" if no message overtook another one
 * of the same source, communicator and tag class. With THREADS, so many threads
 * send and receive, each with communicators of its own.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS = 4, KINDS = 9, LONGEST = 40000, THREADS = 8 };

struct part { /* of one thread */
	MPI_Comm comms[COMMS];
	uint64_t seed, sum;
	int rank, size, messages;
	long wrong;
	unsigned char *attached;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* All ranks know what each message is from its number. */
struct message {
	int from, to, comm, tag, bytes, kind;
	uint64_t content;
};

static struct message message(const struct part *p, int number)
{
	static const int lengths[] = {0, 1, 8, 200, 256, 257, 600, 1024, 3000, 4000, 4096, 4097, 9000, 32768, 32769, LONGEST};
	uint64_t r = mix(p->seed + (uint64_t)number * 0x9e3779b97f4a7c15ull);
	struct message m;
	m.from = (int)(r % (unsigned)p->size);
	m.to = (int)((r >> 8) % (unsigned)p->size);
	m.comm = (int)((r >> 16) % COMMS);
	m.tag = (int)((r >> 20) % 3);
	m.bytes = lengths[(r >> 24) % (sizeof lengths / sizeof *lengths)];
	m.kind = (int)((r >> 32) % KINDS);
	m.content = mix(r);
	return m;
}

static void fill(unsigned char *data, const struct message *m)
{
	for (int i = 0; i < m->bytes; i++)
		data[i] = (unsigned char)(m->content >> (i % 8 * 8)) ^ (unsigned char)(i >> 8);
}

/* A request that must be waited for, or MPI_REQUEST_NULL. Blocking kinds would
 * wait for a rank that waits for us, so those that may are begun only. */
static MPI_Request send(unsigned char *data, const struct message *m, MPI_Comm comm)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int kind = m->to == m->from && m->kind < 3 ? 3 : m->kind;
	fill(data, m);
	switch (kind) {
	case 0: case 1: /* small ones never wait for a receive to be posted */
		if (m->bytes > 4000)
			MPI_Isend(data, m->bytes, MPI_BYTE, m->to, m->tag, comm, &request);
		else
			MPI_Send(data, m->bytes, MPI_BYTE, m->to, m->tag, comm);
		break;
	case 2:
		MPI_Bsend(data, m->bytes, MPI_BYTE, m->to, m->tag, comm);
		break;
	case 5:
		MPI_Issend(data, m->bytes, MPI_BYTE, m->to, m->tag, comm, &request);
		break;
	case 6:
		MPI_Send_init(data, m->bytes, MPI_BYTE, m->to, m->tag, comm, &request);
		MPI_Start(&request);
		break;
	case 7:
		MPI_Ibsend(data, m->bytes, MPI_BYTE, m->to, m->tag, comm, &request);
		break;
	default:
		MPI_Isend(data, m->bytes, MPI_BYTE, m->to, m->tag, comm, &request);
		break;
	}
	return request;
}

static void take_part(struct part *p, const struct message *m, MPI_Request *receive, unsigned char *data)
{
	/* Any tag only where the next message of that pair has no rival. */
	MPI_Irecv(data, LONGEST, MPI_BYTE, m->from, m->tag, p->comms[m->comm], receive);
}

static void check(struct part *p, const struct message *m, const unsigned char *data, const MPI_Status *status)
{
	static __thread unsigned char expected[LONGEST];
	int got;
	MPI_Get_count(status, MPI_BYTE, &got);
	fill(expected, m);
	if (got != m->bytes || status->MPI_SOURCE != m->from || status->MPI_TAG != m->tag ||
	    memcmp(expected, data, (size_t)m->bytes) != 0)
		p->wrong++;
	uint64_t sum = mix((uint64_t)got ^ (uint64_t)status->MPI_SOURCE << 32 ^ (uint64_t)status->MPI_TAG << 48);
	for (int i = 0; i < got; i++)
		sum = sum * 31 + data[i];
	p->sum += mix(sum);
}

/* Batches, in each of which a rank sends all that it has to send before it
 * receives in the first half, and the other way round in the second. */
static void batch(struct part *p, int first, int last)
{
	int count = last - first;
	unsigned char *sent = malloc((size_t)count * LONGEST), *received = malloc((size_t)count * LONGEST);
	MPI_Request *sends = malloc((size_t)count * sizeof *sends), *receives = malloc((size_t)count * sizeof *receives);
	MPI_Status *statuses = malloc((size_t)count * sizeof *statuses);
	int early = (int)(mix(p->seed ^ (uint64_t)first) >> 7 & 1), sending = 0, receiving = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int i = first; i < last; i++) {
			struct message m = message(p, i);
			if (m.from == p->rank && pass == early) {
				sends[sending] = send(sent + (size_t)sending * LONGEST, &m, p->comms[m.comm]);
				sending++;
			}
			if (m.to == p->rank && pass != early) {
				take_part(p, &m, &receives[receiving], received + (size_t)receiving * LONGEST);
				receiving++;
			}
		}
	MPI_Waitall(receiving, receives, statuses);
	receiving = 0;
	for (int i = first; i < last; i++) {
		struct message m = message(p, i);
		if (m.to == p->rank) {
			check(p, &m, received + (size_t)receiving * LONGEST, &statuses[receiving]);
			receiving++;
		}
	}
	for (int i = 0; i < sending; i++) {
		MPI_Request request = sends[i];
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (request != MPI_REQUEST_NULL) /* a persistent one */
			MPI_Request_free(&request);
	}
	free(statuses), free(receives), free(sends), free(received), free(sent);
}

/* Each rank sends numbered messages to the next with every kind of send, and
 * takes those of the rank before by any source and any tag: they come in the
 * order in which they were sent. */
static void ordered(struct part *p)
{
	static __thread unsigned char data[LONGEST], got[LONGEST];
	int to = (p->rank + 1) % p->size;
	MPI_Comm comm;
	MPI_Comm_dup(p->comms[0], &comm);
	for (int i = 0; i < 60; i++) {
		struct message m = message(p, 1000000 + i);
		MPI_Request request = MPI_REQUEST_NULL, other = MPI_REQUEST_NULL;
		MPI_Status status;
		m.bytes = m.bytes < 16 ? 16 : m.bytes;
		m.from = p->rank, m.to = to;
		if (to == p->rank)
			break;
		/* two at once, so that they could overtake each other */
		fill(data, &m);
		memcpy(data, &(int){2 * i}, sizeof(int));
		if (m.bytes <= 4000)
			MPI_Send(data, m.bytes, MPI_BYTE, to, i & 7, comm);
		else
			MPI_Isend(data, m.bytes, MPI_BYTE, to, i & 7, comm, &request);
		int second[300] = {2 * i + 1};
		if (i % 3 == 0)
			MPI_Issend(second, 300, MPI_INT, to, i & 3, comm, &other);
		else
			MPI_Isend(second, i % 3 == 1 ? 300 : 2, MPI_INT, to, i & 3, comm, &other);
		for (int k = 0; k < 2; k++) {
			int number;
			MPI_Recv(got, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
			memcpy(&number, got, sizeof number);
			p->wrong += number != 2 * i + k;
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Wait(&other, MPI_STATUS_IGNORE);
		int there = i, back = -1;
		MPI_Sendrecv(&there, 1, MPI_INT, to, 99, &back, 1, MPI_INT, MPI_ANY_SOURCE, 99, comm, MPI_STATUS_IGNORE);
		p->wrong += back != i;
	}
	MPI_Comm_free(&comm);
}

/* Communicators that are freed with messages under way. */
static void short_lived(struct part *p)
{
	int to = (p->rank + 1) % p->size, from = (p->rank + p->size - 1) % p->size;
	static __thread char data[8000], got[8000];
	for (int i = 0; i < 20; i++) {
		MPI_Comm comm;
		MPI_Request requests[3];
		MPI_Comm_dup(p->comms[1], &comm);
		memset(data, i + 1, sizeof data);
		MPI_Irecv(got, 600, MPI_CHAR, from, 5, comm, &requests[0]);
		MPI_Irecv(got + 1000, 5000, MPI_CHAR, from, 5, comm, &requests[1]);
		MPI_Send(data, 600, MPI_CHAR, to, 5, comm);
		MPI_Isend(data, 5000, MPI_CHAR, to, 5, comm, &requests[2]);
		MPI_Comm_free(&comm);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
		p->wrong += got[0] != i + 1 || got[599] != i + 1 || got[1000] != i + 1 || got[5999] != i + 1;
	}
}

static void *run(void *argument)
{
	struct part *p = argument;
	for (int at = 0; at < p->messages; at += 60)
		batch(p, at, at + 60 < p->messages ? at + 60 : p->messages);
	ordered(p);
	short_lived(p);
	return 0;
}

int main(int argc, char **argv)
{
	static unsigned char attached[8 << 20];
	struct part parts[THREADS] = {{.wrong = 0}};
	pthread_t threads[THREADS];
	int provided, count;
	uint64_t sum = 0;
	long wrong = 0;

	MPI_Init_thread(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	count = argc > 3 ? atoi(argv[3]) : 1;
	MPI_Buffer_attach(attached, sizeof attached);
	for (int i = 0; i < count; i++) {
		MPI_Comm_rank(MPI_COMM_WORLD, &parts[i].rank);
		MPI_Comm_size(MPI_COMM_WORLD, &parts[i].size);
		parts[i].seed = mix((uint64_t)atol(argv[1]) + (uint64_t)i * 77);
		parts[i].messages = atoi(argv[2]);
		for (int k = 0; k < COMMS; k++)
			MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].comms[k]);
	}
	for (int i = 1; i < count; i++)
		pthread_create(&threads[i], 0, run, &parts[i]);
	run(&parts[0]);
	for (int i = 1; i < count; i++)
		pthread_join(threads[i], 0);
	void *back;
	int length;
	MPI_Buffer_detach(&back, &length);
	for (int i = 0; i < count; i++) {
		sum += parts[i].sum, wrong += parts[i].wrong;
		for (int k = 0; k < COMMS; k++)
			MPI_Comm_free(&parts[i].comms[k]);
	}
	printf("rank %d: %016llx%s\n", parts[0].rank, (unsigned long long)sum, wrong ? " wrong" : " in order");
	MPI_Finalize();
	return wrong != 0;
}
