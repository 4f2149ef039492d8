/* barrier.c - MPI_Barrier over the node's memory.
 *
 * A barrier place is the same number in the areas of all members of a
 * communicator: there each member says which barrier it has come to
 * (`arrived`), and when (`ticks`). On one node everybody waits for the words of
 * all others. Where there are several nodes, or many ranks, the rank of the
 * lowest number on each node, the leader, waits for those of its node, exchanges
 * their times with the other leaders, which is the barrier between nodes, and
 * releases its node.
 *
 * The members agree on a place when they first meet in a barrier of the
 * communicator, and give it back when the communicator is freed. Numbers never
 * begin anew: those of a communicator follow on the highest that any member has
 * used at that place. So a word that says n or more where n is waited for can
 * only have been written by a member that came to barrier n: what its place held
 * before was lower, and it raised it to n there. If it has freed the communicator
 * meanwhile and uses the place for another one, which it may while others still
 * leave the last barrier, the word is higher yet, and they leave. It says nothing
 * wrong to the members of that other one either: they agreed on higher numbers,
 * and whoever is a member of both had to leave and free the first one to agree.
 *
 * Which communicator goes this way must be decided alike by all its members, or
 * they would wait for each other in different ways. So what a process knows of a
 * communicator hangs on the communicator itself, as an attribute: it is there
 * from the first barrier on, whatever way the communicator was made, and MPI
 * tells us when it is freed. All decisions rest on what all members know alike:
 * its group, how many barriers it had, and what an Allreduce over it gave.
 */
#define _GNU_SOURCE
#include "barrier.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "layout.h"
#include "process.h"

enum {
	EVERYBODY_UP_TO = 16, /* members on one node that wait for each other without a leader */
	TABLE_BITS = 10,
	NO_PLACE = -1
};

/* How the barriers of a communicator are done. */
enum way {
	PLAIN,     /* by MPI, for good: it has no communicator of one world of ours */
	PLACELESS, /* by MPI: there was no place; tried again at barrier 1, 2, 4, 8... */
	ALONE,     /* there is nobody to wait for */
	EVERYBODY, /* all on this node, each waits for all */
	LEADER,    /* waits for its node, exchanges, releases it */
	MEMBER     /* waits for its leader */
};

/* One step of the exchange between leaders, in words of `times`. */
struct step {
	int to, from; /* world ranks */
	int send;     /* the first words go out, */
	int at, receive; /* and these come in */
};

enum { STEPS = 32 };

/* What this process knows of a communicator. They are used again and never
 * freed: a thread that looks for another communicator may still look at one. */
struct meeting {
	MPI_Comm comm;            /* first; null: of none */
	enum way way;
	unsigned waited;          /* how many lines there are in `wait_for` */
	uint64_t sequence;        /* number of the last barrier that this rank came to */
	struct ek_barrier *own;
	struct ek_arrivals *arrivals;
	const struct ek_barrier **wait_for; /* the other members on this node; of a member, its leader */

	uint64_t base;            /* the number before its first barrier */
	int place;
	uint64_t calls, retry;    /* without a place: barriers so far; when to try again */
	int size, rank, nodes;
	int *members;             /* world ranks */
	const struct ek_arrivals **recorded; /* of one node: of each member */
	/* of several nodes */
	const struct ek_arrivals *leader;
	const uint64_t *everywhere; /* the leader's table: see layout.h */
	/* leaders */
	uint64_t *times;          /* arrivals in the order of the exchange: this node's first */
	int *order;               /* whose they are, by rank of the communicator */
	int here;                 /* how many are this node's */
	int steps;
	struct step step[STEPS];
	struct meeting *next;     /* among those of none */
};

static struct meeting none; /* comm is null, its way is plain */
static struct meeting *table[1 << TABLE_BITS]; /* the last one that was looked for, by hash of its handle */
static struct meeting *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the three above, and these: */
static bool taken[EK_BARRIERS];
static uint64_t highest[EK_BARRIERS]; /* number that was used at each place */

static int keyval;
static MPI_Comm leaders; /* a copy of the world, for the leaders' exchange; the tag is the place */
static struct ek_layout layout;
static struct { int node, local; } *where; /* each rank of the world is */
static int own_node;
static bool crowded; /* this node's ranks have fewer processors than they are */
/* How ticks become times, the same on all ranks of the node. */
static struct ek_clock_anchor anchor;
static double ns_per_tick;
static int64_t offset_ns;

