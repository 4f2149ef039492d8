/* shadow.c - see shadow.h. */
#define _GNU_SOURCE
#include "shadow.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "handles.h"
#include "record.h"
#include "ring.h"
#include "room.h"

enum {
	SMALL = 4096,           /* bytes of a small slot */
	/* When MPI could not send a message to a rank of another node at once, so many that
	 * follow go through slots; and as many again after each look at the slots that finds
	 * one to it which is not sent yet. */
	ROUTED = 1000
};

/* ---- slots -------------------------------------------------------------- */

struct flight {
	int slot;
	int peer;
};

/* Buffers of one size, and the injection FIFO that they are tied to. */
struct fifo {
	size_t size;            /* of a buffer */
	int slots;
	unsigned char *buffers;
	int *idle, idles;       /* a stack: the buffer that was used last is still in the cache */
	/* In flight are first .. last-1 of these, oldest first. There is room for
	 * two times as many as slots, so that they seldom have to be moved down. */
	MPI_Request *requests;
	struct flight *flights;
	int first, last;
	int look;               /* when so many are in flight, see whether the oldest are done */
	int *done;              /* for MPI_Testsome, which wants places for its results */
	MPI_Status *statuses;
};

/* What is known of each rank of the world. */
struct peer {
	bool near; /* on this node */
	int error; /* what a message to it was lost by, and the program has not been told yet */
	bool lost; /* there was such a message */
	int routed; /* EVENKEEL_SHADOW_ROUTE=history: messages that are still to go through slots */
};

static struct fifo small_fifo, large_fifo;
static struct peer *peers;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Only where several threads may be inside MPI. */
static inline void lock(void)
{
	if (EK_UNLIKELY(ek.threads_multiple))
		pthread_mutex_lock(&mutex);
}

static inline void unlock(void)
{
	if (EK_UNLIKELY(ek.threads_multiple))
		pthread_mutex_unlock(&mutex);
}

/* What MPI could not send is the program's no more: it has been told that the
 * call succeeded. Its next message to that rank tells it, and those after that
 * go to MPI itself. */
static void lost(struct flight flight, int error)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	ek_mpi.Error_string(error, text, &length);
	fprintf(stderr, "evenkeel: a message from rank %d to rank %d was lost after its MPI_Send or MPI_Isend "
	        "had returned: %s; the next call that sends to that rank returns this error\n",
	        ek.world_rank, flight.peer, text);
	peers[flight.peer].error = error;
	EK_STORE(peers[flight.peer].lost, true);
}

static void give_back(struct fifo *f, int place)
{
	f->idle[f->idles++] = f->flights[place].slot;
}

/* Gives back the oldest that are done. A look that finds none makes MPI go on
 * with its work, which takes as long as a send: the next look comes when twice
 * as many are in flight. */
static void give_back_oldest(struct fifo *f)
{
	while (f->first < f->last) {
		int done = 0;
		int result = ek_mpi.Test(&f->requests[f->first], &done, MPI_STATUS_IGNORE);
		if (EK_UNLIKELY(result != MPI_SUCCESS)) {
			lost(f->flights[f->first], result);
		} else if (!done) {
			EK_STORE(peers[f->flights[f->first].peer].routed, ROUTED);
			break;
		}
		give_back(f, f->first++);
	}
	if (f->first == f->last)
		f->first = f->last = 0;
	f->look = 1 + 2 * (f->last - f->first);
}

/* Gives back all that are done, in whatever order. */
static void give_back_done(struct fifo *f)
{
	int count = 0, kept = f->first;
	int result = ek_mpi.Testsome(f->last - f->first, f->requests + f->first, &count, f->done, f->statuses);
	if (count == MPI_UNDEFINED || count == 0)
		return;
	for (int i = 0; i < count; i++) {
		int place = f->first + f->done[i];
		if (EK_UNLIKELY(result == MPI_ERR_IN_STATUS && f->statuses[i].MPI_ERROR != MPI_SUCCESS))
			lost(f->flights[place], f->statuses[i].MPI_ERROR);
		give_back(f, place);
		f->flights[place].slot = -1;
	}
	for (int place = f->first; place < f->last; place++) {
		if (f->flights[place].slot < 0)
			continue;
		f->requests[kept] = f->requests[place];
		f->flights[kept++] = f->flights[place];
	}
	f->last = kept;
	f->look = 1 + 2 * (f->last - f->first);
}

