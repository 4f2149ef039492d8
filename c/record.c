#define _GNU_SOURCE
#include "record.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout.h"
#include "sites.h"
#include "wait.h"

__thread struct ek_recorder ek_self __attribute__((tls_model("initial-exec")));

/* ---- which calls are timed --------------------------------------------- */

/* How many calls go by before one is timed, if each is with a chance of
 * (limit + 1) / 2^32: a geometric variable, whose binary digits are independent
 * of each other. Digit i is 1 with the odds q^(2^i) to 1, where q is the chance
 * to go by. */
static uint64_t go_by(uint32_t limit, uint64_t random)
{
	double odds = 1 - ((double)limit + 1) / 0x1p32;
	uint64_t calls = 0;
	for (int digit = 0; digit < 40 && odds > 0x1p-40; digit++, odds *= odds) {
		random = ek_mix(random + 0x9e3779b97f4a7c15ull);
		if ((double)random * 0x1p-64 * (1 + odds) < odds)
			calls |= 1ull << digit;
	}
	return calls;
}

/* Draws the next call to be timed. That is done after the call that is, since
 * time spent before it would be missing from its wait. */
static void draw(struct ek_account *account)
{
	uint32_t limit = EK_LOAD(account->time_limit);
	uint64_t calls = EK_LOAD(account->calls);
	EK_STORE(account->due, limit ? calls + go_by(limit, ek_self.seed ^ account->site ^ calls) : UINT64_MAX);
}

/* A limit of 0 times none; of collectives it lets one in 2^32 through, which
 * matters as little. */
static void set_limits(struct ek_account *account, uint32_t time_limit, uint32_t event_limit)
{
	bool new = EK_LOAD(account->time_limit) != time_limit;
	EK_STORE(account->time_limit, time_limit);
	EK_STORE(account->event_limit, event_limit < time_limit ? event_limit : time_limit);
	if (new || !time_limit)
		draw(account);
}

/* ---- threads ---------------------------------------------------------- */

static pthread_key_t leaving;
static pthread_once_t leaving_once = PTHREAD_ONCE_INIT;

/* A thread ends: its part keeps what it recorded, and may be taken up again. If
 * it comes back after this, from another destructor, it is a new one. In a
 * forked child the part belongs to the parent. */
static void leave(void *thread)
{
	if (EK_LOAD(ek.mode) != EK_RECORDING)
		return;
	ek_self.thread = 0;
	free(ek_self.recent);
	ek_self.recent = 0;
	ek_wait_forget();
	EK_PUBLISH(((struct ek_thread *)thread)->state, EK_THREAD_LEFT);
}

static void make_leaving(void)
{
	pthread_key_create(&leaving, leave);
}

static struct ek_thread *thread_part(const struct ek_layout *layout, uint32_t index)
{
	return (struct ek_thread *)(ek.area + layout->threads + index * layout->thread_size);
}

/* The first part that was left by its thread, or the next new one; null when
 * all are in use or the segment can't grow. */
static struct ek_thread *claim(const struct ek_layout *layout, uint32_t *index)
{
	uint32_t used = EK_LOAD(ek.rank->threads);
	for (uint32_t i = 0; i < used; i++) {
		struct ek_thread *thread = thread_part(layout, i);
		if (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) == EK_THREAD_LEFT) {
			*index = i;
			return thread;
		}
	}
	if (used == ek.header->thread_slots)
		return 0;
	struct ek_thread *thread = thread_part(layout, used);
	if (!ek_segment_reserve((size_t)((unsigned char *)thread - ek.segment), layout->thread_size))
		return 0;
	*index = used;
	/* Account 0 takes the calls that find no place among the others. */
	struct ek_account *first = (struct ek_account *)((unsigned char *)thread + layout->thread_accounts);
	first->site = UINT64_MAX;
	first->shortest = UINT64_MAX;
	first->adapt_ticks = ek_ticks();
	set_limits(first, ek.settings.time == EK_TIME_NONE ? 0 : UINT32_MAX, UINT32_MAX);
	EK_PUBLISH(ek.rank->threads, used + 1);
	return thread;
}

/* Gives the calling thread its part; false while recording is off or where
 * there is no room (the call is then counted as unrecorded). */
