/* partition.c - partitions of items over ranks, and their cycles.
 *
 * A cycle ends in a barrier, whose history says when each rank came to it. The time
 * that a rank computed is the sum, over the barriers of the cycle, of what lies
 * between the last rank's coming to one and this rank's coming to the next. All
 * ranks read the same history, hand it to controllers that are the same, and so
 * hold the same ranges for the next cycle without having sent each other a word.
 * Short cycles are added up first.
 * Where that history can't be had, or does not say it, each rank tells the others
 * its time in an Allgather, which is the barrier then.
 *
 * Whatever depends on a choice between the two is decided alike on all ranks: it
 * rests on what they agreed on in ek_partition_create, and on counts of barriers.
 */
#include "partition.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REGIONS_PER_RANK = 64, /* whose costs are told apart */
	MOST_REGIONS = 1 << 16
};

/* Seconds of cycles that are worth a decision, at most: it takes some 20 µs, as the
 * cycle has pushed the controller out of the caches, and what lasts no longer than a
 * scheduler lets another process run is not there to stay. */
static const double GATHERED = 8e-3;

/* Of ranges that have stood for long, shorter cycles are worth one more seldom: of changes as
 * long as the ranges are old it is still known soon, and decisions are what steps cost. */
static const double GATHERED_OLD = 32e-3;

/* Cycles in which ranks wait for less than this share are not worth one: half of the
 * threshold below which nothing would be done. Of so many decisions all but one are left out. */
static const double HARDLY = 0.01;
enum { LEFT_OUT = 8 };

/* ---- time --------------------------------------------------------------- */

