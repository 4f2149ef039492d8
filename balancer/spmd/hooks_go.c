/* The hooks of evenkeel.h as Go's exported functions. */
#include <stdint.h>

#include "_cgo_export.h"

static int64_t size(void *context, int64_t first, int64_t count)
{
	return ekGoSize((uintptr_t)context, first, count);
}

static int pack(void *context, int64_t first, int64_t count, void *buffer, int64_t bytes)
{
	ekGoPack((uintptr_t)context, first, count, buffer, bytes);
	return 0;
}

static int unpack(void *context, int64_t first, int64_t count, const void *buffer, int64_t bytes)
{
	return ekGoUnpack((uintptr_t)context, first, count, (void *)(uintptr_t)buffer, bytes);
}

static void finish(void *context, int64_t first, int64_t count, int taken)
{
	ekGoFinish((uintptr_t)context, first, count, taken);
}

static int needs(void *context, ek_halo *halo, int64_t first, int64_t count)
{
	return ekGoNeeds((uintptr_t)context, halo, first, count);
}

int ek_go_halo(ek_partition *partition, uintptr_t handle, ek_halo **halo)
{
	return ek_halo_create(partition, needs, (void *)handle, halo);
}

int ek_go_halo_exchange(ek_halo *halo, uintptr_t handle)
{
	struct ek_hooks hooks = {(void *)handle, size, pack, unpack, 0};
	return ek_halo_exchange_hooks(halo, &hooks);
}

int ek_go_hooks(ek_partition *partition, uintptr_t handle)
{
	struct ek_hooks hooks = {(void *)handle, size, pack, unpack, finish};
	return ek_partition_hooks(partition, &hooks);
}

static int ready(void *context, int64_t first, int64_t count)
{
	return ekGoReady((uintptr_t)context, first, count);
}

int ek_go_overlap(ek_partition *partition, uintptr_t handle, double seconds)
{
	return ek_partition_overlap(partition, ready, (void *)handle, seconds);
}

static int cut(void *context, int64_t first, int64_t count, int parts, int64_t end[])
{
	return ekGoCut((uintptr_t)context, first, count, parts, end);
}

int ek_go_job(MPI_Comm comm, struct ek_job_options *options, uintptr_t handle, ek_job **job)
{
	options->cut = handle ? cut : 0;
	options->context = (void *)handle;
	return ek_job_create(comm, options, job);
}
