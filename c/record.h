/* record.h - recording one MPI call: what a wrapper does around the call that
 * it forwards.
 *
 *   ek_begin    count the call in its account; say where this thread is;
 *               read the clock if this call is among those that are timed
 *   ek_peer     whom else the call may wait for
 *   (the call)
 *   ek_leave    read the clock again
 *   ek_record   add to the account, leave an event in the ring
 *   ek_end      this thread is outside MPI again
 *
 * The drainer, which looks at the thread every 50 ms, asks for attention when it
 * finds it in the same untimed call again, and when it finds it outside MPI
 * without a call in between: such a call is timed whatever its chance was, and
 * stands for itself alone, since the drainer's look has nothing to do with
 * chances. So a long wait in a place that is thick and fast elsewhere is seen,
 * and so is the rank that came late to it.
 *
 * A call that is not timed touches its account's first line and its thread's
 * first line, takes no lock, allocates nothing and leaves errno alone.
 * Which calls are timed: `time_limit` of the account; see adapt() in record.c.
 */
#ifndef EK_RECORD_H
#define EK_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "handles.h"
#include "next.h"
#include "process.h"
#include "python.h"
#include "regions.h"

/* The account that a function's last call went to: a program calls most MPI
 * functions from one place, or from few. */
struct ek_recent {
	uint64_t site;
	uint64_t handle;
	uint64_t epoch; /* ek_epoch then: what was looked up still holds; EK_NO_EPOCH: for one call only */
	struct ek_account *account;
	const struct ek_comm_local *comm;
	uint64_t current; /* number of the account + 1 */
};

/* On an intercommunicator ek_quick could not leave it to readers to find the peer. */
#define EK_NO_EPOCH UINT64_MAX

/* What a thread keeps for itself. */
struct ek_recorder {
	struct ek_thread *thread; /* null until its first call */
	struct ek_account *accounts;
	struct ek_event *ring;
	uintptr_t frame;          /* of the wrapper that is open */
	uint64_t seed;            /* of the choice which calls of this thread are timed */
	uint32_t index;           /* its thread part */
	uint64_t last_leave;      /* ticks when the last timed call ended */
	uint64_t told;            /* where the next call comes from, if a binding has said so */
	uint64_t told_all;        /* and the ones after it */
	struct ek_recent *recent; /* of each function */
};

enum { EK_ACCOUNT_BITS = 9 }; /* 512 accounts in each thread */

extern __thread struct ek_recorder ek_self __attribute__((tls_model("initial-exec")));

/* A call under way. */
struct ek_call {
	struct ek_account *account;
	const struct ek_comm_local *comm;
	uint64_t enter, leave; /* ticks; enter is 0 if the call is not timed */
	uint64_t sequence;     /* of a collective on its communicator */
	uint64_t weight;       /* a timed call stands for that many */
	uint32_t chance;       /* decides whether it is timed, and leaves an event */
	uint16_t function;
	bool collective;       /* comm and sequence name an operation */
	bool noticed;          /* timed because the drainer asked for it: stands for itself alone */
	bool guessed;          /* enter is a guess: it was not timed when it began */
	uint8_t from_any;      /* of a timed call that completes requests: those from any source, */
	struct {
		uint16_t request, comm; /* the first of them: place in the call's array, entry */
	} any[EK_PEERS];
};

bool ek_attach(void);
bool ek_reenter(uintptr_t frame);
void ek_look_up(struct ek_recent *recent, uint64_t site, uint16_t function, uint64_t handle);
void ek_record(struct ek_call *call, uint64_t bytes, uint32_t tag);
void ek_end_disturbed(struct ek_thread *thread, bool untimed);

/* The chance of the n-th operation of a communicator, in units of 2^-32: a hash,
 * so that chances are independent of each other and of what the program does.
 * What passes under a limit passes under each higher one: ranks that time at
 * different rates time the same operations. Go's history.Chance is the same
 * function. Of calls that are no operations, which are nobody else's, the next
 * one to be timed is drawn beforehand: see draw in record.c. */
static inline uint32_t ek_chance(uint64_t n, uint64_t seed)
{
	uint64_t x = n * 0x9e3779b97f4a7c15ull + seed;
	x ^= x >> 32;
	return (uint32_t)((x * 0xd6e8feb86659fd93ull) >> 32);
}

/* MurmurHash3's finalizer: neighbouring numbers give unrelated bits. */
static inline uint64_t ek_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

/* How many calls one that passed under the limit stands for. */
static inline uint64_t ek_weight(uint32_t limit)
{
	return limit ? 1ull << __builtin_clz(limit) : 1ull << 32;
}

/* What `told` is in programs in Python. */
#define EK_ASK_PYTHON 1

/* The program's call site: what ek_call_from or ek_calls_from has said, the place
 * in a Python program, or the wrapper's own return address. Once for each call,
 * since the first holds for one. */
