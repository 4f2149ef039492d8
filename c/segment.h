/* segment.h - the node segment: the one place where its layout is written.
 *
 * One mapped file per world and node in /dev/shm. Ranks write into it from C,
 * the Go runtime, `evenkeel status` and `evenkeel report` read it, also after
 * its writers are dead; a profile on disk is an image of it. The Go types in
 * runtime/segment are generated from this header (`make generate`).
 *
 *   header | rank area 0 | rank area 1 | ...
 *   rank area: ek_rank | modules | communicators | members | regions | windows
 *              | bins | barriers | arrivals | threads | history | arrivals everywhere
 *   thread:    ek_thread | accounts | event ring
 *
 * Every part begins on a 4096-byte boundary, and its place follows from the
 * lengths in the header alone. Untouched pages take no memory.
 *
 * Who writes what: each word has one writer at a time. The leader (the rank
 * of the lowest number on the node) writes the header; a rank writes its own
 * area, a thread its own thread part; the rank's Go drainer writes history,
 * bins and ring_tail. All are 64-bit or smaller aligned words, stored and
 * loaded with relaxed atomics unless a comment names another order, so a
 * reader never sees half a word. Times are ticks of the node's clock (see
 * ek_clock_source); 0 means "not known".
 */
#ifndef EK_SEGMENT_H
#define EK_SEGMENT_H

#include <stdint.h>

#define EK_SEGMENT_MAGIC 0x4c45454b4e455645ull /* "EVENKEEL" read as a little-endian word */
#define EK_LAYOUT_VERSION 4
#define EK_PAGE 4096

#define EK_JOB_LEN 64
#define EK_HOST_LEN 64
#define EK_PATH_LEN 256
#define EK_OUT_LEN 1024
#define EK_NAME_LEN 48

#define EK_MODULES 128
#define EK_COMMS 256
#define EK_REGIONS 256
#define EK_WINDOWS 64
#define EK_BINS 512
#define EK_PEERS 8
#define EK_BARRIERS 64 /* communicators whose barriers go over the node's memory at a time */
#define EK_BARRIER_HISTORY 32 /* barriers of each, a power of two */

#define EK_EVENT_COLLECTIVE 0x80u /* in ek_event.weight: comm and sequence name an operation */
#define EK_EVENT_GUESSED 0x40u /* there too: the call was not timed when it began, and enter is a guess */
#define EK_NO_PEER 0xffffu /* an unused place in a list of peers */
#define EK_ANY_PEER 0xfffeu /* MPI_ANY_SOURCE, before the message is known */
#define EK_FAR_PEER 0xfffdu /* a rank of another world, or one above 65532 */

/* What ticks are. */
enum ek_clock_source {
	EK_CLOCK_MONOTONIC = 0, /* CLOCK_MONOTONIC, nanoseconds */
	EK_CLOCK_TSC = 1        /* the invariant time-stamp counter */
};

/* Whether this node's part of the profile is made. */
enum ek_reported {
	EK_REPORT_NONE = 0,
	EK_REPORT_MADE = 1, /* by the ranks, in MPI_Finalize */
	EK_REPORT_EARLY = 2 /* by the watcher, as a rank had come to a bad end; it makes another one
	                       when the last rank is gone */
};

/* A reading of both clocks of a node at the same moment: two of them turn
 * ticks into CLOCK_MONOTONIC nanoseconds. */
struct ek_clock_anchor {
	uint64_t ticks;
	uint64_t monotonic_ns;
};

/* The node's CLOCK_MONOTONIC minus that of node 0 of the world, measured from
 * the smallest of many round trips. The truth is within +-error_ns. */
struct ek_clock_sync {
	uint64_t monotonic_ns; /* when, on this node's clock; 0: not measured */
	int64_t offset_ns;
	uint64_t error_ns;
};

