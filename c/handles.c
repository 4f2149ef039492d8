#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

struct ek_handle ek_handles[1 << EK_HANDLE_BITS];
struct ek_comm_local ek_comms_local[EK_COMMS];

/* What has operations of its own, and, of communicators, how it was made. */
enum kind { KIND_COMM = 0, KIND_WINDOW = 1, KIND_FILE = 2, KIND_BY_GROUP = 3 };

enum { FREE = 0, WAS_USED = 1, SLOTS = 1 << EK_HANDLE_BITS };

/* Slot 0 is the home of key 0, which is no handle: it always leads to entry 0. */

/* ---- the table --------------------------------------------------------- */

static struct ek_handle *search(uint64_t key)
{
	uint64_t home = ek_handle_home(key);
	for (uint64_t i = 0; i < SLOTS; i++) {
		struct ek_handle *slot = &ek_handles[(home + i) & (SLOTS - 1)];
		uint64_t found = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE);
		if (slot == ek_handles)
			continue;
		if (found == key)
			return slot;
		if (found == FREE)
			return 0;
	}
	return 0;
}

/* Under ek.lock. A full table (4095 handles at once) leaves the rest to entry 0. */
static void put(uint64_t key, const struct ek_comm_local *comm)
{
	uint64_t home = ek_handle_home(key);
	struct ek_handle *slot = search(key);
	for (uint64_t i = 0; i < SLOTS && !slot; i++) {
		struct ek_handle *next = &ek_handles[(home + i) & (SLOTS - 1)];
		if (next != ek_handles && EK_LOAD(next->key) <= WAS_USED)
			slot = next;
	}
	if (!slot)
		return;
	EK_STORE(slot->comm, comm);
	EK_PUBLISH(slot->key, key);
	ek_epoch_next(); /* it may have been looked for in vain */
}

/* A dropped slot at the end of a chain of slots is free again, and so are the
 * dropped ones before it: chains don't grow with the communicators that come
 * and go. */
static void drop_slot(struct ek_handle *slot)
{
	uint64_t i = (uint64_t)(slot - ek_handles);
	bool last = EK_LOAD(ek_handles[(i + 1) & (SLOTS - 1)].key) == FREE && i + 1 < SLOTS;
	EK_PUBLISH(slot->key, last ? FREE : WAS_USED);
	while (last && --i > 0 && EK_LOAD(ek_handles[i].key) == WAS_USED)
		EK_PUBLISH(ek_handles[i].key, FREE);
	ek_epoch_next(); /* last: who looks again finds it gone */
}

/* A key that is not at its home: further on; or a Fortran communicator seen
 * for the first time, which shares the entry of its C handle. Nothing else is
 * asked of MPI here. */
const struct ek_comm_local *ek_handle_search(uint64_t key)
{
	const struct ek_comm_local *comm = &ek_comms_local[EK_COMM_NONE];
	if (key == EK_NO_HANDLE)
		return comm;
	if (key >> 56 == EK_ENTRY)
		return &ek_comms_local[(uint8_t)key];
	pthread_mutex_lock(&ek.lock);
	struct ek_handle *slot = search(key);
	if (!slot && key >> 56 == EK_F_COMM) {
		MPI_Comm handle = ek_mpi.Comm_f2c((MPI_Fint)(uint32_t)key);
		slot = handle ? search(EK_C_KEY(handle)) : 0;
		if (slot)
			put(key, EK_LOAD(slot->comm));
	}
	if (slot)
		comm = EK_LOAD(slot->comm);
	pthread_mutex_unlock(&ek.lock);
	return comm;
}

/* ---- communicators ----------------------------------------------------- */

/* World ranks of a group's members; UINT32_MAX for those of other worlds. */
static uint32_t *ranks_of(MPI_Group group, int *count)
{
	MPI_Group world;
	uint32_t *ranks = 0;
	int *from = 0, *to = 0, n = 0;
	if (ek_mpi.Group_size(group, &n) != MPI_SUCCESS || n <= 0 ||
	    ek_mpi.Comm_group(ek_mpi.comm_world, &world) != MPI_SUCCESS)
		return 0;
	from = malloc((size_t)n * sizeof *from);
	to = malloc((size_t)n * sizeof *to);
	ranks = malloc((size_t)n * sizeof *ranks);
	if (from && to && ranks) {
		for (int i = 0; i < n; i++)
			from[i] = i;
		ek_mpi.Group_translate_ranks(group, n, from, world, to);
		for (int i = 0; i < n; i++)
			ranks[i] = to[i] < 0 ? UINT32_MAX : (uint32_t)to[i];
		*count = n;
	} else {
		free(ranks);
		ranks = 0;
	}
	ek_mpi.Group_free(&world);
	free(from);
	free(to);
	return ranks;
}