/* ---- waiting ------------------------------------------------------------ */

enum {
	GLANCES = 64,  /* at first, about 0.3 us: only look */
	LOOKS = 4,     /* between two times that MPI gets on with its own */
	CALM = 4096,   /* rounds without a yield where there are processors enough: about 0.5 ms */
	PROGRESS_EVERY = 64 /* barriers: so that ranks that never wait let others get on, too */
};

static inline bool reached(const uint64_t *word, uint64_t number)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= number;
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* MPI's rule: what others have begun with this rank completes while it waits. */
static void progress(void)
{
	int flag;
	if (EK_LIKELY(ek_mpi.progress != 0))
		ek_mpi.progress();
	else
		ek_mpi.Iprobe(MPI_ANY_SOURCE, 0, ek_mpi.comm_self, &flag, MPI_STATUS_IGNORE);
}

static bool yields(void)
{
	return ek_mpi.progress_yields && EK_LOAD(*ek_mpi.progress_yields);
}

static __attribute__((noinline)) void wait_long(const uint64_t *word, uint64_t number)
{
	for (unsigned round = 0; !reached(word, number); round++) {
		progress();
		for (int i = 0; i < LOOKS; i++) {
			if (reached(word, number))
				return;
			relax();
		}
		if ((crowded || round > CALM) && !yields())
			sched_yield();
	}
}

static inline void wait_for(const uint64_t *word, uint64_t number)
{
	/* Who has to give up the processor for the others does it at once. */
	int glances = crowded ? 1 : GLANCES;
	for (int i = 0; i < glances; i++) {
		if (reached(word, number))
			return;
		relax();
	}
	wait_long(word, number);
}

/* ---- the barrier -------------------------------------------------------- */

static inline void record(struct meeting *m, uint64_t number)
{
	EK_STORE(m->arrivals->ticks[number % EK_BARRIER_HISTORY], ek_ticks());
	EK_PUBLISH(m->arrivals->recorded, number);
}

/* The arrivals on this node, as all nodes understand them. Against the clocks'
 * present reading, since over a moment the rate of ticks is known well enough. */
static void collect(struct meeting *m, uint64_t number)
{
	uint64_t ticks = ek_ticks(), now = ek_monotonic_ns() - (uint64_t)offset_ns;
	for (int i = 0; i < m->here; i++) {
		uint64_t arrived = EK_LOAD(m->recorded[m->order[i]]->ticks[number % EK_BARRIER_HISTORY]);
		m->times[i] = now - (uint64_t)((double)(ticks - arrived) * ns_per_tick);
	}
}

/* Every leader gets the arrivals on all nodes, which is more than to know that
 * all have arrived: the steps of a dissemination barrier, carrying what Bruck's
 * allgather carries. */
static int exchange(struct meeting *m, uint64_t number)
{
	collect(m, number);
	for (int i = 0; i < m->steps; i++) {
		const struct step *s = &m->step[i];
		int result = ek_mpi.Sendrecv(m->times, s->send, ek_mpi.type_uint64, s->to, m->place, m->times + s->at,
		                             s->receive, ek_mpi.type_uint64, s->from, m->place, leaders,
		                             MPI_STATUS_IGNORE);
		if (result != MPI_SUCCESS)
			return result;
	}
	if (!m->everywhere)
		return MPI_SUCCESS;
	uint64_t *row = (uint64_t *)m->everywhere + number % EK_BARRIER_HISTORY * (uint64_t)m->size;
	for (int i = 0; i < m->size; i++)
		EK_STORE(row[m->order[i]], m->times[i]);
	EK_PUBLISH(m->arrivals->exchanged, number);
	return MPI_SUCCESS;
}

/* With a leader. The time is there before the word that others wait for, since
 * the leader passes it on. */
static __attribute__((noinline)) int led(struct meeting *m)
{
	uint64_t number = ++m->sequence;
	int result = MPI_SUCCESS;
	record(m, number);
	EK_PUBLISH(m->own->arrived, number);
	if (m->way == MEMBER) {
		wait_for(&m->wait_for[0]->released, number);
	} else {
		for (unsigned i = 0; i < m->waited; i++)
			wait_for(&m->wait_for[i]->arrived, number);
		if (m->nodes > 1)
			result = exchange(m, number);
		EK_PUBLISH(m->own->released, number);
	}
	ek_count(EK_FAST_BARRIERS, 1);
	return result;
}

