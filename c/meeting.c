#define _GNU_SOURCE
#include "meeting.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"

enum {
	EVERYBODY_UP_TO = 16, /* members on one node that wait for each other without a leader */
	NO_PLACE = -1
};

struct meeting *ek_meetings[1 << EK_MEETING_BITS];
static struct meeting none; /* its communicator is null, its way plain */
static struct meeting *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over `unused`, and these: */
static bool taken[EK_BARRIERS];
static uint64_t highest[EK_BARRIERS]; /* number that was used at each place */

static int keyval;
static struct ek_layout layout;
static struct { int node, local; } *where; /* each rank of the world is */
static int own_node;

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
		m->node_of[rank] = i;
		if (node == own_node)
			mine = i;
	}
	return mine;
}

static void free_room(struct meeting *m)
{
	free(m->wait_for);
	free(m->recorded);
	free(m->node_of);
	ek_exchange_free(&m->exchange);
	m->wait_for = 0;
	m->recorded = 0;
	m->node_of = 0;
}

/* All that may fail, before the members agree. */
static bool make_room(struct meeting *m)
{
	size_t n = (size_t)m->size;
	free_room(m);
	m->wait_for = malloc(n * sizeof *m->wait_for);
	m->recorded = malloc(n * sizeof *m->recorded);
	m->node_of = malloc(n * sizeof *m->node_of);
	return ek_exchange_new(&m->exchange, m->size) && m->wait_for && m->recorded && m->node_of;
}

/* The leader's table of times. If there is no room for it in /dev/shm, the barrier
 * does without: there is no history of it. */
static void find_table(struct meeting *m, int leader)
{
	unsigned char *table_of_leader = area_of(m->members[leader]) + layout.arrivals_everywhere +
	                                 (size_t)m->place * layout.arrivals_everywhere_size;
	m->leader = arrivals_of(m, leader);
	m->everywhere = (uint64_t *)table_of_leader;
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
			ek_exchange_plan(&m->exchange, nodes, m->nodes, mine, m->members, m->node_of, m->size);
	}
}

/* Offers all places that are free here, and takes the first one that all members
 * offer. While a thread has them on offer, those of other communicators find
 * none: these try again later. */
void ek_meeting_agree(struct meeting *m)
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

struct meeting *ek_meeting_of(MPI_Comm comm)
{
	struct meeting **entry = &ek_meetings[ek_meeting_home(comm)];
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

bool ek_meetings_start(bool wanted, int node)
{
	int mine[2] = {node, ek.local_rank}, able, all = 0;
	where = malloc((size_t)ek.world_size * sizeof *where);
	able = wanted && where && ek_mpi.Comm_create_keyval(not_copied, forget, &keyval, 0) == MPI_SUCCESS;
	ek_mpi.Allreduce(&able, &all, 1, ek_mpi.type_int, ek_mpi.op_min, ek_mpi.comm_world);
	if (!all)
		return false;
	ek_mpi.Allgather(mine, 2, ek_mpi.type_int, where, 2, ek_mpi.type_int, ek_mpi.comm_world);
	layout = ek_layout_of(ek.header);
	own_node = node;
	for (int i = 0; i < 1 << EK_MEETING_BITS; i++)
		ek_meetings[i] = &none;
	return true;
}

void ek_meetings_stop(void)
{
	ek_mpi.Comm_free_keyval(&keyval);
}
