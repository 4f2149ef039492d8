/* The hooks of evenkeel.h as Go's exported functions. */
#include <stdint.h>

#include "_cgo_export.h"

static int64_t size(void *context, int64_t first, int64_t count)
{
	return ekGoSize((uintptr_t)context, first, count);
}

static int pack(void *context, int64_t first, int64_t count, void *buffer, int64_t bytes)
{
	(void)count;
	ekGoPack((uintptr_t)context, first, buffer, bytes);
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