static struct meeting *meeting_of(MPI_Comm comm);
static void agree(struct meeting *m);
static int barrier(MPI_Comm comm);

static __attribute__((noinline)) int otherwise(MPI_Comm comm)
{
	struct meeting *m = meeting_of(comm);
	if (m->way == PLACELESS && ++m->calls == m->retry)
		agree(m);
	switch (m->way) {
	case ALONE:
		ek_count(EK_FAST_BARRIERS, 1);
		return MPI_SUCCESS;
	case EVERYBODY:
		return barrier(comm);
	case LEADER:
	case MEMBER:
		return led(m);
	default:
		ek_count(EK_FAST_BARRIERS_PLAIN, 1);
		return ek_next.MPI_Barrier(comm);
	}
}

static inline uint64_t home_of(MPI_Comm comm)
{
	return (uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15ull >> (64 - TABLE_BITS);
}

static int barrier(MPI_Comm comm)
{
	/* Acquire: what the meeting holds was written before it came into the table. */
	struct meeting *m = __atomic_load_n(&table[home_of(comm)], __ATOMIC_ACQUIRE);
	if (EK_UNLIKELY(EK_LOAD(m->comm) != comm || m->way != EVERYBODY))
		return otherwise(comm);
	uint64_t number = ++m->sequence;
	/* Release: what this rank wrote before is there for whoever sees the word. */
	EK_PUBLISH(m->own->arrived, number);
	record(m, number); /* while the others see it */
	if (EK_UNLIKELY(number % PROGRESS_EVERY == 0))
		progress();
	for (unsigned i = 0; i < m->waited; i++)
		wait_for(&m->wait_for[i]->arrived, number);
	ek_count(EK_FAST_BARRIERS, 1);
	return MPI_SUCCESS;
}

/* ---- setting up a communicator ------------------------------------------ */

static struct meeting *new_meeting(MPI_Comm comm)
{
	pthread_mutex_lock(&lock);
	struct meeting *m = unused;
	if (m)
		unused = m->next;
	pthread_mutex_unlock(&lock);
	if (!m)
		m = calloc(1, sizeof *m);
	if (!m)
		return 0;
	/* Not its handle, which another thread may be comparing with its own. */
	memset((char *)m + sizeof m->comm, 0, sizeof *m - sizeof m->comm);
	m->place = NO_PLACE;
	m->retry = 1;
	EK_STORE(m->comm, comm);
	return m;
}

/* The world ranks of its members; false if it spans worlds, or is none of ours. */
static bool find_members(struct meeting *m)
{
	MPI_Group group, world;
	int inter = 1;
	if (ek_mpi.Comm_test_inter(m->comm, &inter) != MPI_SUCCESS || inter)
		return false;
	ek_mpi.Comm_size(m->comm, &m->size);
	ek_mpi.Comm_rank(m->comm, &m->rank);
	m->members = malloc((size_t)m->size * sizeof *m->members);
	int *numbers = malloc((size_t)m->size * sizeof *numbers);
	bool ours = m->members && numbers && ek_mpi.Comm_group(m->comm, &group) == MPI_SUCCESS;
	if (ours) {
		ek_mpi.Comm_group(ek_mpi.comm_world, &world);
		for (int i = 0; i < m->size; i++)
			numbers[i] = i;
		ek_mpi.Group_translate_ranks(group, m->size, numbers, world, m->members);
		ek_mpi.Group_free(&group);
		ek_mpi.Group_free(&world);
		for (int i = 0; i < m->size; i++)
			ours = ours && m->members[i] >= 0;
	}
	free(numbers);
	return ours;
}

static unsigned char *area_of(int world_rank)
{
	return ek.segment + EK_PAGE + (size_t)where[world_rank].local * layout.rank_area_size;
}

static struct ek_barrier *barrier_of(const struct meeting *m, int rank)
{
	return (struct ek_barrier *)(area_of(m->members[rank]) + layout.barriers) + m->place;
}

static struct ek_arrivals *arrivals_of(const struct meeting *m, int rank)
{
	return (struct ek_arrivals *)(area_of(m->members[rank]) + layout.arrivals) + m->place;
}

static bool is_here(const struct meeting *m, int rank)
{
	return where[m->members[rank]].node == own_node;
}

/* A node that has members, and how many. */
struct node_of_comm {
	int node, leader, count;
};

/* The nodes in the order of their leaders. Returns which one is this one. */
static int list_nodes(struct meeting *m, struct node_of_comm *nodes)
{
	int mine = 0;
	m->nodes = 0;
	for (int rank = 0; rank < m->size; rank++) {
		int node = where[m->members[rank]].node, i = 0;
		while (i < m->nodes && nodes[i].node != node)
			i++;
		if (i == m->nodes)
			nodes[m->nodes++] = (struct node_of_comm){node, rank, 0};
		nodes[i].count++;
		if (node == own_node)
			mine = i;
	}
	return mine;
}

/* What a leader sends and receives: in the step of distance d, all it has of the
 * d nodes from its own on to the node d before, and from the node d after. */
static void plan_exchange(struct meeting *m, const struct node_of_comm *nodes, int mine)
{
	int at = 0;
	for (int i = 0; i < m->nodes; i++)
		for (int rank = 0; rank < m->size; rank++)
			if (where[m->members[rank]].node == nodes[(mine + i) % m->nodes].node)
				m->order[at++] = rank;
	m->here = nodes[mine].count;
	m->steps = 0;
	int have = m->here;
	for (int distance = 1; distance < m->nodes; distance *= 2) {
		int blocks = distance < m->nodes - distance ? distance : m->nodes - distance;
		int send = 0, receive = 0;
		for (int i = 0; i < blocks; i++) {
			send += nodes[(mine + i) % m->nodes].count;
			receive += nodes[(mine + distance + i) % m->nodes].count;
		}
		m->step[m->steps++] = (struct step){
			.to = m->members[nodes[(mine - distance + m->nodes) % m->nodes].leader],
			.from = m->members[nodes[(mine + distance) % m->nodes].leader],
			.send = send, .at = have, .receive = receive};
		have += receive;
	}
}

static void free_room(struct meeting *m)
{
	free(m->wait_for);
	free(m->recorded);
	free(m->times);
	free(m->order);
	m->wait_for = 0;
	m->recorded = 0;
	m->times = 0;
	m->order = 0;
}

/* All that may fail, before the members agree. */
static bool make_room(struct meeting *m)
{
	size_t n = (size_t)m->size;
	free_room(m);
	m->wait_for = malloc(n * sizeof *m->wait_for);
	m->recorded = malloc(n * sizeof *m->recorded);
	m->times = malloc(n * sizeof *m->times);
	m->order = malloc(n * sizeof *m->order);
	return m->wait_for && m->recorded && m->times && m->order;
}

/* The leader's table of times. If there is no room for it in /dev/shm, the barrier
 * does without: there is no history of it. */
static void find_table(struct meeting *m, int leader)
{
	unsigned char *table_of_leader = area_of(m->members[leader]) + layout.arrivals_everywhere +
	                                 (size_t)m->place * layout.arrivals_everywhere_size;
	m->leader = arrivals_of(m, leader);
	m->everywhere = (const uint64_t *)table_of_leader;
	if (leader == m->rank &&
	    !ek_segment_reserve((size_t)(table_of_leader - ek.segment), layout.arrivals_everywhere_size))
		m->everywhere = 0;
}

/* The members have agreed on a place and where its numbers begin. */
static void settle(struct meeting *m, struct node_of_comm *nodes)
{
	int mine = list_nodes(m, nodes), leader = nodes[mine].leader;
	bool everybody = m->nodes == 1 && m->size <= EVERYBODY_UP_TO;
	m->way = everybody ? EVERYBODY : leader == m->rank ? LEADER : MEMBER;
	m->own = barrier_of(m, m->rank);
	m->arrivals = arrivals_of(m, m->rank);
	m->sequence = m->base;
	m->waited = 0;
	for (int rank = 0; rank < m->size; rank++) {
		m->recorded[rank] = is_here(m, rank) ? arrivals_of(m, rank) : 0;
		if (is_here(m, rank) && rank != m->rank && (m->way != MEMBER || rank == leader))
			m->wait_for[m->waited++] = barrier_of(m, rank);
	}
	if (m->nodes > 1) {
		find_table(m, leader);
		if (m->way == LEADER)
			plan_exchange(m, nodes, mine);
	}
}

/* Offers all places that are free here, and takes the first one that all members
 * offer. While a thread has them on offer, those of other communicators find
 * none: these try again later. */
static void agree(struct meeting *m)
{
	uint64_t offer[EK_BARRIERS], agreed[EK_BARRIERS];
	struct node_of_comm *nodes = calloc((size_t)m->size, sizeof *nodes);
	bool able = nodes && make_room(m);
	int place = NO_PLACE;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < EK_BARRIERS; i++) {
		offer[i] = taken[i] || !able ? UINT64_MAX : highest[i];
		taken[i] = taken[i] || able;
	}
	pthread_mutex_unlock(&lock);
	bool done = ek_mpi.Allreduce(offer, agreed, EK_BARRIERS, ek_mpi.type_uint64, ek_mpi.op_max, m->comm) == MPI_SUCCESS;
	for (int i = EK_BARRIERS - 1; i >= 0 && done; i--)
		if (agreed[i] != UINT64_MAX)
			place = i;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < EK_BARRIERS; i++)
		if (offer[i] != UINT64_MAX && i != place)
			taken[i] = false;
	pthread_mutex_unlock(&lock);
	m->place = place;
	m->retry *= 2;
	if (place != NO_PLACE) {
		m->base = agreed[place];
		settle(m, nodes);
	}
	free(nodes);
}