/* Moves what is in flight down to the beginning, when there is no place after it. */
static void move_down(struct fifo *f)
{
	size_t count = (size_t)(f->last - f->first);
	memmove(f->requests, f->requests + f->first, count * sizeof *f->requests);
	memmove(f->flights, f->flights + f->first, count * sizeof *f->flights);
	f->first = 0;
	f->last = (int)count;
}

static void put_back(struct fifo *f, int slot)
{
	lock();
	f->idle[f->idles++] = slot;
	unlock();
}

static void put_in_flight(struct fifo *f, int slot, int peer, MPI_Request request)
{
	lock();
	if (EK_UNLIKELY(f->last == 2 * f->slots))
		move_down(f);
	f->requests[f->last] = request;
	f->flights[f->last++] = (struct flight){slot, peer};
	unlock();
}

/* ---- which messages ----------------------------------------------------- */

struct message {
	size_t size;
	int peer;
	bool control;
	bool watched; /* it goes MPI's way, and whether it has to wait there says which way the next ones go */
};

/* Types that MPI names and whose values lie without gaps, with their sizes:
 * entries are filled once and never change, as such types are never freed. */
static struct {
	MPI_Datatype type; /* stored with release order, after the size */
	size_t size;
} dense[64];

/* 0: not such a type. */
static __attribute__((noinline)) size_t look_at_type(MPI_Datatype type)
{
	int integers, addresses, types, combiner, size;
	MPI_Aint low, extent;
	if (!type || type == ek_mpi.type_null ||
	    ek_mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
	    combiner != MPI_COMBINER_NAMED || ek_mpi.Type_size(type, &size) != MPI_SUCCESS ||
	    ek_mpi.Type_get_extent(type, &low, &extent) != MPI_SUCCESS || low != 0 || extent != size)
		return 0;
	lock();
	for (int i = 0; i < 64; i++) {
		int place = (int)(((uintptr_t)type >> 6) + (uintptr_t)i) & 63;
		if (dense[place].type)
			continue;
		dense[place].size = (size_t)size;
		__atomic_store_n(&dense[place].type, type, __ATOMIC_RELEASE);
		break;
	}
	unlock();
	return (size_t)size;
}

static inline size_t dense_size(MPI_Datatype type)
{
	unsigned place = (unsigned)((uintptr_t)type >> 6) & 63;
	if (EK_LIKELY(type && __atomic_load_n(&dense[place].type, __ATOMIC_ACQUIRE) == type))
		return dense[place].size;
	return look_at_type(type);
}

/* 0: of none that we take, or nothing at all. */
static inline size_t size_of(int count, MPI_Datatype type)
{
	return EK_LIKELY(count > 0) ? dense_size(type) * (size_t)count : 0;
}

/* Control traffic: communicators by name, tags by range. */
static struct control {
	const char *comm; /* null: any */
	size_t length;
	int low, high;
} controls[EK_MOST_TRAFFIC];
static int control_count;

static bool is_control(const struct ek_comm_local *comm, int tag)
{
	for (int i = 0; i < control_count; i++) {
		const struct control *c = &controls[i];
		if (c->comm ? strlen(comm->shared->name) == c->length && memcmp(comm->shared->name, c->comm, c->length) == 0
		            : c->low <= tag && tag <= c->high)
			return true;
	}
	return false;
}

/* Where the number ends; null if it is none. */
static const char *read_tag(const char *text, int *tag)
{
	char *end;
	long number = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
	if (number < 0 || number > INT_MAX)
		return 0;
	*tag = (int)number;
	return end;
}

static bool read_control(struct control *c, const char *word, size_t length)
{
	if (strncmp(word, "comm=", 5) == 0) {
		c->comm = word + 5;
		c->length = length - 5;
		return length > 5;
	}
	const char *end = strncmp(word, "tag=", 4) == 0 ? read_tag(word + 4, &c->low) : 0;
	c->comm = 0;
	c->high = c->low;
	if (end && *end == '-')
		end = read_tag(end + 1, &c->high);
	return end == word + length && c->low <= c->high;
}

/* "tag=7,tag=100-199,comm=NAME". Text that can't be read names nothing, as for c/tables/settings.go, which says so. */
static void read_controls(const char *text)
{
	size_t length;
	int count = 0;
	for (const char *word = text; *text; word += length + 1) {
		length = strcspn(word, ",");
		if (count == EK_MOST_TRAFFIC || !read_control(&controls[count++], word, length))
			return;
		if (!word[length]) {
			control_count = count;
			return;
		}
	}
}

/* Messages to this node, but control traffic, are MPI's: it may keep one from its
 * receiver until the sender calls it again, where it is out of fragments, and an
 * MPI_Send of its own waits for that.
 * Whatever is odd about the arguments is MPI's to judge. */