struct ek_header {
	uint64_t magic;          /* written last, with release order: the header is complete */
	uint32_t layout_version; /* EK_LAYOUT_VERSION */
	uint32_t header_size;    /* sizeof(struct ek_header) */
	uint64_t segment_size;   /* bytes, whole file */
	uint64_t rank_area_size; /* bytes from one rank area to the next */
	uint32_t local_ranks;    /* rank areas in this segment */
	uint32_t world_size;     /* ranks in this MPI_COMM_WORLD */
	uint32_t world;          /* number of this world in its job: 1, and 2... for spawned ones */
	uint32_t node;           /* number of this node in its world */
	uint32_t nodes;          /* nodes in this world */
	uint32_t thread_slots;   /* thread parts in each rank area */
	uint32_t accounts;       /* accounts in each thread, a power of two */
	uint32_t ring_events;    /* events in each ring, a power of two */
	uint32_t history_events; /* events in each history */
	uint32_t members;        /* words in each table of members */
	uint32_t clock_source;   /* enum ek_clock_source */
	uint32_t table_hash;     /* of the function names in mpi.table */
	uint32_t reported;       /* enum ek_reported */
	uint32_t watcher;        /* process id of the node's watcher, once it watches */
	uint64_t created_realtime_ns;
	uint64_t sample_seed;    /* the same on every rank: which operations are timed */
	struct ek_clock_anchor anchor[2]; /* at the start; the newest. For readers meanwhile,
	                                     monotonic_ns is 0 while it changes */
	struct ek_clock_sync sync[2];     /* in MPI_Init; in MPI_Finalize. monotonic_ns comes last */
	char job[EK_JOB_LEN];
	char host[EK_HOST_LEN];
	char out[EK_OUT_LEN];    /* the profile's directory, absolute */
};

enum ek_rank_state {
	EK_RANK_EMPTY = 0,
	EK_RANK_RUNNING = 1,
	EK_RANK_FINALIZING = 2, /* inside MPI_Finalize */
	EK_RANK_FINALIZED = 3,
	EK_RANK_ABORTED = 4,    /* called MPI_Abort */
	EK_RANK_EXITED = 5,     /* left through exit() without MPI_Finalize */
	EK_RANK_KILLED = 6      /* gone without a word: whoever found out writes this, and the rest
	                           of a dead rank's area is theirs too */
};

/* What the ways of EVENKEEL_FAST did, and what was done in waits. */
enum ek_fast_counter {
	EK_FAST_BARRIERS,       /* that went over the node's memory */
	EK_FAST_BARRIERS_PLAIN, /* that were left to MPI */
	EK_FAST_SENDS,          /* that returned with their message in a shadow buffer, */
	EK_FAST_SENT_BYTES,     /* and its bytes */
	EK_FAST_SENDS_FULL,     /* left to MPI because no slot was free */
	EK_FAST_TYPES,          /* datatypes that were compiled */
	EK_FAST_TYPES_PLAIN,    /* that were left to MPI */
	EK_FAST_PACKED,         /* times that such data was gathered, */
	EK_FAST_PACKED_BYTES,
	EK_FAST_UNPACKED,       /* and scattered */
	EK_FAST_UNPACKED_BYTES,
	EK_FAST_SLEEPS,         /* of waiting threads, */
	EK_FAST_SLEPT_NS,       /* and how long they slept in all */
	EK_FAST_IDLE_RUNS,      /* times that the idle program was let run, */
	EK_FAST_IDLE_RAN_NS,    /* and how long in all */
	EK_FAST_HOOKS,          /* housekeeping that was done in waits */
	EK_FAST_HOOKS_OVERRUN,  /* of it took longer than was declared */
	EK_FAST_LOANS,          /* times that a rank lent its cores, */
	EK_FAST_LENT_NS,        /* and how long in all */
	EK_FAST_MOVES,          /* of a partition's items to new owners, */
	EK_FAST_HIDDEN_NS,      /* and what they need got ready while slower ranks computed: nanoseconds */
	EK_FAST_EARLY,          /* and the messages of theirs whose receives were begun then */
	EK_FAST_COUNTERS
};

struct ek_rank {
	uint32_t rank;          /* in its MPI_COMM_WORLD */
	uint32_t pid;
	uint32_t state;         /* enum ek_rank_state */
	int32_t abort_code;     /* of MPI_Abort */
	uint32_t thread_level;  /* MPI's `provided`: a report notes threads that call MPI without leave */
	uint32_t threads;       /* thread parts ever used: indices 0 .. threads-1 */
	uint32_t modules;       /* entries in use; written with release order, */
	uint32_t comms;         /* as are these three: an entry is complete  */
	uint32_t regions;       /* before it is counted                       */
	uint32_t members;       /* words in use in the table of members */
	uint32_t cpus;          /* cores in the affinity mask at the start */
	uint32_t region;        /* the innermost that is open: index */
	uint32_t waits;         /* 1 in a wait that is used: see idle.h */
	uint32_t lends_to;      /* local rank + 1 that has its cores meanwhile */
	uint32_t windows;       /* entries in use, like `regions` */
	uint32_t foreign;       /* packets that are no task's of its jobs: from the notice about them on */
	uint64_t init_enter;    /* ticks: MPI_Init called, returned; MPI_Finalize called */
	uint64_t init_leave;
	uint64_t finalize_enter;
	uint64_t calls_unrecorded; /* calls of threads beyond thread_slots */
	/* History, written by the drainer. */
	uint64_t history_count;   /* events in history[] */
	uint64_t history_level;   /* see runtime/history: 1 operation in 2^level is kept */
	uint64_t history_offered; /* events seen, kept or not */
	uint64_t bin_ticks;       /* width of a bin; bin 0 begins at init_leave */
	uint64_t drained_ticks;   /* when the rings were last emptied */
	uint64_t fast[EK_FAST_COUNTERS]; /* by enum ek_fast_counter */
	char command[EK_PATH_LEN];
};