static enum way first_way(struct meeting *m)
{
	if (!find_members(m))
		return PLAIN;
	return m->size == 1 ? ALONE : PLACELESS;
}

/* Whether MPI knows the handle. This asks without an error handler being called;
 * what is no handle is left to MPI_Barrier to complain about. */
static bool is_communicator(MPI_Comm comm)
{
	return comm && comm != ek_mpi.comm_null && ek_mpi.Comm_c2f(comm) >= 0;
}

static struct meeting *meeting_of(MPI_Comm comm)
{
	struct meeting **entry = &table[home_of(comm)];
	struct meeting *m = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	int found = 0;
	if (EK_LOAD(m->comm) == comm)
		return m;
	if (!is_communicator(comm) || ek_mpi.Comm_get_attr(comm, keyval, &m, &found) != MPI_SUCCESS)
		return &none;
	if (!found) {
		m = new_meeting(comm);
		if (!m)
			return &none;
		m->way = first_way(m);
		ek_mpi.Comm_set_attr(comm, keyval, m);
	}
	EK_PUBLISH(*entry, m);
	return m;
}

/* The communicator is freed. */
static int forget(MPI_Comm comm, int key, void *attribute, void *extra)
{
	struct meeting *m = attribute;
	(void)comm, (void)key, (void)extra;
	EK_STORE(m->comm, (MPI_Comm)0);
	free_room(m);
	free(m->members);
	m->members = 0;
	pthread_mutex_lock(&lock);
	if (m->place != NO_PLACE) {
		highest[m->place] = m->sequence;
		taken[m->place] = false;
	}
	m->next = unused;
	unused = m;
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

/* A copy of the communicator begins without. */
static int not_copied(MPI_Comm comm, int key, void *extra, void *attribute, void *copy, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)attribute, (void)copy;
	*flag = 0;
	return MPI_SUCCESS;
}