static inline bool is_candidate(struct message *m, const void *buf, int dest, int tag, MPI_Comm comm)
{
	if (m->size > (size_t)ek.settings.shadow_limit || !buf || tag < 0)
		return false;
	const struct ek_comm_local *on = ek_handle_find(EK_C_KEY(comm));
	if ((unsigned)dest >= on->peer_count)
		return false;
	m->peer = on->peers[dest];
	if (m->peer >= ek.world_size || m->peer == EK_FAR_PEER || m->peer == ek.world_rank)
		return false;
	m->control = control_count && is_control(on, tag);
	if (m->control || peers[m->peer].near)
		return m->control;
	if (ek.settings.shadow_route != EK_SHADOW_ROUTE_HISTORY)
		return ek.settings.shadow_route == EK_SHADOW_ROUTE_ALL;
	int routed = EK_LOAD(peers[m->peer].routed);
	EK_STORE(peers[m->peer].routed, routed - (routed > 0));
	if (routed > 0 || EK_LOAD(peers[m->peer].lost))
		return true;
	m->watched = true;
	return false;
}

/* ---- sending ------------------------------------------------------------ */

/* Some are kept for control traffic, if there is any. */
static bool has_free(const struct fifo *f, const struct message *m)
{
	return f->idles > (m->control || !control_count ? 0 : (int)ek.settings.shadow_reserve);
}

enum { FULL = -1 };

/* A free slot for the message, if there is one. */
static int take(struct fifo *f, const struct message *m)
{
	int slot = FULL;
	lock();
	if (f->last - f->first >= f->look)
		give_back_oldest(f);
	/* The first look makes MPI go on, the second one sees what came of it. */
	for (int i = 0; i < 2 && EK_UNLIKELY(!has_free(f, m)) && f->first < f->last; i++)
		give_back_done(f);
	if (EK_LIKELY(has_free(f, m)))
		slot = f->idle[--f->idles];
	unlock();
	return slot;
}

/* The error of a message that was lost, once; 0: there was none. */
static int take_error(struct peer *peer)
{
	lock();
	int error = peer->error;
	peer->error = MPI_SUCCESS;
	unlock();
	return error;
}

/* MPI returns its empty request if it has sent the message within the call. */
static int inject(struct fifo *f, int slot, const struct message *m, const void *buf, int count, MPI_Datatype type,
                  int dest, int tag, MPI_Comm comm)
{
	unsigned char *buffer = f->buffers + (size_t)slot * f->size;
	MPI_Request request = ek_mpi.request_null;
	memcpy(buffer, buf, m->size);
	ek_ring_counts_not = true;
	int result = ek_mpi.Isend(buffer, count, type, dest, tag, comm, &request);
	ek_ring_counts_not = false;
	if (result != MPI_SUCCESS || request == ek_mpi.request_empty)
		put_back(f, slot);
	else
		put_in_flight(f, slot, m->peer, request);
	if (result == MPI_SUCCESS) {
		ek_count(EK_FAST_SENDS, 1);
		ek_count(EK_FAST_SENT_BYTES, m->size);
	}
	return result;
}

/* True if the message went through a slot, or an earlier one to that rank was
 * lost: with MPI's result. */
static bool send(struct message *m, int *result, const void *buf, int count, MPI_Datatype type, int dest, int tag,
                 MPI_Comm comm)
{
	m->size = size_of(count, type);
	if (m->size == 0 || !is_candidate(m, buf, dest, tag, comm))
		return false;
	struct fifo *f = m->size <= SMALL ? &small_fifo : &large_fifo;
	int slot = take(f, m);
	if (EK_UNLIKELY(EK_LOAD(peers[m->peer].lost))) {
		if (slot >= 0)
			put_back(f, slot);
		*result = take_error(&peers[m->peer]);
		if (*result != MPI_SUCCESS)
			*result = ek_mpi.Comm_call_errhandler(comm, *result) == MPI_SUCCESS ? *result : MPI_ERR_OTHER;
		return *result != MPI_SUCCESS;
	}
	if (EK_UNLIKELY(slot < 0)) {
		ek_count(EK_FAST_SENDS_FULL, 1);
		return false;
	}
	*result = inject(f, slot, m, buf, count, type, dest, tag, comm);
	return true;
}

