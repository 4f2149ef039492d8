/* balancer_table.c - the decisions of the runtime by its table, as libevenkeel.so calls
 * them, on times that are given instead of measured.
 *
 *	balancer_table libevenkeel-runtime.so
 *
 * For each set of options: four ranks with 100 items each took the same twice. Prints how
 * many items each has then. After these, plans of a job and comparisons
 * of resources, of which the second rank's change.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer.h"
#include "evenkeel.h"
#include "runtime.h"

enum { RANKS = 4, REGIONS = 8 };

static const struct ek_balancer *balancer;
static const int64_t even[RANKS + 1] = {0, 100, 200, 300, 400};
static const double took[RANKS] = {1, 1.2, 3, 6};

static void print(const char *name, const int64_t *bounds, int changed)
{
	printf("%s:", name);
	for (int r = 0; r < RANKS; r++)
		printf(" %lld", (long long)(bounds[r + 1] - bounds[r]));
	puts(changed ? "" : " as they were");
}

/* Cycles like this one until the ranges change, at most so many. */
static int steps(uint64_t controller, struct ek_balancer_cycle cycle, int most, int64_t *bounds)
{
	struct ek_balancer_decision decision = {.bounds = bounds};
	for (int i = 0; i < most && !decision.changed; i++)
		if (balancer->step(controller, &cycle, &decision) != 0) {
			puts(decision.reason);
			return 0;
		}
	return decision.changed;
}

static void decide(const char *name, struct ek_balancer_start start, struct ek_balancer_cycle cycle)
{
	char why[EK_BALANCER_TEXT];
	int64_t bounds[RANKS + 1];
	start.ranks = RANKS;
	start.bounds = even;
	cycle.useful = took;
	uint64_t controller = balancer->open(&start, why);
	if (!controller) {
		printf("%s: %s\n", name, why);
		return;
	}
	print(name, bounds, steps(controller, cycle, 2, bounds));
	balancer->close(controller);
}

static void options(void)
{
	const struct ek_balancer_cycle one = {.cycles = 1}, ten = {.cycles = 10};
	const double costs[REGIONS] = {1, 1, 1, 1, 1, 1, 1, 13};
	struct ek_balancer_cycle told = {.cycles = 1, .costs = costs, .regions = REGIONS};
	decide("pairwise", (struct ek_balancer_start){.policy = EK_POLICY_PAIRWISE}, one);
	decide("two fastest", (struct ek_balancer_start){.policy = EK_POLICY_FASTEST, .fastest = 2}, one);
	decide("two fastest, weighted", (struct ek_balancer_start){.policy = EK_POLICY_FASTEST, .fastest = 2, .weighted = 1}, one);
	decide("all that are faster", (struct ek_balancer_start){.policy = EK_POLICY_FASTEST}, one);
	decide("proportional", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL}, one);
	decide("proportional, ten cycles added up", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL}, ten);
	decide("profiled", (struct ek_balancer_start){.policy = EK_POLICY_PROFILED}, told);
	decide("static", (struct ek_balancer_start){.policy = EK_POLICY_STATIC}, one);
	decide("a minimum", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .minimum = 40}, one);
	decide("a maximum", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .maximum = 150}, one);
	decide("a threshold above", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .threshold = 0.55}, one);
	decide("a threshold below", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .threshold = 0.5}, one);
	decide("seconds above", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .threshold_seconds = 3.3}, one);
	decide("seconds below", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .threshold_seconds = 3.1}, one);
	decide("seconds above, ten cycles added up", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .threshold_seconds = 0.33}, ten);
	decide("the last cycle is over", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .cycles = 2}, one);
	decide("one is left", (struct ek_balancer_start){.policy = EK_POLICY_PROPORTIONAL, .cycles = 3}, one);
	decide("a minimum that can't be", (struct ek_balancer_start){.minimum = 101}, one);
}