/* What is known of a communicator before it has an entry. */
struct description {
	uint32_t *ranks; /* members: of an intercommunicator, the group with the lower first rank first */
	int size;
	int first_size;  /* of that first group; `size` if there is one group */
	uint32_t *targets; /* ranks that messages go to: the remote group, or `ranks` itself */
	int target_count;
	uint32_t *neighbours; /* whom its neighbourhood collectives wait for */
	int neighbour_count;
	bool topology;        /* it has one, and the neighbours are known */
	int rank;
	uint32_t flags;
	char name[MPI_MAX_OBJECT_NAME];
	uint64_t hash; /* see entry_for */
};

/* What all members of a new communicator know alike: who they are, and from what
 * kind of communicator it was made (null: from several, or none). Births are not
 * a part of it: in a loop that copies a communicator, and the copy again, the
 * inner ones are to take up one entry after the other. Members of another world
 * can't be named here as they name themselves: what spans worlds has an id of its
 * own in each, and its operations are not matched. */
static uint64_t identity(const struct description *d, const struct ek_comm *parent, enum kind kind)
{
	uint64_t hash = ek_mix(((uint64_t)kind << 32) + ek.header->world);
	if (parent)
		hash = ek_mix(hash + parent->id);
	hash = ek_mix(hash + ((uint64_t)(uint32_t)d->size << 32 | (uint32_t)d->first_size));
	for (int i = 0; i < d->size; i++)
		hash = ek_mix(hash + d->ranks[i]);
	return hash;
}

/* Whom this rank waits for in neighbourhood collectives, in ranks of the
 * communicator: of a distributed graph, its sources. Null if it has no topology. */
static int *sources_of(MPI_Comm comm, int rank, int *count)
{
	int kind = MPI_UNDEFINED, dimensions = 0, out, weighted, *ranks;
	*count = 0;
	ek_mpi.Topo_test(comm, &kind);
	if (kind == MPI_CART) {
		ek_mpi.Cartdim_get(comm, &dimensions);
		*count = 2 * dimensions;
	} else if (kind == MPI_GRAPH) {
		ek_mpi.Graph_neighbors_count(comm, rank, count);
	} else if (kind == MPI_DIST_GRAPH) {
		ek_mpi.Dist_graph_neighbors_count(comm, count, &out, &weighted);
	} else {
		return 0;
	}
	ranks = malloc(((size_t)*count + 1) * sizeof *ranks);
	if (!ranks)
		return 0;
	for (int i = 0; i < dimensions; i++)
		ek_mpi.Cart_shift(comm, i, 1, &ranks[2 * i], &ranks[2 * i + 1]);
	if (kind == MPI_GRAPH)
		ek_mpi.Graph_neighbors(comm, rank, *count, ranks);
	else if (kind == MPI_DIST_GRAPH)
		ek_mpi.Dist_graph_neighbors(comm, *count, ranks, MPI_UNWEIGHTED, 0, 0, MPI_UNWEIGHTED);
	return ranks;
}

static void describe_topology(MPI_Comm comm, struct description *d)
{
	int count, *sources = sources_of(comm, d->rank, &count);
	d->neighbours = sources ? malloc(((size_t)count + 1) * sizeof *d->neighbours) : 0;
	d->topology = d->neighbours != 0;
	for (int i = 0; i < count && d->topology; i++)
		if (sources[i] >= 0 && sources[i] < d->size) /* else nobody is beyond the edge */
			d->neighbours[d->neighbour_count++] = d->ranks[sources[i]];
	free(sources);
}