/* A loaded program or library, so that a call site is a module and an offset
 * and means the same on every rank whatever the address space layout; or a
 * function of a program in Python, "FILE::FUNCTION", in which offsets are lines. */
struct ek_module {
	uint64_t base; /* load bias: address in memory minus address in the file */
	char path[EK_PATH_LEN - 8];
};

enum ek_comm_flags {
	EK_COMM_INTER = 1,  /* an intercommunicator */
	EK_COMM_FREED = 2,
	EK_COMM_OTHER = 4,  /* stands for all communicators past EK_COMMS */
	EK_COMM_FOREIGN = 8, /* has members of another world */
	EK_COMM_TOPOLOGY = 16, /* the ranks that its neighbourhood collectives wait for are recorded */
	EK_COMM_TOPOLOGIES = 32 /* one that had the entry before had other such ranks, or there was no
	                           room for them */
};

struct ek_comm {
	uint64_t id;       /* equal on all its members; with `birth` on no other communicator */
	uint64_t sequence; /* number of its next collective operation: birth << 32 | begun by this rank so far */
	uint32_t size;
	uint32_t rank;     /* this rank's number in it */
	uint32_t members;  /* its first word in the table of members */
	uint32_t member_count; /* words there: 0 if the table was full */
	uint32_t flags;    /* enum ek_comm_flags */
	uint32_t birth;    /* tells it from the others of its id: see handles.c */
	uint32_t neighbours; /* first word of the ranks that a neighbourhood collective of this rank
	                        waits for, in the table of members too */
	uint32_t neighbour_count;
	char name[EK_NAME_LEN];
};

/* A part of the program, marked by MPI_Pcontrol or ek_region_begin. Region 0
 * is the whole run. Times are exclusive of regions inside it. */
struct ek_region {
	uint32_t parent;
	uint32_t entries;  /* times entered */
	uint64_t ticks;    /* spent in it, without the regions inside it; of the one that is open, up
	                      to when it, or one inside it, was last entered or left */
	char name[EK_NAME_LEN];
};

/* What went out through a window of global shared memory, as of its last fence
 * (evenkeel_gsm.h). Several threads may add to the last entry, which is for all
 * windows beyond. */
struct ek_window {
	uint32_t job;    /* of the process: from 1 */
	uint32_t number; /* the window's; 0: of several */
	uint64_t puts, put_bytes;
	uint64_t gets, get_bytes;
	uint64_t atomics;
	uint64_t refused; /* commands that were not issued, or failed */
	uint64_t fences;
};

/* One time bin of a rank: what the waiting looked like over the run. */
struct ek_bin {
	uint64_t mpi_ticks;  /* of the main thread, estimated where calls are sampled */
	uint64_t mpi_calls;  /* timed calls that end in it, weighted */
};

/* A rank's place in the barriers of one communicator: see barrier.c. Each is a
 * cache line, since others wait for a change of it. */
struct ek_barrier {
	uint64_t arrived;  /* number of the last barrier that the rank has come to; release order */
	uint64_t released; /* leaders: of the last one that all have come to; release order */
	uint32_t sleepers; /* that wait for `arrived`, */
	uint32_t released_sleepers; /* and for `released`: relaxed, and counted by others */
	uint64_t unused[5];
};

/* When the rank came to the last barriers of that communicator. */
struct ek_arrivals {
	uint64_t recorded;  /* number of the last barrier whose time is below; release order */
	uint64_t exchanged; /* leaders, of several nodes: of the last one whose times on all
	                       ranks are in the leader's table of them; release order */
	uint64_t ticks[EK_BARRIER_HISTORY]; /* barrier n's at n % EK_BARRIER_HISTORY */
};

/* What one thread did at one call site on one communicator in one region.
 * The first line is all that a call which is not timed touches. */
#define EK_ACCOUNT_KEY(function, comm, region) \
	((uint64_t)(function) | (uint64_t)(comm) << 16 | (uint64_t)(region) << 32)