#define EK_SITE ek_site((uint64_t)(uintptr_t)__builtin_return_address(0))
static inline __attribute__((always_inline)) uint64_t ek_site(uint64_t address)
{
	uint64_t told = ek_self.told;
	if (EK_LIKELY(!told))
		return address;
	ek_self.told = ek_self.told_all;
	return told == EK_ASK_PYTHON ? ek_python_site(address) : told;
}

#define EK_FRAME ((uintptr_t)__builtin_dwarf_cfa())

/* Sets the thread's peers to one and nobody else: EK_NO_PEER is all ones. */
static inline void ek_only_peer(struct ek_thread *thread, uint16_t peer)
{
	uint64_t words[2] = {peer | ~(uint64_t)UINT16_MAX, UINT64_MAX};
	__builtin_memcpy(thread->current_peer, words, sizeof words);
}

/* Recording is off, and where calls are forwarded to is known: a call then costs
 * little more than its way through here. */
static inline bool ek_passes_on(void)
{
	return __atomic_load_n(&ek_next_resolved, __ATOMIC_ACQUIRE) && EK_LOAD(ek.mode) == EK_OFF;
}

/* `rank` of the communicator that the handle belongs to is whom the call may
 * wait for; MPI_PROC_NULL if there is none.
 * False: forward the call and do nothing else, since recording is off or this
 * is a call that MPI, or another tool, makes inside one that is recorded. */
static inline __attribute__((always_inline)) bool
ek_begin(struct ek_call *call, uint16_t function, bool collective, uint64_t handle, int rank, uint64_t site,
         uintptr_t frame)
{
	struct ek_recorder *self = &ek_self;
	struct ek_thread *thread = self->thread;
	struct ek_recent *recent;
	struct ek_account *account;
	uint64_t calls, current;
	uint16_t peer;
	bool due, noticed;

	if (EK_UNLIKELY(!thread)) {
		if (ek_passes_on() || !ek_attach())
			return false;
		thread = self->thread;
		site = ek_site(site); /* what there is to be told is known now */
	}
	if (EK_UNLIKELY(EK_LOAD(thread->current) != 0) && !ek_reenter(frame))
		return false;
	self->frame = frame;
	recent = &self->recent[function];
	noticed = EK_LOAD(thread->attention) == EK_ATTENTION_NEXT;
	if (EK_UNLIKELY(EK_LOAD(thread->attention) != 0))
		EK_STORE(thread->attention, 0);

	if (EK_UNLIKELY(recent->site != site || recent->handle != handle || recent->epoch != EK_LOAD(ek_epoch)))
		ek_look_up(recent, site, function, handle);
	account = call->account = recent->account;
	call->comm = recent->comm;
	current = recent->current;
	peer = ek_comm_peer(call->comm, rank);

	calls = EK_LOAD(account->calls);
	EK_STORE(account->calls, calls + 1);
	call->collective = collective;
	if (collective) {
		call->sequence = ek_comm_next(call->comm);
		EK_STORE(thread->current_sequence, call->sequence);
		call->chance = ek_chance(call->sequence, call->comm->seed);
		due = call->chance <= EK_LOAD(account->time_limit);
	} else {
		/* Of a call that is timed, which is all that matters, it is below the limit. */
		call->chance = ek_chance(calls, self->seed ^ site) & EK_LOAD(account->time_limit);
		due = calls >= EK_LOAD(account->due); /* ek_record draws the next one: see there */
	}
	ek_only_peer(thread, peer);
	call->function = function;
	call->noticed = noticed && EK_LOAD(account->time_limit) != 0;
	call->guessed = false;
	if (due || call->noticed) {
		call->weight = call->noticed ? 1 : ek_weight(EK_LOAD(account->time_limit));
		call->enter = ek_ticks();
		EK_STORE(thread->current_enter, call->enter);
		current |= EK_CURRENT_TIMED;
	} else {
		call->enter = 0;
	}
	/* Readers take `current` first and last: it tells them whether the rest
	 * belongs to one call. */
	EK_PUBLISH(thread->current, calls << EK_CURRENT_CALLS | current);
	return true;
}

/* Whether anything but the call itself is to be seen to: `attention` and `waiting`
 * are one word to this. */
static inline bool ek_undisturbed(const struct ek_thread *thread)
{
	uint64_t both;
	_Static_assert(offsetof(struct ek_thread, waiting) == offsetof(struct ek_thread, attention) + 4, "one word");
	__builtin_memcpy(&both, &thread->attention, sizeof both);
	return both == 0;
}

/* The short way, for a call that needs nothing but to be counted: recording is
 * on, the place is known, and the call is not among those that are timed. Does
 * what ek_begin would, and ek_quick_end is to follow; or does nothing and
 * returns false. Words that no other thread writes are read as they are. */