/* ---- the history -------------------------------------------------------- */

EK_EXPORT uint64_t ek_barrier_passed(MPI_Comm comm)
{
	const struct meeting *m = meeting_of(comm);
	return m->way >= EVERYBODY ? EK_LOAD(m->sequence) - m->base : 0;
}

/* Whether what stood at that number's place when it was read is that number's:
 * it was written, and not overwritten since. */
static bool still(const uint64_t *last, uint64_t number)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	uint64_t now = EK_LOAD(*last);
	return now >= number && now + 1 < number + EK_BARRIER_HISTORY;
}

static bool arrivals_here(const struct meeting *m, uint64_t number, uint64_t arrived_ns[])
{
	for (int rank = 0; rank < m->size; rank++) {
		const struct ek_arrivals *a = m->recorded[rank];
		/* It writes the time right after the word that let us leave. */
		for (int i = 0; i < 1000 && !reached(&a->recorded, number); i++)
			sched_yield();
		uint64_t ticks = EK_LOAD(a->ticks[number % EK_BARRIER_HISTORY]);
		if (!still(&a->recorded, number))
			return false;
		arrived_ns[rank] = anchor.monotonic_ns + (uint64_t)(int64_t)((double)(int64_t)(ticks - anchor.ticks) * ns_per_tick) -
		                   (uint64_t)offset_ns;
	}
	return true;
}

