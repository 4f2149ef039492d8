/* What partitions and split tasks stand on in a Go program: see ground.h. MPI is
 * the program's own; where libevenkeel.so is preloaded, its wrappers and its barrier. */
#define _GNU_SOURCE
#include "ground.h"

#include <dlfcn.h>
#include <time.h>

#include "agree.h"
#include "evenkeel.h"

static struct ek_ground ground = {
#define MEMBER(name, parameters) .name = MPI_##name,
	EK_GROUND_FUNCTIONS(MEMBER)
#undef MEMBER
	.comm_null = MPI_COMM_NULL,
	.byte = MPI_BYTE,
	.int64 = MPI_INT64_T,
	.uint64 = MPI_UINT64_T,
	.real = MPI_DOUBLE,
	.min = MPI_MIN,
	.sum = MPI_SUM,
	.errors_return = MPI_ERRORS_RETURN,
	.info_null = MPI_INFO_NULL,
	.win_null = MPI_WIN_NULL,
};

static const struct ek_balancer *decisions;

static const struct ek_balancer *balancer(void)
{
	return decisions;
}

/* The program's place is known to Go, which tells it: see call in partition.go. */
static const void *(*calls_from)(const void *address);

uintptr_t ek_ground_tell(uintptr_t address)
{
	return (uintptr_t)calls_from((const void *)address);
}

const void *ek_ground_enter(const void *address, const void *frame)
{
	(void)address;
	(void)frame;
	return 0;
}

void ek_ground_leave(const void **before)
{
	(void)before;
}

/* True if evenkeel was preloaded, and so can be told. */
int ek_ground_prepare(const void *table)
{
	decisions = table;
	ground.balancer = balancer;
	ground.barrier_passed = (uint64_t (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "ek_barrier_passed");
	ground.barrier_arrivals = (bool (*)(MPI_Comm, uint64_t, uint64_t[]))dlsym(RTLD_DEFAULT, "ek_barrier_arrivals");
	ground.moved = (void (*)(int64_t))dlsym(RTLD_DEFAULT, "ek_count_moved");
	ground.hidden = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "ek_count_hidden");
	calls_from = (const void *(*)(const void *))dlsym(RTLD_DEFAULT, "ek_calls_from");
	ground.collectives = (uint64_t (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "ek_collectives");
	ground.last_collective = (uint64_t (*)(MPI_Comm, uint64_t, uint64_t *))dlsym(RTLD_DEFAULT, "ek_last_collective");
	return calls_from != 0;
}

const struct ek_ground *ek_ground(void)
{
	int begun = 0, ended = 0;
	MPI_Initialized(&begun);
	if (begun)
		MPI_Finalized(&ended);
	if (begun && !ended)
		return &ground;
	struct ek_outcome outcome = {0};
	ek_fail(&outcome, EK_INACTIVE, "partitions and split jobs live between mpi.Init and mpi.Finalize");
	ek_outcome_end(&outcome);
	return 0;
}

uint64_t ek_ground_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