static inline __attribute__((always_inline)) bool
ek_quick(uint16_t function, bool collective, uint64_t handle, int rank, uint64_t site, uintptr_t frame)
{
	struct ek_recorder *self = &ek_self;
	struct ek_thread *thread = self->thread;
	const struct ek_recent *recent;
	struct ek_account *account;
	uint64_t calls, sequence, peer_is_rank = 0;

	if (EK_UNLIKELY(!thread))
		return false;
	recent = &self->recent[function];
	if (EK_UNLIKELY(thread->current != 0 || !ek_undisturbed(thread) || recent->site != site ||
	                recent->handle != handle || recent->epoch != EK_LOAD(ek_epoch)))
		return false;
	account = recent->account;
	calls = account->calls;
	if (collective) {
		sequence = EK_LOAD(recent->comm->shared->sequence);
		if (EK_UNLIKELY(ek_chance(sequence, recent->comm->seed) <= EK_LOAD(account->time_limit)))
			return false;
		EK_STORE(recent->comm->shared->sequence, sequence + 1);
		ek_only_peer(thread, ek_comm_peer(recent->comm, rank));
	} else {
		if (EK_UNLIKELY(calls >= account->due))
			return false;
		sequence = (uint32_t)rank;
		peer_is_rank = EK_CURRENT_RANK;
	}
	EK_STORE(account->calls, calls + 1);
	EK_STORE(thread->current_sequence, sequence);
	self->frame = frame;
	EK_PUBLISH(thread->current, (calls << EK_CURRENT_CALLS) + recent->current + peer_is_rank);
	return true;
}

/* Asks for the thread anew, which costs less than to keep it through the call. */
static inline void ek_quick_end(void)
{
	struct ek_thread *thread = ek_self.thread;
	if (EK_UNLIKELY(!thread)) /* in a child that was forked inside the call */
		return;
	if (EK_UNLIKELY(!ek_undisturbed(thread)))
		ek_end_disturbed(thread, true);
	EK_PUBLISH(thread->current, 0);
}

/* Reads the clock at the end of a timed call; true if it is one. If the program
 * forked inside the call, it is none in the child. */
static inline bool ek_leave(struct ek_call *call)
{
	if (EK_LIKELY(call->enter == 0 || !ek_self.thread))
		return false;
	call->leave = ek_ticks();
	return true;
}

static inline void ek_end(struct ek_call *call)
{
	struct ek_thread *thread = ek_self.thread;
	if (EK_UNLIKELY(!thread)) /* in a child that was forked inside the call */
		return;
	if (EK_UNLIKELY(!ek_undisturbed(thread)))
		ek_end_disturbed(thread, call->enter == 0);
	EK_PUBLISH(thread->current, 0);
}

/* The call may also wait for `rank` of its communicator. */
static inline void ek_peer(struct ek_call *call, int place, int rank)
{
	EK_STORE(ek_self.thread->current_peer[place], ek_comm_peer(call->comm, rank));
}

/* The sender of a receive from any source, once it is known, at its place among
 * the peers. */
void ek_source_c(struct ek_call *call, int place, int source, const MPI_Status *status);
void ek_source_f(struct ek_call *call, int place, int source, const MPI_Fint *status);

/* Likewise the senders to requests from any source, when all have completed, in
 * place of EK_ANY_PEER. */
void ek_sources_c(struct ek_call *call, const MPI_Status statuses[]);
void ek_sources_f(struct ek_call *call, const MPI_Fint *statuses);

static inline bool ek_ignored_c(const MPI_Status *status)
{
	return status == MPI_STATUS_IGNORE;
}

static inline bool ek_ignored_f(const MPI_Fint *status)
{
	return ek_mpi.f_status_ignore && status == *ek_mpi.f_status_ignore;
}

/* The peers of the requests that a call completes, before it does. */
void ek_requests_c(struct ek_call *call, int count, const MPI_Request requests[]);
void ek_requests_f(struct ek_call *call, int count, const MPI_Fint requests[]);

/* The communicator of the first request, as a key for ek_begin. */
uint64_t ek_requests_comm_c(int count, const MPI_Request requests[]);
uint64_t ek_requests_comm_f(int count, const MPI_Fint requests[]);

/* The request that Open MPI returns for all that is complete at once, as C and
 * as Fortran know it. */
extern uint64_t ek_done_requests[2];

/* The call completes a nonblocking collective operation. */
void ek_join(struct ek_call *call, const struct ek_comm_local *comm, uint64_t sequence);

/* A request was made: remember whom it concerns. */
void ek_posted(struct ek_call *call, uint64_t request, bool collective);

/* An unknown datatype is not asked for its size: MPI would call the error
 * handler, and a call that succeeds need not have looked at it. */
static inline uint64_t ek_size_c(int count, MPI_Datatype type)
{
	int size = 0;
	if (count <= 0 || !type || type == ek_mpi.type_null || ek_mpi.Type_size(type, &size) != MPI_SUCCESS || size <= 0)
		return 0;
	return (uint64_t)count * (uint64_t)size;
}

static inline uint64_t ek_size_f(MPI_Fint count, MPI_Fint type)
{
	return ek_size_c(count, ek_mpi.Type_f2c(type));
}

static inline bool ek_succeeded(const MPI_Fint *ierror)
{
	return !ierror || *ierror == MPI_SUCCESS;
}

#endif