static bool describe(MPI_Comm comm, const struct ek_comm *parent, enum kind kind, struct description *d)
{
	MPI_Group group;
	int inter = 0, length = 0;
	memset(d, 0, sizeof *d);
	ek_mpi.Comm_rank(comm, &d->rank);
	ek_mpi.Comm_test_inter(comm, &inter);
	ek_mpi.Comm_get_name(comm, d->name, &length);
	if (ek_mpi.Comm_group(comm, &group) != MPI_SUCCESS)
		return false;
	d->ranks = ranks_of(group, &d->size);
	ek_mpi.Group_free(&group);
	d->targets = d->ranks;
	d->target_count = d->first_size = d->size;
	if (inter && d->ranks && ek_mpi.Comm_remote_group(comm, &group) == MPI_SUCCESS) {
		int here = d->size, there = 0;
		uint32_t *remote = ranks_of(group, &there), *both;
		ek_mpi.Group_free(&group);
		both = remote ? malloc((size_t)(here + there) * sizeof *both) : 0;
		if (!both) {
			free(remote);
			free(d->ranks);
			return false;
		}
		bool first = d->ranks[0] < remote[0];
		memcpy(both, first ? d->ranks : remote, (size_t)(first ? here : there) * sizeof *both);
		memcpy(both + (first ? here : there), first ? remote : d->ranks, (size_t)(first ? there : here) * sizeof *both);
		free(d->ranks);
		d->ranks = both;
		d->size = here + there;
		d->first_size = first ? here : there;
		d->targets = remote;
		d->target_count = there;
		d->flags = EK_COMM_INTER;
	}
	if (!d->ranks)
		return false;
	for (int i = 0; i < d->size; i++)
		if (d->ranks[i] == UINT32_MAX)
			d->flags |= EK_COMM_FOREIGN;
	if (!(d->flags & (EK_COMM_INTER | EK_COMM_FOREIGN)))
		describe_topology(comm, d);
	d->hash = identity(d, parent, kind);
	return true;
}

static void forget(struct description *d)
{
	if (d->targets != d->ranks)
		free(d->targets);
	free(d->neighbours);
	free(d->ranks);
}

/* Communicators of the same identity have the same id, and are told apart by
 * their birth, which stands in the upper half of the numbers of the operations:
 * which operation on the parent made it, or, without a parent, how many were
 * made before. All members agree about it, also where several threads make
 * communicators at once. Two births of one parent are never the same, and those
 * of different parents hardly ever. */
static uint32_t birth_of(const struct ek_call *made_by, uint64_t identity)
{
	if (made_by)
		return (uint32_t)(made_by->sequence >> 32) * 0x9e3779b1u + (uint32_t)made_by->sequence;
	uint32_t birth = 0;
	for (uint32_t i = EK_COMM_WORLD; i < EK_LOAD(ek.rank->comms); i++)
		if (ek.comms[i].id == identity && ek.comms[i].birth >= birth)
			birth = ek.comms[i].birth + 1;
	return birth;
}

/* The entry of one that was freed is taken up again by the next of the same
 * identity. */
static uint32_t entry_for(uint64_t identity)
{
	uint32_t used = EK_LOAD(ek.rank->comms);
	for (uint32_t i = EK_COMM_WORLD; i < used; i++)
		if (ek.comms[i].id == identity && EK_LOAD(ek.comms[i].flags) & EK_COMM_FREED)
			return i;
	return used < EK_COMMS ? used : EK_COMM_NONE;
}

static uint16_t *peer_table(const uint32_t *targets, int count)
{
	uint16_t *peers = malloc((size_t)count * sizeof *peers);
	for (int i = 0; peers && i < count; i++)
		peers[i] = targets[i] < EK_FAR_PEER ? (uint16_t)targets[i] : EK_FAR_PEER;
	return peers;
}

/* Under ek.lock. Puts a communicator's neighbours into its entry, and returns the
 * flags that tell of them. An entry that is taken up again keeps those of the one
 * before if that one had the same, or the new one has none; others come into their
 * place where it is large enough. */