bool ek_attach(void)
{
	int kept = errno;
	uint32_t index = 0;
	ek_next_resolve();
	if (EK_LOAD(ek.mode) != EK_RECORDING) {
		errno = kept;
		return false;
	}
	struct ek_layout layout = ek_layout_of(ek.header);
	struct ek_recent *recent = calloc(EK_FUNCTIONS, sizeof *recent);
	pthread_once(&leaving_once, make_leaving);
	pthread_mutex_lock(&ek.lock);
	struct ek_thread *thread = recent ? claim(&layout, &index) : 0;
	if (thread) {
		EK_STORE(thread->state, EK_THREAD_USED);
		EK_STORE(thread->tid, (uint32_t)syscall(SYS_gettid));
	} else {
		EK_ADD(ek.rank->calls_unrecorded, 1);
	}
	pthread_mutex_unlock(&ek.lock);
	if (thread) {
		ek_self.accounts = (struct ek_account *)((unsigned char *)thread + layout.thread_accounts);
		ek_self.ring = (struct ek_event *)((unsigned char *)thread + layout.thread_ring);
		ek_self.index = index;
		ek_self.seed = ek_mix(ek.header->sample_seed + ((uint64_t)ek.world_rank << 16) + index);
		ek_self.thread = thread;
		ek_self.recent = recent;
		if (ek_python_started && !ek_self.told)
			ek_self.told = ek_self.told_all = EK_ASK_PYTHON;
		pthread_setspecific(leaving, thread);
	} else {
		free(recent);
	}
	errno = kept;
	return thread != 0;
}

/* A call while another is open: a call that MPI makes to itself lies deeper on
 * the stack and is not recorded. One that does not lie deeper means that the
 * open call never returned (an error handler threw or jumped): forget it. */
bool ek_reenter(uintptr_t frame)
{
	bool left = frame >= ek_self.frame;
	if (left && EK_LOAD(ek_self.thread->waiting))
		ek_wait_over();
	return left;
}

/* ---- accounts --------------------------------------------------------- */

static void open_account(struct ek_account *account, uint64_t site, uint64_t key)
{
	int kept = errno;
	bool timed = ek.settings.time != EK_TIME_NONE && (uint16_t)(key >> 32) != EK_REGION_OFF;
	account->key = key;
	account->module = ek_module_of(site, &account->offset);
	account->shortest = UINT64_MAX;
	account->adapt_ticks = ek_ticks();
	set_limits(account, timed ? UINT32_MAX : 0, UINT32_MAX);
	EK_PUBLISH(account->site, site);
	errno = kept;
}

/* The account of a key at a site: at its home place, further on, new, or, with
 * the table full, account 0. */
static struct ek_account *find_account(uint64_t site, uint64_t key)
{
	const uint64_t mask = (1 << EK_ACCOUNT_BITS) - 1;
	uint64_t home = (site ^ key << 7) * 0x9e3779b97f4a7c15ull >> (64 - EK_ACCOUNT_BITS);
	for (uint64_t i = 0; i <= mask; i++) {
		struct ek_account *account = &ek_self.accounts[(home + i) & mask];
		if (account->site == site && account->key == key)
			return account;
		if (account->site == 0) {
			open_account(account, site, key);
			return account;
		}
	}
	return &ek_self.accounts[0];
}

void ek_look_up(struct ek_recent *recent, uint64_t site, uint16_t function, uint64_t handle)
{
	/* The epoch first: a change under our hands then has us look again. */
	recent->epoch = __atomic_load_n(&ek_epoch, __ATOMIC_ACQUIRE);
	recent->site = site;
	recent->handle = handle;
	recent->comm = ek_handle_find(handle);
	if (EK_LOAD(recent->comm->shared->flags) & EK_COMM_INTER)
		recent->epoch = EK_NO_EPOCH;
	recent->account = find_account(site, EK_ACCOUNT_KEY(function, recent->comm->index, EK_LOAD(ek_region_now)));
	recent->current = (uint64_t)(recent->account - ek_self.accounts) + 1;
}

/* How much of a thread's time the timing of calls may take, and how many
 * events a second an account may leave: see docs/architecture.md. */
enum {
	/* Timing a call costs about 25 ns where all that it touches is at hand, and
	 * 100 ns where it seldom comes by. Of calls that come every microsecond or more
	 * it may take 1/100 of the time; of faster ones, of which there are enough, it
	 * takes less with the square of how fast they come. */
	TIMING_INTERVAL_NS = 10000,
	EVENT_INTERVAL_NS = 25000, /* an event of this account every so often */
	LONG_CALL_NS = 20000,     /* a call that always leaves an event */
	ADAPT_CALLS = 32,
	ADAPT_NS = 1000000
};

/* The limit under which calls that come every `interval` pass at most every
 * `wanted`; 1 in 1024 passes at least. */
static uint32_t limit_for(uint64_t wanted, uint64_t interval)
{
	int k = 0;
	while (k < 10 && interval << k < wanted)
		k++;
	return UINT32_MAX >> k;
}