/* MPI_Send, and whether it waits. */
static int send_watched(int peer, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	MPI_Request request;
	int done = 0, result = ek_mpi.Isend(buf, count, type, dest, tag, comm, &request);
	if (result == MPI_SUCCESS)
		result = ek_mpi.Test(&request, &done, MPI_STATUS_IGNORE);
	if (result != MPI_SUCCESS || done)
		return result;
	EK_STORE(peers[peer].routed, ROUTED);
	return ek_mpi.Wait(&request, MPI_STATUS_IGNORE);
}

static int shadow_send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	struct message m = {0};
	int result;
	if (send(&m, &result, buf, count, type, dest, tag, comm))
		return result;
	return m.watched ? send_watched(m.peer, buf, count, type, dest, tag, comm)
	                 : ek_next.MPI_Send(buf, count, type, dest, tag, comm);
}

static int shadow_isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                        MPI_Request *request)
{
	struct message m = {0};
	int result;
	if (!request || !send(&m, &result, buf, count, type, dest, tag, comm))
		return ek_next.MPI_Isend(buf, count, type, dest, tag, comm, request);
	if (result == MPI_SUCCESS)
		*request = ek_mpi.request_empty;
	return result;
}

/* ---- the start and the end ---------------------------------------------- */

/* Buffers that are never used take no memory. */
static bool make_fifo(struct fifo *f, size_t size, long slots)
{
	f->size = size;
	f->slots = (int)slots;
	f->look = 1;
	if (slots == 0)
		return true;
	f->buffers = mmap(0, size * (size_t)slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	f->idle = calloc((size_t)slots, sizeof *f->idle);
	f->requests = calloc(2 * (size_t)slots, sizeof *f->requests);
	f->flights = calloc(2 * (size_t)slots, sizeof *f->flights);
	f->done = calloc((size_t)slots, sizeof *f->done);
	f->statuses = calloc((size_t)slots, sizeof *f->statuses);
	for (f->idles = 0; f->idle && f->idles < slots; f->idles++)
		f->idle[f->idles] = (int)slots - 1 - f->idles;
	return f->buffers != MAP_FAILED && f->idle && f->requests && f->flights && f->done && f->statuses;
}

static void find_near_ranks(void)
{
	for (uint32_t i = 0; i < ek.header->local_ranks; i++) {
		const struct ek_rank *rank = (const void *)(ek.segment + EK_PAGE + ek.header->rank_area_size * i);
		peers[rank->rank].near = true;
	}
}

/* Another tool behind us is to see the program's sends. */
static bool nobody_behind(void)
{
	return ek_next_is_mpis("MPI_Send", ek_next.MPI_Send) && ek_next_is_mpis("mpi_send_", ek_next.mpi_send_) &&
	       ek_next_is_mpis("mpi_send_f08_", ek_next.mpi_send_f08_) && ek_next_is_mpis("MPI_Isend", ek_next.MPI_Isend) &&
	       ek_next_is_mpis("mpi_isend_", ek_next.mpi_isend_) && ek_next_is_mpis("mpi_isend_f08_", ek_next.mpi_isend_f08_);
}

/* Whether slots of our own are wanted: between nodes Open MPI has none. */
static bool slots_wanted(void)
{
	read_controls(ek.settings.shadow_control);
	return control_count || ek.settings.shadow_route == EK_SHADOW_ROUTE_ALL ||
	       ek.settings.shadow_route == EK_SHADOW_ROUTE_HISTORY;
}

void ek_shadow_start(void)
{
	if (!(ek.settings.fast & EK_FAST_SHADOW))
		return;
	if (ek_room_given())
		ek_ring_start();
	if (!slots_wanted() || !nobody_behind())
		return;
	size_t limit = (size_t)ek.settings.shadow_limit;
	peers = calloc((size_t)ek.world_size, sizeof *peers);
	if (!peers || !make_fifo(&small_fifo, SMALL, ek.settings.shadow_slots) ||
	    !make_fifo(&large_fifo, ek_pages(limit), limit > SMALL ? ek.settings.shadow_large : 0))
		return;
	find_near_ranks();
	ek_way.MPI_Send = shadow_send;
	ek_way.MPI_Isend = shadow_isend;
}

static bool helps_to_wait(const struct fifo *f)
{
	for (int place = f->first; place < f->last; place++)
		if (!peers[f->flights[place].peer].near)
			return true;
	return false;
}

void ek_shadow_stop(void)
{
	ek_ring_stop();
	struct fifo *const fifos[] = {&small_fifo, &large_fifo};
	for (int i = 0; i < 2; i++)
		do {
			if (fifos[i]->first < fifos[i]->last)
				give_back_done(fifos[i]);
		} while (helps_to_wait(fifos[i]));
}