static uint32_t put_neighbours(struct ek_comm_local *local, struct ek_comm *shared, const struct description *d)
{
	const uint32_t both = EK_COMM_TOPOLOGY | EK_COMM_TOPOLOGIES;
	uint32_t before = EK_LOAD(shared->flags) & both, used = EK_LOAD(ek.rank->members);
	uint32_t count = (uint32_t)d->neighbour_count;
	size_t size = count * sizeof *ek.members;
	if (!d->topology || (before & EK_COMM_TOPOLOGY && shared->neighbour_count == count &&
	                     memcmp(ek.members + shared->neighbours, d->neighbours, size) == 0))
		return before;
	if (before) /* for readers meanwhile */
		EK_STORE(shared->flags, EK_COMM_FREED | EK_COMM_TOPOLOGIES);
	if (count > local->neighbour_room) {
		if (used + count > ek.header->members)
			return EK_COMM_TOPOLOGIES;
		shared->neighbours = used;
		local->neighbour_room = count;
		EK_STORE(ek.rank->members, used + count);
	}
	memcpy(ek.members + shared->neighbours, d->neighbours, size);
	shared->neighbour_count = count;
	return before ? both : EK_COMM_TOPOLOGY;
}

/* Under ek.lock. */
static const struct ek_comm_local *take_entry(const struct ek_call *made_by, const struct description *d)
{
	uint32_t birth = birth_of(made_by, d->hash), index = entry_for(d->hash);
	struct ek_comm *shared = &ek.comms[index];
	struct ek_comm_local *local = &ek_comms_local[index];
	if (index == EK_COMM_NONE)
		return local;
	if (index < EK_LOAD(ek.rank->comms)) {
		EK_STORE(shared->birth, birth);
		EK_STORE(shared->sequence, (uint64_t)birth << 32);
		EK_STORE(shared->flags, d->flags | put_neighbours(local, shared, d));
		return local;
	}
	local->shared = shared;
	local->seed = ek_mix(ek.header->sample_seed ^ d->hash);
	local->peers = peer_table(d->targets, d->target_count);
	local->peer_count = local->peers ? (unsigned)d->target_count : 0;
	local->index = (uint16_t)index;
	shared->id = d->hash;
	shared->birth = birth;
	shared->sequence = (uint64_t)birth << 32;
	shared->size = (uint32_t)d->size;
	shared->rank = (uint32_t)d->rank;
	snprintf(shared->name, EK_NAME_LEN, "%s", d->name);
	if (EK_LOAD(ek.rank->members) + (uint32_t)d->size <= ek.header->members) {
		shared->members = EK_LOAD(ek.rank->members);
		shared->member_count = (uint32_t)d->size;
		memcpy(ek.members + shared->members, d->ranks, (size_t)d->size * sizeof *ek.members);
		EK_STORE(ek.rank->members, shared->members + (uint32_t)d->size);
	}
	shared->flags = d->flags | put_neighbours(local, shared, d);
	EK_PUBLISH(ek.rank->comms, index + 1);
	return local;
}

void ek_comm_made(const struct ek_call *call, MPI_Comm comm)
{
	const struct ek_comm *parent = call && call->comm->index != EK_COMM_NONE ? call->comm->shared : 0;
	bool by_all = parent && call->collective; /* else by a group: no operation of the parent */
	struct description d;
	int kept = errno;
	if (comm && comm != ek_mpi.comm_null && describe(comm, parent, by_all ? KIND_COMM : KIND_BY_GROUP, &d)) {
		pthread_mutex_lock(&ek.lock);
		put(EK_C_KEY(comm), take_entry(by_all ? call : 0, &d));
		pthread_mutex_unlock(&ek.lock);
		forget(&d);
	}
	errno = kept;
}

/* Gives a handle an entry with the members of the call's communicator: a
 * communicator that is still being made and can't be asked for its group, a
 * window or a file, whose operations are numbered apart. */