struct ek_account {
	uint64_t site;       /* return address in this process; 0: free entry */
	uint64_t key;        /* EK_ACCOUNT_KEY(function, communicator, region) */
	uint64_t calls;      /* all calls, counted */
	uint64_t offset;     /* site in its module's file */
	uint32_t time_limit;  /* a call whose chance is not above this is timed, */
	uint32_t event_limit; /* and leaves an event: UINT32_MAX >> k lets 1 in 2^k through */
	uint64_t due;        /* `calls` when the next one is to be timed; not used of collectives */
	uint64_t adapt_ticks; /* when the limits were last reconsidered, */
	uint64_t adapt_calls; /* and `calls` then                       */
	/* second line: timed calls */
	uint64_t timed;      /* how many */
	uint64_t ticks;      /* sum over timed calls of duration x 2^k: an unbiased estimate */
	double variance;     /* of that estimate, ticks^2 (Horvitz-Thompson) */
	uint64_t shortest;   /* ticks */
	uint64_t longest;
	uint64_t bytes;      /* sum over timed calls of bytes x 2^k */
	uint64_t adapt_timed; /* `timed` when the limits were last reconsidered */
	uint64_t module;     /* index into modules */
};

/* One timed call. 64 bytes: payload and stamp share a cache line. */
struct ek_event {
	uint64_t stamp;    /* 1 + number in this ring; written last, with release order */
	uint64_t enter;
	uint64_t leave;
	uint64_t sequence; /* collective: number on its communicator, from 0; else the tag */
	uint64_t bytes;    /* that the call sends, as far as its arguments tell; 0 for receives */
	uint16_t account;  /* index in its thread */
	uint16_t comm;
	uint16_t function;
	uint8_t thread;
	uint8_t weight;    /* this call stands for 2^(weight & 63) calls; EK_EVENT_... */
	uint16_t peer[EK_PEERS]; /* world ranks it waits for: source, destination, root, or those
	                            of the requests; EK_NO_PEER where unused */
};

enum ek_thread_state {
	EK_THREAD_FREE = 0,
	EK_THREAD_USED = 1,
	EK_THREAD_LEFT = 2 /* its thread ended; a new thread may take it up */
};

/* In ek_thread.current: the call's times are kept; its one peer, if any, is the
 * rank of its communicator that current_sequence names, and current_peer holds
 * nothing. Above these bits stands how many calls its account had before. */
#define EK_CURRENT_TIMED 0x10000u
#define EK_CURRENT_RANK 0x20000u
#define EK_CURRENT_CALLS 18

enum ek_attention {
	EK_ATTENTION_NONE = 0,
	EK_ATTENTION_CALL = 1, /* the untimed call that `seen_current` names lasts */
	EK_ATTENTION_NEXT = 2  /* the thread has been outside MPI for long: its next call is to be timed */
};

struct ek_thread {
	/* The first line is written in every call. */
	uint64_t current;       /* 0 outside MPI, else account index + 1 | EK_CURRENT_... */
	uint64_t current_enter; /* ticks, if the call is timed */
	uint64_t current_sequence; /* of a collective, as in ek_event; see EK_CURRENT_RANK */
	uint64_t ring_head;     /* events written; release order */
	uint16_t current_peer[EK_PEERS];
	uint32_t attention;     /* drainer: enum ek_attention; the thread clears it */
	uint32_t waiting;       /* the call under way has lasted for longer than a moment: see wait.c */
	uint64_t first_seen;    /* drainer: ticks when it first saw `seen_current` */
	/* second line */
	uint64_t seen_current;  /* drainer */
	uint64_t ring_tail;     /* drainer: events taken */
	uint64_t ring_lost;     /* drainer: events overwritten before they were taken */
	uint32_t state;         /* enum ek_thread_state */
	uint32_t tid;
	uint64_t mpi_ticks;     /* estimated time in MPI, all accounts */
	uint64_t joined;        /* `current` of a call that completes a nonblocking collective */
	uint64_t seen_before;   /* drainer: ticks when it last looked before it first saw it */
	uint64_t seen_calls;    /* drainer: calls of all accounts, when it saw the thread outside MPI */
};

_Static_assert(sizeof(struct ek_account) == 128, "an account is two cache lines");
_Static_assert(sizeof(struct ek_event) == 64, "an event is one cache line");
_Static_assert(sizeof(struct ek_thread) == 128, "a thread's words are two cache lines");
_Static_assert(sizeof(struct ek_window) == 64, "a window's counters are one cache line");
_Static_assert(sizeof(struct ek_barrier) == 64, "a place in a barrier is one cache line");
_Static_assert(sizeof(struct ek_header) <= EK_PAGE, "the header fits its page");
_Static_assert(sizeof(struct ek_rank) <= EK_PAGE, "a rank's identity fits its page");

static inline uint64_t ek_pages(uint64_t bytes)
{
	return (bytes + EK_PAGE - 1) & ~(uint64_t)(EK_PAGE - 1);
}

#endif
