#include "own.h"

void ek_own_begin(struct ek_own *own, struct ek_caller by, uint64_t handle, int rank, uintptr_t frame)
{
	own->begun = handle != EK_NO_HANDLE &&
	             ek_begin(&own->call, by.function, ek_collective[by.function], handle, rank, by.site, frame);
}

void ek_own_end(struct ek_own *own)
{
	if (!own->begun)
		return;
	if (ek_leave(&own->call))
		ek_record(&own->call, 0, 0);
	ek_end(&own->call);
}
