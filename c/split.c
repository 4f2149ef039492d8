/* split.c - jobs that are divided into N + delta tasks.
 *
 * All ranks make the same plan: of the tasks, the parts they are cut into, and
 * whose they are. A rank's parts are a list with a counter: who adds one to it has
 * claimed the next. The counters of a node's ranks are in memory that they share, so
 * a claim is one fetch-and-add, also on another rank's list, and a rank is idle only
 * when all lists of its node are empty.
 *
 * Between nodes, one that has run out of parts asks the leader of another one, which
 * claims for it. Such a question must be answered while the leader computes; so
 * where there are several nodes, all parts are run by threads, and the calling
 * thread looks every 50 us for what came. A rank asks before its last parts are
 * done, as soon as the lists of its node are empty, and for one part at a time.
 *
 * The lists begin anew in each job: a counter is set back by its rank before the
 * agreement that lets all begin.
 *
 * While a job runs, each rank looks now and then at what it has to compute with. If
 * that changed, what nobody has claimed yet is shared anew: the rank runs more or fewer
 * threads, and shows the node the speed that it is to be reckoned with. Claims go by
 * these speeds: help goes to the list that would take longest, and a rank leaves the
 * last parts to others who would have done them sooner, for as long as it would take itself.
 */
#define _GNU_SOURCE
#include "split.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agree.h"
#include "ground.h"
#include "resources.h"

enum {
	USUAL_PARTS = 8,
	MOST_THREADS = 256,
	TAG_ASK = 1, TAG_ANSWER = 2,
	LOOK_EVERY_NS = 50000,
	LOOK_AGAIN_NS = 50000000, /* between two readings of a rank's resources */
	LEVEL_EVERY_NS = 200000000 /* the same, while a job runs: the kernel counts in ticks of 10 ms */
};

static const double RESPLIT_THRESHOLD = 0.1;

/* One for each rank of a node, in shared memory; the counter has a line of its own. */
struct place {
	uint64_t claimed; /* parts of this rank's list, and attempts beyond its end */
	uint64_t stop;    /* something failed: nothing more is to be claimed */
	double speed;     /* units per second that the rank is expected to do at present */
	uint64_t unused[5];
	struct ek_presence presence;
} __attribute__((aligned(64)));

/* What a rank tells the others before a job. */
struct report {
	double rate; /* units per second; 0: not known */
	struct ek_balancer_resources resources;
};

struct part {
	int64_t first, count;
};

struct ek_job {
	MPI_Comm comm, node_comm;
	MPI_Win window;
	int rank, ranks, node_rank, node_ranks, nodes;
	int *leader_of;         /* of each rank: the leader of its node, the lowest number there */
	int *node_rank_of;      /* of each rank of this node: its number in comm */
	struct place **places;  /* of this node's ranks */
	const struct ek_presence **presences; /* in them */
	struct place *alone;    /* the memory, where there is only one */
	struct ek_job_options options;
	double *table;
	const struct ek_balancer *balancer;

	/* What is known of the ranks. */
	struct report *reports;
	struct ek_balancer_resources *before;
	double *rates, *factors;
	int32_t *cores, *concurrent;
	bool known;
	double rate; /* this rank's own */

	/* The job that runs. */
	int64_t work, tasks;
	size_t bytes;
	struct part *parts;
	int64_t *begin;  /* ranks + 1: rank r's parts are parts[begin[r]] up to parts[begin[r + 1]] */
	char *results;
	uint64_t began_ns, ended_ns;
	pthread_mutex_t lock; /* over the rest, and over MPI never */
	pthread_cond_t changed;
	int64_t *ran;      /* parts that this rank ran */
	int64_t ran_count, own_count, units;
	struct ek_outcome outcome;
	int running, wanted; /* threads that claim, and how many should */
	int hungry;        /* of them, those that wait for a part from elsewhere */
	int64_t fetched;   /* a part that came, or -1 */
	bool exhausted;    /* there is nothing elsewhere either */
	struct ek_balancer_resources level; /* that the job runs on at present */
	uint64_t levelled_ns; /* when it was looked at */
	char report[2 * EK_TEXT];
};

/* ---- making one --------------------------------------------------------- */

static void release(ek_job *job)
{
	const struct ek_ground *g = ek_ground();
	if (job->window != g->win_null)
		g->Win_free(&job->window);
	if (job->node_comm != g->comm_null)
		g->Comm_free(&job->node_comm);
	if (job->comm != g->comm_null)
		g->Comm_free(&job->comm);
	free(job->leader_of);
	free(job->node_rank_of);
	free(job->places);
	free(job->presences);
	free(job->alone);
	free(job->table);
	free(job->reports);
	free(job->before);
	free(job->rates);
	free(job->factors);
	free(job->cores);
	free(job->concurrent);
	free(job->parts);
	free(job->begin);
	free(job->results);
	free(job->ran);
	pthread_mutex_destroy(&job->lock);
	pthread_cond_destroy(&job->changed);
	free(job);
}