static void put_like(const struct ek_call *call, uint64_t key, enum kind kind, const char *name)
{
	const struct ek_comm *from = call->comm->shared;
	struct description d = {0};
	if (call->comm->index == EK_COMM_NONE || from->member_count == 0)
		return;
	snprintf(d.name, sizeof d.name, "%s%s", name, kind ? from->name : "");
	d.ranks = ek.members + from->members;
	d.size = (int)from->size;
	d.rank = (int)from->rank;
	d.flags = EK_LOAD(from->flags) & (EK_COMM_INTER | EK_COMM_FOREIGN);
	d.first_size = d.size; /* the parent's identity says how they are divided */
	d.hash = identity(&d, from, kind);
	if (kind == KIND_COMM) {
		d.topology = EK_LOAD(from->flags) & EK_COMM_TOPOLOGY;
		d.neighbours = ek.members + from->neighbours;
		d.neighbour_count = (int)from->neighbour_count;
	}
	uint32_t *targets = malloc(call->comm->peer_count * sizeof *targets);
	if (!targets)
		return;
	for (unsigned i = 0; i < call->comm->peer_count; i++)
		targets[i] = call->comm->peers[i];
	d.targets = targets;
	d.target_count = (int)call->comm->peer_count;
	pthread_mutex_lock(&ek.lock);
	put(key, take_entry(call, &d));
	pthread_mutex_unlock(&ek.lock);
	free(targets);
}

void ek_comm_dup(const struct ek_call *call, MPI_Comm comm)
{
	put_like(call, EK_C_KEY(comm), KIND_COMM, "");
}

void ek_bind(const struct ek_call *call, uint64_t key, bool file)
{
	put_like(call, key, file ? KIND_FILE : KIND_WINDOW, file ? "file on " : "window on ");
}

/* Another thread may have been given a new one of the same handle by now. */
void ek_unbind(const struct ek_call *call, uint64_t key)
{
	pthread_mutex_lock(&ek.lock);
	struct ek_handle *slot = search(key);
	if (slot && EK_LOAD(slot->comm) == call->comm) {
		struct ek_comm *shared = call->comm->shared;
		drop_slot(slot);
		if (call->comm->index > EK_COMM_SELF)
			EK_STORE(shared->flags, EK_LOAD(shared->flags) | EK_COMM_FREED);
	}
	pthread_mutex_unlock(&ek.lock);
}

void ek_comm_named(MPI_Comm comm)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	int length = 0;
	pthread_mutex_lock(&ek.lock);
	struct ek_handle *slot = search(EK_C_KEY(comm));
	const struct ek_comm_local *local = slot ? EK_LOAD(slot->comm) : 0;
	if (local && local->index != EK_COMM_NONE && ek_mpi.Comm_get_name(comm, name, &length) == MPI_SUCCESS)
		snprintf(local->shared->name, EK_NAME_LEN, "%s", name);
	pthread_mutex_unlock(&ek.lock);
}

/* By the time that a call which frees has returned, another thread may have been
 * given a communicator of the same handle: that one stays. */
void ek_comm_gone(const struct ek_call *call, MPI_Comm comm)
{
	pthread_mutex_lock(&ek.lock);
	const struct ek_comm_local *local = call->comm;
	struct ek_handle *slot = search(EK_C_KEY(comm));
	if (slot && EK_LOAD(slot->comm) == local) {
		drop_slot(slot);
		if (local->index > EK_COMM_SELF) {
			EK_STORE(local->shared->flags, EK_LOAD(local->shared->flags) | EK_COMM_FREED);
			for (uint32_t i = 1; i < SLOTS; i++) /* its Fortran handle too */
				if (EK_LOAD(ek_handles[i].key) >> 56 == EK_F_COMM && EK_LOAD(ek_handles[i].comm) == local)
					drop_slot(&ek_handles[i]);
		}
	}
	pthread_mutex_unlock(&ek.lock);
}

bool ek_handles_start(void)
{
	struct ek_comm *other = &ek.comms[EK_COMM_NONE];
	snprintf(other->name, EK_NAME_LEN, "other");
	other->flags = EK_COMM_OTHER;
	ek_comms_local[EK_COMM_NONE].shared = other;
	ek_comms_local[EK_COMM_NONE].seed = ek_mix(ek.header->sample_seed);
	EK_STORE(ek_handles[0].comm, &ek_comms_local[EK_COMM_NONE]);
	EK_PUBLISH(ek.rank->comms, 1);
	ek_comm_made(0, ek_mpi.comm_world);
	ek_comm_made(0, ek_mpi.comm_self);
	ek_done_requests[0] = EK_C_KEY(ek_mpi.request_empty);
	ek_done_requests[1] = EK_F_KEY(EK_F_REQUEST, ek_mpi.Request_c2f(ek_mpi.request_empty));
	return EK_LOAD(ek.rank->comms) == 3;
}