/* Reconsiders how often this account's calls are timed, from how thick and
 * fast they came since the last time. Both limits rest on earlier calls alone,
 * so each estimate stays unbiased. */
static void adapt(struct ek_account *account, uint64_t now)
{
	uint64_t ticks = now - account->adapt_ticks;
	uint64_t calls = EK_LOAD(account->calls) - account->adapt_calls;
	if (account->timed - account->adapt_timed < ADAPT_CALLS && ticks < ADAPT_NS / 1000 * ek_ticks_per_us)
		return;
	uint64_t interval = ticks * 1000 / ek_ticks_per_us / (calls ? calls : 1) + 1; /* ns */
	uint32_t timed = UINT32_MAX, events = limit_for(EVENT_INTERVAL_NS, interval);
	if (ek.settings.time == EK_TIME_AUTO)
		timed = limit_for(interval < 1000 ? TIMING_INTERVAL_NS * 1000000ull / (interval * interval) : TIMING_INTERVAL_NS,
		                  interval);
	set_limits(account, timed, events);
	account->adapt_ticks = now;
	account->adapt_calls = EK_LOAD(account->calls);
	account->adapt_timed = account->timed;
}

static void leave_event(const struct ek_call *call, uint64_t bytes, uint32_t tag, uint64_t weight)
{
	struct ek_thread *thread = ek_self.thread;
	uint64_t head = EK_LOAD(thread->ring_head);
	struct ek_event *event = &ek_self.ring[head & (ek.header->ring_events - 1)];
	/* Unstamp first: a reader that copies while we write sees that it did. */
	EK_STORE(event->stamp, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	EK_STORE(event->enter, call->enter);
	EK_STORE(event->leave, call->leave);
	EK_STORE(event->sequence, call->collective ? call->sequence : tag);
	EK_STORE(event->bytes, bytes);
	EK_STORE(event->account, (uint16_t)(call->account - ek_self.accounts));
	EK_STORE(event->comm, call->comm->index);
	EK_STORE(event->function, call->function);
	EK_STORE(event->thread, (uint8_t)ek_self.index);
	EK_STORE(event->weight, (uint8_t)(__builtin_ctzll(weight) | (call->collective ? EK_EVENT_COLLECTIVE : 0) |
	                                   (call->guessed ? EK_EVENT_GUESSED : 0)));
	for (int i = 0; i < EK_PEERS; i++)
		EK_STORE(event->peer[i], EK_LOAD(thread->current_peer[i]));
	EK_PUBLISH(event->stamp, head + 1);
	EK_PUBLISH(thread->ring_head, head + 1);
}

/* Whether the drainer means the call that is open now: it may have looked just
 * before the one before it ended. */
static bool is_noticed(const struct ek_thread *thread)
{
	return EK_LOAD(thread->attention) == EK_ATTENTION_CALL &&
	       EK_LOAD(thread->seen_current) == EK_LOAD(thread->current);
}

void ek_record(struct ek_call *call, uint64_t bytes, uint32_t tag)
{
	struct ek_account *account = call->account;
	uint64_t ticks = call->leave > call->enter ? call->leave - call->enter : 0;
	/* A call that the drainer has noticed stands for itself, also if it would have
	 * been timed anyway: those it notices are counted one by one. */
	if (is_noticed(ek_self.thread)) {
		call->noticed = true;
		call->weight = 1;
		EK_STORE(ek_self.thread->attention, 0);
	}
	uint64_t w = call->weight;
	ek_self.last_leave = call->leave;

	EK_ADD(account->timed, 1);
	EK_ADD(account->ticks, w * ticks);
	EK_ADD(account->bytes, w * bytes);
	if (w > 1) {
		double variance = account->variance + (double)(w * (w - 1)) * (double)ticks * (double)ticks;
		__atomic_store(&account->variance, &variance, __ATOMIC_RELAXED);
	}
	if (ticks < EK_LOAD(account->shortest))
		EK_STORE(account->shortest, ticks);
	if (ticks > EK_LOAD(account->longest))
		EK_STORE(account->longest, ticks);
	EK_ADD(ek_self.thread->mpi_ticks, w * ticks);

	/* Two strata, each with its own rate: long calls, and the others. */
	uint32_t event_limit = EK_LOAD(account->event_limit);
	if (call->noticed || ticks > LONG_CALL_NS / 1000 * ek_ticks_per_us)
		leave_event(call, bytes, tag, call->weight);
	else if (call->chance <= event_limit)
		leave_event(call, bytes, tag, ek_weight(event_limit));
	if (EK_LOAD(account->time_limit) != 0) {
		adapt(account, call->leave);
		if (EK_LOAD(account->calls) > EK_LOAD(account->due))
			draw(account);
	}
}

/* When an untimed call began that the drainer first saw at `seen`, and not yet
 * when it looked before: about when the last timed call ended, since where calls
 * are not timed they come thick and fast; if that was earlier still, in the
 * middle between the looks. */
static uint64_t guess_enter(uint64_t before, uint64_t seen)
{
	if (ek_self.last_leave > before && ek_self.last_leave < seen)
		return ek_self.last_leave;
	return before ? before + (seen - before) / 2 : seen;
}

/* At the end of an untimed call that the drainer has found open twice, where calls
 * are timed at all. */
static void end_noticed(struct ek_thread *thread)
{
	uint64_t current = EK_LOAD(thread->current);
	struct ek_account *account = &ek_self.accounts[(current & 0xffff) - 1];
	bool this_one = is_noticed(thread);
	EK_STORE(thread->attention, 0);
	if (!this_one || EK_LOAD(account->time_limit) == 0)
		return;
	const struct ek_comm_local *comm = &ek_comms_local[(uint16_t)(account->key >> 16)];
	if (current & EK_CURRENT_RANK)
		ek_only_peer(thread, ek_comm_peer(comm, (int)(uint32_t)EK_LOAD(thread->current_sequence)));
	struct ek_call call = {
		.account = account,
		.comm = comm,
		.enter = guess_enter(EK_LOAD(thread->seen_before), EK_LOAD(thread->first_seen)),
		.leave = ek_ticks(),
		.sequence = EK_LOAD(thread->current_sequence),
		.weight = 1,
		.function = (uint16_t)account->key,
		.collective = ek_collective[(uint16_t)account->key],
		.noticed = true,
		.guessed = true,
	};
	/* The place is fast no longer: time all its calls until that is seen again. */
	set_limits(account, UINT32_MAX, UINT32_MAX);
	ek_record(&call, 0, 0);
}

void ek_end_disturbed(struct ek_thread *thread, bool untimed)
{
	if (untimed && EK_LOAD(thread->attention) != EK_ATTENTION_NONE)
		end_noticed(thread);
	if (EK_LOAD(thread->waiting))
		ek_wait_over();
}

/* ---- requests --------------------------------------------------------- */

/* Whom a request concerns. A direct-mapped cache: a request that is pushed out
 * by another one is waited for without knowing its peer. Threads may push each
 * other's out, so who reads looks at the key before and after. */
struct posted {
	uint64_t key;
	uint64_t sequence;
	uint16_t peer;
	uint16_t comm;
	uint16_t collective;
};

enum { POSTED_BITS = 11 };
static struct posted posted[1 << POSTED_BITS];

static struct posted *posted_place(uint64_t request)
{
	return &posted[request * 0x9e3779b97f4a7c15ull >> (64 - POSTED_BITS)];
}

uint64_t ek_done_requests[2];

void ek_posted(struct ek_call *call, uint64_t request, bool collective)
{
	struct posted *place = posted_place(request);
	if (!ek_self.thread) /* in a child that was forked inside the call */
		return;
	bool done = request == ek_done_requests[0] || request == ek_done_requests[1];
	EK_STORE(place->key, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* One for all: it tells no more than which communicator it was made on last. */
	EK_STORE(place->sequence, call->sequence);
	EK_STORE(place->peer, done ? EK_NO_PEER : EK_LOAD(ek_self.thread->current_peer[0]));
	EK_STORE(place->comm, call->comm->index);
	EK_STORE(place->collective, collective && !done);
	EK_PUBLISH(place->key, request);
}

/* What is known of a request; false if nothing is. */
static bool find_posted(uint64_t request, struct posted *found)
{
	const struct posted *place = posted_place(request);
	if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) != request)
		return false;
	found->sequence = EK_LOAD(place->sequence);
	found->peer = EK_LOAD(place->peer);
	found->comm = EK_LOAD(place->comm);
	found->collective = EK_LOAD(place->collective);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return EK_LOAD(place->key) == request;
}

