#include "ground.h"

#include <dlfcn.h>
#include <pthread.h>

#include "agree.h"
#include "barrier.h"
#include "clock.h"
#include "evenkeel.h"
#include "handles.h"
#include "process.h"
#include "record.h"
#include "sites.h"

static struct ek_ground ground;

EK_EXPORT uint64_t ek_collectives(MPI_Comm comm)
{
	const struct ek_comm_local *local = ek_handle_find((uint64_t)(uintptr_t)comm);
	return EK_LOAD(ek.mode) == EK_RECORDING && ek_self.thread && local ? EK_LOAD(local->shared->sequence) : 0;
}

static uint64_t monotonic(struct ek_clock_anchor now, uint64_t ticks)
{
	return now.monotonic_ns - (now.ticks - ticks) * 1000 / (ek_clock_is_tsc ? ek_ticks_per_us : 1000);
}

EK_EXPORT uint64_t ek_last_collective(MPI_Comm comm, uint64_t since_ns, uint64_t *inside_ns)
{
	const struct ek_comm_local *local = ek_handle_find((uint64_t)(uintptr_t)comm);
	uint64_t last_ns = 0;
	*inside_ns = 0;
	if (EK_LOAD(ek.mode) != EK_RECORDING || !ek_self.thread || !local)
		return 0;
	uint64_t head = ek_self.thread->ring_head, length = ek.header->ring_events;
	struct ek_clock_anchor now = ek_clock_anchor_now();
	for (uint64_t i = head; i > 0 && i + length > head; i--) {
		const struct ek_event *event = &ek_self.ring[(i - 1) & (length - 1)];
		uint64_t enter_ns = monotonic(now, event->enter);
		if (enter_ns < since_ns)
			break;
		if (!(event->weight & EK_EVENT_COLLECTIVE) || event->comm != local->index)
			continue;
		if (last_ns)
			*inside_ns += monotonic(now, event->leave) - enter_ns;
		else
			last_ns = enter_ns;
	}
	return last_ns;
}

EK_EXPORT void ek_count_moved(int64_t early)
{
	if (ek.rank) {
		ek_count(EK_FAST_MOVES, 1);
		ek_count(EK_FAST_EARLY, (uint64_t)early);
	}
}

EK_EXPORT void ek_count_hidden(uint64_t ns)
{
	if (ek.rank)
		ek_count(EK_FAST_HIDDEN_NS, ns);
}

static const struct ek_balancer *balancer(void)
{
	const struct ek_balancer *found = ek_service("balancer");
	return found && found->version == EK_BALANCER_VERSION && found->size == sizeof *found ? found : 0;
}

/* By way of our own wrappers where there are some. */
static void look_up(void)
{
	ek_next_resolve();
#define LOOK_UP(name, parameters) *(void **)&ground.name = ek_next_data("MPI_" #name);
	EK_GROUND_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	ground.comm_null = ek_mpi.comm_null;
	ground.byte = ek_mpi.type_byte;
	ground.uint64 = ek_mpi.type_uint64;
	ground.min = ek_mpi.op_min;
	ground.errors_return = ek_mpi.errors_return;
	ground.info_null = ek_mpi.info_null;
	ground.int64 = ek_next_data("ompi_mpi_int64_t");
	ground.real = ek_next_data("ompi_mpi_double");
	ground.sum = ek_next_data("ompi_mpi_op_sum");
	ground.win_null = ek_next_data("ompi_mpi_win_null");
	ground.barrier_passed = ek_barrier_passed;
	ground.barrier_arrivals = ek_barrier_arrivals;
	ground.collectives = ek_collectives;
	ground.last_collective = ek_last_collective;
	ground.moved = ek_count_moved;
	ground.hidden = ek_count_hidden;
	ground.balancer = balancer;
}

const struct ek_ground *ek_ground(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int begun = 0, ended = 0;
	pthread_once(&once, look_up);
	if (ground.Initialized)
		ground.Initialized(&begun);
	if (begun)
		ground.Finalized(&ended);
	if (!begun || ended) {
		struct ek_outcome outcome = {0};
		ek_fail(&outcome, EK_INACTIVE, "partitions and split jobs live between MPI_Init and MPI_Finalize");
		ek_outcome_end(&outcome);
		return 0;
	}
	return &ground;
}

const void *ek_ground_enter(const void *address, const void *frame)
{
	const void *before = ek_calls_from(ek_fortran_caller(address, frame));
	if (before)
		ek_calls_from(before); /* the program called the outer one */
	return before;
}

void ek_ground_leave(const void **before)
{
	ek_calls_from(*before);
}

uint64_t ek_ground_now(void)
{
	return ek_monotonic_ns();
}