static void *get(size_t count, size_t bytes, struct ek_outcome *outcome)
{
	void *memory = calloc(count + 1, bytes);
	if (!memory)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %zu bytes", count * bytes);
	return memory;
}

static void check_options(const struct ek_job_options *o, struct ek_outcome *outcome)
{
	if (o->threads < 0 || o->threads > MOST_THREADS)
		ek_fail(outcome, EK_REFUSED, "%d threads: give from 1 to %d, or 0 for the rank's share of the cores", o->threads, MOST_THREADS);
	else if (o->parts < 0 || o->parts > 1 << 16)
		ek_fail(outcome, EK_REFUSED, "tasks in %d parts: give from 1 to 65536, or 0", o->parts);
	else if (!(o->slope >= 0 && o->most >= 0 && o->most <= 1024) || o->points < 0 || (o->points > 0) != (o->table != 0))
		ek_fail(outcome, EK_REFUSED, "a relation between spread and tasks: slope and most can't be negative, nor most above "
		        "1024, and a table has points");
}

/* Of options that are in order, or the ranks agree on an error anyway. */
static uint64_t hash_options(const struct ek_job_options *o)
{
	uint64_t hash = ek_hash(0, &o->parts, sizeof o->parts);
	hash = ek_hash(hash, &o->slope, sizeof o->slope);
	hash = ek_hash(hash, &o->most, sizeof o->most);
	hash = ek_hash(hash, &o->points, sizeof o->points);
	if (o->table && o->points > 0)
		hash = ek_hash(hash, o->table, 2 * (size_t)o->points * sizeof *o->table);
	int cuts = o->cut != 0;
	return ek_hash(hash, &cuts, sizeof cuts);
}

/* The node's ranks find each other's places. Collective over the node. */
static bool share_memory(ek_job *job)
{
	const struct ek_ground *g = ek_ground();
	void *base = 0;
	if (job->node_ranks == 1) {
		job->places[0] = job->alone = aligned_alloc(64, sizeof(struct place));
		if (job->alone)
			memset(job->alone, 0, sizeof *job->alone);
		return job->alone != 0;
	}
	/* A line more, since memory may begin anywhere in a page; pages are aligned alike in all processes. */
	if (g->Win_allocate_shared(sizeof(struct place) + 64, 1, g->info_null, job->node_comm, &base, &job->window) != MPI_SUCCESS)
		return false;
	for (int i = 0; i < job->node_ranks; i++) {
		MPI_Aint size;
		int unit;
		void *at;
		if (g->Win_shared_query(job->window, i, &size, &unit, &at) != MPI_SUCCESS)
			return false;
		job->places[i] = (struct place *)(((uintptr_t)at + 63) & ~(uintptr_t)63);
	}
	memset(job->places[job->node_rank], 0, sizeof(struct place));
	return true;
}

/* Which rank is on which node. */
static void find_nodes(ek_job *job, struct ek_outcome *outcome)
{
	const struct ek_ground *g = ek_ground();
	int leader = job->rank;
	g->Bcast(&leader, sizeof leader, g->byte, 0, job->node_comm);
	if (g->Allgather(&leader, sizeof leader, g->byte, job->leader_of, sizeof leader, g->byte, job->comm) != MPI_SUCCESS)
		ek_fail(outcome, EK_MPI_FAILED, "MPI_Allgather over the ranks of the job failed");
	int *members = get((size_t)job->ranks, sizeof *members, outcome); /* of each leader's node, so far */
	for (int r = 0; members && r < job->ranks; r++) {
		int of = job->leader_of[r];
		job->nodes += of == r;
		int local = members[of]++;
		if (of == leader)
			job->node_rank_of[local] = r;
	}
	free(members);
}

static void copy_options(ek_job *job, const struct ek_job_options *o, struct ek_outcome *outcome)
{
	check_options(o, outcome);
	job->options = *o;
	if (!o->parts)
		job->options.parts = USUAL_PARTS;
	if (o->slope == 0 && o->most == 0 && !o->points) {
		job->options.slope = 0.5;
		job->options.most = 7;
	}
	if (o->points > 0 && o->table && outcome->result == EK_OK) {
		job->table = get(2 * (size_t)o->points, sizeof *job->table, outcome);
		if (job->table)
			memcpy(job->table, o->table, 2 * (size_t)o->points * sizeof *job->table);
		job->options.table = job->table;
	}
}