void ek_join(struct ek_call *call, const struct ek_comm_local *comm, uint64_t sequence)
{
	call->collective = true;
	call->comm = comm;
	call->sequence = sequence;
	EK_STORE(ek_self.thread->current_sequence, sequence);
	EK_STORE(ek_self.thread->joined, EK_LOAD(ek_self.thread->current));
}

/* Adds a peer to the first `known` of the call, once. */
static int add_peer(uint16_t peer, int known)
{
	if (peer == EK_NO_PEER || known == EK_PEERS)
		return known;
	for (int i = 0; i < known; i++)
		if (EK_LOAD(ek_self.thread->current_peer[i]) == peer)
			return known;
	EK_STORE(ek_self.thread->current_peer[known], peer);
	return known + 1;
}

/* Adds a request's peer to those of the call, once; a nonblocking collective
 * makes the call part of that operation. */
static int add_request(struct ek_call *call, uint64_t request, int place, int known)
{
	struct posted found;
	uint16_t peer;
	if (!find_posted(request, &found))
		return known;
	if (found.collective)
		ek_join(call, &ek_comms_local[found.comm], found.sequence);
	peer = found.peer;
	if (peer == EK_ANY_PEER && call->enter != 0) {
		if (call->from_any < EK_PEERS) {
			call->any[call->from_any].request = (uint16_t)place;
			call->any[call->from_any].comm = found.comm;
		}
		call->from_any++;
	}
	return add_peer(peer, known);
}