/* A move that took so long, as is told in the cycle after it, is not worth another. */
static void moves(const char *name, double seconds)
{
	const struct ek_balancer_start start = {.ranks = RANKS, .policy = EK_POLICY_PAIRWISE, .bounds = even};
	struct ek_balancer_cycle cycle = {.cycles = 1, .useful = took};
	char why[EK_BALANCER_TEXT];
	int64_t bounds[RANKS + 1];
	uint64_t controller = balancer->open(&start, why);
	steps(controller, cycle, 2, bounds);
	cycle.moved_seconds = seconds;
	print(name, bounds, steps(controller, cycle, 1, bounds));
	balancer->close(controller);
}

static void plan(const char *name, struct ek_balancer_job job)
{
	static const double rates[] = {2, 1};
	static const int32_t cores[] = {2, 1};
	int64_t end[64], begin[3];
	int32_t concurrent[2];
	char why[EK_BALANCER_TEXT];
	struct ek_balancer_plan plan = {0, end, 64, begin, concurrent};
	job.ranks = 2;
	job.work = 300;
	job.rates = rates;
	job.cores = cores;
	if (balancer->plan(&job, &plan, why) != 0) {
		printf("%s: %s\n", name, why);
		return;
	}
	printf("%s: %lld tasks, %lld of rank 0, which end at %lld; at once %d and %d\n", name, (long long)plan.tasks, (long long)begin[1],
	       (long long)end[begin[1] - 1], concurrent[0], concurrent[1]);
}

static void compare(const char *name, struct ek_balancer_resources before, struct ek_balancer_resources after)
{
	const struct ek_balancer_resources other = {1, 0, 0, 0}, both_before[] = {other, before}, both_after[] = {other, after};
	double factors[] = {NAN, NAN};
	char why[EK_BALANCER_TEXT];
	int result = balancer->compare(2, both_before, both_after, 0.1, factors, why);
	printf("%s: %d, times %.3g and %.3g, %s\n", name, result, factors[0], factors[1], why);
}

static void resources(void)
{
	compare("fewer cores", (struct ek_balancer_resources){2, 0, 0, 0}, (struct ek_balancer_resources){1, 0, 0, 0});
	compare("a limit", (struct ek_balancer_resources){2, 0, 0, 0}, (struct ek_balancer_resources){2, 0.5, 0, 0});
	compare("others", (struct ek_balancer_resources){1, 0, 0, 0}, (struct ek_balancer_resources){1, 0, 1, 0});
	compare("a lower priority beside others", (struct ek_balancer_resources){1, 0, 1, 0}, (struct ek_balancer_resources){1, 0, 1, 19});
	compare("others that were not seen", (struct ek_balancer_resources){1, 0, -1, 0}, (struct ek_balancer_resources){1, 0, 1, 0});
	compare("a limit that was not seen", (struct ek_balancer_resources){1, -1, 0, 0}, (struct ek_balancer_resources){1, 0.5, 0, 0});
	compare("cores that were not seen", (struct ek_balancer_resources){-1, 0, 0, 0}, (struct ek_balancer_resources){4, 0, 0, 0});
	compare("a priority that was not seen", (struct ek_balancer_resources){1, 0, 1, 100}, (struct ek_balancer_resources){1, 0, 1, 19});
	compare("no core at all", (struct ek_balancer_resources){1, 0, 0, 0}, (struct ek_balancer_resources){0, 0, 0, 0});
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);
	const struct ek_runtime *runtime = library ? dlsym(library, "ek_runtime") : NULL;
	void (*up)(void) = library ? (void (*)(void))dlsym(library, "ek_runtime_up") : NULL;
	if (!runtime || !up) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	up();
	balancer = runtime->service("balancer");
	if (!balancer || balancer->version != EK_BALANCER_VERSION || balancer->size != sizeof *balancer)
		return 2;
	options();
	moves("a move that took long", 1e9);
	moves("a move that took no time", 0);
	plan("a line", (struct ek_balancer_job){.slope = 0.5, .most = 7});
	plan("a steeper one", (struct ek_balancer_job){.slope = 2, .most = 7});
	plan("no more than that", (struct ek_balancer_job){.slope = 2, .most = 1});
	plan("a table", (struct ek_balancer_job){.table = (const double[]){0, 0, 2, 4}, .points = 2});
	plan("a table out of order", (struct ek_balancer_job){.table = (const double[]){2, 0, 1, 4}, .points = 2});
	resources();
	return 0;
}