static int make(ek_job *job, const struct ek_job_options *o, struct ek_outcome *outcome)
{
	const struct ek_ground *g = ek_ground();
	size_t ranks = (size_t)job->ranks;
	copy_options(job, o, outcome);
	job->leader_of = get(ranks, sizeof *job->leader_of, outcome);
	job->node_rank_of = get(ranks, sizeof *job->node_rank_of, outcome);
	job->places = get(ranks, sizeof *job->places, outcome);
	job->presences = get(ranks, sizeof *job->presences, outcome);
	job->reports = get(ranks, sizeof *job->reports, outcome);
	job->before = get(ranks, sizeof *job->before, outcome);
	job->rates = get(ranks, sizeof *job->rates, outcome);
	job->factors = get(ranks, sizeof *job->factors, outcome);
	job->cores = get(ranks, sizeof *job->cores, outcome);
	job->concurrent = get(ranks, sizeof *job->concurrent, outcome);
	job->begin = get(ranks + 1, sizeof *job->begin, outcome);
	if (ek_agree(job->comm, outcome, hash_options(o), 0) != EK_OK)
		return outcome->result;
	if (g->Comm_split_type(job->comm, MPI_COMM_TYPE_SHARED, job->rank, g->info_null, &job->node_comm) != MPI_SUCCESS)
		ek_fail(outcome, EK_MPI_FAILED, "MPI_Comm_split_type over the ranks of the job failed");
	else {
		g->Comm_rank(job->node_comm, &job->node_rank);
		g->Comm_size(job->node_comm, &job->node_ranks);
		find_nodes(job, outcome);
		if (!share_memory(job))
			ek_fail(outcome, EK_NO_MEMORY, "the ranks of this node can't share memory");
		for (int i = 0; outcome->result == EK_OK && i < job->node_ranks; i++)
			job->presences[i] = &job->places[i]->presence;
	}
	return ek_agree(job->comm, outcome, 0, 0);
}

EK_EXPORT int ek_job_create(MPI_Comm comm, const struct ek_job_options *options, ek_job **result)
{
	EK_FOR_CALLER;
	static const struct ek_job_options usual;
	const struct ek_ground *g = ek_ground();
	struct ek_outcome outcome = {0};
	int between = 1;
	*result = 0;
	if (!g)
		return EK_INACTIVE;
	ek_job *job = calloc(1, sizeof *job);
	if (!job || comm == g->comm_null || g->Comm_test_inter(comm, &between) != MPI_SUCCESS || between) {
		ek_fail(&outcome, job ? EK_REFUSED : EK_NO_MEMORY, job ? "a job needs an intracommunicator" : "no memory for a job");
		free(job);
		return ek_outcome_end(&outcome);
	}
	pthread_mutex_init(&job->lock, 0);
	pthread_cond_init(&job->changed, 0);
	job->node_comm = g->comm_null;
	job->window = g->win_null;
	g->Comm_dup(comm, &job->comm);
	g->Comm_set_errhandler(job->comm, g->errors_return);
	g->Comm_rank(job->comm, &job->rank);
	g->Comm_size(job->comm, &job->ranks);
	job->balancer = g->balancer();
	snprintf(job->report, sizeof job->report, "no job has run yet");
	if (make(job, options ? options : &usual, &outcome) == EK_OK)
		*result = job;
	else
		release(job);
	return outcome.result;
}

EK_EXPORT int ek_job_free(ek_job **job)
{
	EK_FOR_CALLER;
	if (!ek_ground())
		return EK_INACTIVE;
	if (*job)
		release(*job);
	*job = 0;
	return EK_OK;
}

/* ---- the plan ----------------------------------------------------------- */

static struct ek_balancer_resources resources(const ek_job *job)
{
	struct ek_balancer_resources r = ek_resources(job->presences, job->node_ranks, job->node_rank);
	if (job->options.threads > 0)
		r.cores = job->options.threads;
	return r;
}

/* All ranks get what each knows of itself. */
static int report(ek_job *job, struct ek_outcome *outcome)
{
	const struct ek_ground *g = ek_ground();
	struct place *own = job->places[job->node_rank];
	if (ek_ground_now() - ek_presence_read(&own->presence).usage.when_ns > LOOK_AGAIN_NS)
		ek_presence_renew(&own->presence);
	g->Barrier(job->node_comm); /* all have shown themselves */
	struct report mine = {job->rate, resources(job)};
	if (g->Allgather(&mine, sizeof mine, g->byte, job->reports, sizeof mine, g->byte, job->comm) != MPI_SUCCESS)
		ek_fail(outcome, EK_MPI_FAILED, "MPI_Allgather over the ranks of the job failed");
	return outcome->result;
}