static uint64_t comm_of(uint64_t request)
{
	struct posted found;
	return find_posted(request, &found) ? EK_F_KEY(EK_ENTRY, found.comm) : EK_NO_HANDLE;
}

uint64_t ek_requests_comm_c(int count, const MPI_Request requests[])
{
	return count > 0 && requests ? comm_of(EK_C_KEY(requests[0])) : EK_NO_HANDLE;
}

uint64_t ek_requests_comm_f(int count, const MPI_Fint requests[])
{
	return count > 0 && requests ? comm_of(EK_F_KEY(EK_F_REQUEST, requests[0])) : EK_NO_HANDLE;
}

void ek_requests_c(struct ek_call *call, int count, const MPI_Request requests[])
{
	call->from_any = 0;
	for (int i = 0, known = 0; i < count && requests && i < 64; i++)
		known = add_request(call, EK_C_KEY(requests[i]), i, known);
}

void ek_requests_f(struct ek_call *call, int count, const MPI_Fint requests[])
{
	call->from_any = 0;
	for (int i = 0, known = 0; i < count && requests && i < 64; i++)
		known = add_request(call, EK_F_KEY(EK_F_REQUEST, requests[i]), i, known);
}

void ek_source_c(struct ek_call *call, int place, int source, const MPI_Status *status)
{
	if (source == MPI_ANY_SOURCE && !ek_ignored_c(status))
		ek_peer(call, place, status->MPI_SOURCE);
}

void ek_source_f(struct ek_call *call, int place, int source, const MPI_Fint *status)
{
	if (source == MPI_ANY_SOURCE && !ek_ignored_f(status))
		ek_peer(call, place, status[0]); /* MPI_SOURCE is the first word of Open MPI's status */
}

/* Takes EK_ANY_PEER from the peers of the call and returns how many are left; if
 * there were more requests from any source than could be noted, it stays. */
static int known_peers(const struct ek_call *call)
{
	uint16_t *peers = ek_self.thread->current_peer;
	int known = 0;
	for (int i = 0; i < EK_PEERS; i++) {
		uint16_t peer = EK_LOAD(peers[i]);
		if (peer != EK_NO_PEER && (peer != EK_ANY_PEER || call->from_any > EK_PEERS))
			EK_STORE(peers[known++], peer);
	}
	for (int i = known; i < EK_PEERS; i++)
		EK_STORE(peers[i], EK_NO_PEER);
	return known;
}

static int add_source(const struct ek_call *call, int i, int source, int known)
{
	return add_peer(ek_comm_peer(&ek_comms_local[call->any[i].comm], source), known);
}

void ek_sources_c(struct ek_call *call, const MPI_Status statuses[])
{
	if (call->from_any == 0 || statuses == MPI_STATUSES_IGNORE || ek_ignored_c(statuses))
		return;
	for (int i = 0, known = known_peers(call); i < call->from_any && i < EK_PEERS; i++)
		known = add_source(call, i, statuses[call->any[i].request].MPI_SOURCE, known);
}

void ek_sources_f(struct ek_call *call, const MPI_Fint *statuses)
{
	const size_t size = sizeof(MPI_Status) / sizeof *statuses; /* MPI_STATUS_SIZE */
	if (call->from_any == 0 || ek_ignored_f(statuses) ||
	    (ek_mpi.f_statuses_ignore && statuses == *ek_mpi.f_statuses_ignore))
		return;
	for (int i = 0, known = known_peers(call); i < call->from_any && i < EK_PEERS; i++)
		known = add_source(call, i, statuses[call->any[i].request * size], known);
}
