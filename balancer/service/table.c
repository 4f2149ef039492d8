/* The table of c/balancer.h. */
#include "balancer.h"
#include "_cgo_export.h"

static uint64_t open_controller(const struct ek_balancer_start *start, char *error)
{
	return ekBalancerOpen((void *)start, error);
}

static int step(uint64_t controller, const struct ek_balancer_cycle *cycle, struct ek_balancer_decision *decision)
{
	return ekBalancerStep(controller, (void *)cycle, decision);
}

static int plan(const struct ek_balancer_job *job, struct ek_balancer_plan *plan, char *error)
{
	return ekBalancerPlan((void *)job, plan, error);
}

static int compare(int32_t ranks, const struct ek_balancer_resources *before, const struct ek_balancer_resources *after,
                   double threshold, double *factors, char *reason)
{
	return ekBalancerCompare(ranks, (void *)before, (void *)after, threshold, factors, reason);
}

const struct ek_balancer *ek_balancer_table(void)
{
	static const struct ek_balancer table = {
		.version = EK_BALANCER_VERSION,
		.size = sizeof(struct ek_balancer),
		.open = open_controller,
		.close = ekBalancerClose,
		.step = step,
		.plan = plan,
		.compare = compare,
	};
	return &table;
}