static double since(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

/* What the history says of one barrier: false for good if it is forgotten. A rank
 * that has come may not have written when: it does so before it goes on. */
static bool arrivals(struct ek_partition *p, uint64_t number)
{
	const struct ek_ground *g = ek_ground();
	uint64_t passed = g->barrier_passed(p->program);
	while (!g->barrier_arrivals(p->program, number, p->arrived)) {
		if (number + EK_BARRIER_KEPT < passed)
			return false;
		sched_yield();
	}
	return true;
}

static uint64_t latest(const struct ek_partition *p)
{
	uint64_t last = 0;
	for (int r = 0; r < p->ranks; r++)
		last = p->arrived[r] > last ? p->arrived[r] : last;
	return last;
}

/* Sums up the barriers since the cycle began. Of more than the history holds, the
 * last ones stand for all. */
static void useful_by_arrivals(struct ek_partition *p)
{
	uint64_t passed = ek_ground()->barrier_passed(p->program), number = p->barriers;
	memset(p->useful, 0, (size_t)p->ranks * sizeof *p->useful);
	if (passed - number > EK_BARRIER_KEPT) {
		number = passed - EK_BARRIER_KEPT;
		if (arrivals(p, number++))
			p->all_came_ns = latest(p);
	}
	for (; number < passed; number++) {
		if (!arrivals(p, number))
			continue;
		for (int r = 0; r < p->ranks; r++)
			p->useful[r] += since(p->all_came_ns, p->arrived[r]);
		p->all_came_ns = latest(p);
	}
	p->barriers = passed;
}

/* This rank's own time until then; in a cycle that is measured between marks, those. */
static double own_useful(const struct ek_partition *p, uint64_t until_ns)
{
	if (p->measure == EK_MEASURE_WORK)
		return (double)p->worked_ns * 1e-9;
	return since(p->begun_ns + p->waited_ns, until_ns);
}

static int tell_useful(struct ek_partition *p, double mine)
{
	struct ek_outcome outcome = {0};
	if (ek_ground()->Allgather(&mine, 1, ek_ground()->real, p->useful, 1, ek_ground()->real, p->comm) != MPI_SUCCESS)
		ek_fail(&outcome, EK_MPI_FAILED, "MPI_Allgather over the ranks of the partition failed");
	return ek_outcome_end(&outcome);
}

/* ---- the cycle's begin --------------------------------------------------- */

static void begin_here(struct ek_partition *p)
{
	p->begun_ns = ek_ground_now();
	p->collectives = p->counted ? ek_ground()->collectives(p->program) : 0;
	p->waited_ns = p->worked_ns = 0;
}

int ek_cycle_begin(struct ek_partition *p)
{
	struct ek_outcome outcome = {0};
	if (ek_ground()->Barrier(p->program) != MPI_SUCCESS)
		ek_fail(&outcome, EK_MPI_FAILED, "MPI_Barrier over the ranks of the partition failed");
	else if (p->by_arrivals) {
		p->barriers = ek_ground()->barrier_passed(p->program) - 1;
		useful_by_arrivals(p);
	}
	begin_here(p);
	return ek_outcome_end(&outcome);
}

/* ---- making one --------------------------------------------------------- */

static void even(int64_t *bounds, int64_t items, int ranks)
{
	for (int r = 0; r <= ranks; r++)
		bounds[r] = items / ranks * r + (r < items % ranks ? r : items % ranks);
}

static void check_options(const struct ek_partition_options *o, int64_t items, int ranks, struct ek_outcome *outcome)
{
	if (items < 1)
		ek_fail(outcome, EK_REFUSED, "a partition of %lld items: there must be at least one", (long long)items);
	else if (o->policy < EK_POLICY_AUTO || o->policy > EK_POLICY_STATIC)
		ek_fail(outcome, EK_REFUSED, "there is no policy number %d: see enum ek_policy", o->policy);
	else if (o->measure < EK_MEASURE_AUTO || o->measure > EK_MEASURE_WORK)
		ek_fail(outcome, EK_REFUSED, "there is no measure number %d: see enum ek_measure", o->measure);
	else if (o->minimum < 0 || o->maximum < 0 || o->cycles < 0 || o->fastest < 0)
		ek_fail(outcome, EK_REFUSED, "an option of a partition is negative: give 0 for what is not known or not wanted");
	else if (!(o->threshold >= 0 && o->threshold_seconds >= 0))
		ek_fail(outcome, EK_REFUSED, "thresholds of %g and %g s: they can't be negative", o->threshold, o->threshold_seconds);
	else if (o->minimum > items / ranks)
		ek_fail(outcome, EK_REFUSED, "%d ranks with at least %lld items each need more than the %lld that there are",
		        ranks, (long long)o->minimum, (long long)items);
	else if (o->maximum && (o->maximum < o->minimum || o->maximum < (items + ranks - 1) / ranks))
		ek_fail(outcome, EK_REFUSED, "%d ranks with at most %lld items each have no room for %lld items of which each gets at least %lld",
		        ranks, (long long)o->maximum, (long long)items, (long long)o->minimum);
}

static void *get(size_t count, size_t bytes, struct ek_outcome *outcome)
{
	void *memory = calloc(count, bytes);
	if (!memory)
		ek_fail(outcome, EK_NO_MEMORY, "no memory for %zu bytes", count * bytes);
	return memory;
}

static void open_controller(struct ek_partition *p, const struct ek_partition_options *o, struct ek_outcome *outcome)
{
	const struct ek_balancer *balancer = ek_ground()->balancer();
	char why[EK_BALANCER_TEXT] = "";
	snprintf(p->reason, sizeof p->reason, "%s",
	         balancer ? "no cycle has ended yet" : "the partition stays even: the Go runtime is not loaded");
	if (!balancer || outcome->result != EK_OK || o->policy == EK_POLICY_STATIC)
		return;
	p->start = (struct ek_balancer_start){
		.ranks = p->ranks, .policy = o->policy, .fastest = o->fastest, .weighted = o->weighted,
		.threshold = o->threshold, .threshold_seconds = o->threshold_seconds,
		.minimum = o->minimum, .maximum = o->maximum, .cycles = o->cycles, .bounds = p->bounds};
	p->controller = balancer->open(&p->start, why);
	if (!p->controller)
		ek_fail(outcome, EK_REFUSED, "%s", why);
	p->balancer = balancer;
}

static void begin_gathering(struct ek_partition *p)
{
	memset(p->gathered, 0, (size_t)p->ranks * sizeof *p->gathered);
	p->cycles = 0;
}

void ek_controller_restart(struct ek_partition *p)
{
	char why[EK_BALANCER_TEXT];
	if (!p->balancer)
		return;
	if (p->controller)
		p->balancer->close(p->controller);
	begin_gathering(p);
	p->left_out = p->windows_left_out = 0;
	p->steady = 0;
	p->controller = p->balancer->open(&p->start, why);
	if (!p->controller)
		snprintf(p->reason, sizeof p->reason, "the partition stays as it is: %.*s", (int)sizeof p->reason - 40, why);
}

static void release(struct ek_partition *p)
{
	while (p->tenants) {
		struct ek_tenant *tenant = p->tenants;
		p->tenants = tenant->next;
		tenant->free(tenant);
	}
	if (p->controller)
		p->balancer->close(p->controller);
	if (p->comm != ek_ground()->comm_null)
		ek_ground()->Comm_free(&p->comm);
	free(p->bounds);
	free(p->next);
	free(p->useful);
	free(p->coming);
	free(p->gathered);
	free(p->arrived);
	free(p->costs);
	free(p);
}

/* Whether all ranks can read when each came to a barrier. Collective. */
static bool history_is_there(struct ek_partition *p)
{
	const struct ek_ground *g = ek_ground();
	uint64_t missing = 1, before;
	if (!g->barrier_passed || g->Barrier(p->program) != MPI_SUCCESS)
		missing = 1;
	else if ((before = g->barrier_passed(p->program)) > 0)
		/* A rank that was held up before it wrote its time needs a moment. */
		for (int i = 0; missing && i < 200; i++)
			missing = !g->barrier_arrivals(p->program, before - 1, p->arrived);
	struct ek_outcome outcome = {0};
	ek_agree(p->comm, &outcome, 0, &missing);
	return outcome.result == EK_OK && !missing;
}

/* Whether all ranks count the collectives of the program's communicator. Collective. */
static bool are_counted(struct ek_partition *p)
{
	struct ek_outcome outcome = {0};
	uint64_t missing = !ek_ground()->collectives || ek_ground()->collectives(p->program) == 0;
	ek_agree(p->comm, &outcome, 0, &missing);
	return outcome.result == EK_OK && !missing;
}

static uint64_t hash_options(const struct ek_partition_options *o, int64_t items)
{
	uint64_t hash = ek_hash(0, &items, sizeof items);
#define ADD(field) hash = ek_hash(hash, &o->field, sizeof o->field)
	ADD(policy);
	ADD(measure);
	ADD(fastest);
	ADD(weighted);
	ADD(threshold);
	ADD(threshold_seconds);
	ADD(minimum);
	ADD(maximum);
	ADD(cycles);
#undef ADD
	return hash;
}

static int make(struct ek_partition *p, const struct ek_partition_options *o, struct ek_outcome *outcome)
{
	size_t ranks = (size_t)p->ranks;
	check_options(o, p->items, p->ranks, outcome);
	p->bounds = get(ranks + 1, sizeof *p->bounds, outcome);
	p->next = get(ranks + 1, sizeof *p->next, outcome);
	p->useful = get(ranks, sizeof *p->useful, outcome);
	p->coming = get(ranks, sizeof *p->coming, outcome);
	p->gathered = get(ranks, sizeof *p->gathered, outcome);
	p->arrived = get(ranks, sizeof *p->arrived, outcome);
	p->regions = o->policy == EK_POLICY_PROFILED ? REGIONS_PER_RANK * (int64_t)ranks : 0;
	p->regions = p->regions > MOST_REGIONS ? MOST_REGIONS : p->regions;
	p->regions = p->regions > p->items ? p->items : p->regions;
	if (p->regions > 0)
		p->costs = get(2 * (size_t)p->regions, sizeof *p->costs, outcome); /* this rank's, and those of all */
	if (outcome->result == EK_OK) {
		even(p->bounds, p->items, p->ranks);
		open_controller(p, o, outcome);
	}
	return ek_agree(p->comm, outcome, hash_options(o, p->items), 0);
}

EK_EXPORT int ek_partition_create(MPI_Comm comm, int64_t items, const struct ek_partition_options *options, ek_partition **partition)
{
	EK_FOR_CALLER;
	static const struct ek_partition_options usual;
	const struct ek_ground *g = ek_ground();
	struct ek_outcome outcome = {0};
	struct ek_partition *p = calloc(1, sizeof *p);
	int between = 1;
	*partition = 0;
	if (!g || !p) {
		free(p);
		if (g)
			ek_fail(&outcome, EK_NO_MEMORY, "no memory for a partition");
		return g ? ek_outcome_end(&outcome) : EK_INACTIVE;
	}
	p->program = comm;
	if (comm == g->comm_null || g->Comm_test_inter(comm, &between) != MPI_SUCCESS || between ||
	    g->Comm_dup(comm, &p->comm) != MPI_SUCCESS) {
		ek_fail(&outcome, EK_REFUSED, "a partition needs an intracommunicator");
		free(p);
		return ek_outcome_end(&outcome);
	}
	g->Comm_set_errhandler(p->comm, g->errors_return);
	g->Comm_rank(p->comm, &p->rank);
	g->Comm_size(p->comm, &p->ranks);
	p->items = items;
	options = options ? options : &usual;
	p->measure = options->measure;
	if (make(p, options, &outcome) != EK_OK) {
		release(p);
		return outcome.result;
	}
	p->by_arrivals = p->measure == EK_MEASURE_AUTO && p->balancer && history_is_there(p);
	p->counted = p->by_arrivals && are_counted(p);
	*partition = p;
	return ek_cycle_begin(p);
}

EK_EXPORT int ek_partition_free(ek_partition **partition)
{
	EK_FOR_CALLER;
	if (!ek_ground())
		return EK_INACTIVE;
	if (*partition)
		release(*partition);
	*partition = 0;
	return EK_OK;
}

EK_EXPORT int ek_partition_start(ek_partition *p)
{
	EK_FOR_CALLER;
	return ek_ground() ? ek_cycle_begin(p) : EK_INACTIVE;
}

int ek_tenant_add(struct ek_partition *p, struct ek_tenant *tenant, struct ek_outcome *outcome, uint64_t same)
{
	if (ek_agree(p->comm, outcome, same, 0) != EK_OK) {
		if (tenant)
			tenant->free(tenant);
		return outcome->result;
	}
	tenant->tag = p->tags;
	p->tags += 2;
	struct ek_tenant **end = &p->tenants;
	while (*end)
		end = &(*end)->next;
	*end = tenant;
	return EK_OK;
}

/* ---- asking ------------------------------------------------------------- */

EK_EXPORT int ek_partition_range(const ek_partition *p, int64_t *first, int64_t *count)
{
	return ek_partition_range_of(p, p->rank, first, count);
}

EK_EXPORT int ek_partition_range_of(const ek_partition *p, int rank, int64_t *first, int64_t *count)
{
	if (rank < 0 || rank >= p->ranks) {
		struct ek_outcome outcome = {0};
		ek_fail(&outcome, EK_REFUSED, "there is no rank %d in this partition: they are 0 to %d", rank, p->ranks - 1);
		return ek_outcome_end(&outcome);
	}
	*first = p->bounds[rank];
	*count = p->bounds[rank + 1] - p->bounds[rank];
	return EK_OK;
}

EK_EXPORT int ek_partition_owner(const ek_partition *p, int64_t item)
{
	int low = 0, high = p->ranks - 1; /* the first rank that ends after it */
	if (item < 0 || item >= p->items)
		return -1;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (p->bounds[middle + 1] > item)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

EK_EXPORT const char *ek_partition_reason(const ek_partition *p)
{
	return p->reason;
}

EK_EXPORT int ek_work_begin(ek_partition *p)
{
	p->work_began_ns = ek_ground_now();
	return EK_OK;
}

EK_EXPORT int ek_work_end(ek_partition *p)
{
	p->worked_ns += ek_ground_now() - p->work_began_ns;
	return EK_OK;
}

/* ---- the costs of items ------------------------------------------------- */

/* Regions are as even as ranges are at first: the first `rest` of them have one
 * item more. */
static int64_t region_of(const struct ek_partition *p, int64_t item)
{
	int64_t each = p->items / p->regions, rest = p->items % p->regions, in_larger = rest * (each + 1);
	return item < in_larger ? item / (each + 1) : rest + (item - in_larger) / each;
}

static int64_t region_end(const struct ek_partition *p, int64_t region)
{
	int64_t each = p->items / p->regions, rest = p->items % p->regions;
	return (region + 1) * each + (region < rest ? region + 1 : rest);
}

/* Four sums at a time, of which none waits for another. */
static double sum_of(const double *values, int64_t count)
{
	double sum[4] = {0};
	int64_t i = 0;
	for (; i + 4 <= count; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += values[i + k];
	for (; i < count; i++)
		sum[0] += values[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

EK_EXPORT int ek_partition_costs(ek_partition *p, const double cost[])
{
	int64_t item = p->bounds[p->rank], end = p->bounds[p->rank + 1];
	if (!p->regions)
		return EK_OK;
	memset(p->costs, 0, (size_t)p->regions * sizeof *p->costs);
	p->costed = true;
	for (int64_t region = item < end ? region_of(p, item) : 0, next; item < end; item = next, region++) {
		next = region_end(p, region) < end ? region_end(p, region) : end;
		p->costs[region] = sum_of(cost, next - item);
		cost += next - item;
	}
	return EK_OK;
}

/* Sums up over the ranks, on one of them: all are to have the same. A rank that
 * gave none spoils the sum, and none are known. */
static bool collect_costs(struct ek_partition *p)
{
	const struct ek_ground *g = ek_ground();
	double *all = p->costs + p->regions;
	if (!p->regions)
		return false;
	if (!p->costed)
		p->costs[0] = NAN;
	p->costed = false;
	if (g->Reduce(p->costs, all, (int)p->regions, g->real, g->sum, 0, p->comm) != MPI_SUCCESS ||
	    g->Bcast(all, (int)p->regions, g->real, 0, p->comm) != MPI_SUCCESS)
		return false;
	return !isnan(all[0]);
}

/* ---- stepping ----------------------------------------------------------- */

/* How long cycles must be together, the longest of which is as long as that: a quarter of the
 * time that the ranges are old, as new ones are the likeliest to be changed again, and later
 * a sixteenth. */
static double worth_a_decision(const struct ek_partition *p, double longest)
{
	double young = p->steady / 4, old = p->steady / 16;
	young = young < GATHERED ? young : GATHERED;
	old = old < GATHERED_OLD ? old : GATHERED_OLD;
	return old > young && longest < GATHERED ? old : young;
}

/* Adds the cycle to those that the controller has yet to see. Returns whether it is to see
 * them: they are long enough together, and the ranks waited. Once the ranges are old,
 * cycles in which they hardly did are left out, and those that the controller sees next
 * stand for them. */
static bool gather(struct ek_partition *p)
{
	double longest = 0, gathered = 0, sum = 0;
	for (int r = 0; r < p->ranks; r++) {
		p->gathered[r] += p->useful[r];
		sum += p->gathered[r];
		longest = p->useful[r] > longest ? p->useful[r] : longest;
		gathered = p->gathered[r] > gathered ? p->gathered[r] : gathered;
	}
	p->cycles++;
	p->steady += longest;
	if (gathered < worth_a_decision(p, longest))
		return false;
	double threshold = p->start.threshold > 0 ? p->start.threshold / 2 : HARDLY;
	bool old = p->steady > LEFT_OUT * gathered, even = gathered - sum / p->ranks < threshold * gathered;
	if (!old || !even || ++p->windows_left_out == LEFT_OUT)
		return true;
	p->left_out += p->cycles;
	begin_gathering(p);
	return false;
}

/* Those that were left out took as long, as far as the controller is to know. */
static void stand_for_left_out(struct ek_partition *p)
{
	double times = (double)(p->cycles + p->left_out) / (double)p->cycles;
	for (int r = 0; r < p->ranks && p->left_out > 0; r++)
		p->gathered[r] *= times;
	p->cycles += p->left_out;
	p->left_out = p->windows_left_out = 0;
}

static int decide(struct ek_partition *p, int *changed)
{
	struct ek_outcome outcome = {0};
	if (!gather(p)) {
		begin_here(p);
		return EK_OK;
	}
	bool costs = collect_costs(p);
	stand_for_left_out(p);
	struct ek_balancer_cycle cycle = {p->cycles, p->gathered, costs ? p->costs + p->regions : 0,
	                                  costs ? p->regions : 0, p->moved_seconds};
	struct ek_balancer_decision decision = {.bounds = p->next};
	if (p->balancer->step(p->controller, &cycle, &decision) != 0)
		ek_fail(&outcome, EK_REFUSED, "%s", decision.reason);
	p->moved_seconds = 0;
	begin_gathering(p);
	*changed = outcome.result == EK_OK && decision.changed;
	p->pending = *changed;
	p->steady = *changed ? 0 : p->steady;
	snprintf(p->reason, sizeof p->reason, "%s", decision.reason);
	begin_here(p);
	return ek_outcome_end(&outcome);
}

static int must_move_first(void)
{
	struct ek_outcome outcome = {0};
	ek_fail(&outcome, EK_REFUSED, "other ranges have been decided on: call ek_partition_move before the next step");
	return ek_outcome_end(&outcome);
}

EK_EXPORT int ek_partition_step(ek_partition *p, int *changed)
{
	EK_FOR_CALLER;
	int result;
	*changed = 0;
	if (!ek_ground())
		return EK_INACTIVE;
	if (p->pending)
		return must_move_first();
	if (!p->controller || (p->by_arrivals && !p->waits && !p->overlaps)) {
		if (ek_ground()->Barrier(p->program) != MPI_SUCCESS) {
			struct ek_outcome outcome = {0};
			ek_fail(&outcome, EK_MPI_FAILED, "MPI_Barrier over the ranks of the partition failed");
			return ek_outcome_end(&outcome);
		}
		if (!p->controller)
			return EK_OK;
		useful_by_arrivals(p);
	} else {
		double mine = own_useful(p, ek_ground_now());
		if ((result = p->overlaps ? ek_early_step(p, mine) : tell_useful(p, mine)) != EK_OK)
			return result;
	}
	return decide(p, changed);
}

/* Whether other collectives than barriers were called in the cycle: what ended it may be one
 * of them, of which barriers' arrivals say nothing, nor of what was waited in them. */
static bool others_than_barriers(const struct ek_partition *p)
{
	const struct ek_ground *g = ek_ground();
	if (!p->counted)
		return false;
	uint64_t now = g->collectives(p->program); /* 0 for a thread that is not recorded, where none are counted */
	return now > p->collectives && now - p->collectives > g->barrier_passed(p->program) - p->barriers;
}

EK_EXPORT int ek_partition_stepped(ek_partition *p, int *changed)
{
	EK_FOR_CALLER;
	const struct ek_ground *g = ek_ground();
	*changed = 0;
	if (!g)
		return EK_INACTIVE;
	if (p->pending)
		return must_move_first();
	if (!p->controller)
		return EK_OK;
	bool arrivals = p->by_arrivals && !p->waits && !p->overlaps && g->barrier_passed(p->program) > p->barriers;
	if (arrivals && !others_than_barriers(p)) {
		useful_by_arrivals(p);
		return decide(p, changed);
	}
	uint64_t inside_ns = 0, came_ns = g->last_collective ? g->last_collective(p->program, p->begun_ns, &inside_ns) : 0;
	p->waited_ns += p->measure == EK_MEASURE_AUTO ? inside_ns : 0;
	if (p->by_arrivals) /* later cycles begin where this one ends */
		useful_by_arrivals(p);
	int result = tell_useful(p, came_ns == 0 ? NAN : own_useful(p, came_ns));
	for (int r = 0; r < p->ranks && result == EK_OK; r++)
		if (isnan(p->useful[r])) {
			struct ek_outcome outcome = {0};
			ek_fail(&outcome, EK_NO_HISTORY, "rank %d: no collective call on the partition's communicator was recorded in "
			        "this cycle; run under evenkeel, or end the cycle with ek_partition_step", r);
			begin_here(p);
			result = ek_outcome_end(&outcome);
		}
	return result == EK_OK ? decide(p, changed) : result;
}

int ek_ranges_set(struct ek_partition *p, const int64_t *bounds, struct ek_outcome *outcome)
{
	size_t bytes = (size_t)(p->ranks + 1) * sizeof *bounds;
	bool all = outcome->result == EK_OK;
	if (all && (bounds[0] != 0 || bounds[p->ranks] != p->items))
		ek_fail(outcome, EK_REFUSED, "bounds from %lld to %lld: a partition of %lld items begins at 0 and ends there",
		        (long long)bounds[0], (long long)bounds[p->ranks], (long long)p->items);
	for (int r = 0; all && r < p->ranks; r++)
		if (bounds[r] > bounds[r + 1])
			ek_fail(outcome, EK_REFUSED, "rank %d would end at item %lld, before it begins at %lld", r,
			        (long long)bounds[r + 1], (long long)bounds[r]);
	if (ek_agree(p->comm, outcome, all ? ek_hash(0, bounds, bytes) : 0, 0) != EK_OK)
		return outcome->result;
	memcpy(p->next, bounds, bytes);
	p->pending = p->set = true;
	snprintf(p->reason, sizeof p->reason, "the program set the ranges");
	return EK_OK;
}

EK_EXPORT int ek_partition_set(ek_partition *p, const int64_t bounds[])
{
	EK_FOR_CALLER;
	struct ek_outcome outcome = {0};
	return ek_ground() ? ek_ranges_set(p, bounds, &outcome) : EK_INACTIVE;
}