static void say(ek_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(ek_job *job, const char *format, ...)
{
	size_t length = strlen(job->report);
	va_list rest;
	va_start(rest, format);
	vsnprintf(job->report + length, sizeof job->report - length, format, rest);
	va_end(rest);
}

/* Says that a job was shared anew: of more changes than there is room for, the newest. */
static void say_anew(ek_job *job, const char *why)
{
	static const char anew[] = "; shared anew while it ran: ";
	char *oldest = strstr(job->report, anew);
	while (oldest && *oldest && strlen(job->report) + strlen(anew) + strlen(why) >= EK_TEXT) {
		const char *next = strstr(oldest + 1, anew);
		next = next ? next : oldest + strlen(oldest);
		memmove(oldest, next, strlen(next) + 1);
	}
	say(job, "%s%s", anew, why);
}

static void say_what_is_not_seen(ek_job *job)
{
	const struct ek_balancer_resources *r = &job->reports[job->rank].resources;
	if (r->cores >= 0 && r->quota >= 0 && r->others >= 0 && r->nice < 100)
		return;
	say(job, "; not seen:%s%s%s%s", r->cores < 0 ? " the affinity mask" : "", r->quota < 0 ? " the control group's limit" : "",
	    r->others < 0 ? " others' load (it takes 50 ms between two jobs)" : "", r->nice >= 100 ? " the priority" : "");
}

/* How fast the ranks are taken to be: as measured, unless what they compute with has
 * changed since. */
static void expect_rates(ek_job *job, struct ek_outcome *outcome)
{
	bool measured = true;
	char why[EK_BALANCER_TEXT] = "";
	struct ek_balancer_resources *now = get((size_t)job->ranks, sizeof *now, outcome);
	for (int r = 0; r < job->ranks; r++) {
		measured = measured && job->reports[r].rate > 0;
		job->cores[r] = job->reports[r].resources.cores < 1 ? 1 : (int32_t)job->reports[r].resources.cores;
		job->factors[r] = 1;
		if (now)
			now[r] = job->reports[r].resources;
	}
	for (int r = 0; r < job->ranks; r++)
		job->rates[r] = measured ? job->reports[r].rate : job->cores[r];
	if (job->balancer && job->known && measured && now &&
	    job->balancer->compare(job->ranks, job->before, now, RESPLIT_THRESHOLD, job->factors, why) == 1) {
		for (int r = 0; r < job->ranks; r++)
			job->rates[r] *= job->factors[r];
		say(job, "; split anew: %s", why);
	}
	if (now)
		memcpy(job->before, now, (size_t)job->ranks * sizeof *now);
	free(now);
	job->known = true;
}

/* The tasks: their ends in end[]; rank r's are [begin[r], begin[r + 1]). Without the
 * Go runtime, one for each rank. */
static void plan_tasks(ek_job *job, int64_t *end, int64_t room, struct ek_outcome *outcome)
{
	const struct ek_job_options *o = &job->options;
	char why[EK_BALANCER_TEXT] = "";
	if (!job->balancer) {
		for (int r = 0; r < job->ranks; r++) {
			end[r] = job->work / job->ranks * (r + 1) + (r + 1 < job->work % job->ranks ? r + 1 : job->work % job->ranks);
			job->begin[r + 1] = r + 1;
			job->concurrent[r] = job->cores[r];
		}
		job->tasks = job->ranks;
		return;
	}
	struct ek_balancer_job asked = {job->ranks, job->work, job->rates, job->cores, o->slope, o->most, o->table, o->points};
	struct ek_balancer_plan plan = {0, end, room, job->begin, job->concurrent};
	if (job->balancer->plan(&asked, &plan, why) != 0)
		ek_fail(outcome, EK_REFUSED, "%s", why);
	job->tasks = plan.tasks;
	/* One that has no share helps others. */
	for (int r = 0; r < job->ranks; r++)
		job->concurrent[r] = job->concurrent[r] < 1 ? 1 : job->concurrent[r];
}

/* Cuts a task into parts, which are put at `to`; returns how many. */
static int64_t cut(ek_job *job, int64_t first, int64_t end, int64_t *ends, struct part *to, struct ek_outcome *outcome)
{
	int parts = job->options.parts, found = 0;
	for (int i = 0; i < parts; i++)
		ends[i] = first + (end - first) / parts * (i + 1) + (i + 1 < (end - first) % parts ? i + 1 : (end - first) % parts);
	if (job->options.cut && end > first) {
		int failed = job->options.cut(job->options.context, first, end - first, parts, ends);
		if (failed)
			ek_fail(outcome, EK_HOOK_FAILED, "the program's function that cuts tasks failed (%d) for the units from %lld, %lld "
			        "of them", failed, (long long)first, (long long)(end - first));
	}
	for (int64_t i = 0, at = first; i < parts; at = ends[i++]) {
		if (ends[i] < at || ends[i] > end || (i == parts - 1 && ends[i] != end)) {
			ek_fail(outcome, EK_HOOK_FAILED, "the program's function cuts the units from %lld to %lld at %lld, after %lld", (long long)first,
			        (long long)end, (long long)ends[i], (long long)at);
			return 0;
		}
		if (ends[i] > at)
			to[found++] = (struct part){at, ends[i] - at};
	}
	return found;
}

static void plan(ek_job *job, struct ek_outcome *outcome)
{
	int64_t room = (int64_t)job->ranks * (2 + (job->options.points ? 1024 : (int64_t)job->options.most)), at = 0;
	int64_t *end = get((size_t)room, sizeof *end, outcome), *ends = get((size_t)job->options.parts, sizeof *ends, outcome);
	if (outcome->result == EK_OK)
		plan_tasks(job, end, room, outcome);
	if (outcome->result == EK_OK) {
		size_t most = (size_t)job->tasks * (size_t)job->options.parts;
		free(job->parts);
		free(job->ran);
		job->parts = get(most, sizeof *job->parts, outcome);
		job->ran = get(most, sizeof *job->ran, outcome);
	}
	for (int r = 0; r < job->ranks && outcome->result == EK_OK; r++) {
		int64_t task = job->begin[r], last = job->begin[r + 1];
		job->begin[r] = at;
		for (; task < last && outcome->result == EK_OK; task++)
			at += cut(job, task ? end[task - 1] : 0, end[task], ends, job->parts + at, outcome);
	}
	job->begin[job->ranks] = at;
	free(end);
	free(ends);
}

/* The parts must be the same on all ranks, which claim them by number. Only the program's
 * own function can make them differ. */
static uint64_t hash_parts(const ek_job *job, const struct ek_outcome *outcome)
{
	if (!job->options.cut || outcome->result != EK_OK)
		return 0;
	return ek_hash(0, job->parts, (size_t)job->begin[job->ranks] * sizeof *job->parts);
}

static void show_speed(struct place *place, double speed)
{
	__atomic_store(&place->speed, &speed, __ATOMIC_RELAXED);
}

static double speed_of(const ek_job *job, int local)
{
	double speed;
	__atomic_load(&job->places[local]->speed, &speed, __ATOMIC_RELAXED);
	return speed;
}

int ek_job_begin(ek_job *job, int64_t work, size_t bytes)
{
	struct ek_outcome outcome = {0};
	struct place *own = job->places[job->node_rank];
	job->work = work;
	job->bytes = bytes;
	job->report[0] = 0;
	if (work < 1 || bytes < 1 || bytes > INT32_MAX)
		ek_fail(&outcome, EK_REFUSED, "a job of %lld units with results of %zu bytes each: there must be at least one of both", (long long)work,
		        bytes);
	else if (work > INT32_MAX)
		ek_fail(&outcome, EK_REFUSED, "a job of %lld units: 2^31 - 1 at most can be gathered at once; make units larger, or "
		        "several jobs of it", (long long)work);
	uint64_t same = ek_hash(bytes, &work, sizeof work);
	if (ek_agree(job->comm, &outcome, same, 0) != EK_OK || report(job, &outcome) != EK_OK)
		return outcome.result;
	expect_rates(job, &outcome);
	plan(job, &outcome);
	free(job->results);
	job->results = get((size_t)work, bytes, &outcome);
	job->outcome = (struct ek_outcome){0};
	job->ran_count = job->own_count = job->units = 0;
	job->hungry = job->running = 0;
	job->fetched = -1;
	job->exhausted = job->nodes == 1;
	__atomic_store_n(&own->claimed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&own->stop, 0, __ATOMIC_RELAXED);
	show_speed(own, job->rates[job->rank]);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* and the agreement tells the others */
	if (ek_agree_on(job->comm, &outcome, hash_parts(job, &outcome), 0, "the program's function cuts tasks otherwise on rank %d than on "
	                "rank 0: its ends may depend on its arguments and on data that all ranks have alike, and on nothing else") != EK_OK)
		return outcome.result;
	job->wanted = job->concurrent[job->rank];
	job->level = job->reports[job->rank].resources;
	job->began_ns = job->ended_ns = job->levelled_ns = ek_ground_now();
	return EK_OK;
}

/* ---- claiming ----------------------------------------------------------- */

static int64_t remaining(const ek_job *job, int local)
{
	int r = job->node_rank_of[local];
	return job->begin[r + 1] - job->begin[r] - (int64_t)__atomic_load_n(&job->places[local]->claimed, __ATOMIC_RELAXED);
}

/* The next part of a list of this node; -1: it is empty. */
static int64_t claim_from(ek_job *job, int local)
{
	if (remaining(job, local) <= 0)
		return -1; /* without touching the line that others need */
	int r = job->node_rank_of[local];
	int64_t number = (int64_t)__atomic_fetch_add(&job->places[local]->claimed, 1, __ATOMIC_ACQ_REL);
	return job->begin[r] + number < job->begin[r + 1] ? job->begin[r] + number : -1;
}

/* The list of the node that would take its rank longest; -1: all are empty, for none
 * that was seen empty gets anything again. */
static int longest(const ek_job *job)
{
	int found = -1;
	double most = 0;
	for (int i = 0; i < job->node_ranks; i++) {
		int64_t parts = remaining(job, i);
		double takes = (double)parts / speed_of(job, i);
		if (parts > 0 && (found < 0 || takes > most)) {
			found = i;
			most = takes;
		}
	}
	return found;
}

/* From this rank's own list first, then from others of the node. */
static int64_t claim_here(ek_job *job)
{
	int64_t part = claim_from(job, job->node_rank);
	for (int from; part < 0 && (from = longest(job)) >= 0;)
		part = claim_from(job, from); /* which others may have emptied meanwhile */
	return part;
}

static bool stopped(const ek_job *job)
{
	for (int i = 0; i < job->node_ranks; i++)
		if (__atomic_load_n(&job->places[i]->stop, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Waits for what the serving thread brings from elsewhere. Under the lock. */
static int64_t claim_elsewhere(ek_job *job)
{
	job->hungry++;
	while (job->fetched < 0 && !job->exhausted)
		pthread_cond_wait(&job->changed, &job->lock);
	job->hungry--;
	int64_t part = job->fetched;
	job->fetched = -1;
	return part;
}

/* Whether the other ranks of the node would have done all that is left before one of
 * this rank's threads had done one part of it. All reckon with the speeds that are shown
 * and with the threads of the plan, so it is never true for the fastest of them; and no
 * longer for a thread that has waited for so long as to have done a part meanwhile, for
 * they may be at parts that take much longer than others. */
static bool others_are_sooner(const ek_job *job, uint64_t since_ns)
{
	double units = (double)job->work / (double)job->begin[job->ranks], left = 0, speed = 0, soonest = 0;
	for (int i = 0; i < job->node_ranks; i++) {
		double one = units * job->concurrent[job->node_rank_of[i]] / speed_of(job, i);
		int64_t parts = remaining(job, i);
		left += parts > 0 ? (double)parts * units : 0;
		if (i == job->node_rank)
			continue;
		speed += speed_of(job, i);
		soonest = soonest == 0 || one < soonest ? one : soonest;
	}
	double own = units * job->concurrent[job->rank] / speed_of(job, job->node_rank);
	double waited = (double)(ek_ground_now() - since_ns) * 1e-9;
	return left > 0 && speed > 0 && own > left / speed + soonest && own > waited;
}

/* Looks at what this rank has to compute with, now and then. Under the lock. */
static void level(ek_job *job)
{
	uint64_t now = ek_ground_now();
	struct place *own = job->places[job->node_rank];
	double factor = 1;
	char why[EK_BALANCER_TEXT] = "";
	if (now - job->levelled_ns < LEVEL_EVERY_NS)
		return;
	job->levelled_ns = now;
	ek_presence_renew(&own->presence);
	struct ek_balancer_resources seen = resources(job);
	if (job->level.others < 0)
		job->level.others = seen.others; /* it takes a while to see that */
	if (!job->balancer || job->balancer->compare(1, &job->level, &seen, RESPLIT_THRESHOLD, &factor, why) < 0)
		return;
	if (factor < 1 + RESPLIT_THRESHOLD && factor > 1 / (1 + RESPLIT_THRESHOLD))
		return;
	show_speed(own, factor * speed_of(job, job->node_rank));
	if (seen.cores >= 1 && seen.cores != job->level.cores)
		job->wanted = seen.cores > MOST_THREADS ? MOST_THREADS : (int)seen.cores;
	job->level = seen;
	say_anew(job, why);
}

/* The next part of this node for a thread of this rank; -1: there is none. */
static int64_t next_here(ek_job *job)
{
	const struct timespec pause = {0, LOOK_EVERY_NS};
	const uint64_t since = ek_ground_now();
	while (!stopped(job)) {
		pthread_mutex_lock(&job->lock);
		level(job);
		pthread_mutex_unlock(&job->lock);
		if (!others_are_sooner(job, since))
			return claim_here(job);
		nanosleep(&pause, 0); /* they may become slower */
	}
	return -1;
}

int ek_job_join(ek_job *job)
{
	pthread_mutex_lock(&job->lock);
	bool something = !job->exhausted || longest(job) >= 0;
	int wanted = something && job->running < job->wanted;
	job->running += wanted;
	pthread_mutex_unlock(&job->lock);
	return wanted;
}

static bool leave(ek_job *job)
{
	job->running--;
	job->ended_ns = ek_ground_now();
	pthread_mutex_unlock(&job->lock);
	return false;
}

int ek_job_claim(ek_job *job, int64_t *first, int64_t *count, void **results)
{
	pthread_mutex_lock(&job->lock);
	if (job->running > job->wanted)
		return leave(job);
	pthread_mutex_unlock(&job->lock);
	int64_t part = next_here(job);
	pthread_mutex_lock(&job->lock);
	if (part < 0 && !stopped(job))
		part = claim_elsewhere(job);
	if (part < 0)
		return leave(job);
	job->own_count += part >= job->begin[job->rank] && part < job->begin[job->rank + 1];
	job->units += job->parts[part].count;
	job->ran[job->ran_count++] = part;
	pthread_mutex_unlock(&job->lock);
	*first = job->parts[part].first;
	*count = job->parts[part].count;
	*results = job->results + (size_t)*first * job->bytes;
	return 1;
}

void ek_job_ran(ek_job *job, int failed)
{
	if (!failed)
		return;
	pthread_mutex_lock(&job->lock);
	ek_fail(&job->outcome, EK_HOOK_FAILED, "the program's function that runs tasks failed (%d)", failed);
	pthread_mutex_unlock(&job->lock);
	__atomic_store_n(&job->places[job->node_rank]->stop, 1, __ATOMIC_RELAXED);
}

/* ---- between nodes ------------------------------------------------------ */

/* Claims for another node what it asks for. */
static void answer(ek_job *job)
{
	const struct ek_ground *g = ek_ground();
	MPI_Status status;
	int waiting = 0;
	while (g->Iprobe(MPI_ANY_SOURCE, TAG_ASK, job->comm, &waiting, &status) == MPI_SUCCESS && waiting) {
		char nothing;
		int64_t part = stopped(job) ? -1 : claim_here(job);
		g->Recv(&nothing, 0, g->byte, status.MPI_SOURCE, TAG_ASK, job->comm, MPI_STATUS_IGNORE);
		g->Send(&part, 1, g->int64, status.MPI_SOURCE, TAG_ANSWER, job->comm);
	}
}

struct question {
	bool asked;
	int leader;         /* whom; the next one is tried when it has nothing left */
	int64_t part;
	MPI_Request request;
};

static int next_leader(const ek_job *job, int leader)
{
	for (int r = leader + 1; r < job->ranks; r++)
		if (job->leader_of[r] == r)
			return r == job->leader_of[job->rank] ? next_leader(job, r) : r;
	return -1;
}

static void tell(ek_job *job, int64_t part, bool exhausted)
{
	pthread_mutex_lock(&job->lock);
	if (part >= 0)
		job->fetched = part;
	if (exhausted)
		job->exhausted = true;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
}

/* Asks the other nodes, one after the other, as long as a thread waits for a part. */
static void ask(ek_job *job, struct question *q)
{
	const struct ek_ground *g = ek_ground();
	int answered = 0;
	if (q->asked) {
		g->Test(&q->request, &answered, MPI_STATUS_IGNORE);
		if (!answered)
			return;
		q->asked = false;
		if (q->part >= 0)
			tell(job, q->part, false);
		else if ((q->leader = next_leader(job, q->leader)) < 0)
			tell(job, -1, true);
	}
	pthread_mutex_lock(&job->lock);
	bool wanted = job->hungry > 0 && job->fetched < 0 && !job->exhausted;
	pthread_mutex_unlock(&job->lock);
	if (!wanted)
		return;
	q->asked = true;
	g->Irecv(&q->part, 1, g->int64, q->leader, TAG_ANSWER, job->comm, &q->request);
	g->Send("", 0, g->byte, q->leader, TAG_ASK, job->comm);
}

int ek_job_serves(const ek_job *job)
{
	return job->nodes > 1;
}

void ek_job_serve(ek_job *job)
{
	const struct ek_ground *g = ek_ground();
	const struct timespec pause = {0, LOOK_EVERY_NS};
	struct question q = {.leader = next_leader(job, -1)};
	bool leads = job->leader_of[job->rank] == job->rank, announced = false;
	MPI_Request all_left;
	for (int over = 0; !over;) {
		if (leads)
			answer(job);
		ask(job, &q);
		pthread_mutex_lock(&job->lock);
		bool here = job->running > 0;
		pthread_mutex_unlock(&job->lock);
		/* A rank that has nothing to do still answers until nobody can ask any more. */
		if (!here && !q.asked && !announced) {
			g->Ibarrier(job->comm, &all_left);
			announced = true;
		}
		if (announced)
			g->Test(&all_left, &over, MPI_STATUS_IGNORE);
		if (!over)
			nanosleep(&pause, 0);
	}
}

/* ---- the results -------------------------------------------------------- */

/* All ranks' lists of the parts that they ran, and those parts' results, one
 * after the other. */
struct gathered {
	int *parts, *parts_at, *units, *units_at; /* of each rank: how many, and where they begin */
	int64_t *ran;
	char *mine, *all;
};

static void get_room(ek_job *job, struct gathered *a, struct ek_outcome *outcome)
{
	size_t ranks = (size_t)job->ranks;
	a->parts = get(4 * ranks, sizeof *a->parts, outcome);
	a->ran = get((size_t)job->begin[job->ranks], sizeof *a->ran, outcome);
	a->mine = get((size_t)job->units, job->bytes, outcome);
	a->all = get((size_t)job->work, job->bytes, outcome);
	if (!a->parts || !a->mine)
		return;
	a->parts_at = a->parts + ranks;
	a->units = a->parts_at + ranks;
	a->units_at = a->units + ranks;
	char *at = a->mine;
	for (int64_t i = 0; i < job->ran_count; i++) {
		const struct part *part = &job->parts[job->ran[i]];
		memcpy(at, job->results + (size_t)part->first * job->bytes, (size_t)part->count * job->bytes);
		at += (size_t)part->count * job->bytes;
	}
}

static int gather(ek_job *job, struct gathered *a)
{
	const struct ek_ground *g = ek_ground();
	int mine[2] = {(int)job->ran_count, (int)job->units};
	int (*counts)[2] = calloc((size_t)job->ranks, sizeof *counts);
	if (!counts) /* of a few bytes, after larger ones were there */
		return MPI_ERR_NO_MEM;
	int failed = g->Allgather(mine, sizeof mine, g->byte, counts, sizeof mine, g->byte, job->comm);
	for (int r = 0; r < job->ranks; r++) {
		a->parts[r] = counts[r][0];
		a->units[r] = counts[r][1];
		a->parts_at[r] = r ? a->parts_at[r - 1] + a->parts[r - 1] : 0;
		a->units_at[r] = r ? a->units_at[r - 1] + a->units[r - 1] : 0;
	}
	free(counts);
	MPI_Datatype unit;
	g->Type_contiguous((int)job->bytes, g->byte, &unit);
	g->Type_commit(&unit);
	if (!failed)
		failed = g->Allgatherv(job->ran, mine[0], g->int64, a->ran, a->parts, a->parts_at, g->int64, job->comm);
	if (!failed)
		failed = g->Allgatherv(a->mine, mine[1], unit, a->all, a->units, a->units_at, unit, job->comm);
	g->Type_free(&unit);
	return failed;
}

/* In the order of the units. */
static void put_in_order(ek_job *job, const struct gathered *a, char *results)
{
	const char *from = a->all;
	for (int64_t i = 0; i < job->begin[job->ranks]; i++) {
		const struct part *part = &job->parts[a->ran[i]];
		memcpy(results + (size_t)part->first * job->bytes, from, (size_t)part->count * job->bytes);
		from += (size_t)part->count * job->bytes;
	}
}

/* The newest job counts as much as all before it. */
static void keep_rate(ek_job *job)
{
	double seconds = (double)(job->ended_ns - job->began_ns) * 1e-9;
	if (job->units == 0 || seconds <= 0)
		return; /* it came too late for any: it is as fast as it was */
	double rate = (double)job->units / seconds;
	job->rate = job->rate > 0 ? 0.5 * job->rate + 0.5 * rate : rate;
}

int ek_job_end(ek_job *job, void *results)
{
	struct ek_outcome outcome = job->outcome;
	struct gathered a = {0};
	char details[EK_TEXT];
	get_room(job, &a, &outcome);
	if (ek_agree(job->comm, &outcome, 0, 0) == EK_OK) {
		if (gather(job, &a) != MPI_SUCCESS)
			ek_fail(&outcome, EK_MPI_FAILED, "MPI could not gather the results");
		else
			put_in_order(job, &a, results);
		ek_outcome_end(&outcome);
		keep_rate(job);
	}
	snprintf(details, sizeof details, "%s", job->report);
	snprintf(job->report, sizeof job->report, "%lld tasks for %d ranks, in %lld parts; rank %d ran %lld of its own and %lld claimed ones%.*s",
	         (long long)job->tasks, job->ranks, (long long)job->begin[job->ranks], job->rank, (long long)job->own_count,
	         (long long)(job->ran_count - job->own_count), (int)sizeof details - 1, details);
	say_what_is_not_seen(job);
	free(a.parts);
	free(a.ran);
	free(a.mine);
	free(a.all);
	return outcome.result;
}

EK_EXPORT const char *ek_job_report(const ek_job *job)
{
	return job->report;
}

EK_EXPORT int ek_job_counts(const ek_job *job, int64_t *tasks, int64_t *own, int64_t *claimed)
{
	*tasks = job->tasks;
	*own = job->own_count;
	*claimed = job->ran_count - job->own_count;
	return EK_OK;
}

/* ---- running with threads ----------------------------------------------- */

struct crew {
	ek_job *job;
	ek_run run;
	void *context;
	pthread_mutex_t lock; /* over the rest */
	pthread_t threads[MOST_THREADS];
	int started;
};

static void *work(void *argument);

/* Starts threads as long as more are wanted, and says whether there are any. One that can't
 * be started is tried again after the next part. */
static bool hire(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->started < MOST_THREADS && ek_job_join(c->job)) {
		if (pthread_create(&c->threads[c->started], 0, work, c) == 0) {
			c->started++;
			continue;
		}
		pthread_mutex_lock(&c->job->lock);
		leave(c->job);
		break;
	}
	bool any = c->started > 0;
	pthread_mutex_unlock(&c->lock);
	return any;
}

static void *work(void *argument)
{
	struct crew *c = argument;
	int64_t first, count;
	void *results;
	while (ek_job_claim(c->job, &first, &count, &results)) {
		hire(c);
		ek_job_ran(c->job, c->run(c->context, first, count, results));
	}
	return 0;
}

/* Waits for all, also for those that were started last, by one of the others. */
static void dismiss(struct crew *c)
{
	for (int i = 0;; i++) {
		pthread_mutex_lock(&c->lock);
		bool more = i < c->started;
		pthread_mutex_unlock(&c->lock);
		if (!more)
			return;
		pthread_join(c->threads[i], 0);
	}
}

EK_EXPORT int ek_job_run(ek_job *job, int64_t units, ek_run run, void *context, void *results, size_t bytes)
{
	EK_FOR_CALLER;
	struct crew crew = {.job = job, .run = run, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER};
	int result;
	if (!ek_ground())
		return EK_INACTIVE;
	if ((result = ek_job_begin(job, units, bytes)) != EK_OK)
		return result;
	/* Where this thread needn't serve, it is one of those that compute. */
	bool computes = !ek_job_serves(job) && ek_job_join(job);
	if (!hire(&crew) && !computes) {
		job->exhausted = true; /* nobody can bring anything from elsewhere meanwhile */
		computes = ek_job_join(job);
	}
	if (computes)
		work(&crew);
	if (ek_job_serves(job))
		ek_job_serve(job);
	dismiss(&crew);
	return ek_job_end(job, results);
}