EK_EXPORT bool ek_barrier_arrivals(MPI_Comm comm, uint64_t number, uint64_t arrived_ns[])
{
	const struct meeting *m = meeting_of(comm);
	if (number >= ek_barrier_passed(comm))
		return false;
	number += m->base + 1;
	if (m->nodes == 1)
		return arrivals_here(m, number, arrived_ns);
	if (!m->everywhere || !reached(&m->leader->exchanged, number))
		return false;
	for (int rank = 0; rank < m->size; rank++)
		arrived_ns[rank] = EK_LOAD(m->everywhere[number % EK_BARRIER_HISTORY * (uint64_t)m->size + (uint64_t)rank]);
	return still(&m->leader->exchanged, number);
}

/* ---- start and end ------------------------------------------------------ */

/* Whether the ranks of this node have fewer processors than they are. */
static bool find_crowded(MPI_Comm node_comm)
{
	cpu_set_t mine, all;
	int ranks;
	ek_mpi.Comm_size(node_comm, &ranks);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		CPU_ZERO(&mine);
	ek_mpi.Allreduce(&mine, &all, (int)(sizeof mine / sizeof(uint64_t)), ek_mpi.type_uint64, ek_mpi.op_bor, node_comm);
	return CPU_COUNT(&all) < ranks;
}

static void find_clock(MPI_Comm node_comm)
{
	struct { struct ek_clock_anchor anchor; double ns_per_tick; int64_t offset_ns; } clock = {ek_clock_anchor_now(), 1, 0};
	const struct ek_clock_anchor *first = &ek.header->anchor[0];
	if (ek_clock_is_tsc && clock.anchor.ticks != first->ticks)
		clock.ns_per_tick = (double)(clock.anchor.monotonic_ns - first->monotonic_ns) / (double)(clock.anchor.ticks - first->ticks);
	clock.offset_ns = ek.header->sync[0].offset_ns;
	ek_mpi.Bcast(&clock, sizeof clock, ek_mpi.type_byte, 0, node_comm);
	anchor = clock.anchor;
	ns_per_tick = clock.ns_per_tick;
	offset_ns = clock.offset_ns;
}

void ek_barrier_start(struct ek_barrier_place place)
{
	int mine[2] = {place.node, ek.local_rank}, able, all = 0;
	where = malloc((size_t)ek.world_size * sizeof *where);
	able = where && ek_mpi.Comm_create_keyval(not_copied, forget, &keyval, 0) == MPI_SUCCESS;
	ek_mpi.Allreduce(&able, &all, 1, ek_mpi.type_int, ek_mpi.op_min, ek_mpi.comm_world);
	if (!all)
		return;
	ek_mpi.Allgather(mine, 2, ek_mpi.type_int, where, 2, ek_mpi.type_int, ek_mpi.comm_world);
	layout = ek_layout_of(ek.header);
	own_node = place.node;
	crowded = find_crowded(place.node_comm);
	find_clock(place.node_comm);
	leaders = ek_mpi.comm_null;
	if (place.nodes > 1) {
		ek_mpi.Comm_dup(ek_mpi.comm_world, &leaders);
		ek_mpi.Comm_set_errhandler(leaders, ek_mpi.errors_return);
	}
	for (int i = 0; i < 1 << TABLE_BITS; i++)
		table[i] = &none;
	ek_way.MPI_Barrier = barrier;
}

void ek_barrier_stop(void)
{
	if (ek_way.MPI_Barrier != barrier)
		return;
	ek_way.MPI_Barrier = ek_next.MPI_Barrier;
	ek_mpi.Comm_free_keyval(&keyval);
	if (leaders != ek_mpi.comm_null)
		ek_mpi.Comm_free(&leaders);
}
